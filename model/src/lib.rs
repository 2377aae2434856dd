//! The domain: identifiers, records, reasons, the life cycle of a job, and every decision of the daemon.
//!
//! It is pure and deterministic. A decision is a function of the [`World`], a command and the [`Moment`]. Its result is
//! a list of [`Change`]s, which are stored as they are. This package uses no files, no HTTP, no clock and no source of
//! randomness, but gets all of them as values.

mod abilities;
mod actor;
mod ahead;
mod armed;
mod audit;
pub mod blob;
pub mod blob_versions;
pub mod callback;
mod change;
pub mod channel;
mod clause;
mod clocks;
pub mod condition;
pub mod decide;
mod derive;
mod error_chain;
pub mod event;
mod frozen;
mod guard;
mod history;
mod hops;
mod id;
mod idempotency;
mod irregularity;
mod job;
mod job_id_part;
mod ledger;
mod life_cycle;
pub mod limits;
mod masker;
mod matching;
mod moment;
mod named_values;
pub mod outbox;
pub mod payload;
pub mod plan;
mod principal;
mod project;
mod proposal;
mod read_set;
mod reason;
mod recent;
pub mod restored;
pub mod retention;
mod retry;
mod revision;
mod rights;
mod role;
mod roles;
mod rules;
mod runner;
mod scan_head;
mod schedule;
mod scope;
mod sealing;
mod sealing_keys;
mod seen;
mod session;
mod source;
mod suspension;
#[cfg(test)]
mod testing;
mod token;
mod user;
mod uses;
mod view;
mod waiting;
mod world;

pub use abilities::{Abilities, CALLBACK, CHECKOUT, JOB_TOKEN, Reach};
pub use actor::Actor;
pub use ahead::Ahead;
pub use armed::{Armed, ArmedCallback, ArmedCron, ArmedExpr};
pub use audit::{AuditAction, AuditKind, actions};
pub use blob::{Blob, BlobCondition, BlobLink, BlobPath, BlobPathError, BlobUsage};
pub use blob_versions::KeptVersions;
pub use callback::{Callback, CallbackCause, CallbackId, CallbackTag, CallbackToken};
pub use change::{Change, HistoryEntry, LedgerEntry};
pub use clause::Clause;
pub use clocks::Clocks;
pub use error_chain::{causes, error_chain};
pub use guard::Guard;
pub use history::HistoryLine;
pub use hops::{Circle, Hops};
pub use id::{
    ArtifactId, BlobLinkId, ChannelId, ConditionId, EventId, Holder, JobId, MessageId, OutgoingId,
    ParseIdError, PayloadGroupId, ProjectId, RegistrationId, RevisionId, RunnerId, ScanKey,
    SessionId, SourceName, SourceNameError, TokenId, UserId, WorkflowId,
};
pub use idempotency::{Idempotency, IdempotencyKey, Made};
pub use job::{
    Artifact, End, EndState, Inputs, Job, JobSource, JobState, JobToken, LeftOut, LeftOutFile,
    LogCut, Removed, Run, RunCallback, RunnerRef, StateKind, Step, StepOutcome, StepStatus,
    Trigger, large_payload,
};
pub use job_id_part::{JobIdPart, NoJobIdPart};
pub use ledger::{Cause, Evaluation, LedgerRecord, Outcome, Repeats, ScanRead};
pub use life_cycle::{IllegalTransition, JobEvent, Verdict};
pub use masker::{
    EncodingCheck, MaskStream, Masker, MaskerError, MaskingCheck, Missed, check_masking,
    short_lines,
};
pub use matching::{Turn, Turns, next_job};
pub use moment::{Clock, Entropy, Moment, Order};
pub use named_values::NamedValues;
pub use payload::{Payload, PayloadGroup, PayloadName};
pub use principal::{Credential, Principal, Share, UsedJobToken, UsedToken};
pub use project::{Edit, ProjectSecrets, ProjectVars, StoredSecret, Var};
pub use proposal::propose;
pub use reason::Reason;
pub use recent::Recent;
pub use retry::{NextAttempt, RetryOf};
pub use revision::{
    ActiveWorkflow, HeldCommit, Revision, RevisionRecord, RevisionRef, Text, WorkflowRecord,
    WorkflowRef, WorkflowStatus,
};
pub use rights::{Rights, TokenManager};
pub use role::{ParseRoleError, Role};
pub use roles::Roles;
pub use rules::ProjectRules;
pub use runner::{Registration, Runner, Session, may_manage};
pub use scan_head::{
    Digests, Ended, Failing, Failure, Processed, ScanHead, Succeeded, Success, TailEnd, Totals,
    digests_of,
};
pub use schedule::{Upcoming, upcoming};
pub use scope::{ParseScopeError, Projects, Scope, Scopes};
pub use sealing::{KeyId, ParseKeyError, Place, Sealed, SealingError, SealingKey, SecretValue};
pub use sealing_keys::{KeyState, SealingKeys};
pub use seen::Seen;
pub use session::{BrowserSession, SessionCookie};
pub use source::{
    FileOutcome, FileVerdict, Removal, Source, SourceCondition, SourceConditionKind, StaleFile,
    Status, TipRecord, TipRef,
};
pub use suspension::{Resumption, SuspendedPart, Suspension};
pub use token::{FormerSecret, ParseTokenError, PlainToken, Token, TokenHash, TokenKind};
pub use user::{PasswordHash, User, UserKind, UserLink, UserName, UserNameError, UserState};
pub use uses::{NamedBy, Uses};
pub use waiting::{Slots, waiting};
pub use world::World;

/// True if a record omits this number.
pub(crate) const fn is_zero(number: &u64) -> bool {
    *number == 0
}

/// A moment in UTC.
pub type Timestamp = chrono::DateTime<chrono::Utc>;
