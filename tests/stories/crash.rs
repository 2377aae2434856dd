//! Kills the daemon at critical moments. No job is lost or runs twice.

use std::path::{Path, PathBuf};

use client::{Client, Secret};
use uuid::Uuid;
use wire::{JobAssigned, Message, Poll, RegisterRunner};

use crate::support::{World, eventually, lines};

/// Each job first appends its id to a file, so that a second execution would show.
fn workflow(ran: &Path, gate: &Path) -> String {
    format!(
        r#"
scans:
  count:
    on:
      dispatch: {{}}
    steps:
      - run: |
          echo "$SERVICE_JOB_ID" >> {ran}
          for n in $(seq 1 500); do echo "before $n"; done
          while [ ! -e {gate} ]; do sleep 0.02; done
          for n in $(seq 1 500); do echo "after $n"; done
      - run: |
          echo "second step"
          touch {passed}
"#,
        ran = ran.display(),
        gate = gate.display(),
        passed = passed(gate).display()
    )
}

/// A file that the last step creates at its end.
fn passed(gate: &Path) -> PathBuf {
    gate.with_extension("passed")
}

fn expected_log() -> String {
    let before = (1..=500).map(|n| format!("before {n}\n"));
    let after = (1..=500).map(|n| format!("after {n}\n"));
    before
        .chain(after)
        .chain(["second step\n".to_owned()])
        .collect()
}

#[test]
fn after_a_kill_a_running_job_ends_once_with_its_whole_log() {
    let mut world = World::new();
    let (ran, gate) = (world.path("ran"), world.path("gate"));
    world.init_repository();
    world.push(&[("count.yaml", Some(&workflow(&ran, &gate)))]);
    world.start_daemon();
    world.sync();
    world.start_runner(1);
    let job = world.dispatch("count", "count", &[]);
    eventually("the first step", || !lines(&ran).is_empty());
    // Only a part of the log has arrived.
    eventually("a part of the log", || {
        world.log(&job).contains("before 1\n")
    });

    world.kill_daemon();
    std::fs::write(&gate, "").unwrap();
    // The steps continue without the daemon. The daemon restarts only after they have ended.
    eventually("the end of the steps", || passed(&gate).exists());
    world.start_daemon();

    let shown = world.finished(&job);
    assert_eq!(
        shown["state"],
        "succeeded",
        "{shown}\n{}",
        world.runner_log()
    );
    assert_eq!(world.log(&job), expected_log());
    assert_eq!(lines(&ran), [job]);
}

#[test]
fn following_a_job_continues_over_a_restart_of_the_daemon() {
    let mut world = World::new();
    let (ran, gate) = (world.path("ran"), world.path("gate"));
    world.init_repository();
    world.push(&[("count.yaml", Some(&workflow(&ran, &gate)))]);
    world.start_daemon();
    world.sync();
    world.start_runner(1);
    let job = world.dispatch("count", "count", &[]);
    eventually("the first step", || !lines(&ran).is_empty());
    let followed = world.path("followed");
    let mut follower = world
        .command("everscan")
        .args(["job", "logs", "--follow", "-j", &job])
        .stdout(std::fs::File::create(&followed).unwrap())
        .spawn()
        .unwrap();
    eventually("a part of the log", || lines(&followed).len() >= 500);
    world.stop_daemon();
    // Longer than the client's retries of an ordinary request.
    std::thread::sleep(std::time::Duration::from_secs(3));
    world.start_daemon();
    std::fs::write(&gate, "").unwrap();
    assert!(follower.wait().unwrap().success());
    let followed = std::fs::read_to_string(&followed).unwrap();
    assert!(
        followed == expected_log(),
        "{} lines were followed",
        followed.lines().count()
    );
}

/// A fake runner that gets an offer and does not claim it.
async fn offer(world: &World, registration: &str) -> JobAssigned {
    let client = Client::new(world.url(), None).unwrap();
    let register = RegisterRunner {
        token: registration.to_owned(),
        name: "by hand".to_owned(),
        labels: Vec::new(),
        exclusive: false,
        capacity: 1,
        version: "0".to_owned(),
        replace: false,
    };
    let registered = client.register(&register).await.unwrap();
    let poll = Poll {
        instance: Uuid::new_v4(),
        number: None,
        capacity: 1,
        holding: Vec::new(),
    };
    let client = client.with_token(Secret::new(registered.token));
    let messages = client.poll(&poll).await.unwrap().messages;
    match messages.as_slice() {
        [Message::JobAssigned(offer)] => offer.clone(),
        other => panic!("no single offer: {other:?}"),
    }
}

#[test]
fn after_a_kill_between_offer_and_claim_the_job_runs_once() {
    let mut world = World::new();
    let (ran, gate) = (world.path("ran"), world.path("gate"));
    std::fs::write(&gate, "").unwrap();
    world.init_repository();
    world.push(&[("count.yaml", Some(&workflow(&ran, &gate)))]);
    world.start_daemon();
    world.sync();
    let job = world.dispatch("count", "count", &[]);
    let registration = world.everscan(&["runner", "register-token"]);
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .unwrap();
    let offer = runtime.block_on(offer(&world, registration.trim()));
    assert_eq!(offer.id.to_string(), job);

    world.kill_daemon();
    world.start_daemon();
    // An offer ends with its daemon: nobody can use it to claim a job that was offered to another runner.
    let late = runtime.block_on(async {
        let client = Client::new(world.url(), Some(Secret::new(offer.token))).unwrap();
        client.resolve(offer.id).await
    });
    assert_eq!(late.unwrap_err().status(), Some(401));
    world.start_runner(1);

    let shown = world.finished(&job);
    assert_eq!(
        shown["state"],
        "succeeded",
        "{shown}\n{}",
        world.runner_log()
    );
    assert_eq!(world.log(&job), expected_log());
    assert_eq!(lines(&ran), [job]);
}

#[test]
fn under_load_and_repeated_kills_no_acknowledged_job_is_lost_or_run_twice() {
    let mut world = World::new();
    let ran = world.path("ran");
    let text = format!(
        "scans:\n  count:\n    on:\n      dispatch: {{}}\n    steps:\n      - run: echo \"$SERVICE_JOB_ID\" >> {}\n",
        ran.display()
    );
    world.init_repository();
    world.push(&[("count.yaml", Some(&text))]);
    world.start_daemon();
    world.sync();
    world.start_runner(4);
    let mut acknowledged = Vec::new();
    for round in 0..4 {
        let before = lines(&ran).len();
        for _ in 0..6 {
            acknowledged.push(world.dispatch("count", "count", &[]));
        }
        if round % 2 == 0 {
            eventually("some work", || lines(&ran).len() > before);
        }
        world.kill_daemon();
        world.start_daemon();
    }
    for job in &acknowledged {
        let shown = world.finished(job);
        assert_eq!(
            shown["state"],
            "succeeded",
            "{shown}\n{}",
            world.runner_log()
        );
    }
    let mut ran = lines(&ran);
    ran.sort();
    acknowledged.sort();
    assert_eq!(ran, acknowledged);
}
