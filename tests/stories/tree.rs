//! Reads the files of a state folder. `everscand fsck` checks whether they are valid; the checks
//! here are for facts that it cannot know or does not check.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use chrono::{DateTime, Utc};
use serde_json::Value;
use uuid::Uuid;

use crate::load::PAUSE;
use crate::promises::Finding;
use crate::support::World;

/// After this time without requests a daemon makes no more changes, even on the busiest machine.
const SETTLED: Duration = Duration::from_secs(60);

/// The result of a check.
pub(crate) struct Checked {
    pub(crate) findings: Vec<Finding>,
    pub(crate) last_commit: u64,
}

/// The jobs in the files.
#[derive(Default)]
pub(crate) struct Past {
    /// Jobs with a record.
    pub(crate) jobs: BTreeSet<Uuid>,
    /// Jobs that have ended according to the histories.
    pub(crate) ended: BTreeMap<Uuid, End>,
    /// The newest successes of all scans.
    pub(crate) successes: Vec<Uuid>,
    /// From this time on the histories are complete. A page is removed with the last of its jobs,
    /// so jobs that ended before the first remaining line are in no file.
    pub(crate) whole_since: DateTime<Utc>,
}

/// How a job ended.
pub(crate) struct End {
    pub(crate) workflow: String,
    pub(crate) at: DateTime<Utc>,
}

/// Lets `everscand fsck` check the state folder at `root`, whether or not a daemon uses it. Notes
/// do not count: a crash may cause them.
pub(crate) fn check(world: &World, root: &Path) -> Checked {
    let root = root.display().to_string();
    let output = world.output(
        "everscand",
        &["fsck", "--output", "json", "--state-dir", &root],
    );
    let Ok(report) = serde_json::from_slice::<Value>(&output.stdout) else {
        let said = String::from_utf8_lossy(&output.stderr);
        return Checked {
            findings: vec![Finding::Torn(format!("fsck, {}: {said}", output.status))],
            last_commit: 0,
        };
    };
    let summary = &report["summary"];
    let condition = match summary["in_use"].as_bool() {
        Some(true) => "while a daemon runs",
        _ => "without a daemon",
    };
    let found = report["findings"].as_array().unwrap().iter();
    let findings = found
        .filter(|found| found["severity"] != "note")
        .map(|found| {
            let what = format!("{condition}: {found}");
            match found["code"].as_str() {
                Some("history_twice") => Finding::Twice(what),
                _ => Finding::Torn(what),
            }
        });
    Checked {
        findings: findings.collect(),
        last_commit: summary["last_commit"].as_u64().unwrap(),
    }
}

/// Reads the state folder of a running daemon, which may be changing the files: only a finding that stays is an error.
pub(crate) fn read_while_daemon_runs(root: &Path) -> (Past, Vec<Finding>) {
    let until = Instant::now() + SETTLED;
    loop {
        let (past, findings) = look(root);
        if findings.is_empty() || Instant::now() > until {
            return (past, findings);
        }
        std::thread::sleep(PAUSE);
    }
}

/// Reads the jobs, histories and heads below the state folder at `root`, and compares the existing
/// jobs with the records of removed jobs.
pub(crate) fn look(root: &Path) -> (Past, Vec<Finding>) {
    let (mut past, mut findings) = (Past::default(), Vec::new());
    let mut unfinished = BTreeSet::new();
    for path in files(&root.join("jobs"), "job.json") {
        // The job may have been removed meanwhile. Unreadable records are found by `fsck`.
        let Some(job) = record(&path) else { continue };
        past.jobs.insert(id(&job["id"]));
        if job["state"]["end"].is_null() {
            unfinished.insert(id(&job["id"]));
        }
    }
    for path in files(&root.join("workflows"), "head.json") {
        let Some(head) = record(&path) else { continue };
        let successes = head["successes"].as_array().into_iter().flatten();
        past.successes.extend(successes.map(|it| id(&it["job"])));
        let folder = path.parent().unwrap();
        let lines = history(folder, &head);
        let retention = record(&folder.join("retention.json")).unwrap_or_default();
        findings.extend(compare_retention(&lines, &retention, &past.jobs));
        let first = lines.first().filter(|line| line.place.0 > 0);
        past.whole_since = first.map_or(past.whole_since, |line| past.whole_since.max(line.at));
        for line in lines {
            past.ended.insert(
                line.job,
                End {
                    workflow: head["workflow"].as_str().unwrap().to_owned(),
                    at: line.at,
                },
            );
        }
    }
    let ended = unfinished.iter().filter(|job| past.ended.contains_key(job));
    findings.extend(ended.map(|job| {
        let what = format!(
            "job {job} has ended according to its history, but not according to its record"
        );
        Finding::Torn(what)
    }));
    (past, findings)
}

/// A line of a history, and its place.
struct Line {
    job: Uuid,
    at: DateTime<Utc>,
    place: (u64, u64),
}

/// The lines of the history of a head. The head has the end of the history.
fn history(scan: &Path, head: &Value) -> Vec<Line> {
    let mut lines = Vec::new();
    let last = number(&head["history"]["page"]);
    for page in 0..=last {
        let path = scan.join(format!("history/{page}.jsonl"));
        // A page is removed with the last of its jobs.
        let mut bytes = std::fs::read(path).unwrap_or_default();
        if page == last {
            bytes.truncate(number(&head["history"]["bytes"]) as usize);
        }
        let mut at = 0;
        for text in bytes.split_inclusive(|byte| *byte == b'\n') {
            if let Ok(line) = serde_json::from_slice::<Value>(text) {
                lines.push(Line {
                    job: id(&line["id"]),
                    at: line["finished_at"].as_str().unwrap().parse().unwrap(),
                    place: (page, at),
                });
            }
            at += text.len() as u64;
        }
    }
    lines
}

/// If retention has read a job's line, the job is removed or is recorded as a job that had to stay.
fn compare_retention(lines: &[Line], retention: &Value, jobs: &BTreeSet<Uuid>) -> Vec<Finding> {
    let from = &retention["from"];
    let from = (number(&from["page"]), number(&from["at"]));
    let passed = retention["passed_over"].as_array().into_iter().flatten();
    let passed: BTreeSet<Uuid> = passed.map(|job| id(&job["id"])).collect();
    let mut findings = Vec::new();
    for line in lines.iter().filter(|line| line.place < from) {
        if jobs.contains(&line.job) != passed.contains(&line.job) {
            let what = format!("job {} exists or is recorded to exist", line.job);
            findings.push(Finding::Torn(format!("{what}, but not both")));
        }
    }
    findings
}

/// The body of a record.
fn record(path: &Path) -> Option<Value> {
    let bytes = std::fs::read(path).ok()?;
    let mut record: Value = serde_json::from_slice(&bytes).ok()?;
    Some(record["body"].take())
}

fn id(value: &Value) -> Uuid {
    value.as_str().unwrap().parse().unwrap()
}

fn number(value: &Value) -> u64 {
    value.as_u64().unwrap_or_default()
}

/// The names in a folder, if there is one.
pub(crate) fn names(folder: &Path) -> Vec<String> {
    let entries = std::fs::read_dir(folder).into_iter().flatten();
    let names = entries.map(|entry| entry.unwrap().file_name());
    names
        .map(|name| name.to_str().unwrap().to_owned())
        .collect()
}

/// The files of that name below a folder.
pub(crate) fn files(folder: &Path, name: &str) -> Vec<PathBuf> {
    let mut found = Vec::new();
    let mut folders = vec![folder.to_owned()];
    while let Some(folder) = folders.pop() {
        let Ok(entries) = std::fs::read_dir(&folder) else {
            continue;
        };
        for entry in entries {
            let entry = entry.unwrap();
            // What goes meanwhile is neither.
            if entry.file_type().is_ok_and(|kind| kind.is_dir()) {
                folders.push(entry.path());
            } else if entry.file_name() == name {
                found.push(entry.path());
            }
        }
    }
    found
}

/// Every file below a folder, by its path in it.
pub(crate) fn contents(folder: &Path) -> BTreeMap<PathBuf, Vec<u8>> {
    let mut found = BTreeMap::new();
    let mut folders = vec![folder.to_owned()];
    while let Some(next) = folders.pop() {
        for entry in std::fs::read_dir(next).into_iter().flatten() {
            let entry = entry.unwrap();
            let path = entry.path();
            // What goes meanwhile is neither.
            if entry.file_type().is_ok_and(|kind| kind.is_dir()) {
                folders.push(path);
            } else if let Ok(bytes) = std::fs::read(&path) {
                found.insert(path.strip_prefix(folder).unwrap().to_owned(), bytes);
            }
        }
    }
    found
}
