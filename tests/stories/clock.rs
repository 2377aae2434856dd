//! The wall clock is set: it is wrong for a minute, or is corrected, and then the daemon is killed.

use std::io::{Read, Write};
use std::net::TcpStream;
use std::path::Path;

use crate::disk_full::health;
use crate::support::{World, eventually, lines};

const YEAR: i64 = 400 * 86_400;

/// Schedules for every minute and every midnight, a job that runs the whole time, and a job with an artifact that expires after an hour.
fn workflow(begun: &Path, gate: &Path) -> String {
    let (begun, gate) = (begun.display(), gate.display());
    format!(
        "
scans:
  tick:
    on: {{cron: ['* * * * *', '0 0 * * *']}}
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
fn a_minute_of_a_wrong_clock_stops_no_schedule_ends_no_job_and_deletes_no_file() {
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
        let printed = String::from_utf8_lossy(&output.stdout).into_owned();
        assert!(output.status.success(), "{output:?}");
        assert!(printed.contains("\"running\""), "{printed}");
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
    eventually("the reason of the schedule", || {
        why().contains("far ahead of the clock")
    });
    assert!(why().contains("by `* * * * *`: made job"), "{}", why());
    let printed = health(&world);
    assert!(
        printed.contains("clock_jumped") && printed.contains("restarts from now"),
        "{printed}"
    );
    assert!(world.daemon_log().contains("they continue from now"));
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

/// Dispatches the scan `build`, always with the same key. Returns the job's id.
fn dispatch_once(world: &World) -> String {
    let address = world.address();
    let token = world.token().unwrap();
    let path = "/v0/workflows/loop/scans/build/dispatch";
    let mut stream = TcpStream::connect(&address).unwrap();
    write!(
        stream,
        "POST {path} HTTP/1.0\r\nhost: {address}\r\nauthorization: Bearer {token}\r\n\
         idempotency-key: once\r\ncontent-type: application/json\r\ncontent-length: 2\r\n\r\n{{}}"
    )
    .unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).unwrap();
    let (_, body) = answer.split_once("\r\n\r\n").unwrap();
    let body: serde_json::Value = serde_json::from_str(body).unwrap();
    let id = body["job"]["id"].as_str();
    id.unwrap_or_else(|| panic!("{answer}")).to_owned()
}

#[test]
fn a_kill_after_a_clock_was_corrected_keeps_all_ends() {
    for by in [5 * 3_600, -5 * 3_600] {
        let mut world = World::new();
        let (begun, gate) = (world.path("begun"), world.path("gate"));
        let offset = world.path("offset");
        let set = |seconds: i64| std::fs::write(&offset, seconds.to_string()).unwrap();
        let file = offset.to_str().unwrap().to_owned();
        let variable = ("EVERSCAND_CLOCK_OFFSET".to_owned(), file);
        world.daemon_variables.push(variable);
        world.init_repository();
        world.push(&[("loop.yaml", Some(&workflow(&begun, &gate)))]);
        world.start_daemon();
        world.sync();
        world.start_runner(2);
        let long = world.dispatch("loop", "long", &[]);
        eventually("the long job", || !lines(&begun).is_empty());
        let once = dispatch_once(&world);
        let create = "token create --name short --scope job:read --expires-in 3h";
        let token = world.everscan(&create.split(' ').collect::<Vec<_>>());
        set(by);
        // The check for `/healthz` notices the jump, and soon it is on disk.
        assert!(health(&world).contains("clock_jumped"));
        let note = world.path("state/clock.json");
        eventually("the note of the jump", || {
            health(&world).contains("clock_jumped") && note.exists()
        });
        for _ in 0..2 {
            world.kill_daemon();
            world.start_daemon();
            assert_eq!(dispatch_once(&world), once, "{by}");
            let mut show = world.command("everscan");
            show.args(["job", "show", "-j", &long, "--output", "json"]);
            let output = show.env("SERVICE_TOKEN", token.trim()).output().unwrap();
            let printed = String::from_utf8_lossy(&output.stdout).into_owned();
            assert!(output.status.success(), "{output:?}");
            assert!(printed.contains("\"running\""), "{printed}");
            assert!(
                health(&world).contains("clock_jumped"),
                "the jump is not accepted yet"
            );
        }
        world.succeed("loop", "build", &[]);
        std::fs::write(&gate, "").unwrap();
        assert_eq!(world.finished(&long)["state"], "succeeded");
        world.stop_runner();
        world.stop_daemon();
        assert!(!note.exists(), "a stop stores all ends");
        let state = world.path("state").display().to_string();
        for repair in [None, Some("--repair")] {
            let arguments = ["fsck", "--state-dir", &state];
            let arguments: Vec<_> = arguments.into_iter().chain(repair).collect();
            let checked = world.output("everscand", &arguments);
            assert!(checked.status.success(), "{checked:?}");
        }
        let kept = std::fs::read_dir(world.path("state/quarantine")).unwrap();
        assert_eq!(kept.count(), 0, "no file was moved to the quarantine");
    }
}
