//! Reading the content of a commit.

use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

use model::plan::TipFolder;
use workflow::NotUtf8;

use super::{content, paths, read, text};
use crate::git::testing::{FILE, Fixture, LINK};
use crate::git::{Content, ReadError, ReadLimits, Unreadable, limits};

#[test]
fn everscan_yaml_is_never_a_workflow() {
    let source = Fixture::bare();
    let commit = source.push(&[
        ("everscan.yaml", FILE, b"settings"),
        ("a.yaml", FILE, b"a"),
        ("deep/b.yml", FILE, b"b"),
        ("deep/everscan.yaml", FILE, b"settings"),
    ]);
    let mirror = source.mirror();
    mirror.fetch(&source.location(), None).unwrap();
    for folder in ["", ".", "./"] {
        let snapshot = mirror
            .read(&commit, folder, &ReadLimits::default())
            .unwrap();
        assert_eq!(paths(&snapshot), ["a.yaml", "deep/b.yml"]);
    }
    let snapshot = mirror
        .read(&commit, "./deep/", &ReadLimits::default())
        .unwrap();
    assert_eq!(paths(&snapshot), ["deep/b.yml"]);
}

#[test]
fn submodules_and_links_to_folders_are_named() {
    let source = Fixture::bare();
    let parent = source.push_text("1");
    let parent = source.repository.find_commit(parent.oid()).unwrap();
    // A tree with a submodule, whose commit is not in this repository.
    let mut inside = source
        .repository
        .treebuilder(Some(&parent.tree().unwrap()))
        .unwrap();
    inside.insert("module", parent.id(), 0o160_000).unwrap();
    for (name, target) in [
        ("linked", "workflows"),
        ("out", "../elsewhere"),
        ("readme", "module"),
        ("top", "/etc"),
    ] {
        let target = source.repository.blob(target.as_bytes()).unwrap();
        inside.insert(name, target, LINK).unwrap();
    }
    let tree = inside.write().unwrap();
    let commit = source.commit_tree("refs/heads/main", &[parent.id()], tree);
    let mirror = source.mirror();
    mirror.fetch(&source.location(), None).unwrap();
    let top = mirror.read(&commit, "", &ReadLimits::default()).unwrap();
    let said: Vec<_> = top
        .warnings
        .iter()
        .map(|it| (&*it.file, &*it.message))
        .collect();
    assert_eq!(
        said,
        [
            (
                "linked",
                "it is a symbolic link to a folder, and links are not followed"
            ),
            ("module", "it is a submodule, and its files are not read"),
        ]
    );
    let module = mirror.read(&commit, "module", &ReadLimits::default());
    let module = module.unwrap().folder;
    assert!(
        matches!(&module, TipFolder::Unreadable(said) if said.starts_with("`module` is a submodule")),
        "{module:?}"
    );
}

#[test]
fn missing_empty_and_unreadable_folders_are_distinguished() {
    let source = Fixture::bare();
    let commit = source.push(&[
        ("a.yaml", FILE, b"a"),
        ("file", FILE, b"not a folder"),
        ("link", LINK, b"real"),
        ("real/readme", FILE, b"no workflow"),
    ]);
    let mirror = source.mirror();
    mirror.fetch(&source.location(), None).unwrap();
    let at = |folder: &str| mirror.read(&commit, folder, &ReadLimits::default());
    for folder in ["workflows", "real/deeper"] {
        assert_eq!(at(folder).unwrap().folder, TipFolder::Missing, "{folder}");
    }
    for (folder, what) in [
        ("file", "`file` is a file"),
        ("file/deeper", "`file` is a file"),
        ("link", "`link` is a symbolic link to `real`"),
        ("link/deeper", "`link` is a symbolic link to `real`"),
    ] {
        let found = at(folder).unwrap().folder;
        assert!(
            matches!(&found, TipFolder::Unreadable(said) if said.starts_with(what)),
            "{folder}: {found:?}"
        );
    }
    let empty = at("real").unwrap();
    assert_eq!(
        (empty.folder, empty.files.len(), empty.warnings.len()),
        (TipFolder::Read, 0, 0)
    );
    for folder in ["/etc", "../x", "a/../b", "a\0b"] {
        assert!(
            matches!(at(folder), Err(ReadError::Folder { .. })),
            "{folder}"
        );
    }
}

#[test]
fn unreadable_files_are_listed() {
    let source = Fixture::bare();
    let large = vec![b'x'; 2 * 1024 * 1024];
    let commit = source.push(&[
        ("workflows/binary.yaml", FILE, b"a\n\xff\xfe"),
        ("workflows/good.yaml", FILE, b"good"),
        ("workflows/large.yaml", FILE, &large),
        ("workflows/link.yaml", LINK, b"/etc/passwd"),
    ]);
    let mirror = source.mirror();
    mirror.fetch(&source.location(), None).unwrap();
    let snapshot = read(&mirror, &commit);
    for (path, expected) in [
        (
            "workflows/binary.yaml",
            Unreadable::NotUtf8(NotUtf8 { line: 2, column: 1 }),
        ),
        ("workflows/link.yaml", Unreadable::Symlink),
        (
            "workflows/large.yaml",
            Unreadable::TooLarge {
                size: large.len(),
                limit: 1024 * 1024,
            },
        ),
    ] {
        assert_eq!(content(&snapshot, path), &Content::Unreadable(expected));
    }
    assert_eq!(text(&snapshot, "workflows/good.yaml"), "good");
}

#[test]
fn the_size_of_a_blob_that_was_not_copied_is_known() {
    let source = Fixture::bare();
    let huge = vec![0; limits::COPIED_BLOB_BYTES + 1];
    let commit = source.push(&[("workflows/huge.yaml", FILE, &huge)]);
    let mirror = source.mirror();
    mirror.fetch(&source.location(), None).unwrap();
    let expected = Content::Unreadable(Unreadable::TooLarge {
        size: huge.len(),
        limit: 1024 * 1024,
    });
    let snapshot = read(&mirror, &commit);
    assert_eq!(content(&snapshot, "workflows/huge.yaml"), &expected);

    let next = source.push(&[
        ("workflows/huge.yaml", FILE, &huge),
        ("workflows/a.yaml", FILE, b"a"),
    ]);
    mirror.fetch(&source.location(), None).unwrap();
    let snapshot = read(&mirror, &next);
    assert_eq!(content(&snapshot, "workflows/huge.yaml"), &expected);
}

#[test]
fn names_that_are_not_utf8_stay_distinct_and_harmless() {
    let source = Fixture::bare();
    let blob = source.repository.blob(b"x").unwrap();
    let mut folder = source.repository.treebuilder(None).unwrap();
    for name in [&b"\xff.yaml"[..], b"\xfe.yaml", b"ok.yaml"] {
        folder.insert(os(name), blob, FILE).unwrap();
    }
    let mut top = source.repository.treebuilder(None).unwrap();
    top.insert("workflows", folder.write().unwrap(), 0o040_000)
        .unwrap();
    let commit = source.commit_tree("refs/heads/main", &[], top.write().unwrap());
    let mirror = source.mirror();
    mirror.fetch(&source.location(), None).unwrap();
    let snapshot = read(&mirror, &commit);
    assert_eq!(
        paths(&snapshot),
        [
            "workflows/\\xfe.yaml",
            "workflows/\\xff.yaml",
            "workflows/ok.yaml"
        ]
    );
    let unreadable = Content::Unreadable(Unreadable::Misnamed);
    assert_eq!(content(&snapshot, "workflows/\\xff.yaml"), &unreadable);
}

fn os(bytes: &[u8]) -> &Path {
    Path::new(OsStr::from_bytes(bytes))
}

#[test]
fn reading_is_bounded() {
    let source = Fixture::bare();
    let commit = source.push(&[
        ("workflows/a.yaml", FILE, b"aaaa"),
        ("workflows/b.yaml", FILE, b"bbbb"),
        ("workflows/1/2/3/c.txt", FILE, b"c"),
    ]);
    let mirror = source.mirror();
    mirror.fetch(&source.location(), None).unwrap();
    let default = ReadLimits::default;
    for bounds in [
        ReadLimits {
            files: 1,
            ..default()
        },
        ReadLimits {
            entries: 3,
            ..default()
        },
        ReadLimits {
            depth: 2,
            ..default()
        },
        ReadLimits {
            total_bytes: 7,
            ..default()
        },
    ] {
        let refused = mirror.read(&commit, "workflows", &bounds);
        assert!(
            matches!(refused, Err(ReadError::TooMuch { .. })),
            "{bounds:?}"
        );
    }
    let just_enough = ReadLimits {
        files: 2,
        entries: 6,
        depth: 3,
        total_bytes: 8,
        ..default()
    };
    assert!(mirror.read(&commit, "workflows", &just_enough).is_ok());
}
