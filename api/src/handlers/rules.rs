//! `/v0/rules`

use chrono::TimeDelta;
use model::decide::{DeleteRule, SetRule};
use model::event::{Event, What};
use model::{ProjectId, ProjectRules, Seen, World};
use serde_json::json;
use warp::reply::Response;
use wire::{Page, PreviewedEvent, RuleDefinition, RuleOrigin};
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
    let shown = in_force(user, *owner, &name, shown)?;
    Ok(reply::ok(&shown))
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
