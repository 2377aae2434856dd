//! Checks a job's folder: the record, the log and the artifacts. Compares them with other records.

use std::collections::BTreeSet;

use model::retention::Expiry;
use model::{Artifact, Inputs, Job, JobId};
use store::Key;
use store::look::Role;

use super::check::{Check, Checked, Expected, join};
use super::damaged_lines::DamagedLines;
use super::finding::Code;
use super::lines::each_line;
use crate::envelope;
use crate::layout::{Layout, RecordPlace};
use crate::log::LogRecord;
use crate::record::Typed;

const ARTIFACTS: &str = "artifacts";

pub(crate) fn check(check: &mut Check<'_>, folder: &str) {
    let mut record = None;
    let mut others = Vec::new();
    for entry in check.entries(folder) {
        let path = join(folder, &entry.name);
        match entry.role {
            Role::File(key) => match RecordPlace::parse(&key) {
                Some(RecordPlace::Job) => record = Some(key),
                Some(RecordPlace::Log | RecordPlace::Inputs) => others.push(key),
                Some(_) | None => check.unknown(&path),
            },
            Role::Folder if entry.name == ARTIFACTS => {
                for entry in check.entries(&path) {
                    match entry.role {
                        Role::File(key) => others.push(key),
                        _ => check.unknown(&join(&path, &entry.name)),
                    }
                }
            }
            _ => check.unknown(&path),
        }
    }
    let Some(key) = record else {
        for key in others {
            check.find(Code::Orphan, key, "there is no record of its job");
        }
        return;
    };
    let Some(Checked {
        typed: Typed::Job(job),
        sequence,
    }) = check.record(&key)
    else {
        let job = RecordPlace::Job.word(&key, "job");
        let line = job.and_then(|id| check.known.learned.ended(id));
        let scan = line.map(|line| line.scan.as_ref().clone());
        check.facts.learned.doubtful.extend(scan);
        return;
    };
    check.facts.counts.jobs += 1;
    if let Some(state) = job.state.kind().ended() {
        let present = check.facts.learned.present.entry(job.scan_key());
        present.or_default().count(state, job.bytes());
        check_expiry(check, &job);
    }
    for problem in job.irregularities() {
        check.find(Code::JobIllegal, &key, problem);
    }
    if sequence <= check.known.began {
        check_history(check, &job);
    }
    if !job.state.is_terminal() && !check.known.learned.revisions.contains(&job.revision.id) {
        let revision = Layout::revision(job.workflow.id, &job.revision);
        let what = format!(
            "job {} runs this revision, but the record of the revision is not readable",
            job.id
        );
        check.find(Code::RecordMissing, revision, what);
    }
    check_log(check, &job);
    let mut named = BTreeSet::from([Layout::log(job.id)]);
    if let Inputs::Object { sha256, bytes } = &job.inputs {
        let expected = Expected {
            sha256,
            size: Some(*bytes),
            missing: Code::InputsMissing,
            differs: Code::InputsDiffer,
        };
        let key = Layout::inputs(job.id);
        check.object(&key, &expected);
        named.insert(key);
    }
    for artifact in job.state.run().into_iter().flat_map(|run| &run.artifacts) {
        named.insert(Layout::artifact(job.id, &artifact.name));
        check_artifact(check, job.id, artifact);
    }
    if job.state.is_terminal() {
        for key in others.into_iter().filter(|key| !named.contains(key)) {
            check.find(Code::Orphan, key, "the record of its job does not name it");
        }
    }
}

fn check_history(check: &mut Check<'_>, job: &Job) {
    let Some(end) = job.state.end() else {
        return;
    };
    let key = Layout::job(job.id);
    match check.known.learned.ended(job.id) {
        None if check.known.learned.cut.contains(&job.scan_key()) => {}
        None => {
            let what = format!(
                "the job has ended, but the history of `{}` has no line for it",
                job.scan
            );
            check.find(Code::HistoryLacks, key, what);
        }
        Some(line)
            if *line.scan != job.scan_key()
                || Some(line.state) != job.state.kind().ended()
                || line.at != end.at =>
        {
            let what = format!(
                "the job was {} at {}, but the history of `{}` has a different end",
                job.state.name(),
                end.at,
                job.scan
            );
            check.find(Code::HistoryDiffers, key, what);
        }
        Some(_) => {}
    }
}

/// Compares a log with the number of lines in its job's record.
fn check_log(check: &mut Check<'_>, job: &Job) {
    let key = Layout::log(job.id);
    let mut damaged = DamagedLines::new(Code::LogLine, &key);
    let mut next = 0;
    let read = each_line(check.look, &key, u64::MAX, |at, line| {
        // A crash or a lost runner can leave half a line, which was never acknowledged.
        if !line.ends_with(b"\n") && damaged.is_empty() {
            return;
        }
        match serde_json::from_slice::<LogRecord>(line) {
            Ok(record) if record.n == next => next += 1,
            Ok(record) => {
                damaged.add(
                    at,
                    format!("the line has the number {} instead of {next}", record.n),
                );
                next = record.n.saturating_add(1);
            }
            Err(error) => {
                damaged.add(at, error);
                next += 1;
            }
        }
    });
    let Some(length) = check.readable(key.as_str(), read) else {
        return;
    };
    damaged.finish(check);
    let Some(run) = job.state.run().filter(|run| run.log_records > 0) else {
        return;
    };
    if !job.state.is_terminal() {
        return;
    }
    if length.is_none() {
        let what = format!("its job has {} lines, but it is missing", run.log_records);
        check.find(Code::LogMissing, key, what);
    } else if next != run.log_records {
        let what = format!("it has {next} lines instead of {}", run.log_records);
        check.find(Code::LogCount, key, what);
    }
}

fn check_artifact(check: &mut Check<'_>, job: JobId, artifact: &Artifact) {
    if artifact.removed.is_some() {
        return;
    }
    let expected = Expected {
        sha256: &artifact.sha256,
        size: Some(artifact.size),
        missing: Code::ArtifactMissing,
        differs: Code::ArtifactDiffers,
    };
    check.object(&Layout::artifact(job, &artifact.name), &expected);
}

/// A finished job with artifacts that expire must have an expiry record for its earliest expiry.
fn check_expiry(check: &mut Check<'_>, job: &Job) {
    let Some(expiry) = job.expiry() else {
        return;
    };
    let key = Layout::expiry(&expiry);
    if let Ok(None) = check.look.length(&key) {
        let what = format!("an artifact of job {} expires at {}", job.id, expiry.at);
        check.find(Code::ExpiryMissing, key, what);
    }
}

/// An expiry record must agree with its job.
pub(super) fn check_expiry_record(check: &mut Check<'_>, key: &Key, expiry: &Expiry) {
    let id = expiry.job;
    let place = Layout::job(id);
    let job = match check.look.get(&place) {
        Ok(Some(bytes)) => envelope::open_at::<Job>(&place, &bytes),
        Ok(None) => return check.find(Code::ExpiryStray, key, format!("there is no job {id}")),
        Err(_) => return,
    };
    // The check of the job itself reports an unreadable record.
    let Ok(job) = job else {
        return;
    };
    if !job.state.is_terminal() || job.expiry().as_ref() != Some(expiry) {
        let what = format!("no artifact of job {id} expires at {}", expiry.at);
        check.find(Code::ExpiryStray, key, what);
    }
}
