//! Requests with an idempotency key. A command that creates a secret runs once. A repeat is refused, because the secret
//! is not stored.

use std::collections::BTreeSet;
use std::sync::Arc;

use super::{Command, Decision, NewBlobLink, NewRegistration, NewToken, Refusal, Urgency};
use crate::change::Change;
use crate::idempotency::{Idempotency, IdempotencyKey, Made};
use crate::limits::{IDEMPOTENCY, IDEMPOTENCY_SWEEP};
use crate::moment::Moment;
use crate::world::World;
use crate::{ScanKey, Timestamp};

/// A command that creates a secret, run once per key.
#[derive(Debug, Clone)]
pub struct Once<C> {
    pub command: C,
    /// Identifies a repeat of this request. Without a key, each request runs.
    pub key: Option<IdempotencyKey>,
}

/// An answer with a secret. Only the first request gets it.
pub trait ShownOnce {
    fn made(&self) -> Made;
}

impl ShownOnce for NewToken {
    fn made(&self) -> Made {
        Made::Token(self.token.id)
    }
}

impl ShownOnce for NewRegistration {
    fn made(&self) -> Made {
        Made::Registration(self.id)
    }
}

impl ShownOnce for NewBlobLink {
    fn made(&self) -> Made {
        Made::BlobLink(self.link.id)
    }
}

impl<C: Command<Answer: ShownOnce>> Command for Once<C> {
    type Answer = C::Answer;
    const URGENCY: Urgency = C::URGENCY;

    fn histories(&self, world: &World) -> BTreeSet<ScanKey> {
        self.command.histories(world)
    }

    fn decide(
        self,
        world: &World,
        moment: &mut Moment<'_>,
    ) -> Result<Decision<C::Answer>, Refusal> {
        if let Some(made) = repeated(world, self.key.as_ref(), moment.steady)? {
            return Err(Refusal::AlreadyDone { made });
        }
        let mut decision = self.command.decide(world, moment)?;
        let made = decision.answer.made();
        decision
            .changes
            .extend(remember(world, self.key, made, moment));
        Ok(decision)
    }
}

/// The result of an earlier request with the same key, if this is a repeat.
pub(super) fn repeated(
    world: &World,
    key: Option<&IdempotencyKey>,
    now: Timestamp,
) -> Result<Option<Made>, Refusal> {
    let first = key.and_then(|key| Some((key, world.idempotency(&key.key)?)));
    match first.filter(|(_, first)| now < first.expires_at) {
        None => Ok(None),
        Some((key, first)) if first.request == key.request => Ok(Some(first.made)),
        Some(_) => Err(Refusal::IdempotencyMismatch),
    }
}

/// Stores a request with a key, and removes a few expired requests.
pub(super) fn remember(
    world: &World,
    key: Option<IdempotencyKey>,
    made: Made,
    moment: &Moment<'_>,
) -> Vec<Change> {
    let Some(IdempotencyKey { key, request }) = key else {
        return Vec::new();
    };
    let over = world
        .idempotency_over(moment.steady)
        .filter(|over| *over != key)
        .take(IDEMPOTENCY_SWEEP);
    let mut changes: Vec<Change> = over
        .map(|key| Change::IdempotencyRemoved(key.to_owned()))
        .collect();
    let expires_at = moment.steady + IDEMPOTENCY;
    changes.push(Change::Idempotency(Arc::new(Idempotency {
        key,
        request,
        made,
        expires_at,
    })));
    changes
}
