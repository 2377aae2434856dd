//! The job record. Each state has exactly its own data.

mod run;

use std::collections::BTreeMap;
use std::fmt;

use serde::{Deserialize, Serialize};
use workflow::{InputValue, Scan, ScanName};

pub use self::run::{
    Artifact, JobToken, LeftOut, LeftOutFile, LogCut, Removed, Run, RunCallback, RunnerRef, Step,
    StepOutcome, StepStatus,
};
use crate::callback::{CallbackCause, CallbackId, Interaction};
use crate::limits::INLINE_PAYLOAD_BYTES;
use crate::retry::RetryOf;
use crate::revision::{RevisionRef, WorkflowRef};
use crate::{Actor, Hops, JobId, ProjectId, Reason, ScanKey, Timestamp};

/// One invocation of a scan. A job is one attempt and is never repeated.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Job {
    pub id: JobId,
    pub project: ProjectId,
    pub workflow: WorkflowRef,
    pub revision: RevisionRef,
    pub scan: ScanName,
    pub trigger: Trigger,
    pub reason: Reason,
    pub actor: Actor,
    /// The inputs, with defaults.
    pub inputs: Inputs,
    pub created_at: Timestamp,
    /// The job of which this job is a rerun.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rerun_of: Option<JobId>,
    /// The commit whose files the job gets, if its scan has a `checkout`. It is set when a job is dispatched, and for
    /// other jobs at the claim.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub source: Option<Box<JobSource>>,
    /// The failed or lost job of which this job is a retry.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub retry_of: Option<RetryOf>,
    /// The job that retries this job. It was created in the commit that ended this job.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub retried_by: Option<JobId>,
    /// No runner gets the job before this time. In the world's time: see `world/ends.rs`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub not_before: Option<Timestamp>,
    /// The jobs whose ends triggered the expression that created this job: the newest of each scan, newest first.
    /// A retry has the causes of the job that it retries.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub causes: Vec<JobId>,
    /// How many jobs of a cycle of scans led to this job, one after the other.
    #[serde(default, skip_serializing_if = "Hops::is_none")]
    pub hops: Hops,
    /// The interactions that started it. A retry has those of the job that it retries.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub callback: Option<Box<CallbackCause>>,
    pub state: JobState,
}

impl Job {
    /// The reason for its present state.
    pub fn reason(&self) -> &Reason {
        match (self.state.end(), self.state.run()) {
            (Some(end), _) => &end.reason,
            (None, Some(_)) => &Reason::Claimed,
            (None, None) => &self.reason,
        }
    }

    /// True if its steps may see this interaction: it made the name, or the interaction has started it.
    pub fn hears(&self, server: CallbackId, it: &Interaction) -> bool {
        let has_started =
            |cause: &CallbackCause| cause.server == server && cause.has(&self.scan_key(), it);
        it.is_of(self.id) || self.callback.as_deref().is_some_and(has_started)
    }

    /// No interaction of this server before this number is for its steps.
    pub fn hears_from(&self, server: CallbackId) -> u64 {
        let cause = self.callback.as_ref().filter(|it| it.server == server);
        let claim = self.state.run().and_then(|run| run.callback);
        let claim = claim.filter(|it| it.server == server);
        let numbers = [cause.map(|it| it.first), claim.map(|it| it.since)];
        numbers.into_iter().flatten().min().unwrap_or(0)
    }

    /// True if suspending the scan cancels this job while it waits. A dispatched job, or one that interactions have started, is
    /// held instead, but a retry of it is cancelled.
    pub fn ends_with_suspension(&self) -> bool {
        match self.trigger {
            Trigger::Dispatch | Trigger::Callback => self.retry_of.is_some(),
            Trigger::Cron | Trigger::Expr => true,
        }
    }

    /// The token and the run of a job that somebody has ended, whose steps may clean up until the token expires.
    pub(crate) fn clean_up(&self) -> Option<(&JobToken, &Run)> {
        self.ended_by_another_at()?;
        let run = self.state.run()?;
        Some((run.job_token.as_ref()?, run))
    }

    pub fn scan_key(&self) -> ScanKey {
        ScanKey::new(self.workflow.id, &self.scan)
    }
}

/// A commit of a source, for the files of a job.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct JobSource {
    pub commit: String,
    /// The branch or tag that the source follows: the configured reference, or the branch to which the remote's HEAD points.
    pub reference: String,
}

/// The kind of event that started a job.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Trigger {
    /// A person or program dispatched it.
    Dispatch,
    /// A slot of the schedule was due.
    Cron,
    /// An expression on other scans' results became true.
    Expr,
    /// A callback server had interactions.
    Callback,
}

impl Trigger {
    pub const ALL: [Self; 4] = [Self::Dispatch, Self::Cron, Self::Expr, Self::Callback];

    pub fn named(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|trigger| trigger.name() == name)
    }

    pub const fn name(self) -> &'static str {
        match self {
            Self::Dispatch => "dispatch",
            Self::Cron => "cron",
            Self::Expr => "expr",
            Self::Callback => "callback",
        }
    }
}

/// A job's inputs. Small inputs are in the record.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Inputs {
    Inline(BTreeMap<String, InputValue>),
    /// The values as a JSON object in the job's own file.
    Object {
        /// SHA-256 of the file, hexadecimal.
        sha256: String,
        /// Length of the file.
        bytes: u64,
    },
    /// The defaults of the scan, which are in the job's revision.
    Defaults,
}

/// The state of a job. It never moves back; [`crate::JobEvent`] has the transitions.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "name", rename_all = "snake_case")]
pub enum JobState {
    /// Waits for a runner.
    Scheduled,
    /// Claimed by a runner.
    Running { run: Box<Run> },
    /// The job ended and no step made it fail.
    Succeeded { end: End, run: Box<Run> },
    /// The job ended because a step, an artifact or the runner failed, or because its `timeout` passed.
    Failed { end: End, run: Box<Run> },
    /// The job was ended by a person or with its worker session, or its scan was removed before the job started.
    Cancelled {
        end: End,
        /// The run, if it had started.
        run: Option<Box<Run>>,
    },
    /// The job never ran, because its expression was no longer true when a runner claimed it.
    Skipped { end: End },
}

impl Inputs {
    /// The inputs of a job that was not dispatched.
    pub fn defaults_of(scan: &Scan) -> Self {
        let inputs = scan.default_inputs();
        match large_payload(&inputs) {
            Some(_) => Self::Defaults,
            None => Self::Inline(inputs),
        }
    }
}

/// The inputs as JSON, if they are too large for a record.
pub fn large_payload(inputs: &BTreeMap<String, InputValue>) -> Option<Vec<u8>> {
    let bytes = serde_json::to_vec(inputs).unwrap_or_default();
    (bytes.len() > INLINE_PAYLOAD_BYTES).then_some(bytes)
}

impl JobState {
    pub const fn name(&self) -> &'static str {
        self.kind().name()
    }

    /// The state without its data.
    pub const fn kind(&self) -> StateKind {
        match self {
            Self::Scheduled => StateKind::Scheduled,
            Self::Running { .. } => StateKind::Running,
            Self::Succeeded { .. } => StateKind::Ended(EndState::Succeeded),
            Self::Failed { .. } => StateKind::Ended(EndState::Failed),
            Self::Cancelled { .. } => StateKind::Ended(EndState::Cancelled),
            Self::Skipped { .. } => StateKind::Ended(EndState::Skipped),
        }
    }

    /// The run of the job, if it was claimed.
    pub fn run(&self) -> Option<&Run> {
        match self {
            Self::Scheduled | Self::Skipped { .. } => None,
            Self::Running { run } | Self::Succeeded { run, .. } | Self::Failed { run, .. } => {
                Some(run)
            }
            Self::Cancelled { run, .. } => run.as_deref(),
        }
    }

    pub(crate) fn run_mut(&mut self) -> Option<&mut Run> {
        match self {
            Self::Scheduled | Self::Skipped { .. } => None,
            Self::Running { run } | Self::Succeeded { run, .. } | Self::Failed { run, .. } => {
                Some(run)
            }
            Self::Cancelled { run, .. } => run.as_deref_mut(),
        }
    }

    /// How the job ended. None while it is unfinished.
    pub const fn end(&self) -> Option<&End> {
        match self {
            Self::Scheduled | Self::Running { .. } => None,
            Self::Succeeded { end, .. }
            | Self::Failed { end, .. }
            | Self::Cancelled { end, .. }
            | Self::Skipped { end } => Some(end),
        }
    }

    /// True if the job has ended.
    pub const fn is_terminal(&self) -> bool {
        self.end().is_some()
    }
}

/// The state of a job without its data.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum StateKind {
    Scheduled,
    Running,
    Ended(EndState),
}

impl StateKind {
    pub const ALL: [Self; 6] = [
        Self::Scheduled,
        Self::Running,
        Self::Ended(EndState::Succeeded),
        Self::Ended(EndState::Failed),
        Self::Ended(EndState::Cancelled),
        Self::Ended(EndState::Skipped),
    ];

    pub const fn name(self) -> &'static str {
        match self {
            Self::Scheduled => "scheduled",
            Self::Running => "running",
            Self::Ended(state) => state.name(),
        }
    }

    pub fn named(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|state| state.name() == name)
    }

    pub const fn ended(self) -> Option<EndState> {
        match self {
            Self::Scheduled | Self::Running => None,
            Self::Ended(state) => Some(state),
        }
    }
}

/// The four ways in which a job ends, in alphabetical order, because records list them in this order.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum EndState {
    Cancelled,
    Failed,
    Skipped,
    Succeeded,
}

impl EndState {
    /// All end states, in the order in which they are displayed.
    pub const ALL: [Self; 4] = [
        Self::Succeeded,
        Self::Failed,
        Self::Cancelled,
        Self::Skipped,
    ];

    pub const fn name(self) -> &'static str {
        match self {
            Self::Succeeded => "succeeded",
            Self::Failed => "failed",
            Self::Cancelled => "cancelled",
            Self::Skipped => "skipped",
        }
    }
}

impl fmt::Display for EndState {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct End {
    pub at: Timestamp,
    pub reason: Reason,
    pub actor: Actor,
}
