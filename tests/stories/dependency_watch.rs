//! The example `dependency-watch` on a real lock file: each success starts only the scans that depend on it.

use crate::schedules;
use crate::support::World;

const WORKFLOW: &str =
    include_str!("../../examples/dependency-watch/workflows/dependency-watch.yaml");
const LOCK_FILE: &str = include_str!("../../examples/dependency-watch/Cargo.lock");
const NAME: &str = "dependency-watch";

/// A world that watches its own repository.
fn world() -> World {
    let mut world = World::new();
    world.init_repository();
    lock(&world, LOCK_FILE);
    world.push(&[("dependency-watch.yaml", Some(&schedules::without(WORKFLOW)))]);
    world.start_daemon();
    world.sync();
    let repository = world.path("repository").display().to_string();
    world.start_runner_with(2, &[("WATCHED_REPOSITORY", &repository)]);
    world
}

fn lock(world: &World, text: &str) {
    std::fs::write(world.path("repository/Cargo.lock"), text).unwrap();
}

/// A file of an artifact, as text.
fn text(world: &World, job: &str, artifact: &str, file: &str) -> String {
    let files = world.artifact(job, artifact);
    String::from_utf8(files[file].clone()).unwrap()
}

#[test]
fn only_a_changed_lock_file_starts_the_next_scans() {
    let world = world();
    let inventory = world.succeed(NAME, "inventory", &[]);
    let packages = text(&world, &inventory, "packages", "packages.tsv");
    assert_eq!(
        packages.lines().count(),
        LOCK_FILE.matches("[[package]]").count()
    );
    assert!(packages.contains("\nserde\t1.0.229\n"), "{packages}");

    // The first list has no earlier list for a comparison.
    let changes = world.followed_by(NAME, "changes");
    let first = text(&world, &changes, "changes", "changes.tsv");
    assert_eq!(first.lines().count(), packages.lines().count());
    assert!(
        first.lines().all(|line| line.starts_with("added\t")),
        "{first}"
    );
    let report = world.followed_by(NAME, "report");
    let page = text(&world, &report, "report", "report.html");
    assert!(
        page.contains("<td>added</td><td>serde</td><td></td><td>1.0.229</td>"),
        "{page}"
    );

    let without_semver = LOCK_FILE.replace("name = \"semver\"", "name = \"semver-lite\"");
    lock(&world, &without_semver.replace("\"1.0.18\"", "\"1.0.19\""));
    world.push(&[]);
    world.succeed(NAME, "inventory", &[]);
    let changes = world.followed_by(NAME, "changes");
    assert_eq!(
        text(&world, &changes, "changes", "changes.tsv"),
        "added\tsemver-lite\t\t1.0.28\nremoved\tsemver\t1.0.28\t\nupgraded\titoa\t1.0.18\t1.0.19\n"
    );
    world.followed_by(NAME, "report");

    // A second run without a change.
    world.succeed(NAME, "inventory", &[]);
    assert_eq!(world.jobs_of(NAME, "changes").len(), 2);
    assert_eq!(world.jobs_of(NAME, "report").len(), 2);
    let why = world.everscan(&["scan", "why", NAME, "changes"]);
    assert!(why.contains("no job: its expression is false"), "{why}");
    assert!(why.contains("made job"), "{why}");
}

#[test]
fn a_question_is_answered_from_the_newest_list() {
    let world = world();
    world.succeed(NAME, "inventory", &[]);
    for (inputs, answer) in [
        (&["name=serde"][..], "serde 1.0.229\n"),
        (
            &["name=serde_", "similar=true"],
            "serde_core 1.0.229\nserde_derive 1.0.229\nserde_json 1.0.154\n",
        ),
        (&["name=$(false)\"'; exit 1"], ""),
    ] {
        let job = world.succeed(NAME, "lookup", inputs);
        assert_eq!(text(&world, &job, "answer", "answer.txt"), answer);
    }
}
