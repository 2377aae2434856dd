//! Makes backups while jobs start and end, copies them with common programs, and restores them.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, Ordering};

use crate::support::World;
use crate::tree;

/// Jobs with a log, an artifact and optionally inputs that are too large for their record.
const BUSY: &str = "\
scans:
  work:
    on:
      dispatch:
        inputs:
          one: {type: string, default: small}
          two: {type: string, default: small}
    env:
      ONE: ${{ inputs.one }}
    steps:
      - run: |
          for n in 1 2 3 4 5; do echo \"$n ${#ONE} ${SERVICE_JOB_ID:-job}\"; done
          head -c 20000 /dev/urandom > out
    artifacts:
      - name: result
        paths: [out]
";

/// Several times the size of the jobs and their copies on a slow machine.
const ROOM: u64 = 2 << 30;

/// Copies a backup to another folder.
type Move = fn(&World, &Path, &Path);

/// A backup, and the jobs that it must contain.
struct Taken {
    name: &'static str,
    folder: PathBuf,
    /// Every job that was acknowledged before it began.
    acknowledged: BTreeSet<String>,
    /// The files of those that had ended by then.
    ended: BTreeSet<PathBuf>,
}

#[test]
fn backups_under_load_are_complete() {
    let mut world = memory().map_or_else(World::new, World::below);
    world.init_repository();
    world.push(&[("busy.yaml", Some(BUSY))]);
    world.start_daemon();
    world.sync();
    world.start_runner(4);
    let (dispatched, done) = (Mutex::new(BTreeSet::new()), AtomicBool::new(false));
    let mut taken = Vec::new();
    std::thread::scope(|scope| {
        // Also after a failure: the scope waits for the dispatching threads.
        let _done = Done(&done);
        for _ in 0..2 {
            scope.spawn(|| keep_dispatching(&world, &dispatched, &done));
        }
        let methods: [(&str, Move); 4] = [
            ("itself", |_, from, to| fs::rename(from, to).unwrap()),
            ("cp", by_cp),
            ("tar", by_tar),
            ("rsync", by_rsync),
        ];
        for (name, move_to) in methods {
            if let Some(reason) = missing(name) {
                skip(&reason);
                continue;
            }
            // Jobs run between two backups.
            let before = dispatched.lock().unwrap().len();
            crate::support::eventually("more jobs", || {
                dispatched.lock().unwrap().len() > before + 2
            });
            let folder = world.path(name);
            let acknowledged = dispatched.lock().unwrap().clone();
            let ended = ended_jobs(&world.path("state"));
            let made = world.path("made");
            back_up(&world, &made);
            move_to(&world, &made, &folder);
            drop(fs::remove_dir_all(&made));
            taken.push(Taken {
                name,
                folder,
                acknowledged,
                ended,
            });
        }
    });
    for job in dispatched.into_inner().unwrap() {
        world.finished(&job);
    }
    world.stop_runner();
    world.stop_daemon();
    let mut seen = (0, 0);
    for backup in &taken {
        let (jobs, ended) = assert_whole(&world, backup);
        seen = (seen.0 + jobs, seen.1 + ended);
    }
    assert!(
        seen.1 > 0 && seen.0 > seen.1,
        "{} jobs, {} of them ended",
        seen.0,
        seen.1
    );
}

/// A file system in memory with enough space. A backup ends with a sync of its whole file system, which on a disk waits
/// for the writes of all other processes.
pub(crate) fn memory() -> Option<&'static Path> {
    let memory = Path::new("/dev/shm");
    let stat = rustix::fs::statvfs(memory).ok()?;
    (stat.f_bavail * stat.f_frsize > ROOM).then_some(memory)
}

/// Ends the dispatching when it is dropped.
struct Done<'a>(&'a AtomicBool);

impl Drop for Done<'_> {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}

fn keep_dispatching(world: &World, dispatched: &Mutex<BTreeSet<String>>, done: &AtomicBool) {
    let large = "x".repeat(40_000);
    let inputs = [format!("one={large}"), format!("two={large}")];
    for n in 0.. {
        if done.load(Ordering::Relaxed) {
            return;
        }
        let inputs: Vec<&str> = match n % 3 {
            0 => inputs.iter().map(String::as_str).collect(),
            _ => Vec::new(),
        };
        let job = world.dispatch("busy", "work", &inputs);
        dispatched.lock().unwrap().insert(job);
    }
}

fn back_up(world: &World, to: &Path) {
    let (state, to) = (world.path("state"), to.display().to_string());
    let arguments = ["backup", &to, "--output", "json", "--state-dir"];
    let output = world
        .command("everscand")
        .args(arguments)
        .arg(state)
        .output();
    let output = output.unwrap();
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{said}");
    let report: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
    assert!(report["files"].as_u64().unwrap() > 5, "{report}");
    assert!(report["sequence"].as_u64().unwrap() > 5, "{report}");
}

fn by_cp(world: &World, from: &Path, to: &Path) {
    run(world, "cp", &["-a", &text(from), &text(to)]);
}

fn by_tar(world: &World, from: &Path, to: &Path) {
    let archive = format!("{}.tar", to.display());
    run(world, "tar", &["-C", &text(from), "-cf", &archive, "."]);
    fs::create_dir(to).unwrap();
    run(world, "tar", &["-C", &text(to), "-xf", &archive]);
}

fn by_rsync(world: &World, from: &Path, to: &Path) {
    let (from, to) = (format!("{}/", from.display()), format!("{}/", to.display()));
    run(world, "rsync", &["-a", &from, &to]);
}

fn text(path: &Path) -> String {
    path.display().to_string()
}

fn run(world: &World, program: &str, arguments: &[&str]) {
    let output = world.output(program, arguments);
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{program}: {said}");
}

/// Why a copy program cannot be used here.
fn missing(name: &str) -> Option<String> {
    if !matches!(name, "cp" | "tar" | "rsync") {
        return None;
    }
    let asked = std::process::Command::new(name).arg("--version").output();
    let error = asked.err()?;
    Some(format!("{name} is not installed: {error}"))
}

#[expect(clippy::print_stderr, reason = "a skipped test prints the reason")]
fn skip(reason: &str) {
    eprintln!("SKIP: {reason}");
}

/// The folders of finished jobs below a state folder, by their path in it.
fn ended_jobs(state: &Path) -> BTreeSet<PathBuf> {
    let records = tree::contents(&state.join("jobs"));
    let is_over = |text: &[u8]| {
        let record: serde_json::Value = serde_json::from_slice(text).unwrap_or_default();
        record["live"] == false
    };
    records
        .into_iter()
        .filter(|(path, text)| path.ends_with("job.json") && is_over(text))
        .filter_map(|(path, _)| path.parent().map(Path::to_owned))
        .collect()
}

/// Restores a backup and compares its jobs with their later state. Returns how many there are, and how many had ended.
fn assert_whole(world: &World, backup: &Taken) -> (usize, usize) {
    let Taken {
        name,
        folder,
        acknowledged,
        ended,
    } = backup;
    assert_eq!(tree::check(world, folder).findings, [], "{name}");
    let state = world.path(&format!("{name}-restored"));
    let (from, to) = (folder.display().to_string(), state.display().to_string());
    let restored = world.output("everscand", &["restore", &from, "--state-dir", &to]);
    let said = String::from_utf8_lossy(&restored.stderr).into_owned();
    assert!(restored.status.success(), "{name}: {said}");
    assert!(!said.contains("ERROR"), "{name}: {said}");
    let refused = world.output("everscand", &["restore", &from, "--state-dir", &to]);
    assert_eq!(refused.status.code(), Some(2));

    let (original, copy) = (
        tree::contents(&world.path("state/jobs")),
        tree::contents(&state.join("jobs")),
    );
    let jobs: BTreeSet<&Path> = copy.keys().filter_map(|path| job_folder(path)).collect();
    for job in acknowledged {
        assert!(
            jobs.iter().any(|folder| folder.ends_with(job)),
            "{name}: {job} is missing"
        );
    }
    for folder in ended {
        assert!(jobs.contains(folder.as_path()), "{name}: {folder:?}");
    }
    let mut over = 0;
    for job in &jobs {
        let of = |files: &BTreeMap<PathBuf, Vec<u8>>| -> BTreeMap<PathBuf, Vec<u8>> {
            let all = files.iter().filter(|(path, _)| path.starts_with(job));
            all.map(|(path, bytes)| (path.clone(), bytes.clone()))
                .collect()
        };
        let (mut was, mut is) = (of(&original), of(&copy));
        let record: serde_json::Value = serde_json::from_slice(&is[&job.join("job.json")]).unwrap();
        let succeeded = record["body"]["state"]["name"] == "succeeded";
        over += usize::from(succeeded);
        assert!(succeeded || !ended.contains(*job), "{name}: {record}");
        if !succeeded {
            // The job waits, or the restore has ended it. Its files are prefixes of the later files.
            for file in ["job.json", "log.jsonl"] {
                let (was, is) = (was.remove(&job.join(file)), is.remove(&job.join(file)));
                let (was, is) = (was.unwrap_or_default(), is.unwrap_or_default());
                assert!(
                    file == "job.json" || was.starts_with(&is),
                    "{name}: {job:?}"
                );
            }
            was.retain(|path, _| is.contains_key(path));
        }
        assert!(
            was == is,
            "{name}: {job:?} has {:?}, and had {:?}",
            is.keys().collect::<Vec<_>>(),
            was.keys().collect::<Vec<_>>()
        );
    }
    (jobs.len(), over)
}

/// The folder of the job that a file below `jobs/` belongs to.
fn job_folder(path: &Path) -> Option<&Path> {
    path.ancestors()
        .find(|folder| folder.components().count() == 4)
}
