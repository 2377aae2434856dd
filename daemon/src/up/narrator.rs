//! The events that `up` prints, one line each.
//!
//! It compares the world with the printed lines, so a missed wake-up loses nothing: a job that started and ended meanwhile is
//! printed with its end.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;
use std::sync::Arc;

use chrono::Local;
use model::condition::{Condition, Problem, Subject};
use model::{
    Cause, ConditionId, Job, JobId, JobState, Outcome, Reason, Source, SourceCondition, StaleFile,
    Status, Timestamp, Trigger, WorkflowId, WorkflowStatus, World,
};
use reconciler::Handle;
use state::JobFilter;
use workflow::{Diagnostic, SETTINGS_FILE};

use crate::limits::{PRINTED_JOBS, SEARCHED_RECORDS};

/// What has been printed so far.
#[derive(Default)]
pub(super) struct Narrator {
    first_step: String,
    /// The active revision; none if the file is gone.
    workflows: BTreeMap<WorkflowId, Option<u64>>,
    invalid: BTreeMap<String, Invalid>,
    /// Problems of the whole repository.
    complaints: BTreeSet<String>,
    conditions: BTreeMap<ConditionId, String>,
    latest: Option<JobId>,
    /// Jobs whose end is not printed yet.
    unfinished: BTreeSet<JobId>,
}

#[derive(Clone, PartialEq, Eq)]
struct Invalid {
    workflow: WorkflowId,
    commit: String,
}

impl Narrator {
    /// Skips existing jobs, because they belong to an earlier run.
    pub(super) fn of(handle: &Handle, first_step: String) -> Self {
        handle.state().read(|world| Self {
            first_step,
            latest: Some(world.latest_job()),
            unfinished: world.jobs().map(|job| job.id).collect(),
            ..Self::default()
        })
    }

    /// Compares the world with what was printed, and returns the new lines.
    pub(super) async fn news(&mut self, handle: &Handle) -> Vec<String> {
        let mut lines = handle.state().read(|world| {
            let mut lines = Vec::new();
            for workflow in world.workflows() {
                let record = &workflow.record;
                let printed = self.workflow(
                    record.id,
                    &record.name,
                    &record.status,
                    record.revision.number,
                    &record.revision.commit,
                );
                let is_new = printed.is_some() && record.status == WorkflowStatus::Active;
                lines.extend(printed);
                if is_new {
                    lines.extend(workflow.revision.warnings.iter().map(warning));
                }
            }
            for source in world.sources().filter(|source| source.configured) {
                self.source(source, &mut lines);
            }
            lines
        });
        self.jobs(handle, &mut lines).await;
        let conditions = handle.state().read(conditions);
        self.conditions(conditions, &mut lines);
        lines
    }

    fn conditions(&mut self, open: BTreeMap<ConditionId, String>, lines: &mut Vec<String>) {
        for (id, text) in &open {
            if !self.conditions.contains_key(id) {
                lines.push(format!("needs you: {text}"));
            }
        }
        for (id, text) in &self.conditions {
            if !open.contains_key(id) {
                lines.push(format!("settled: {text}"));
            }
        }
        self.conditions = open;
    }

    fn workflow(
        &mut self,
        id: WorkflowId,
        name: &str,
        status: &WorkflowStatus,
        number: u64,
        commit: &str,
    ) -> Option<String> {
        let now = match status {
            WorkflowStatus::Active => Some(number),
            WorkflowStatus::Retired { .. } => None,
        };
        let printed = self.workflows.insert(id, now);
        match (printed, now) {
            (printed, now) if printed == Some(now) => None,
            (None, None) => None,
            (_, Some(number)) => {
                let commit: String = commit.chars().take(7).collect();
                Some(format!(
                    "{name}: revision {number} is active (commit {commit})"
                ))
            }
            (Some(_), None) => Some(format!(
                "{name}: its file is gone; nothing of it starts any more"
            )),
        }
    }

    fn source(&mut self, source: &Source, lines: &mut Vec<String>) {
        let conditions = source.conditions.iter();
        let mut complaints: BTreeSet<String> =
            conditions.filter_map(|one| self.complaint(one)).collect();
        complaints.extend(source.warnings.iter().map(warning));
        lines.extend(complaints.difference(&self.complaints).cloned());
        self.complaints = complaints;
        let invalid = source.stale_files.iter().map(|stale| {
            let file = Invalid {
                workflow: stale.workflow,
                commit: stale.commit.clone(),
            };
            (stale.file.clone(), file)
        });
        let before = std::mem::replace(&mut self.invalid, invalid.collect());
        for stale in &source.stale_files {
            let printed = before.get(&stale.file);
            if printed.is_none_or(|printed| printed.commit != stale.commit) {
                lines.extend(self.diagnostics(stale));
            }
        }
        for (file, printed) in &before {
            if !self.invalid.contains_key(file) {
                lines.push(self.no_longer_invalid(file, printed.workflow));
            }
        }
    }

    /// The message of a condition about the whole repository. Files have separate lines.
    fn complaint(&self, condition: &SourceCondition) -> Option<String> {
        let has_workflows = self.workflows.values().any(Option::is_some);
        match &condition.reason {
            Reason::FilesInvalid { .. } | Reason::TipPartlyActive { .. } | Reason::NeverFetched => {
                None
            }
            Reason::EmptyRepository | Reason::FolderMissing { .. } | Reason::NoWorkflows { .. }
                if !has_workflows =>
            {
                Some(format!("no workflow yet: {}", self.first_step))
            }
            _ if condition.status == Status::True => None,
            reason => Some(format!("the repository: {reason}")),
        }
    }

    /// The line for a file that is no longer invalid.
    fn no_longer_invalid(&self, file: &str, workflow: WorkflowId) -> String {
        if file == SETTINGS_FILE {
            return format!("{file}: no longer invalid");
        }
        match self.workflows.get(&workflow) {
            Some(Some(number)) => format!("{file}: valid again; revision {number} is active"),
            Some(None) | None => format!("{file}: removed"),
        }
    }

    /// The lines for an invalid file: its problems with their places, and the revision that runs instead.
    fn diagnostics(&self, stale: &StaleFile) -> Vec<String> {
        let mut lines: Vec<String> = stale
            .diagnostics
            .iter()
            .map(|one| placed(one, &one.message))
            .collect();
        lines.push(match self.workflows.get(&stale.workflow) {
            _ if stale.file == SETTINGS_FILE => {
                format!("{SETTINGS_FILE}: invalid; its last valid rules go on")
            }
            Some(Some(number)) => format!("{}: invalid; revision {number} goes on", stale.file),
            Some(None) | None => format!("{}: invalid; it has never been good", stale.file),
        });
        lines
    }

    /// Prints the end of a job before the jobs that it made: scans that read it, and its retry.
    async fn jobs(&mut self, handle: &Handle, lines: &mut Vec<String>) {
        for (id, line) in self.new_jobs(handle).await {
            // The causes of this job have ended by now, and may be new themselves.
            self.ends(handle, lines).await;
            lines.push(line);
            self.unfinished.insert(id);
        }
        self.ends(handle, lines).await;
    }

    async fn new_jobs(&mut self, handle: &Handle) -> Vec<(JobId, String)> {
        let latest = handle.state().read(World::latest_job);
        let printed = self.latest.replace(latest);
        if printed == Some(latest) {
            return Vec::new();
        }
        let page = handle
            .state()
            .jobs(&JobFilter::default(), None, PRINTED_JOBS)
            .await;
        let jobs = page.map(|page| page.jobs).unwrap_or_default();
        let mut new = Vec::new();
        // A job that was made meanwhile is reported next time.
        let is_new = |job: &Arc<Job>| Some(job.id) > printed && job.id <= latest;
        for job in jobs.into_iter().filter(is_new).rev() {
            let made = made(&job, cause(handle, &job).await);
            new.push((job.id, format!("{}: {made}", title(&job))));
        }
        new
    }

    async fn ends(&mut self, handle: &Handle, lines: &mut Vec<String>) {
        for id in self.unfinished.clone() {
            // An unreadable job is not reported again. The log has the error.
            let job = handle.state().job(id).await.ok().flatten();
            match job {
                Some(job) if !job.state.is_terminal() => {}
                Some(job) => {
                    lines.push(format!("{}: {}", title(&job), ended(&job)));
                    self.unfinished.remove(&id);
                }
                None => {
                    self.unfinished.remove(&id);
                }
            }
        }
    }
}

/// The open conditions. Those of files and the repository have other lines.
fn conditions(world: &World) -> BTreeMap<ConditionId, String> {
    let is_printed = |open: &&Arc<Condition>| {
        !matches!(
            open.problem,
            Problem::SourceFailing { .. }
                | Problem::RemovalHeld { .. }
                | Problem::InvalidFile { .. }
        )
    };
    let text = |open: &Arc<Condition>| {
        let workflow = |id| world.workflow_record(id).map(|it| it.name.clone());
        let about = match &open.subject {
            Subject::Scan { workflow: id, scan } => {
                workflow(*id).map(|name| format!("{name} {scan}"))
            }
            Subject::Workflow { workflow: id } => workflow(*id),
            Subject::Runner { runner } => world.runner(*runner).map(|it| it.name.clone()),
            Subject::Channel { channel } => world
                .channel(*channel)
                .map(|it| format!("channel {}", it.name)),
            Subject::Token { token } => world.token(*token).map(|it| format!("token {}", it.name)),
            Subject::Source { .. } | Subject::Project { .. } | Subject::Instance => None,
        };
        let about = about.map_or_else(String::new, |about| format!("{about}: "));
        (open.id, format!("{about}{}", open.problem))
    };
    let open = world.conditions().filter(is_printed);
    open.map(text).collect()
}

fn warning(one: &Diagnostic) -> String {
    placed(one, &format!("warning: {}", one.message))
}

fn placed(one: &Diagnostic, text: &str) -> String {
    let mut line = format!("{}:{}:{}: {text}", one.file, one.line, one.column);
    if let Some(hint) = &one.hint {
        // Writing to a string cannot fail.
        let _written = write!(line, " (hint: {hint})");
    }
    line
}

async fn cause(handle: &Handle, job: &Job) -> Option<String> {
    if job.trigger != Trigger::Expr {
        return None;
    }
    let records = handle
        .state()
        .ledger(&job.scan_key(), None, None, SEARCHED_RECORDS)
        .await;
    let made = Outcome::Made { job: job.id };
    let record = records
        .ok()?
        .records
        .into_iter()
        .find(|record| record.outcome == made)?;
    let expression = record.evaluation.map(|evaluation| evaluation.expression)?;
    match record.cause {
        Cause::Success { scan, .. } => Some(format!(
            "{scan} succeeded, and {} is true",
            expression.trim()
        )),
        Cause::Activation { revision } => Some(format!(
            "revision {revision} added or changed the scan, and {} is true",
            expression.trim()
        )),
        Cause::Failure { scan, .. } => {
            Some(format!("{scan} failed, and {} is true", expression.trim()))
        }
        Cause::Slots { .. }
        | Cause::Resumed { .. }
        | Cause::Interactions { .. }
        | Cause::Claim { .. }
        | Cause::Clock { .. }
        | Cause::Repeats { .. } => None,
    }
}

fn title(job: &Job) -> String {
    format!("{} {}", job.workflow.name, job.scan)
}

fn made(job: &Job, cause: Option<String>) -> String {
    let why = match (&job.reason, cause) {
        (_, Some(cause)) => cause,
        (Reason::Dispatched, None) => format!("dispatched by {}", job.actor),
        (reason, None) => reason.to_string(),
    };
    // Lines show times in the time zone of this machine.
    let not_before = job.not_before.map_or_else(String::new, |at| {
        format!(", at {}", at.with_timezone(&Local).format("%H:%M:%S"))
    });
    format!("job {}: {why}{not_before}", job.id)
}

fn ended(job: &Job) -> String {
    let Some(end) = job.state.end() else {
        return job.state.name().to_owned();
    };
    let seconds = |from: Timestamp| (end.at - from).as_seconds_f64();
    match &job.state {
        JobState::Succeeded { run, .. } => {
            let kept: Vec<&str> = run.artifacts.iter().map(|one| one.name.as_str()).collect();
            let kept = match kept.as_slice() {
                [] => String::new(),
                names => format!("; kept {}", names.join(", ")),
            };
            format!("succeeded after {:.1} s{kept}", seconds(run.started_at))
        }
        JobState::Failed { run, .. } => {
            let log = format!("see: everscan job logs {}", job.id);
            format!(
                "failed after {:.1} s: {}; {log}",
                seconds(run.started_at),
                end.reason
            )
        }
        JobState::Cancelled { .. } | JobState::Skipped { .. } => {
            format!("{}: {}", job.state.name(), end.reason)
        }
        JobState::Scheduled | JobState::Running { .. } => job.state.name().to_owned(),
    }
}
