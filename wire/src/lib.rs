//! The JSON contract of `/v0`: requests and responses as they are on the wire.
//!
//! The types are plain data. `api` converts them by hand from the domain, so that renaming a field inside the daemon
//! cannot change the contract; `client` sends and reads them. Times are RFC 3339 in UTC, ids are UUIDs, names are in
//! snake_case. Readers of answers ignore members they do not know, so an older client can talk to a newer daemon.

mod audit;
mod blob;
mod context;
mod entry;
mod event;
mod explanation;
mod health;
mod job;
mod log;
mod log_text;
mod page;
mod problem;
mod project;
mod prune;
mod revision;
mod runner;
mod scan;
mod session;
mod source;
mod suspension;
mod token;
mod why;
mod worker;
mod workflow;

pub use audit::{AuditAction, AuditRecord, AuditToken};
pub use blob::{
    Blob, BlobLink, BlobLinkUse, BlobList, CopyBlob, CreateBlobLink, CreatedBlobLink, MoveBlob,
};
pub use context::JobContext;
pub use entry::{ArtifactDiff, ArtifactEntry, FileChange};
pub use event::{JobEvent, RevisionEvent, RunnerEvent, SourceEvent, StepEvent, SuspensionEvent};
pub use explanation::Explanation;
pub use health::{Health, HealthStatus, Readiness, ReadyStatus};
pub use job::{
    Artifact, CancelJob, DispatchRequest, DispatchResponse, Input, Job, JobReason, JobSource,
    JobState, LeftOut, LeftOutFile, LogCut, LogSummary, Removed, RerunJob, RevisionRef, RunnerRef,
    Step, StepOutcome, StepStatus, Trigger, WorkflowRef,
};
pub use log::{LogMatches, LogReceipt, LogRecord, NewLogRecord, OVERWRITTEN, RecordHead, Stream};
pub use log_text::LogText;
pub use page::{DamagedLines, Page};
pub use problem::{ErrorCode, FieldError, Problem};
pub use project::{
    EncodingMasking, KeyState, Masking, MissingName, Named, NotMasked, Project, ScanName, Secret,
    SetValue, Var,
};
pub use prune::{Amount, PruneRequest, Pruned, PrunedScan, RetentionPolicy};
pub use revision::{
    Change, Difference, Edit, Fate, Hunk, Part, RevisionDiff, RevisionText, ScanDifference,
    SlotDifference, TextDifference,
};
pub use runner::{
    Hello, JobAssigned, JobCancelled, Message, Poll, RegisterRunner, RegisteredRunner,
    Registration, Runner, RunnerJob,
};
pub use scan::{ArtifactLine, FinishedJobs, JobLine, ScanStatus, Slot};
pub use session::{CreateSession, CreateSignInLink, Session, SignInLink};
pub use source::{ApproveSource, Condition, Source, SourceAccess, Tip};
pub use suspension::{Resume, Resumption, Suspend, SuspendedPart, Suspension, SuspensionStatus};
pub use token::{CreateToken, CreatedToken, RegenerateToken, Token};
pub use why::{
    CausedJob, Circle, Clause, CutJob, Evaluation, LedgerCause, LedgerOutcome, LedgerRecord,
    ScanRead, Schedule, UnfinishedJob, Watching, Why,
};
pub use worker::{
    ArtifactPhase, ArtifactProgress, Assignment, Checkout, CompleteJob, Completed, JobFailure,
    ScanArtifact, ScanStep, Timeline, UploadOn,
};
pub use workflow::{
    Diagnostic, Excerpt, How, Reading, Revision, Scan, ScanInput, ScanRetry, Severity, StaleFile,
    Validate, Validated, Workflow,
};

/// The path prefix of this contract.
pub const VERSION_PREFIX: &str = "/v0";

/// The response header with a renewed runner session token. The old token stays valid for ten more minutes.
pub const REFRESH_HEADER: &str = "x-authorization-refresh";

/// The header with the digest of what is uploaded or downloaded: over entry names and contents for an artifact, over the
/// bytes for a blob.
pub const CONTENT_DIGEST_HEADER: &str = "x-content-digest";

/// The media type of every error body (RFC 9457).
pub const PROBLEM_MEDIA_TYPE: &str = "application/problem+json";

/// The media type of log records as JSON lines.
pub const NDJSON_MEDIA_TYPE: &str = "application/x-ndjson";

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde gives a reference")]
pub(crate) const fn is_zero(count: &u64) -> bool {
    *count == 0
}
