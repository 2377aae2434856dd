//! Downloads: the file appears complete and verified, or not at all.

use std::io::Write;
use std::os::unix::fs::symlink;
use std::path::Path;

use crate::everscan::{Run, command, finished};
use crate::fixtures::id;
use crate::server::{Reply, Server};
use crate::snapshot;

/// SHA-256 of `hello`.
const HELLO: &str = "2cf24dba5fb0a30e26e83b2ac5b9e29e1b161e5c1fa7425e73043362938b9824";

fn download(folder: &Path, url: &str, more: &str) -> Run {
    let line = format!("job artifact download {} -a report.zip {more}", id(1));
    let output = command(&line)
        .env("SERVICE_URL", url)
        .current_dir(folder)
        .output()
        .unwrap();
    finished(output)
}

pub(crate) fn files(folder: &Path) -> Vec<String> {
    let mut names: Vec<_> = std::fs::read_dir(folder)
        .unwrap()
        .map(|entry| entry.unwrap().file_name().into_string().unwrap())
        .collect();
    names.sort();
    names
}

fn hello() -> Reply {
    Reply::content("hello")
}

#[test]
fn the_file_takes_the_place_of_an_older_one() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("new.zip");
    std::fs::write(&path, "older and longer").unwrap();
    let server = Server::start([hello()]);
    let output = download(folder.path(), &server.url, "-o new.zip");
    assert_eq!((output.code, output.stdout.as_str()), (0, ""));
    assert_eq!(output.stderr, "new.zip (5 B)\n");
    assert_eq!(files(folder.path()), ["new.zip"]);
    assert_eq!(std::fs::read(&path).unwrap(), b"hello");
    let route = format!("GET /v0/jobs/{}/artifacts/report.zip", id(1));
    assert_eq!(server.lines(), [route]);
}

#[test]
fn without_a_name_the_file_has_the_name_of_the_artifact() {
    let folder = tempfile::tempdir().unwrap();
    let server = Server::start([hello()]);
    let output = download(folder.path(), &server.url, "");
    assert_eq!(output.code, 0, "{}", output.stderr);
    assert_eq!(files(folder.path()), ["report.zip"]);
}

#[test]
fn the_default_file_name_ends_in_zip() {
    let folder = tempfile::tempdir().unwrap();
    let server = Server::start([hello()]);
    let line = format!("job artifact download -j {} -a hosts", id(1));
    let output = command(&line)
        .env("SERVICE_URL", &server.url)
        .current_dir(folder.path())
        .output()
        .unwrap();
    assert_eq!(finished(output).stderr, "hosts.zip (5 B)\n");
    assert_eq!(files(folder.path()), ["hosts.zip"]);
}

#[test]
fn a_dash_writes_to_standard_output() {
    let folder = tempfile::tempdir().unwrap();
    let server = Server::start([hello()]);
    let output = download(folder.path(), &server.url, "-o -");
    assert_eq!(
        (output.code, output.stdout.as_str(), output.stderr.as_str()),
        (0, "hello", "")
    );
    assert!(files(folder.path()).is_empty());

    let damaged = Reply::bytes("hallo").header("etag", &format!("\"{HELLO}\""));
    let server = Server::start([damaged]);
    let output = download(folder.path(), &server.url, "-o -");
    assert_eq!(output.code, 1);
    assert!(output.stderr.contains(HELLO), "{}", output.stderr);
}

#[test]
fn a_damaged_download_leaves_no_file() {
    let folder = tempfile::tempdir().unwrap();
    let server = Server::start([Reply::bytes("hallo").header("etag", &format!("\"{HELLO}\""))]);
    let output = download(folder.path(), &server.url, "");
    assert_eq!(output.code, 1);
    assert!(output.stderr.contains(HELLO), "{}", output.stderr);
    assert!(files(folder.path()).is_empty());
}

#[test]
fn a_refused_download_leaves_no_file() {
    let folder = tempfile::tempdir().unwrap();
    let server = Server::start([Reply::problem(410, "gone", "it has expired", None)]);
    let output = download(folder.path(), &server.url, "");
    assert_eq!(output.code, 7);
    assert!(
        output.stderr.contains("it has expired"),
        "{}",
        output.stderr
    );
    assert!(files(folder.path()).is_empty());
}

#[test]
fn a_missing_folder_is_named() {
    let folder = tempfile::tempdir().unwrap();
    let server = Server::start([hello()]);
    let output = download(folder.path(), &server.url, "-o no/such.zip");
    assert_eq!(output.code, 1);
    assert!(
        output
            .stderr
            .starts_with("error: cannot write no/such.zip\n"),
        "{}",
        output.stderr
    );
}

/// A zip of these entries.
pub(crate) fn zip(entries: &[(&str, &str)]) -> Vec<u8> {
    let mut zip = zip::ZipWriter::new(std::io::Cursor::new(Vec::new()));
    for (name, content) in entries {
        let options = zip::write::SimpleFileOptions::default();
        zip.start_file(*name, options).unwrap();
        zip.write_all(content.as_bytes()).unwrap();
    }
    zip.finish().unwrap().into_inner()
}

#[test]
fn unpacking_creates_the_files_and_removes_the_zip() {
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("list.txt"), "older and longer").unwrap();
    let entries = [("list.txt", "new"), ("logs/a.log", "a")];
    let server = Server::start([Reply::content(zip(&entries)), Reply::content(zip(&entries))]);
    for (to, place) in [
        (".", folder.path().to_owned()),
        ("x/y", folder.path().join("x/y")),
    ] {
        let output = download(folder.path(), &server.url, &format!("--unpack {to}"));
        assert_eq!(
            (output.code, output.stderr),
            (0, format!("{to} (2 files)\n"))
        );
        for (name, content) in entries {
            assert_eq!(std::fs::read_to_string(place.join(name)).unwrap(), content);
        }
        assert_eq!(files(&place)[..2], ["list.txt", "logs"]);
    }
}

#[test]
fn a_backslash_or_colon_is_a_character_of_a_name() {
    let folder = tempfile::tempdir().unwrap();
    let entries = [
        ("loot/CORP\\admin", "one"),
        ("loot/CORP/admin", "two"),
        ("loot/c:x", "three"),
        ("loot/end\\", "four"),
    ];
    let server = Server::start([Reply::content(zip(&entries))]);
    let output = download(folder.path(), &server.url, "--unpack .");
    assert_eq!((output.code, output.stderr.as_str()), (0, ". (4 files)\n"));
    for (name, content) in entries {
        let path = folder.path().join(name);
        assert_eq!(std::fs::read_to_string(path).unwrap(), content);
    }
}

#[test]
fn an_entry_with_an_impossible_name_is_reported_and_the_rest_is_unpacked() {
    let long = "l".repeat(300);
    let outside = "its path leads out of the folder";
    for (name, reason) in [
        ("../out.txt", outside),
        ("/out.txt", outside),
        ("a/../../out.txt", outside),
        ("a\0b", "its name has a null character"),
        (&long, "File name too long (os error 36)"),
    ] {
        let folder = tempfile::tempdir().unwrap();
        let zip = zip(&[("f::1", "first"), (name, "out"), ("last", "last")]);
        let server = Server::start([Reply::content(zip)]);
        let output = download(folder.path(), &server.url, "--unpack in");
        let shown = name.replace('\0', "\u{fffd}");
        let left_out = format!("in (2 files)\nerror: {shown} is not unpacked: {reason}\n");
        let hint = "hint: take the zip as it is, with --output-file\n";
        assert_eq!((output.code, output.stderr), (1, left_out + hint));
        assert_eq!(files(folder.path()), ["in"]);
        assert_eq!(files(&folder.path().join("in")), ["f::1", "last"]);
    }
}

#[test]
fn an_artifact_above_the_size_limit_leaves_no_files() {
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("list.txt"), "older").unwrap();
    let zip = zip(&[("list.txt", "12345"), ("sub/more.txt", "67890")]);
    for (limit, code) in [(9, 1), (10, 0)] {
        let server = Server::start([Reply::content(zip.clone())]);
        let more = format!("--unpack . --max-size {limit}");
        let output = download(folder.path(), &server.url, &more);
        assert_eq!(output.code, code, "{}", output.stderr);
        let list = std::fs::read_to_string(folder.path().join("list.txt")).unwrap();
        if code == 0 {
            assert_eq!(files(folder.path()), ["list.txt", "sub"]);
            assert_eq!(list, "12345");
        } else {
            assert_eq!(files(folder.path()), ["list.txt"]);
            assert_eq!(list, "older");
            assert!(output.stderr.contains("more than 9 B"), "{}", output.stderr);
            assert!(output.stderr.contains("--max-size"), "{}", output.stderr);
        }
    }
}

#[test]
fn what_is_in_the_way_is_named_and_the_rest_is_unpacked() {
    let folder = tempfile::tempdir().unwrap();
    let path = |name: &str| folder.path().join(name);
    std::fs::create_dir_all(path("in/folder/sub")).unwrap();
    std::fs::create_dir(path("in/taken")).unwrap();
    std::fs::create_dir(path("outside")).unwrap();
    std::fs::write(path("in/file"), "mine").unwrap();
    std::fs::write(path("outside/plan"), "mine").unwrap();
    symlink("../outside", path("in/link")).unwrap();
    symlink("../outside/plan", path("in/last")).unwrap();
    let zip = zip(&[
        ("first", "1"),
        ("taken", "a file where a folder is"),
        ("file/a", "a folder where a file is"),
        ("link/plan", "out"),
        ("link/deep/er", "out"),
        ("folder/sub/x", "2"),
        ("last", "3"),
    ]);
    let server = Server::start([Reply::content(zip)]);
    let output = download(folder.path(), &server.url, "--unpack in");
    assert_eq!(output.code, 1);
    snapshot::check_listing("artifact-in-the-way", &output.stderr);
    let mine = ["in/file", "outside/plan"].map(|name| std::fs::read(path(name)).unwrap());
    assert_eq!(mine, [b"mine", b"mine"]);
    assert_eq!(files(&path("outside")), ["plan"]);
    assert_eq!(
        files(&path("in")),
        ["file", "first", "folder", "last", "link", "taken"]
    );
    assert_eq!(files(&path("in/folder/sub")), ["x"]);
    // A link that has the name of a file is replaced, and not followed.
    assert!(!path("in/last").is_symlink());
}

#[test]
fn a_zip_with_a_damaged_end_leaves_no_files() {
    let folder = tempfile::tempdir().unwrap();
    let mut zip = zip(&[("first.txt", "first"), ("second.txt", "second")]);
    let at = zip.windows(6).position(|bytes| bytes == b"second").unwrap();
    // Damages the content of the entry; only its checksum shows the damage.
    let content = at + "second.txt".len();
    zip[content] ^= 1;
    let server = Server::start([Reply::content(zip)]);
    let output = download(folder.path(), &server.url, "--unpack .");
    assert_eq!(output.code, 1, "{}", output.stderr);
    assert!(
        files(folder.path()).is_empty(),
        "{:?}",
        files(folder.path())
    );
}
