//! Backups made beside the daemon, and what a restored state begins with.

use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};

use model::decide::{Cancel, Refusal};
use model::{Actor, JobState, Reason};
use tokio::runtime::Handle;

use super::fixture::{Folder, completion, line};
use super::fsck::findings_at;
use crate::layout::Layout;
use crate::{CopyError, back_up, restore};

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

#[tokio::test(flavor = "multi_thread")]
async fn a_job_that_ends_while_a_backup_is_made_has_its_whole_log_in_it() {
    let (folder, opened, fleet) = Folder::prepared().await;
    let (job, cancelled) = (
        opened.running_job(fleet, "build").await,
        opened.running_job(fleet, "build").await,
    );
    let logs = opened.state.logs();
    for job in [job, cancelled] {
        logs.append(job, 0, vec![line("one")]).await.unwrap();
    }
    let kept = folder.root().with_file_name("backup");
    let copied = kept.join(Layout::log(job).as_str());
    let other = kept.join(Layout::log(cancelled).as_str());
    let (has_ended, handle) = (AtomicBool::new(false), Handle::current());
    // Folders are copied by name, so there is a file after the logs.
    let last = Path::new("last");
    std::fs::create_dir(folder.root().join(last)).unwrap();
    std::fs::write(folder.root().join(last).join("file"), "text").unwrap();
    // Asked before each piece of each file.
    let meanwhile = || {
        let is_copied = |log: &Path| log.metadata().is_ok_and(|log| log.len() > 0);
        if is_copied(&copied) && is_copied(&other) && !has_ended.swap(true, Ordering::SeqCst) {
            handle.block_on(async {
                for job in [job, cancelled] {
                    let more = vec![line("two"), line("three")];
                    logs.append(job, 1, more).await.unwrap();
                }
                opened.state.complete(completion(job, 3)).await.unwrap();
                let cancel = Cancel {
                    job: cancelled,
                    actor: Actor::Daemon,
                };
                opened.state.submit(cancel).await.unwrap();
            });
        }
        false
    };
    tokio::task::block_in_place(|| back_up(folder.root(), &kept, &meanwhile).unwrap());
    assert!(has_ended.into_inner());

    let mut restored = folder.empty_twin();
    restore(&kept, restored.root(), &never).unwrap();
    std::fs::remove_dir_all(restored.root().join(last)).unwrap();
    let again = restored.open().await;
    for job in [job, cancelled] {
        let found = again.state.job(job).await.unwrap();
        assert_eq!(found, opened.state.job(job).await.unwrap());
        assert_eq!(again.state.logs().records(job).await.unwrap(), 3);
    }
    again.close();
    let found = findings_at(restored.root()).unwrap();
    assert!(found.is_empty(), "{found:?}");
}

#[tokio::test]
async fn a_backup_is_refused_where_it_would_mix_and_a_restore_without_a_backup() {
    let (folder, opened, _) = Folder::prepared().await;
    opened.close();
    let (root, twin) = (folder.root(), folder.empty_twin());
    let nothing = back_up(twin.root(), &twin.root().join("x"), &never);
    assert!(matches!(nothing, Err(CopyError::NoState { .. })));
    assert!(!twin.root().exists());
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
    let backup = root.with_file_name("backup");
    back_up(root, &backup, &never).unwrap();
    let into_itself = restore(&backup, &backup.join("sub/state"), &never);
    assert!(matches!(into_itself, Err(CopyError::Inside { .. })));
    let stopped = back_up(root, twin.root(), &|| true);
    assert!(matches!(stopped, Err(CopyError::Stopped)));
    let unfinished = restore(twin.root(), &twin.root().join("x"), &never);
    assert!(matches!(unfinished, Err(CopyError::NotABackup { .. })));
    assert!(!root.join("journal/HOLD").exists());
}
