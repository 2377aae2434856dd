//! The demonstration works as the README describes.

use std::io::{BufRead, BufReader, Read};
use std::path::{Path, PathBuf};
use std::process::{Child, Stdio};

use crate::support::{World, eventually, processes_of, signal};

/// Starts a demonstration and waits until it prints `words`.
fn start_and_wait_for(world: &World, words: &str) -> (Child, PathBuf) {
    let temporary = world.path("tmp");
    std::fs::create_dir(&temporary).unwrap();
    let mut child = world
        .command("everscand")
        .args(["demo", "--keep"])
        .env("TMPDIR", &temporary)
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let stdout = child.stdout.as_mut().unwrap();
    let mut lines = BufReader::new(stdout).lines().map_while(Result::ok);
    assert!(lines.any(|line| line.contains(words)), "no `{words}`");
    assert!(!processes_of(&temporary).is_empty());
    (child, temporary)
}

fn is_gone(temporary: &Path) {
    assert_eq!(processes_of(temporary), Vec::<String>::new());
    let left: Vec<_> = std::fs::read_dir(temporary).unwrap().collect();
    assert!(left.is_empty(), "{left:?}");
}

fn ends_by(name: &str, words: &str, code: i32) {
    let world = World::new();
    let (mut child, temporary) = start_and_wait_for(&world, words);
    signal(child.id(), name);
    let mut said = String::new();
    let stderr = child.stderr.as_mut().unwrap();
    stderr.read_to_string(&mut said).unwrap();
    assert_eq!(child.wait().unwrap().code(), Some(code), "{said}");
    assert_eq!(said.lines().count(), 1, "{said}");
    assert!(said.contains("nothing of it is left"), "{said}");
    is_gone(&temporary);
}

#[test]
fn a_signal_ends_the_demo_and_all_its_processes() {
    ends_by("INT", "scan dispatch", 130);
}

#[test]
fn a_signal_ends_a_kept_demo_and_all_its_processes() {
    ends_by("TERM", "/login/evi_", 143);
}

#[test]
fn the_programs_of_a_killed_demo_end() {
    let world = World::new();
    let (mut child, temporary) = start_and_wait_for(&world, "scan dispatch");
    child.kill().unwrap();
    child.wait().unwrap();
    eventually("the end of its programs", || {
        processes_of(&temporary).is_empty()
    });
}

#[test]
fn the_demo_shows_the_loop_and_leaves_nothing_behind() {
    let world = World::new();
    let temporary = world.path("tmp");
    std::fs::create_dir(&temporary).unwrap();
    let output = world
        .command("everscand")
        .arg("demo")
        .env("TMPDIR", &temporary)
        .output()
        .unwrap();
    let said = String::from_utf8_lossy(&output.stdout);
    assert!(
        output.status.success(),
        "{said}\n{}",
        String::from_utf8_lossy(&output.stderr)
    );
    for words in [
        "inventory succeeded",
        "scans.inventory.has_news() = true",
        "serde_derive 1.0.229",
        "upgraded\titoa\t1.0.18\t1.0.19",
        "dependency-watch.yaml:",
        "unknown-scan",
        "report (1 file)",
        "job.json",
        "Done.",
        "everscand demo --keep",
    ] {
        assert!(said.contains(words), "`{words}` is missing in: {said}");
    }
    // An earlier line introduces each job, so that readers know it.
    for (at, _) in said.match_indices(" -j ") {
        let (before, after) = said.split_at(at);
        let job = after[" -j ".len()..].split_whitespace().next().unwrap();
        assert!(before.contains(job), "{job} in: {said}");
    }
    let left: Vec<_> = std::fs::read_dir(&temporary).unwrap().collect();
    assert!(left.is_empty(), "{left:?}");
}
