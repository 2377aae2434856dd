//! What a decision changes.

use std::sync::Arc;

use chrono::TimeDelta;

use crate::history::HistoryLine;
use crate::idempotency::Idempotency;
use crate::job::Job;
use crate::ledger::Repeats;
use crate::project::{ProjectSecrets, ProjectVars};
use crate::recent::Recent;
use crate::retention::{Expiry, Retention};
use crate::revision::{Revision, WorkflowRecord};
use crate::runner::{Registration, Runner};
use crate::scan_head::{Digests, ScanHead};
use crate::source::{Source, TipRecord};
use crate::token::Token;
use crate::{JobId, RegistrationId, RunnerId, ScanKey};

/// One change of a decision. It carries the whole new record, so applying it makes no choice and a repeat is harmless.
#[derive(Debug, Clone)]
pub enum Change {
    /// A source is as given.
    Source(Arc<Source>),
    /// A tip was seen. Settled at once.
    Tip(Arc<TipRecord>),
    /// A workflow is as given.
    Workflow(Arc<WorkflowRecord>),
    /// A workflow has a new revision, with its text unless an object is adopted as that.
    Revision(Arc<Revision>, Option<Arc<str>>),
    /// A scan's head is as given.
    Head(Arc<ScanHead>),
    /// The digests of a scan's newest successes go to their own file. The head in memory has them.
    Digests(Arc<Digests>),
    /// The run of equal looks at a scan's triggers goes to its own file, or that file away. The head in memory has it.
    Repeats(ScanKey, Option<Repeats>),
    /// A job is as given. Once terminal it leaves the world.
    Job(Arc<Job>),
    /// A finished job's line goes to its scan's history.
    History(HistoryEntry),
    /// A finished job is gone, with its log and its artifacts.
    JobRemoved(Arc<Job>),
    /// The file of an artifact of that name of a job is gone.
    ArtifactRemoved(JobId, String),
    /// Artifacts of a finished job run out. Settled at once.
    Expiry(Expiry),
    /// They did, or will at another time.
    ExpiryRemoved(Expiry),
    /// What is remembered of the jobs removed from a scan is as given.
    Retention(Arc<Retention>),
    /// Nothing of a page of a scan's history is there any more.
    HistoryPageRemoved(ScanKey, u64),
    /// A record goes to a scan's ledger.
    Ledger(LedgerEntry),
    /// A page of a scan's ledger is too old to be kept.
    LedgerPageRemoved(ScanKey, u64),
    /// The newest finished jobs of a scan were read from its history. Nothing is stored.
    Recent(ScanKey, Arc<Recent>),
    /// A runner is as given.
    Runner(Arc<Runner>),
    /// A runner is gone.
    RunnerRemoved(RunnerId),
    /// A token is as given.
    Token(Arc<Token>),
    /// A registration waits.
    Registration(Arc<Registration>),
    /// A registration was used or ran out.
    RegistrationRemoved(RegistrationId),
    /// A request is remembered.
    Idempotency(Arc<Idempotency>),
    /// A request is forgotten, by its key.
    IdempotencyRemoved(String),
    /// A project's vars are as given.
    Vars(Arc<ProjectVars>),
    /// A project's secrets are as given.
    Secrets(Arc<ProjectSecrets>),
    /// The ends in live records follow a jump of the wall clock. Nothing is stored by itself.
    ClockFollowed(TimeDelta),
}

/// A line for a scan's history and the place it goes to.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HistoryEntry {
    /// The scan.
    pub scan: ScanKey,
    /// The page, from 0.
    pub page: u64,
    /// The offset in the page, in bytes.
    pub at: u64,
    /// The line.
    pub line: HistoryLine,
    /// The same as JSON with its line end.
    pub text: String,
}

/// A record for a scan's ledger and the place it goes to.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LedgerEntry {
    /// The scan.
    pub scan: ScanKey,
    /// The page, from 0.
    pub page: u64,
    /// The offset in the page, in bytes.
    pub at: u64,
    /// The record, as JSON with its line end.
    pub text: String,
}
