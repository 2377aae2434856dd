//! Creates, regenerates and revokes personal access tokens.

use std::sync::Arc;

use chrono::{NaiveDate, TimeDelta};

use super::runners::check_name;
use super::sessions::token_sessions_removed;
use super::users::seen_on;
use super::{Command, Decision, Refusal, Urgency};
use crate::change::Change;
use crate::limits::{TOKEN_OVERLAP, TOKENS, TOKENS_OF_USER};
use crate::moment::Moment;
use crate::rights::{Rights, TokenManager};
use crate::scope::{Projects, Scope, Scopes};
use crate::token::{FormerSecret, PlainToken, Token, TokenHash, TokenKind};
use crate::user::{User, UserState};
use crate::world::World;
use crate::{Timestamp, TokenId, UserId};

#[derive(Debug, Clone)]
pub struct CreateToken {
    pub name: String,
    pub scopes: Scopes,
    pub projects: Projects,
    /// Who will act with the token: the caller, or a service.
    pub owner: UserId,
    /// The caller.
    pub by: UserId,
    /// The lifetime of the token. None for an unlimited lifetime.
    pub life: Option<TimeDelta>,
    /// The rights of the caller. The token cannot have more rights.
    pub granted_by: Rights,
    /// When the caller's token expires. The new one expires no later.
    pub ends_by: Option<Timestamp>,
}

/// A token with a new secret.
#[derive(Debug, Clone)]
pub struct NewToken {
    pub token: Arc<Token>,
    /// Shown once.
    pub secret: PlainToken,
}

impl Command for CreateToken {
    type Answer = NewToken;
    const URGENCY: Urgency = Urgency::Ordinary;

    fn decide(self, world: &World, moment: &mut Moment<'_>) -> Result<Decision<NewToken>, Refusal> {
        check_name("name", &self.name)?;
        check_reach(&self.scopes, &self.projects)?;
        let Rights {
            scopes, projects, ..
        } = &self.granted_by;
        if !scopes.cover(&self.scopes) || !projects.cover(&self.projects) {
            return Err(Refusal::TooStrong);
        }
        let owner = world.user(self.owner).filter(|owner| owner.is_active());
        let owner = owner.ok_or(Refusal::NoSuchUser)?;
        let is_of_service = self.granted_by.is_administrator() && !owner.is_person();
        if owner.id != self.by && !is_of_service {
            return Err(Refusal::NotForOthers);
        }
        let of_owner = world.tokens_of(owner.id);
        let tokens = of_owner.count();
        if tokens >= TOKENS_OF_USER {
            return Err(Refusal::TooManyTokens { tokens });
        }
        let tokens = world.tokens().len();
        if tokens >= TOKENS {
            return Err(Refusal::TooManyTokens { tokens });
        }
        let end = self.life.map(|life| end_of(life, moment)).transpose()?;
        let expires_at = end.into_iter().chain(self.ends_by).min();
        let secret = PlainToken::random(TokenKind::Personal, moment.entropy);
        let token = Token {
            id: TokenId::random(moment.entropy),
            name: self.name,
            hash: secret.hash(),
            owner: owner.id,
            scopes: self.scopes,
            projects: self.projects,
            created_at: moment.now,
            expires_at,
            former: None,
            last_used: None,
        };
        Ok(changed(token, secret))
    }
}

fn check_reach(scopes: &Scopes, projects: &Projects) -> Result<(), Refusal> {
    if scopes.is_empty() {
        return Err(Refusal::invalid("scopes", "at least one is needed"));
    }
    let Projects::Only(projects) = projects else {
        return Ok(());
    };
    if projects.is_empty() {
        return Err(Refusal::invalid(
            "projects",
            "name at least one, or leave them out",
        ));
    }
    match scopes.iter().find(|scope| scope.is_of_installation()) {
        Some(scope) => Err(Refusal::invalid(
            "projects",
            format!("`{scope}` is about the whole installation: leave the projects out"),
        )),
        None => Ok(()),
    }
}

fn changed(token: Token, secret: PlainToken) -> Decision<NewToken> {
    let token = Arc::new(token);
    Decision {
        changes: vec![Change::Token(token.clone())],
        answer: NewToken { token, secret },
    }
}

fn end_of(life: TimeDelta, moment: &Moment<'_>) -> Result<Timestamp, Refusal> {
    let refused = |problem: &str| Refusal::invalid("expires_in_seconds", problem);
    if life <= TimeDelta::zero() {
        return Err(refused("must be in the future"));
    }
    let end = moment.steady.checked_add_signed(life);
    end.ok_or_else(|| refused("is too far in the future"))
}

fn managed<'w>(
    world: &'w World,
    id: TokenId,
    by: &TokenManager,
) -> Result<&'w Arc<Token>, Refusal> {
    let token = world.token(id).filter(|token| by.manages(token));
    token.ok_or(Refusal::NoSuchToken)
}

/// Give a token a new secret of the same form.
#[derive(Debug, Clone)]
pub struct RegenerateToken {
    pub token: TokenId,
    /// How long the old secret is still accepted.
    pub overlap: TimeDelta,
    /// The lifetime of the token from now on. None keeps its expiry time.
    pub life: Option<TimeDelta>,
    pub by: TokenManager,
    /// When the caller's token expires. It does not make a token end later than that.
    pub ends_by: Option<Timestamp>,
}

impl Command for RegenerateToken {
    type Answer = NewToken;
    const URGENCY: Urgency = Urgency::Ordinary;

    fn decide(self, world: &World, moment: &mut Moment<'_>) -> Result<Decision<NewToken>, Refusal> {
        let token = managed(world, self.token, &self.by)?;
        // A new secret of another person's token would let the caller act as that person.
        let is_of_person = world.user(token.owner).is_none_or(|it| it.is_person());
        if token.owner != self.by.user && is_of_person {
            return Err(Refusal::NotYourToken);
        }
        if self.overlap < TimeDelta::zero() || self.overlap > TOKEN_OVERLAP {
            return Err(Refusal::invalid(
                "overlap_seconds",
                format!("must be 0 to {}", TOKEN_OVERLAP.num_seconds()),
            ));
        }
        let life = self.life.map(|life| end_of(life, moment)).transpose()?;
        if life.is_none() && !token.is_valid(moment.steady) {
            return Err(Refusal::invalid(
                "expires_in_seconds",
                "the token has expired: say how long it is to live",
            ));
        }
        let latest = self.ends_by.zip(token.expires_at);
        let latest = latest.map(|(own, present)| own.max(present));
        let life = life.map(|end| latest.map_or(end, |latest| end.min(latest)));
        let secret = PlainToken::random(TokenKind::Personal, moment.entropy);
        let former = FormerSecret {
            hash: token.hash,
            expires_at: moment.steady + self.overlap,
        };
        let token = Token {
            hash: secret.hash(),
            expires_at: life.or(token.expires_at),
            former: (self.overlap > TimeDelta::zero()).then_some(former),
            ..Token::clone(token)
        };
        Ok(changed(token, secret))
    }
}

/// Remove a token. It is invalid immediately.
#[derive(Debug, Clone)]
pub struct RevokeToken {
    pub token: TokenId,
    pub by: TokenManager,
}

impl Command for RevokeToken {
    type Answer = ();
    const URGENCY: Urgency = Urgency::Finishing;

    fn decide(self, world: &World, moment: &mut Moment<'_>) -> Result<Decision<()>, Refusal> {
        let token = managed(world, self.token, &self.by)?;
        let stays = |other: &&Arc<Token>| {
            other.id != token.id
                && is_admin_token(world, other)
                && !other.expires_soon(moment.steady)
        };
        if is_admin_token(world, token)
            && world.tokens().find(stays).is_none()
            && !world.users().any(|user| user.can_administrate())
        {
            return Err(Refusal::LastAdmin);
        }
        Ok(removed(world, token.id, moment.steady))
    }
}

/// True if the token allows everything.
pub(super) fn is_admin_token(world: &World, token: &Token) -> bool {
    let may_all = match world.user(token.owner) {
        Some(owner) => owner.is_active() && owner.is_administrator,
        // The next start makes the owner.
        None => token.owner == UserId::OWNER,
    };
    may_all && token.scopes.allow(Scope::Admin)
}

fn removed(world: &World, token: TokenId, now: Timestamp) -> Decision<()> {
    Decision::of(token_sessions_removed(world, token, now).chain([Change::TokenRemoved(token)]))
}

/// Give a token to another user, who acts with it from now on. Sessions that were made with it end.
#[derive(Debug, Clone)]
pub struct MoveToken {
    pub token: TokenId,
    pub to: UserId,
}

impl Command for MoveToken {
    type Answer = Arc<Token>;
    const URGENCY: Urgency = Urgency::Ordinary;

    fn decide(
        self,
        world: &World,
        moment: &mut Moment<'_>,
    ) -> Result<Decision<Arc<Token>>, Refusal> {
        let token = world.token(self.token).ok_or(Refusal::NoSuchToken)?;
        let to = world.user(self.to).filter(|user| user.is_active());
        let to = to.ok_or(Refusal::NoSuchUser)?;
        if token.owner == to.id {
            return Ok(Decision::unchanged(token.clone()));
        }
        let tokens = world.tokens_of(to.id).count();
        if tokens >= TOKENS_OF_USER {
            return Err(Refusal::TooManyTokens { tokens });
        }
        let moved = Arc::new(Token {
            owner: to.id,
            ..Token::clone(token)
        });
        let ended = token_sessions_removed(world, token.id, moment.steady);
        Ok(Decision {
            changes: ended.chain([Change::Token(moved.clone())]).collect(),
            answer: moved,
        })
    }
}

/// Remove a token that was restored from a backup, even the last admin token.
#[derive(Debug, Clone, Copy)]
pub struct EndToken {
    pub token: TokenId,
}

impl Command for EndToken {
    type Answer = ();
    const URGENCY: Urgency = Urgency::Finishing;

    fn decide(self, world: &World, moment: &mut Moment<'_>) -> Result<Decision<()>, Refusal> {
        let token = world.token(self.token).ok_or(Refusal::NoSuchToken)?;
        Ok(removed(world, token.id, moment.steady))
    }
}

/// Record the day on which a token was used.
#[derive(Debug, Clone)]
pub struct NoteUse {
    pub token: TokenId,
    pub day: NaiveDate,
}

impl Command for NoteUse {
    type Answer = ();
    const URGENCY: Urgency = Urgency::Ordinary;

    fn decide(self, world: &World, _: &mut Moment<'_>) -> Result<Decision<()>, Refusal> {
        let token = world.token(self.token).ok_or(Refusal::NoSuchToken)?;
        if token.last_used == Some(self.day) {
            return Ok(Decision::unchanged(()));
        }
        let used = Token {
            last_used: Some(self.day),
            ..Token::clone(token)
        };
        let day = seen_on(world, token.owner, self.day);
        let changes = [Change::Token(Arc::new(used))];
        Ok(Decision::of(changes.into_iter().chain(day)))
    }
}

/// Create the first user, unless it exists.
#[derive(Debug, Clone)]
pub struct MakeOwner;

impl Command for MakeOwner {
    type Answer = ();
    const URGENCY: Urgency = Urgency::Ordinary;

    fn decide(self, world: &World, moment: &mut Moment<'_>) -> Result<Decision<()>, Refusal> {
        let is_missing = world.user(UserId::OWNER).is_none();
        Ok(Decision::of(is_missing.then(|| owner_again(world, moment))))
    }
}

/// The owner as an active administrator.
fn owner_again(world: &World, moment: &Moment<'_>) -> Change {
    let owner = match world.user(UserId::OWNER) {
        Some(owner) => User {
            state: UserState::Active,
            is_administrator: true,
            ..User::clone(owner)
        },
        None => User {
            last_seen: world.tokens().filter_map(|token| token.last_used).max(),
            ..User::owner(moment.now)
        },
    };
    Change::User(Arc::new(owner))
}

/// Create the first admin token, unless somebody can manage the installation. If nobody is an administrator any more, the owner
/// becomes one again. The secret is already in a file. Changes do not contain it, because the journal must not.
#[derive(Debug, Clone)]
pub struct InitialToken {
    pub hash: TokenHash,
}

impl InitialToken {
    pub const NAME: &str = "initial admin";
}

impl Command for InitialToken {
    type Answer = ();
    const URGENCY: Urgency = Urgency::Ordinary;

    fn decide(self, world: &World, moment: &mut Moment<'_>) -> Result<Decision<()>, Refusal> {
        let valid =
            |token: &Arc<Token>| is_admin_token(world, token) && token.is_valid(moment.steady);
        if world.tokens().any(valid) || world.users().any(|user| user.can_administrate()) {
            return Ok(Decision::unchanged(()));
        }
        let may_all = |user: &&Arc<User>| user.is_active() && user.is_administrator;
        let owner = world.user(UserId::OWNER).filter(|owner| may_all(owner));
        let owner = owner.or_else(|| world.users().find(may_all));
        // Without any administrator, nobody could use the token.
        let again = owner.is_none().then(|| owner_again(world, moment));
        let token = Token {
            id: TokenId::random(moment.entropy),
            name: Self::NAME.to_owned(),
            hash: self.hash,
            owner: owner.map_or(UserId::OWNER, |owner| owner.id),
            scopes: Scopes::admin(),
            projects: Projects::All,
            created_at: moment.now,
            expires_at: None,
            former: None,
            last_used: None,
        };
        let token = Change::Token(Arc::new(token));
        Ok(Decision::of(again.into_iter().chain([token])))
    }
}
