//! Failed and lost jobs are retried: until one succeeds, over a restart of the daemon, and after the loss of a runner.

use std::path::Path;

use chrono::{DateTime, TimeDelta, Utc};
use serde_json::Value;

use crate::support::{World, eventually, lines};

/// A scan that fails until it has run this many times, and an alarm for its failures.
fn fails(world: &World, until: usize, retry: &str) -> String {
    let ran = world.path("ran").display().to_string();
    format!(
        "scans:\n  build:\n    on: {{ dispatch: {{ inputs: {{ name: {{}} }} }} }}\n    retry: {retry}\n    env:\n      NAME: ${{{{ inputs.name          }}}}\n    steps:\n      - run: |\n          echo \"$SERVICE_JOB_ID\" >> {ran}\n          echo \"try of $NAME\"\n          [ $(wc -l <          {ran}) -ge {until} ]\n  alarm:\n    on: {{ expr: scans.build.has_failed() }}\n    steps: [ {{ run: echo alarm }} ]\n"
    )
}

fn moment(value: &Value) -> DateTime<Utc> {
    value.as_str().unwrap().parse().unwrap()
}

fn world_with(until: usize, retry: &str) -> World {
    let mut world = World::new();
    world.init_repository();
    world.push(&[("build.yaml", Some(&fails(&world, until, retry)))]);
    world.start_daemon();
    world.sync();
    world.start_runner(1);
    world
}

#[test]
fn a_job_that_fails_twice_is_followed_to_its_success() {
    let world = world_with(3, "{ attempts: 3, backoff: 1s }");
    let first = world.dispatch("build", "build", &["name=a & b"]);
    let waited = world.output("everscan", &["job", "wait", &first]);
    let said = String::from_utf8(waited.stderr).unwrap();
    assert_eq!(waited.status.code(), Some(0), "{said}");
    assert_eq!(String::from_utf8(waited.stdout).unwrap(), "succeeded\n");
    assert!(said.contains("(attempt 2 of 4)"), "{said}");
    assert!(said.contains("(attempt 3 of 4)"), "{said}");

    let ran = lines(&world.path("ran"));
    assert_eq!(ran.len(), 3);
    assert_eq!(ran[0], first);
    let jobs: Vec<_> = ran.iter().map(|job| world.finished(job)).collect();
    assert_eq!(jobs[0]["state"], "failed");
    assert_eq!(jobs[0]["retried_by"], ran[1]);
    assert_eq!(jobs[1]["retry_of"], ran[0]);
    assert_eq!(jobs[1]["reason"]["code"], "step_failed");
    assert_eq!(jobs[2]["state"], "succeeded");
    assert_eq!(jobs[2]["trigger"], "dispatch");
    assert_eq!(jobs[2]["inputs"], jobs[0]["inputs"]);
    assert!(jobs[2]["retried_by"].is_null());
    for (before, after, seconds) in [(0, 1, 1), (1, 2, 2)] {
        let pause = moment(&jobs[after]["started_at"]) - moment(&jobs[before]["finished_at"]);
        assert!(pause >= TimeDelta::seconds(seconds), "{pause}");
    }

    std::fs::remove_file(world.path("ran")).unwrap();
    let followed = world.output(
        "everscan",
        &[
            "scan", "dispatch", "build", "build", "--follow", "-i", "name=c",
        ],
    );
    assert_eq!(followed.status.code(), Some(0));
    let log = String::from_utf8(followed.stdout).unwrap();
    assert_eq!(log, "try of c\n".repeat(3));
    assert!(world.jobs_of("build", "alarm").is_empty());
}

#[test]
fn an_alarm_starts_once_after_the_last_retry_and_not_at_the_next_success() {
    let world = world_with(3, "{ attempts: 1, backoff: 1s }");
    let first = world.dispatch("build", "build", &["name=x"]);
    let last = world.finished(&first)["retried_by"].clone();
    let alarm = world.followed_by("build", "alarm");
    let shown = world.json(&["job", "show", &alarm]);
    assert_eq!(shown["causes"][0], last, "{shown}");
    world.succeed("build", "build", &["name=x"]);
    assert_eq!(world.jobs_of("build", "alarm"), [alarm]);
}

#[test]
fn a_pending_retry_survives_a_kill_of_the_daemon_and_a_cancel_ends_the_chain() {
    let mut world = world_with(2, "{ attempts: 1, backoff: 3s }");
    let first = world.dispatch("build", "build", &["name=x"]);
    eventually("the failure", || {
        world.json(&["job", "show", &first])["state"] == "failed"
    });
    world.kill_daemon();
    world.start_daemon();
    let retry = world.json(&["job", "show", &first])["retried_by"].clone();
    let retry = retry.as_str().unwrap();
    let waited = world.output("everscan", &["job", "wait", &first]);
    assert_eq!(waited.status.code(), Some(0), "{}", world.daemon_log());
    assert_eq!(lines(&world.path("ran")), [first.as_str(), retry]);

    std::fs::remove_file(world.path("ran")).unwrap();
    let slow = fails(&world, 2, "{ attempts: 5, backoff: 1h }");
    world.push(&[("build.yaml", Some(&slow))]);
    world.sync();
    let first = world.dispatch("build", "build", &["name=x"]);
    eventually("the failure", || {
        world.json(&["job", "show", &first])["state"] == "failed"
    });
    let retry = world.json(&["job", "show", &first])["retried_by"].clone();
    let retry = retry.as_str().unwrap();
    let shown = world.json(&["job", "show", retry]);
    assert_eq!(shown["waiting"]["code"], "retry_due", "{shown}");
    world.everscan(&["job", "cancel", "-j", retry]);
    let waited = world.output("everscan", &["job", "wait", &first]);
    assert_eq!(waited.status.code(), Some(4));
    assert!(world.finished(retry)["retried_by"].is_null());
}

#[test]
fn a_job_of_a_killed_runner_is_lost_and_its_retry_runs_on_the_next_one() {
    let mut world = World::new();
    let (ran, gate) = (world.path("ran"), world.path("gate"));
    let text = format!(
        "scans:\n  wait:\n    on: {{ dispatch: {{}} }}\n    retry: {{ attempts: 2, backoff: 1s }}\n    steps:\n      - run: echo \"$SERVICE_JOB_ID\" >>          {}; until [ -e {} ]; do sleep 0.05; done\n",
        ran.display(),
        gate.display()
    );
    world.init_repository();
    world.push(&[("wait.yaml", Some(&text))]);
    world.start_daemon();
    world.sync();
    world.start_runner(1);
    let first = world.dispatch("wait", "wait", &[]);
    eventually("the first attempt", || lines(&ran).len() == 1);
    world.kill_runner();
    // The new runner process reports no jobs, so the job is lost at once.
    world.run_runner();
    eventually("the retry", || lines(&ran).len() == 2);
    std::fs::write(&gate, "").unwrap();
    let waited = world.output("everscan", &["job", "wait", &first]);
    assert_eq!(waited.status.code(), Some(0), "{}", world.runner_log());
    let lost = world.finished(&first);
    assert_eq!(
        (&lost["state"], &lost["reason"]["code"]),
        (&"failed".into(), &"runner_lost".into())
    );
    assert_eq!(lost["retried_by"], lines(&ran)[1]);
}

#[test]
fn a_removed_runner_stops_its_job_at_once_and_the_retry_waits() {
    let mut world = World::new();
    let process = world.path("process");
    let text = format!(
        "scans:\n  wait:\n    on: {{ dispatch: {{}} }}\n    retry: {{ attempts: 1, backoff: 1s }}\n    steps:\n      - run: echo $$ > {}; exec sleep 600\n",
        process.display(),
    );
    world.init_repository();
    world.push(&[("wait.yaml", Some(&text))]);
    world.start_daemon();
    world.sync();
    world.start_runner(1);
    let first = world.dispatch("wait", "wait", &[]);
    eventually("the step", || lines(&process).len() == 1);
    let step = Path::new("/proc").join(&lines(&process)[0]);
    world.everscan(&["runner", "delete", "story"]);
    eventually("the end of the step", || !step.exists());
    let lost = world.json(&["job", "show", &first]);
    assert_eq!(lost["reason"]["code"], "runner_lost");
    let retry = world.json(&["job", "show", lost["retried_by"].as_str().unwrap()]);
    assert_eq!(retry["waiting"]["code"], "retry_due", "{retry}");
    let pause = moment(&retry["not_before"]) - moment(&lost["finished_at"]);
    // The end and the pause use different clocks.
    assert!(pause > TimeDelta::seconds(119), "{pause}");
}
