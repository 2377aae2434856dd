//! Where the output of a command goes: a file that a person named is replaced, a link is followed, and a device or pipe gets the
//! content.

use std::fs;
use std::os::unix::fs::{FileTypeExt, symlink};
use std::path::Path;

use rustix::fs::{CWD, FileType, Mode, mknodat};
use wire::{Artifact, Page};

use crate::artifacts::{files, zip};
use crate::everscan::{Run, command, finished};
use crate::fixtures::{artifact, id};
use crate::server::{Reply, Server};
use crate::snapshot;

/// Each command that writes a file, without its name.
const COMMANDS: [&str; 3] = [
    "job artifact download -a report -o ",
    "job download -o ",
    "blob download --src report --dst ",
];

fn content() -> Vec<u8> {
    zip(&[("report.txt", "all is well")])
}

fn run(folder: &Path, server: &Server, line: &str) -> Run {
    let mut command = command(line);
    command.current_dir(folder);
    command.env("SERVICE_URL", &server.url);
    command.env("SERVICE_JOB_ID", id(1).to_string());
    finished(command.output().unwrap())
}

/// A daemon where each job and folder has only the report.
fn daemon() -> Server {
    Server::answering(|line| match line.ends_with("/artifacts") {
        true => Reply::json(&Page::all(vec![Artifact {
            name: "report".to_owned(),
            ..artifact()
        }])),
        false => Reply::content(content()),
    })
}

#[test]
fn a_link_is_followed_and_stays() {
    let server = daemon();
    for line in COMMANDS {
        let folder = tempfile::tempdir().unwrap();
        let path = |name: &str| folder.path().join(name);
        fs::create_dir(path("in")).unwrap();
        fs::write(path("in/old"), "older and longer than the report").unwrap();
        symlink("in/old", path("link")).unwrap();
        symlink("link", path("second")).unwrap();
        symlink("in/new", path("to-nothing")).unwrap();
        for (name, target) in [("second", "in/old"), ("to-nothing", "in/new")] {
            let output = run(folder.path(), &server, &format!("{line}{name}"));
            assert_eq!(output.code, 0, "{line}: {}", output.stderr);
            assert_eq!(fs::read(path(target)).unwrap(), content(), "{line}");
            assert!(path(name).is_symlink(), "{line}");
        }
        assert_eq!(files(&path("in")), ["new", "old"]);
        symlink("circle", path("circle")).unwrap();
        let output = run(folder.path(), &server, &format!("{line}circle"));
        assert_eq!(output.code, 1, "{}", output.stderr);
        assert!(path("circle").is_symlink(), "{line}");
    }
}

#[test]
fn a_device_gets_the_content() {
    let server = daemon();
    for line in COMMANDS {
        let folder = tempfile::tempdir().unwrap();
        let full = folder.path().join("full");
        symlink("/dev/full", &full).unwrap();
        let output = run(folder.path(), &server, &format!("{line}full"));
        assert_eq!(output.code, 1, "{line}: {}", output.stderr);
        snapshot::check_listing("outputs-full", &output.stderr);
        let kind = fs::metadata(&full).unwrap().file_type();
        assert!(full.is_symlink() && kind.is_char_device(), "{line}");
        let output = run(folder.path(), &server, &format!("{line}/dev/null"));
        assert_eq!(output.code, 0, "{line}: {}", output.stderr);
    }
}

#[test]
fn a_named_pipe_gets_the_content() {
    let server = daemon();
    for line in COMMANDS {
        let folder = tempfile::tempdir().unwrap();
        let pipe = folder.path().join("pipe");
        mknodat(CWD, &pipe, FileType::Fifo, Mode::RUSR | Mode::WUSR, 0).unwrap();
        let reader = std::thread::spawn({
            let pipe = pipe.clone();
            move || fs::read(pipe).unwrap()
        });
        let output = run(folder.path(), &server, &format!("{line}pipe"));
        assert_eq!(output.code, 0, "{line}: {}", output.stderr);
        assert!(fs::metadata(&pipe).unwrap().file_type().is_fifo(), "{line}");
        assert_eq!(reader.join().unwrap(), content(), "{line}");
        assert_eq!(files(folder.path()), ["pipe"]);
    }
}

#[test]
fn a_folder_that_does_not_exist_is_named() {
    for line in COMMANDS {
        let folder = tempfile::tempdir().unwrap();
        let output = run(folder.path(), &daemon(), &format!("{line}new/"));
        assert_eq!(output.code, 2, "{line}: {}", output.stderr);
        snapshot::check_listing("outputs-no-folder", &output.stderr);
        assert!(files(folder.path()).is_empty(), "{line}");
    }
}

#[test]
fn a_wrong_form_is_answered_with_all_forms() {
    let output = finished(command("job list --output foo").output().unwrap());
    assert_eq!(output.code, 2);
    snapshot::check_listing("outputs-form", &output.stderr);
}
