//! Blobs in use: stored by a job, changed with the command, and present after a crash and in a backup.

use std::io::{Read, Write};
use std::process::Output;

use crate::support::World;

const WORKFLOW: &str = r#"
scans:
  keep:
    on: {dispatch: {}}
    steps:
      - run: |
          everscan blob download -s input/names.txt
          sort names.txt > sorted.txt
          everscan blob upload -s sorted.txt -d results/
          everscan scan dispatch -s next --input-bool fast=true
    artifacts:
      - {name: sorted.zip, paths: [sorted.txt]}
  next:
    on: {dispatch: {inputs: {fast: {type: bool}}}}
    env: {FAST: "${{ inputs.fast }}"}
    steps:
      - run: |
          test "$FAST" = true
          ! everscan scan dispatch
"#;

fn refused(output: &Output, code: i32, words: &str) {
    let said = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(code), "{said}");
    assert!(said.contains(words), "`{words}` is missing in: {said}");
}

fn paths(world: &World, arguments: &[&str]) -> Vec<String> {
    let list = world.json(&[&["blob", "ls"], arguments].concat());
    let items = list["items"].as_array().unwrap().iter();
    let folders = list["folders"].as_array().into_iter().flatten();
    let text = |value: &serde_json::Value| value.as_str().unwrap().to_owned();
    let items = items.map(|item| text(&item["path"]));
    folders.map(text).chain(items).collect()
}

#[test]
fn jobs_and_people_share_files() {
    let mut world = World::new();
    world.init_repository();
    world.push(&[("files.yaml", Some(WORKFLOW))]);
    world.start_daemon();
    world.sync();
    world.start_runner(1);
    std::fs::write(world.path("names.txt"), "b\na\n").unwrap();
    world.everscan(&["blob", "upload", "--src", "names.txt", "--dst", "input/"]);
    let run = world.output(
        "everscan",
        &["scan", "dispatch", "files", "keep", "--follow"],
    );
    assert!(run.status.success(), "{run:?}");
    // The step has dispatched another scan of its workflow.
    let next = String::from_utf8(run.stdout).unwrap();
    world.everscan(&["job", "wait", next.lines().last().unwrap()]);
    let keep = world.json(&["scan", "jobs", "files", "keep"]);
    let keep = keep["items"][0]["id"].as_str().unwrap();
    world.everscan(&["job", "download", "-j", keep, "-o", "."]);
    let artifact = std::fs::read(world.path("sorted.zip")).unwrap();
    world.everscan(&[
        "job",
        "artifact",
        "download",
        "-j",
        keep,
        "-a",
        "sorted",
        "-o",
        "again.zip",
    ]);
    assert_eq!(std::fs::read(world.path("again.zip")).unwrap(), artifact);
    assert_eq!(
        world.everscan(&["blob", "cat", "results/sorted.txt"]),
        "a\nb\n"
    );

    let twice = [
        "blob",
        "upload",
        "--src",
        "names.txt",
        "--dst",
        "input/",
        "--no-replace",
    ];
    refused(
        &world.output("everscan", &twice),
        1,
        "is not what the request expects",
    );
    world.everscan(&["blob", "cp", "-r", "results", "archive/2026"]);
    world.everscan(&["blob", "mv", "input/names.txt", "archive/"]);
    assert_eq!(paths(&world, &[]), ["archive/", "results/"]);
    assert_eq!(
        paths(&world, &["archive", "--recursive"]),
        ["archive/2026/sorted.txt", "archive/names.txt"]
    );
    world.everscan(&["blob", "mv", "archive", "old"]);
    let blob = world.json(&["blob", "stat", "old/names.txt"]);
    assert_eq!(blob["size"], 4);
    refused(
        &world.output("everscan", &["blob", "rm", "old"]),
        2,
        "old is a folder",
    );
    refused(
        &world.output("everscan", &["blob", "cat", "old/x"]),
        7,
        "there is no blob `old/x`",
    );
    let elsewhere = ["blob", "cat", "old/x", "--project", "nothing"];
    refused(
        &world.output("everscan", &elsewhere),
        8,
        "there is no project `nothing`",
    );
    let replace = |sha256: &str| {
        let upload = ["blob", "upload", "--src", "names.txt", "--dst", "old/"];
        world.output("everscan", &[&upload[..], &["--if-match", sha256]].concat())
    };
    let sha256 = blob["sha256"].as_str().unwrap();
    assert!(replace(sha256).status.success());
    refused(
        &replace(&"0".repeat(64)),
        1,
        "is not what the request expects",
    );
    let gone = world.everscan(&["blob", "rm", "-r", "old", "--dry-run"]);
    assert_eq!(gone, "old/2026/sorted.txt\nold/names.txt\n");

    let link = world.everscan(&["blob", "link", "old/names.txt"]);
    world.kill_daemon();
    world.start_daemon();
    let (address, path) = link
        .trim()
        .strip_prefix("http://")
        .unwrap()
        .split_once('/')
        .unwrap();
    let mut stream = std::net::TcpStream::connect(address).unwrap();
    write!(stream, "GET /{path} HTTP/1.0\r\nhost: {address}\r\n\r\n").unwrap();
    let mut read = String::new();
    stream.read_to_string(&mut read).unwrap();
    assert!(
        read.starts_with("HTTP/1.0 200") && read.ends_with("\r\n\r\nb\na\n"),
        "{read}"
    );
    assert_eq!(
        world.everscan(&["blob", "cat", "old/2026/sorted.txt"]),
        "a\nb\n"
    );
    let backup = world.path("backup").display().to_string();
    let state = world.path("state").display().to_string();
    let made = world.output("everscand", &["backup", &backup, "--state-dir", &state]);
    assert!(made.status.success(), "{made:?}");
    world.everscan(&["blob", "rm", "-r", "old"]);
    assert_eq!(paths(&world, &[]), ["results/"]);
    world.stop_runner();
    world.stop_daemon();
    for folder in [&state, &backup] {
        let checked = world.output("everscand", &["fsck", "--state-dir", folder]);
        assert!(checked.status.success(), "{checked:?}");
    }
    let kept = std::fs::read_dir(format!("{backup}/blobs")).unwrap().next();
    let kept = kept.unwrap().unwrap().path().join("old/names.txt");
    assert_eq!(std::fs::read(kept).unwrap(), b"b\na\n");
}

#[test]
fn a_folder_is_synced_to_blobs_and_back() {
    let mut world = World::new();
    world.init_repository();
    world.start_daemon();
    let here = |below: &str| world.path("here").join(below);
    std::fs::create_dir_all(here("deep/er")).unwrap();
    for (name, text) in [("a b.txt", "1"), ("deep/%2F.txt", "2"), ("deep/er/c", "3")] {
        std::fs::write(here(name), text).unwrap();
    }
    let said = |arguments: &[&str]| {
        let output = world.output("everscan", &[&["blob", "sync"], arguments].concat());
        assert!(output.status.success(), "{output:?}");
        String::from_utf8(output.stderr).unwrap()
    };
    let up = ["here", "blob:kept"];
    assert_eq!(said(&up), "3 sent, 0 the same already, 0 removed\n");
    std::fs::write(here("a b.txt"), "4").unwrap();
    std::fs::remove_file(here("deep/er/c")).unwrap();
    assert_eq!(said(&up), "1 sent, 1 the same already, 0 removed\n");
    let dry = ["here", "blob:kept", "--delete", "--dry-run"];
    assert_eq!(
        said(&dry),
        "0 would be sent, 2 the same already, 1 would be removed\n"
    );
    let delete = ["here", "blob:kept", "--delete"];
    assert_eq!(said(&delete), "0 sent, 2 the same already, 1 removed\n");
    std::fs::create_dir(world.path("there")).unwrap();
    std::fs::write(world.path("there/stray"), "x").unwrap();
    let down = ["blob:kept", "there", "--delete"];
    assert_eq!(said(&down), "2 sent, 0 the same already, 1 removed\n");
    assert_eq!(said(&down), "0 sent, 2 the same already, 0 removed\n");
    for (name, text) in [("a b.txt", "4"), ("deep/%2F.txt", "2")] {
        let there = std::fs::read(world.path("there").join(name)).unwrap();
        assert_eq!(there, text.as_bytes());
    }
    let both = ["blob", "sync", "here", "there"];
    refused(
        &world.output("everscan", &both),
        2,
        "exactly one of the two",
    );
    world.stop_daemon();
}
