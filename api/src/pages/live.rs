//! Server-sent events about changed parts of pages. An event contains no data: the page is fetched again.

use std::collections::HashMap;
use std::time::Duration;

use bytes::Bytes;
use futures_util::future::select_all;
use model::{JobId, JobState, Scope};
use tokio::sync::watch;
use ui::topics;
use warp::reply::Response;

use super::frame::Frame;
use crate::events::Form;
use crate::failure::Failure;
use crate::handlers::events;
use crate::reply::Pieces;
use crate::visible::Visible;

/// Pause between two events about logs: the page of a constantly growing log is fetched once a second.
const LOG_PAUSE: Duration = Duration::from_secs(1);

/// Running jobs whose logs are followed, newest first. No page shows more.
const FOLLOWED_LOGS: usize = 200;

/// Sends the topics of changes from now on. A page that lost its stream is fetched again, so it needs no earlier topics.
pub(super) fn listen(frame: &Frame<'_>) -> Result<Response, Failure> {
    let listener = frame.user.listen(None, None, None, Form::Topics, None)?;
    let sees_jobs = frame.may(Scope::JobRead);
    let logs = async move |user: Visible, pieces: Pieces| {
        if sees_jobs {
            send_growth(&user, &pieces).await;
        }
        std::future::pending::<()>().await;
    };
    Ok(events::stream(frame.user, listener, logs))
}

/// Sends the topics of logs that have grown. Log lines are not commits, so they cause no events.
async fn send_growth(user: &Visible, pieces: &Pieces) {
    let mut followed = HashMap::new();
    let mut changes = user.changed();
    loop {
        changes.mark_unchanged();
        let grown = grown(user, &mut followed);
        if !grown.is_empty() {
            // Our own texts are always JSON.
            let data = serde_json::to_string(&grown).unwrap_or_default();
            let event = Bytes::from(format!("event: changed\ndata: {data}\n\n"));
            if pieces.send(event).await.is_err() {
                return;
            }
        }
        tokio::time::sleep(LOG_PAUSE).await;
        tokio::select! {
            () = any_growth(&mut followed) => {}
            // The running jobs may have changed.
            changed = changes.changed() => if changed.is_err() { return },
        }
    }
}

/// Waits until a log has grown. Leaves the mark for [`grown`].
async fn any_growth(followed: &mut HashMap<JobId, watch::Receiver<()>>) {
    let waiting = followed.values_mut().map(|growth| {
        Box::pin(async {
            match growth.changed().await {
                Ok(()) => growth.mark_changed(),
                // This log will not grow any more.
                Err(_) => std::future::pending().await,
            }
        })
    });
    let waiting: Vec<_> = waiting.collect();
    if waiting.is_empty() {
        std::future::pending::<()>().await;
    }
    select_all(waiting).await;
}

/// The topics of running jobs whose logs have grown since the last call, or are new.
fn grown(user: &Visible, followed: &mut HashMap<JobId, watch::Receiver<()>>) -> Vec<String> {
    let running: Vec<_> = user.read(|seen| {
        let jobs = seen.jobs().rev();
        let running = jobs.filter(|job| matches!(job.state, JobState::Running { .. }));
        running.take(FOLLOWED_LOGS).map(|job| job.id).collect()
    });
    followed.retain(|id, _| running.contains(id));
    let mut grown = Vec::new();
    for id in running {
        let has_grown = match followed.get_mut(&id) {
            Some(growth) => {
                let has_changed = growth.has_changed().unwrap_or(false);
                growth.mark_unchanged();
                has_changed
            }
            None => {
                let find = |seen: model::Seen<'_>| {
                    let job = seen.job(id).cloned();
                    job.ok_or_else(|| Failure::no_such_job(id))
                };
                let Ok(job) = user.find(find) else {
                    continue;
                };
                followed.insert(id, user.log_growth(&job));
                true
            }
        };
        if has_grown {
            grown.push(topics::job(id.uuid()));
        }
    }
    grown
}
