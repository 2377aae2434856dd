//! What the test knows of users and their credentials, and a naive reading of what they allow.

use std::collections::BTreeMap;

use crate::{JobId, ProjectId, Role, Scope, SessionId, TokenHash, TokenId, UserId};

/// Whether a role includes a scope, told from the scope's name.
fn includes(role: Role, scope: Scope) -> bool {
    let name = scope.name();
    match role {
        Role::Viewer => {
            name.ends_with(":read")
                && !["notify:read", "callback:read", "payload:read"].contains(&name)
        }
        Role::Operator => {
            includes(Role::Viewer, scope)
                || [
                    "dispatch",
                    "job:cancel",
                    "workflow:suspend",
                    "condition:write",
                    "blob:write",
                    "notify:read",
                    "callback:read",
                    "payload:read",
                ]
                .contains(&name)
        }
        Role::Maintainer => !["token:write", "metrics", "admin"].contains(&name),
    }
}

/// What the test knows of a user.
#[derive(Debug, Clone, Default)]
pub(super) struct Person {
    pub(super) is_active: bool,
    pub(super) is_administrator: bool,
    pub(super) has_password: bool,
    pub(super) roles: BTreeMap<ProjectId, Role>,
    pub(super) signed_out: u64,
}

#[derive(Debug, Clone, Copy)]
pub(super) enum Kind {
    Token(TokenId),
    /// A session of the whole person, or of a token: the credential at this place. It ends when its user is signed out.
    Session(SessionId, Option<usize>, u64),
    Job(JobId),
}

/// What the test knows of a credential.
#[derive(Debug, Clone)]
pub(super) struct Credential {
    pub(super) kind: Kind,
    pub(super) secret: TokenHash,
    /// None for a job.
    pub(super) user: Option<UserId>,
    /// None for the whole person.
    pub(super) scopes: Option<Vec<Scope>>,
    pub(super) project: Option<ProjectId>,
    pub(super) has_ended: bool,
    /// The minute at which it ends, if it does.
    pub(super) until: Option<i64>,
}

#[derive(Default)]
pub(super) struct Known {
    pub(super) users: BTreeMap<UserId, Person>,
    pub(super) credentials: Vec<Credential>,
    /// How many minutes have passed.
    pub(super) minute: i64,
}

impl Known {
    /// The naive reading: the scopes and the project of the credential, and the role of its user in the project.
    pub(super) fn allows(&self, credential: &Credential, scope: Scope, at: ProjectId) -> bool {
        let is_open = !credential.has_ended && credential.until.is_none_or(|end| self.minute < end);
        let is_in_reach = credential.project.is_none_or(|project| project == at);
        let has_scope = credential.scopes.as_ref().is_none_or(|scopes| {
            let parts = [
                (Scope::WorkflowWrite, Scope::WorkflowSuspend),
                (Scope::WorkflowWrite, Scope::ConditionWrite),
                (Scope::JobWrite, Scope::JobCancel),
            ];
            let is_part = |it: &Scope| parts.contains(&(*it, scope));
            let has = |it: &Scope| *it == scope || *it == Scope::Admin || is_part(it);
            scopes.iter().any(has)
        });
        let has_role = credential.user.is_none_or(|user| {
            let user = &self.users[&user];
            let role = user.roles.get(&at);
            user.is_active
                && (user.is_administrator || role.is_some_and(|role| includes(*role, scope)))
        });
        let is_signed_in = match credential.kind {
            Kind::Session(_, with, signed_out) => {
                let epoch = credential.user.map(|user| self.users[&user].signed_out);
                epoch == Some(signed_out)
                    && with.is_none_or(|token| self.allows(&self.credentials[token], scope, at))
            }
            Kind::Token(_) | Kind::Job(_) => true,
        };
        is_open && is_in_reach && has_scope && has_role && is_signed_in
    }

    /// The account has ended, and everything that belongs to it.
    pub(super) fn end_all_of(&mut self, user: UserId) {
        let its = self.credentials.iter_mut();
        its.filter(|it| it.user == Some(user))
            .for_each(|it| it.has_ended = true);
    }
}
