//! Scans that start each other for ever: `validate` warns, and the daemon slows them down.

use chrono::{DateTime, TimeDelta, Utc};
use serde_json::Value;

use crate::support::{World, eventually};

/// The minimum pause is 100 ms, also if the configuration sets 0. The tolerance allows small
/// corrections of the wall clock.
const PAUSE: TimeDelta = TimeDelta::milliseconds(90);

fn file(b: &str, c: &str) -> String {
    format!(
        "scans:
  a: {{ on: {{ dispatch: {{}} }}, steps: [ {{ run: 'true' }} ] }}
  b: {{ on: {{ expr: {b} }}, steps: [ {{ run: 'true' }} ] }}
  c: {{ on: {{ expr: {c} }}, steps: [ {{ run: 'true' }} ] }}
"
    )
}

fn moment(value: &Value) -> DateTime<Utc> {
    value.as_str().unwrap().parse().unwrap()
}

/// Starts the loop, waits for ten laps, and checks the distances of all jobs from the second lap on.
fn assert_slowed_down(b: &str, c: &str) {
    let text = file(b, c);
    let mut world = World::new();
    world.init_repository();
    world.push(&[("loop.yaml", Some(&text))]);
    world.daemon_config = Some("cycle_pause: 0\n".to_owned());
    world.start_daemon();
    world.sync();
    let path = world.path("repository/workflows/loop.yaml");
    let validated = world.output("everscan", &["validate", path.to_str().unwrap()]);
    let said = String::from_utf8_lossy(&validated.stdout).into_owned()
        + &String::from_utf8_lossy(&validated.stderr);
    assert!(said.contains("endless-cycle"), "{said}");
    world.everscan(&["var", "set", "X", "1"]);
    world.start_runner(2);
    world.dispatch("loop", "a", &[]);
    let list = ["job", "list", "--workflow", "loop", "--limit", "200"];
    let mut jobs = Value::Null;
    eventually("the tenth lap", || {
        jobs = world.json(&list);
        let jobs = jobs["items"].as_array().unwrap();
        jobs.iter().any(|job| job["hops"].as_u64() >= Some(20))
    });
    let jobs = jobs["items"].as_array().unwrap();
    for scan in ["b", "c"] {
        let of_scan = jobs.iter().filter(|job| job["scan"] == scan);
        let mut later: Vec<&Value> = of_scan
            .filter(|job| job["hops"].as_u64() >= Some(2) && !job["started_at"].is_null())
            .collect();
        later.sort_by_key(|job| moment(&job["started_at"]));
        for job in &later {
            let waited = moment(&job["started_at"]) - moment(&job["created_at"]);
            assert!(waited >= PAUSE, "{waited}: {job}");
        }
        for two in later.windows(2) {
            let distance = moment(&two[1]["started_at"]) - moment(&two[0]["started_at"]);
            assert!(distance >= PAUSE, "{distance}: {}", two[1]);
        }
        assert!(later.len() > 5, "{scan} goes on: {later:?}");
    }
}

#[test]
fn cycles_of_expressions_without_names_and_with_vars_are_slowed_down() {
    assert_slowed_down("'true'", "\"vars.X == '1'\"");
}

#[test]
fn cycles_of_expressions_about_states_and_sizes_are_slowed_down() {
    assert_slowed_down(
        "\"scans.c[0].state == 'succeeded' || scans.a.is_available()\"",
        "size(scans.b) >= 0",
    );
}
