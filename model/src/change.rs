use std::sync::Arc;

use chrono::TimeDelta;

use crate::blob::{Blob, BlobLink, BlobPath, BlobUsage};
use crate::callback::{
    Callback, CallbackCertificate, CallbackId, CallbackTag, CallbackToken, InteractionChange, Mint,
};
use crate::channel::Channel;
use crate::clocks::Clocks;
use crate::condition::{Condition, Ended};
use crate::event::Event;
use crate::history::HistoryLine;
use crate::idempotency::Idempotency;
use crate::job::Job;
use crate::ledger::Repeats;
use crate::outbox::{DeliveryRecord, Outgoing};
use crate::payload::{PayloadGroup, PayloadName};
use crate::project::{ProjectSecrets, ProjectVars};
use crate::recent::Recent;
use crate::retention::{Expiry, Retention};
use crate::revision::{Revision, WorkflowRecord};
use crate::rules::ProjectRules;
use crate::runner::{Registration, Runner};
use crate::scan_head::{Digests, ScanHead};
use crate::session::BrowserSession;
use crate::source::{Source, TipRecord};
use crate::suspension::Suspension;
use crate::token::Token;
use crate::user::User;
use crate::{
    BlobLinkId, ChannelId, JobId, OutgoingId, PayloadGroupId, ProjectId, RegistrationId, ScanKey,
    TokenId,
};

/// One change of a decision. It carries the complete new record, so applying it twice is harmless.
#[derive(Debug, Clone)]
pub enum Change {
    Source(Arc<Source>),
    /// A new tip of a source. It is only written to disk.
    Tip(Arc<TipRecord>),
    Workflow(Arc<WorkflowRecord>),
    /// A new revision of a workflow. The text is none if it was already written as an object.
    Revision(Arc<Revision>, Option<Arc<str>>),
    /// Of a workflow or a scan.
    Suspension(Arc<Suspension>),
    /// An earlier revision, read because a new job runs it. It is not written.
    RevisionRead(Arc<Revision>),
    /// The new head of a scan.
    Head(Arc<ScanHead>),
    /// The digests of a scan's newest successes, which have their own file. The head in memory contains them too.
    Digests(Arc<Digests>),
    /// The latest repeated outcomes of a scan's triggers, which have their own file; none removes the file. The head in
    /// memory contains them too.
    Repeats(ScanKey, Option<Repeats>),
    /// A job. If it has finished, it is removed from the world.
    Job(Arc<Job>),
    /// A finished job's line is appended to its scan's history.
    History(HistoryEntry),
    /// A finished job is removed with its log and its artifacts.
    JobRemoved(Arc<Job>),
    /// The file of a job's artifact is removed.
    ArtifactRemoved(JobId, String),
    /// The artifacts of a finished job will expire. It is only written to disk.
    Expiry(Expiry),
    /// The entry is obsolete: the artifacts have expired, or now expire at another time.
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
    RunnerRemoved(Arc<Runner>),
    Token(Arc<Token>),
    TokenRemoved(TokenId),
    User(Arc<User>),
    Session(Arc<BrowserSession>),
    SessionRemoved(Arc<BrowserSession>),
    Registration(Arc<Registration>),
    /// A registration token was used or has expired.
    RegistrationRemoved(RegistrationId),
    /// A request is stored with its result, so that a repeat finds it.
    Idempotency(Arc<Idempotency>),
    IdempotencyRemoved(String),
    Vars(Arc<ProjectVars>),
    Secrets(Arc<ProjectSecrets>),
    /// Rules of notifications, of a project or of the instance.
    Rules(Arc<ProjectRules>),
    Blob(Arc<Blob>),
    /// A blob is removed with its content.
    BlobRemoved(ProjectId, BlobPath),
    BlobLink(Arc<BlobLink>),
    /// Revoked or expired.
    BlobLinkRemoved(BlobLinkId),
    BlobUsage(Arc<BlobUsage>),
    /// A condition is open.
    Condition(Arc<Condition>),
    ConditionClosed(Arc<Condition>, Ended),
    Channel(Arc<Channel>),
    ChannelRemoved(ChannelId),
    /// An event is appended to the ledger of its day.
    Event(Arc<Event>),
    /// Events that are not sent everywhere yet.
    Outgoing(Arc<Outgoing>),
    OutgoingRemoved(OutgoingId),
    /// An attempt is appended to the delivery log.
    Delivery(Arc<DeliveryRecord>),
    Callback(Arc<Callback>),
    /// A callback server is removed after its other files.
    CallbackRemoved(CallbackId),
    CallbackToken(Arc<CallbackToken>),
    CallbackTokenRemoved(CallbackId, CallbackTag),
    Minted(Arc<Mint>),
    MintRemoved(CallbackId, u32),
    /// The certificate of callback servers that an authority has issued.
    CallbackCertificate(Arc<CallbackCertificate>),
    /// The interactions of a callback server.
    Interactions(CallbackId, Arc<InteractionChange>),
    PayloadGroup(Arc<PayloadGroup>),
    /// A payload group is removed after its payloads.
    PayloadGroupRemoved(PayloadGroupId),
    /// The body of one version of a payload is removed.
    PayloadVersionRemoved(PayloadGroupId, PayloadName, u64),
    /// The expiry times of live records are moved by a jump of the wall clock. It is not written.
    ClockFollowed(TimeDelta),
    /// The record of a jump that the stored expiry times do not follow yet; none when all of them have followed.
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

/// A line for a scan's history, with its position.
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

/// A record for a scan's ledger, with its position.
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
