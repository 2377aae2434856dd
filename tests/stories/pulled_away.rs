//! Removes files of the state: parts of the journal after the daemon was killed, and the lock, the
//! journal or a folder while it runs.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

use crate::support::{World, eventually, lines};

const WORKFLOW: &str = "
scans:
  greet:
    on: {dispatch: {}}
    steps:
      - run: echo hello
";
const JOBS: usize = 12;

/// A daemon without a runner, so that every job waits.
fn waiting(jobs: usize) -> (World, BTreeSet<String>) {
    let mut world = World::new();
    world.init_repository();
    world.push(&[("hello.yaml", Some(WORKFLOW))]);
    world.start_daemon();
    world.sync();
    let jobs = (0..jobs)
        .map(|_| world.dispatch("hello", "greet", &[]))
        .collect();
    (world, jobs)
}

fn newest_segment(state: &Path) -> PathBuf {
    let names = std::fs::read_dir(state.join("journal")).unwrap();
    let paths = names.map(|entry| entry.unwrap().path());
    let segments = paths.filter(|path| path.extension().is_some_and(|end| end == "jnl"));
    segments.max().unwrap()
}

fn cut(path: &Path, length: u64) {
    let file = std::fs::File::options().write(true).open(path).unwrap();
    file.set_len(length).unwrap();
}

/// The number of jobs with a record in the files.
fn records(state: &Path) -> usize {
    let found = Command::new("find")
        .arg(state.join("jobs"))
        .args(["-name", "job.json"])
        .output()
        .unwrap();
    String::from_utf8(found.stdout).unwrap().lines().count()
}

/// Whether the files have everything of the first dispatch: its job, and its line of the audit log.
fn are_written(state: &Path) -> bool {
    let found = Command::new("grep")
        .args(["--recursive", "--quiet", "job_dispatched"])
        .arg(state.join("audit"))
        .status();
    records(state) == 1 && found.unwrap().success()
}

fn copy(from: &Path, to: &Path) {
    let copied = Command::new("cp").arg("-a").args([from, to]).status();
    assert!(copied.unwrap().success());
}

/// Starts a daemon that must refuse, and returns its message.
fn refused(world: &mut World) -> String {
    let before = lines(&world.path("daemon.log")).len();
    world.spawn_daemon();
    assert!(!world.await_daemon(), "it serves: {}", world.daemon_log());
    let ended = world.daemon_ended();
    let printed = lines(&world.path("daemon.log"))[before..].join("\n");
    assert_eq!(ended.code(), Some(12), "{printed}");
    printed
}

/// Every job is listed, and ends when it is cancelled.
fn assert_all_jobs_can_be_cancelled(world: &World, jobs: &BTreeSet<String>) {
    let listed: BTreeSet<String> = world.jobs_of("hello", "greet").into_iter().collect();
    assert_eq!(&listed, jobs, "{}", world.daemon_log());
    for job in jobs {
        world.everscan(&["job", "cancel", "-j", job]);
        assert_eq!(world.finished(job)["state"], "cancelled");
    }
}

#[test]
fn a_start_refuses_an_incomplete_journal_and_no_job_is_lost() {
    let (mut world, jobs) = waiting(JOBS);
    let (state, whole) = (world.path("state"), world.path("whole"));
    for n in 0..5 {
        world.everscan(&["var", "set", "DEPTH", &n.to_string()]);
    }
    // The files do not show changes that are only in the journal and the daemon's memory.
    eventually("the files", || records(&state) == JOBS);
    world.kill_daemon();
    copy(&state, &whole);

    type Damage = fn(&Path);
    let damages: [(&str, Damage); 3] = [
        ("the newest segment is gone", |state| {
            std::fs::remove_file(newest_segment(state)).unwrap();
        }),
        ("it is shorter", |state| cut(&newest_segment(state), 5_000)),
        ("the journal is gone", |state| {
            std::fs::remove_dir_all(state.join("journal")).unwrap();
        }),
    ];
    let state_dir = state.to_str().unwrap().to_owned();
    for (what, damage) in damages {
        damage(&state);
        let printed = refused(&mut world);
        assert!(printed.contains("fsck"), "{what}: {printed}");
        refused(&mut world);
        let fsck = |more: &[&str]| {
            let arguments = [&["fsck", "--state-dir", &state_dir], more].concat();
            let output = world.output("everscand", &arguments);
            (
                output.status.code(),
                String::from_utf8(output.stdout).unwrap(),
            )
        };
        let (code, printed) = fsck(&[]);
        assert_eq!(code, Some(1), "{what}: {printed}");
        assert!(printed.contains("journal_damaged"), "{what}: {printed}");
        let (code, printed) = fsck(&["--repair", "--accept-loss"]);
        assert_eq!(code, Some(0), "{what}: {printed}");
        world.start_daemon();
        assert_all_jobs_can_be_cancelled(&world, &jobs);
        world.stop_daemon();
        std::fs::remove_dir_all(&state).unwrap();
        copy(&whole, &state);
    }
    // With the complete journal, nothing is lost.
    world.start_daemon();
    let var = world.json(&["var", "get", "DEPTH"]);
    assert_eq!(var["value"], "4", "{var}");
    assert_all_jobs_can_be_cancelled(&world, &jobs);
}

/// Asserts that the daemon refuses changes, and ends with the right exit code.
fn assert_stops(world: &mut World, what: &str) -> String {
    let set = world.output("everscan", &["var", "set", "DEPTH", "9"]);
    assert!(!set.status.success(), "{what}: acknowledged");
    let ended = world.daemon_ended();
    let printed = world.daemon_log();
    assert_eq!(ended.code(), Some(16), "{what}: {printed}");
    assert!(printed.contains("hint: "), "{what}: {printed}");
    printed
}

/// A second daemon on the same folder; it is killed with the test.
struct Second(Child);

impl Drop for Second {
    fn drop(&mut self) {
        drop(self.0.kill());
        drop(self.0.wait());
    }
}

#[test]
fn a_daemon_without_its_lock_leaves_the_state_to_the_next_daemon() {
    let (mut world, jobs) = waiting(1);
    std::fs::remove_file(world.path("state/LOCK")).unwrap();
    let second = world
        .command("everscand")
        .args(["run", "--listen", "127.0.0.1:0", "--state-dir"])
        .arg(world.path("state"))
        .arg("--source")
        .arg(format!("main={}", world.path("repository").display()))
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn();
    let mut second = Second(second.unwrap());
    let mut url = String::new();
    let output = second.0.stdout.take().unwrap();
    std::io::BufRead::read_line(&mut std::io::BufReader::new(output), &mut url).unwrap();
    assert!(url.starts_with("http://"), "{url}");
    let printed = assert_stops(&mut world, "LOCK is gone");
    assert!(printed.contains("LOCK"), "{printed}");
    let set = world
        .command("everscan")
        .env("SERVICE_URL", url.trim())
        .args(["var", "set", "DEPTH", "7"])
        .status();
    assert!(set.unwrap().success(), "the second daemon serves");
    drop(second);
    world.start_daemon();
    let var = world.json(&["var", "get", "DEPTH"]);
    assert_eq!(var["value"], "7", "{var}");
    assert_all_jobs_can_be_cancelled(&world, &jobs);
}

#[test]
fn a_daemon_whose_state_was_removed_stops_and_creates_no_new_state() {
    let (mut world, _) = waiting(1);
    std::fs::remove_dir_all(world.path("state/journal")).unwrap();
    assert_stops(&mut world, "the journal is gone");
    assert!(refused(&mut world).contains("fsck"));
    drop(world);

    let (mut world, _) = waiting(1);
    let token = world.token().unwrap();
    // Wait for all files: otherwise the daemon would create the folders again to write them.
    eventually("the files", || are_written(&world.path("state")));
    // The daemon may write a file while the folder is being emptied.
    eventually("the state to be gone", || {
        let removed = std::fs::remove_dir_all(world.path("state"));
        removed.is_ok()
    });
    let set = world
        .command("everscan")
        .env("SERVICE_TOKEN", token)
        .args(["var", "set", "DEPTH", "9"])
        .status();
    assert!(!set.unwrap().success(), "acknowledged");
    assert_eq!(world.daemon_ended().code(), Some(16));
    assert!(!world.path("state").exists());
}

#[test]
fn a_daemon_whose_folder_of_jobs_was_removed_stops_at_the_next_job() {
    let (mut world, mut jobs) = waiting(1);
    eventually("the files", || records(&world.path("state")) == 1);
    // After the second job, the thread that writes files has surely cached the folder `jobs`.
    jobs.insert(world.dispatch("hello", "greet", &[]));
    eventually("the files", || records(&world.path("state")) == 2);
    std::fs::remove_dir_all(world.path("state/jobs")).unwrap();
    // The change is in the journal, where the next start finds it.
    let next = world.dispatch("hello", "greet", &[]);
    // Its files are written a moment later. Setting the same value again is not a change.
    let mut depths = 0..;
    eventually("the refusal", || {
        let depth = depths.next().map(|depth: u32| depth.to_string());
        let set = world.output("everscan", &["var", "set", "DEPTH", &depth.unwrap()]);
        !set.status.success()
    });
    assert_eq!(world.daemon_ended().code(), Some(16));
    assert!(world.daemon_log().contains("state/jobs"));
    assert!(!world.path("state/jobs").exists());
    world.start_daemon();
    assert!(!jobs.contains(&next));
    world.everscan(&["job", "cancel", "-j", &next]);
    assert_eq!(world.finished(&next)["state"], "cancelled");
}
