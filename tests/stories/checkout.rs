//! Files of the repository in the folder of a job: their commit, their transfer, and refused files.

use std::fs;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::process::Stdio;

use client::{Client, Secret};
use wire::{Hello, Message, Poll, RegisterRunner};

use crate::support::World;

const WITH_FILES: &str = "\
scans:
  say:
    on: { dispatch: {} }
    checkout: true
    steps:
      - run: source/scripts/say.sh
      - run: |
          test \"$SERVICE_SOURCE_DIR\" = \"$PWD/source\"
          echo \"$SERVICE_SOURCE_COMMIT $SERVICE_SOURCE_REF\"
          cat \"$SERVICE_SOURCE_DIR/scripts/link\"
          test ! -e source/module || ls -A source/module
  some:
    on: { dispatch: {} }
    checkout: [scripts/say.sh]
    steps:
      - run: find source -type f
  plain:
    on: { dispatch: {} }
    steps:
      - run: test ! -e source && test -z \"$SERVICE_SOURCE_DIR\"
";

fn write(world: &World, path: &str, text: &str) {
    let path = world.path("repository").join(path);
    fs::create_dir_all(path.parent().unwrap()).unwrap();
    fs::write(path, text).unwrap();
}

fn script(world: &World, text: &str) {
    write(world, "scripts/say.sh", text);
    let path = world.path("repository/scripts/say.sh");
    fs::set_permissions(path, PermissionsExt::from_mode(0o755)).unwrap();
}

fn text_of(world: &World, arguments: &[&str]) -> String {
    let repository = world.path("repository").display().to_string();
    let all: Vec<&str> = ["-C", &repository]
        .iter()
        .chain(arguments)
        .copied()
        .collect();
    let output = world.output("git", &all);
    assert!(output.status.success(), "git {arguments:?}");
    String::from_utf8(output.stdout).unwrap().trim().to_owned()
}

fn head(world: &World) -> String {
    text_of(world, &["rev-parse", "HEAD"])
}

/// A world whose repository has a script.
fn world() -> World {
    let world = World::new();
    world.init_repository();
    script(&world, "#!/bin/sh\necho first\n");
    symlink("say.sh", world.path("repository/scripts/link")).unwrap();
    world.push(&[("files.yaml", Some(WITH_FILES))]);
    world
}

fn started(world: &mut World) {
    world.start_daemon();
    world.sync();
    world.start_runner(2);
}

/// The lines that steps and the runner have written.
fn log(world: &World, job: &str) -> Vec<String> {
    world.log(job).lines().map(str::to_owned).collect()
}

#[test]
fn a_corrected_script_reaches_the_next_job_and_a_rerun_keeps_its_script() {
    let mut world = world();
    let submodule = format!("160000,{},module", "1".repeat(40));
    world.git(&["update-index", "--add", "--cacheinfo", &submodule]);
    world.git(&["commit", "--quiet", "--message", "Add a submodule"]);
    write(
        &world,
        "data/large.bin",
        "version https://git-lfs.github.com/spec/v1\noid sha256:1\nsize 9\n",
    );
    world.git(&["add", "data"]);
    world.git(&["commit", "--quiet", "--message", "Add a pointer"]);
    started(&mut world);
    let first_commit = head(&world);
    let job = world.succeed("files", "say", &[]);
    let expected = [
        format!("4 files of commit {first_commit} (refs/heads/main) in source"),
        "submodules are empty folders: module".to_owned(),
        "files of Git LFS are pointers: data/large.bin".to_owned(),
        "first".to_owned(),
        format!("{first_commit} refs/heads/main"),
        "#!/bin/sh".to_owned(),
        "echo first".to_owned(),
    ];
    assert_eq!(log(&world, &job), expected);
    let shown = world.json(&["job", "show", "-j", &job]);
    assert_eq!(shown["source"]["commit"], first_commit.as_str());
    assert_eq!(shown["source"]["ref"], "refs/heads/main");
    let text = world.everscan(&["job", "show", "-j", &job]);
    assert!(text.contains(&first_commit), "{text}");

    script(&world, "#!/bin/sh\necho second\n");
    world.git(&["add", "scripts"]);
    world.git(&["commit", "--quiet", "--message", "Correct the script"]);
    world.sync();
    let corrected = world.succeed("files", "say", &[]);
    let shown = world.json(&["job", "show", "-j", &corrected]);
    assert_eq!(
        shown["revision"]["number"], 1,
        "the workflow did not change"
    );
    assert_eq!(shown["source"]["commit"], head(&world).as_str());
    assert!(log(&world, &corrected).contains(&"second".to_owned()));

    let again = world.everscan(&["job", "rerun", "-j", &job]);
    world.finished(again.trim());
    assert!(log(&world, again.trim()).contains(&"first".to_owned()));
    let current = world.everscan(&["job", "rerun", "--current", "-j", &job]);
    world.finished(current.trim());
    assert!(log(&world, current.trim()).contains(&"second".to_owned()));

    let some = world.succeed("files", "some", &[]);
    assert_eq!(log(&world, &some)[1..], ["source/scripts/say.sh"]);
    let plain = world.succeed("files", "plain", &[]);
    assert!(world.log(&plain).is_empty());

    // A missing path fails the job, and the error names it.
    world.git(&["rm", "--quiet", "-r", "scripts"]);
    world.git(&["commit", "--quiet", "--message", "Remove the scripts"]);
    world.sync();
    let missing = world.dispatch("files", "some", &[]);
    let shown = world.finished(&missing);
    assert_eq!(shown["state"], "failed");
    assert_eq!(shown["reason"]["code"], "checkout_failed");
    let message = shown["reason"]["message"].as_str().unwrap();
    assert!(
        message.contains(&head(&world)) && message.contains("has no `scripts/say.sh`"),
        "{message}"
    );
}

/// Writes an object of Git and returns its name.
fn object(world: &World, arguments: &[&str], content: &str) -> String {
    let repository = world.path("repository").display().to_string();
    let mut child = world
        .command("git")
        .args(["-C", &repository])
        .args(arguments)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    std::io::Write::write_all(&mut child.stdin.take().unwrap(), content.as_bytes()).unwrap();
    let output = child.wait_with_output().unwrap();
    assert!(output.status.success(), "git {arguments:?}");
    String::from_utf8(output.stdout).unwrap().trim().to_owned()
}

#[test]
fn a_hostile_tree_writes_only_inside_the_jobs_folder() {
    let mut world = world();
    let outside = world.path("outside");
    fs::create_dir(&outside).unwrap();
    let target = object(
        &world,
        &["hash-object", "-w", "--stdin"],
        &outside.display().to_string(),
    );
    let blob = object(&world, &["hash-object", "-w", "--stdin"], "hostile");
    let inner = object(&world, &["mktree"], &format!("100644 blob {blob}\tb\n"));
    let workflows = text_of(&world, &["rev-parse", "HEAD:workflows"]);
    // A link `a` that leads outside, and a folder `a` with a file.
    let entries = format!(
        "120000 blob {target}\ta\n040000 tree {inner}\ta\n040000 tree {workflows}\tworkflows\n"
    );
    let tree = object(&world, &["mktree"], &entries);
    let commit = text_of(
        &world,
        &["commit-tree", "-p", "HEAD", "-m", "Hostile", &tree],
    );
    world.git(&["update-ref", "refs/heads/main", &commit]);
    started(&mut world);
    let job = world.dispatch("files", "say", &[]);
    let shown = world.finished(&job);
    assert_eq!(shown["state"], "failed");
    let message = shown["reason"]["message"].as_str().unwrap();
    assert!(
        message.contains(&format!("commit {commit}: a is there twice")),
        "{message}"
    );
    assert_eq!(fs::read_dir(&outside).unwrap().count(), 0);
    // The daemon and the runner continue.
    world.succeed("files", "plain", &[]);
}

#[test]
fn a_lost_mirror_is_rebuilt_and_a_job_names_its_lost_commit() {
    let mut world = world();
    world.start_daemon();
    world.sync();
    let commit = head(&world);
    let kept = world.dispatch("files", "say", &[]);
    world.stop_daemon();
    fs::remove_dir_all(world.path("state/sources/main/mirror.git")).unwrap();
    world.start_daemon();
    world.start_runner(1);
    let shown = world.finished(&kept);
    assert_eq!(shown["state"], "succeeded", "{shown}\n{}", world.log(&kept));
    world.stop_runner();

    // The runner's cache does not have the files of the next job.
    let lost = world.dispatch("files", "some", &[]);
    world.stop_daemon();
    fs::remove_dir_all(world.path("state/sources/main/mirror.git")).unwrap();
    // The history is rewritten, and the commit is removed from the repository.
    world.git(&["checkout", "--quiet", "--orphan", "other"]);
    world.git(&["commit", "--quiet", "--message", "Another beginning"]);
    world.git(&["branch", "--quiet", "--force", "main", "other"]);
    world.git(&["checkout", "--quiet", "main"]);
    world.git(&["branch", "--quiet", "-D", "other"]);
    world.git(&["reflog", "expire", "--expire=now", "--all"]);
    world.git(&["gc", "--quiet", "--prune=now"]);
    world.start_daemon();
    world.run_runner();
    let shown = world.finished(&lost);
    assert_eq!(shown["state"], "failed", "{shown}");
    assert_eq!(shown["reason"]["code"], "checkout_failed");
    let message = shown["reason"]["message"].as_str().unwrap();
    assert!(
        message.contains(&format!("commit {commit} of source `main` is gone")),
        "{message}"
    );
    world.succeed("files", "say", &[]);
}

#[test]
fn a_runner_without_checkout_gets_no_offer_for_the_job() {
    let mut world = world();
    world.start_daemon();
    world.sync();
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .unwrap();
    let token = world.everscan(&["runner", "register-token"]);
    let anonymous = Client::new(world.url(), None).unwrap();
    let ask = RegisterRunner {
        token: token.trim().to_owned(),
        name: "old".to_owned(),
        labels: Vec::new(),
        exclusive: false,
        capacity: 2,
        version: "0.0.1".to_owned(),
        replace: false,
    };
    let registered = runtime.block_on(anonymous.register(&ask)).unwrap();
    let old = anonymous.with_token(Secret::new(registered.token));
    let hello = |capabilities: &[&str]| Hello {
        version: "0.0.1".to_owned(),
        instance: uuid::Uuid::nil(),
        capabilities: capabilities.iter().map(ToString::to_string).collect(),
    };
    runtime
        .block_on(old.hello(&hello(&["of-the-future"])))
        .unwrap();
    let job = world.dispatch("files", "say", &[]);
    let why = world.json(&["job", "show", "-j", &job])["waiting"].clone();
    assert_eq!(why["code"], "runners_too_old");
    assert_eq!(
        why["message"],
        "no connected runner with its labels knows `checkout`; update the runner"
    );
    // The runner gets an offer for the other job that it can run, although the first job is older.
    let plain = world.dispatch("files", "plain", &[]);
    let poll = Poll {
        instance: uuid::Uuid::nil(),
        number: None,
        capacity: 2,
        holding: Vec::new(),
    };
    let offered = |runtime: &tokio::runtime::Runtime| {
        let answer = runtime.block_on(old.poll(&poll)).unwrap();
        let jobs = answer.messages.into_iter().map(|message| match message {
            Message::JobAssigned(offer) => offer.id.to_string(),
            Message::JobCancelled(cancelled) => panic!("{cancelled:?}"),
        });
        jobs.collect::<Vec<_>>()
    };
    assert_eq!(offered(&runtime), std::slice::from_ref(&plain));

    // The same runner, updated.
    runtime.block_on(old.hello(&hello(&["checkout"]))).unwrap();
    let mut both = offered(&runtime);
    both.sort();
    assert_eq!(both, [job, plain]);
}

#[test]
fn the_example_runs_a_script_of_its_repository() {
    let example = concat!(env!("CARGO_MANIFEST_DIR"), "/../examples/scripts");
    let mut world = World::new();
    let repository = world.path("repository").display().to_string();
    assert!(
        world
            .output("cp", &["-r", example, &repository])
            .status
            .success()
    );
    world.init_repository();
    world.push(&[]);
    started(&mut world);
    let job = world.succeed("words", "count", &[]);
    let lines = log(&world, &job);
    let commit = head(&world);
    assert_eq!(
        lines[0],
        format!("3 files of commit {commit} (refs/heads/main) in source")
    );
    assert!(lines[1].contains(&commit), "{lines:?}");
    assert_eq!(lines[2], "8\ta");
    let words = &world.artifact(&job, "words")["words.tsv"];
    assert!(String::from_utf8_lossy(words).contains("\n2\tscan\n"));
}
