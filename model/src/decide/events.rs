//! Makes the events of a decision from its changes, and the records of the outbox that carry them.

use std::collections::BTreeMap;
use std::sync::Arc;

use workflow::NotifyOn;

use crate::callback::{CallbackId, InteractionChange};
use crate::change::Change;
use crate::condition::{Condition, Ended, Problem, Subject};
use crate::event::{Event, What};
use crate::job::{Job, JobState};
use crate::limits::EVENTS;
use crate::moment::Moment;
use crate::outbox::Outgoing;
use crate::revision::{WorkflowRecord, WorkflowStatus};
use crate::scan_head::Success;
use crate::world::World;
use crate::{EventId, OutgoingId, ProjectId, Reason, ScanKey};

/// The events that follow from the changes of a decision, as changes.
pub(super) fn events(world: &World, changes: &[Change], moment: &mut Moment<'_>) -> Vec<Change> {
    let mut events: Vec<Arc<Event>> = Vec::new();
    for change in changes {
        for (project, subject, what) in happened(world, changes, change) {
            // One check of a schedule may pass over several slots.
            let is_same = |it: &Arc<Event>| it.subject == subject && it.what == what;
            if what == What::SlotMissed && events.iter().any(is_same) {
                continue;
            }
            events.push(Arc::new(Event {
                id: EventId::random(moment.entropy),
                at: moment.now,
                project,
                subject,
                what,
            }));
        }
    }
    // A decision makes few events, unless a job has many artifacts.
    events.truncate(EVENTS);
    let outgoing = outgoing(world, &events, moment);
    let events = events.into_iter().map(Change::Event);
    events.chain(outgoing).collect()
}

/// One record for each project that can be told.
fn outgoing(world: &World, events: &[Arc<Event>], moment: &mut Moment<'_>) -> Vec<Change> {
    let mut of_project: BTreeMap<Option<ProjectId>, Vec<Event>> = BTreeMap::new();
    for event in events {
        let events = of_project.entry(event.project).or_default();
        events.push(Event::clone(event));
    }
    let records = of_project.into_iter().filter_map(|(project, events)| {
        world.channels_for(project).next()?;
        if let Some(full) = world.full_outbox(project) {
            return Some(Outgoing {
                left_out: full.left_out + events.len() as u64,
                ..Outgoing::clone(full)
            });
        }
        Some(Outgoing {
            id: OutgoingId::random(moment.entropy),
            order: moment.order,
            project,
            events,
            left_out: 0,
            deliveries: None,
        })
    });
    records
        .map(|record| Change::Outgoing(Arc::new(record)))
        .collect()
}

type Happened = (Option<ProjectId>, Subject, What);

fn happened(world: &World, changes: &[Change], change: &Change) -> Vec<Happened> {
    match change {
        Change::Condition(condition) => opened(world, condition).into_iter().collect(),
        Change::ConditionClosed(condition, ended) => vec![closed(condition, ended)],
        Change::Job(job) => artifacts(world, changes, job),
        Change::Workflow(record) => removed(world, record).into_iter().collect(),
        Change::Repeats(scan, Some(repeats)) => {
            let missed = missed(world, changes, scan, &repeats.reason);
            missed.into_iter().collect()
        }
        Change::Interactions(server, change) => heard(world, *server, change).into_iter().collect(),
        Change::Ledger(_)
        | Change::Source(_)
        | Change::Tip(_)
        | Change::Revision(..)
        | Change::RevisionRead(_)
        | Change::Suspension(_)
        | Change::Head(_)
        | Change::Digests(_)
        | Change::Repeats(_, None)
        | Change::History(_)
        | Change::JobRemoved(_)
        | Change::ArtifactRemoved(..)
        | Change::Expiry(_)
        | Change::ExpiryRemoved(_)
        | Change::Retention(_)
        | Change::HistoryPageRemoved(..)
        | Change::LedgerPageRemoved(..)
        | Change::Recent(..)
        | Change::Runner(_)
        | Change::RunnerRemoved(_)
        | Change::Token(_)
        | Change::TokenRemoved(_)
        | Change::User(_)
        | Change::Session(_)
        | Change::SessionRemoved(_)
        | Change::Registration(_)
        | Change::RegistrationRemoved(_)
        | Change::Idempotency(_)
        | Change::IdempotencyRemoved(_)
        | Change::Rules(_)
        | Change::Vars(_)
        | Change::Secrets(_)
        | Change::Blob(_)
        | Change::BlobRemoved(..)
        | Change::BlobLink(_)
        | Change::BlobLinkRemoved(_)
        | Change::BlobUsage(_)
        | Change::Channel(_)
        | Change::ChannelRemoved(_)
        | Change::Event(_)
        | Change::Outgoing(_)
        | Change::OutgoingRemoved(_)
        | Change::Delivery(_)
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
        | Change::ClockFollowed(_)
        | Change::Clocks(_) => Vec::new(),
    }
}

/// A check of a schedule made no job of a slot, for this reason. A slot during a suspension is not missed.
fn missed(world: &World, changes: &[Change], scan: &ScanKey, reason: &Reason) -> Option<Happened> {
    let is_missed = matches!(reason, Reason::SlotsMissed | Reason::Overlap { .. });
    let record = world.workflow_record(scan.workflow).filter(|_| is_missed)?;
    // Expressions are refused for the same reasons. Only a schedule moves its cursor.
    let cursor = changes.iter().rev().find_map(|change| match change {
        Change::Head(head) if head.key() == *scan => Some(head.cron_cursor),
        _ => None,
    });
    let before = world.head(scan).and_then(|head| head.cron_cursor);
    let happened = (Some(record.project), Subject::from(scan), What::SlotMissed);
    cursor
        .is_some_and(|cursor| cursor != before)
        .then_some(happened)
}

/// A callback server was used with a name of which people were not told lately.
fn heard(world: &World, server: CallbackId, change: &InteractionChange) -> Option<Happened> {
    let InteractionChange::Recorded(recorded) = change else {
        return None;
    };
    let announcement = recorded.announcement.clone()?;
    let what = What::Interaction {
        server,
        name: world.callback(server)?.name.clone(),
        announcement,
    };
    let project = recorded.project;
    Some((Some(project), Subject::Project { project }, what))
}

/// A condition opens, or a failing scan fails again.
fn opened(world: &World, condition: &Condition) -> Option<Happened> {
    let (id, problem) = (condition.id, condition.problem.clone());
    let what = match (world.condition(id), &condition.problem) {
        (None, _) => What::Opened {
            condition: id,
            problem,
        },
        (Some(before), Problem::Failing { failures, .. })
            if before.problem != problem
                && world.waits_for_failure(condition.project, *failures) =>
        {
            What::FailedAgain {
                condition: id,
                problem,
            }
        }
        (Some(_), _) => return None,
    };
    Some((condition.project, condition.subject.clone(), what))
}

fn closed(condition: &Condition, ended: &Ended) -> Happened {
    let what = What::Closed {
        condition: condition.id,
        problem: condition.problem.clone(),
        since: condition.since,
        reported: condition.reported.clone(),
        ended: ended.clone(),
    };
    (condition.project, condition.subject.clone(), what)
}

/// The artifacts of a new success whose `notify_on` asks for a message.
fn artifacts(world: &World, changes: &[Change], job: &Job) -> Vec<Happened> {
    let JobState::Succeeded { run, .. } = &job.state else {
        return Vec::new();
    };
    // The record of an old job changes when its artifacts expire.
    if run.artifacts.is_empty() || world.job(job.id).is_none() {
        return Vec::new();
    }
    let Some(revision) = world.revision(job.revision.id) else {
        return Vec::new();
    };
    let Some(scan) = revision.definition.scan(job.scan.as_str()) else {
        return Vec::new();
    };
    let successes = changes.iter().rev().find_map(|change| match change {
        Change::Head(head) if head.key() == job.scan_key() => Some(&head.successes[..]),
        _ => None,
    });
    let successes = successes.unwrap_or_default();
    let wants = |name: &str| {
        let mut declared = scan.artifacts.iter();
        match declared.find(|artifact| artifact.name == name)?.notify_on {
            NotifyOn::Never => None,
            NotifyOn::Always => Some(()),
            NotifyOn::Diff => {
                let digest = |success: &Success| success.digests.get(name).cloned();
                let differs = match successes {
                    [newest, previous, ..] => digest(newest) != digest(previous),
                    // The first success differs, as in `has_diff`.
                    [_] | [] => true,
                };
                differs.then_some(())
            }
        }
    };
    let named = run.artifacts.iter().map(|artifact| &artifact.name);
    named
        .filter(|name| wants(name).is_some())
        .map(|name| {
            let what = What::Artifact {
                job: job.id,
                artifact: name.clone(),
                previous: successes.get(1).map(|success| success.job),
            };
            (Some(job.project), Subject::from(&job.scan_key()), what)
        })
        .collect()
}

fn removed(world: &World, record: &WorkflowRecord) -> Option<Happened> {
    let before = world.workflow_record(record.id)?;
    let is_removed = before.status == WorkflowStatus::Active && record.status != before.status;
    let subject = Subject::Workflow {
        workflow: record.id,
    };
    is_removed.then_some((Some(record.project), subject, What::WorkflowRemoved))
}
