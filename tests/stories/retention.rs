//! A daemon with a retention policy.

use std::path::Path;

use crate::support::{World, eventually};

const BUILD: &str = "
scans:
  build:
    on: {dispatch: {}}
    steps:
      - run: |
          head -c 200000 /dev/urandom > out
          head -c 20000 /dev/urandom | base64
    artifacts:
      - {name: out, paths: [out]}
";

/// The bytes of all files below a folder.
fn bytes_below(folder: &Path) -> u64 {
    let Ok(entries) = std::fs::read_dir(folder) else {
        return 0;
    };
    let sizes = entries.map(|entry| {
        let entry = entry.unwrap();
        // A file that is removed meanwhile has no metadata.
        match entry.metadata() {
            Ok(it) if it.is_dir() => bytes_below(&entry.path()),
            Ok(it) => it.len(),
            Err(_) => 0,
        }
    });
    sizes.sum()
}

fn listed(world: &World) -> Vec<String> {
    let jobs = world.json(&["job", "list"]);
    let items = jobs["items"].as_array().unwrap().iter();
    items
        .map(|job| job["id"].as_str().unwrap().to_owned())
        .collect()
}

#[test]
fn retention_keeps_the_configured_jobs_and_frees_the_bytes() {
    let mut world = World::new();
    world.daemon_config = Some("retention: {jobs: 3}\n".to_owned());
    world.init_repository();
    world.push(&[("build.yaml", Some(BUILD))]);
    world.start_daemon();
    world.sync();
    world.start_runner(1);
    let mut jobs = Vec::new();
    for _ in 0..5 {
        let job = world.dispatch("build", "build", &[]);
        assert_eq!(world.finished(&job)["state"], "succeeded");
        jobs.push(job);
    }
    eventually("the oldest two to go", || listed(&world).len() == 3);
    let kept: Vec<_> = jobs[2..].iter().rev().cloned().collect();
    assert_eq!(listed(&world), kept);
    let gone = world.output("everscan", &["job", "show", &jobs[0]]);
    assert_eq!(gone.status.code(), Some(7));
    let state = world.path("state/jobs");
    eventually("the files to go", || bytes_below(&state) < 4 * 240_000);
    assert!(bytes_below(&state) > 3 * 200_000);
    assert!(world.daemon_log().contains("by the retention policy"));

    // Another limit, applied once after a dry run.
    let prune = ["workflow", "prune", "build", "--jobs", "1"];
    let printed = world.json(&[&prune[..], &["--dry-run"]].concat());
    assert_eq!(printed["scans"][0]["removed"]["jobs"], 1, "{printed}");
    assert_eq!(listed(&world).len(), 3);
    let done = world.json(&prune);
    assert_eq!(done["scans"][0]["removed"], printed["scans"][0]["removed"]);
    assert_eq!(listed(&world), kept[..2], "the newest two successes stay");

    world.everscan(&["job", "artifact", "delete", "-j", &kept[1], "-a", "out"]);
    let shown = world.everscan(&["job", "show", &kept[1]]);
    assert!(shown.contains("deleted by a user"), "{shown}");
    world.everscan(&["job", "delete", &kept[0]]);
    eventually("the files to go", || bytes_below(&state) < 60_000);

    world.stop_daemon();
    world.start_daemon();
    assert_eq!(listed(&world), kept[1..2]);
    let next = world.dispatch("build", "build", &[]);
    assert_eq!(world.finished(&next)["state"], "succeeded");
    assert_eq!(listed(&world), [next, kept[1].clone()]);
}
