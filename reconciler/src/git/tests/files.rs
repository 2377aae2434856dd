//! The files of a commit: the list, the tar, and the refusals.

use std::collections::BTreeSet;
use std::fs;
use std::io::Read as _;

use git2::{ObjectType, Oid, Repository};
use tar::EntryType;

use crate::git::limits::COPIED_BLOB_BYTES;
use crate::git::testing::{FILE, Fixture, LINK};
use crate::git::{CommitId, FileLimits, FilesError, Mirror};

const EXECUTABLE: i32 = 0o100_755;
const SUBMODULE: i32 = 0o160_000;

/// An entry of a tar: path, type, mode, and content or target.
type Sent = (String, EntryType, u32, String);

fn sent(mirror: &Mirror, commit: CommitId, paths: &[&str]) -> Result<Vec<Sent>, FilesError> {
    let paths: Vec<String> = paths.iter().map(ToString::to_string).collect();
    let files = mirror.files(commit, &paths, &FileLimits::default())?;
    let mut bytes = Vec::new();
    mirror.write_files(&files, &mut bytes).unwrap();
    let mut tar = tar::Archive::new(&bytes[..]);
    let entries = tar.entries().unwrap().map(|entry| {
        let mut entry = entry.unwrap();
        let path = String::from_utf8_lossy(&entry.path_bytes()).into_owned();
        let mut content = String::new();
        entry.read_to_string(&mut content).unwrap();
        let link = entry.link_name_bytes();
        let link = link.map(|link| String::from_utf8_lossy(&link).into_owned());
        let mode = entry.header().mode().unwrap();
        (
            path,
            entry.header().entry_type(),
            mode,
            link.unwrap_or(content),
        )
    });
    Ok(entries.collect())
}

fn paths(sent: &[Sent]) -> Vec<&str> {
    sent.iter().map(|(path, ..)| path.as_str()).collect()
}

fn message(result: Result<Vec<Sent>, FilesError>) -> String {
    result.unwrap_err().to_string()
}

#[test]
fn modes_links_and_submodules_are_as_in_git() {
    let source = Fixture::bare();
    let mirror = source.mirror();
    let long = format!("{}/{}", "d".repeat(200), "f".repeat(200));
    let target = "t/".repeat(150);
    let plain = source.push(&[
        ("a.txt", FILE, b"one"),
        ("bin/run", EXECUTABLE, b"#!/bin/sh\n"),
        ("bin/far", LINK, b"/etc/passwd"),
        ("bin/near", LINK, b"../a.txt/"),
        ("bin/long", LINK, target.as_bytes()),
        (&long, FILE, b"deep"),
    ]);
    mirror.fetch(&source.location(), None).unwrap();
    let all = sent(&mirror, plain, &[]).unwrap();
    let expected = [
        ("a.txt", EntryType::Regular, 0o644, "one"),
        ("bin/far", EntryType::Symlink, 0o777, "/etc/passwd"),
        ("bin/long", EntryType::Symlink, 0o777, &target),
        ("bin/near", EntryType::Symlink, 0o777, "../a.txt/"),
        ("bin/run", EntryType::Regular, 0o755, "#!/bin/sh\n"),
        (&long, EntryType::Regular, 0o644, "deep"),
    ]
    .map(|(path, kind, mode, content)| (path.to_owned(), kind, mode, content.to_owned()));
    assert_eq!(all, expected);

    let module = tree(&source, &[(SUBMODULE, b"module", plain.oid())]);
    let commit = source.commit_tree("refs/heads/main", &[], module);
    mirror.fetch(&source.location(), None).unwrap();
    let all = sent(&mirror, commit, &[]).unwrap();
    assert_eq!(all[0].1, EntryType::Directory);
    assert_eq!(paths(&all), ["module"]);
}

#[test]
fn paths_select_files_and_folders_and_each_must_exist() {
    let source = Fixture::bare();
    let mirror = source.mirror();
    let commit = source.push(&[
        ("a/b/c", FILE, b"1"),
        ("a/d", FILE, b"2"),
        ("a-b", FILE, b"3"),
        ("z", LINK, b"a"),
    ]);
    mirror.fetch(&source.location(), None).unwrap();
    let chosen = |chosen: &[&str]| sent(&mirror, commit, chosen);
    for (wanted, found) in [
        (vec!["a"], vec!["a/b/c", "a/d"]),
        (vec!["a/b"], vec!["a/b/c"]),
        (vec!["a/d", "a", "a-b"], vec!["a-b", "a/b/c", "a/d"]),
        (vec!["z"], vec!["z"]),
    ] {
        assert_eq!(paths(&chosen(&wanted).unwrap()), found, "{wanted:?}");
    }
    for missing in ["b", "a/x", "a/d/x", "z/b", "A"] {
        let error = message(chosen(&[missing]));
        assert_eq!(error, format!("commit {commit} has no `{missing}`"));
    }

    let commit = source.push(&[("workflows/a.yaml", FILE, b"1")]);
    mirror.fetch(&source.location(), None).unwrap();
    for (missing, end) in [
        ("scripts/say.sh", "; only `workflows/` is there"),
        ("workflows-old", "; only `workflows/` is there"),
        ("workflows/b.yaml", ""),
    ] {
        let error = message(sent(&mirror, commit, &[missing]));
        assert_eq!(error, format!("commit {commit} has no `{missing}`{end}"));
    }
}

/// A tree of exactly these entries. No Git tool would create it.
fn tree(source: &Fixture, entries: &[(i32, &[u8], Oid)]) -> Oid {
    let mut bytes = Vec::new();
    for (mode, name, object) in entries {
        bytes.extend(format!("{mode:o} ").bytes());
        bytes.extend(*name);
        bytes.push(0);
        bytes.extend(object.as_bytes());
    }
    let objects = source.repository.odb().unwrap();
    objects.write(ObjectType::Tree, &bytes).unwrap()
}

#[test]
fn a_hostile_tree_is_refused_by_name() {
    let source = Fixture::bare();
    let mirror = source.mirror();
    let blob = source.repository.blob(b"x").unwrap();
    let (empty, nul) = (
        source.repository.blob(b"").unwrap(),
        source.repository.blob(b"a\0b").unwrap(),
    );
    let folder = tree(&source, &[(FILE, b"b", blob)]);
    let long = vec![b'n'; 300];
    type Case<'a> = (&'a [(i32, &'a [u8], Oid)], &'a str);
    let cases: [Case<'_>; 10] = [
        (
            &[(LINK, b"a", blob), (0o040_000, b"a", folder)],
            "a is there twice",
        ),
        (
            &[(FILE, b"a", blob), (FILE, b"a", blob)],
            "a is there twice",
        ),
        (
            &[(0o040_000, b"..", folder)],
            ".. has a name that leads elsewhere",
        ),
        (
            &[(0o040_000, b".GIT", folder)],
            ".GIT has the name of a repository's own folder",
        ),
        (
            &[(FILE, b"a/b", blob)],
            "a/b has a name with a slash or a NUL",
        ),
        (&[(FILE, &long, blob)], "has a name that is too long"),
        (
            &[(0o020_000, b"dev", blob)],
            "dev has mode 20000, which Git does not use",
        ),
        (
            &[(0o040_000, b"top", tree(&source, &[(FILE, b"..", blob)]))],
            "top/.. has a name that leads",
        ),
        (
            &[(LINK, b"void", empty)],
            "void is a link with an empty target",
        ),
        (
            &[(LINK, b"cut", nul)],
            "cut is a link whose target has a NUL",
        ),
    ];
    let hidden = tree(&source, &[(0o040_000, b".git", folder)]);
    let commit = source.commit_tree("refs/heads/main", &[], hidden);
    mirror.fetch(&source.location(), None).unwrap();
    let error = message(sent(&mirror, commit, &[".git/b"]));
    assert!(
        error.contains(".git has the name of a repository's own folder"),
        "{error}"
    );
    for (entries, problem) in cases {
        let hostile = tree(&source, entries);
        let commit = source.commit_tree("refs/heads/main", &[], hostile);
        mirror.fetch(&source.location(), None).unwrap();
        let error = message(sent(&mirror, commit, &[]));
        assert!(error.contains(problem), "{error}, not {problem}");
        assert!(error.contains(&commit.to_string()), "{error}");
    }
}

#[test]
fn large_files_are_refused_by_name_and_other_files_are_sent() {
    let source = Fixture::bare();
    let mirror = source.mirror();
    let large = vec![0; COPIED_BLOB_BYTES + 1];
    let target = "x".repeat(5000);
    let commit = source.push(&[
        ("data/large", FILE, &large),
        ("link", LINK, target.as_bytes()),
        ("small", FILE, b"x"),
    ]);
    mirror.fetch(&source.location(), None).unwrap();
    let error = message(sent(&mirror, commit, &[]));
    assert!(error.contains("data/large has 16777217 bytes"), "{error}");
    let error = message(sent(&mirror, commit, &["link"]));
    assert!(error.contains("link has 5000 bytes"), "{error}");
    assert_eq!(sent(&mirror, commit, &["small"]).unwrap().len(), 1);

    let limits = |limits: FileLimits| {
        message(
            mirror
                .files(commit, &["small".to_owned()], &limits)
                .map(|_| Vec::new()),
        )
    };
    let none = FileLimits {
        entries: 0,
        ..FileLimits::default()
    };
    assert!(limits(none).contains("more than 0 files and folders"));
    let no_bytes = FileLimits {
        total_bytes: 0,
        ..FileLimits::default()
    };
    assert!(limits(no_bytes).contains("more than 0 bytes of files"));
}

#[test]
fn a_needed_commit_survives_a_rebuild_until_it_is_released() {
    let source = Fixture::bare();
    let mirror = source.mirror();
    let first = source.push_text("1");
    mirror.fetch(&source.location(), None).unwrap();
    mirror.keep(&BTreeSet::from([first])).unwrap();
    // The history is rewritten and the first commit removed.
    let second = source.commit("refs/heads/main", &[], &[("b", FILE, b"2")]);
    source.git(&["reflog", "expire", "--expire=now", "--all"]);
    source.git(&["gc", "--quiet", "--prune=now"]);
    mirror.fetch(&source.location(), None).unwrap();
    fs::write(source.mirror_dir().join("everscan-damaged"), "").unwrap();
    mirror.fetch(&source.location(), None).unwrap();
    assert!(!source.mirror_dir().join("everscan-damaged").exists());
    assert_eq!(sent(&mirror, first, &[]).unwrap().len(), 1);

    let references = || {
        let ours = Repository::open_bare(source.mirror_dir()).unwrap();
        let names = ours.references_glob("refs/everscan/commits/*").unwrap();
        names.count()
    };
    assert_eq!(references(), 1);
    mirror.keep(&BTreeSet::from([second])).unwrap();
    assert_eq!(references(), 1);
    fs::write(source.mirror_dir().join("everscan-damaged"), "").unwrap();
    mirror.fetch(&source.location(), None).unwrap();
    assert!(matches!(
        sent(&mirror, first, &[]),
        Err(FilesError::Missing { commit }) if commit == first
    ));
}

#[test]
fn a_single_commit_can_be_fetched() {
    let source = Fixture::bare();
    let mirror = source.mirror();
    let first = source.push_text("1");
    source.commit("refs/heads/main", &[], &[("b", FILE, b"2")]);
    mirror.fetch(&source.location(), None).unwrap();
    assert!(matches!(
        sent(&mirror, first, &[]),
        Err(FilesError::Missing { .. })
    ));
    mirror.fetch_commit(&source.location(), first).unwrap();
    assert_eq!(sent(&mirror, first, &[]).unwrap().len(), 1);
    let nowhere: CommitId = "1".repeat(40).parse().unwrap();
    mirror
        .fetch_commit(&source.location(), nowhere)
        .unwrap_err();
}

#[test]
fn a_fetch_reports_the_default_branch() {
    let source = Fixture::bare();
    source.push_text("1");
    let tip = source.mirror().fetch(&source.location(), None).unwrap();
    assert_eq!(tip.default_reference.as_deref(), Some("refs/heads/main"));
    let named = super::reference("main");
    let tip = source
        .mirror()
        .fetch(&source.location(), Some(&named))
        .unwrap();
    assert_eq!(tip.default_reference, None);
}
