//! Registers runners and renews their sessions.

use std::sync::Arc;

use super::{Command, Decision, Refusal, Urgency};
use crate::change::Change;
use crate::limits::{
    NAME_CHARS, OPEN_REGISTRATIONS, REGISTRATION, REGISTRATION_SWEEP, RUNNER_CAPABILITIES,
    RUNNER_CAPACITY, RUNNER_LABELS, RUNNER_RENEWAL_OVERLAP, RUNNER_SESSION,
};
use crate::moment::Moment;
use crate::runner::{Registration, Runner, Session};
use crate::token::{PlainToken, TokenHash, TokenKind};
use crate::world::World;
use crate::{RegistrationId, RunnerId, Timestamp};

/// Create a registration token.
#[derive(Debug, Clone)]
pub struct CreateRegistration;

#[derive(Debug, Clone)]
pub struct NewRegistration {
    pub id: RegistrationId,
    /// Shown once.
    pub secret: PlainToken,
    pub expires_at: Timestamp,
}

impl Command for CreateRegistration {
    type Answer = NewRegistration;
    const URGENCY: Urgency = Urgency::Ordinary;

    fn decide(
        self,
        world: &World,
        moment: &mut Moment<'_>,
    ) -> Result<Decision<NewRegistration>, Refusal> {
        let is_open = |registration: &&Arc<Registration>| moment.steady < registration.expires_at;
        let waiting = world.registrations().filter(is_open).count();
        if waiting >= OPEN_REGISTRATIONS {
            return Err(Refusal::TooManyRegistrations { waiting });
        }
        let secret = PlainToken::random(TokenKind::Registration, moment.entropy);
        let registration = Registration {
            id: RegistrationId::random(moment.entropy),
            token: secret.hash(),
            expires_at: moment.steady + REGISTRATION,
        };
        let (id, expires_at) = (registration.id, registration.expires_at);
        let mut changes = spent(world, moment.steady);
        changes.push(Change::Registration(Arc::new(registration)));
        Ok(Decision {
            changes,
            answer: NewRegistration {
                id,
                secret,
                expires_at,
            },
        })
    }
}

fn spent(world: &World, now: Timestamp) -> Vec<Change> {
    world
        .registrations()
        .filter(|registration| registration.expires_at <= now)
        .take(REGISTRATION_SWEEP)
        .map(|registration| Change::RegistrationRemoved(registration.id))
        .collect()
}

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
            .ok_or(Refusal::BadRegistration)?;
        check_name("name", &self.name)?;
        if self.capacity == 0 || self.capacity > RUNNER_CAPACITY {
            return Err(Refusal::invalid(
                "capacity",
                format!("must be from 1 to {RUNNER_CAPACITY}"),
            ));
        }
        if self.labels.len() > RUNNER_LABELS {
            return Err(Refusal::invalid(
                "labels",
                format!("at most {RUNNER_LABELS} labels"),
            ));
        }
        if self.exclusive && self.labels.is_empty() {
            return Err(Refusal::invalid(
                "labels",
                "an exclusive runner without labels would never get a job",
            ));
        }
        for label in &self.labels {
            check_name("labels", label)?;
        }
        let mut changes = spent(world, moment.steady);
        changes.push(Change::RegistrationRemoved(registration.id));
        let namesake = world.runners().find(|runner| runner.name == self.name);
        let replaced = namesake.map(|namesake| namesake.id);
        if let Some(replaced) = replaced {
            if !self.replace {
                return Err(Refusal::NameTaken { name: self.name });
            }
            changes.push(Change::RunnerRemoved(replaced));
        }
        let secret = PlainToken::session(moment.entropy);
        let runner = Runner {
            id: RunnerId::random(moment.entropy),
            name: self.name,
            labels: self.labels,
            exclusive: self.exclusive,
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
        changes.push(Change::Runner(Arc::new(runner)));
        Ok(Decision {
            changes,
            answer: NewRunner { session, replaced },
        })
    }
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
fn is_invisible(char: char) -> bool {
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
}

impl Command for RemoveRunner {
    type Answer = ();
    const URGENCY: Urgency = Urgency::Finishing;

    fn decide(self, world: &World, _: &mut Moment<'_>) -> Result<Decision<()>, Refusal> {
        let runner = world.runner(self.runner).ok_or(Refusal::NoSuchRunner)?;
        Ok(Decision::of([Change::RunnerRemoved(runner.id)]))
    }
}
