//! What a decision changes.

use std::sync::Arc;

use chrono::TimeDelta;

use crate::blob::{Blob, BlobLink, BlobPath, BlobUsage};
use crate::clocks::Clocks;
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
use crate::session::BrowserSession;
use crate::source::{Source, TipRecord};
use crate::suspension::Suspension;
use crate::token::Token;
use crate::{BlobLinkId, JobId, ProjectId, RegistrationId, RunnerId, ScanKey, TokenId};

/// One change of a decision. It carries the whole new record, so that it can be applied twice without harm.
#[derive(Debug, Clone)]
pub enum Change {
    Source(Arc<Source>),
    /// A tip was seen. It goes to disk only.
    Tip(Arc<TipRecord>),
    Workflow(Arc<WorkflowRecord>),
    /// A workflow has a new revision. The text is absent when it was written as an object before.
    Revision(Arc<Revision>, Option<Arc<str>>),
    /// Of a workflow or a scan.
    Suspension(Arc<Suspension>),
    /// An earlier revision, read because a new job runs it. It is not stored.
    RevisionRead(Arc<Revision>),
    /// The new head of a scan.
    Head(Arc<ScanHead>),
    /// The digests of a scan's newest successes, which have a file of their own. The head in memory holds them too.
    Digests(Arc<Digests>),
    /// The latest run of equal outcomes of a scan's triggers, which has a file of its own; none removes the file. The
    /// head in memory holds it too.
    Repeats(ScanKey, Option<Repeats>),
    /// A finished job leaves the world.
    Job(Arc<Job>),
    /// A finished job's line is appended to its scan's history.
    History(HistoryEntry),
    /// A finished job is removed with its log and its artifacts.
    JobRemoved(Arc<Job>),
    /// The file of a job's artifact is removed.
    ArtifactRemoved(JobId, String),
    /// Artifacts of a finished job will expire. It goes to disk only.
    Expiry(Expiry),
    /// The entry is obsolete: the artifacts have expired, or expire at another time.
    ExpiryRemoved(Expiry),
    /// The new record of the jobs that were removed from a scan.
    Retention(Arc<Retention>),
    /// A page of a scan's history is removed, because all its jobs are removed.
    HistoryPageRemoved(ScanKey, u64),
    /// A record is appended to a scan's ledger.
    Ledger(LedgerEntry),
    /// The oldest page of a scan's ledger is removed.
    LedgerPageRemoved(ScanKey, u64),
    /// The newest finished jobs of a scan, read from its history. It is not stored.
    Recent(ScanKey, Arc<Recent>),
    Runner(Arc<Runner>),
    RunnerRemoved(RunnerId),
    Token(Arc<Token>),
    TokenRemoved(TokenId),
    Session(Arc<BrowserSession>),
    SessionRemoved(Arc<BrowserSession>),
    Registration(Arc<Registration>),
    /// A registration token was used or has expired.
    RegistrationRemoved(RegistrationId),
    /// A request is stored with its answer, so that a repeat finds it.
    Idempotency(Arc<Idempotency>),
    IdempotencyRemoved(String),
    Vars(Arc<ProjectVars>),
    Secrets(Arc<ProjectSecrets>),
    Blob(Arc<Blob>),
    /// A blob is removed with its content.
    BlobRemoved(ProjectId, BlobPath),
    BlobLink(Arc<BlobLink>),
    /// Revoked or expired.
    BlobLinkRemoved(BlobLinkId),
    BlobUsage(Arc<BlobUsage>),
    /// The expiry times of live records are moved by a jump of the wall clock. It is not stored.
    ClockFollowed(TimeDelta),
    /// The new record of a jump that stored expiry times have not followed; none once all have.
    Clocks(Option<Arc<Clocks>>),
}

impl Change {
    pub fn job(&self) -> Option<&Arc<Job>> {
        if let Self::Job(job) = self {
            Some(job)
        } else {
            None
        }
    }

    pub fn workflow(&self) -> Option<&Arc<WorkflowRecord>> {
        if let Self::Workflow(workflow) = self {
            Some(workflow)
        } else {
            None
        }
    }

    pub fn scan_of_history(&self) -> Option<ScanKey> {
        if let Self::History(entry) = self {
            return Some(entry.scan.clone());
        }
        if let Self::JobRemoved(job) = self {
            return Some(job.scan_key());
        }
        None
    }
}

/// A line for a scan's history, and where it is written.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HistoryEntry {
    pub scan: ScanKey,
    /// The page, from 0.
    pub page: u64,
    /// The offset in the page, in bytes.
    pub at: u64,
    pub line: HistoryLine,
    /// The line as JSON, with its line end.
    pub text: String,
}

/// A record for a scan's ledger, and where it is written.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LedgerEntry {
    pub scan: ScanKey,
    /// The page, from 0.
    pub page: u64,
    /// The offset in the page, in bytes.
    pub at: u64,
    /// The record, as JSON with its line end.
    pub text: String,
}
