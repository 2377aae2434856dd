//! A cancelled job frees its slot, even if it prints without end or ignores SIGTERM.

use std::fs::File;
use std::io::{BufRead as _, BufReader, Read as _, Seek as _, SeekFrom};
use std::process::Stdio;

use crate::support::World;

const WORKFLOW: &str = "\
scans:
  prints:
    on: { dispatch: {} }
    steps:
      - run: yes
  prints_on:
    on: { dispatch: {} }
    steps:
      - run: trap '' TERM; yes
  meets:
    on:
      dispatch:
        inputs:
          mine: { required: true }
          other: { required: true }
    env:
      MINE: ${{ inputs.mine }}
      OTHER: ${{ inputs.other }}
    steps:
      - run: touch ../$MINE; until [ -e ../$OTHER ]; do sleep 0.05; done
";

#[test]
fn cancelled_jobs_that_print_without_end_free_their_slots() {
    let world = World::with_workflow("yes.yaml", WORKFLOW);
    let cancelled = ["prints", "prints_on"].map(|scan| world.dispatch("yes", scan, &[]));
    for job in &cancelled {
        let mut follow = world.command("everscan");
        follow.args(["job", "logs", "-j", job, "--follow"]);
        let mut follow = follow.stdout(Stdio::piped()).spawn().unwrap();
        let mut line = String::new();
        let mut lines = BufReader::new(follow.stdout.take().unwrap());
        lines.read_line(&mut line).unwrap();
        follow.kill().unwrap();
        follow.wait().unwrap();
        assert_eq!(line, "y\n");
    }
    for job in &cancelled {
        world.everscan(&["job", "cancel", "-j", job]);
    }
    // Each job ends only while the other job runs: so both slots are free.
    let next = [("a", "b"), ("b", "a")].map(|(mine, other)| {
        let (mine, other) = (format!("mine={mine}"), format!("other={other}"));
        world.dispatch("yes", "meets", &[&mine, &other])
    });
    for job in &next {
        let shown = world.finished(job);
        assert_eq!(shown["state"], "succeeded", "{}", world.runner_log());
    }
    for job in &cancelled {
        assert_eq!(world.finished(job)["state"], "cancelled");
        let last = last_line(&world, job);
        let log = world.runner_log();
        let logged = |words| {
            log.lines()
                .any(|line| line.contains(job) && line.contains(words))
        };
        // The log is complete, or has a line of the runner about the missing part.
        let is_logged = if last.contains("the end of this log is cut") {
            logged("cut the end of a log")
        } else {
            // The response to a report may inform the runner of the end before the cancel does.
            let reasons = ["the job was cancelled", "the daemon has closed the job"];
            reasons.iter().any(|reason| last.contains(reason)) || logged("the end of a log is lost")
        };
        assert!(is_logged, "{last}\n{log}");
    }
}

/// The last record of a log that is too long to read completely.
fn last_line(world: &World, job: &str) -> String {
    let found = world.output(
        "find",
        &["state/jobs", "-path", &format!("*{job}/log.jsonl")],
    );
    let path = String::from_utf8(found.stdout).unwrap();
    let mut file = File::open(world.path(path.trim())).unwrap();
    file.seek(SeekFrom::End(-600)).unwrap();
    let mut end = String::new();
    file.read_to_string(&mut end).unwrap();
    end.lines().last().unwrap().to_owned()
}
