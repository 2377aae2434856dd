//! Registers runners, renews their sessions, and changes their projects.

use std::collections::BTreeSet;
use std::sync::Arc;

use super::registrations::{check_managed, is_backed, only, spent};
use super::{Command, Decision, Refusal, Urgency};
use crate::change::Change;
use crate::condition::{Condition, Subject};
use crate::limits::{
    NAME_CHARS, RUNNER_CAPABILITIES, RUNNER_CAPACITY, RUNNER_LABELS, RUNNER_RENEWAL_OVERLAP,
    RUNNER_SESSION,
};
use crate::moment::Moment;
use crate::rights::Rights;
use crate::runner::{Runner, Session};
use crate::token::{PlainToken, TokenHash};
use crate::world::World;
use crate::{ProjectId, RunnerId, Timestamp};

/// Register a runner.
#[derive(Debug, Clone)]
pub struct RegisterRunner {
    pub registration: TokenHash,
    /// Unique among runners.
    pub name: String,
    /// The labels that scans may require with `runs_on`.
    pub labels: Vec<String>,
    /// True if it takes only jobs of scans whose `runs_on` has one of its labels.
    pub exclusive: bool,
    /// The most jobs that it runs at once.
    pub capacity: u32,
    pub version: String,
    /// True to replace a runner of the same name.
    pub replace: bool,
}

#[derive(Debug, Clone)]
pub struct NewSession {
    pub runner: RunnerId,
    /// The session token, shown once.
    pub secret: PlainToken,
    pub expires_at: Timestamp,
}

#[derive(Debug, Clone)]
pub struct NewRunner {
    pub session: NewSession,
    pub runner: Arc<Runner>,
    /// The replaced runner. The caller ends its jobs.
    pub replaced: Option<RunnerId>,
}

impl Command for RegisterRunner {
    type Answer = NewRunner;
    const URGENCY: Urgency = Urgency::Ordinary;

    fn decide(
        self,
        world: &World,
        moment: &mut Moment<'_>,
    ) -> Result<Decision<NewRunner>, Refusal> {
        let registration = world
            .registrations()
            .find(|registration| {
                registration.token == self.registration && moment.steady < registration.expires_at
            })
            .filter(|registration| is_backed(world, registration, moment.steady))
            .ok_or(Refusal::BadRegistration)?;
        let labels = match &registration.labels {
            Some(fixed) if !self.labels.is_empty() && !are_same(fixed, &self.labels) => {
                return Err(Refusal::invalid(
                    "labels",
                    format!("the registration token fixes them: {}", list(fixed)),
                ));
            }
            Some(fixed) => fixed.clone(),
            None => self.labels,
        };
        check_name("name", &self.name)?;
        if self.capacity == 0 || self.capacity > RUNNER_CAPACITY {
            return Err(Refusal::invalid(
                "capacity",
                format!("must be from 1 to {RUNNER_CAPACITY}"),
            ));
        }
        check_labels(&labels)?;
        if self.exclusive && labels.is_empty() {
            return Err(Refusal::invalid(
                "labels",
                "an exclusive runner without labels would never get a job",
            ));
        }
        let mut changes = spent(world, moment.steady);
        changes.push(Change::RegistrationRemoved(registration.id));
        let namesake = world.runners().find(|runner| runner.name == self.name);
        if let Some(namesake) = namesake {
            if !self.replace || namesake.projects != registration.projects {
                return Err(Refusal::NameTaken { name: self.name });
            }
            changes.push(Change::RunnerRemoved(namesake.clone()));
        }
        let replaced = namesake.map(|namesake| namesake.id);
        let secret = PlainToken::session(moment.entropy);
        let runner = Runner {
            id: RunnerId::random(moment.entropy),
            name: self.name,
            labels,
            exclusive: self.exclusive,
            projects: registration.projects.clone(),
            capacity: self.capacity,
            version: printable(&self.version),
            capabilities: Vec::new(),
            registered_at: moment.now,
            session: session(&secret, moment.steady),
            previous_session: None,
        };
        let session = NewSession {
            runner: runner.id,
            secret,
            expires_at: runner.session.expires_at,
        };
        let runner = Arc::new(runner);
        changes.push(Change::Runner(runner.clone()));
        let answer = NewRunner {
            session,
            runner,
            replaced,
        };
        Ok(Decision { changes, answer })
    }
}

fn are_same(labels: &[String], others: &[String]) -> bool {
    labels.iter().collect::<BTreeSet<_>>() == others.iter().collect()
}

fn list(labels: &[String]) -> String {
    match labels {
        [] => "none".to_owned(),
        some => some.join(", "),
    }
}

pub(super) fn check_labels(labels: &[String]) -> Result<(), Refusal> {
    if labels.len() > RUNNER_LABELS {
        return Err(Refusal::invalid(
            "labels",
            format!("at most {RUNNER_LABELS} labels"),
        ));
    }
    labels
        .iter()
        .try_for_each(|label| check_name("labels", label))
}

fn session(secret: &PlainToken, now: Timestamp) -> Session {
    Session {
        token: secret.hash(),
        issued_at: now,
        expires_at: now + RUNNER_SESSION,
    }
}

/// Cuts a version to a text that a table can show.
fn printable(version: &str) -> String {
    let visible = version.chars().filter(|char| !is_invisible(*char));
    visible.take(NAME_CHARS).collect()
}

/// Checks that a name can be shown in tables: not empty, not too long, no surrounding space, no invisible characters.
pub(super) fn check_name(field: &'static str, name: &str) -> Result<(), Refusal> {
    let good = !name.is_empty()
        && name.trim() == name
        && name.chars().count() <= NAME_CHARS
        && !name.chars().any(is_invisible);
    if good {
        Ok(())
    } else {
        Err(Refusal::InvalidField {
            field,
            problem: format!(
                "must be 1 to {NAME_CHARS} printable characters without space around them"
            ),
        })
    }
}

/// True for control characters, and for characters that join, hide or reverse text. Different names must not look the same.
pub fn is_invisible(char: char) -> bool {
    char.is_control()
        || matches!(char,
            '\u{ad}' | '\u{61c}' | '\u{180e}' | '\u{200b}'..='\u{200f}' | '\u{2028}'..='\u{202e}'
            | '\u{2060}'..='\u{206f}' | '\u{feff}' | '\u{e0000}'..='\u{e007f}')
}

/// Record the version and the capabilities that a runner's program reports at its start.
#[derive(Debug, Clone)]
pub struct NoteProgram {
    pub runner: RunnerId,
    pub version: String,
    pub capabilities: Vec<String>,
}

impl Command for NoteProgram {
    type Answer = ();
    /// Runners report this rarely, and must do so before they can get jobs.
    const URGENCY: Urgency = Urgency::Finishing;

    /// Writes nothing if the program is unchanged. Drops capabilities that a table cannot show, and those above the
    /// limit.
    fn decide(self, world: &World, _: &mut Moment<'_>) -> Result<Decision<()>, Refusal> {
        let before = world.runner(self.runner).ok_or(Refusal::NoSuchRunner)?;
        let mut capabilities = self.capabilities;
        capabilities.retain(|name| check_name("capabilities", name).is_ok());
        capabilities.sort();
        capabilities.dedup();
        capabilities.truncate(RUNNER_CAPABILITIES);
        let runner = Runner {
            version: printable(&self.version),
            capabilities,
            ..Runner::clone(before)
        };
        let changed = (runner != **before).then(|| Change::Runner(Arc::new(runner)));
        Ok(Decision::of(changed))
    }
}

/// End the sessions of a runner, which must register again. Its record stays, so that its name is known.
#[derive(Debug, Clone)]
pub struct EndSessions {
    pub runner: RunnerId,
}

impl Command for EndSessions {
    type Answer = ();
    const URGENCY: Urgency = Urgency::Finishing;

    fn decide(self, world: &World, moment: &mut Moment<'_>) -> Result<Decision<()>, Refusal> {
        let runner = world.runner(self.runner).ok_or(Refusal::NoSuchRunner)?;
        let mut ended = Runner::clone(runner);
        ended.session.expires_at = ended.session.expires_at.min(moment.steady);
        ended.previous_session = None;
        Ok(Decision::of([Change::Runner(Arc::new(ended))]))
    }
}

/// Renew a runner's session token, if due. The old token stays valid for ten minutes.
#[derive(Debug, Clone)]
pub struct RenewSession {
    pub runner: RunnerId,
    /// Hash of the token that the runner presented.
    pub token: TokenHash,
}

impl Command for RenewSession {
    /// None if no renewal is due. Of two concurrent requests, only one returns a token. Otherwise the runner might keep
    /// a token that the other request has replaced.
    type Answer = Option<NewSession>;
    const URGENCY: Urgency = Urgency::Ordinary;

    fn decide(
        self,
        world: &World,
        moment: &mut Moment<'_>,
    ) -> Result<Decision<Option<NewSession>>, Refusal> {
        let runner = world.runner(self.runner).ok_or(Refusal::NoSuchRunner)?;
        if !runner.is_renewal_due(self.token, moment.steady) {
            return Ok(Decision::unchanged(None));
        }
        let secret = PlainToken::session(moment.entropy);
        let runner = Runner {
            session: session(&secret, moment.steady),
            previous_session: Some(outgoing(runner, self.token, moment.steady)),
            ..Runner::clone(runner)
        };
        let answer = NewSession {
            runner: runner.id,
            secret,
            expires_at: runner.session.expires_at,
        };
        Ok(Decision {
            changes: vec![Change::Runner(Arc::new(runner))],
            answer: Some(answer),
        })
    }
}

/// The session that stays valid together with the new session: the session of the token in use.
fn outgoing(runner: &Runner, token: TokenHash, now: Timestamp) -> Session {
    match &runner.previous_session {
        // The runner never received the current token.
        Some(previous) if previous.token == token => previous.clone(),
        Some(_) | None => Session {
            expires_at: runner.session.expires_at.min(now + RUNNER_RENEWAL_OVERLAP),
            ..runner.session.clone()
        },
    }
}

/// Remove a runner. The caller ends its jobs.
#[derive(Debug, Clone)]
pub struct RemoveRunner {
    pub runner: RunnerId,
    pub by: Rights,
}

impl Command for RemoveRunner {
    type Answer = ();
    const URGENCY: Urgency = Urgency::Finishing;

    fn decide(self, world: &World, _: &mut Moment<'_>) -> Result<Decision<()>, Refusal> {
        let runner = world.runner(self.runner).ok_or(Refusal::NoSuchRunner)?;
        check_managed(&self.by, &runner.projects)?;
        Ok(Decision::of([Change::RunnerRemoved(runner.clone())]))
    }
}

/// Give a runner other projects. Its running jobs continue; its offers of jobs that it no longer serves are void.
#[derive(Debug, Clone)]
pub struct LimitRunner {
    pub runner: RunnerId,
    pub projects: BTreeSet<ProjectId>,
    pub by: Rights,
}

impl Command for LimitRunner {
    type Answer = ();
    const URGENCY: Urgency = Urgency::Finishing;

    fn decide(self, world: &World, _: &mut Moment<'_>) -> Result<Decision<()>, Refusal> {
        let before = world.runner(self.runner).ok_or(Refusal::NoSuchRunner)?;
        let projects = only(self.projects)?;
        check_managed(&self.by, &before.projects)?;
        check_managed(&self.by, &projects)?;
        let runner = Runner {
            projects,
            ..Runner::clone(before)
        };
        let subject = Subject::Runner { runner: runner.id };
        // Who sees the runner sees its conditions.
        let conditions = world.conditions_of(&subject).map(|open| {
            Change::Condition(Arc::new(Condition {
                projects: runner.projects.clone(),
                ..Condition::clone(open)
            }))
        });
        let mut changes: Vec<Change> = conditions.collect();
        changes.push(Change::Runner(Arc::new(runner)));
        Ok(Decision::of(changes))
    }
}
