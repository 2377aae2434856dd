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
