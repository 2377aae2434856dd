//! Whether the files of a state folder agree with each other: what one commit has changed in several of them is in all
//! or in none.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use serde_json::Value;

use crate::promises::Finding;

/// How a finished job ended.
type Ends = BTreeMap<String, String>;

/// Compares the jobs, histories and heads below the state folder at `root`. What is torn stays so: only what a second
/// look finds as well was not just being changed.
pub(crate) fn compare(root: &Path) -> Vec<Finding> {
    let mut findings = look(root);
    if !findings.is_empty() {
        let again = look(root);
        findings.retain(|found| again.contains(found));
    }
    findings
}

fn look(root: &Path) -> Vec<Finding> {
    let mut findings = Vec::new();
    let mut of_jobs: BTreeMap<(String, String), Ends> = BTreeMap::new();
    for path in files(&root.join("jobs"), "job.json") {
        let Some(job) = record(&path, &mut findings) else {
            continue;
        };
        let scan = (text(&job["workflow"]["id"]), text(&job["scan"]));
        let ends = of_jobs.entry(scan).or_default();
        if !job["state"]["end"].is_null() {
            ends.insert(text(&job["id"]), text(&job["state"]["name"]));
        }
    }
    for path in files(&root.join("workflows"), "head.json") {
        let Some(head) = record(&path, &mut findings) else {
            continue;
        };
        let scan = (text(&head["workflow"]), text(&head["scan"]));
        let history = history(path.parent().unwrap(), &head, &mut findings);
        let jobs = of_jobs.remove(&scan).unwrap_or_default();
        let mut differ = |what: String| {
            findings.push(Finding::Torn(format!("scan {}: {what}", scan.1)));
        };
        for (job, end) in &jobs {
            if history.get(job) != Some(end) {
                differ(format!(
                    "job {job} is {end}, and {:?} in the history",
                    history.get(job)
                ));
            }
        }
        for job in history.keys().filter(|job| !jobs.contains_key(*job)) {
            differ(format!("job {job} of the history is not finished"));
        }
        let ends = ["succeeded", "failed", "cancelled", "skipped"];
        let counted: u64 = ends
            .iter()
            .filter_map(|end| head["totals"][end].as_u64())
            .sum();
        if counted != history.len() as u64 {
            differ(format!(
                "its head counts {counted} jobs of {}",
                history.len()
            ));
        }
    }
    for ((_, scan), jobs) in of_jobs {
        if !jobs.is_empty() {
            findings.push(Finding::Torn(format!(
                "scan {scan}: {} finished jobs and no head",
                jobs.len()
            )));
        }
    }
    findings
}

/// The ends of jobs in the history beside a head, which says where it ends.
fn history(scan: &Path, head: &Value, findings: &mut Vec<Finding>) -> Ends {
    let mut ends = Ends::new();
    let tail = &head["history"];
    let last = tail["page"].as_u64().unwrap_or_default();
    for page in 0..=last {
        let path = scan.join(format!("history/{page}.jsonl"));
        let mut bytes = std::fs::read(&path).unwrap_or_default();
        if page == last {
            let length = tail["bytes"].as_u64().unwrap_or_default() as usize;
            if bytes.len() < length {
                findings.push(Finding::Torn(format!(
                    "{} has {} bytes of {length}",
                    path.display(),
                    bytes.len()
                )));
            }
            bytes.truncate(length);
        }
        for line in bytes.split(|byte| *byte == b'\n') {
            match serde_json::from_slice::<Value>(line) {
                _ if line.is_empty() => {}
                Ok(line) => {
                    let job = text(&line["id"]);
                    if ends.insert(job.clone(), text(&line["state"])).is_some() {
                        findings.push(Finding::Twice(format!("job {job} in the history")));
                    }
                }
                Err(error) => {
                    findings.push(Finding::Torn(format!("{}: {error}", path.display())));
                }
            }
        }
    }
    ends
}

/// The body of a record.
fn record(path: &Path, findings: &mut Vec<Finding>) -> Option<Value> {
    let bytes = std::fs::read(path).unwrap();
    match serde_json::from_slice::<Value>(&bytes) {
        Ok(mut record) => Some(record["body"].take()),
        Err(error) => {
            let what = format!("{} ({} bytes): {error}", path.display(), bytes.len());
            findings.push(Finding::Torn(what));
            None
        }
    }
}

fn text(value: &Value) -> String {
    value.as_str().unwrap_or_default().to_owned()
}

/// The files of that name below a folder.
fn files(folder: &Path, name: &str) -> Vec<PathBuf> {
    let mut found = Vec::new();
    let mut folders = vec![folder.to_owned()];
    while let Some(folder) = folders.pop() {
        let Ok(entries) = std::fs::read_dir(&folder) else {
            continue;
        };
        for entry in entries {
            let entry = entry.unwrap();
            if entry.file_type().unwrap().is_dir() {
                folders.push(entry.path());
            } else if entry.file_name() == name {
                found.push(entry.path());
            }
        }
    }
    found
}
