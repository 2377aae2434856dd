//! One watch of the kernel on the folders that show a change of the references.

use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use notify::{ErrorKind, Event, RecommendedWatcher, RecursiveMode, Watcher};

use super::news::News;
use crate::git::{Scene, Verdict};
use crate::limits::WATCH_ATTEMPTS;

#[derive(Debug, thiserror::Error)]
#[error("cannot watch the folder {}", path.display())]
pub(super) struct ArmError {
    pub(super) path: PathBuf,
    pub(super) source: notify::Error,
}

pub(super) struct Armed {
    _watcher: RecommendedWatcher,
}

impl Armed {
    pub(super) fn new(path: &Path, news: &Arc<News>) -> Result<Armed, ArmError> {
        Armed::over(path, news, || Scene::at(path))
    }

    /// Watches the folders of `scene_now`. Retries if the folders change in between.
    pub(super) fn over(
        path: &Path,
        news: &Arc<News>,
        mut scene_now: impl FnMut() -> Scene,
    ) -> Result<Armed, ArmError> {
        let mut scene = scene_now();
        let mut attempt = 1;
        loop {
            match watcher(&scene, Arc::clone(news)) {
                Ok(watcher) => {
                    let now = scene_now();
                    let is_current = now == scene;
                    if is_current || attempt == WATCH_ATTEMPTS {
                        // The last change happened before this watch.
                        if !is_current {
                            news.add(|pending| pending.rearm = true);
                        }
                        return Ok(Armed { _watcher: watcher });
                    }
                    scene = now;
                }
                Err(source) if attempt == WATCH_ATTEMPTS || !is_vanished(&source) => {
                    let path = path.to_owned();
                    return Err(ArmError { path, source });
                }
                Err(_) => scene = scene_now(),
            }
            attempt += 1;
        }
    }
}

fn watcher(scene: &Scene, news: Arc<News>) -> Result<RecommendedWatcher, notify::Error> {
    let of_handler = scene.clone();
    let mut watcher =
        notify::recommended_watcher(move |event: notify::Result<Event>| match event {
            Ok(event) => match of_handler.judge(&event) {
                Verdict::Nothing => {}
                Verdict::Changed => news.add(|pending| pending.changed = true),
                Verdict::Rearm => news.add(|pending| pending.rearm = true),
            },
            Err(error) => news.add(|pending| pending.lost = Some(error)),
        })?;
    for folder in scene.above() {
        // A folder that cannot be listed cannot be watched. Polling continues.
        let _unwatched = watcher.watch(folder, RecursiveMode::NonRecursive);
    }
    for (folder, mode) in scene.folders() {
        watcher.watch(&folder, mode)?;
    }
    Ok(watcher)
}

fn is_vanished(error: &notify::Error) -> bool {
    match &error.kind {
        ErrorKind::PathNotFound => true,
        ErrorKind::Io(error) => error.kind() == io::ErrorKind::NotFound,
        ErrorKind::Generic(_)
        | ErrorKind::WatchNotFound
        | ErrorKind::InvalidConfig(_)
        | ErrorKind::MaxFilesWatch => false,
    }
}
