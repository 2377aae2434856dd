//! The wall clock is wrong for a minute: 400 days ahead, then right again.

use std::path::Path;

use crate::disk_full::health;
use crate::support::{World, eventually, lines};

const YEAR: i64 = 400 * 86_400;

/// A schedule for every minute, a job that runs the whole time, and a job with an artifact that expires after an hour.
fn workflow(begun: &Path, gate: &Path) -> String {
    let (begun, gate) = (begun.display(), gate.display());
    format!(
        "
scans:
  tick:
    on: {{cron: '* * * * *'}}
    steps: [{{run: 'true'}}]
  long:
    on: {{dispatch: {{}}}}
    timeout: 1h
    steps: [{{run: 'echo begun >> {begun}; while [ ! -e {gate} ]; do sleep 0.02; done'}}]
  build:
    on: {{dispatch: {{}}}}
    steps: [{{run: 'echo it > out'}}]
    artifacts: [{{name: out, paths: [out], expires_in: 1h}}]
"
    )
}

#[test]
fn a_minute_of_a_wrong_clock_stops_no_schedule_and_ends_and_deletes_nothing() {
    let mut world = World::new();
    let (begun, gate) = (world.path("begun"), world.path("gate"));
    let offset = world.path("offset");
    let set = |seconds: i64| std::fs::write(&offset, seconds.to_string()).unwrap();
    let file = offset.to_str().unwrap().to_owned();
    world
        .daemon_variables
        .push(("EVERSCAND_CLOCK_OFFSET".to_owned(), file));
    world.daemon_config = Some("retention: {age: 30d}\n".to_owned());
    world.init_repository();
    world.push(&[("loop.yaml", Some(&workflow(&begun, &gate)))]);
    world.start_daemon();
    world.sync();
    world.start_runner(2);
    let made = world.succeed("loop", "build", &[]);
    let token = "token create --name day --scope job:read --expires-in 1d";
    let token = world.everscan(&token.split(' ').collect::<Vec<_>>());
    let long = world.dispatch("loop", "long", &[]);
    eventually("the long job", || !lines(&begun).is_empty());
    let works = |world: &World| {
        let mut show = world.command("everscan");
        show.args(["job", "show", "-j", &long, "--output", "json"]);
        let output = show.env("SERVICE_TOKEN", token.trim()).output().unwrap();
        let told = String::from_utf8_lossy(&output.stdout).into_owned();
        assert!(output.status.success(), "{output:?}");
        assert!(told.contains("\"running\""), "{told}");
        assert!(world.artifact(&made, "out").contains_key("out"));
    };
    works(&world);

    // Any commit makes the daemon check its schedules at once.
    let ticks = || world.jobs_of("loop", "tick").len();
    let before = ticks();
    set(YEAR);
    world.succeed("loop", "build", &[]);
    eventually("the slot of the wrong time", || ticks() > before);
    works(&world);
    world.succeed("loop", "build", &[]);

    set(0);
    world.succeed("loop", "build", &[]);
    let why = || world.everscan(&["scan", "why", "loop", "tick"]);
    eventually("the schedule to be told", || {
        why().contains("far ahead of the clock")
    });
    let told = health(&world);
    assert!(
        told.contains("clock_jumped") && told.contains("goes on from now"),
        "{told}"
    );
    assert!(world.daemon_log().contains("they go on from now"));
    works(&world);
    let before = ticks();
    // The next minute begins.
    set(60);
    world.succeed("loop", "build", &[]);
    eventually("the next slot", || ticks() > before);
    works(&world);

    world.stop_daemon();
    world.start_daemon();
    works(&world);
    std::fs::write(&gate, "").unwrap();
    assert_eq!(world.finished(&long)["state"], "succeeded");
}
