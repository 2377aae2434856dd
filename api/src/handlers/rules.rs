//! `/v0/rules`

use chrono::TimeDelta;
use model::decide::{DeleteRule, SetRule, addressees, would_send};
use model::event::{Event, What};
use model::{ProjectId, ProjectRules, Scope, Seen, World};
use serde_json::json;
use warp::reply::Response;
use wire::{Page, PreviewedEvent, RuleDefinition, RuleOrigin};
use workflow::notify::{EventName, NotifyName, Rule, parse_rule};

use super::channels::owner;
use super::projects;
use crate::failure::Failure;
use crate::limits::PREVIEWED;
use crate::page::Window;
use crate::reply;
use crate::request::Request;
use crate::visible::{Shown, Visible};

/// How far a preview looks back.
const PREVIEWED_SPAN: TimeDelta = TimeDelta::days(7);

/// The rules in force of one project, or of all projects and the instance.
pub(crate) fn list(
    user: &Visible,
    project: Option<&str>,
    window: &Window,
) -> Result<Page<wire::Rule>, Failure> {
    user.read(|seen| {
        let owners = match project {
            Some(named) => vec![Some(projects::find(seen, named)?.project)],
            None => {
                let all = seen.sources().map(|source| Some(source.project));
                std::iter::once(None).chain(all).collect()
            }
        };
        let records = owners.into_iter().filter_map(|owner| seen.rules(owner));
        let rules = records.flat_map(|record| record.all().map(|rule| shown(seen, record, rule)));
        let key = |rule: &wire::Rule| {
            format!(
                "{}/{}",
                rule.project.as_deref().unwrap_or_default(),
                rule.name
            )
        };
        Ok(window.cut(rules, key, wire::Rule::clone))
    })
}

pub(super) async fn set(user: &Visible, mut request: Request) -> Result<Response, Failure> {
    let owner = owner(user, &request.query)?;
    let name = request.parameter(0).to_owned();
    let asked: RuleDefinition = request.body.json(&request.headers).await?;
    let rule = parsed(&name, &asked, owner.is_none())?;
    put(user, &owner, rule).await?;
    let shown = in_force(user, *owner, &name, shown)?;
    Ok(reply::ok(&shown))
}

pub(crate) async fn put(
    user: &Visible,
    owner: &Shown<Option<ProjectId>>,
    rule: Rule,
) -> Result<(), Failure> {
    user.read(|seen| has_channel(seen, **owner, &rule.channel))?;
    let set = owner.map(|project| SetRule {
        project: *project,
        rule,
    });
    user.submit(set).await
}

/// A rule of a file may name a channel that comes later; then the project has a condition.
fn has_channel(seen: Seen<'_>, owner: Option<ProjectId>, name: &NotifyName) -> Result<(), Failure> {
    if seen.has_channel(owner, name) {
        return Ok(());
    }
    let channels = seen.channels().filter(|channel| channel.serves(owner));
    let names: Vec<&str> = channels.map(|channel| channel.name.as_str()).collect();
    let failure = Failure::invalid("channel", format!("there is no channel `{name}`"));
    Err(failure.hint(match names[..] {
        [] => "`everscan notify channel add` adds one".to_owned(),
        _ => format!("the channels are: {}", names.join(", ")),
    }))
}

pub(crate) async fn delete(user: &Visible, request: &Request) -> Result<Response, Failure> {
    let name = request.parameter(0);
    let unknown =
        |_| Failure::not_found("rule", name).hint("`everscan notify rule list` shows the rules");
    let name = NotifyName::new(name).map_err(unknown)?;
    let delete = owner(user, &request.query)?.map(|project| DeleteRule {
        project: *project,
        name,
    });
    user.submit(delete).await?;
    Ok(reply::empty())
}

/// What the rule in the body, or without one the rules in force, would have sent in the last week.
pub(super) async fn preview(user: &Visible, mut request: Request) -> Result<Response, Failure> {
    let owner = owner(user, &request.query)?;
    let asked: RuleDefinition = request.body.json_or_default(&request.headers).await?;
    let past = if asked == RuleDefinition::default() {
        past_in_force(user, *owner).await?
    } else {
        past(user, *owner, &parsed("preview", &asked, owner.is_none())?).await?
    };
    Ok(reply::ok(&Page::all(past)))
}

/// What a rule would have sent in the last week.
pub(crate) async fn past(
    user: &Visible,
    owner: Option<ProjectId>,
    rule: &Rule,
) -> Result<Vec<PreviewedEvent>, Failure> {
    let show = |world: &World, event: &Event| {
        let is_sent = would_send(world, owner, rule, event);
        let shown = is_sent.then(|| shown_event(world, event, Some(rule), &rule.channel));
        shown.into_iter().collect()
    };
    user.past_events(user.now() - PREVIEWED_SPAN, PREVIEWED, show)
        .await
}

/// What the channels would have got in the last week. Those of the instance, and its rules, are for administrators.
async fn past_in_force(
    user: &Visible,
    owner: Option<ProjectId>,
) -> Result<Vec<PreviewedEvent>, Failure> {
    let is_admin = user.rights().scopes.allow(Scope::Admin);
    let show = |world: &World, event: &Event| {
        let addressees = addressees(world, owner, event).into_iter();
        let visible = addressees.filter(|it| {
            let is_of_project = it.rule.is_some() && !it.is_rule_of_instance;
            is_admin || it.channel.project.is_some() || is_of_project
        });
        visible
            .map(|it| shown_event(world, event, it.rule, &it.channel.name))
            .collect()
    };
    user.past_events(user.now() - PREVIEWED_SPAN, PREVIEWED, show)
        .await
}

/// A rule in force, as `show` shows it.
pub(crate) fn in_force<T>(
    user: &Visible,
    owner: Option<ProjectId>,
    name: &str,
    show: impl FnOnce(Seen<'_>, &ProjectRules, &Rule) -> T,
) -> Result<T, Failure> {
    let found = user.read(|seen| {
        let record = seen.rules(owner)?;
        let mut rules = record.all().filter(|rule| rule.name.as_str() == name);
        Some(show(seen, record, rules.next()?))
    });
    found.ok_or_else(|| Failure::not_found("rule", name))
}

fn shown_event(
    world: &World,
    event: &Event,
    rule: Option<&Rule>,
    channel: &NotifyName,
) -> PreviewedEvent {
    let asks = |name| rule.is_some_and(|rule| rule.events.contains(&name));
    let message = match &event.what {
        What::Opened { problem, .. }
        | What::FailedAgain { problem, .. }
        | What::Closed { problem, .. } => problem.to_string(),
        What::SlotMissed => "a slot of its schedule passed without a job".to_owned(),
        What::WorkflowRemoved => "the workflow file is gone".to_owned(),
        What::Artifact { artifact, .. }
            if asks(EventName::NewLines) && !asks(EventName::Artifact) =>
        {
            format!("{artifact}, if it has new lines")
        }
        What::Artifact { artifact, .. } => artifact.clone(),
        What::Interaction {
            name, announcement, ..
        } => format!(
            "interaction {} of callback server {name}",
            announcement.last
        ),
    };
    PreviewedEvent {
        at: event.at,
        event: event.what.name().name().to_owned(),
        is_over: matches!(event.what, What::Closed { .. }),
        about: world.label_of(&event.subject),
        message,
        rule: rule.map(|rule| rule.name.to_string()),
        channel: channel.to_string(),
    }
}

/// Reads a rule with the parser of `everscan.yaml`, for which JSON is YAML.
pub(crate) fn parsed(
    name: &str,
    asked: &RuleDefinition,
    is_of_instance: bool,
) -> Result<Rule, Failure> {
    let mut json = serde_json::to_value(asked).map_err(|error| Failure::internal(&error))?;
    json["name"] = name.into();
    parse_rule(&json.to_string(), is_of_instance).map_err(|diagnostics| {
        let messages: Vec<&str> = diagnostics.iter().map(|one| one.message.as_str()).collect();
        let failure = Failure::invalid("rule", messages.join("; "));
        match diagnostics.into_iter().find_map(|one| one.hint) {
            Some(hint) => failure.hint(hint),
            None => failure,
        }
    })
}

fn shown(seen: Seen<'_>, record: &ProjectRules, rule: &Rule) -> wire::Rule {
    let source = record.project.and_then(|project| seen.source_of(project));
    // A rule is stored with the members of its definition and its name.
    let mut definition = json!(rule);
    if let Some(members) = definition.as_object_mut() {
        members.remove("name");
    }
    wire::Rule {
        name: rule.name.to_string(),
        project: source.map(|source| source.name.to_string()),
        origin: match record.in_api(&rule.name) {
            Some(_) => RuleOrigin::Api,
            None => RuleOrigin::File,
        },
        definition: serde_json::from_value(definition).unwrap_or_default(),
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use model::condition::Subject;
    use model::{EventId, JobId, Timestamp};
    use uuid::Uuid;

    use super::*;

    #[test]
    fn a_preview_does_not_know_whether_an_artifact_has_new_lines() {
        let event = Event {
            id: EventId::from_uuid(Uuid::nil()),
            at: Timestamp::UNIX_EPOCH,
            project: None,
            subject: Subject::Instance,
            what: What::Artifact {
                job: JobId::from_uuid(Uuid::nil()),
                artifact: "hosts".to_owned(),
                previous: None,
            },
        };
        let channel = NotifyName::new("team").unwrap();
        let message = |events: &[EventName]| {
            let rule = Rule {
                events: BTreeSet::from_iter(events.iter().copied()),
                ..Rule::of(channel.clone())
            };
            shown_event(&World::default(), &event, Some(&rule), &channel).message
        };
        let unsure = "hosts, if it has new lines";
        assert_eq!(message(&[EventName::NewLines]), unsure);
        let both = [EventName::NewLines, EventName::Artifact];
        assert_eq!(
            (message(&both), message(&[])),
            ("hosts".to_owned(), "hosts".to_owned())
        );
    }
}
