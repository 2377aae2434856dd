//! Registering runners and renewing their sessions.

use std::sync::Arc;

use super::{Command, Decision, Refusal, Urgency};
use crate::change::Change;
use crate::limits::{
    NAME_CHARS, OPEN_REGISTRATIONS, REGISTRATION, REGISTRATION_SWEEP, RUNNER_CAPACITY,
    RUNNER_LABELS, RUNNER_RENEWAL_OVERLAP, RUNNER_SESSION,
};
use crate::moment::Moment;
use crate::runner::{Registration, Runner, Session};
use crate::token::{Secret, SecretKind, TokenHash};
use crate::world::World;
use crate::{RegistrationId, RunnerId, Timestamp};

/// Make a registration token.
#[derive(Debug, Clone)]
pub struct CreateRegistration;

/// A new registration token.
#[derive(Debug, Clone)]
pub struct NewRegistration {
    /// Shown once.
    pub secret: Secret,
    /// When it ends.
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
        let secret = Secret::random(SecretKind::Registration, moment.entropy);
        let registration = Registration {
            id: RegistrationId::random(moment.entropy),
            token: secret.hash(),
            expires_at: moment.steady + REGISTRATION,
        };
        let expires_at = registration.expires_at;
        let mut changes = spent(world, moment.steady);
        changes.push(Change::Registration(Arc::new(registration)));
        Ok(Decision {
            changes,
            answer: NewRegistration { secret, expires_at },
        })
    }
}

/// A bounded number of registrations that ran out, to be removed along the way.
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
    /// Hash of the registration token.
    pub registration: TokenHash,
    /// Unique among runners.
    pub name: String,
    /// What `runs_on` is matched with.
    pub labels: Vec<String>,
    /// How many jobs it runs at once.
    pub capacity: u32,
    /// Its version.
    pub version: String,
    /// Take the place of a runner of the same name.
    pub replace: bool,
}

/// A runner's new session.
#[derive(Debug, Clone)]
pub struct NewSession {
    /// The runner.
    pub runner: RunnerId,
    /// The session token, shown once.
    pub secret: Secret,
    /// When it ends.
    pub expires_at: Timestamp,
}

/// A registered runner.
#[derive(Debug, Clone)]
pub struct NewRunner {
    /// Its first session.
    pub session: NewSession,
    /// The runner whose place it took. Its jobs are ended by whoever asks.
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
            let problem = format!("must be from 1 to {RUNNER_CAPACITY}");
            return Err(Refusal::InvalidField {
                field: "capacity",
                problem,
            });
        }
        if self.labels.len() > RUNNER_LABELS {
            let problem = format!("at most {RUNNER_LABELS} labels");
            return Err(Refusal::InvalidField {
                field: "labels",
                problem,
            });
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
        let secret = Secret::session(moment.entropy);
        let runner = Runner {
            id: RunnerId::random(moment.entropy),
            name: self.name,
            labels: self.labels,
            capacity: self.capacity,
            version: printable(&self.version),
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

fn session(secret: &Secret, now: Timestamp) -> Session {
    Session {
        token: secret.hash(),
        issued_at: now,
        expires_at: now + RUNNER_SESSION,
    }
}

/// A version as far as it can be shown in a table.
fn printable(version: &str) -> String {
    let visible = version.chars().filter(|char| !is_invisible(*char));
    visible.take(NAME_CHARS).collect()
}

/// A name a person reads in a table: not empty, not long, no space around it, nothing invisible.
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

/// Controls, and the marks that join, hide or turn around text: two names that look the same must be the same.
fn is_invisible(char: char) -> bool {
    char.is_control()
        || matches!(char,
            '\u{ad}' | '\u{61c}' | '\u{180e}' | '\u{200b}'..='\u{200f}' | '\u{2028}'..='\u{202e}'
            | '\u{2060}'..='\u{206f}' | '\u{feff}' | '\u{e0000}'..='\u{e007f}')
}

/// End the sessions of a runner, which has to register again. Its record stays, so that its name is known.
#[derive(Debug, Clone)]
pub struct EndSessions {
    /// The runner.
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
        Ok(Decision {
            changes: vec![Change::Runner(Arc::new(ended))],
            answer: (),
        })
    }
}

/// Give the holder of a runner's session token a new one, when that is due; the old one stays good for ten minutes.
#[derive(Debug, Clone)]
pub struct RenewSession {
    /// The runner.
    pub runner: RunnerId,
    /// Hash of the token it came with.
    pub token: TokenHash,
}

impl Command for RenewSession {
    /// Nothing when no renewal is due. Of two requests that end together one brings a token: the runner might otherwise
    /// keep the one that the other has put out of use.
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
        let secret = Secret::session(moment.entropy);
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

/// The session that stays good beside a new one: that of the token which is in use.
fn outgoing(runner: &Runner, token: TokenHash, now: Timestamp) -> Session {
    match &runner.previous_session {
        // The current one never arrived.
        Some(previous) if previous.token == token => previous.clone(),
        Some(_) | None => Session {
            expires_at: runner.session.expires_at.min(now + RUNNER_RENEWAL_OVERLAP),
            ..runner.session.clone()
        },
    }
}

/// Forget a runner. Its jobs are ended by whoever asks.
#[derive(Debug, Clone)]
pub struct RemoveRunner {
    /// The runner.
    pub runner: RunnerId,
}

impl Command for RemoveRunner {
    type Answer = ();
    const URGENCY: Urgency = Urgency::Finishing;

    fn decide(self, world: &World, _: &mut Moment<'_>) -> Result<Decision<()>, Refusal> {
        let runner = world.runner(self.runner).ok_or(Refusal::NoSuchRunner)?;
        Ok(Decision {
            changes: vec![Change::RunnerRemoved(runner.id)],
            answer: (),
        })
    }
}
