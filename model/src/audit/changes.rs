//! Converts the changes of a decision to actions of the audit log.

use std::collections::BTreeMap;
use std::sync::Arc;

use workflow::notify::Rule;

use super::{AuditAction, AuditKind, cut, project_name};
use crate::callback::{Callback, CallbackId, CallbackTag};
use crate::change::Change;
use crate::channel::Channel;
use crate::condition::Condition;
use crate::job::{Job, JobState, Trigger};
use crate::payload::{PayloadGroup, PayloadName};
use crate::project::{ProjectSecrets, ProjectVars, StoredSecret, Var};
use crate::roles::Roles;
use crate::rules::ProjectRules;
use crate::runner::Registration;
use crate::session::BrowserSession;
use crate::source::{Removal, Source};
use crate::suspension::Suspension;
use crate::token::Token;
use crate::user::{User, UserState};
use crate::world::World;
use crate::{ProjectId, Projects, Reason, Timestamp};

/// The actions of a person's decision, in the order of its changes. `world` is the world before the decision, and `now`
/// is its time. Housekeeping changes (expired records, counters, histories) are no actions.
pub fn actions(world: &World, now: Timestamp, changes: &[Change]) -> Vec<AuditAction> {
    let is_ended = |session: &BrowserSession| {
        changes.iter().any(|change| match change {
            Change::TokenRemoved(id) => session.with.is_some_and(|with| with.token == *id),
            Change::User(user) => user.id == session.user && user.epoch != session.epoch,
            _ => false,
        })
    };
    // Sessions end with their token or with an act of their user, which counts as one action.
    let counts = |change: &&Change| !matches!(change, Change::SessionRemoved(it) if is_ended(it));
    let of_change = |change| of_change(world, now, change);
    changes.iter().filter(counts).flat_map(of_change).collect()
}

fn of_change(world: &World, now: Timestamp, change: &Change) -> Vec<AuditAction> {
    let action = match change {
        Change::Token(token) => of_token(world, token),
        Change::User(user) => return of_user(world, user),
        Change::Vars(vars) => return of_vars(world, vars),
        Change::Secrets(secrets) => return of_secrets(world, secrets),
        Change::Rules(rules) => return of_rules(world, rules),
        Change::TokenRemoved(id) => {
            let action = AuditAction::new(AuditKind::TokenRevoked).id(id.uuid());
            Some(match world.token(*id) {
                Some(token) => action.name(&token.name),
                None => action,
            })
        }
        Change::Session(session) => {
            let is_new = world.session(session.id).is_none();
            is_new.then(|| AuditAction::new(AuditKind::SignedIn).id(session.id.uuid()))
        }
        Change::SessionRemoved(session) => world
            .is_signed_in(session, now)
            .then(|| AuditAction::new(AuditKind::SignedOut).id(session.id.uuid())),
        Change::Registration(registration) => Some(AuditAction {
            expires_at: Some(registration.expires_at),
            ..AuditAction::new(AuditKind::RegistrationCreated)
                .id(registration.id.uuid())
                .because(Some(&of_registration(world, registration)))
        }),
        Change::Runner(runner) => {
            let before = world.runner(runner.id);
            let before = before.filter(|before| before.projects != runner.projects);
            before.map(|before| {
                let [old, new] = [before, runner].map(|it| projects_in_words(world, &it.projects));
                AuditAction::of_runner(AuditKind::RunnerLimited, runner)
                    .because(Some(&format!("{old} -> {new}")))
            })
        }
        Change::RunnerRemoved(runner) => {
            Some(AuditAction::of_runner(AuditKind::RunnerRemoved, runner))
        }
        Change::Job(job) => {
            return of_job(world, job).into_iter().chain(secrets_read(world, job)).collect();
        }
        Change::JobRemoved(job) => Some(AuditAction::of_job(AuditKind::JobDeleted, job)),
        Change::ArtifactRemoved(job, name) => Some(AuditAction {
            job: Some(*job),
            ..AuditAction::new(AuditKind::ArtifactDeleted).name(name)
        }),
        Change::Suspension(suspension) => Some(of_suspension(suspension)),
        Change::Blob(blob) => Some(
            AuditAction {
                expires_at: blob.expires_at,
                ..AuditAction::new(AuditKind::BlobStored).name(&blob.path.to_string())
            }
            .in_project(world, blob.project),
        ),
        Change::BlobRemoved(project, path) => Some(
            AuditAction::new(AuditKind::BlobDeleted)
                .name(&path.to_string())
                .in_project(world, *project),
        ),
        Change::BlobLink(link) => Some(
            AuditAction {
                expires_at: Some(link.expires_at),
                ..AuditAction::new(AuditKind::BlobLinkCreated)
            }
            .id(link.id.uuid())
            .name(&link.path.to_string())
            .in_project(world, link.project),
        ),
        Change::BlobLinkRemoved(id) => {
            let link = world.blob_link(*id).filter(|link| !link.is_over(now));
            link.map(|link| {
                AuditAction::new(AuditKind::BlobLinkRevoked)
                    .id(id.uuid())
                    .name(&link.path.to_string())
                    .in_project(world, link.project)
            })
        }
        Change::Source(source) => of_source(world, source),
        Change::Condition(condition) => of_condition(world, condition),
        Change::Channel(channel) => {
            let before = world.channel(channel.id);
            let is_edited = before.is_none_or(|before| before.edit != channel.edit);
            is_edited.then(|| of_channel(world, AuditKind::ChannelSet, channel))
        }
        Change::ChannelRemoved(id) => world
            .channel(*id)
            .map(|channel| of_channel(world, AuditKind::ChannelDeleted, channel)),
        Change::Callback(callback) => {
            let kind = match (world.any_callback(callback.id), callback.is_deleted) {
                (None, _) => Some(AuditKind::CallbackCreated),
                (Some(before), true) if !before.is_deleted => Some(AuditKind::CallbackDeleted),
                (Some(before), false) if before.rules != callback.rules => {
                    Some(AuditKind::CallbackRulesSet)
                }
                (Some(_), _) => None,
            };
            kind.map(|kind| of_callback(world, kind, callback))
        }
        Change::CallbackToken(token) => {
            let is_new = world.callback_token(token.server, token.tag).is_none();
            let created = AuditKind::CallbackTokenCreated;
            of_callback_tag(world, created, token.server, token.tag)
                .filter(|_| is_new)
                .map(|action| AuditAction {
                    expires_at: token.expires_at,
                    ..action
                })
        }
        Change::CallbackTokenRemoved(server, tag) => {
            of_callback_tag(world, AuditKind::CallbackTokenEnded, *server, *tag)
        }
        Change::PayloadGroup(group) => return of_payloads(world, group),
        // The daemon names each job, and a step may name what it plants.
        Change::Minted(mint) => match mint.job {
            Some(_) => None,
            None => world.callback(mint.server).map(|callback| AuditAction {
                expires_at: mint.expires_at,
                ..of_callback(world, AuditKind::CallbackTokenCreated, callback)
                    .because(mint.group.as_deref())
            }),
        },
        // Pushes change workflows, so these are no actions of a person.
        Change::Tip(_)
        | Change::Workflow(_)
        | Change::Revision(..)
        // A registration token is used by a runner, or has expired.
        | Change::RegistrationRemoved(_)
        // These accompany other changes.
        | Change::RevisionRead(_)
        | Change::Head(_)
        | Change::Digests(_)
        | Change::Repeats(..)
        | Change::History(_)
        | Change::Expiry(_)
        | Change::ExpiryRemoved(_)
        | Change::Retention(_)
        | Change::HistoryPageRemoved(..)
        | Change::Ledger(_)
        | Change::LedgerPageRemoved(..)
        | Change::Recent(..)
        | Change::Idempotency(_)
        | Change::IdempotencyRemoved(_)
        | Change::BlobUsage(_)
        | Change::ConditionClosed(..)
        | Change::Event(_)
        | Change::Outgoing(_)
        | Change::OutgoingRemoved(_)
        | Change::Delivery(_)
        | Change::CallbackRemoved(_)
        | Change::MintRemoved(..)
        | Change::CallbackCertificate(_)
        | Change::Interactions(..)
        | Change::PayloadGroupRemoved(_)
        | Change::PayloadVersionRemoved(..)
        | Change::ClockFollowed(_)
        | Change::Clocks(_) => None,
    };
    action.into_iter().collect()
}

/// People acknowledge and silence conditions. Everything else about them follows from other changes.
fn of_condition(world: &World, condition: &Condition) -> Option<AuditAction> {
    let before = world.condition(condition.id)?;
    let kind = if before.acknowledged != condition.acknowledged {
        AuditKind::ConditionAcknowledged
    } else if before.silenced_until != condition.silenced_until {
        AuditKind::ConditionSilenced
    } else {
        return None;
    };
    let action = AuditAction {
        expires_at: condition.silenced_until,
        ..AuditAction::new(kind).id(condition.id.uuid())
    };
    let action = action.name(condition.problem.code());
    Some(match condition.project {
        Some(project) => action.in_project(world, project),
        None => action,
    })
}

fn of_channel(world: &World, kind: AuditKind, channel: &Channel) -> AuditAction {
    let action = AuditAction {
        version: Some(channel.edit.version),
        ..AuditAction::new(kind).name(channel.name.as_str())
    };
    action.of_owner(world, channel.project)
}

fn of_callback(world: &World, kind: AuditKind, callback: &Callback) -> AuditAction {
    let action = AuditAction::new(kind).name(callback.name.as_str());
    action.in_project(world, callback.project)
}

/// With the name of the server. The tag is the reason: the action is about one of its names.
fn of_callback_tag(
    world: &World,
    kind: AuditKind,
    server: CallbackId,
    tag: CallbackTag,
) -> Option<AuditAction> {
    let callback = world.callback(server)?;
    Some(of_callback(world, kind, callback).because(Some(tag.as_str())))
}

/// Its payloads are in the same record.
fn of_payloads(world: &World, after: &PayloadGroup) -> Vec<AuditAction> {
    let named = |kind, name: &str| {
        AuditAction::new(kind)
            .name(name)
            .in_project(world, after.project)
    };
    let group = after.name.as_str();
    let Some(before) = world.any_payload_group(after.id) else {
        return vec![named(AuditKind::PayloadGroupCreated, group)];
    };
    if after.is_deleted {
        let is_new = !before.is_deleted;
        let deleted = is_new.then(|| named(AuditKind::PayloadGroupDeleted, group));
        return deleted.into_iter().collect();
    }
    let is_changed = (&before.variables, before.serve) != (&after.variables, after.serve);
    let changed = is_changed.then(|| named(AuditKind::PayloadGroupChanged, group));
    let of = |kind, name: &PayloadName| named(kind, &format!("{group}/{name}"));
    let stored = after.payloads.iter().filter_map(|(name, payload)| {
        let version = payload.edit.version;
        let known = before.payloads.get(name).map(|before| before.edit.version);
        (known != Some(version)).then(|| AuditAction {
            version: Some(version),
            ..of(AuditKind::PayloadStored, name)
        })
    });
    let gone = before
        .payloads
        .keys()
        .filter(|name| !after.payloads.contains_key(*name));
    let deleted = gone.map(|name| of(AuditKind::PayloadDeleted, name));
    changed.into_iter().chain(stored).chain(deleted).collect()
}

/// Sources follow the configuration and the repositories. A person can only approve a tip.
fn of_source(world: &World, source: &Source) -> Option<AuditAction> {
    let before = world.source(&source.name).and_then(|before| before.removal);
    let is_approved = source.removal == Some(Removal::Approved) && before != source.removal;
    let tip = source.tip.as_ref().filter(|_| is_approved)?;
    let action = AuditAction::new(AuditKind::SourceApproved).name(source.name.as_str());
    Some(action.because(Some(&tip.commit)))
}

fn of_token(world: &World, token: &Token) -> Option<AuditAction> {
    let named = |kind| AuditAction {
        expires_at: token.expires_at,
        ..AuditAction::new(kind).id(token.id.uuid()).name(&token.name)
    };
    match world.token(token.id) {
        None => Some(AuditAction {
            scopes: Some(token.scopes.clone()),
            ..named(AuditKind::TokenCreated)
        }),
        Some(before) if before.hash != token.hash => Some(named(AuditKind::TokenRegenerated)),
        Some(before) if before.owner != token.owner => {
            let owner = world.user(token.owner).map(|owner| owner.name.as_str());
            Some(named(AuditKind::TokenMoved).because(owner))
        }
        Some(_) => None,
    }
}

/// Parts of a user's record change independently.
fn of_user(world: &World, after: &User) -> Vec<AuditAction> {
    let named = |kind| {
        AuditAction::new(kind)
            .id(after.id.uuid())
            .name(after.name.as_str())
    };
    let before = world.user(after.id);
    let mut actions = Vec::new();
    let mut add = |has_happened: bool, action: AuditAction| {
        if has_happened {
            actions.push(action);
        }
    };
    let state = before.map(|before| before.state);
    let is_new = before.is_none();
    let is_off = |state| matches!(state, UserState::Deactivated | UserState::Deleted);
    add(is_new, named(AuditKind::UserCreated));
    let kind = match after.state {
        UserState::Deleted => AuditKind::UserDeleted,
        UserState::Deactivated => AuditKind::UserDeactivated,
        UserState::Invited | UserState::Active => AuditKind::UserActivated,
    };
    let has_turned =
        state.is_some_and(|state| state != after.state && (is_off(after.state) || is_off(state)));
    add(has_turned, named(kind));
    // The rest of it goes with the account.
    if has_turned && is_off(after.state) {
        return actions;
    }
    let was_administrator = before.is_some_and(|before| before.is_administrator);
    let (given, taken) = (
        AuditKind::AdministratorAdded,
        AuditKind::AdministratorRemoved,
    );
    add(after.is_administrator && !was_administrator, named(given));
    add(!after.is_administrator && was_administrator, named(taken));
    let none = Roles::default();
    let roles = before.map_or(&none, |before| &before.roles);
    for (project, role) in after.roles.iter() {
        let set = named(AuditKind::MemberSet).because(Some(role.name()));
        add(
            roles.get(project) != Some(role),
            set.in_project(world, project),
        );
    }
    for (project, _) in roles.iter() {
        add(
            after.roles.get(project).is_none(),
            named(AuditKind::MemberRemoved).in_project(world, project),
        );
    }
    let link = before.and_then(|before| before.link.as_ref());
    if let Some(new) = &after.link {
        let created = AuditAction {
            expires_at: Some(new.expires_at),
            ..named(AuditKind::UserLinkCreated)
        };
        add(link.is_none_or(|link| link.hash != new.hash), created);
    }
    let password = before.and_then(|before| before.password());
    let has_password = after.password() != password;
    let is_invited = state == Some(UserState::Invited);
    let by_link = has_password && link.is_some() && (is_invited || after.link.is_none());
    add(by_link, named(AuditKind::UserLinkUsed));
    add(has_password && !by_link, named(AuditKind::PasswordChanged));
    let is_ended = link.is_some() && after.link.is_none() && !has_password;
    add(is_ended, named(AuditKind::UserLinkEnded));
    let epoch = before.map_or(after.epoch, |before| before.epoch);
    let is_out = epoch != after.epoch && !has_password;
    add(is_out, named(AuditKind::SignedOutEverywhere));
    actions
}

fn of_vars(world: &World, after: &ProjectVars) -> Vec<AuditAction> {
    let none = ProjectVars::none(after.project);
    let before = world.vars(after.project).map_or(&none, Arc::as_ref);
    let kinds = (AuditKind::VarSet, AuditKind::VarDeleted);
    let version = |var: &Var| var.edit.version;
    of_values(
        world,
        after.project,
        kinds,
        (&before.vars, &after.vars),
        version,
    )
}

fn of_secrets(world: &World, after: &ProjectSecrets) -> Vec<AuditAction> {
    let none = ProjectSecrets::none(after.project);
    let before = world.secrets(after.project).map_or(&none, Arc::as_ref);
    let kinds = (AuditKind::SecretSet, AuditKind::SecretDeleted);
    let version = |secret: &StoredSecret| secret.edit.version;
    of_values(
        world,
        after.project,
        kinds,
        (&before.secrets, &after.secrets),
        version,
    )
}

/// A push changes the rules of a file, which is no action of a person.
fn of_rules(world: &World, after: &ProjectRules) -> Vec<AuditAction> {
    let none = ProjectRules::default();
    let before = world.project_rules(after.project);
    let before = before.map_or(&none, Arc::as_ref);
    let named = |kind, rule: &Rule| AuditAction::new(kind).name(rule.name.as_str());
    let of_one = |kind, rule: &Rule| named(kind, rule).of_owner(world, after.project);
    let is_set = |rule: &&Rule| before.in_api(&rule.name) != Some(rule);
    let is_gone = |rule: &&Rule| after.in_api(&rule.name).is_none();
    let (set, gone) = (after.api.iter().filter(is_set), before.api.iter());
    set.map(|rule| of_one(AuditKind::RuleSet, rule))
        .chain(
            gone.filter(is_gone)
                .map(|rule| of_one(AuditKind::RuleDeleted, rule)),
        )
        .collect()
}

/// The values whose version has changed, and the removed values.
fn of_values<V>(
    world: &World,
    project: ProjectId,
    (set, deleted): (AuditKind, AuditKind),
    (before, after): (&BTreeMap<String, V>, &BTreeMap<String, V>),
    version: impl Fn(&V) -> u64,
) -> Vec<AuditAction> {
    let of_one = |kind, name: &str, value: &V| AuditAction {
        version: Some(version(value)),
        ..AuditAction::new(kind).name(name).in_project(world, project)
    };
    let is_set =
        |(name, value): &(&String, &V)| before.get(*name).map(&version) != Some(version(value));
    let set = after
        .iter()
        .filter(is_set)
        .map(|(name, value)| of_one(set, name, value));
    let gone = before.iter().filter(|(name, _)| !after.contains_key(*name));
    set.chain(gone.map(|(name, value)| of_one(deleted, name, value)))
        .collect()
}

fn of_job(world: &World, job: &Job) -> Option<AuditAction> {
    let is_new = world.job(job.id).is_none();
    let kind = match (is_new, job.state.end()) {
        (true, None) => match (job.trigger, &job.retry_of) {
            (Trigger::Dispatch, None) => AuditKind::JobDispatched,
            (Trigger::Dispatch, Some(_))
            | (Trigger::Cron | Trigger::Expr | Trigger::Callback, _) => AuditKind::JobScheduled,
        },
        // The record of a finished job changes with its artifacts, and the record of a running job with its worker's reports.
        (true, Some(_)) | (false, None) => return None,
        (false, Some(end)) if end.reason == Reason::CancelledByUser => AuditKind::JobCancelled,
        (false, Some(end)) => {
            let ended = AuditAction::of_job(AuditKind::JobEnded, job);
            return Some(ended.because(Some(end.reason.code())));
        }
    };
    Some(AuditAction::of_job(kind, job))
}

/// The secrets whose values a claim gives to a runner.
fn secrets_read(world: &World, job: &Job) -> impl Iterator<Item = AuditAction> {
    let before = world.job(job.id).map(|before| &before.state);
    let run = job
        .state
        .run()
        .filter(|_| matches!(before, Some(JobState::Scheduled)));
    run.into_iter()
        .flat_map(|run| &run.secrets)
        .map(move |(name, version)| {
            let action = AuditAction {
                version: Some(*version),
                ..AuditAction::of_job(AuditKind::SecretRead, job)
            };
            action.name(name).in_project(world, job.project)
        })
}

/// The projects and labels, such as `a, b; labels gpu, linux`.
fn of_registration(world: &World, registration: &Registration) -> String {
    let projects = projects_in_words(world, &registration.projects);
    match &registration.labels {
        Some(labels) => format!("{projects}; labels {}", labels.join(", ")),
        None => projects,
    }
}

fn projects_in_words(world: &World, projects: &Projects) -> String {
    let Projects::Only(projects) = projects else {
        return "all".to_owned();
    };
    let names = projects.iter().map(|project| project_name(world, *project));
    names.collect::<Vec<_>>().join(", ")
}

fn of_suspension(suspension: &Suspension) -> AuditAction {
    let kind = match (&suspension.scan, &suspension.resumed) {
        (None, None) => AuditKind::WorkflowSuspended,
        (None, Some(_)) => AuditKind::WorkflowResumed,
        (Some(_), None) => AuditKind::ScanSuspended,
        (Some(_), Some(_)) => AuditKind::ScanResumed,
    };
    let reason = match &suspension.resumed {
        None => Some(suspension.reason.as_str()),
        Some(resumption) => resumption.reason.as_deref(),
    };
    AuditAction {
        scan: suspension.scan.as_ref().map(|scan| cut(scan.as_str())),
        ..AuditAction::new(kind).of_workflow(&suspension.workflow)
    }
    .because(reason)
}
