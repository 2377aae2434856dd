//! A daemon continues with a restored backup. An interrupted backup is not usable.

use std::fs::File;
use std::path::Path;
use std::process::Stdio;

use serde_json::Value;

use crate::support::{World, eventually, lines, signal};

fn everscand(world: &World, arguments: &[&str]) -> Value {
    let output = world.output("everscand", arguments);
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{arguments:?}: {said}");
    serde_json::from_slice(&output.stdout).unwrap()
}

/// Registers the runner again.
fn register_again(world: &World) {
    let token = world.everscan(&["runner", "register-token"]);
    let output = world
        .command("everscan-runner")
        .args(["configure", "--name", "story", "--replace", "--workdir"])
        .arg(world.path("work"))
        .env("SERVICE_REGISTRATION_TOKEN", token.trim())
        .output()
        .unwrap();
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{said}");
}

fn text(path: &Path) -> String {
    path.display().to_string()
}

#[test]
fn a_daemon_continues_with_a_restored_state() {
    let mut world = World::new();
    let (begun, gate) = (world.path("begun"), world.path("gate"));
    let waiting = format!(
        "scans:\n  wait:\n    on:\n      dispatch: {{}}\n    steps:\n      - run: |\n          echo begun >> {}\n          while [ ! -e {} ]; do sleep 0.02; done\n",
        begun.display(),
        gate.display(),
    );
    let hello = include_str!("../../examples/hello/workflows/hello.yaml");
    world.init_repository();
    world.push(&[("wait.yaml", Some(&waiting)), ("hello.yaml", Some(hello))]);
    world.start_daemon();
    world.sync();
    world.start_runner(1);
    let done = world.succeed("hello", "greet", &["name=Ada"]);
    let before = world.json(&["job", "show", "-j", &done]);
    let ran = world.dispatch("wait", "wait", &[]);
    eventually("the step", || lines(&begun).len() == 1);
    let waited = world.dispatch("hello", "greet", &["name=Grace"]);
    let (state, copy) = (text(&world.path("state")), text(&world.path("copy")));
    let json = ["--output", "json", "--state-dir", &state];
    let leaked = world.json(&["token", "create", "--name", "leaked", "--scope", "admin"]);
    let leaked = leaked["secret"].as_str().unwrap();
    let backup = everscand(&world, &[&["backup", &copy], &json[..]].concat());

    // Changes after the backup are lost with the disk, except for the audit log.
    world.everscan(&["token", "revoke", "leaked"]);
    std::fs::write(&gate, "").unwrap();
    world.finished(&ran);
    let lost = world.succeed("hello", "greet", &["name=Edsger"]);
    world.stop_runner();
    world.stop_daemon();
    let old = text(&world.path("state.old"));
    std::fs::rename(&state, &old).unwrap();
    let restore = ["restore", &copy, "--newer-audit", &old];
    let restored = everscand(&world, &[&restore, &json[..]].concat());
    assert_eq!(restored["tokens"][0]["name"], "initial admin", "{restored}");
    assert_eq!(restored["tokens"].as_array().unwrap().len(), 1);
    assert_eq!(restored["ended"][0]["name"], "leaked", "{restored}");
    assert_eq!(restored["ended"][0]["because"], "token_revoked");
    let reached = restored["sequence"].as_u64().unwrap();
    assert!(
        reached >= backup["sequence"].as_u64().unwrap(),
        "{restored} {backup}"
    );

    world.start_daemon();
    assert_eq!(world.json(&["job", "show", "-j", &done]), before);
    assert_eq!(world.artifact(&done, "greeting").len(), 1);
    assert!(world.log(&done).contains("Ada"));
    let shown = world.finished(&ran);
    assert_eq!(shown["reason"]["code"], "restored", "{shown}");
    assert_eq!(world.jobs_of("hello", "greet"), [&*waited, &*done]);
    let gone = world.output("everscan", &["job", "show", "-j", &lost]);
    assert!(!gone.status.success());
    let mut refused = world.command("everscan");
    let refused = refused.args(["job", "list"]).env("SERVICE_TOKEN", leaked);
    let refused = refused.output().unwrap();
    assert!(!refused.status.success());

    // The daemon no longer knows the old runner, and the runner's message shows what to do.
    let old = world.output("everscan-runner", &["run", "--name", "story"]);
    assert_eq!(old.status.code(), Some(1));
    let said = String::from_utf8(old.stderr).unwrap();
    assert!(said.contains("configure"), "{said}");
    register_again(&world);
    world.run_runner();
    assert_eq!(world.finished(&waited)["state"], "succeeded");
    world.succeed("hello", "greet", &["name=Barbara"]);
    world.stop_runner();
    world.stop_daemon();
    let checked = everscand(&world, &[&["fsck"], &json[..]].concat());
    assert_eq!(checked["summary"]["clean"], true, "{checked}");
}

#[test]
fn an_interrupted_backup_leaves_no_hold_and_cannot_be_restored() {
    let hello = include_str!("../../examples/hello/workflows/hello.yaml");
    let mut world = World::with_workflow("hello.yaml", hello);
    world.succeed("hello", "greet", &["name=Ada"]);
    let (state, half) = (text(&world.path("state")), text(&world.path("half")));
    // A sparse file: it takes long to copy, but no space.
    let large = world.path("state/large");
    File::create(&large).unwrap().set_len(1 << 40).unwrap();
    let mut backup = world
        .command("everscand")
        .args(["backup", &half, "--state-dir", &state])
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    eventually("the copy", || world.path("half/large").exists());
    let is_held = || world.path("state/journal/HOLD").exists();
    assert!(is_held());
    signal(backup.id(), "INT");
    assert_eq!(backup.wait().unwrap().code(), Some(130));
    assert!(!is_held());
    assert!(!world.path("half/FORMAT").exists() && !world.path("half/BACKUP").exists());
    let to = text(&world.path("from half"));
    let refused = world.output("everscand", &["restore", &half, "--state-dir", &to]);
    assert!(!refused.status.success());
    let said = String::from_utf8(refused.stderr).unwrap();
    assert!(said.contains("is not a finished backup"), "{said}");
    assert!(!world.path("from half").exists());

    // The daemon still runs, and the next backup is complete.
    std::fs::remove_file(&large).unwrap();
    world.succeed("hello", "greet", &["name=Grace"]);
    let whole = text(&world.path("whole"));
    let json = ["--output", "json", "--state-dir"];
    everscand(
        &world,
        &[&["backup", &whole], &json[..], &[&state]].concat(),
    );
    everscand(&world, &[&["restore", &whole], &json[..], &[&to]].concat());
    world.stop_runner();
    world.stop_daemon();
}
