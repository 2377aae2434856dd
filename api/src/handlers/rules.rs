//! `/v0/rules`

use chrono::TimeDelta;
use model::decide::{DeleteRule, SetRule};
use model::event::{Event, What};
use model::{ProjectId, ProjectRules, Seen, World};
use warp::reply::Response;
use wire::{Page, PreviewedEvent, QuietHours, RuleDefinition, RuleOrigin};
use workflow::notify::{NotifyName, Rule, parse_rule};

use super::channels::owner;
use super::projects;
use crate::failure::Failure;
use crate::limits::PREVIEWED;
use crate::page::Window;
use crate::reply;
use crate::request::Request;
use crate::visible::{Shown, Visible};

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
    let shown = user.read(|seen| {
        let record = seen.rules(*owner)?;
        let mut rules = record.all().filter(|rule| rule.name.as_str() == name);
        Some(shown(seen, record, rules.next()?))
    });
    let gone = || Failure::not_found("rule", &name);
    Ok(reply::ok(&shown.ok_or_else(gone)?))
}

pub(crate) async fn put(
    user: &Visible,
    owner: &Shown<Option<ProjectId>>,
    rule: Rule,
) -> Result<(), Failure> {
    let set = owner.map(|project| SetRule {
        project: *project,
        rule,
    });
    user.submit(set).await
}

pub(super) async fn delete(user: &Visible, request: &Request) -> Result<Response, Failure> {
    let owner = owner(user, &request.query)?;
    remove(user, &owner, request.parameter(0)).await?;
    Ok(reply::empty())
}

pub(crate) async fn remove(
    user: &Visible,
    owner: &Shown<Option<ProjectId>>,
    name: &str,
) -> Result<(), Failure> {
    let unknown =
        |_| Failure::not_found("rule", name).hint("`everscan notify rule list` shows the rules");
    let name = NotifyName::new(name).map_err(unknown)?;
    let delete = owner.map(|project| DeleteRule {
        project: *project,
        name,
    });
    user.submit(delete).await
}

/// What the rule in the body, or without one the rules in force, would have sent in the last week.
pub(super) async fn preview(user: &Visible, mut request: Request) -> Result<Response, Failure> {
    let owner = owner(user, &request.query)?;
    let asked: RuleDefinition = request.body.json_or_default(&request.headers).await?;
    let rules = if asked == RuleDefinition::default() {
        let in_force = user.read(|seen| Some(seen.rules(*owner)?.all().cloned().collect()));
        in_force.unwrap_or_default()
    } else {
        vec![parsed("preview", &asked, owner.is_none())?]
    };
    Ok(reply::ok(&Page::all(past(user, *owner, &rules).await?)))
}

/// What rules would have sent in the last week.
pub(crate) async fn past(
    user: &Visible,
    owner: Option<ProjectId>,
    rules: &[Rule],
) -> Result<Vec<PreviewedEvent>, Failure> {
    let since = user.now() - TimeDelta::days(7);
    user.past_events(since, owner, rules, PREVIEWED, shown_event)
        .await
}

/// A rule in force.
pub(crate) fn find(user: &Visible, owner: Option<ProjectId>, name: &str) -> Result<Rule, Failure> {
    let rule = user.read(|seen| {
        let mut all = seen.rules(owner)?.all();
        all.find(|rule| rule.name.as_str() == name).cloned()
    });
    rule.ok_or_else(|| Failure::not_found("rule", name))
}

fn shown_event(world: &World, event: &Event, rule: &Rule) -> PreviewedEvent {
    let message = match &event.what {
        What::Opened { problem, .. }
        | What::FailedAgain { problem, .. }
        | What::Closed { problem, .. } => problem.to_string(),
        What::SlotMissed => "a slot of its schedule passed without a job".to_owned(),
        What::WorkflowRemoved => "the workflow file is gone".to_owned(),
        What::Artifact { artifact, .. } => artifact.clone(),
    };
    PreviewedEvent {
        at: event.at,
        event: event.what.name().name().to_owned(),
        is_over: matches!(event.what, What::Closed { .. }),
        about: world.label_of(&event.subject),
        message,
        rule: rule.name.to_string(),
        channel: rule.channel.to_string(),
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
    let texts = |patterns: &[workflow::notify::Pattern]| {
        patterns.iter().cloned().map(String::from).collect()
    };
    let source = record.project.and_then(|project| seen.source_of(project));
    wire::Rule {
        name: rule.name.to_string(),
        project: source.map(|source| source.name.to_string()),
        origin: match record.in_api(&rule.name) {
            Some(_) => RuleOrigin::Api,
            None => RuleOrigin::File,
        },
        definition: RuleDefinition {
            channel: rule.channel.to_string(),
            events: rule
                .events
                .iter()
                .map(|event| event.name().to_owned())
                .collect(),
            workflows: texts(&rule.workflows),
            scans: texts(&rule.scans),
            after: Some(rule.after).filter(|after| *after > 1),
            group: rule.group.clone(),
            repeat: rule.repeat.clone(),
            quiet: rule.quiet.as_ref().map(|quiet| QuietHours {
                from: quiet.from.clone(),
                to: quiet.to.clone(),
                timezone: Some(quiet.timezone.clone()),
            }),
            template: rule.template.clone(),
            content: Some(rule.content.name().to_owned()),
        },
    }
}
