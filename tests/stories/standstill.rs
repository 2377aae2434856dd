//! The daemon stands still for longer than a runner may be silent, as on a machine that is moved or paused.

use std::thread::sleep;
use std::time::Duration;

use crate::support::{World, eventually, lines, signal};

/// Longer than the two minutes after which a silent runner loses its jobs. No option shortens this time.
const STANDSTILL: Duration = Duration::from_secs(125);

#[test]
fn a_daemon_that_stood_still_for_two_minutes_loses_no_job() {
    let mut world = World::new();
    let (begun, gate) = (world.path("begun"), world.path("gate"));
    let text = format!(
        "scans:\n  long:\n    on: {{ dispatch: {{}} }}\n    steps:\n      - run: echo begun >> {}; until [ -e {} ]; do sleep 0.05; done\n",
        begun.display(),
        gate.display()
    );
    world.init_repository();
    world.push(&[("long.yaml", Some(&text))]);
    world.start_daemon();
    world.sync();
    world.start_runner(2);
    let jobs = [(); 2].map(|()| world.dispatch("long", "long", &[]));
    eventually("both jobs", || lines(&begun).len() == 2);
    signal(world.daemon_pid(), "STOP");
    sleep(STANDSTILL);
    signal(world.daemon_pid(), "CONT");
    eventually("a line about it", || {
        world.daemon_log().contains("stood still")
    });
    std::fs::write(&gate, "").unwrap();
    for job in &jobs {
        let shown = world.finished(job);
        assert_eq!(
            shown["state"],
            "succeeded",
            "{shown}\n{}",
            world.daemon_log()
        );
    }
    // The runner gets work as before.
    world.succeed("long", "long", &[]);
}
