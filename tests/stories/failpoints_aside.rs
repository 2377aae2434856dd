//! Kills other operations at every failpoint: a backup, a restore, the first start after a restore,
//! and the handling of damage. Then each operation is repeated and must succeed.

use std::io::{BufRead, BufReader};
use std::os::unix::process::ExitStatusExt;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitStatus, Output, Stdio};

use serde_json::Value;
use store::failpoint::MAINTENANCE_POINTS;

use crate::site::Site;
use crate::support::{World, eventually, lines, signal};
use crate::tree;

/// The exit code of a backup while another backup is running.
const IN_USE: i32 = 10;

/// The operation that reaches a point.
enum Deed {
    BackUp,
    Restore,
    /// The start of a daemon that finds the hold of a dead backup process.
    StartHeld,
    /// The start of a daemon that finds an unreadable record.
    StartDamaged,
    Repair,
    AcceptLoss,
}

/// A daemon at work, and copies of its state.
struct Aside {
    site: Site,
    /// A backup of the working daemon.
    backup: PathBuf,
}

#[test]
fn an_operation_killed_at_a_failpoint_can_be_repeated() {
    let mut world = Site::prepare();
    world.start_daemon();
    let site = Site::of(world);
    let load = site.load();
    let ran = site.world.path("ran");
    eventually("some work", || lines(&ran).len() > 4);
    let mut aside = Aside {
        backup: site.world.path("backup"),
        site,
    };
    aside.back_up();
    for point in MAINTENANCE_POINTS {
        aside.end_at(point);
    }
    drop(load);
    aside.site.world.kill_daemon();
    aside.site.hold_runner();
    let mut findings = aside.site.restart();
    aside.site.release_runner();
    findings.extend(aside.site.end());
    assert_eq!(findings, []);
}

fn deed(point: &str) -> Deed {
    match point {
        "hold-taken" | "files-copied" | "logs-copied" | "hold-removed" => Deed::BackUp,
        "copy-synced" | "manifest-written" | "copy-finished" | "copy-settled"
        | "manifest-removed" => Deed::Restore,
        "hold-ended" => Deed::StartHeld,
        "file-kept" => Deed::StartDamaged,
        "file-set-aside" => Deed::Repair,
        "loss-removed" => Deed::AcceptLoss,
        _ => panic!("no operation here reaches {point}"),
    }
}

impl Aside {
    fn back_up(&self) {
        let backup = self.backup.display().to_string();
        self.done(&["backup", &backup]);
    }

    fn end_at(&mut self, point: &str) {
        let world = &self.site.world;
        match deed(point) {
            Deed::BackUp => {
                let (to, again) = (world.path(point), world.path("again"));
                self.ended(point, &["backup", &to.display().to_string()]);
                let mut refused = restore(world, &to, &world.path("restored"));
                assert_ne!(refused.output().unwrap().status.code(), Some(0));
                self.done(&["backup", &again.display().to_string()]);
                std::fs::remove_dir_all(again).unwrap();
            }
            Deed::Restore => self.end_restore_at(point),
            Deed::StartHeld => {
                let state = self.restored(point);
                let hold = state.join("journal/HOLD");
                std::fs::write(&hold, "").unwrap();
                assert_killed(point, armed(serve(world, &state), point));
                open_and_close(world, &state);
                assert!(!hold.exists());
                self.assert_clean(point, &state);
            }
            Deed::StartDamaged => {
                let state = self.restored(point);
                let runner = files_in(&state.join("runners")).remove(0);
                std::fs::write(&runner, "[").unwrap();
                std::fs::remove_dir_all(state.join("index")).unwrap();
                assert_killed(point, armed(serve(world, &state), point));
                open_and_close(world, &state);
                let kept = state.join("quarantine/runners");
                let kept = kept.join(runner.file_name().unwrap());
                assert_eq!(std::fs::read_to_string(kept).unwrap(), "[");
                self.assert_clean(point, &state);
            }
            Deed::Repair => {
                let state = self.restored(point);
                let jobs = tree::files(&state.join("jobs"), "job.json");
                let mut over = jobs.into_iter().filter(|job| read(job)["live"] == false);
                std::fs::write(over.next().unwrap(), "[").unwrap();
                assert_killed(point, armed(repair(world, &state), point));
                assert!(repair(world, &state).output().unwrap().status.success());
                self.assert_clean(point, &state);
            }
            Deed::AcceptLoss => {
                let state = self.restored(point);
                open_and(world, &state, "KILL");
                let files = files_in(&state.join("journal")).into_iter();
                let segments = files.filter(|file| file.extension().is_some_and(|it| it == "jnl"));
                std::fs::remove_file(segments.max().unwrap()).unwrap();
                let accept = || {
                    let mut command = repair(world, &state);
                    command.arg("--accept-loss");
                    command
                };
                assert_killed(point, armed(accept(), point));
                // References to a lost change may remain.
                let code = accept().output().unwrap().status.code();
                assert!(matches!(code, Some(0 | 1)), "{point}: {code:?}");
                open_and_close(world, &state);
            }
        }
    }

    fn end_restore_at(&self, point: &str) {
        let world = &self.site.world;
        let state = world.path(point);
        assert_killed(point, armed(restore(world, &self.backup, &state), point));
        if !state.join("FORMAT").exists() {
            std::fs::remove_dir_all(&state).unwrap();
            let restored = restore(world, &self.backup, &state).output().unwrap();
            assert!(restored.status.success(), "{point}: {restored:?}");
        }
        open_and_close(world, &state);
        self.assert_clean(point, &state);
        assert!(!state.join("BACKUP").exists(), "{point}");
        for job in tree::files(&state.join("jobs"), "job.json") {
            assert_ne!(read(&job)["body"]["state"]["name"], "running", "{point}");
        }
    }

    /// Restores the backup to a folder with this name.
    fn restored(&self, name: &str) -> PathBuf {
        let state = self.site.world.path(name);
        let restored = restore(&self.site.world, &self.backup, &state).output();
        assert!(restored.unwrap().status.success());
        state
    }

    fn assert_clean(&self, point: &str, state: &Path) {
        let found = tree::check(&self.site.world, state).findings;
        assert_eq!(found, [], "{point}");
    }

    /// A program that runs while the daemon runs.
    fn command(&self, arguments: &[&str]) -> Command {
        let mut command = self.site.world.command("everscand");
        command.args(arguments).arg("--state-dir");
        command.arg(self.site.world.path("state"));
        command
    }

    fn done(&self, arguments: &[&str]) {
        let output = when_free(self.command(arguments));
        assert!(output.status.success(), "{arguments:?}: {output:?}");
    }

    fn ended(&self, point: &str, arguments: &[&str]) {
        assert_killed(point, armed(self.command(arguments), point));
    }
}

/// Runs a program once no other backup is running.
fn when_free(mut command: Command) -> Output {
    loop {
        let output = command.output().unwrap();
        if output.status.code() != Some(IN_USE) {
            return output;
        }
    }
}

fn armed(mut command: Command, point: &str) -> Command {
    command.env("EVERSCAND_FAILPOINT", format!("{point}:1"));
    command
}

fn assert_killed(point: &str, command: Command) {
    let output = when_free(command);
    assert_eq!(output.status.signal(), Some(9), "{point}: {output:?}");
}

fn restore(world: &World, backup: &Path, state: &Path) -> Command {
    let mut command = world.command("everscand");
    command.arg("restore").arg(backup);
    command.arg("--state-dir").arg(state);
    command
}

fn repair(world: &World, state: &Path) -> Command {
    let mut command = world.command("everscand");
    command.args(["fsck", "--repair", "--state-dir"]).arg(state);
    command
}

/// A daemon with this state and without sources.
fn serve(world: &World, state: &Path) -> Command {
    let mut command = world.command("everscand");
    command.args(["run", "--listen", "127.0.0.1:0", "--state-dir"]);
    command.arg(state);
    command
}

fn open_and_close(world: &World, state: &Path) {
    let status = open_and(world, state, "TERM");
    assert!(status.success(), "{status}");
}

/// Starts a daemon with this state and ends it with this signal.
fn open_and(world: &World, state: &Path, end: &str) -> ExitStatus {
    let mut command = serve(world, state);
    let daemon = command.stdout(Stdio::piped()).stderr(Stdio::null());
    let mut daemon = daemon.spawn().unwrap();
    let mut url = String::new();
    let mut output = BufReader::new(daemon.stdout.take().unwrap());
    output.read_line(&mut url).unwrap();
    signal(daemon.id(), end);
    let status = daemon.wait().unwrap();
    assert!(url.starts_with("http://"), "{status}");
    status
}

fn read(record: &Path) -> Value {
    serde_json::from_slice(&std::fs::read(record).unwrap()).unwrap()
}

fn files_in(folder: &Path) -> Vec<PathBuf> {
    let names = tree::names(folder).into_iter();
    names.map(|name| folder.join(name)).collect()
}
