//! Checks a state folder after a kill, damages it by hand, repairs it, uses it again, and undoes the repair.

use std::path::PathBuf;
use std::process::Output;

use crate::support::World;

const WORKFLOW: &str = "
scans:
  greet:
    on: {dispatch: {}}
    steps:
      - run: echo hello
";

fn fsck(world: &World, more: &[&str]) -> (Option<i32>, String) {
    let state = world.path("state");
    let state = state.to_str().unwrap().to_owned();
    let arguments = [&["fsck", "--state-dir", &state], more].concat();
    let Output { status, stdout, .. } = world.output("everscand", &arguments);
    (status.code(), String::from_utf8(stdout).unwrap())
}

/// The record of a job.
fn record(world: &World, job: &str) -> PathBuf {
    let state = world.path("state").to_str().unwrap().to_owned();
    let shown = world.output("everscand", &["state", "show", job, "--state-dir", &state]);
    let shown = String::from_utf8(shown.stdout).unwrap();
    world.path("state").join(shown.lines().next().unwrap())
}

#[test]
fn a_killed_daemon_leaves_a_clean_state_and_a_damaged_one_is_repaired() {
    let mut world = World::with_workflow("hello.yaml", WORKFLOW);
    let jobs: Vec<String> = (0..4)
        .map(|_| world.dispatch("hello", "greet", &[]))
        .collect();
    let (code, printed) = fsck(&world, &[]);
    assert_eq!(code, Some(0), "while the daemon runs: {printed}");
    world.kill_daemon();
    let (code, printed) = fsck(&world, &[]);
    assert_eq!(code, Some(0), "after the kill: {printed}");
    world.start_daemon();
    jobs.iter().for_each(|job| drop(world.finished(job)));
    let (code, printed) = fsck(&world, &["--repair"]);
    assert_eq!(code, Some(2), "a state in use is not repaired: {printed}");
    world.stop_daemon();

    let damaged = record(&world, &jobs[1]);
    let text = std::fs::read_to_string(&damaged).unwrap();
    let changed = text.replace("\"greet\"", "\"great\"");
    std::fs::write(&damaged, &changed).unwrap();
    let (code, printed) = fsck(&world, &["--output", "json"]);
    assert_eq!(code, Some(1), "{printed}");
    let report: serde_json::Value = serde_json::from_str(&printed).unwrap();
    assert_eq!(report["findings"][0]["code"], "record_checksum", "{report}");
    assert_eq!(report["summary"]["errors"], 1, "{report}");

    let (code, printed) = fsck(&world, &["--repair", "--output", "json"]);
    assert_eq!(code, Some(0), "{printed}");
    assert!(!damaged.exists());
    let report: serde_json::Value = serde_json::from_str(&printed).unwrap();
    world.start_daemon();
    let (_, kept) = (jobs[1].clone(), world.finished(&jobs[2]));
    assert_eq!(kept["state"], "succeeded");
    world.stop_daemon();

    for command in report["repaired"]["undo"].as_array().unwrap() {
        let done = world.output("sh", &["-c", command.as_str().unwrap()]);
        assert!(done.status.success(), "{command}");
    }
    assert_eq!(std::fs::read_to_string(&damaged).unwrap(), changed);
    std::fs::write(&damaged, text).unwrap();
    let (code, printed) = fsck(&world, &[]);
    assert_eq!(code, Some(0), "{printed}");
}
