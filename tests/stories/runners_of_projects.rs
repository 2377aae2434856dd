//! A project with a runner of its own: a pusher of another project names its label and gets nothing of it.

use std::process::Output;

use crate::support::{World, eventually};

const SECRET: &str = "k-very-secret-4711";

/// A job with a secret and an artifact. It runs until the file `go` exists.
const DUMP: &str = r#"
scans:
  dump:
    on: {dispatch: {}}
    runs_on: [vault]
    env: {VAULT_KEY: "${{ secrets.VAULT_KEY }}", GO: "${{ vars.GO }}"}
    steps: [{run: 'echo payroll > dump.txt; while [ ! -e "$GO" ]; do sleep 0.05; done'}]
    artifacts: [{name: dump, paths: [dump.txt]}]
"#;

/// What somebody tries who can push to the project `main`, and knows the label of the other project's runner.
const PEEK: &str = r#"
scans:
  peek:
    on: {dispatch: {}}
    runs_on: [vault]
    steps:
      - run: |
          cat /proc/[0-9]*/environ 2>/dev/null | tr '\0' '\n' | grep -a '^VAULT_KEY=' | sort -u || true
          everscan job artifact download -j "$(cat "$HOME/dump-job")" -a dump --unpack . && cat dump.txt
          echo "token of the runner: $SERVICE_TOKEN"
          grep token "$HOME"/.everscan/runner/*/config.json
  plain:
    on: {dispatch: {}}
    steps: [{run: 'echo plain'}]
"#;

/// A daemon with the projects `main` and `vault`, and a running runner of `vault` alone.
fn with_a_runner_of_the_vault() -> World {
    let mut world = World::new();
    world.init_repository();
    std::fs::create_dir_all(world.path("repository/vault")).unwrap();
    std::fs::write(world.path("repository/vault/v.yaml"), DUMP).unwrap();
    world.push(&[("g.yaml", Some(PEEK))]);
    let repository = world.path("repository").display().to_string();
    world.daemon_config = Some(format!(
        "sources:\n  - {{ name: vault, url: '{repository}', path: vault }}\n",
    ));
    let key = world.path("secret-key").display().to_string();
    assert!(
        world
            .output("everscand", &["secret-key", "make", &key])
            .status
            .success()
    );
    world.daemon_key = Some("secret-key".to_owned());
    world.start_daemon();
    for source in ["main", "vault"] {
        world.everscan(&["source", "sync", source, "--wait"]);
    }
    let value = world.path("value");
    std::fs::write(&value, SECRET).unwrap();
    let (value, go) = (
        value.display().to_string(),
        world.path("go").display().to_string(),
    );
    world.everscan(&[
        "secret",
        "set",
        "VAULT_KEY",
        "--file",
        &value,
        "--project",
        "vault",
    ]);
    world.everscan(&["var", "set", "GO", &go, "--project", "vault"]);
    let token = register_token(&world, &["--project", "vault", "--label", "vault"]);
    let configured = configure(&world, &token, &["--capacity", "2", "--exclusive"]);
    let said = String::from_utf8_lossy(&configured.stderr).into_owned();
    assert!(configured.status.success(), "{said}");
    assert!(
        said.contains("projects=\"vault\"") && said.contains("labels=\"vault\""),
        "{said}"
    );
    assert!(!said.contains("separates nothing"), "{said}");
    world.run_runner();
    world
}

fn register_token(world: &World, flags: &[&str]) -> String {
    let command: Vec<&str> = ["runner", "register-token"]
        .iter()
        .chain(flags)
        .copied()
        .collect();
    world.everscan(&command).trim().to_owned()
}

fn configure(world: &World, token: &str, flags: &[&str]) -> Output {
    let work = world.path("work").display().to_string();
    world
        .command("everscan-runner")
        .args(["configure", "--name", "story", "--workdir", &work])
        .args(flags)
        .env("SERVICE_REGISTRATION_TOKEN", token)
        .output()
        .unwrap()
}

#[test]
fn a_pusher_of_one_project_reaches_nothing_on_the_runner_of_another() {
    let mut world = with_a_runner_of_the_vault();
    let first = world.dispatch("vault/v", "dump", &[]);
    std::fs::write(world.path("dump-job"), &first).unwrap();
    let is_running = |job: &str| world.json(&["job", "show", "-j", job])["state"] == "running";
    eventually("the first dump", || is_running(&first));

    // Its runner has a free slot. The job of the other project is the oldest that waits, and has the label.
    let peek = world.dispatch("main/g", "peek", &[]);
    let second = world.dispatch("vault/v", "dump", &[]);
    eventually("the second dump", || is_running(&second));
    let shown = world.json(&["job", "show", "-j", &peek]);
    assert_eq!(shown["state"], "scheduled", "{shown}");
    assert_eq!(shown["waiting"]["code"], "no_runner", "{shown}");
    let none = "no runner of this project is registered";
    assert_eq!(shown["waiting"]["message"], none);
    let why = world.everscan(&["scan", "why", "main/g", "peek"]);
    assert!(why.contains(none), "{why}");

    std::fs::write(world.path("go"), "").unwrap();
    for job in [&first, &second] {
        assert_eq!(
            world.finished(job)["state"],
            "succeeded",
            "{}",
            world.runner_log()
        );
    }
    // After all jobs of the vault, and with a free runner, it still waits, and its log is empty.
    world.stop_runner();
    let shown = world.json(&["job", "show", "-j", &peek]);
    assert_eq!(shown["state"], "scheduled", "{shown}");
    assert_eq!(world.log(&peek), "");
    assert_eq!(world.daemon_log().matches(SECRET).count(), 0);
}

#[test]
fn a_runner_of_another_project_is_invisible_and_cannot_be_replaced() {
    let mut world = with_a_runner_of_the_vault();
    // Somebody who manages the runners of the other project.
    let guest = [
        "token",
        "create",
        "--name",
        "guest",
        "--project",
        "main",
        "--scope",
        "runner:write",
        "--scope",
        "runner:read",
        "--scope",
        "workflow:read",
        "--scope",
        "job:read",
        "--scope",
        "dispatch",
    ];
    let guest = world.everscan(&guest).trim().to_owned();
    let as_guest = |arguments: &[&str]| {
        let mut command = world.command("everscan");
        command
            .args(arguments)
            .env("SERVICE_TOKEN", &guest)
            .output()
            .unwrap()
    };
    let text = |output: &Output| {
        String::from_utf8_lossy(&[&*output.stdout, &*output.stderr].concat()).into_owned()
    };
    let list = as_guest(&["runner", "list", "--output", "json"]);
    let list: serde_json::Value = serde_json::from_slice(&list.stdout).unwrap();
    assert_eq!(list["items"], serde_json::json!([]));
    for command in [
        &["runner", "show", "story"][..],
        &["runner", "delete", "story"],
        &["runner", "limit", "story", "--project", "main"],
    ] {
        let output = as_guest(command);
        let said = text(&output);
        assert!(
            !output.status.success() && said.contains("there is no runner"),
            "{said}"
        );
    }
    let refused = as_guest(&["runner", "register-token", "--project", "vault"]);
    assert!(
        text(&refused).contains("there is no project `vault`"),
        "{}",
        text(&refused)
    );

    // A registration of the guest cannot take the place of the runner, and learns nothing of it.
    let token = as_guest(&["runner", "register-token"]);
    assert!(
        text(&token).contains("for a runner of project main"),
        "{}",
        text(&token)
    );
    let token = String::from_utf8_lossy(&token.stdout).trim().to_owned();
    let refused = configure(&world, &token, &["--replace", "--labels", "vault"]);
    let said = text(&refused);
    assert!(!refused.status.success(), "{said}");
    assert!(said.contains("the runner name `story` is taken"), "{said}");
    assert!(!said.contains("project vault"), "{said}");
    let shown = world.json(&["runner", "show", "story"]);
    assert_eq!(shown["projects"], serde_json::json!(["vault"]));

    // Who may, limits a runner of all projects; it serves the new project at once.
    world.everscan(&["runner", "limit", "story", "--project", "main"]);
    let shown = as_guest(&["runner", "show", "story", "--output", "json"]);
    let shown: serde_json::Value = serde_json::from_slice(&shown.stdout).unwrap();
    assert_eq!(shown["projects"], serde_json::json!(["main"]));
    let peek = world.dispatch("main/g", "peek", &[]);
    world.finished(&peek);
    world.stop_runner();
}
