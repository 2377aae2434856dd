//! A job that hangs: its runner ends it at the timeout of its scan, and it fails.

use chrono::{DateTime, TimeDelta, Utc};
use serde_json::Value;

use crate::support::{World, lines};

/// Each attempt writes its steps to `order`, and hangs.
fn workflow(world: &World) -> String {
    let order = world.path("order").display().to_string();
    format!(
        "scans:
  backup:
    on: {{ dispatch: {{}} }}
    timeout: 4s
    retry: {{ attempts: 1, backoff: 1s }}
    steps:
      - run: |
          echo hangs >> {order}
          echo half > report
          sleep 600
      - run: echo never >> {order}
      - run: echo cleans >> {order}; sleep 1; echo cleaned >> {order}
        if: always
    artifacts:
      - {{ name: report, paths: [report], upload_on: failure }}
      - {{ name: result, paths: [report] }}
"
    )
}

fn moment(value: &Value) -> DateTime<Utc> {
    value.as_str().unwrap().parse().unwrap()
}

#[test]
fn a_hanging_job_times_out_keeps_its_report_and_is_retried_after_its_end() {
    let mut world = World::new();
    world.init_repository();
    world.push(&[("nightly.yaml", Some(&workflow(&world)))]);
    world.start_daemon();
    world.sync();
    // The capacity would allow a retry to run at the same time.
    world.start_runner(2);
    let first = world.dispatch("nightly", "backup", &[]);
    let waited = world.output("everscan", &["job", "wait", &first]);
    assert_eq!(waited.status.code(), Some(1), "{}", world.runner_log());
    assert_eq!(String::from_utf8(waited.stdout).unwrap(), "failed\n");

    let shown = world.json(&["job", "show", &first]);
    let retry = shown["retried_by"].as_str().unwrap().to_owned();
    let retried = world.json(&["job", "show", &retry]);
    for (job, shown) in [(&first, &shown), (&retry, &retried)] {
        assert_eq!(shown["state"], "failed", "{shown}");
        assert_eq!(shown["reason"]["code"], "timed_out", "{shown}");
        let steps = shown["steps"].as_array().unwrap().iter();
        let steps: Vec<_> = steps.map(|step| &step["status"]).collect();
        assert_eq!(steps, ["cancelled", "cancelled", "succeeded"]);
        let artifacts = shown["artifacts"].as_array().unwrap();
        assert_eq!(artifacts.len(), 1, "{shown}");
        assert_eq!(world.artifact(job, "report")["report"], b"half\n");
        let took = moment(&shown["finished_at"]) - moment(&shown["started_at"]);
        assert!(took >= TimeDelta::seconds(4), "{took}");
        assert!(
            took < TimeDelta::seconds(100),
            "its runner did not end it in time: {took}"
        );
    }
    assert!(retried["retried_by"].is_null(), "{retried}");
    let pause = moment(&retried["started_at"]) - moment(&shown["finished_at"]);
    assert!(pause >= TimeDelta::seconds(1), "{pause}");
    let each = ["hangs", "cleans", "cleaned"];
    assert_eq!(lines(&world.path("order")), [each, each].concat());
}
