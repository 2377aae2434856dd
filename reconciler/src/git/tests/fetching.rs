//! Fetching from local sources, and the reasons for refusing them.

use std::fs;
use std::os::unix::fs::PermissionsExt;

use git2::Repository;
use model::plan::TipFolder;
use tempfile::TempDir;

use super::{paths, read, reference, text};
use crate::git::testing::{Entry, FILE, Fixture, git, has_reftable};
use crate::git::{Access, Calls, FetchError, Location, Mirror, Relation, limits};

#[test]
fn a_push_is_fetched_and_read() {
    let source = Fixture::bare();
    let commit = source.push(&[
        ("workflows/b.yml", FILE, b"b"),
        ("workflows/a.yaml", FILE, b"a"),
        ("workflows/deep/er/c.yaml", FILE, b"c"),
        ("workflows/notes.txt", FILE, b"no"),
        ("elsewhere.yaml", FILE, b"no"),
    ]);
    let mirror = source.mirror();
    let tip = mirror.fetch(&source.location(), None).unwrap();
    assert_eq!(tip.commit, commit);
    assert_eq!(tip.summary, "Change it");
    assert_eq!(tip.author, "Ada <ada@example.org>");

    let snapshot = read(&mirror, &commit);
    assert_eq!(snapshot.folder, TipFolder::Read);
    assert_eq!(
        paths(&snapshot),
        [
            "workflows/a.yaml",
            "workflows/b.yml",
            "workflows/deep/er/c.yaml"
        ]
    );
    assert_eq!(text(&snapshot, "workflows/deep/er/c.yaml"), "c");

    let again = mirror.fetch(&source.location(), None).unwrap();
    assert_eq!(again, tip);
    let mode = fs::metadata(source.mirror_dir())
        .unwrap()
        .permissions()
        .mode();
    assert_eq!(mode & 0o777, 0o700);
}

#[test]
fn a_second_push_transfers_only_changed_objects() {
    let source = Fixture::bare();
    let entries = |last: &'static [u8]| -> Vec<Entry<'static>> {
        vec![
            ("workflows/same.yaml", FILE, b"same"),
            ("workflows/a.yaml", FILE, last),
        ]
    };
    let mirror = source.mirror();
    source.push(&entries(b"one"));
    mirror.fetch(&source.location(), None).unwrap();
    let before = packed_objects(&source);
    let commit = source.push(&entries(b"two"));
    mirror.fetch(&source.location(), None).unwrap();

    // A commit, two trees and one blob.
    assert_eq!(packed_objects(&source) - before, 4);
    assert_eq!(text(&read(&mirror, &commit), "workflows/a.yaml"), "two");
    assert_eq!(text(&read(&mirror, &commit), "workflows/same.yaml"), "same");
}

fn packed_objects(source: &Fixture) -> usize {
    let mirror = Repository::open_bare(source.mirror_dir()).unwrap();
    let mut count = 0;
    mirror
        .odb()
        .unwrap()
        .foreach(|_| {
            count += 1;
            true
        })
        .unwrap();
    count
}

#[test]
fn references_are_found_by_every_form_of_their_name() {
    let source = Fixture::bare();
    let first = source.push_text("1");
    source.git(&["tag", "-a", "-m", "release", "v1"]);
    source.git(&["tag", "light"]);
    source.git(&["tag", "main-not"]);
    source.git(&["branch", "team/feature"]);
    let second = source.push_text("2");
    source.git(&["tag", "main"]);
    source.git(&["update-ref", "refs/custom/x", &first.to_string()]);

    let mirror = source.mirror();
    let main = source.push_text("3");
    for (name, commit) in [
        ("v1", first),
        ("light", first),
        ("team/feature", first),
        ("refs/custom/x", first),
        ("refs/tags/main", second),
        ("main", main),
        ("HEAD", main),
        ("refs/heads/main", main),
        (&first.to_string(), first),
    ] {
        let tip = mirror
            .fetch(&source.location(), Some(&reference(name)))
            .unwrap();
        assert_eq!(tip.commit, commit, "{name}");
    }
    assert_eq!(mirror.fetch(&source.location(), None).unwrap().commit, main);
}

#[test]
fn an_unknown_reference_is_reported_with_similar_branches() {
    let source = Fixture::bare();
    source.push_text("1");
    source.git(&["branch", "develop"]);
    source.git(&["update-ref", "refs/tags/of-a-tree", "HEAD^{tree}"]);
    let mirror = source.mirror();
    let fetch = |name: &str| {
        mirror
            .fetch(&source.location(), Some(&reference(name)))
            .unwrap_err()
    };
    let error = fetch("Main");
    assert!(matches!(error, FetchError::ReferenceNotFound { .. }));
    assert_eq!(
        error.hint(&Access::default()).unwrap(),
        "there are: main, develop"
    );
    assert!(matches!(
        fetch("0123456789abcdef0123456789abcdef01234567"),
        FetchError::ReferenceNotFound { .. }
    ));
    assert!(matches!(fetch("of-a-tree"), FetchError::NotACommit { .. }));
}

#[test]
fn a_deleted_branch_leaves_the_mirror_readable() {
    let source = Fixture::bare();
    let commit = source.push_text("1");
    source.git(&["branch", "keep"]);
    let mirror = source.mirror();
    mirror.fetch(&source.location(), None).unwrap();
    source.git(&["update-ref", "-d", "refs/heads/main"]);
    let error = mirror.fetch(&source.location(), None).unwrap_err();
    let FetchError::ReferenceNotFound {
        reference, near, ..
    } = error
    else {
        panic!("{error}");
    };
    assert_eq!(
        (&*reference, near),
        ("refs/heads/main", vec!["keep".to_owned()])
    );
    assert_eq!(text(&read(&mirror, &commit), "workflows/a.yaml"), "1");
}

#[test]
fn packed_references_are_followed() {
    let source = Fixture::bare();
    let mirror = source.mirror();
    let commit = source.push_text("1");
    source.git(&["pack-refs", "--all"]);
    source.git(&["gc", "--quiet"]);
    assert_eq!(
        mirror.fetch(&source.location(), None).unwrap().commit,
        commit
    );
}

#[test]
fn only_the_commits_of_a_work_tree_are_read() {
    let source = Fixture::with_work_tree();
    let workflows = source.path().join("workflows");
    fs::create_dir(&workflows).unwrap();
    fs::write(workflows.join("a.yaml"), "committed").unwrap();
    source.git(&["add", "."]);
    source.git(&["commit", "-q", "-m", "add it"]);
    fs::write(workflows.join("a.yaml"), "edited").unwrap();
    let mirror = source.mirror();
    let tip = mirror.fetch(&source.location(), None).unwrap();
    assert_eq!(tip.summary, "add it");
    assert_eq!(
        text(&read(&mirror, &tip.commit), "workflows/a.yaml"),
        "committed"
    );

    source.git(&["worktree", "add", "-q", "-b", "other", "../linked"]);
    let linked = source.path().with_file_name("linked");
    git(&linked, &["commit", "-q", "--allow-empty", "-m", "beside"]);
    let tip = mirror.fetch(&Location::Local(linked), None).unwrap();
    assert_eq!(tip.summary, "beside");
}

#[test]
fn a_shallow_clone_can_be_a_source() {
    let source = Fixture::bare();
    for text in ["1", "2", "3"] {
        source.push_text(text);
    }
    let path = source.path();
    let shallow = path.with_file_name("shallow");
    let url = format!("file://{}", path.display());
    let into = shallow.display().to_string();
    git(&path, &["clone", "-q", "--bare", "--depth=2", &url, &into]);
    let location = Location::Local(shallow.clone());
    let mirror = source.mirror();
    let old = mirror.fetch(&location, None).unwrap().commit;

    let new = source.push_text("4");
    git(&shallow, &["fetch", "-q", &url, "main:main"]);
    assert_eq!(mirror.fetch(&location, None).unwrap().commit, new);
    let descendant = Relation::Descendant {
        skipped: vec![],
        more: false,
    };
    assert_eq!(mirror.relation(&old, &new).unwrap(), descendant);
    assert_eq!(text(&read(&mirror, &new), "workflows/a.yaml"), "4");
}

#[test]
fn an_empty_repository_waits_for_its_first_push() {
    for source in [Fixture::bare(), Fixture::with_work_tree()] {
        let mirror = source.mirror();
        for wanted in [None, Some(reference("main"))] {
            let error = mirror
                .fetch(&source.location(), wanted.as_ref())
                .unwrap_err();
            assert!(matches!(error, FetchError::Empty { .. }), "{error}");
        }
        assert!(!source.mirror_dir().exists());
        let commit = source.push_text("1");
        assert_eq!(
            mirror.fetch(&source.location(), None).unwrap().commit,
            commit
        );
    }
}

#[test]
fn other_folders_and_files_are_distinguished_from_repositories() {
    let source = Fixture::bare();
    let mirror = source.mirror();
    let fetch = |name: &str| {
        let path = source.path().with_file_name(name);
        mirror.fetch(&Location::Local(path), None).unwrap_err()
    };
    let missing = fetch("missing");
    assert!(matches!(missing, FetchError::RepositoryMissing { .. }));
    fs::create_dir(source.path().with_file_name("plain")).unwrap();
    let plain = fetch("plain");
    assert!(matches!(plain, FetchError::NotARepository { .. }));
    assert!(plain.hint(&Access::default()).unwrap().contains("git init"));
    fs::write(source.path().with_file_name("file"), "").unwrap();
    assert!(matches!(fetch("file"), FetchError::NotARepository { .. }));
}

#[test]
fn a_repository_of_another_user_is_refused_with_a_hint() {
    let source = Fixture::bare();
    source.push_text("1");
    let another_user = Some(54_321);
    if std::os::unix::fs::chown(source.path(), another_user, None).is_err() {
        // Only a privileged user can change the owner of a folder; other users skip this test.
        return;
    }
    let error = source.mirror().fetch(&source.location(), None).unwrap_err();
    assert!(matches!(error, FetchError::ForeignOwner { .. }), "{error}");
    assert!(
        error
            .hint(&Access::default())
            .unwrap()
            .contains("safe.directory")
    );
}

#[test]
fn a_local_transfer_is_bounded() {
    let source = Fixture::bare();
    let noise: Vec<u8> = (0..100_000_u32)
        .flat_map(|n| n.wrapping_mul(2_654_435_761).to_le_bytes())
        .collect();
    source.push(&[("workflows/a.yaml", FILE, &noise)]);
    let bounds = limits::FetchLimits {
        bytes: 1000,
        ..limits::FetchLimits::default()
    };
    let error = source
        .mirror()
        .with_limits(bounds)
        .fetch(&source.location(), None)
        .unwrap_err();
    assert!(matches!(error, FetchError::TooLarge { .. }), "{error}");
}

/// A repository of this format, made by the `git` program, with one commit.
fn made(form: &str) -> (TempDir, Location) {
    let dir = TempDir::new().unwrap();
    let path = dir.path().join("source");
    let init = ["init", "-q", "-b", "main", form, "source"];
    git(dir.path(), &init);
    fs::create_dir(path.join("workflows")).unwrap();
    fs::write(path.join("workflows/a.yaml"), "1").unwrap();
    git(&path, &["add", "."]);
    git(&path, &["commit", "-q", "-m", "first"]);
    (dir, Location::Local(path))
}

#[test]
fn a_repository_with_sha_256_is_refused_by_name() {
    let (dir, location) = made("--object-format=sha256");
    let mirror = Mirror::new(dir.path().join("mirror.git"), Calls::default());
    let error = mirror.fetch(&location, None).unwrap_err();
    assert!(matches!(error, FetchError::Sha256 { .. }), "{error:?}");
    assert!(error.to_string().contains("SHA-256"), "{error}");
}

#[test]
fn the_git_program_reads_reftable_and_an_old_version_is_refused() {
    if !has_reftable() {
        return;
    }
    let (dir, location) = made("--ref-format=reftable");
    let Location::Local(path) = &location else {
        panic!("it is local");
    };
    let mirror = Mirror::new(dir.path().join("mirror.git"), Calls::default());
    let tip = mirror.fetch(&location, None).unwrap();
    assert_eq!(tip.default_reference.as_deref(), Some("refs/heads/main"));
    assert_eq!(text(&read(&mirror, &tip.commit), "workflows/a.yaml"), "1");
    fs::write(path.join("workflows/a.yaml"), "2").unwrap();
    git(path, &["commit", "-q", "-a", "-m", "second"]);
    let second = mirror.fetch(&location, None).unwrap();
    assert_eq!(
        text(&read(&mirror, &second.commit), "workflows/a.yaml"),
        "2"
    );
    let by_commit = reference(&tip.commit.to_string());
    let first = mirror.fetch(&location, Some(&by_commit)).unwrap();
    assert_eq!(first.commit, tip.commit);
    let absent = mirror.fetch(&location, Some(&reference("absent")));
    assert!(
        matches!(absent, Err(FetchError::ReferenceNotFound { .. })),
        "{absent:?}"
    );

    let old = dir.path().join("old-git");
    fs::write(&old, "#!/bin/sh\necho git version 2.39.5\n").unwrap();
    fs::set_permissions(&old, fs::Permissions::from_mode(0o755)).unwrap();
    for (program, found) in [
        (old.into_os_string(), "git version 2.39.5"),
        ("no-such-git".into(), "it is not installed"),
    ] {
        let mirror = mirror.clone().with_program(program);
        let error = mirror.fetch(&location, None).unwrap_err();
        let said = error.to_string();
        assert!(matches!(error, FetchError::Reftable { .. }), "{error:?}");
        assert!(said.contains("2.45") && said.ends_with(found), "{said}");
    }
}

#[test]
fn an_error_names_a_partial_clone() {
    let source = Fixture::with_work_tree();
    source.push_text("1");
    source.push_text("2");
    source.git(&["config", "uploadpack.allowFilter", "true"]);
    let clone = source.path().with_file_name("clone");
    let from = format!("file://{}", source.path().display());
    let to = clone.display().to_string();
    git(
        &source.path(),
        &["clone", "-q", "--filter=blob:none", &from, &to],
    );
    let error = source.mirror().fetch(&Location::Local(clone), None);
    assert!(
        matches!(error, Err(FetchError::PartialClone { .. })),
        "{error:?}"
    );
}
