//! Sets and deletes rules of notifications of the API.

use std::sync::Arc;

use workflow::limits::{RULES, RULES_BYTES};
use workflow::notify::{NotifyName, Rule};

use super::deliveries::{Asked, asked, takes};
use super::values::project_name;
use super::{Command, Decision, Refusal, Urgency};
use crate::ProjectId;
use crate::change::Change;
use crate::channel::Channel;
use crate::event::{Event, What};
use crate::moment::Moment;
use crate::rules::ProjectRules;
use crate::world::World;

/// Replaces the rule of this name, or adds it.
#[derive(Debug, Clone)]
pub struct SetRule {
    /// None for the instance.
    pub project: Option<ProjectId>,
    pub rule: Rule,
}

impl Command for SetRule {
    type Answer = ();
    const URGENCY: Urgency = Urgency::Ordinary;

    fn decide(self, world: &World, _: &mut Moment<'_>) -> Result<Decision<()>, Refusal> {
        let mut rules = record(world, self.project)?;
        match rules
            .api
            .iter_mut()
            .find(|rule| rule.name == self.rule.name)
        {
            Some(rule) if *rule == self.rule => return Ok(Decision::unchanged(())),
            Some(rule) => *rule = self.rule,
            None => rules.api.push(self.rule),
        }
        if rules.api.len() > RULES {
            let problem = format!("there are {RULES} rules, which is the limit");
            return Err(Refusal::invalid("name", problem));
        }
        let bytes = Rule::bytes(&rules.api);
        if bytes > RULES_BYTES {
            let problem = format!(
                "all rules together would have {bytes} bytes, over the limit of {RULES_BYTES}"
            );
            return Err(Refusal::invalid("template", problem));
        }
        Ok(Decision::of([Change::Rules(Arc::new(rules))]))
    }
}

#[derive(Debug, Clone)]
pub struct DeleteRule {
    pub project: Option<ProjectId>,
    pub name: NotifyName,
}

impl Command for DeleteRule {
    type Answer = ();
    const URGENCY: Urgency = Urgency::Finishing;

    fn decide(self, world: &World, _: &mut Moment<'_>) -> Result<Decision<()>, Refusal> {
        let mut rules = record(world, self.project)?;
        if rules.in_api(&self.name).is_none() {
            return Err(Refusal::NoSuchRule {
                is_in_file: rules.file.iter().any(|rule| rule.name == self.name),
                name: self.name.to_string(),
            });
        }
        rules.api.retain(|rule| rule.name != self.name);
        Ok(Decision::of([Change::Rules(Arc::new(rules))]))
    }
}

fn record(world: &World, project: Option<ProjectId>) -> Result<ProjectRules, Refusal> {
    if let Some(project) = project {
        project_name(world, project)?;
    }
    Ok(world.project_rules(project).map_or_else(
        || ProjectRules::none(project),
        |rules| ProjectRules::clone(rules),
    ))
}

/// The change after which the file of a project has these rules. None if it has them already.
pub(super) fn of_file(world: &World, project: ProjectId, file: Vec<Rule>) -> Option<Change> {
    let before = world.project_rules(Some(project));
    if before.map_or(&[][..], |rules| &rules.file) == file {
        return None;
    }
    let rules = before.map_or_else(
        || ProjectRules::none(Some(project)),
        |rules| ProjectRules::clone(rules),
    );
    Some(Change::Rules(Arc::new(ProjectRules { file, ..rules })))
}

/// Whether a rule of a project, or of the instance, would have sent an event of the past.
pub fn would_send(world: &World, owner: Option<ProjectId>, rule: &Rule, event: &Event) -> bool {
    let is_of_owner = match owner {
        Some(_) => event.project == owner,
        None => world
            .channel_named(None, &rule.channel)
            .map_or(event.project.is_none(), |channel| {
                channel.serves(event.project)
            }),
    };
    is_of_owner && was_reported(rule, event) && takes(world, rule, event)
}

/// A channel that would get an event.
pub struct Addressee<'w> {
    pub channel: &'w Channel,
    /// None if no rule names the channel.
    pub rule: Option<&'w Rule>,
    pub is_rule_of_instance: bool,
}

/// The channels of a project, or of the instance, to which the rules in force would have sent an event of the past.
pub fn addressees<'w>(
    world: &'w World,
    owner: Option<ProjectId>,
    event: &Event,
) -> Vec<Addressee<'w>> {
    let channels = world.channels_for(event.project).filter(|channel| {
        let of_owner = owner.map_or(channel.project, |_| event.project);
        of_owner == owner
    });
    let found = channels.filter_map(|channel| {
        let (rule, is_rule_of_instance) = match asked(world, event.project, event, channel)? {
            Asked::Rule {
                rule,
                is_of_instance,
            } => (Some(rule), is_of_instance),
            Asked::Usual => (None, false),
        };
        rule.is_none_or(|rule| was_reported(rule, event))
            .then_some(Addressee {
                channel,
                rule,
                is_rule_of_instance,
            })
    });
    found.collect()
}

/// Whether the begin of a condition that is over was reported.
fn was_reported(rule: &Rule, event: &Event) -> bool {
    match &event.what {
        What::Closed { problem, .. } => problem.failures().is_none_or(|it| it >= rule.after()),
        _ => true,
    }
}
