//! Push, revision, dispatch, success, artifact: the first steps of every user.

use crate::support::World;

const HELLO: &str = include_str!("../../examples/hello/workflows/hello.yaml");

#[test]
fn a_push_becomes_a_revision_and_a_dispatch_an_artifact() {
    let world = World::with_workflow("hello.yaml", HELLO);
    let workflows = world.json(&["workflow", "list"]);
    assert_eq!(workflows["items"][0]["name"], "hello", "{workflows}");
    assert_eq!(workflows["items"][0]["revision"]["number"], 1);

    let job = world.dispatch("hello", "greet", &["name=Ada & Co.", "shout=true"]);
    let shown = world.finished(&job);
    assert_eq!(
        shown["state"],
        "succeeded",
        "{shown}\n{}",
        world.runner_log()
    );
    assert_eq!(shown["reason"]["code"], "steps_succeeded");
    let outcomes: Vec<_> = shown["steps"]
        .as_array()
        .unwrap()
        .iter()
        .map(|step| step["outcome"].clone())
        .collect();
    assert_eq!(outcomes, ["succeeded", "succeeded", "succeeded"]);

    let greeting = format!("Hello, Ada & Co.. This is job {job}.\n").to_uppercase();
    assert_eq!(world.log(&job), greeting);
    let files = world.artifact(&job, "greeting");
    assert_eq!(
        files.get("greeting.txt").map(Vec::as_slice),
        Some(greeting.as_bytes())
    );
}

#[test]
fn steps_are_skipped_by_condition_and_inputs_have_defaults() {
    let world = World::with_workflow("hello.yaml", HELLO);
    let job = world.dispatch("main/hello", "greet", &["name=Bob"]);
    let shown = world.finished(&job);
    assert_eq!(shown["state"], "succeeded", "{shown}");
    assert_eq!(
        shown["inputs"],
        serde_json::json!({"name": "Bob", "shout": false})
    );
    assert_eq!(shown["steps"][1]["status"], "skipped");
    assert_eq!(world.log(&job), format!("Hello, Bob. This is job {job}.\n"));
}

#[test]
fn a_push_activates_a_valid_file_and_not_an_invalid_file() {
    let world = World::with_workflow("hello.yaml", HELLO);
    let changed = HELLO.replace("Hello, $NAME.", "Good day, $NAME.");
    let draft = world.path("draft.yaml");
    std::fs::write(&draft, &changed).unwrap();
    let difference = world.everscan(&["workflow", "diff", "hello", &draft.display().to_string()]);
    assert!(difference.contains("Good day"), "{difference}");
    world.push(&[("hello.yaml", Some(&changed))]);
    world.sync();
    let job = world.dispatch("hello", "greet", &["name=Ada"]);
    assert_eq!(world.finished(&job)["revision"]["number"], 2);
    assert!(world.log(&job).starts_with("Good day, Ada."));

    world.push(&[
        ("hello.yaml", Some("scans:\n  greet:\n    stepz: []\n")),
        ("other.yaml", Some(HELLO)),
    ]);
    let output = world.output("everscan", &["source", "sync", "main", "--wait"]);
    assert_eq!(
        output.status.code(),
        Some(1),
        "the exit code reports a source with an invalid file"
    );
    let source = world.json(&["source", "show", "main"]);
    assert_eq!(source["stale_files"][0]["file"], "workflows/hello.yaml");
    let unknown = &source["stale_files"][0]["diagnostics"];
    let unknown = unknown
        .as_array()
        .unwrap()
        .iter()
        .find(|one| one["code"] == "unknown-key")
        .unwrap()
        .clone();
    assert_eq!(
        (unknown["line"].as_u64(), unknown["column"].as_u64()),
        (Some(3), Some(5)),
        "{unknown}"
    );
    let job = world.dispatch("hello", "greet", &["name=Ada"]);
    assert_eq!(
        world.finished(&job)["revision"]["number"],
        2,
        "the last good revision stays active"
    );
    let job = world.dispatch("other", "greet", &["name=Ada"]);
    assert_eq!(
        world.finished(&job)["state"],
        "succeeded",
        "an invalid file never stops a valid one"
    );
}

#[test]
fn a_removed_file_retires_its_workflow_and_pushes_are_noticed_by_themselves() {
    let world = World::with_workflow("hello.yaml", HELLO);
    world.push(&[("hello.yaml", None), ("keep.yaml", Some(HELLO))]);
    crate::support::eventually("the retirement", || {
        let names = world.json(&["workflow", "list"]);
        names["items"]
            .as_array()
            .unwrap()
            .iter()
            .map(|workflow| workflow["name"].clone())
            .collect::<Vec<_>>()
            == ["keep"]
    });
    let output = world.output(
        "everscan",
        &["scan", "dispatch", "hello", "greet", "--input", "name=x"],
    );
    assert_eq!(output.status.code(), Some(1));
    assert!(
        String::from_utf8_lossy(&output.stderr).contains("retired"),
        "{}",
        String::from_utf8_lossy(&output.stderr)
    );
    let all = world.everscan(&["workflow", "list", "--state", "all"]);
    let retired = all.lines().find(|line| line.contains("main/hello"));
    assert!(retired.unwrap().contains("retired"), "{all}");
    crate::support::eventually("the log of the retirement", || {
        world.daemon_log().contains("a workflow is retired")
    });
}

#[test]
fn a_force_push_is_named_in_the_log_the_source_and_its_history() {
    const REWRITTEN: &str = "history of the repository was rewritten";
    let world = World::with_workflow("hello.yaml", HELLO);
    assert!(!world.daemon_log().contains(REWRITTEN));
    world.git(&["commit", "--amend", "-m", "again"]);
    world.sync();
    assert!(world.daemon_log().contains(REWRITTEN));
    let shown = world.everscan(&["source", "show", "main"]);
    assert!(shown.contains("history:    rewritten"), "{shown}");
    let history = world.everscan(&["source", "history", "main"]);
    let rows: Vec<_> = history.lines().skip(1).collect();
    assert!(
        rows[0].contains("rewritten") && rows[0].contains("again"),
        "{history}"
    );
    assert!(!rows[1].contains("rewritten"), "{history}");
    assert_eq!(rows.len(), 2, "{history}");
}
