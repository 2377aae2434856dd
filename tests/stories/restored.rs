//! A daemon continues with a restored backup. An interrupted backup is not usable.

use std::fs::File;
use std::path::Path;
use std::process::Stdio;

use serde_json::{Value, json};

use super::user_reset::sign_in;
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

/// Sets a password with the path of a link. Returns the body that signs in with it.
fn set_password(world: &World, user: &str, link: &str, password: &str) -> String {
    let link = link.trim().rsplit('/').next().unwrap();
    let set = json!({"link": link, "password": password}).to_string();
    assert_eq!(sign_in(world, &set), 201);
    json!({"user": user, "password": password}).to_string()
}

#[test]
fn a_restore_names_the_users_and_roles_that_came_back_and_repeats_what_they_lost() {
    let mut world = World::new();
    world.init_repository();
    world.start_daemon();
    let projects = world.json(&["project", "list"]);
    let project = projects["items"][0]["name"].as_str().unwrap().to_owned();
    let role = format!("{project}=maintainer");
    let invite = |name: &str| world.everscan(&["user", "invite", name, "--role", &role]);
    let link = invite("ann");
    let old = set_password(&world, "ann", &link, "the first password of ann");
    let link = invite("bob");
    let kept = set_password(&world, "bob", &link, "the only password of bob");
    invite("kim");
    let (state, copy) = (text(&world.path("state")), text(&world.path("copy")));
    let json = ["--output", "json", "--state-dir", &state];
    everscand(&world, &[&["backup", &copy], &json[..]].concat());

    let link = world.everscan(&["user", "reset", "ann"]);
    set_password(&world, "ann", &link, "the second password of ann");
    world.everscan(&["member", "set", "ann", "viewer"]);
    world.everscan(&["user", "reset", "kim"]);
    world.stop_daemon();

    // Without the newer log everything came back.
    let whole = text(&world.path("whole"));
    let output = world.output("everscand", &["restore", &copy, "--state-dir", &whole]);
    let said = String::from_utf8(output.stdout).unwrap();
    let row = |name: &str| {
        let mut lines = said.lines().filter(|line| line.starts_with(name));
        let line = lines.next().unwrap_or_else(|| panic!("{name}: {said}"));
        line.split_whitespace().collect::<Vec<_>>().join(" ")
    };
    assert_eq!(row("ann"), format!("ann {role} yes no 1"));
    assert_eq!(row("kim"), format!("kim {role} no yes 0"));
    assert!(row("owner").starts_with("owner administrator no"));
    // Everything ends.
    let none = text(&world.path("none"));
    let output = ["--output", "json", "--state-dir", &none];
    let restore = ["restore", &copy, "--revoke-tokens"];
    let restored = everscand(&world, &[&restore, &output[..]].concat());
    let ended = restored["ended"].as_array().unwrap().iter();
    let ended: Vec<_> = ended.filter_map(|it| it["credential"].as_str()).collect();
    assert_eq!(ended, ["session", "session", "user link"], "{restored}");
    for user in restored["users"].as_array().unwrap() {
        assert_eq!(user["sessions"], json!([]), "{restored}");
        assert_eq!(user["has_open_link"], false, "{restored}");
    }

    let newer = text(&world.path("state.old"));
    std::fs::rename(&state, &newer).unwrap();
    let restore = [
        "restore",
        &copy,
        "--newer-audit",
        &newer,
        "--state-dir",
        &state,
    ];
    let output = world.output("everscand", &restore);
    let said = String::from_utf8(output.stdout).unwrap();
    let reset = format!("everscand user reset ann --state-dir {state}");
    assert!(said.contains(&reset), "{said}");
    assert!(!said.contains("user reset bob"), "{said}");

    world.start_daemon();
    assert_eq!(sign_in(&world, &old), 401, "the old password");
    assert_eq!(sign_in(&world, &kept), 201);
    let ann = world.json(&["user", "show", "ann"]);
    assert_eq!(ann["roles"][&project], "viewer", "{ann}");
    assert_eq!(ann["has_password"], false, "{ann}");
    let kim = world.json(&["user", "show", "kim"]);
    assert_eq!(kim["link_expires_at"], Value::Null, "{kim}");
    world.stop_daemon();
    let reset: Vec<&str> = reset.split(' ').skip(1).collect();
    let link = String::from_utf8(world.output("everscand", &reset).stdout).unwrap();
    world.start_daemon();
    set_password(&world, "ann", &link, "the third password of ann");
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
