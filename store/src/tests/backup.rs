//! Backups on a real disk: during writes, refused, stopped and interrupted.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::pin::pin;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, mpsc};
use std::task::{Context, Poll, Waker};
use std::time::Duration;

use super::busy::{Busy, copying};
use super::world::{World, adopt, delete, names, segments, staged, temporary_folder, tiny};
use crate::backup::{CopyError, Copying, back_up, back_up_on, restore};
use crate::disk::{Action, Disk};
use crate::file::OpenError;
use crate::hold::{Hold, keeps_journal};
use crate::limits::HOLD_JOURNAL_BYTES;
use crate::look::{Look, Part};
use crate::manifest::Manifest;
use crate::mend::Mending;
use crate::paths::Paths;
use crate::{Engine, Seq, Watermark};

/// Limit for the operations of a backup: many more than a small store needs.
const OPERATIONS: usize = 2_000;

/// Maximum number of rounds of the writer during one backup.
const STEPS_BESIDE: u64 = 100;

/// Longer than any checkpoint of a small store, even on a busy machine.
const PATIENCE: Duration = Duration::from_secs(300);

/// Waits for a checkpoint, and fails when none comes.
fn checkpoint(world: &World) {
    let pending = world.engine.reader().pending;
    let (done, is_done) = mpsc::channel();
    std::thread::spawn(move || drop(done.send(pending.wait_for_checkpoint())));
    let made = is_done.recv_timeout(PATIENCE).expect("no checkpoint comes");
    made.unwrap();
}

fn take_hold(root: &Path) -> Hold {
    Hold::take(&Disk::new(), &Paths::new(root)).unwrap()
}

#[tokio::test]
async fn backups_during_writes_are_complete() {
    let mut busy = Busy::new().await;
    busy.steps(5).await;
    for round in 0..12 {
        busy.steps(3).await;
        let (root, backup) = (busy.root(), busy.folder(&format!("backup-{round}")));
        let (before, to) = (busy.world.last, backup.clone());
        let copying = std::thread::spawn(move || back_up(&root, &to, copying()).unwrap());
        // A writer without pauses may stay ahead of the backup.
        let rest = Seq(before.0 + STEPS_BESIDE);
        while !copying.is_finished() && busy.world.last < rest {
            busy.step().await;
        }
        let copied = copying.join().unwrap();
        assert!(copied.sequence >= before);
        busy.assert_whole(&backup, copied.sequence).await;
    }
    busy.steps(40).await;
    busy.assert_released();
}

#[tokio::test]
async fn one_backup_is_made_at_a_time() {
    let mut busy = Busy::new().await;
    busy.steps(9).await;
    let hold = take_hold(&busy.root());
    let error = back_up(&busy.root(), &busy.folder("backup"), copying()).unwrap_err();
    let message = error.to_string();
    let process = format!("is being made by process {}", std::process::id());
    assert!(
        matches!(error, CopyError::Busy { .. }) && message.contains(&process),
        "{message}"
    );
    drop(hold);
    let copied = back_up(&busy.root(), &busy.folder("backup"), copying()).unwrap();
    busy.assert_whole(&busy.folder("backup"), copied.sequence)
        .await;
}

#[tokio::test]
async fn a_hold_keeps_the_journal_through_a_restart() {
    let mut busy = Busy::new().await;
    busy.steps(9).await;
    let hold = take_hold(&busy.root());
    let first = segments(&busy.root())[0].clone();
    busy.steps(40).await;
    busy.open_again().await;
    busy.steps(40).await;
    assert!(first.exists() && hold.lasts().unwrap());
    assert!(!busy.world.engine.is_restored());
    drop(hold);
    busy.assert_released();
}

#[tokio::test]
async fn the_hold_of_a_dead_process_has_no_effect() {
    let mut busy = Busy::new().await;
    busy.steps(9).await;
    let path = busy.root().join("journal/HOLD");
    fs::write(&path, "{}").unwrap();
    let copied = back_up(&busy.root(), &busy.folder("backup"), copying()).unwrap();
    busy.assert_whole(&busy.folder("backup"), copied.sequence)
        .await;
    fs::write(&path, "{}").unwrap();
    busy.steps(40).await;
    checkpoint(&busy.world);
    assert!(!path.exists());
    busy.assert_released();
}

#[tokio::test]
async fn a_segment_that_replaced_an_empty_segment_stays_when_a_hold_ends() {
    let mut busy = Busy::new().await;
    busy.steps(3).await;
    let hold = take_hold(&busy.root());
    // Without commits in between, each opening begins a segment with the same record.
    for _ in 0..3 {
        busy.open_again().await;
    }
    drop(hold);
    for _ in 0..20 {
        busy.step().await;
        assert_ne!(segments(&busy.root()), Vec::<PathBuf>::new());
    }
    busy.assert_released();
}

#[tokio::test]
async fn a_hold_is_ended_by_too_much_journal_or_a_full_disk() {
    let roomy = Watermark::NONE;
    let full = Watermark {
        percent: 200,
        bytes: u64::MAX,
        files: 0,
    };
    let folder = temporary_folder();
    drop(World::open(folder.path()).await.unwrap());
    let (disk, paths) = (Disk::new(), Paths::new(folder.path()));
    let keeps = |bytes, watermark| keeps_journal(&disk, &paths, bytes, watermark).unwrap();
    assert!(!keeps(0, roomy), "there is no hold");
    for (bytes, watermark) in [(HOLD_JOURNAL_BYTES + 1, roomy), (0, full)] {
        let hold = take_hold(folder.path());
        assert!(keeps(HOLD_JOURNAL_BYTES, roomy) && hold.lasts().unwrap());
        assert!(!keeps(bytes, watermark));
        assert!(!hold.lasts().unwrap());
    }
    // Another hold was taken in the meantime. The end of the first must not end it.
    let ended = take_hold(folder.path());
    assert!(!keeps(0, full));
    let hold = take_hold(folder.path());
    drop(ended);
    assert!(hold.lasts().unwrap());
}

/// Folders that are not backups.
fn assert_unfinished(backup: &Path, target: &Path) {
    let restored = restore(backup, target, copying());
    assert!(
        matches!(restored, Err(CopyError::NotABackup { .. })),
        "{restored:?}"
    );
    assert!(!target.exists());
}

#[tokio::test]
async fn a_backup_whose_hold_was_ended_fails() {
    let mut busy = Busy::new().await;
    busy.steps(9).await;
    let (root, backup) = (busy.root(), busy.folder("backup"));
    let end = || {
        drop(fs::remove_file(root.join("journal/HOLD")));
        false
    };
    let ended = Copying {
        is_stopped: &end,
        ..copying()
    };
    let error = back_up(&root, &backup, ended).unwrap_err();
    assert!(matches!(error, CopyError::HoldEnded), "{error}");
    assert_unfinished(&backup, &busy.folder("restored"));
}

#[tokio::test]
async fn a_backup_that_stops_or_fails_at_any_point_cannot_be_restored() {
    let mut busy = Busy::new().await;
    busy.steps(5).await;
    // Content of the journal is not copied in pieces, so there is no check between pieces.
    checkpoint(&busy.world);
    let (root, target) = (busy.root(), busy.folder("restored"));
    for stop_at in 0.. {
        let backup = busy.folder(&format!("stopped-{stop_at}"));
        let asked = AtomicUsize::new(0);
        let is_stopped = || asked.fetch_add(1, Ordering::SeqCst) == stop_at;
        let stopping = Copying {
            is_stopped: &is_stopped,
            ..copying()
        };
        match back_up(&root, &backup, stopping) {
            Err(CopyError::Stopped) => assert_unfinished(&backup, &target),
            done => {
                assert!(stop_at > 5 && done.is_ok(), "{done:?}");
                break;
            }
        }
        assert!(!root.join("journal/HOLD").exists());
    }
    for fail_at in 0.. {
        assert!(fail_at < OPERATIONS, "no backup was finished");
        let backup = busy.folder(&format!("failed-{fail_at}"));
        let done = Arc::new(AtomicUsize::new(0));
        let counter = done.clone();
        let disk =
            Disk::with_hook(
                move |_, _| match counter.fetch_add(1, Ordering::SeqCst) == fail_at {
                    true => Err(io::Error::other("it fails")),
                    false => Ok(()),
                },
            );
        match back_up_on(&disk, &root, &backup, copying()) {
            Err(_) if backup.join("FORMAT").exists() => assert!(backup.join("BACKUP").exists()),
            Err(_) => assert_unfinished(&backup, &target),
            Ok(copied) => {
                busy.assert_whole(&backup, copied.sequence).await;
                // Only the release of the hold may fail: the next checkpoint removes its file.
                if done.load(Ordering::SeqCst) <= fail_at {
                    break;
                }
            }
        }
    }
}

/// The writer deletes an object after the backup has read the journal and before it copies the object.
#[tokio::test]
async fn a_backup_notices_that_an_object_was_deleted_before_its_copy() {
    let folder = temporary_folder();
    let (root, backup) = (folder.path().join("state"), folder.path().join("backup"));
    let disk = Disk::with_hook(|action, path: &Path| match action {
        Action::Rename if path.ends_with("late.zip") => Err(io::ErrorKind::StorageFull.into()),
        _ => Ok(()),
    });
    let mut world = World::open_on(disk, &root, tiny()).await.unwrap();
    let object = staged(&world.engine.volume(), "whole");
    let waits = root.join("tmp").join(object.name().as_str());
    world.commit([adopt("late.zip", object)]).await.unwrap();
    let world = Mutex::new(Some(world));
    let disk = Disk::with_hook(move |_, path| {
        if path == waits
            && let Some(mut world) = world.lock().unwrap().take()
        {
            // A commit waits only for its disk.
            let mut context = Context::from_waker(Waker::noop());
            let gone = pin!(world.commit([delete("late.zip")]));
            assert!(matches!(gone.poll(&mut context), Poll::Ready(Ok(Seq(2)))));
            fs::remove_file(path).unwrap();
        }
        Ok(())
    });
    let copied = back_up_on(&disk, &root, &backup, copying()).unwrap();
    assert_eq!(copied.sequence, Seq(2));
    assert!(!backup.join("late.zip").exists());
}

#[tokio::test]
async fn a_backup_that_differs_from_its_manifest_is_refused() {
    let mut busy = Busy::new().await;
    busy.steps(9).await;
    let (root, backup) = (busy.root(), busy.folder("backup"));
    let copied = back_up(&root, &backup, copying()).unwrap();
    let (disk, paths) = (Disk::new(), Paths::new(&backup));
    let manifest = Manifest::read(&disk, &paths.manifest).unwrap().unwrap();
    assert_eq!(manifest.sequence, copied.sequence);
    assert_eq!(
        (manifest.files, manifest.bytes),
        (copied.files, copied.bytes)
    );
    let refused = || {
        let target = busy.folder("refused");
        match restore(&backup, &target, copying()) {
            Err(CopyError::NotWhole { what, .. }) => {
                drop(fs::remove_dir_all(target));
                what
            }
            other => panic!("{other:?}"),
        }
    };
    let twin = fs::read(backup.join("twin")).unwrap();
    fs::remove_file(backup.join("twin")).unwrap();
    assert!(refused().contains("it should have"));
    fs::write(backup.join("twin"), twin).unwrap();

    let ahead = Seq(manifest.sequence.0 + 7);
    let other = Manifest {
        sequence: ahead,
        ..manifest.clone()
    };
    other.write(&disk, &paths.manifest).unwrap();
    assert!(refused().contains("it says that the last record is"));
    let error = World::open(&backup).await.err();
    assert!(
        matches!(error, Some(OpenError::Damaged { .. })),
        "{error:?}"
    );
    let look = Look::at(&backup).unwrap();
    let [damage] = look.damage() else {
        panic!("{:?}", look.damage());
    };
    let first = manifest.sequence.next();
    assert_eq!(damage.part, Part::Journal { first, last: ahead });
    let accepted = Mending::begin(&backup).unwrap().accept_loss().unwrap();
    assert_eq!(accepted.unwrap().0.last, ahead);
    let world = World::open(&backup).await.unwrap();
    assert!(world.engine.is_restored() && world.last > ahead);
    drop(world);

    let nobody = Manifest {
        store: crate::control::StoreId([1; 16]),
        ..manifest
    };
    nobody.write(&disk, &paths.manifest).unwrap();
    assert!(refused().contains("it belongs to store"));
}

#[tokio::test]
async fn a_store_stays_marked_as_restored_until_it_is_settled() {
    let mut busy = Busy::new().await;
    busy.steps(3).await;
    let (backup, root) = (busy.folder("backup"), busy.folder("restored"));
    back_up(&busy.root(), &backup, copying()).unwrap();
    restore(&backup, &root, copying()).unwrap();
    for folder in [root, backup] {
        assert!(World::open(&folder).await.unwrap().engine.is_restored());
        let world = World::open(&folder).await.unwrap();
        assert!(world.engine.is_restored());
        world.engine.volume().forget_restored().unwrap();
        world.engine.volume().forget_restored().unwrap();
        drop(world);
        assert!(!World::open(&folder).await.unwrap().engine.is_restored());
        assert!(!names(&folder).contains(&"BACKUP".to_owned()));
    }
}
