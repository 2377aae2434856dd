//! Repairs of stores.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use tempfile::TempDir;

use super::crash::with_journal;
use super::world::{World, close, expected, files, temporary_folder};
use crate::file::OpenError;
use crate::mend::{Loss, Mending, Moved};
use crate::{Epoch, Seq};

/// A store that was stopped after one round.
async fn stopped() -> (TempDir, PathBuf) {
    let folder = temporary_folder();
    let root = folder.path().join("state");
    let mut world = World::open(&root).await.unwrap();
    world.round(0).await.unwrap();
    close(world.engine).unwrap();
    (folder, root)
}

fn moved(from: &str, to: &str) -> Moved {
    let (from, to) = (from.to_owned(), to.to_owned());
    Moved { from, to }
}

/// The content of the file at a path below the root.
fn content(root: &Path, path: &str) -> String {
    fs::read_to_string(root.join(path)).unwrap()
}

#[tokio::test]
async fn a_store_in_use_or_a_folder_without_a_store_is_not_repaired() {
    let (folder, root) = stopped().await;
    let world = World::open(&root).await.unwrap();
    let error = Mending::begin(&root).err().unwrap();
    assert!(matches!(error, OpenError::Locked { .. }), "{error}");
    drop(world);
    let mending = Mending::begin(&root).unwrap();
    let error = World::open(&root).await.err().unwrap();
    assert!(matches!(error, OpenError::Locked { .. }), "{error}");
    drop(mending);
    let error = Mending::begin(folder.path()).err().unwrap();
    assert!(matches!(error, OpenError::NotAState { .. }), "{error}");
}

#[tokio::test]
async fn files_in_quarantine_keep_their_path_and_replace_no_other_file() {
    let (_folder, root) = stopped().await;
    let mending = Mending::begin(&root).unwrap();
    let first = mending.set_aside("jobs/0.json").unwrap();
    assert_eq!(first, Some(moved("jobs/0.json", "quarantine/jobs/0.json")));
    assert_eq!(mending.set_aside("jobs/0.json").unwrap(), None);
    fs::write(root.join("jobs/0.json"), "another").unwrap();
    let second = mending.set_aside("jobs/0.json").unwrap().unwrap();
    assert_ne!(second.to, "quarantine/jobs/0.json");
    assert_eq!(content(&root, &second.to), "another");
    assert_eq!(
        content(&root, "quarantine/jobs/0.json"),
        expected(1)["jobs/0.json"]
    );
}

#[tokio::test]
async fn other_users_lose_their_rights_and_the_owner_keeps_them() {
    let (_folder, root) = stopped().await;
    let mending = Mending::begin(&root).unwrap();
    let mode = |path: &str| fs::metadata(root.join(path)).unwrap().permissions().mode() & 0o777;
    for (path, before, after) in [("jobs", 0o755, 0o700), ("twin", 0o644, 0o600)] {
        fs::set_permissions(root.join(path), fs::Permissions::from_mode(before)).unwrap();
        assert_eq!(mending.close_to_others(path).unwrap(), Some(before));
        assert_eq!(mode(path), after);
    }
    assert_eq!(mending.close_to_others("nothing").unwrap(), None);
}

#[tokio::test]
async fn a_checkpoint_is_rebuilt_from_the_index() {
    let (_folder, root) = stopped().await;
    let checkpoint = root.join("journal/CHECKPOINT");
    let before = fs::read_to_string(&checkpoint).unwrap();
    let mending = Mending::begin(&root).unwrap();
    assert_eq!(mending.mend_checkpoint().unwrap(), []);
    fs::write(&checkpoint, "{").unwrap();
    let aside = "quarantine/journal/CHECKPOINT";
    let done = mending.mend_checkpoint().unwrap();
    assert_eq!(done, [moved("journal/CHECKPOINT", aside)]);
    assert_eq!(content(&root, aside), "{");
    assert_eq!(fs::read_to_string(&checkpoint).unwrap(), before);
    drop(mending);
    assert_eq!(World::open(&root).await.unwrap().last, Seq(1));
}

#[tokio::test]
async fn a_missing_journal_and_checkpoint_are_a_loss_to_accept() {
    let (_folder, root) = stopped().await;
    fs::remove_dir_all(root.join("journal")).unwrap();
    let error = World::open(&root).await.err().unwrap();
    assert!(matches!(error, OpenError::Damaged { .. }), "{error}");
    let mending = Mending::begin(&root).unwrap();
    assert_eq!(
        mending.mend_checkpoint().unwrap(),
        [],
        "nothing to rebuild the checkpoint from"
    );
    let (loss, _) = mending.accept_loss().unwrap().unwrap();
    drop(mending);
    let mut world = World::open(&root).await.unwrap();
    assert_eq!(world.epoch, Epoch(2), "the index has the epoch");
    assert_eq!(files(&root), expected(1));
    assert!(world.round(1).await.unwrap() > loss.last);
}

#[tokio::test]
async fn a_missing_checkpoint_without_an_index_is_rebuilt_from_the_journal() {
    let folder = temporary_folder();
    let root = folder.path().join("state");
    with_journal(&root, 4).await;
    let mending = Mending::begin(&root).unwrap();
    mending.set_index_aside().unwrap();
    fs::remove_file(root.join("journal/CHECKPOINT")).unwrap();
    mending.mend_checkpoint().unwrap();
    drop(mending);
    assert_eq!(World::open(&root).await.unwrap().last, Seq(4));
    assert_eq!(files(&root), expected(4));
}

#[tokio::test]
async fn a_repaired_checkpoint_still_requires_the_newest_segment() {
    let folder = temporary_folder();
    let root = folder.path().join("state");
    let (newest, _) = with_journal(&root, 4).await;
    fs::remove_file(root.join("journal/CHECKPOINT")).unwrap();
    let mending = Mending::begin(&root).unwrap();
    mending.mend_checkpoint().unwrap();
    drop(mending);
    fs::remove_file(newest).unwrap();
    let error = World::open(&root).await.err().unwrap();
    assert!(matches!(error, OpenError::Damaged { .. }), "{error}");
}

/// Files that are not records may be larger than a read allows.
#[tokio::test]
async fn a_loss_is_accepted_if_a_file_is_larger_than_any_record() {
    let folder = temporary_folder();
    let root = folder.path().join("state");
    let (segment, starts) = with_journal(&root, 4).await;
    let mut bytes = fs::read(&segment).unwrap();
    bytes[starts[2] + 50] ^= 4;
    fs::write(&segment, &bytes).unwrap();
    let large = fs::File::create(root.join("twin")).unwrap();
    large.set_len(1 << 30).unwrap();
    let (loss, _) = Mending::begin(&root)
        .unwrap()
        .accept_loss()
        .unwrap()
        .unwrap();
    let (first, last) = (Seq(3), Seq(4));
    assert_eq!(loss, Loss { first, last });
    assert_eq!(files(&root), expected(2));
}
