//! Converts changes to events of the event stream.

use std::sync::{Arc, OnceLock};

use bytes::Bytes;
use model::callback::{InteractionChange, Recorded};
use model::condition::Condition;
use model::outbox::DeliveryRecord;
use model::{
    CallbackId, Change, Job, JobId, JobState, ProjectId, Rights, Runner, Scope, Source, WorkflowId,
};
use model::{Suspension, WorkflowRecord, WorkflowStatus};
use serde::Serialize;
use wire::{
    ConditionEvent, InteractionEvent, JobEvent, RevisionEvent, RunnerEvent, SourceEvent, StepEvent,
    SuspensionEvent,
};

use super::topics;
use crate::convert;
use crate::limits::EVENT_TAGS;

/// An event and the record that it reports. Its text is made when the first listener takes it.
#[derive(Debug)]
pub(super) struct Event<'c> {
    pub(super) project: Option<ProjectId>,
    pub(super) workflow: Option<WorkflowId>,
    pub(super) job: Option<JobId>,
    pub(super) about: About<'c>,
    text: OnceLock<Bytes>,
    topics: OnceLock<Vec<Arc<str>>>,
}

#[derive(Debug)]
pub(super) enum About<'c> {
    Job(&'c Job, bool),
    Steps(&'c Job),
    Workflow(&'c WorkflowRecord),
    Suspension(&'c Suspension),
    Source(&'c Source),
    Condition(&'c Condition, bool),
    Delivery(&'c DeliveryRecord),
    Runner(&'c Runner),
    RunnerRemoved(&'c Runner),
    Interactions(CallbackId, &'c Recorded),
}

pub(super) fn events(changes: &[Change]) -> impl Iterator<Item = Event<'_>> {
    changes.iter().filter_map(event)
}

fn event(change: &Change) -> Option<Event<'_>> {
    match change {
        Change::Job(job) => Some(match &job.state {
            JobState::Running { run } if !run.steps.is_empty() => of_job(job, About::Steps(job)),
            JobState::Scheduled
            | JobState::Running { .. }
            | JobState::Succeeded { .. }
            | JobState::Failed { .. }
            | JobState::Cancelled { .. }
            | JobState::Skipped { .. } => of_job(job, About::Job(job, false)),
        }),
        Change::JobRemoved(job) => Some(of_job(job, About::Job(job, true))),
        Change::Workflow(record) => Some(Event {
            workflow: Some(record.id),
            ..of(Some(record.project), About::Workflow(record))
        }),
        Change::Suspension(suspension) => Some(Event {
            workflow: Some(suspension.workflow.id),
            ..of(Some(suspension.project), About::Suspension(suspension))
        }),
        Change::Source(source) => Some(of(Some(source.project), About::Source(source))),
        Change::Runner(runner) => Some(of(None, About::Runner(runner))),
        Change::Condition(condition) => Some(of_condition(condition, false)),
        Change::ConditionClosed(condition, _) => Some(of_condition(condition, true)),
        Change::Delivery(record) => Some(of(record.project, About::Delivery(record))),
        Change::Interactions(server, change) => match &**change {
            InteractionChange::Recorded(heard) => {
                Some(of(Some(heard.project), About::Interactions(*server, heard)))
            }
            InteractionChange::Indexed { .. }
            | InteractionChange::PageRemoved(_)
            | InteractionChange::IndexRemoved(_) => None,
        },
        Change::RunnerRemoved(runner) => Some(of(None, About::RunnerRemoved(runner))),
        Change::Tip(_)
        | Change::Revision(..)
        | Change::RevisionRead(_)
        | Change::Head(_)
        | Change::Digests(_)
        | Change::Repeats(..)
        | Change::History(_)
        | Change::ArtifactRemoved(..)
        | Change::Expiry(_)
        | Change::ExpiryRemoved(_)
        | Change::Retention(_)
        | Change::HistoryPageRemoved(..)
        | Change::Ledger(_)
        | Change::LedgerPageRemoved(..)
        | Change::Recent(..)
        | Change::Token(_)
        | Change::TokenRemoved(_)
        | Change::User(_)
        | Change::Session(_)
        | Change::SessionRemoved(_)
        | Change::Registration(_)
        | Change::RegistrationRemoved(_)
        | Change::Idempotency(_)
        | Change::IdempotencyRemoved(_)
        | Change::Vars(_)
        | Change::Secrets(_)
        | Change::Rules(_)
        | Change::Blob(_)
        | Change::BlobRemoved(..)
        | Change::BlobUsage(_)
        | Change::BlobLink(_)
        | Change::BlobLinkRemoved(_)
        | Change::ClockFollowed(_)
        | Change::Channel(_)
        | Change::ChannelRemoved(_)
        | Change::Event(_)
        | Change::Outgoing(_)
        | Change::OutgoingRemoved(_)
        | Change::Callback(_)
        | Change::CallbackRemoved(_)
        | Change::CallbackToken(_)
        | Change::CallbackCertificate(_)
        | Change::CallbackTokenRemoved(..)
        | Change::PayloadGroup(_)
        | Change::PayloadGroupRemoved(_)
        | Change::PayloadVersionRemoved(..)
        | Change::Minted(_)
        | Change::MintRemoved(..)
        | Change::Clocks(_) => None,
    }
}

fn of(project: Option<ProjectId>, about: About<'_>) -> Event<'_> {
    Event {
        project,
        workflow: None,
        job: None,
        about,
        text: OnceLock::new(),
        topics: OnceLock::new(),
    }
}

fn of_condition(condition: &Condition, is_closed: bool) -> Event<'_> {
    let about = About::Condition(condition, is_closed);
    Event {
        workflow: condition.subject.workflow(),
        job: condition.problem.job(),
        ..of(condition.project, about)
    }
}

fn of_job<'c>(job: &'c Job, about: About<'c>) -> Event<'c> {
    Event {
        workflow: Some(job.workflow.id),
        job: Some(job.id),
        ..of(Some(job.project), about)
    }
}

impl Event<'_> {
    pub(super) fn is_seen_by(&self, rights: &Rights) -> bool {
        let scope = match &self.about {
            About::Job(..) | About::Steps(_) => Scope::JobRead,
            About::Workflow(_) | About::Suspension(_) => Scope::WorkflowRead,
            About::Source(_) => Scope::ProjectRead,
            About::Runner(runner) | About::RunnerRemoved(runner) => {
                return rights.scopes.allow(Scope::RunnerRead) && runner.is_seen_by(rights);
            }
            About::Condition(condition, _) => return condition.is_seen_by(rights),
            About::Interactions(..) => Scope::CallbackRead,
            About::Delivery(record) => match record.project {
                Some(_) => Scope::NotifyRead,
                None => Scope::Admin,
            },
        };
        match self.project {
            Some(project) => rights.may(scope, project),
            None => rights.scopes.allow(scope),
        }
    }

    /// Empty if only pages hear of the change.
    pub(super) fn text(&self) -> Bytes {
        let text = self.text.get_or_init(|| match &self.about {
            About::Job(job, removed) => write("job", &job_event(job, *removed)),
            About::Steps(job) => write(
                "step",
                &StepEvent {
                    job: job.id.uuid(),
                    workflow: convert::workflow_ref(&job.workflow),
                    scan: job.scan.to_string(),
                    steps: convert::steps(job),
                },
            ),
            About::Workflow(record) => write(
                "revision",
                &RevisionEvent {
                    workflow: wire::WorkflowRef {
                        id: record.id.uuid(),
                        source: record.source.to_string(),
                        name: record.name.clone(),
                    },
                    state: match record.status {
                        WorkflowStatus::Active => "active".to_owned(),
                        WorkflowStatus::Retired { .. } => "retired".to_owned(),
                    },
                    revision: convert::revision_ref(&record.revision),
                },
            ),
            About::Suspension(suspension) => write(
                "suspension",
                &SuspensionEvent {
                    workflow: convert::workflow_ref(&suspension.workflow),
                    scan: suspension.scan.as_ref().map(ToString::to_string),
                    suspended: suspension.is_in_force(),
                },
            ),
            About::Source(source) => write(
                "source",
                &SourceEvent {
                    name: source.name.to_string(),
                    configured: source.configured,
                    tip: source.tip.as_ref().map(convert::sources::tip),
                    conditions: source
                        .conditions
                        .iter()
                        .map(convert::sources::condition)
                        .collect(),
                },
            ),
            About::Condition(condition, closed) => write(
                "condition",
                &ConditionEvent {
                    id: condition.id.uuid(),
                    code: condition.problem.code().to_owned(),
                    message: condition.problem.to_string(),
                    since: condition.since,
                    closed: *closed,
                },
            ),
            About::Delivery(_) => Bytes::new(),
            About::Interactions(server, heard) => write(
                "interaction",
                &InteractionEvent {
                    server: server.to_string(),
                    first: heard.first,
                    last: heard.last,
                    count: heard.count,
                    types: heard.types.iter().map(|it| it.name().to_owned()).collect(),
                    tags: (heard.tags.iter().take(EVENT_TAGS))
                        .map(ToString::to_string)
                        .collect(),
                },
            ),
            About::Runner(runner) => write(
                "runner",
                &RunnerEvent {
                    id: runner.id.uuid(),
                    name: Some(runner.name.clone()),
                    removed: false,
                },
            ),
            About::RunnerRemoved(runner) => write(
                "runner",
                &RunnerEvent {
                    id: runner.id.uuid(),
                    name: None,
                    removed: true,
                },
            ),
        });
        text.clone()
    }

    /// The topics of the pages that show the record, made when the first listener takes them.
    pub(super) fn topics(&self) -> &[Arc<str>] {
        self.topics.get_or_init(|| {
            let topics = topics::of(&self.about).into_iter();
            topics.map(Arc::from).collect()
        })
    }
}

fn write<T: Serialize>(kind: &str, data: &T) -> Bytes {
    // Our own types are always JSON.
    let data = serde_json::to_string(data).unwrap_or_default();
    Bytes::from(format!("event: {kind}\ndata: {data}\n\n"))
}

fn job_event(job: &Job, removed: bool) -> JobEvent {
    let (run, end) = (job.state.run(), job.state.end());
    JobEvent {
        id: job.id.uuid(),
        workflow: convert::workflow_ref(&job.workflow),
        scan: job.scan.to_string(),
        state: convert::state(&job.state),
        reason: convert::explanation(job.reason()),
        created_at: job.created_at,
        started_at: run.map(|run| run.started_at),
        finished_at: end.map(|end| end.at),
        runner: convert::runner_ref(job),
        retry_of: job.retry_of.map(|retry| retry.job.uuid()),
        retried_by: job.retried_by.map(JobId::uuid),
        removed,
    }
}
