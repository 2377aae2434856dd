use std::cell::Cell;
use std::ffi::OsStr;
use std::fs;
use std::io::Read as _;
use std::os::unix::ffi::OsStrExt as _;
use std::os::unix::fs::{PermissionsExt as _, symlink};
use std::os::unix::net::UnixListener;
use std::path::Path;
use std::process::Command;

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

/// The packed files, with a call of `meanwhile` after each read of a folder.
fn pack_while(
    folder: &Path,
    paths: &[&str],
    strict: bool,
    meanwhile: impl Fn(),
) -> Result<(Vec<u8>, Packed), ArtifactError> {
    let paths: Vec<_> = paths.iter().map(|path| (*path).to_owned()).collect();
    let file = tempfile::NamedTempFile::new().unwrap();
    let packed = pack(folder, &paths, strict, file.reopen().unwrap(), |_, _| {
        meanwhile();
        true
    })?;
    let bytes = fs::read(file.path()).unwrap();
    assert_eq!(packed.size, bytes.len() as u64);
    Ok((bytes, packed))
}

/// The zip and the digest, if no file is left out.
fn pack_paths(folder: &Path, paths: &[&str]) -> Result<(Vec<u8>, String), ArtifactError> {
    let (bytes, packed) = pack_while(folder, paths, true, || {})?;
    Ok((bytes, packed.content_digest))
}

/// The files that were left out, as in the log.
fn left_out(packed: &Packed) -> Vec<String> {
    let files = packed.left_out.files.iter();
    files
        .map(|file| format!("{} {}", file.name, file.reason))
        .collect()
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

    // Two links that each lead to the folder of the other link.
    for [link, target] in [["links/a/b", "../b"], ["links/b/a", "../a"]] {
        fs::create_dir_all(at(link).parent().unwrap()).unwrap();
        symlink(target, at(link)).unwrap();
    }
    assert!(refusal(folder.path(), "links").contains("folders deep"));
}

/// Makes a file of each kind that cannot be packed.
fn make_odd_files(folder: &Path) {
    symlink("nowhere", folder.join("broken")).unwrap();
    symlink("circle", folder.join("circle")).unwrap();
    make_pipe(&folder.join("pipe"));
    // The file of the socket remains.
    drop(UnixListener::bind(folder.join("socket")).unwrap());
    fs::write(folder.join(OsStr::from_bytes(b"caf\xe9")), "page").unwrap();
}

fn make_pipe(path: &Path) {
    let made = Command::new("mkfifo").arg(path).status().unwrap();
    assert!(made.success());
}

#[test]
fn odd_files_are_left_out_and_the_rest_is_packed() {
    let folder = tree(&[("d/a", "a"), ("d/sub/b", "b")]);
    make_odd_files(&folder.path().join("d"));
    for path in ["d", "glob:d/**"] {
        let (bytes, packed) = pack_while(folder.path(), &[path], false, || {}).unwrap();
        let mut files = names(&bytes);
        files.retain(|name| !name.ends_with('/'));
        assert_eq!(files, ["d/a", "d/sub/b"], "{path}");
        assert_eq!(
            left_out(&packed),
            [
                "d/broken is a link to nothing",
                "d/caf\u{fffd} is not a UTF-8 name",
                "d/circle is a link to nothing",
                "d/pipe is neither a file nor a folder",
                "d/socket is neither a file nor a folder",
            ],
            "{path}"
        );
        assert_eq!(packed.left_out.more, 0);
    }
}

#[test]
fn a_link_to_a_folder_that_it_lies_in_is_left_out() {
    let folder = tree(&[("d/sub/b", "b")]);
    symlink("..", folder.path().join("d/sub/up")).unwrap();
    symlink(".", folder.path().join("d/here")).unwrap();
    let (_, packed) = pack_while(folder.path(), &["d"], false, || {}).unwrap();
    let links = ["d/here", "d/sub/up"];
    assert_eq!(
        left_out(&packed),
        links.map(|link| format!("{link} is a link to a folder that it lies in"))
    );
}

#[test]
fn an_odd_file_fails_a_strict_artifact_and_one_that_names_it() {
    let folder = tree(&[("d/a", "a")]);
    make_odd_files(folder.path());
    for (name, message) in [
        ("broken", "\"broken\" is a link to nothing"),
        ("circle", "\"circle\" is a link to nothing"),
        ("pipe", "\"pipe\" is neither a file nor a folder"),
        ("socket", "\"socket\" is neither a file nor a folder"),
    ] {
        let named = pack_while(folder.path(), &["d", name], false, || {});
        assert_eq!(named.unwrap_err().to_string(), message);
        let inside = folder.path().join("d").join(name);
        fs::rename(folder.path().join(name), &inside).unwrap();
        let message = message.replacen('"', "\"d/", 1);
        assert_eq!(refusal(folder.path(), "d"), message);
        assert_eq!(refusal(folder.path(), "glob:d/*"), message);
        fs::remove_file(inside).unwrap();
    }
    // A pattern that matches only files that are left out matches nothing.
    fs::remove_file(folder.path().join("d/a")).unwrap();
    symlink("nowhere", folder.path().join("d/broken")).unwrap();
    let nothing = pack_while(folder.path(), &["glob:d/*"], false, || {});
    assert!(nothing.unwrap_err().to_string().contains("matches no file"));
}

#[test]
fn a_folder_that_becomes_a_link_while_it_is_packed_leads_nowhere() {
    let folder = tree(&[("d/a", "a"), ("d/sub/b", "b")]);
    let outside = tree(&[("b", "secret")]);
    let sub = folder.path().join("d/sub");
    let is_changed = Cell::new(false);
    let change = || {
        if !is_changed.replace(true) {
            fs::rename(&sub, folder.path().join("away")).unwrap();
            symlink(outside.path(), &sub).unwrap();
        }
    };
    let (bytes, packed) = pack_while(folder.path(), &["d"], false, change).unwrap();
    assert_eq!(names(&bytes), ["d/", "d/a", "d/sub/"]);
    let link = "d/sub/b cannot be read: Too many levels of symbolic links (os error 40)";
    assert_eq!(left_out(&packed), [link]);
}

#[test]
fn what_changes_while_it_is_packed_is_cut_or_left_out() {
    let files = [("d/a", "first"), ("d/grows", "12345")];
    let folder = tree(&files);
    let at = |name: &str| folder.path().join("d").join(name);
    let content = "x".repeat(200_000);
    for name in ["gone", "link", "pipe", "shrinks"] {
        fs::write(at(name), &content).unwrap();
    }
    let is_changed = Cell::new(false);
    let change = || {
        if is_changed.replace(true) {
            return;
        }
        fs::write(at("grows"), "1234567").unwrap();
        fs::write(at("shrinks"), &content[1..]).unwrap();
        for name in ["gone", "link", "pipe"] {
            fs::remove_file(at(name)).unwrap();
        }
        symlink("a", at("link")).unwrap();
        make_pipe(&at("pipe"));
    };
    let (bytes, packed) = pack_while(folder.path(), &["d"], false, change).unwrap();
    assert_eq!(names(&bytes), ["d/", "d/a", "d/grows"]);
    let mut archive = zip::ZipArchive::new(io::Cursor::new(bytes)).unwrap();
    let mut grown = String::new();
    let mut file = archive.by_name("d/grows").unwrap();
    file.read_to_string(&mut grown).unwrap();
    assert_eq!(grown, "12345");
    assert_eq!(
        left_out(&packed),
        [
            "d/gone cannot be read: No such file or directory (os error 2)",
            "d/grows grew while it was packed; its first 5 bytes are there",
            "d/link cannot be read: Too many levels of symbolic links (os error 40)",
            "d/pipe is neither a file nor a folder",
            "d/shrinks became shorter while it was packed",
        ]
    );
    // The digest covers only the packed content.
    let same = pack_paths(tree(&files).path(), &["d"]).unwrap();
    assert_eq!(packed.content_digest, same.1);
}

#[test]
fn a_declared_file_that_changes_while_it_is_packed_fails_the_artifact() {
    for (content, message) in [
        (
            "1234567",
            "\"d/a\" grew while it was packed; its first 5 bytes are there",
        ),
        ("1", "\"d/a\" became shorter while it was packed"),
    ] {
        let folder = tree(&[("d/a", "12345")]);
        let change = || fs::write(folder.path().join("d/a"), content).unwrap();
        let packed = pack_while(folder.path(), &["d", "d/a"], false, change);
        assert_eq!(packed.unwrap_err().to_string(), message);
    }
}

#[test]
fn no_more_than_some_names_are_told() {
    let folder = tree(&[("d/a", "a")]);
    for number in 0..25 {
        let name = folder.path().join(format!("d/link-{number:02}"));
        symlink("nowhere", name).unwrap();
    }
    let (_, packed) = pack_while(folder.path(), &["d"], false, || {}).unwrap();
    assert_eq!(packed.left_out.files.len(), 20);
    assert_eq!(packed.left_out.files[19].name, "d/link-19");
    assert_eq!(packed.left_out.more, 5);
}

#[test]
fn packing_says_how_far_it_is() {
    let folder = tree(&[("a", "12"), ("b/c", "345")]);
    let file = tempfile::tempfile().unwrap();
    let mut reported = Vec::new();
    let paths = ["a".to_owned(), "b".to_owned()];
    pack(folder.path(), &paths, false, file, |bytes, of| {
        reported.push((bytes, of));
        true
    })
    .unwrap();
    assert!(reported.iter().all(|(_, of)| *of == 5), "{reported:?}");
    assert!(
        reported.is_sorted() && reported.contains(&(2, 5)),
        "{reported:?}"
    );
}

#[test]
fn packing_stops_when_the_job_stops() {
    let folder = tree(&[("a", "1")]);
    let file = tempfile::tempfile().unwrap();
    let packed = pack(folder.path(), &["a".to_owned()], false, file, |_, _| false);
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
    // Links to folders are not searched, even if they lead inside.
    symlink(outside.path(), at("out/way")).unwrap();
    symlink("../real", at("out/inside")).unwrap();
    symlink("..", at("out/circle")).unwrap();
    let found = pack_paths(folder.path(), &["glob:out/**/*"]).unwrap();
    assert_eq!(names(&found.0), ["out/a.txt"]);
    assert!(refusal(folder.path(), "glob:out/way/*").contains("matches no file"));
    assert!(refusal(folder.path(), "glob:out/way/../*").contains("inside the job's folder"));
    // A link to a file inside is packed as that file. A link to a file outside fails.
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
