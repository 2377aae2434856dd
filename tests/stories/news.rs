//! A scan processes every change of another scan, although it fails once, is busy, or the daemon dies in between.

use std::fs;

use crate::support::{World, eventually, lines};

/// The reader writes the list that it processes into `seen`, fails while `flaky` exists, and waits while `slow` exists.
fn watching(world: &World) -> String {
    let [seen, flaky, slow] = ["seen", "flaky", "slow"].map(|name| world.path(name));
    format!(
        "\
scans:
  hosts:
    on: {{ dispatch: {{ inputs: {{ list: {{}} }} }} }}
    env: {{ LIST: '${{{{ inputs.list }}}}' }}
    steps:
      - run: echo \"$LIST\" > hosts.txt; echo \"list=$LIST\" >> \"$SERVICE_STEP_OUTPUTS\"
    artifacts: [ {{ name: hosts, paths: [hosts.txt] }} ]
  changes:
    on: {{ expr: \"scans.hosts.has_news('hosts')\" }}
    overlap: queue
    env:
      LIST: ${{{{ scans.hosts.last_success().outputs.list }}}}
      BEFORE: \"${{{{ has(scans.hosts.processed().id) ? scans.hosts.processed().id : 'none' }}}}\"
    steps:
      - run: echo \"$LIST after $BEFORE\" >> {}; [ ! -e {} ]
      - run: while [ -e {} ]; do sleep 0.05; done
",
        seen.display(),
        flaky.display(),
        slow.display()
    )
}

fn world() -> World {
    let mut world = World::new();
    world.init_repository();
    world.push(&[("watch.yaml", Some(&watching(&world)))]);
    world.start_daemon();
    world.sync();
    world.start_runner(2);
    world
}

/// Makes a success of `hosts` with this list.
fn list(world: &World, list: &str) -> String {
    world.succeed("watch", "hosts", &[&format!("list={list}")])
}

/// Waits until the reader has this many jobs, and all have ended.
fn readers(world: &World, count: usize) -> Vec<String> {
    eventually("the reader's jobs", || {
        world.jobs_of("watch", "changes").len() >= count
    });
    let jobs = world.jobs_of("watch", "changes");
    let states = jobs.iter().map(|job| world.finished(job)["state"].clone());
    let states = states.map(|state| state.as_str().unwrap().to_owned());
    states.collect()
}

#[test]
fn a_change_is_processed_after_its_reader_failed_and_was_corrected() {
    let mut world = world();
    let one = list(&world, "one");
    assert_eq!(readers(&world, 1), ["succeeded"]);

    fs::write(world.path("flaky"), "").unwrap();
    list(&world, "two");
    assert_eq!(readers(&world, 2), ["failed", "succeeded"]);
    // The processed results are on disk.
    world.kill_daemon();
    world.start_daemon();
    fs::remove_file(world.path("flaky")).unwrap();
    let two = list(&world, "two");
    assert_eq!(readers(&world, 3), ["succeeded", "failed", "succeeded"]);
    list(&world, "two");
    assert_eq!(readers(&world, 3).len(), 3, "there is no news");

    fs::write(world.path("flaky"), "").unwrap();
    list(&world, "three");
    assert_eq!(readers(&world, 4)[0], "failed");
    fs::remove_file(world.path("flaky")).unwrap();
    let mended = watching(&world).replace("hosts.txt; echo", "hosts.txt && echo");
    world.push(&[("watch.yaml", Some(&mended))]);
    world.sync();
    assert_eq!(
        world.jobs_of("watch", "changes").len(),
        4,
        "the reader did not change"
    );
    let mended = mended.replace("sleep 0.05", "sleep 0.04");
    world.push(&[("watch.yaml", Some(&mended))]);
    world.sync();
    assert_eq!(readers(&world, 5)[0], "succeeded");
    let why = world.json(&["scan", "why", "watch", "changes"]);
    assert_eq!(why["records"][0]["cause"]["kind"], "activation", "{why}");
    assert_eq!(
        lines(&world.path("seen")),
        [
            "one after none".to_owned(),
            format!("two after {one}"),
            format!("two after {one}"),
            format!("three after {two}"),
            format!("three after {two}"),
        ]
    );
}

#[test]
fn results_during_a_job_of_the_reader_are_processed_after_it() {
    let world = world();
    fs::write(world.path("slow"), "").unwrap();
    let three = list(&world, "three");
    eventually("the reader works", || lines(&world.path("seen")).len() == 1);
    list(&world, "four");
    let four = list(&world, "four");
    fs::remove_file(world.path("slow")).unwrap();
    assert_eq!(readers(&world, 2), ["succeeded", "succeeded"]);
    list(&world, "four");
    assert_eq!(readers(&world, 2).len(), 2, "there is no news");
    assert_eq!(
        lines(&world.path("seen")),
        ["three after none".to_owned(), format!("four after {three}")]
    );
    let reader = world.jobs_of("watch", "changes")[0].clone();
    let why = world.json(&["scan", "why", "watch", "changes"]);
    let made = why["records"].as_array().unwrap().iter();
    let made = made
        .filter(|record| record["outcome"]["job"] == *reader)
        .find(|record| record["outcome"]["kind"] == "made");
    let clause = &made.unwrap()["evaluation"]["clause"];
    assert_eq!(clause["text"], "scans.hosts.has_news('hosts')");
    let read = clause["jobs"]["hosts"].as_array().unwrap();
    assert_eq!(read[0], *four, "{clause}");
    assert_eq!(read[1], *three, "processed: {clause}");
}
