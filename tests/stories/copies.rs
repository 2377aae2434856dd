//! Makes backups of a state folder under load.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Mutex;
use std::time::Duration;

use serde_json::Value;
use tokio::process::Command;
use uuid::Uuid;
use wire::JobState;

use crate::promises::{Finding, Promises};
use crate::support::{World, eventually};
use crate::tree::{self, Past};

/// The pause between two backups.
const BACKUP_PAUSE: Duration = Duration::from_millis(200);

/// Makes backups and knows their folders.
#[derive(Clone)]
pub(crate) struct Copier {
    program: PathBuf,
    state: PathBuf,
    copies: PathBuf,
}

/// The results of the backups.
#[derive(Default)]
pub(crate) struct Copies {
    /// Backups that were begun.
    begun: u64,
    /// The last backup that was made.
    made: Option<Backup>,
    /// Backups that were compared.
    pub(crate) compared: u64,
}

/// A backup, and the data that it must contain.
struct Backup {
    folder: PathBuf,
    sequence: u64,
    /// The jobs that existed before it began.
    jobs: BTreeMap<Uuid, JobState>,
}

impl Copier {
    pub(crate) fn of(world: &World) -> Self {
        Self {
            program: world.path("bin/everscand"),
            state: world.path("state"),
            copies: world.path("copies"),
        }
    }

    /// Runs the program. Returns its output if it succeeds. Dropping the future kills it.
    async fn run(&self, arguments: &[&str]) -> Option<String> {
        let mut command = Command::new(&self.program);
        command
            .args(arguments)
            .arg("--state-dir")
            .arg(&self.state)
            .kill_on_drop(true);
        let output = command.output().await.unwrap();
        let said = String::from_utf8_lossy(&output.stdout);
        output.status.success().then(|| said.trim().to_owned())
    }
}

/// Makes a backup.
pub(crate) async fn back_up(copier: &Copier, promises: &Mutex<Promises>) {
    tokio::time::sleep(BACKUP_PAUSE).await;
    let (number, jobs) = {
        let mut promises = promises.lock().unwrap();
        promises.copies.begun += 1;
        (promises.copies.begun, promises.states())
    };
    let folder = copier.copies.join(number.to_string());
    let to = folder.display().to_string();
    let said = copier.run(&["backup", &to, "--output", "json"]).await;
    let Some(report) = said.and_then(|said| serde_json::from_str::<Value>(&said).ok()) else {
        return;
    };
    let made = Backup {
        folder,
        sequence: report["sequence"].as_u64().unwrap(),
        jobs,
    };
    promises.lock().unwrap().copies.made = Some(made);
}

impl Copies {
    /// Restores the last backup, if any, and compares it with its expected jobs, as far as they still exist.
    pub(crate) fn compare(&mut self, world: &World, past: &Past) -> Vec<Finding> {
        let made = self.made.take();
        let findings = made.map_or_else(Vec::new, |made| {
            self.compared += 1;
            made.compare(world, past)
        });
        for name in tree::names(&world.path("copies")) {
            let copy = world.path("copies").join(name);
            // A killed program may still write for a moment.
            eventually("the end of a copy", || {
                std::fs::remove_dir_all(&copy).is_ok() || !copy.exists()
            });
        }
        findings
    }
}

impl Backup {
    fn compare(self, world: &World, past: &Past) -> Vec<Finding> {
        let mut findings = self.check(world, &self.folder);
        let state = world.path("copies/restored");
        let words = [&self.folder, Path::new("--state-dir"), &state];
        let restored = world
            .command("everscand")
            .arg("restore")
            .args(words)
            .output()
            .unwrap();
        if !restored.status.success() {
            let said = String::from_utf8_lossy(&restored.stderr);
            findings.push(Finding::Lost(format!("a backup: {said}")));
            return findings;
        }
        findings.extend(self.check(world, &state));
        let (of_backup, _) = tree::look(&state);
        let there = self.jobs.into_iter();
        for (job, state) in there.filter(|(job, _)| past.jobs.contains(job)) {
            let ended = of_backup.ended.contains_key(&job);
            if !of_backup.jobs.contains(&job) || (state.is_terminal() && !ended) {
                findings.push(Finding::Lost(format!("job {job} in a backup, {state:?}")));
            }
        }
        findings
    }

    /// Checks a backup, or the state restored from it.
    fn check(&self, world: &World, root: &Path) -> Vec<Finding> {
        let checked = tree::check(world, root);
        let mut findings = checked.findings;
        if checked.last_commit < self.sequence {
            findings.push(Finding::Lost(format!(
                "{} ends with commit {}, and the backup promised {}",
                root.display(),
                checked.last_commit,
                self.sequence
            )));
        }
        findings
    }
}
