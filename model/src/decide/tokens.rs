//! Making personal access tokens.

use std::sync::Arc;

use chrono::TimeDelta;

use super::runners::check_name;
use super::{Command, Decision, Refusal, Urgency};
use crate::change::Change;
use crate::limits::TOKENS;
use crate::moment::Moment;
use crate::scope::Scopes;
use crate::token::{PlainToken, Token, TokenHash, TokenKind};
use crate::world::World;
use crate::{Timestamp, TokenId};

/// Make a token.
#[derive(Debug, Clone)]
pub struct CreateToken {
    /// What a person calls it.
    pub name: String,
    /// What it may do.
    pub scopes: Scopes,
    /// How long it is valid. Absent for no limit.
    pub life: Option<TimeDelta>,
    /// The scopes of the token that asks.
    pub granted_by: Scopes,
}

/// A new token with its secret.
#[derive(Debug, Clone)]
pub struct NewToken {
    /// The record.
    pub token: Arc<Token>,
    /// Shown once.
    pub secret: PlainToken,
}

impl Command for CreateToken {
    type Answer = NewToken;
    const URGENCY: Urgency = Urgency::Ordinary;

    fn decide(self, world: &World, moment: &mut Moment<'_>) -> Result<Decision<NewToken>, Refusal> {
        check_name("name", &self.name)?;
        if self.scopes.is_empty() {
            return Err(Refusal::InvalidField {
                field: "scopes",
                problem: "at least one is needed".to_owned(),
            });
        }
        if !self.granted_by.cover(&self.scopes) {
            return Err(Refusal::TooStrong);
        }
        let tokens = world.tokens().len();
        if tokens >= TOKENS {
            return Err(Refusal::TooManyTokens { tokens });
        }
        let expires_at = self.life.map(|life| end_of(life, moment)).transpose()?;
        let secret = PlainToken::random(TokenKind::Personal, moment.entropy);
        let token = Arc::new(Token {
            id: TokenId::random(moment.entropy),
            name: self.name,
            hash: secret.hash(),
            scopes: self.scopes,
            created_at: moment.now,
            expires_at,
        });
        Ok(Decision {
            changes: vec![Change::Token(token.clone())],
            answer: NewToken { token, secret },
        })
    }
}

fn end_of(life: TimeDelta, moment: &Moment<'_>) -> Result<Timestamp, Refusal> {
    let refused = |problem: &str| Refusal::InvalidField {
        field: "expires_in_seconds",
        problem: problem.to_owned(),
    };
    if life <= TimeDelta::zero() {
        return Err(refused("must be in the future"));
    }
    let end = moment.steady.checked_add_signed(life);
    end.ok_or_else(|| refused("is too far in the future"))
}

/// Make the first admin token, unless there is a token. Its text is written to a file before, and no change contains
/// it, because the journal must not hold it.
#[derive(Debug, Clone)]
pub struct InitialToken {
    /// Hash of the secret.
    pub hash: TokenHash,
}

impl Command for InitialToken {
    type Answer = ();
    const URGENCY: Urgency = Urgency::Ordinary;

    fn decide(self, world: &World, moment: &mut Moment<'_>) -> Result<Decision<()>, Refusal> {
        if world.tokens().next().is_some() {
            return Ok(Decision::unchanged(()));
        }
        let token = Token {
            id: TokenId::random(moment.entropy),
            name: "initial admin".to_owned(),
            hash: self.hash,
            scopes: Scopes::admin(),
            created_at: moment.now,
            expires_at: None,
        };
        Ok(Decision {
            changes: vec![Change::Token(Arc::new(token))],
            answer: (),
        })
    }
}
