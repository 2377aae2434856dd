//! The users, and the sessions of each.

use std::borrow::Borrow;
use std::cmp::Ordering;
use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::sync::Arc;

use super::World;
use crate::rights::Rights;
use crate::session::BrowserSession;
use crate::token::TokenHash;
use crate::user::{User, UserLink, UserName, UserState};
use crate::{SessionId, Timestamp, TokenId, UserId};

#[derive(Debug, Clone, Default)]
pub(super) struct Users {
    users: BTreeMap<UserId, Arc<User>>,
    names: BTreeSet<ByName>,
    link_hashes: HashMap<TokenHash, UserId>,
    sessions: BTreeMap<SessionId, Arc<BrowserSession>>,
    session_hashes: HashMap<TokenHash, SessionId>,
    sessions_of: HashMap<UserId, BTreeSet<SessionId>>,
}

/// A user in the order of the names. The name is not stored again.
#[derive(Debug, Clone)]
struct ByName(Arc<User>);

impl Borrow<UserName> for ByName {
    fn borrow(&self) -> &UserName {
        &self.0.name
    }
}

impl Ord for ByName {
    fn cmp(&self, other: &Self) -> Ordering {
        self.0.name.cmp(&other.0.name)
    }
}

impl PartialOrd for ByName {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl PartialEq for ByName {
    fn eq(&self, other: &Self) -> bool {
        self.0.name == other.0.name
    }
}

impl Eq for ByName {}

impl Users {
    pub(super) fn put(&mut self, user: &Arc<User>) {
        let before = self.users.insert(user.id, user.clone());
        if let Some(link) = before.as_ref().and_then(|before| before.link.as_ref()) {
            self.link_hashes.remove(&link.hash);
        }
        if let Some(link) = &user.link {
            self.link_hashes.insert(link.hash, user.id);
        }
        self.names.replace(ByName(user.clone()));
    }

    pub(super) fn begin(&mut self, session: &Arc<BrowserSession>) {
        self.session_hashes.insert(session.hash, session.id);
        let of_user = self.sessions_of.entry(session.user).or_default();
        of_user.insert(session.id);
        self.sessions.insert(session.id, session.clone());
    }

    pub(super) fn end(&mut self, session: &BrowserSession) {
        self.session_hashes.remove(&session.hash);
        self.sessions.remove(&session.id);
        if let Some(of_user) = self.sessions_of.get_mut(&session.user) {
            of_user.remove(&session.id);
            if of_user.is_empty() {
                self.sessions_of.remove(&session.user);
            }
        }
    }

    pub(super) fn each_link(&mut self, change: impl Fn(UserId, Timestamp) -> Timestamp) {
        let moved = self.users.values().filter_map(|user| {
            let mut moved = User::clone(user);
            let link = moved.link.as_mut()?;
            link.expires_at = change(user.id, link.expires_at);
            Some(Arc::new(moved))
        });
        for user in moved.collect::<Vec<_>>() {
            self.put(&user);
        }
    }
}

impl World {
    /// All users in the order of their names, including deleted users.
    pub fn users(&self) -> impl Iterator<Item = &Arc<User>> {
        self.users.names.iter().map(|ByName(user)| user)
    }

    pub(crate) fn user_count(&self) -> usize {
        self.users.users.len()
    }

    pub fn user(&self, id: UserId) -> Option<&Arc<User>> {
        self.users.users.get(&id)
    }

    /// The present epoch of a user, for what the user makes in a session.
    pub(crate) fn epoch_of(&self, user: Option<UserId>) -> u64 {
        let user = user.and_then(|user| self.user(user));
        user.map_or(0, |user| user.epoch)
    }

    /// The user with this name, who may be deleted.
    pub fn user_named(&self, name: &UserName) -> Option<&Arc<User>> {
        self.users.names.get(name).map(|ByName(user)| user)
    }

    /// The user for whom this invitation or reset is, if it is still valid at `now`.
    pub fn user_of_link(&self, secret: &TokenHash, now: Timestamp) -> Option<&Arc<User>> {
        let user = self.user(*self.users.link_hashes.get(secret)?)?;
        let link = user.link.as_ref()?;
        self.is_open(user, link, now).then_some(user)
    }

    /// True if a link can still be used. It ends with what its maker made it with: the right, and the token or all sessions.
    pub fn is_open(&self, user: &User, link: &UserLink, now: Timestamp) -> bool {
        let may_open = match user.state {
            UserState::Invited | UserState::Active => true,
            UserState::Deactivated | UserState::Deleted => false,
        };
        let may_give = |maker| {
            let rights = self.rights_of_maker(link.token, Some(maker), link.epoch, now);
            rights.is_some_and(|rights| rights.may_give(user.is_administrator, &user.roles))
        };
        may_open && now < link.expires_at && link.made_by.is_none_or(may_give)
    }

    /// The present rights of somebody who has made something: with a token, or as a person in a session of this epoch.
    pub fn rights_of_maker(
        &self,
        token: Option<TokenId>,
        user: Option<UserId>,
        epoch: u64,
        now: Timestamp,
    ) -> Option<Rights> {
        let token = match token {
            Some(token) => Some(self.token(token).filter(|token| token.is_valid(now))?),
            None => None,
        };
        let user = self.user(token.map(|token| token.owner).or(user)?);
        let is_its = |user: &&Arc<User>| token.is_some() || user.epoch == epoch;
        let user = user.filter(|user| user.is_active()).filter(is_its)?;
        Some(Rights::of(user, token.map(|token| &**token)))
    }

    /// All sessions, including ended sessions.
    pub fn sessions(&self) -> impl Iterator<Item = &Arc<BrowserSession>> {
        self.users.sessions.values()
    }

    /// Sessions from this id on.
    pub(crate) fn sessions_from(
        &self,
        id: SessionId,
    ) -> impl Iterator<Item = &Arc<BrowserSession>> {
        self.users.sessions.range(id..).map(|(_, session)| session)
    }

    pub fn session(&self, id: SessionId) -> Option<&Arc<BrowserSession>> {
        self.users.sessions.get(&id)
    }

    /// The session with this secret.
    pub fn session_of(&self, secret: &TokenHash) -> Option<&Arc<BrowserSession>> {
        self.session(*self.users.session_hashes.get(secret)?)
    }

    /// The sessions of a user, including ended sessions.
    pub fn sessions_of(&self, user: UserId) -> impl Iterator<Item = &Arc<BrowserSession>> {
        let ids = self.users.sessions_of.get(&user).into_iter().flatten();
        ids.filter_map(|id| self.session(*id))
    }

    /// True if a session is valid at `now`, together with its user and the token that it was made with.
    pub fn is_signed_in(&self, session: &BrowserSession, now: Timestamp) -> bool {
        let user = self.user(session.user);
        let is_of_user = user.is_some_and(|it| it.is_active() && it.epoch == session.epoch);
        let has_token = session.with.is_none_or(|used| {
            let token = self.token(used.token);
            token.is_some_and(|it| it.owner == session.user && it.accepts(&used.secret, now))
        });
        is_of_user && has_token && session.is_valid(now)
    }

    /// The valid sessions of a user at `now`, oldest first.
    pub fn signed_in(&self, user: UserId, now: Timestamp) -> Vec<&Arc<BrowserSession>> {
        let sessions = self.sessions_of(user);
        let mut valid: Vec<_> = sessions.filter(|it| self.is_signed_in(it, now)).collect();
        valid.sort_by_key(|session| (session.created_at, session.id));
        valid
    }
}
