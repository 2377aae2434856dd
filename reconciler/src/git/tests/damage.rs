//! Damaged mirrors and sources.

use std::fs;

use git2::Repository;

use super::{content, read, text};
use crate::git::testing::Fixture;
use crate::git::{Content, FetchError, ReadError, ReadLimits, Unreadable, limits};

#[test]
fn a_damaged_mirror_is_rebuilt() {
    let source = Fixture::bare();
    let mirror = source.mirror();
    let commit = source.push_text("1");
    let fetch = || mirror.fetch(&source.location(), None).unwrap();
    fetch();

    fs::write(source.mirror_dir().join("HEAD"), "nonsense").unwrap();
    fetch();
    assert_eq!(text(&read(&mirror, &commit), "workflows/a.yaml"), "1");

    fs::remove_dir_all(source.mirror_dir().join("objects")).unwrap();
    fetch();
    assert_eq!(text(&read(&mirror, &commit), "workflows/a.yaml"), "1");

    fs::remove_dir_all(source.mirror_dir()).unwrap();
    assert!(matches!(
        mirror.read(&commit, "workflows", &ReadLimits::default()),
        Err(ReadError::Damaged { .. })
    ));
    fetch();
    assert_eq!(text(&read(&mirror, &commit), "workflows/a.yaml"), "1");
    let beside = fs::read_dir(source.mirror_dir().parent().unwrap()).unwrap();
    assert_eq!(beside.count(), 2, "the source and its mirror");
}

#[test]
fn the_next_fetch_repairs_damage_found_by_a_read() {
    let source = Fixture::bare();
    let mirror = source.mirror();
    let commit = source.push_text("1");
    mirror.fetch(&source.location(), None).unwrap();

    // Only the blob is removed: its file is unreadable, not absent.
    let ours = Repository::open_bare(source.mirror_dir()).unwrap();
    let tree = ours.find_commit(commit.oid()).unwrap().tree().unwrap();
    let entry = tree.get_path("workflows/a.yaml".as_ref()).unwrap();
    explode(&source, &ours);
    let digits = entry.id().to_string();
    let loose = source
        .mirror_dir()
        .join("objects")
        .join(&digits[..2])
        .join(&digits[2..]);
    fs::remove_file(loose).unwrap();
    let snapshot = read(&mirror, &commit);
    let missing = Content::Unreadable(Unreadable::Missing);
    assert_eq!(content(&snapshot, "workflows/a.yaml"), &missing);

    mirror.fetch(&source.location(), None).unwrap();
    assert_eq!(text(&read(&mirror, &commit), "workflows/a.yaml"), "1");
}

/// Turns the packs of a mirror into loose objects.
fn explode(source: &Fixture, mirror: &Repository) {
    let objects = mirror.odb().unwrap();
    let mut all = Vec::new();
    objects
        .foreach(|id| {
            all.push(*id);
            true
        })
        .unwrap();
    let copies: Vec<_> = all
        .iter()
        .map(|id| {
            let object = objects.read(*id).unwrap();
            (object.kind(), object.data().to_vec())
        })
        .collect();
    fs::remove_dir_all(source.mirror_dir().join("objects/pack")).unwrap();
    fs::create_dir(source.mirror_dir().join("objects/pack")).unwrap();
    let bare = Repository::open_bare(source.mirror_dir()).unwrap();
    for (kind, bytes) in copies {
        bare.odb().unwrap().write(kind, &bytes).unwrap();
    }
}

#[test]
fn the_number_of_packs_is_bounded() {
    let source = Fixture::bare();
    let mirror = source.mirror();
    let packs = source.mirror_dir().join("objects/pack");
    for number in 0..limits::PACKS + 2 {
        source.push_text(&number.to_string());
        mirror.fetch(&source.location(), None).unwrap();
        let files = fs::read_dir(&packs).unwrap().count();
        assert!(files <= 2 * limits::PACKS, "{files}");
    }
}

#[test]
fn a_damaged_source_is_reported_and_leaves_the_mirror_unchanged() {
    let source = Fixture::bare();
    let mirror = source.mirror();
    let good = source.push_text("good");
    mirror.fetch(&source.location(), None).unwrap();
    source.push_text("lost");
    let lost = git2::Oid::hash_object(git2::ObjectType::Blob, b"lost").unwrap();
    let digits = lost.to_string();
    let loose = source
        .path()
        .join("objects")
        .join(&digits[..2])
        .join(&digits[2..]);
    fs::remove_file(loose).unwrap();
    let error = mirror.fetch(&source.location(), None).unwrap_err();
    assert!(matches!(error, FetchError::SourceDamaged { .. }), "{error}");
    assert_eq!(text(&read(&mirror, &good), "workflows/a.yaml"), "good");
}
