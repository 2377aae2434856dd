//! Steps that run after a failure, and after a cancel.

use std::io::{BufRead as _, BufReader};
use std::process::Stdio;

use crate::support::{World, eventually};

const WORKFLOW: &str = "\
scans:
  holds:
    on:
      dispatch:
        inputs:
          fails: { type: bool }
    steps:
      - run: touch ../held; echo held
      - run: exit 3
        if: inputs.fails
      - run: sleep 600
      - run: echo why > report.txt
        if: '!ok'
      - run: rm ../held; echo released
        if: always
    artifacts:
      - name: report
        paths: [report.txt]
        upload_on: failure
";

#[test]
fn a_failed_job_cleans_up_and_leaves_a_report() {
    let world = World::with_workflow("lock.yaml", WORKFLOW);
    let job = world.dispatch("lock", "holds", &["fails=true"]);
    let shown = world.finished(&job);
    assert_eq!(shown["state"], "failed", "{shown}");
    assert_eq!(shown["reason"]["code"], "step_failed", "{shown}");
    let statuses = ["succeeded", "failed", "skipped", "succeeded", "succeeded"];
    let steps = shown["steps"].as_array().unwrap();
    let found: Vec<_> = steps.iter().map(|step| &step["status"]).collect();
    assert_eq!(found, statuses);
    assert_eq!(world.artifact(&job, "report")["report.txt"], b"why\n");
    assert!(!world.path("work/held").exists());
}

#[test]
fn a_cancelled_job_cleans_up_and_logs_it() {
    let world = World::with_workflow("lock.yaml", WORKFLOW);
    let job = world.dispatch("lock", "holds", &[]);
    let mut follow = world.command("everscan");
    follow.args(["job", "logs", "-j", &job, "--follow"]);
    let mut follow = follow.stdout(Stdio::piped()).spawn().unwrap();
    let mut line = String::new();
    let mut lines = BufReader::new(follow.stdout.take().unwrap());
    lines.read_line(&mut line).unwrap();
    follow.kill().unwrap();
    follow.wait().unwrap();
    assert_eq!(line, "held\n");
    assert!(world.path("work/held").exists());
    world.everscan(&["job", "cancel", "-j", &job]);
    assert_eq!(world.finished(&job)["state"], "cancelled");
    eventually("the clean-up", || !world.path("work/held").exists());
    eventually("its line in the log", || {
        world.log(&job).contains("released")
    });
    let shown = world.json(&["job", "show", "-j", &job]);
    assert!(shown["artifacts"].as_array().unwrap().is_empty(), "{shown}");
    // The slot is free.
    let next = world.dispatch("lock", "holds", &["fails=true"]);
    assert_eq!(world.finished(&next)["state"], "failed");
}
