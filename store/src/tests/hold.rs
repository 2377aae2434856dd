//! What holds do to the store, and how they end.

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use super::busy::Busy;
use super::world::{World, copy, replace_journal, segments, temporary_folder, tiny};
use crate::append_file::AppendFile;
use crate::batch::Seq;
use crate::control;
use crate::disk::{Action, Disk};
use crate::hold::Hold;
use crate::holds::Holds;
use crate::limits::HOLD_JOURNAL_BYTES;
use crate::replace::temporary;
use crate::{Key, OpenError, Watermark};

#[tokio::test]
async fn a_hold_outlives_a_restart_and_the_store_is_itself_meanwhile() {
    let mut busy = Busy::new().await;
    busy.steps(9).await;
    let hold = Hold::take(&busy.root()).unwrap();
    let (root, copied) = (busy.root(), busy.folder("copy"));
    copy(&root.join("job"), &copied.join("job"));
    busy.steps(20).await;
    let epoch = busy.world.epoch;
    busy.open_again().await;
    assert_eq!(busy.world.epoch, epoch.next());
    assert!(!busy.world.engine.is_restored());
    busy.steps(20).await;
    copy(&root, &copied);
    replace_journal(&root, &copied);
    let last = hold.last();
    assert!(hold.release().unwrap());
    busy.assert_whole(&copied, last).await;
    busy.assert_let_go();
}

#[tokio::test]
async fn a_segment_that_took_the_name_of_an_empty_one_stays_when_a_hold_ends() {
    let mut busy = Busy::new().await;
    busy.steps(3).await;
    let hold = Hold::take(&busy.root()).unwrap();
    // Nothing is committed in between, so each of these begins a segment with the same record.
    for _ in 0..3 {
        busy.open_again().await;
    }
    assert!(hold.release().unwrap());
    for _ in 0..20 {
        busy.step().await;
        assert_ne!(segments(&busy.root()), Vec::<PathBuf>::new());
    }
    busy.assert_let_go();
}

#[tokio::test]
async fn a_start_goes_on_beside_those_who_take_and_release_holds() {
    let folder = temporary_folder();
    let root = folder.path().join("state");
    drop(World::open(&root).await.unwrap());
    for name in ["HOLD.0+new", "HOLD.1"] {
        fs::write(root.join("journal").join(name), "").unwrap();
    }
    let met = Arc::new(AtomicUsize::new(0));
    let counter = met.clone();
    // Whose each file is renames or removes it just before the start does.
    let disk = Disk::with_hook(move |action, path: &Path| {
        let name = path.file_name().unwrap_or_default().to_string_lossy();
        if action == Action::RemoveFile && name.starts_with("HOLD.") {
            counter.fetch_add(1, Ordering::SeqCst);
            fs::remove_file(path)?;
        }
        Ok(())
    });
    World::open_on(disk, &root, tiny()).await.unwrap();
    assert_eq!(met.load(Ordering::SeqCst), 2);
}

#[tokio::test]
async fn without_a_hold_nothing_of_a_growing_file_goes_through_the_journal() {
    let mut busy = Busy::new().await;
    busy.steps(3).await;
    let hold = Hold::take(&busy.root()).unwrap();
    let open = || AppendFile::open(busy.root(), &Key::new("side.log").unwrap()).unwrap();
    let (mut held, mut released) = (open(), open());
    let piece = held.next_to_journal(1_000).unwrap().unwrap();
    assert_eq!((piece.at, piece.bytes.len() as u64), (0, held.len()));
    assert!(hold.release().unwrap());
    assert!(released.is_missed());
    assert_eq!(released.next_to_journal(1_000).unwrap(), None);
    assert!(!released.is_missed());
}

#[tokio::test]
async fn the_hold_of_another_store_is_none() {
    let mut busy = Busy::new().await;
    busy.steps(3).await;
    let other = Busy::new().await;
    let hold = Hold::take(&other.root()).unwrap();
    let name = format!("journal/HOLD.{}", hold.id());
    let root = busy.root();
    busy.world.engine.close().unwrap();
    fs::copy(other.root().join(&name), root.join(&name)).unwrap();
    let world = World::open(&root).await.unwrap();
    assert!(!world.engine.is_restored());
    assert!(!root.join(&name).exists());
}

/// Which record's segments may go, when the files are complete up to record 100.
fn let_go(root: &Path, kept_bytes: u64, watermark: Watermark) -> Seq {
    let disk = Disk::new();
    let store = control::read_format(&disk, &root.join("FORMAT")).unwrap();
    let holds = Holds::new(&disk, root);
    holds
        .let_go(store.unwrap(), Seq(100), kept_bytes, watermark)
        .unwrap()
}

#[tokio::test]
async fn a_hold_ends_with_its_time_with_too_much_journal_and_on_a_full_disk() {
    let roomy = Watermark::NONE;
    let full = Watermark {
        percent: 200,
        bytes: u64::MAX,
        files: 0,
    };
    let mut busy = Busy::new().await;
    busy.steps(2).await;
    let root = busy.root();
    busy.world.engine.close().unwrap();
    let take = || Hold::take(&root).unwrap();
    assert_eq!(let_go(&root, u64::MAX, full), Seq(100), "there is no hold");

    let hold = take();
    let kept = let_go(&root, HOLD_JOURNAL_BYTES, roomy);
    assert!(kept < Seq(100) && hold.lasts().unwrap());
    for (kept_bytes, watermark) in [(HOLD_JOURNAL_BYTES + 1, roomy), (0, full)] {
        let hold = take();
        assert_eq!(let_go(&root, kept_bytes, watermark), Seq(100));
        assert!(!hold.lasts().unwrap());
        assert!(!hold.release().unwrap());
    }

    let (old, young) = (take(), take());
    let path = root.join("journal").join(format!("HOLD.{}", old.id()));
    let mut file: serde_json::Value = serde_json::from_slice(&fs::read(&path).unwrap()).unwrap();
    file["expires"] = 1.into();
    fs::write(&path, file.to_string()).unwrap();
    assert_eq!(let_go(&root, 0, roomy), kept);
    assert!(!old.lasts().unwrap() && young.lasts().unwrap());
}

#[tokio::test]
async fn what_is_no_store_cannot_be_held() {
    let folder = temporary_folder();
    assert!(matches!(
        Hold::take(folder.path()),
        Err(OpenError::NotAState { .. })
    ));
    assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 0);
    assert!(!Hold::of(folder.path(), "../../x").release().unwrap());
}

#[tokio::test]
async fn a_hold_is_taken_though_a_start_sweeps_its_file_before_it_has_its_name() {
    let folder = temporary_folder();
    let world = World::open(folder.path()).await.unwrap();
    let (swept, named) = (Arc::new(AtomicUsize::new(0)), AtomicUsize::new(0));
    let sweeps = swept.clone();
    let disk = Disk::with_hook(move |action, path: &Path| {
        let is_named = action == Action::Rename && path.to_string_lossy().contains("HOLD.");
        // The first name, and the one with what the hold promises.
        if is_named && [0, 2].contains(&named.fetch_add(1, Ordering::SeqCst)) {
            sweeps.fetch_add(1, Ordering::SeqCst);
            fs::remove_file(temporary(path))?;
        }
        Ok(())
    });
    let hold = Hold::take_on(disk, folder.path()).unwrap();
    assert_eq!(swept.load(Ordering::SeqCst), 2);
    assert!(hold.lasts().unwrap());
    assert_eq!(hold.last(), world.last);
    assert!(hold.release().unwrap());
}
