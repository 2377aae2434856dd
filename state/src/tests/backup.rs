//! Backups made beside the daemon, and what a restored state begins with.

use std::path::Path;
use std::time::Duration;

use model::decide::{Cancel, DeleteJob, Refusal};
use model::{Actor, JobState, Reason};

use super::fixture::{Folder, completion, line};
use super::fsck::findings_at;
use crate::layout::Layout;
use crate::{CopyError, back_up, hold, release, restore};

fn never() -> bool {
    false
}

/// A folder that a backup of `folder` was restored to.
fn restored(folder: &Folder) -> Folder {
    let kept = folder.root().with_file_name("backup");
    back_up(folder.root(), &kept, &never).unwrap();
    let restored = folder.empty_twin();
    restore(&kept, restored.root(), &never).unwrap();
    std::fs::remove_dir_all(kept).unwrap();
    restored
}

#[tokio::test]
async fn a_restored_state_has_everything_and_nothing_goes_on_in_it() {
    let (folder, opened, fleet) = Folder::prepared().await;
    let done = opened.running_job(fleet, "build").await;
    opened.store_artifact(done, "report", "zip").await;
    let logs = opened.state.logs();
    logs.append(done, 0, vec![line("one"), line("two")])
        .await
        .unwrap();
    let done = opened.state.complete(completion(done, 2)).await.unwrap();
    let running = opened.running_job(fleet, "build").await;
    let waiting = opened.new_job(fleet, "build").await;
    let mirror = folder.root().join("sources/recon/mirror.git");
    std::fs::create_dir_all(&mirror).unwrap();
    std::fs::write(mirror.join("HEAD"), "ref").unwrap();

    let mut restored = restored(&folder);
    assert!(!restored.root().join("sources/recon/mirror.git").exists());
    for _ in 0..2 {
        let opened = restored.open().await;
        let found = opened.state.job(done.id).await.unwrap().unwrap();
        assert_eq!(found, done);
        let zip = opened.state.open_artifact(done.id, "report").await.unwrap();
        assert_eq!(zip.unwrap().read(0, 3).await.unwrap().1, "zip");
        assert_eq!(opened.state.logs().records(done.id).await.unwrap(), 2);
        let lost = opened.state.job(running).await.unwrap().unwrap();
        assert_eq!(lost.state.end().unwrap().reason, Reason::Restored);
        let held = opened.state.job(waiting).await.unwrap().unwrap();
        assert_eq!(held.state, JobState::Scheduled);
        let now = opened.state.now();
        assert!(opened.state.read(|world| {
            let mut runners = world.runners();
            runners.all(|runner| runner.session.expires_at <= now)
        }));
        opened.close();
    }
    // It is told once: what begins afterwards goes on.
    let opened = restored.open().await;
    opened.claim(fleet, waiting).await;
    opened.close();
    let opened = restored.open().await;
    let job = opened.state.job(waiting).await.unwrap().unwrap();
    assert!(matches!(job.state, JobState::Running { .. }));
    let gone = opened.state.complete(completion(running, 0)).await;
    assert!(matches!(
        gone,
        Err(crate::CompleteError::Submit(crate::SubmitError::Refused(
            Refusal::JobOver { .. }
        )))
    ));
}

#[tokio::test]
async fn a_log_that_grows_while_it_is_copied_is_whole_in_the_copy() {
    let (folder, opened, fleet) = Folder::prepared().await;
    let job = opened.running_job(fleet, "build").await;
    let text = "x".repeat(100_000);
    let lines = |count: usize| vec![line(text.as_str()); count];
    let logs = opened.state.logs();
    logs.append(job, 0, lines(3)).await.unwrap();
    let held = hold(folder.root()).unwrap();
    // A copy that comes to the log first and to everything else last.
    let copied = folder.empty_twin();
    let log = copied.root().join(Layout::log(job).as_str());
    std::fs::create_dir_all(log.parent().unwrap()).unwrap();
    std::fs::copy(folder.root().join(Layout::log(job).as_str()), &log).unwrap();
    // More than one piece of it goes through the journal.
    logs.append(job, 3, lines(12)).await.unwrap();
    let done = opened.state.complete(completion(job, 15)).await.unwrap();
    copy_new(folder.root(), copied.root());
    assert!(release(folder.root(), held.id()).unwrap());
    assert!(!release(folder.root(), held.id()).unwrap());

    let mut copied = copied;
    let opened = copied.open().await;
    assert_eq!(opened.state.job(job).await.unwrap().unwrap(), done);
    assert_eq!(opened.state.logs().records(job).await.unwrap(), 15);
    let whole = std::fs::read(folder.root().join(Layout::log(job).as_str())).unwrap();
    assert_eq!(std::fs::read(&log).unwrap(), whole);
}

#[tokio::test]
async fn a_log_is_whole_in_a_copy_also_when_the_daemon_starts_again_meanwhile() {
    let (mut folder, opened, fleet) = Folder::prepared().await;
    let job = opened.running_job(fleet, "build").await;
    let silent = opened.running_job(fleet, "build").await;
    let lines = |count: usize| vec![line("x"); count];
    let logs = opened.state.logs();
    logs.append(job, 0, lines(1)).await.unwrap();
    logs.append(silent, 0, lines(1)).await.unwrap();
    let held = hold(folder.root()).unwrap();
    let mut copied = folder.empty_twin();
    for job in [job, silent] {
        let log = Layout::log(job);
        let to = copied.root().join(log.as_str());
        std::fs::create_dir_all(to.parent().unwrap()).unwrap();
        std::fs::copy(folder.root().join(log.as_str()), to).unwrap();
    }
    // Within the second in which it would come into the journal.
    logs.append(job, 1, lines(2)).await.unwrap();
    logs.append(silent, 1, lines(2)).await.unwrap();
    opened.close();

    let opened = folder.open().await;
    let logs = opened.state.logs();
    logs.append(job, 3, lines(1)).await.unwrap();
    let mut done = Vec::new();
    for (job, lines) in [(job, 4), (silent, 3)] {
        let ended = opened.state.complete(completion(job, lines)).await.unwrap();
        done.push((ended, lines));
    }
    copy_new(folder.root(), copied.root());
    assert!(release(folder.root(), held.id()).unwrap());

    let opened = copied.open().await;
    for (ended, lines) in done {
        let found = opened.state.job(ended.id).await.unwrap().unwrap();
        let stored = opened.state.logs().records(ended.id).await.unwrap();
        assert_eq!((stored, found), (lines, ended));
    }
}

#[tokio::test]
async fn a_job_that_its_runner_does_not_end_has_its_log_in_a_copy() {
    let (folder, opened, fleet) = Folder::prepared().await;
    let job = opened.running_job(fleet, "build").await;
    let log = Layout::log(job);
    let logs = opened.state.logs();
    logs.append(job, 0, vec![line("one")]).await.unwrap();
    let held = hold(folder.root()).unwrap();
    let mut copied = folder.empty_twin();
    let to = copied.root().join(log.as_str());
    std::fs::create_dir_all(to.parent().unwrap()).unwrap();
    std::fs::copy(folder.root().join(log.as_str()), &to).unwrap();
    logs.append(job, 1, vec![line("two"), line("three")])
        .await
        .unwrap();
    let bytes = opened.state.log_bytes_at_end(job).await;
    copy_new(folder.root(), copied.root());
    assert!(release(folder.root(), held.id()).unwrap());
    let _opened = copied.open().await;
    assert_eq!(std::fs::metadata(to).unwrap().len(), bytes);
}

#[tokio::test]
async fn a_log_that_is_emptied_while_it_is_copied_keeps_nobody_waiting() {
    let (folder, opened, fleet) = Folder::prepared().await;
    let job = opened.running_job(fleet, "build").await;
    let held = hold(folder.root()).unwrap();
    let logs = opened.state.logs();
    logs.append(job, 0, vec![line("one"), line("two")])
        .await
        .unwrap();
    std::fs::write(folder.root().join(Layout::log(job).as_str()), "").unwrap();
    let complete = opened.state.complete(completion(job, 2));
    let done = tokio::time::timeout(Duration::from_secs(120), complete).await;
    assert_eq!(done.unwrap().unwrap().state.name(), "succeeded");
    release(folder.root(), held.id()).unwrap();
}

#[tokio::test]
async fn the_log_of_a_deleted_job_does_not_come_back_with_its_last_words() {
    let (folder, opened, fleet) = Folder::prepared().await;
    let job = opened.running_job(fleet, "build").await;
    let held = hold(folder.root()).unwrap();
    let actor = Actor::Daemon;
    let cancel = Cancel {
        job,
        actor: actor.clone(),
        log_bytes: opened.state.log_bytes_at_end(job).await,
    };
    let cancelled = opened.state.submit(cancel).await.unwrap();
    // Its runner says more, and before that comes into the journal, on a slow disk, the job is deleted.
    let logs = opened.state.logs();
    logs.append(job, 0, vec![line("late")]).await.unwrap();
    folder.advance(120_000);
    let delete = DeleteJob {
        job: cancelled,
        actor,
    };
    opened.state.submit(delete).await.unwrap();
    assert!(opened.state.log_bytes_at_end(job).await > 0);
    let log = folder.root().join(Layout::log(job).as_str());
    release(folder.root(), held.id()).unwrap();
    opened.close();
    assert!(!log.exists());
    let found = findings_at(folder.root(), &folder).unwrap();
    assert!(found.is_empty(), "{found:?}");
}

/// Copies what is not there yet, the journal last.
fn copy_new(from: &Path, to: &Path) {
    std::fs::create_dir_all(to).unwrap();
    let entries = std::fs::read_dir(from).into_iter().flatten();
    let mut entries: Vec<_> = entries.map(|entry| entry.unwrap().path()).collect();
    entries.sort_by_key(|path| path.ends_with("journal"));
    for entry in entries {
        let target = to.join(entry.file_name().unwrap());
        if entry.is_dir() {
            copy_new(&entry, &target);
        } else if !target.exists() {
            // What goes away meanwhile is left out.
            drop(std::fs::copy(entry, target));
        }
    }
}

#[tokio::test]
async fn a_backup_is_refused_where_it_would_mix_and_a_restore_without_a_backup() {
    let (folder, opened, _) = Folder::prepared().await;
    opened.close();
    let (root, twin) = (folder.root(), folder.empty_twin());
    for nothing in [
        back_up(twin.root(), &twin.root().join("x"), &never).map(drop),
        hold(twin.root()).map(drop),
    ] {
        assert!(matches!(nothing, Err(CopyError::NoState { .. })));
        assert!(!twin.root().exists());
    }
    let beside = root.parent().unwrap();
    let full = back_up(root, beside, &never);
    assert!(matches!(full, Err(CopyError::NotEmpty { .. })));
    let other_name = beside.join("other-name");
    std::os::unix::fs::symlink(root, &other_name).unwrap();
    for inside in [
        root.to_owned(),
        root.join("x"),
        root.join("x/y"),
        other_name.join("x"),
    ] {
        let endless = back_up(root, &inside, &never);
        assert!(
            matches!(endless, Err(CopyError::Inside { .. })),
            "{}",
            inside.display()
        );
    }
    std::fs::remove_file(other_name).unwrap();
    assert!(!root.join("x").exists(), "nothing is written");
    let nothing = restore(twin.root(), &twin.root().join("x"), &never);
    assert!(matches!(nothing, Err(CopyError::NotABackup { .. })));
    let into_itself = restore(root, &root.join("sub/state"), &never);
    assert!(matches!(into_itself, Err(CopyError::Inside { .. })));
    let stopped = back_up(root, twin.root(), &|| true);
    assert!(matches!(stopped, Err(CopyError::Stopped)));
    let unfinished = restore(twin.root(), &twin.root().join("x"), &never);
    assert!(matches!(unfinished, Err(CopyError::NotABackup { .. })));
    let left = std::fs::read_dir(root.join("journal")).unwrap();
    assert!(left.into_iter().all(|entry| {
        let name = entry.unwrap().file_name();
        !name.to_string_lossy().starts_with("HOLD")
    }));
}
