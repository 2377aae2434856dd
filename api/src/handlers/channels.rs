//! `/v0/channels` and `/v0/deliveries`

use std::collections::BTreeSet;
use std::sync::Arc;

use chrono::TimeDelta;
use delivery::Outcome;
use model::channel::{Channel, Offered};
use model::decide::{DeleteChannel, FailedMessage, Precondition, SendAgain, SetAnswer, SetChannel};
use model::outbox::{DeliveryRecord, SendResult, Suppressed};
use model::{Job, JobId, ProjectId, Scope, SecretValue, Seen};
use uuid::Uuid;
use warp::reply::Response;
use wire::{DeliveryResult, Page, RetryChannel};
use workflow::notify::NotifyName;

use super::{audit, projects};
use crate::body;
use crate::convert;
use crate::failure::Failure;
use crate::page::Window;
use crate::precondition::precondition;
use crate::reply;
use crate::request::{Query, Request};
use crate::visible::{Shown, Visible};

/// Events of a failed message are at most this much older than its last attempt.
const EVENT_AGE: TimeDelta = TimeDelta::days(3);

/// Messages that the page of a job shows, and attempts that are read for them.
const MESSAGES_OF_JOB: usize = 10;
const ATTEMPTS_READ: usize = 50;

/// The channels of one project, or of all projects and the instance.
pub(crate) fn list(
    user: &Visible,
    project: Option<&str>,
    window: &Window,
) -> Result<Page<wire::Channel>, Failure> {
    user.read(|seen| {
        let project = named(seen, project)?;
        let channels = seen.channels();
        let channels = channels.filter(|it| project.is_none() || it.project == project);
        let key = |channel: &&Arc<Channel>| convert::channels::key(seen, channel);
        Ok(window.cut(channels, key, |it| {
            convert::channels::channel(seen, it, user.now())
        }))
    })
}

pub(super) fn show(user: &Visible, request: &Request) -> Result<Response, Failure> {
    let channel = find(user, request)?;
    let shown = user.read(|seen| convert::channels::channel(seen, &channel, user.now()));
    Ok(reply::versioned(&shown, channel.edit.version))
}

pub(super) async fn set(user: &Visible, mut request: Request) -> Result<Response, Failure> {
    let owner = owner(user, &request.query)?;
    let name = name(request.parameter(0))?;
    let expects = precondition(&request.headers)?;
    let asked = asked(&mut request).await?;
    let set = put(user, &owner, name, asked, expects).await?;
    Ok(reply::versioned(
        &shown_once(user, &set),
        set.channel.edit.version,
    ))
}

/// A channel with its new key.
pub(crate) fn shown_once(user: &Visible, set: &SetAnswer) -> wire::Channel {
    let mut shown = user.read(|seen| convert::channels::channel(seen, &set.channel, user.now()));
    shown.new_key = set.new_key.as_ref().map(|key| key.reveal().to_owned());
    shown
}

/// Reads the body. Errors never quote it, because it may hold a secret.
async fn asked(request: &mut Request) -> Result<wire::SetChannel, Failure> {
    body::is_json(&request.headers)?;
    let bytes = request.body.bytes().await?;
    serde_json::from_slice(&bytes).map_err(|error| {
        let (line, column) = (error.line(), error.column());
        let form = r#"write {"target": {"kind": "webhook", "url": "…"}, "secret": "…"}"#;
        Failure::invalid("body", format!("line {line}, column {column}: {form}"))
    })
}

/// Adds or changes a channel.
pub(crate) async fn put(
    user: &Visible,
    owner: &Shown<Option<ProjectId>>,
    name: NotifyName,
    asked: wire::SetChannel,
    expects: Precondition,
) -> Result<SetAnswer, Failure> {
    let offered = user.read(|seen| offered(seen, &asked))?;
    if owner.is_some() && offered != Offered::default() {
        let problem = "only a channel of the instance is offered to projects";
        return Err(Failure::invalid("offered_to", problem));
    }
    let target = convert::channels::target(asked.target);
    let secret = asked.secret.map(SecretValue::new);
    user.check_target(&target, secret.as_ref())?;
    let set = owner.map(|project| SetChannel {
        project: *project,
        name,
        offered,
        target,
        secret,
        key: user.sealing_key(),
        actor: user.actor(),
        expects,
    });
    user.submit(set).await
}

fn offered(seen: Seen<'_>, asked: &wire::SetChannel) -> Result<Offered, Failure> {
    if asked.offered_to_all {
        return Ok(Offered::All);
    }
    let project = |named: &String| Ok(projects::find(seen, named)?.project);
    let projects = asked.offered_to.iter().map(project);
    Ok(Offered::To(projects.collect::<Result<_, Failure>>()?))
}

pub(crate) async fn delete(user: &Visible, request: &Request) -> Result<Response, Failure> {
    let expects = precondition(&request.headers)?;
    let name = name(request.parameter(0))?;
    let delete = owner(user, &request.query)?.map(|project| DeleteChannel {
        project: *project,
        name,
        expects,
    });
    user.submit(delete).await?;
    Ok(reply::empty())
}

pub(super) async fn test(user: &Visible, request: &Request) -> Result<Response, Failure> {
    Ok(reply::ok(&send_test(user, request).await?))
}

/// Sends a test message, and waits for what comes of it.
pub(crate) async fn send_test(
    user: &Visible,
    request: &Request,
) -> Result<wire::SendResult, Failure> {
    owner(user, &request.query)?;
    let channel = find(user, request)?;
    let (result, reply) = match user.test_channel(&channel).await? {
        Outcome::Delivered { reply } => (DeliveryResult::Delivered, reply),
        Outcome::Retry { reason, .. } | Outcome::Refused { reason } | Outcome::Gone { reason } => {
            (DeliveryResult::Failed, reason)
        }
    };
    Ok(wire::SendResult { result, reply })
}

pub(super) async fn retry(user: &Visible, mut request: Request) -> Result<Response, Failure> {
    let owner = owner(user, &request.query)?;
    let name = name(request.parameter(0))?;
    let asked: RetryChannel = request.body.json_or_default(&request.headers).await?;
    again(user, &owner, name, asked.message).await?;
    Ok(reply::empty())
}

/// Sends a failed message again, or what waits.
pub(crate) async fn again(
    user: &Visible,
    owner: &Shown<Option<ProjectId>>,
    name: NotifyName,
    message: Option<Uuid>,
) -> Result<(), Failure> {
    let failed = match message {
        Some(message) => Some(user.failed_message(**owner, &name, message).await?),
        None => None,
    };
    let again = owner.map(|project| SendAgain {
        project: *project,
        name,
        failed,
    });
    user.submit(again).await
}

/// The attempts to send messages, of one project, channel or job, newest first.
pub(crate) async fn deliveries(
    user: &Visible,
    project: Option<&str>,
    query: &Query,
) -> Result<Page<wire::Delivery>, Failure> {
    let project = user.read(|seen| named(seen, project))?;
    let job = query.get("job").map(|text| {
        let parsed: Result<JobId, _> = text.parse();
        parsed.map_err(|error| Failure::invalid("job", error.to_string()))
    });
    let job = job.transpose()?;
    let channel = query.get("channel");
    let takes = |record: &DeliveryRecord| {
        (project.is_none() || record.project == project)
            && job.is_none_or(|job| record.jobs.contains(&job))
            && channel.is_none_or(|name| record.channel_name.as_str() == name)
    };
    // Messages about a job are younger than the job.
    let span = (job.map(JobId::moment), None);
    let from = query.get("cursor").map(audit::place).transpose()?;
    let page = user.deliveries(span, takes, from, query.limit()?).await?;
    let records = page.records.into_iter();
    Ok(Page {
        next_cursor: page.next.map(audit::cursor),
        ..Page::all(user.read(|seen| records.map(|record| shown(seen, record)).collect()))
    })
}

/// The newest messages about a job, each with its newest attempt. None if the caller may not see them or the log cannot be read.
pub(super) async fn messages(user: &Visible, job: &Job) -> Vec<wire::Delivery> {
    let may = user.all_rights().may(Scope::NotifyRead, job.project);
    if !may || user.read(|seen| seen.channels().next().is_none()) {
        return Vec::new();
    }
    let until = job.state.end().map(|end| end.at + EVENT_AGE);
    let span = (Some(job.id.moment()), until);
    let takes = |record: &DeliveryRecord| record.jobs.contains(&job.id);
    let Ok(page) = user.deliveries(span, takes, None, ATTEMPTS_READ).await else {
        return Vec::new();
    };
    let mut known = BTreeSet::new();
    let newest = page.records.into_iter();
    let newest = newest.filter(|record| known.insert(record.message.uuid()));
    user.read(|seen| {
        let shown = newest.map(|record| shown(seen, record));
        shown.take(MESSAGES_OF_JOB).collect()
    })
}

fn shown(seen: Seen<'_>, record: DeliveryRecord) -> wire::Delivery {
    let mut retry_at = None;
    let (result, reply) = match record.result {
        SendResult::Delivered { reply } => (DeliveryResult::Delivered, reply),
        SendResult::Retry { reason, at } => {
            retry_at = Some(at);
            (DeliveryResult::Retry, reason)
        }
        SendResult::Failed { reason } => (DeliveryResult::Failed, reason),
        SendResult::Suppressed { reason } => {
            let reason = match reason {
                Suppressed::NoNewLines => "the artifact has no new lines",
                Suppressed::Acknowledged => "a person knows of it",
                Suppressed::Silenced => "the condition is silenced",
                Suppressed::ChannelDeleted => "the channel was deleted",
            };
            (DeliveryResult::Suppressed, reason.to_owned())
        }
    };
    wire::Delivery {
        at: record.at,
        message: record.message.uuid(),
        channel: record.channel_name.to_string(),
        project: record
            .project
            .and_then(|project| Some(seen.source_of(project)?.name.to_string())),
        attempt: record.attempt,
        repeated: record.is_repeated,
        result: wire::SendResult { result, reply },
        retry_at,
        title: record.title,
        events: record.event_count,
        jobs: record.jobs.into_iter().map(JobId::uuid).collect(),
    }
}

impl Visible {
    /// A failed message of this channel, from its newest line in the log.
    async fn failed_message(
        &self,
        owner: Option<ProjectId>,
        name: &NotifyName,
        message: Uuid,
    ) -> Result<FailedMessage, Failure> {
        let channel = self.read(|seen| seen.channel_of(owner, name).map(|it| it.id));
        let channel = channel.ok_or_else(|| no_such_channel(name.as_str()))?;
        let is_it =
            |record: &DeliveryRecord| record.message.uuid() == message && record.channel == channel;
        let page = self.deliveries((None, None), is_it, None, 1).await?;
        let unknown = || {
            let hint = format!("`everscan notify log --channel {name}` shows its messages");
            Failure::not_found("message of this channel", &message.to_string()).hint(hint)
        };
        let record = page.records.into_iter().next().ok_or_else(unknown)?;
        let problem = match &record.result {
            SendResult::Failed { .. } => None,
            SendResult::Delivered { .. } => Some("has arrived"),
            SendResult::Retry { .. } => Some("is tried again by itself"),
            SendResult::Suppressed { .. } => Some("had nothing to say"),
        };
        if let Some(problem) = problem {
            let problem = format!("{problem}; only a failed message is sent again");
            return Err(Failure::invalid("message", problem));
        }
        let span = (record.at - EVENT_AGE, record.at);
        let events = self.events_named(span, &record.events).await?;
        if events.is_empty() {
            return Err(Failure::invalid("message", "its events are no longer kept"));
        }
        Ok(FailedMessage { record, events })
    }
}

fn no_such_channel(name: &str) -> Failure {
    Failure::not_found("channel", name).hint("`everscan notify channel list` shows the channels")
}

fn named(seen: Seen<'_>, project: Option<&str>) -> Result<Option<ProjectId>, Failure> {
    let find = |named| Ok(projects::find(seen, named)?.project);
    project.map(find).transpose()
}

/// The project whose channels the caller may change. None for the instance, which needs `admin`.
pub(crate) fn owner(user: &Visible, query: &Query) -> Result<Shown<Option<ProjectId>>, Failure> {
    owner_named(user, query.get("project"))
}

pub(crate) fn owner_named(
    user: &Visible,
    project: Option<&str>,
) -> Result<Shown<Option<ProjectId>>, Failure> {
    match project {
        Some(named) => Ok(projects::project(user, named)?.map(|project| Some(*project))),
        None if user.rights().scopes.allow(Scope::Admin) => user.find(|_| Ok(None)),
        None => Err(Failure::without_scope(Scope::Admin).hint(
            "what belongs to a project needs `project`; without it, it belongs to the instance",
        )),
    }
}

pub(crate) fn name(text: &str) -> Result<NotifyName, Failure> {
    NotifyName::new(text).map_err(|error| Failure::invalid("channel", error.to_string()))
}

fn find(user: &Visible, request: &Request) -> Result<Arc<Channel>, Failure> {
    let text = request.parameter(0);
    let unknown = || no_such_channel(text);
    let name = NotifyName::new(text).map_err(|_| unknown())?;
    user.read(|seen| {
        let project = named(seen, request.query.get("project"))?;
        seen.channel_of(project, &name).cloned().ok_or_else(unknown)
    })
}
