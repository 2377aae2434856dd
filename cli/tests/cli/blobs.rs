//! Commands for blobs against a daemon that gives prepared answers.

use std::fs;

use wire::{Blob, BlobList};

use crate::artifacts::files;
use crate::everscan::{Run, command, finished, run_at};
use crate::fixtures::at;
use crate::server::{Reply, Server};
use crate::snapshot;

fn blobs(paths: &[&str]) -> Reply {
    let blob = |path: &&str| Blob {
        path: (*path).to_owned(),
        size: 5,
        sha256: workflow::sha256(b"hello"),
        modified_at: at(0),
        modified_by: "ci".to_owned(),
        expires_at: None,
    };
    Reply::json(&BlobList {
        items: paths.iter().map(blob).collect(),
        folders: Vec::new(),
        next_cursor: None,
    })
}

fn removed() -> Reply {
    Reply::bytes("").status(204)
}

fn missing() -> Reply {
    Reply::problem(404, "not_found", "there is no blob a", None)
}

fn forbidden() -> Reply {
    Reply::problem(403, "forbidden", "the token lacks blob:read", None)
}

#[test]
fn a_folder_of_blobs_that_does_not_exist_removes_no_files() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("mine.txt");
    fs::write(&file, "mine").unwrap();
    for more in ["--delete", "--delete --dry-run", ""] {
        let server = Server::start([blobs(&[])]);
        let mut command = command(&format!("blob sync blob:typo/a {more}"));
        command.arg(folder.path()).env("SERVICE_URL", &server.url);
        let output: Run = finished(command.output().unwrap());
        assert_eq!((output.code, output.stdout.as_str()), (7, ""), "{more}");
        snapshot::check_listing("blobs-no-folder", &output.stderr);
        assert_eq!(files(folder.path()), ["mine.txt"]);
    }
}

/// A token that may only write can remove a blob by its name.
#[test]
fn one_blob_is_removed_without_a_list() {
    let server = Server::start([removed()]);
    let output = run_at(&server.url, "blob rm a");
    assert_eq!(
        (output.code, output.stderr.as_str()),
        (0, "1 blob removed\n")
    );
    assert_eq!(server.lines(), ["DELETE /v0/blobs/a"]);
    for inside in [forbidden(), blobs(&[])] {
        let server = Server::start([missing(), inside]);
        let output = run_at(&server.url, "blob rm a");
        assert_eq!(output.code, 7, "{}", output.stderr);
        assert!(output.stderr.contains("no blob a"), "{}", output.stderr);
    }
}

#[test]
fn a_folder_of_blobs_is_removed_only_with_the_flag() {
    let inside = || [missing(), blobs(&["a/1", "a/2"])];
    let server = Server::start(inside());
    let output = run_at(&server.url, "blob rm a");
    assert_eq!(output.code, 2, "{}", output.stderr);
    assert!(output.stderr.contains("--recursive"), "{}", output.stderr);
    assert_eq!(server.lines().len(), 2);
    // Somebody else removes the second blob.
    let replies = [inside().as_slice(), &[removed(), missing()]].concat();
    let server = Server::start(replies);
    let output = run_at(&server.url, "blob rm -r a");
    assert_eq!(
        (output.code, output.stderr.as_str()),
        (0, "2 blobs removed\n")
    );
    assert_eq!(
        server.lines()[2..],
        ["DELETE /v0/blobs/a/1", "DELETE /v0/blobs/a/2"]
    );
}

#[test]
fn a_dry_run_removes_nothing() {
    for (line, replies, code, stdout) in [
        ("blob rm a", vec![blobs(&["a"])], 0, "a\n"),
        (
            "blob rm -r a/",
            vec![blobs(&["a/1"]), blobs(&["a/1"])],
            0,
            "a/1\n",
        ),
        // Here a blob has the name of the folder.
        ("blob rm -r a/", vec![blobs(&[])], 7, ""),
    ] {
        let server = Server::start(replies);
        let output = run_at(&server.url, &format!("{line} --dry-run"));
        assert_eq!(
            (output.code, output.stdout.as_str()),
            (code, stdout),
            "{}",
            output.stderr
        );
        let lines = server.lines();
        assert!(
            lines.iter().all(|line| line.starts_with("GET ")),
            "{lines:?}"
        );
    }
}
