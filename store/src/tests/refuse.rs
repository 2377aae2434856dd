//! Folders that must not be opened, and those that look odd and may.

use std::fs;
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::path::Path;

use super::world::{World, copy, files, put, segments, temporary_folder};
use crate::OpenError;

async fn refusal(root: &Path) -> OpenError {
    match World::open(root).await {
        Ok(_) => panic!("{} was opened", root.display()),
        Err(error) => error,
    }
}

fn names(folder: &Path) -> Vec<String> {
    let entries = fs::read_dir(folder)
        .unwrap()
        .map(|entry| entry.unwrap().file_name().into_string().unwrap());
    let mut names: Vec<_> = entries.collect();
    names.sort();
    names
}

#[tokio::test]
async fn a_missing_or_empty_folder_becomes_a_store_of_its_owner_only() {
    let folder = temporary_folder();
    let root = folder.path().join("deep/state");
    let mut world = World::open(&root).await.unwrap();
    world.commit([put("a/b", "x")]).await.unwrap();
    drop(world);
    assert_eq!(
        names(&root),
        [
            "FORMAT",
            "LOCK",
            "a",
            "index",
            "journal",
            "quarantine",
            "tmp"
        ]
    );
    for name in ["", "a", "index", "journal", "quarantine", "tmp"] {
        assert_eq!(
            fs::metadata(root.join(name)).unwrap().permissions().mode() & 0o777,
            0o700,
            "{name}"
        );
    }
    for name in ["FORMAT", "LOCK", "a/b", "journal/CHECKPOINT"] {
        assert_eq!(
            fs::metadata(root.join(name)).unwrap().permissions().mode() & 0o777,
            0o600,
            "{name}"
        );
    }
    assert!(World::open(temporary_folder().path()).await.is_ok());
}

#[tokio::test]
async fn a_folder_of_somebody_else_is_left_alone() {
    let folder = temporary_folder();
    fs::write(folder.path().join("thesis.tex"), "years").unwrap();
    let error = refusal(folder.path()).await;
    assert!(matches!(error, OpenError::NotAState { .. }), "{error}");
    assert_eq!(names(folder.path()), ["thesis.tex"]);
}

#[tokio::test]
async fn what_an_interrupted_first_start_leaves_is_taken_up() {
    let folder = temporary_folder();
    for name in ["journal", "tmp", "lost+found"] {
        fs::create_dir(folder.path().join(name)).unwrap();
    }
    fs::write(folder.path().join("LOCK"), "").unwrap();
    fs::write(folder.path().join("FORMAT+new"), "{").unwrap();
    assert!(World::open(folder.path()).await.is_ok());
}

#[tokio::test]
async fn a_newer_format_is_refused_and_not_touched() {
    let folder = temporary_folder();
    let content = r#"{"format":2,"something":"new"}"#;
    fs::write(folder.path().join("FORMAT"), content).unwrap();
    let before = fs::metadata(folder.path()).unwrap();
    let error = refusal(folder.path()).await;
    assert!(
        matches!(
            error,
            OpenError::NewerFormat {
                found: 2,
                supported: 1,
                ..
            }
        ),
        "{error}"
    );
    assert_eq!(names(folder.path()), ["FORMAT"]);
    let after = fs::metadata(folder.path()).unwrap();
    assert_eq!(
        (before.mtime(), before.mtime_nsec()),
        (after.mtime(), after.mtime_nsec())
    );
}

#[tokio::test]
async fn a_store_in_use_names_its_owner() {
    let folder = temporary_folder();
    let mut first = World::open(folder.path()).await.unwrap();
    let error = refusal(folder.path()).await;
    assert!(
        error
            .to_string()
            .contains(&format!("process {}", std::process::id())),
        "{error}"
    );
    assert!(matches!(error, OpenError::Locked { .. }));
    first.commit([put("a", "x")]).await.unwrap();
    drop(first);
    assert!(World::open(folder.path()).await.is_ok());
}

#[tokio::test]
async fn a_format_that_is_lost_or_unreadable_is_damage() {
    let folder = temporary_folder();
    let root = folder.path();
    let mut world = World::open(root).await.unwrap();
    world.commit([put("a", "x")]).await.unwrap();
    let copied = temporary_folder();
    copy(root, copied.path());
    // Only the files of the engine, as if nothing had reached the tree.
    for name in files(copied.path()).keys() {
        fs::remove_file(copied.path().join(name)).unwrap();
    }
    for change in ["", "{}", "no json"] {
        fs::write(copied.path().join("FORMAT"), change).unwrap();
        let error = refusal(copied.path()).await;
        assert!(
            matches!(error, OpenError::Damaged { .. }),
            "{change}: {error}"
        );
    }
    fs::remove_file(copied.path().join("FORMAT")).unwrap();
    let error = refusal(copied.path()).await;
    assert!(matches!(error, OpenError::Damaged { .. }), "{error}");
    assert_eq!(files(copied.path()).len(), 0);
}

#[tokio::test]
async fn a_segment_of_another_store_is_damage() {
    let (one, other) = (temporary_folder(), temporary_folder());
    let mut first = World::open(one.path()).await.unwrap();
    first.commit([put("a", "x")]).await.unwrap();
    drop(World::open(other.path()).await.unwrap());
    for segment in segments(one.path()) {
        let name = segment.file_name().unwrap();
        fs::copy(&segment, other.path().join("journal").join(name)).unwrap();
    }
    let error = refusal(other.path()).await;
    assert!(matches!(error, OpenError::Damaged { .. }), "{error}");
}
