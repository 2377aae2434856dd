use std::fs;
use std::io::Read as _;
use std::os::unix::fs::{PermissionsExt as _, symlink};
use std::os::unix::net::UnixListener;
use std::path::Path;

use sha2::{Digest as _, Sha256};
use tempfile::TempDir;

use super::*;

fn tree(files: &[(&str, &str)]) -> TempDir {
    let folder = TempDir::new().unwrap();
    for (name, content) in files {
        let path = folder.path().join(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, content).unwrap();
    }
    folder
}

fn pack_paths(folder: &Path, paths: &[&str]) -> Result<(Vec<u8>, String), ArtifactError> {
    let paths: Vec<_> = paths.iter().map(|path| (*path).to_owned()).collect();
    let file = tempfile::NamedTempFile::new().unwrap();
    let packed = pack(folder, &paths, file.reopen().unwrap(), |_, _| true)?;
    let bytes = fs::read(file.path()).unwrap();
    assert_eq!(packed.size, bytes.len() as u64);
    Ok((bytes, packed.content_digest))
}

fn refusal(folder: &Path, path: &str) -> String {
    pack_paths(folder, &[path]).unwrap_err().to_string()
}

fn names(bytes: &[u8]) -> Vec<String> {
    let archive = zip::ZipArchive::new(io::Cursor::new(bytes)).unwrap();
    let names = archive.file_names().map(|name| name.unwrap().to_string());
    names.collect()
}

#[test]
fn entries_are_sorted_with_their_contents_and_modes() {
    let folder = tree(&[
        ("out/b.txt", "bee"),
        ("out/a/x", "ex"),
        ("other", "no"),
        ("top", "t"),
    ]);
    let script = folder.path().join("top");
    fs::set_permissions(script, fs::Permissions::from_mode(0o755)).unwrap();
    let (bytes, _) = pack_paths(folder.path(), &["top", "./out//"]).unwrap();
    assert_eq!(
        names(&bytes),
        ["out/", "out/a/", "out/a/x", "out/b.txt", "top"]
    );
    let mut archive = zip::ZipArchive::new(io::Cursor::new(bytes)).unwrap();
    let mut content = String::new();
    archive
        .by_name("out/b.txt")
        .unwrap()
        .read_to_string(&mut content)
        .unwrap();
    assert_eq!(content, "bee");
    let top = archive.by_name("top").unwrap();
    assert_eq!(top.unix_mode().unwrap() & 0o777, 0o755);
}

#[test]
fn the_bytes_depend_on_nothing_but_names_modes_and_contents() {
    let files = [("a/1", "one"), ("a/2", "two"), ("b", "three")];
    let one = tree(&files);
    let reversed: Vec<_> = files.iter().rev().copied().collect();
    let other = tree(&reversed);
    let old = fs::File::options()
        .write(true)
        .open(other.path().join("b"))
        .unwrap();
    old.set_modified(std::time::UNIX_EPOCH).unwrap();
    let packed = pack_paths(one.path(), &["."]).unwrap();
    assert_eq!(
        packed,
        pack_paths(other.path(), &["b", "a", "a/1"]).unwrap()
    );

    fs::write(other.path().join("b"), "Three").unwrap();
    assert_ne!(packed.1, pack_paths(other.path(), &["."]).unwrap().1);
}

#[test]
fn the_content_digest_is_what_its_definition_says() {
    let folder = tree(&[("d/b", "22"), ("a", "1")]);
    let mut digest = Sha256::new();
    for (name, content) in [("a", "1"), ("d/b", "22")] {
        for part in [name, content] {
            digest.update((part.len() as u64).to_le_bytes());
            digest.update(part);
        }
    }
    let expected = workflow::hex(&digest.finalize());
    let (_, found) = pack_paths(folder.path(), &["d", "a"]).unwrap();
    assert_eq!(found, format!("sha256:{expected}"));

    let script = folder.path().join("a");
    fs::set_permissions(script, fs::Permissions::from_mode(0o700)).unwrap();
    fs::create_dir(folder.path().join("d/empty")).unwrap();
    assert_eq!(pack_paths(folder.path(), &["d", "a"]).unwrap().1, found);
}

#[test]
fn paths_out_of_the_folder_are_refused() {
    let folder = tree(&[("a", "")]);
    for path in ["", "/etc/passwd", "..", "a/../../b", "../a", "a\0b"] {
        assert!(
            refusal(folder.path(), path).contains("inside the job's folder"),
            "{path:?}"
        );
    }
    assert_eq!(
        refusal(folder.path(), "missing"),
        "path \"missing\" does not exist"
    );
    assert_eq!(refusal(folder.path(), "a/b"), "path \"a/b\" does not exist");
    assert_eq!(refusal(folder.path(), "*"), "path \"*\" does not exist");
}

#[test]
fn links_are_followed_inside_and_refused_outside() {
    let outside = tree(&[("secret", "s")]);
    let folder = tree(&[("real/file", "content")]);
    let at = |name: &str| folder.path().join(name);
    fs::create_dir(at("links")).unwrap();
    symlink("../real/file", at("links/file")).unwrap();
    symlink("../real", at("links/folder")).unwrap();
    let (bytes, _) = pack_paths(folder.path(), &["links"]).unwrap();
    assert_eq!(
        names(&bytes),
        ["links/", "links/file", "links/folder/", "links/folder/file"]
    );

    for target in [
        outside.path().join("secret"),
        outside.path().to_owned(),
        "/".into(),
    ] {
        symlink(&target, at("links/out")).unwrap();
        assert_eq!(
            refusal(folder.path(), "links"),
            "\"links/out\" is a link out of the job's folder"
        );
        assert!(refusal(folder.path(), "links/out").contains("link out of"));
        fs::remove_file(at("links/out")).unwrap();
    }
    symlink(outside.path(), at("way")).unwrap();
    assert!(refusal(folder.path(), "way/secret").contains("link out of"));
    fs::remove_file(at("way")).unwrap();

    symlink("nothing", at("links/broken")).unwrap();
    assert!(refusal(folder.path(), "links").contains("link to nothing"));
    fs::remove_file(at("links/broken")).unwrap();

    symlink("..", at("links/circle")).unwrap();
    assert!(refusal(folder.path(), "links").contains("folders deep"));
}

#[test]
fn special_files_are_refused_without_being_read() {
    let folder = tree(&[("d/a", "")]);
    let _socket = UnixListener::bind(folder.path().join("d/socket")).unwrap();
    assert!(refusal(folder.path(), "d").contains("neither a file nor a folder"));
}

#[test]
fn packing_says_how_far_it_is() {
    let folder = tree(&[("a", "12"), ("b/c", "345")]);
    let file = tempfile::tempfile().unwrap();
    let mut told = Vec::new();
    let paths = ["a".to_owned(), "b".to_owned()];
    pack(folder.path(), &paths, file, |bytes, of| {
        told.push((bytes, of));
        true
    })
    .unwrap();
    assert!(told.iter().all(|(_, of)| *of == 5), "{told:?}");
    assert!(told.is_sorted() && told.contains(&(2, 5)), "{told:?}");
}

#[test]
fn packing_stops_when_the_job_stops() {
    let folder = tree(&[("a", "1")]);
    let file = tempfile::tempfile().unwrap();
    let packed = pack(folder.path(), &["a".to_owned()], file, |_, _| false);
    assert!(matches!(packed, Err(ArtifactError::Stopped)));
}

#[test]
fn a_pattern_packs_the_files_that_it_stands_for() {
    let folder = tree(&[
        ("out/b.txt", "b"),
        ("out/a.txt", "a"),
        ("out/deep/er/c.txt", "c"),
        ("out/deep/d.log", "d"),
        ("out/.hidden.txt", "h"),
        ("other.txt", "o"),
        ("out.txt/name.txt", "a folder of such a name"),
    ]);
    let packed = |paths: &[&str]| names(&pack_paths(folder.path(), paths).unwrap().0);
    let all = [
        "out/.hidden.txt",
        "out/a.txt",
        "out/b.txt",
        "out/deep/er/c.txt",
    ];
    assert_eq!(packed(&["glob:out/**/*.txt"]), all);
    assert_eq!(packed(&["glob:./out/**/*.txt"]), all);
    assert_eq!(
        packed(&["glob:out/*.txt", "glob:out/deep/**", "glob:out/?.txt"]),
        [
            "out/.hidden.txt",
            "out/a.txt",
            "out/b.txt",
            "out/deep/d.log",
            "out/deep/er/c.txt"
        ]
    );
    assert_eq!(packed(&["glob:*.txt"]), ["other.txt"]);
    assert_eq!(
        packed(&["glob:{other,none}.txt", "out/deep"]),
        [
            "other.txt",
            "out/deep/",
            "out/deep/d.log",
            "out/deep/er/",
            "out/deep/er/c.txt"
        ]
    );
}

#[test]
fn a_pattern_without_a_match_is_a_missing_path() {
    let folder = tree(&[("out/a.txt", "a")]);
    for path in [
        "glob:*.txt",
        "glob:out/*.log",
        "glob:none/**",
        "glob:out",
        "glob:out/a.txt/*",
    ] {
        assert_eq!(
            refusal(folder.path(), path),
            format!("pattern {path:?} matches no file")
        );
    }
    assert!(refusal(folder.path(), "glob:[").contains("cannot be read"));
    assert!(refusal(folder.path(), "glob:../*").contains("inside the job's folder"));
}

#[test]
fn a_pattern_never_leaves_the_folder() {
    let outside = tree(&[("secret.txt", "s")]);
    let folder = tree(&[("out/a.txt", "a"), ("real/b.txt", "b")]);
    let at = |name: &str| folder.path().join(name);
    // Links to folders are not looked into, wherever they lead.
    symlink(outside.path(), at("out/way")).unwrap();
    symlink("../real", at("out/inside")).unwrap();
    symlink("..", at("out/circle")).unwrap();
    let found = pack_paths(folder.path(), &["glob:out/**/*"]).unwrap();
    assert_eq!(names(&found.0), ["out/a.txt"]);
    assert!(refusal(folder.path(), "glob:out/way/*").contains("matches no file"));
    assert!(refusal(folder.path(), "glob:out/way/../*").contains("inside the job's folder"));
    // A link to a file inside is that file; one that leads out fails.
    symlink("../real/b.txt", at("out/b.txt")).unwrap();
    let found = pack_paths(folder.path(), &["glob:out/*.txt"]).unwrap();
    assert_eq!(names(&found.0), ["out/a.txt", "out/b.txt"]);
    symlink(outside.path().join("secret.txt"), at("out/c.txt")).unwrap();
    assert_eq!(
        refusal(folder.path(), "glob:out/*.txt"),
        "\"out/c.txt\" is a link out of the job's folder"
    );
    symlink(outside.path(), at("up")).unwrap();
    assert!(refusal(folder.path(), "glob:up/secret.txt").contains("matches no file"));
}
