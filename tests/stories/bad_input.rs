//! Mistakes of users: each gets a message, a hint and an exit code, and leaves nothing unfinished.

use std::process::Output;

use crate::support::World;

const HELLO: &str = include_str!("../../examples/hello/workflows/hello.yaml");

fn messages(output: &Output) -> String {
    String::from_utf8_lossy(&output.stderr).into_owned()
}

fn assert_message(output: &Output, code: i32, words: &[&str]) {
    let text = messages(output);
    assert_eq!(output.status.code(), Some(code), "{text}");
    for word in words {
        assert!(text.contains(word), "`{word}` is missing in: {text}");
    }
}

#[test]
fn wrong_dispatches_are_refused_with_hints() {
    let world = World::with_workflow("hello.yaml", HELLO);
    let dispatch = |arguments: &[&str]| {
        let all: Vec<&str> = ["scan", "dispatch"]
            .iter()
            .chain(arguments)
            .copied()
            .collect();
        world.output("everscan", &all)
    };
    assert_message(
        &dispatch(&["nothing", "greet"]),
        8,
        &["no workflow `nothing`", "everscan workflow list"],
    );
    assert_message(
        &dispatch(&["hello", "gret"]),
        7,
        &["no scan `gret`", "greet"],
    );
    assert_message(
        &dispatch(&["hello", "greet"]),
        1,
        &["inputs.name", "required"],
    );
    assert_message(
        &dispatch(&[
            "hello",
            "greet",
            "--input",
            "name=x",
            "--input",
            "nam=y",
            "--input",
            "shout=maybe",
        ]),
        1,
        &["inputs.nam", "did you mean `name`", "inputs.shout", "maybe"],
    );
    assert_message(
        &dispatch(&["hello", "greet", "--input", "name"]),
        2,
        &["name"],
    );
    let jobs = world.json(&["job", "list"]);
    assert_eq!(
        jobs["items"],
        serde_json::json!([]),
        "a refused dispatch leaves nothing behind"
    );
}

#[test]
fn a_wrong_token_and_an_unreachable_daemon_give_clear_errors() {
    let world = World::with_workflow("hello.yaml", HELLO);
    for token in ["evs_wrong", "", "0198c5f2-7c1e-4000-8000-000000000000"] {
        let output = world
            .command("everscan")
            .args(["job", "list"])
            .env("SERVICE_TOKEN", token)
            .output()
            .unwrap();
        assert_message(&output, 8, &["token"]);
    }
    let nowhere = world
        .command("everscan")
        .args(["job", "list"])
        .env("SERVICE_URL", "http://127.0.0.1:9")
        .output();
    assert_message(&nowhere.unwrap(), 9, &["127.0.0.1:9"]);
}

#[test]
fn a_second_daemon_on_one_state_folder_and_on_one_port() {
    let world = World::with_workflow("hello.yaml", HELLO);
    let pid = world.daemon_pid().to_string();
    let state = world.path("state").display().to_string();
    let second = world.output(
        "everscand",
        &["run", "--state-dir", &state, "--listen", "127.0.0.1:0"],
    );
    assert_message(&second, 10, &["in use", &pid]);
    let address = world.url().trim_start_matches("http://").to_owned();
    let both = world.output(
        "everscand",
        &["run", "--state-dir", &state, "--listen", &address],
    );
    assert_message(&both, 10, &["in use", &pid]);
    let other = world.path("other").display().to_string();
    let port = world.output(
        "everscand",
        &["run", "--state-dir", &other, "--listen", &address],
    );
    assert_message(&port, 13, &[&address]);
    assert!(
        !world.path("other").exists(),
        "a daemon that cannot listen leaves no state folder"
    );
    let job = world.dispatch("hello", "greet", &["name=still"]);
    assert_eq!(
        world.finished(&job)["state"],
        "succeeded",
        "the first daemon continues"
    );
}

#[test]
fn plain_http_for_other_machines_needs_insecure_http() {
    let world = World::new();
    let state = world.path("other").display().to_string();
    let folder = world.path("scans");
    std::fs::create_dir(&folder).unwrap();
    let folder = folder.display().to_string();
    let file = world.path("everscand.yaml");
    let messages = &["plain HTTP on ", "Caddy", "ssh -L", "--insecure-http"];
    for address in ["0.0.0.0:0", "[::]:0", "192.0.2.1:0"] {
        let run = ["run", "--state-dir", &state, "--listen", address];
        assert_message(&world.output("everscand", &run), 2, messages);
        let up = ["up", &folder, "--listen", address];
        assert_message(&world.output("everscand", &up), 2, messages);
        std::fs::write(&file, format!("state: other\nlisten: '{address}'\n")).unwrap();
        let run = ["run", "--config", &file.display().to_string()];
        assert_message(&world.output("everscand", &run), 2, messages);
    }
    assert!(
        !world.path("other").exists(),
        "a refused daemon makes no state"
    );
    // No other process listens on this address, so the daemon tries to listen there.
    let run = [
        "run",
        "--state-dir",
        &state,
        "--listen",
        "192.0.2.1:0",
        "--insecure-http",
    ];
    assert_message(&world.output("everscand", &run), 13, &["192.0.2.1:0"]);
}

#[test]
fn a_token_goes_to_another_machine_over_plain_http_only_with_insecure_http() {
    const SHOW: &str = "\
scans:
  show:
    on: { dispatch: {} }
    steps:
      - run: |
          echo \"insecure=${SERVICE_INSECURE_HTTP-unset}\"
          unset SERVICE_TOKEN; everscan job list 2>&1 || echo \"exit code $?\"
";
    let mut world = World::with_workflow("show.yaml", SHOW);
    let shown = |world: &World| world.log(&world.succeed("show", "show", &[]));
    let secure = shown(&world);
    assert!(secure.contains("insecure=unset"), "{secure}");
    // The daemon is asked without a token, and the hint must not lead a step to the first token.
    assert!(secure.contains("exit code 8"), "{secure}");
    assert!(
        secure.contains("the token of its job in SERVICE_TOKEN") && !secure.contains("admin"),
        "{secure}"
    );

    let other = ["--url", "http://192.0.2.1:7411", "source", "list"];
    let messages = &["plain HTTP to another machine", "--insecure-http"];
    assert_message(&world.output("everscan", &other), 2, messages);
    let configure = |world: &World, arguments: &[&str]| {
        let token = world.everscan(&["runner", "register-token"]);
        world
            .command("everscan-runner")
            .args(["configure", "--name", "story", "--replace"])
            .args(arguments)
            .env("SERVICE_REGISTRATION_TOKEN", token.trim())
            .output()
            .unwrap()
    };
    let refused = configure(&world, &["--url", "http://192.0.2.1:7411"]);
    assert_message(&refused, 1, messages);

    // The choice is saved, also by a registration that does not name it.
    world.stop_runner();
    for arguments in [&["--insecure-http"][..], &[]] {
        assert_message(&configure(&world, arguments), 0, &[]);
    }
    world.run_runner();
    let insecure = shown(&world);
    assert!(insecure.contains("insecure=true"), "{insecure}");
}

#[test]
fn a_folder_without_a_state_or_with_a_newer_state_is_not_changed() {
    let world = World::new();
    let run = |state: &str| {
        world.output(
            "everscand",
            &["run", "--state-dir", state, "--listen", "127.0.0.1:0"],
        )
    };
    let foreign = world.path("foreign");
    std::fs::create_dir(&foreign).unwrap();
    std::fs::write(foreign.join("thesis.txt"), "precious").unwrap();
    assert_message(&run(&foreign.display().to_string()), 12, &["foreign"]);
    assert_eq!(std::fs::read_dir(&foreign).unwrap().count(), 1);

    let mut world = World::new();
    world.init_repository();
    world.start_daemon();
    world.stop_daemon();
    let format = world.path("state/FORMAT");
    let newer = std::fs::read_to_string(&format)
        .unwrap()
        .replacen('1', "9999", 1);
    std::fs::write(&format, &newer).unwrap();
    let listing = |folder: &std::path::Path| {
        let mut names: Vec<_> = std::fs::read_dir(folder)
            .unwrap()
            .map(|entry| entry.unwrap().file_name())
            .collect();
        names.sort();
        names
    };
    let before = listing(&world.path("state"));
    let state = world.path("state").display().to_string();
    assert_message(
        &world.output(
            "everscand",
            &["run", "--state-dir", &state, "--listen", "127.0.0.1:0"],
        ),
        11,
        &["9999", "newer"],
    );
    assert_eq!(listing(&world.path("state")), before);
    assert_eq!(std::fs::read_to_string(&format).unwrap(), newer);
}

#[test]
fn a_missing_repository_is_reported_until_it_exists() {
    let mut world = World::new();
    world.start_daemon();
    let output = world.output("everscan", &["source", "sync", "main", "--wait"]);
    assert_eq!(output.status.code(), Some(1));
    let source = world.json(&["source", "show", "main"]);
    assert_eq!(
        source["conditions"][0]["reason"], "fetch_failed",
        "{source}"
    );
    assert!(
        source["conditions"][0]["message"]
            .as_str()
            .unwrap()
            .contains("there is no repository"),
        "{source}"
    );

    world.init_repository();
    world.push(&[("hello.yaml", Some(HELLO))]);
    crate::support::eventually("the first revision", || {
        world.json(&["workflow", "list"])["items"][0]["name"] == "hello"
    });
}

#[test]
fn wrong_configuration() {
    let world = World::new();
    let run = |arguments: &[&str]| {
        let all: Vec<&str> = ["run"].iter().chain(arguments).copied().collect();
        world.output("everscand", &all)
    };
    assert_message(&run(&[]), 2, &["--state-dir DIR"]);
    assert_message(
        &run(&["--state-dir", "s", "--source", "x"]),
        2,
        &["NAME=URL"],
    );
    assert_message(&run(&["--config", "missing.yaml"]), 2, &["missing.yaml"]);
    let runner = world.output("everscan-runner", &["run", "--name", "nobody"]);
    assert!(!runner.status.success());
    assert!(
        messages(&runner).contains("configure"),
        "{}",
        messages(&runner)
    );
    assert!(!world.path("s").exists());
}
