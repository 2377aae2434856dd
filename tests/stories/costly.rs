//! A repository with many costly expressions does not slow down another project.

use std::fmt::Write as _;

use client::{Client, Secret};
use wire::DispatchRequest;

use crate::support::{World, eventually};

const COSTLY: usize = 200;
const DISPATCHES: usize = 5;
const QUIET: &str = "scans:\n  one:\n    on: { dispatch: {} }\n    steps:\n      - run: 'true'\n";

/// A scan and its followers, whose expressions go through 48,400 pairs. Only the last scan by name has a runner.
fn costly() -> String {
    let mut text =
        "scans:\n  source:\n    on: { dispatch: {} }\n    steps: [{ run: 'true' }]\n".to_owned();
    let zeros = format!("[{}]", ["0"; 220].join(","));
    let expr = format!("scans.source.is_available() && {zeros}.all(a, {zeros}.all(b, a == b))");
    let waiting = (0..COSTLY - 1).map(|n| (format!("f{n:03}"), "runs_on: [nobody], "));
    for (name, runs_on) in waiting.chain([("last".to_owned(), "")]) {
        writeln!(
            text,
            "  {name}: {{ on: {{ expr: '{expr}' }}, {runs_on}steps: [{{ run: 'true' }}] }}"
        )
        .unwrap();
    }
    text
}

/// Dispatches the scan of the other project several times, without a new process for each dispatch.
fn dispatch(world: &World) {
    let client = Client::new(world.url(), world.token().map(Secret::new)).unwrap();
    let request = DispatchRequest::default();
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .unwrap();
    for number in 0..DISPATCHES {
        let key = number.to_string();
        let dispatched = client.dispatch("quiet", "one", &request, &key);
        runtime.block_on(dispatched).unwrap();
    }
}

#[test]
fn costly_expressions_do_not_block_the_dispatches_of_another_project() {
    let mut world = World::new();
    world.init_repository();
    let repository = world.path("repository");
    world.daemon_config = Some(format!(
        "sources:\n  - {{ name: other, url: '{}', path: other }}\n",
        repository.display()
    ));
    std::fs::create_dir(repository.join("other")).unwrap();
    std::fs::write(repository.join("other/quiet.yaml"), QUIET).unwrap();
    world.push(&[("costly.yaml", Some(&costly()))]);
    world.start_daemon();
    world.sync();
    world.everscan(&["source", "sync", "other", "--wait"]);
    world.start_runner(2);
    world.succeed("costly", "source", &[]);
    eventually("the first expressions were evaluated", || {
        !world.jobs_of("costly", "f000").is_empty()
    });
    dispatch(&world);
    let last = world.jobs_of("costly", "last");
    assert_eq!(
        last,
        Vec::<String>::new(),
        "other projects waited for all expressions"
    );
    eventually("every expression was evaluated", || {
        !world.jobs_of("costly", "last").is_empty()
    });
    // A runner claimed its job, so the expression was evaluated once more.
    world.followed_by("costly", "last");
}
