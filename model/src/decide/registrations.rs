//! Registration tokens: whose runners they register, and how many may wait.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use super::runners::check_labels;
use super::values::project_name;
use super::{Command, Decision, Refusal, Urgency};
use crate::change::Change;
use crate::limits::{ALL_OPEN_REGISTRATIONS, OPEN_REGISTRATIONS, REGISTRATION, REGISTRATION_SWEEP};
use crate::moment::Moment;
use crate::rights::Rights;
use crate::runner::{Registration, may_manage};
use crate::scope::{Projects, Scope};
use crate::token::{PlainToken, TokenKind};
use crate::world::World;
use crate::{ProjectId, RegistrationId, Timestamp, TokenId, UserId};

/// Create a registration token.
#[derive(Debug, Clone, Default)]
pub struct CreateRegistration {
    /// None for all projects in which the maker may register runners; for an administrator also future projects.
    pub projects: Option<BTreeSet<ProjectId>>,
    /// The labels of the runner. None if the runner chooses them.
    pub labels: Option<Vec<String>>,
    /// None if the daemon makes it.
    pub maker: Option<Maker>,
}

/// Who makes a registration token.
#[derive(Debug, Clone)]
pub struct Maker {
    /// None for a person who has signed in without a token.
    pub token: Option<TokenId>,
    pub user: UserId,
    pub rights: Rights,
}

#[derive(Debug, Clone)]
pub struct NewRegistration {
    pub id: RegistrationId,
    /// Shown once.
    pub secret: PlainToken,
    pub expires_at: Timestamp,
    pub projects: Projects,
    pub labels: Option<Vec<String>>,
}

impl Command for CreateRegistration {
    type Answer = NewRegistration;
    const URGENCY: Urgency = Urgency::Ordinary;

    fn decide(
        self,
        world: &World,
        moment: &mut Moment<'_>,
    ) -> Result<Decision<NewRegistration>, Refusal> {
        let projects = match (self.projects, &self.maker) {
            (Some(projects), _) => only(projects)?,
            (None, None) => Projects::All,
            (None, Some(Maker { rights, .. })) => projects_of(world, rights)?,
        };
        if let Some(Maker { rights, .. }) = &self.maker {
            check_managed(rights, &projects)?;
        }
        if let Some(labels) = &self.labels {
            check_labels(labels)?;
        }
        let (waiting, project) = waiting(world, &projects, moment.steady);
        if waiting >= OPEN_REGISTRATIONS {
            let project = match project {
                Some(project) => Some(project_name(world, project)?),
                None => None,
            };
            return Err(Refusal::TooManyRegistrations { waiting, project });
        }
        let secret = PlainToken::random(TokenKind::Registration, moment.entropy);
        let maker = self.maker.as_ref().and_then(|maker| maker.token);
        let user = self.maker.filter(|it| it.token.is_none()).map(|it| it.user);
        let registration = Registration {
            id: RegistrationId::random(moment.entropy),
            token: secret.hash(),
            projects,
            labels: self.labels,
            maker,
            user,
            epoch: world.epoch_of(user),
            expires_at: moment.steady + REGISTRATION,
        };
        let answer = NewRegistration {
            id: registration.id,
            secret,
            expires_at: registration.expires_at,
            projects: registration.projects.clone(),
            labels: registration.labels.clone(),
        };
        let mut changes = spent(world, moment.steady);
        changes.push(Change::Registration(Arc::new(registration)));
        Ok(Decision { changes, answer })
    }
}

pub(super) fn only(projects: BTreeSet<ProjectId>) -> Result<Projects, Refusal> {
    match projects.is_empty() {
        true => Err(Refusal::invalid("projects", "name at least one")),
        false => Ok(Projects::Only(projects)),
    }
}

/// All projects in which somebody may register runners.
fn projects_of(world: &World, rights: &Rights) -> Result<Projects, Refusal> {
    if rights.scopes.allow(Scope::Admin) {
        return Ok(Projects::All);
    }
    let sources = world.sources().filter(|source| source.configured);
    let projects = sources.map(|source| source.project);
    only(
        projects
            .filter(|project| rights.may(Scope::RunnerWrite, *project))
            .collect(),
    )
}

pub(super) fn check_managed(rights: &Rights, projects: &Projects) -> Result<(), Refusal> {
    match may_manage(rights, projects) {
        true => Ok(()),
        false => Err(Refusal::RunnerOfOthers),
    }
}

/// The most open registrations that one of these projects has, and this project; or those that are for all projects. So a
/// project cannot use up those of others. All of them together, if they are too many.
fn waiting(world: &World, projects: &Projects, now: Timestamp) -> (usize, Option<ProjectId>) {
    let open = || world.registrations().filter(|one| now < one.expires_at);
    let all = open().count();
    if all >= ALL_OPEN_REGISTRATIONS {
        return (all, None);
    }
    let Projects::Only(projects) = projects else {
        return (open().filter(|one| one.projects.is_all()).count(), None);
    };
    let mut counts: BTreeMap<ProjectId, usize> = BTreeMap::new();
    for registration in open() {
        if let Projects::Only(its) = &registration.projects {
            for project in its.intersection(projects) {
                *counts.entry(*project).or_default() += 1;
            }
        }
    }
    let most = counts.into_iter().max_by_key(|(_, count)| *count);
    most.map_or((0, None), |(project, count)| (count, Some(project)))
}

pub(super) fn spent(world: &World, now: Timestamp) -> Vec<Change> {
    world
        .registrations()
        .filter(|registration| registration.expires_at <= now)
        .take(REGISTRATION_SWEEP)
        .map(|registration| Change::RegistrationRemoved(registration.id))
        .collect()
}

/// End all registration tokens. A restored backup may have brought back some that were used.
#[derive(Debug, Clone)]
pub struct EndRegistrations;

impl Command for EndRegistrations {
    /// True if some are left.
    type Answer = bool;
    const URGENCY: Urgency = Urgency::Finishing;

    fn decide(self, world: &World, _: &mut Moment<'_>) -> Result<Decision<bool>, Refusal> {
        let mut all = world.registrations();
        let some = all.by_ref().take(REGISTRATION_SWEEP);
        let changes = some.map(|it| Change::RegistrationRemoved(it.id)).collect();
        let answer = all.next().is_some();
        Ok(Decision { changes, answer })
    }
}

/// False if the maker of the registration token could not make it any more.
pub(super) fn is_backed(world: &World, registration: &Registration, now: Timestamp) -> bool {
    let (maker, user) = (registration.maker, registration.user);
    if maker.is_none() && user.is_none() {
        return true;
    }
    let rights = world.rights_of_maker(maker, user, registration.epoch, now);
    rights.is_some_and(|rights| may_manage(&rights, &registration.projects))
}
