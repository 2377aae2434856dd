use std::os::unix::fs::MetadataExt as _;

use tar::{Builder, Header};
use tempfile::TempDir;

use super::*;

/// An entry of a tar: its type, its exact path, and its content or target.
type Given<'a> = (EntryType, &'a str, &'a str);

const FILE: EntryType = EntryType::Regular;
const LINK: EntryType = EntryType::Symlink;

/// A tar of these entries, even if they are invalid.
fn tar_of(entries: &[Given<'_>]) -> File {
    let mut builder = Builder::new(tempfile::tempfile().unwrap());
    for (kind, path, content) in entries {
        let mut header = Header::new_gnu();
        header.as_mut_bytes()[..path.len()].copy_from_slice(path.as_bytes());
        header.set_entry_type(*kind);
        header.set_mode(if path.ends_with(".sh") { 0o755 } else { 0o600 });
        let bytes = match kind {
            EntryType::Regular => content.as_bytes(),
            _ => {
                header.set_link_name_literal(content).unwrap();
                b""
            }
        };
        header.set_size(bytes.len() as u64);
        header.set_cksum();
        builder.append(&header, bytes).unwrap();
    }
    builder.into_inner().unwrap()
}

fn written(folder: &TempDir, entries: &[Given<'_>]) -> Result<Written, SourceError> {
    let tar = tar_of(entries);
    let digest = digest_of(&tar);
    write(tar, digest, &folder.path().join(FOLDER), || false)
}

/// The digest of a tar. Reads it from its start.
fn digest_of(mut tar: &File) -> Digest {
    let mut content = Vec::new();
    tar.rewind().unwrap();
    tar.read_to_end(&mut content).unwrap();
    Sha256::digest(&content).into()
}

#[test]
fn a_tar_that_was_changed_anywhere_is_refused() {
    let entries = [(FILE, "a", "content"), (LINK, "b", "a")];
    let whole = tar_of(&entries);
    let digest = digest_of(&whole);
    for at in (0..whole.metadata().unwrap().len()).step_by(100) {
        let folder = TempDir::new().unwrap();
        let mut tar = tar_of(&entries);
        tar.seek(io::SeekFrom::Start(at)).unwrap();
        tar.write_all(b"!").unwrap();
        let error = write(tar, digest, &folder.path().join(FOLDER), || false);
        assert!(error.unwrap_err().is_of_tar(), "byte {at}");
    }
}

#[test]
fn files_links_and_modes_are_as_they_were() {
    let folder = TempDir::new().unwrap();
    let written = written(
        &folder,
        &[
            (LINK, "a-link", "../../outside"),
            (FILE, "deep/er/run.sh", "#!/bin/sh\n"),
            (LINK, "deep/near", "er/run.sh"),
            (FILE, "deep/plain", ""),
            (EntryType::Directory, "module/", ""),
            (
                FILE,
                "pointer",
                "version https://git-lfs.github.com/spec/v1\noid sha256:1\n",
            ),
            (
                FILE,
                "text",
                "about version https://git-lfs.github.com/spec/v1",
            ),
        ],
    )
    .unwrap();
    let names = |names: &[&str]| Names {
        first: names.iter().map(ToString::to_string).collect(),
        count: names.len(),
    };
    let expected = Written {
        files: 6,
        submodules: names(&["module"]),
        pointers: names(&["pointer"]),
    };
    assert_eq!(written, expected);
    let at = |path: &str| folder.path().join(FOLDER).join(path);
    let mode = |path: &str| at(path).symlink_metadata().unwrap().mode() & 0o777;
    assert_eq!((mode("deep/er/run.sh"), mode("deep/plain")), (0o755, 0o644));
    assert_eq!(
        std::fs::read_link(at("a-link")).unwrap(),
        Path::new("../../outside")
    );
    assert_eq!(
        std::fs::read_to_string(at("deep/near")).unwrap(),
        "#!/bin/sh\n"
    );
    assert_eq!(std::fs::read_dir(at("module")).unwrap().count(), 0);
}

#[test]
fn nothing_hostile_is_written_anywhere_else() {
    let outside = TempDir::new().unwrap();
    let far = outside.path().to_str().unwrap();
    let absolute = format!("{far}/x");
    let cases: Vec<(Vec<Given<'_>>, &str)> = vec![
        (
            vec![(LINK, "a", far), (FILE, "a/b", "x")],
            "a is there twice",
        ),
        (
            vec![(FILE, "a/b", "x"), (LINK, "a", far)],
            "a is there twice",
        ),
        (
            vec![(LINK, "a", far), (EntryType::Directory, "a/", "")],
            "a is there twice",
        ),
        (
            vec![(LINK, "a", far), (LINK, "a/b", "x")],
            "a is there twice",
        ),
        (vec![(FILE, "a", "1"), (FILE, "a", "2")], "a is there twice"),
        (
            vec![(FILE, "a", "1"), (FILE, "a/b", "2")],
            "a is there twice",
        ),
        (vec![(FILE, "../a", "x")], "../a is no path"),
        (vec![(FILE, "a/../../b", "x")], "is no path"),
        (vec![(FILE, &absolute, "x")], "is no path"),
        (vec![(FILE, "./a", "x")], "is no path"),
        (vec![(FILE, "a//b", "x")], "is no path"),
        (vec![(LINK, "..", far)], "is no path"),
        (vec![(EntryType::Directory, "/", "")], "is no path"),
        (vec![(FILE, ".git/hooks/x", "x")], "repository's own folder"),
        (vec![(EntryType::Link, "a", &absolute)], "is neither a file"),
        (vec![(EntryType::Char, "a", "")], "is neither a file"),
        (vec![(EntryType::Block, "a", "")], "is neither a file"),
        (vec![(EntryType::Fifo, "a", "")], "is neither a file"),
        (vec![(EntryType::Continuous, "a", "")], "is neither a file"),
    ];
    for (entries, problem) in cases {
        let folder = TempDir::new().unwrap();
        let error = written(&folder, &entries).unwrap_err().to_string();
        assert!(error.contains(problem), "{entries:?}: {error}");
        let left = std::fs::read_dir(folder.path()).unwrap();
        assert_eq!(left.count(), 1, "{entries:?}: only the folder of the files");
        let there = std::fs::read_dir(outside.path()).unwrap();
        assert_eq!(there.count(), 0, "{entries:?}");
    }
}

#[test]
fn a_tar_that_is_cut_off_is_refused_and_a_stop_ends_the_writing() {
    let folder = TempDir::new().unwrap();
    let tar = tar_of(&[(FILE, "a", "content")]);
    tar.set_len(515).unwrap();
    let error = write(tar, [0; 32], &folder.path().join("cut"), || false);
    assert!(matches!(error, Err(SourceError::Read(_))), "{error:?}");
    let tar = tar_of(&[(FILE, "a", "content")]);
    let error = write(tar, [0; 32], &folder.path().join("stopped"), || true);
    assert!(matches!(error, Err(SourceError::Stopped)), "{error:?}");
}

#[test]
fn many_names_are_counted() {
    let mut names = Names::default();
    assert_eq!(names.line(), None);
    names.add(b"a\n");
    assert_eq!(names.line().unwrap(), "a\\n");
    for number in 1..13 {
        names.add(number.to_string().as_bytes());
    }
    assert_eq!(
        names.line().unwrap(),
        "a\\n, 1, 2, 3, 4, 5, 6, 7, 8, 9 and 3 more"
    );
}
