//! A record as the type that belongs to its kind, and what follows from it: where it stands, what it is called, whether
//! it is live.

use std::sync::Arc;

use model::retention::{Expiry, Retention};
use model::{
    Change, Digests, Idempotency, Job, ProjectSecrets, ProjectVars, Registration, RevisionRecord,
    Runner, ScanHead, Source, TipRecord, Token, WorkflowRecord,
};
use store::Key;

use crate::envelope::{EnvelopeError, Kind, Record};
use crate::layout::Layout;
use crate::repeats::RepeatsRecord;

/// The body of a record.
pub(crate) enum Typed {
    Source(Source),
    Tip(TipRecord),
    Workflow(WorkflowRecord),
    Revision(RevisionRecord),
    Head(ScanHead),
    Digests(Digests),
    Repeats(RepeatsRecord),
    Job(Job),
    Runner(Runner),
    Registration(Registration),
    Token(Token),
    Vars(ProjectVars),
    Secrets(ProjectSecrets),
    Idempotency(Idempotency),
    Retention(Retention),
    Expiry(Expiry),
}

impl Typed {
    /// Reads the body of a record.
    pub(crate) fn of(record: Record<'_>) -> Result<Self, EnvelopeError> {
        Ok(match record.kind {
            Kind::Source => Self::Source(record.body()?),
            Kind::Tip => Self::Tip(record.body()?),
            Kind::Workflow => Self::Workflow(record.body()?),
            Kind::Revision => Self::Revision(record.body()?),
            Kind::ScanHead => Self::Head(record.body()?),
            Kind::Digests => Self::Digests(record.body()?),
            Kind::Repeats => Self::Repeats(record.body()?),
            Kind::Job => Self::Job(record.body()?),
            Kind::Runner => Self::Runner(record.body()?),
            Kind::Registration => Self::Registration(record.body()?),
            Kind::Token => Self::Token(record.body()?),
            Kind::Vars => Self::Vars(record.body()?),
            Kind::Secrets => Self::Secrets(record.body()?),
            Kind::Idempotency => Self::Idempotency(record.body()?),
            Kind::Retention => Self::Retention(record.body()?),
            Kind::Expiry => Self::Expiry(record.body()?),
        })
    }

    /// The one place where the record may stand.
    pub(crate) fn place(&self) -> Key {
        match self {
            Self::Source(source) => Layout::source(&source.name),
            Self::Tip(tip) => Layout::tip(&tip.source, tip.tip.number, &tip.tip.commit),
            Self::Workflow(workflow) => Layout::workflow(workflow.id),
            Self::Revision(revision) => Layout::revision(revision.workflow.id, &revision.reference),
            Self::Head(head) => Layout::head(&head.key()),
            Self::Digests(digests) => Layout::digests(&digests.key()),
            Self::Repeats(repeats) => Layout::repeats(&repeats.scan),
            Self::Job(job) => Layout::job(job.id),
            Self::Runner(runner) => Layout::runner(runner.id),
            Self::Registration(registration) => Layout::registration(registration.id),
            Self::Token(token) => Layout::token(token.id),
            Self::Vars(vars) => Layout::vars(vars.project),
            Self::Secrets(secrets) => Layout::secrets(secrets.project),
            Self::Idempotency(request) => Layout::idempotency(&request.key),
            Self::Retention(retention) => Layout::retention(&retention.key()),
            Self::Expiry(expiry) => Layout::expiry(expiry),
        }
    }

    /// The change that brings a live record into the world; none for one that no decision reads.
    pub(crate) fn into_change(self) -> Option<Change> {
        Some(match self {
            Self::Source(source) => Change::Source(Arc::new(source)),
            Self::Workflow(workflow) => Change::Workflow(Arc::new(workflow)),
            Self::Head(head) => Change::Head(Arc::new(head)),
            Self::Digests(digests) => Change::Digests(Arc::new(digests)),
            Self::Repeats(RepeatsRecord { scan, repeats }) => Change::Repeats(scan, Some(repeats)),
            Self::Job(job) => Change::Job(Arc::new(job)),
            Self::Runner(runner) => Change::Runner(Arc::new(runner)),
            Self::Registration(registration) => Change::Registration(Arc::new(registration)),
            Self::Token(token) => Change::Token(Arc::new(token)),
            Self::Vars(vars) => Change::Vars(Arc::new(vars)),
            Self::Secrets(secrets) => Change::Secrets(Arc::new(secrets)),
            Self::Idempotency(request) => Change::Idempotency(Arc::new(request)),
            Self::Retention(retention) => Change::Retention(Arc::new(retention)),
            Self::Tip(_) | Self::Revision(_) | Self::Expiry(_) => return None,
        })
    }

    /// The id or name in the record's envelope.
    pub(crate) fn id(&self) -> String {
        match self {
            Self::Source(source) => source.name.to_string(),
            Self::Tip(tip) => tip.tip.commit.clone(),
            Self::Workflow(workflow) => workflow.id.to_string(),
            Self::Revision(revision) => revision.reference.id.to_string(),
            Self::Head(head) => head.scan.to_string(),
            Self::Digests(digests) => digests.scan.to_string(),
            Self::Repeats(repeats) => repeats.scan.scan.to_string(),
            Self::Job(job) => job.id.to_string(),
            Self::Runner(runner) => runner.id.to_string(),
            Self::Registration(registration) => registration.id.to_string(),
            Self::Token(token) => token.id.to_string(),
            Self::Vars(vars) => vars.project.to_string(),
            Self::Secrets(secrets) => secrets.project.to_string(),
            Self::Idempotency(request) => request.key.clone(),
            Self::Retention(retention) => retention.scan.to_string(),
            Self::Expiry(expiry) => expiry.job.to_string(),
        }
    }

    /// Whether decisions may need it, so that it is in memory.
    pub(crate) fn is_live(&self) -> bool {
        match self {
            Self::Job(job) => !job.state.is_terminal(),
            Self::Tip(_) | Self::Revision(_) | Self::Expiry(_) => false,
            Self::Source(_)
            | Self::Workflow(_)
            | Self::Head(_)
            | Self::Digests(_)
            | Self::Repeats(_)
            | Self::Runner(_)
            | Self::Registration(_)
            | Self::Token(_)
            | Self::Vars(_)
            | Self::Secrets(_)
            | Self::Idempotency(_)
            | Self::Retention(_) => true,
        }
    }
}
