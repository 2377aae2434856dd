//! The past of a job from its record, or of a scan from its history.

use std::path::Path;

use model::{HistoryLine, Job, JobId, ScanHead, Timestamp};
use serde::Serialize;
use store::look::Look;

use super::contents::{is_named, record_at, record_of};
use super::{InspectError, folders};
use crate::envelope;
use crate::fsck::{each_line, join};
use crate::layout::{Layout, RecordPlace};

/// An event in the past of a job.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Step {
    pub at: Timestamp,
    pub job: JobId,
    pub state: String,
    pub what: String,
}

/// The events of a job, in order; or at most `limit` ended jobs of a scan or of all scans of a workflow, newest first.
pub fn history(root: &Path, name: &str, limit: usize) -> Result<Vec<Step>, InspectError> {
    let look = Look::at(root)?;
    if let Ok(id) = name.parse::<JobId>() {
        let key = Layout::job(id);
        if let Some(bytes) = look.get(&key)? {
            let job = envelope::open_at::<Job>(&key, &bytes);
            let job = job.map_err(|error| InspectError::Damaged {
                path: key.to_string(),
                problem: error.to_string(),
            })?;
            return Ok(of_job(&job));
        }
    }
    let mut is_known = false;
    let mut steps = Vec::new();
    for workflow in folders(&look, "workflows")? {
        let is_named_so = record_of(&look, &workflow).is_some_and(|record| is_named(&record, name));
        for scan in folders(&look, &join(&workflow, "scans"))? {
            let Some(head) = record_at::<ScanHead>(&look, RecordPlace::Head, &scan) else {
                continue;
            };
            if is_named_so || head.scan.as_str() == name || head.workflow.to_string() == name {
                is_known = true;
                of_scan(&look, &head, limit, &mut steps)?;
            }
        }
    }
    if !is_known {
        return Err(InspectError::Unknown {
            name: name.to_owned(),
        });
    }
    steps.sort_by_key(|step| std::cmp::Reverse((step.at, step.job)));
    steps.truncate(limit);
    Ok(steps)
}

fn of_job(job: &Job) -> Vec<Step> {
    let step = |at, state: &str, what: String| Step {
        at,
        job: job.id,
        state: state.to_owned(),
        what,
    };
    let made = format!("{} of {}, {}", job.trigger.name(), job.scan, job.actor);
    let mut steps = vec![step(job.created_at, "scheduled", made)];
    if let Some(run) = job.state.run() {
        steps.push(step(
            run.started_at,
            "running",
            format!("by {}", run.runner.name),
        ));
    }
    if let Some(end) = job.state.end() {
        let why = format!("{}, {}", end.reason, end.actor);
        steps.push(step(end.at, job.state.name(), why));
    }
    steps
}

/// The newest lines of a history, page by page from its end.
fn of_scan(
    look: &Look,
    head: &ScanHead,
    limit: usize,
    steps: &mut Vec<Step>,
) -> Result<(), InspectError> {
    let mut found = 0;
    for page in (0..=head.history.page).rev() {
        if found >= limit {
            break;
        }
        let end = if page == head.history.page {
            head.history.bytes
        } else {
            u64::MAX
        };
        let key = Layout::history(&head.key(), page);
        each_line(look, &key, end, |_, line| {
            // Damaged lines are skipped. `fsck` reports them.
            if let Ok(line) = serde_json::from_slice::<HistoryLine>(line) {
                found += 1;
                steps.push(Step {
                    at: line.finished_at,
                    job: line.id,
                    state: line.state.name().to_owned(),
                    what: format!("{} of {}", line.trigger.name(), head.scan),
                });
            }
        })?;
    }
    Ok(())
}
