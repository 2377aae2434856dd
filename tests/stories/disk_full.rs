//! The disk of the state folder is full: nothing new starts, nothing is lost, and free space is enough to recover.

use std::io::{Read, Write};
use std::net::TcpStream;

use crate::machine::{Memory, skip};
use crate::support::{World, eventually, lines};

/// The daemon's response to `/healthz`, with its head.
pub(crate) fn health(world: &World) -> String {
    let address = world.url().strip_prefix("http://").unwrap();
    let mut stream = TcpStream::connect(address).unwrap();
    let request = format!("GET /healthz HTTP/1.1\r\nHost: {address}\r\nConnection: close\r\n\r\n");
    stream.write_all(request.as_bytes()).unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).unwrap();
    assert!(answer.starts_with("HTTP/1.1 200"), "{answer}");
    answer
}

#[test]
fn a_full_disk_refuses_new_jobs_and_running_jobs_lose_nothing() {
    let mut world = World::new();
    std::fs::create_dir(world.path("state")).unwrap();
    let _disk = match Memory::mount(&world.path("state"), "size=96m,mode=700") {
        Ok(disk) => disk,
        Err(reason) => return skip("a full disk", &reason),
    };
    let (begun, gate) = (world.path("begun"), world.path("gate"));
    let text = format!(
        "scans:\n  wait:\n    on:\n      dispatch: {{}}\n    steps:\n      - run: |\n          echo \"$SERVICE_JOB_ID\" >> {}\n          while [ ! -e {} ]; do sleep 0.02; done\n          echo ended\n          echo over >> {}\n",
        begun.display(),
        gate.display(),
        begun.display()
    );
    world.init_repository();
    world.push(&[("wait.yaml", Some(&text))]);
    world.daemon_config = Some("heartbeat: { url: 'http://127.0.0.1:1/', every: 1s }\n".to_owned());
    world.start_daemon();
    world.sync();
    world.start_runner(1);
    let job = world.dispatch("wait", "wait", &[]);
    eventually("the step", || !lines(&begun).is_empty());

    let filler = world.path("state/filler");
    let mut file = std::fs::File::create(&filler).unwrap();
    let piece = vec![b'x'; 64 * 1024];
    while file.write_all(&piece).is_ok() {}
    while file.write_all(b"x").is_ok() {}
    drop(file);
    // The free space is measured at most once a second.
    let mut refused = None;
    eventually("the refusal", || {
        let output = world.output("everscan", &["scan", "dispatch", "wait", "wait"]);
        refused = (!output.status.success())
            .then(|| String::from_utf8_lossy(&output.stderr).into_owned());
        refused.is_some()
    });
    let health = health(&world);
    assert!(
        health.contains("disk_full") && health.contains("reason"),
        "{health}"
    );
    let refused = refused.unwrap();
    assert!(
        refused.contains("full") && refused.contains("free some space"),
        "{refused}"
    );

    eventually("the end of heartbeats", || {
        world.daemon_log().contains("the heartbeat stops")
    });

    // A running job continues and ends: the journal has room for its end and the end of its log.
    std::fs::write(&gate, "").unwrap();
    let shown = world.finished(&job);
    assert_eq!(
        shown["state"],
        "succeeded",
        "{shown}\n{}\n{}",
        world.runner_log(),
        world.daemon_log()
    );
    assert_eq!(lines(&begun).len(), 2);
    let log = world.log(&job);
    assert!(log.is_empty() || log == "ended\n", "{log}");
    std::fs::remove_file(&filler).unwrap();
    eventually("the log", || world.log(&job) == "ended\n");

    let mut healed = None;
    eventually("room again", || {
        let output = world.output("everscan", &["scan", "dispatch", "wait", "wait"]);
        healed = output
            .status
            .success()
            .then(|| String::from_utf8_lossy(&output.stdout).trim().to_owned());
        healed.is_some()
    });
    assert_eq!(world.finished(&healed.unwrap())["state"], "succeeded");
    let health = self::health(&world);
    assert!(health.ends_with(r#"{"status":"ok"}"#), "{health}");
}
