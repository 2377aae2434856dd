//! Tokens, sessions, invitations and jobs are made.

use chrono::TimeDelta;
use serde_json::json;

use super::known::{Credential, Kind};
use super::{Story, projects, vault};
use crate::decide::{CreateToken, SignIn, SignedInBy, UseUserLink};
use crate::limits::WORKER_SESSION;
use crate::testing::{job_token, source};
use crate::{
    PasswordHash, ProjectId, Projects, Rights, Role, Scope, Scopes, UsedToken, UserId, WorkflowId,
};

/// What a step of a job may do without `permissions`.
const OF_JOBS: [Scope; 6] = [
    Scope::JobRead,
    Scope::BlobRead,
    Scope::BlobWrite,
    Scope::Dispatch,
    Scope::PayloadRead,
    Scope::CallbackOwn,
];

impl Story {
    pub(super) fn make_token(
        &mut self,
        owner: UserId,
        scopes: Scopes,
        project: Option<ProjectId>,
        life: Option<TimeDelta>,
    ) {
        let made = self.test.run(CreateToken {
            name: "ci".to_owned(),
            scopes: scopes.clone(),
            projects: project.map_or(Projects::All, |project| Projects::Only([project].into())),
            owner,
            by: owner,
            life,
            granted_by: Rights::admin(),
            ends_by: None,
        });
        let Ok(made) = made else {
            return;
        };
        assert!(
            self.known.users[&owner].is_active,
            "a token of an account that has ended"
        );
        self.known.credentials.push(Credential {
            kind: Kind::Token(made.token.id),
            secret: made.secret.hash(),
            user: Some(owner),
            scopes: Some(scopes.iter().collect()),
            project,
            has_ended: false,
            until: life.map(|life| self.known.minute + life.num_minutes()),
        });
    }

    /// Signs in as a person, or with a token.
    pub(super) fn sign_in(&mut self, user: UserId, with: Option<usize>) {
        let with = with.filter(|at| matches!(self.known.credentials[*at].kind, Kind::Token(_)));
        let by = match with.map(|at| &self.known.credentials[at]) {
            Some(Credential {
                kind: Kind::Token(token),
                secret,
                ..
            }) => SignedInBy::token(UsedToken {
                token: *token,
                secret: *secret,
            }),
            _ => SignedInBy::Person {
                user,
                epoch: self.test.world.user(user).unwrap().epoch,
                signed_in_at: None,
            },
        };
        let made = self.test.run(SignIn {
            by,
            is_device: false,
            device: "a browser".to_owned(),
            address: "192.0.2.1".parse().unwrap(),
        });
        let Ok(made) = made else {
            return;
        };
        let user = made.session.user;
        assert!(
            self.known.users[&user].is_active,
            "a session of an account that has ended"
        );
        self.known.credentials.push(Credential {
            kind: Kind::Session(made.session.id, with, self.known.users[&user].signed_out),
            secret: made.cookie.secret.hash(),
            user: Some(user),
            scopes: None,
            project: None,
            has_ended: false,
            until: None,
        });
    }

    pub(super) fn accept(&mut self, link: u8) {
        if self.links.is_empty() {
            return;
        }
        let (user, maker, link) = self.links.swap_remove(usize::from(link) % self.links.len());
        let accept = UseUserLink {
            link: link.hash(),
            password: PasswordHash::new("$argon2id$".to_owned()),
        };
        if self.test.run(accept).is_ok() {
            let (maker, roles) = (&self.known.users[&maker], &self.known.users[&user].roles);
            let gives = |at| maker.roles.get(at) == Some(&Role::Maintainer);
            let may = maker.is_administrator || !roles.is_empty() && roles.keys().all(gives);
            assert!(maker.is_active && may, "an invitation of {maker:?}");
            let person = self.known.users.get_mut(&user).unwrap();
            (person.is_active, person.has_password) = (true, true);
            person.signed_out += 1;
        }
    }

    pub(super) fn start_job(&mut self, at: usize) {
        let workflow = WorkflowId::derive(&[source(), vault()][at], "nightly");
        let Ok(job) = self.test.dispatch(workflow, "probe", json!({})) else {
            return;
        };
        if self.test.claim(job, self.runner).is_ok() {
            self.known.credentials.push(Credential {
                kind: Kind::Job(job),
                secret: job_token(job),
                user: None,
                scopes: Some(OF_JOBS.to_vec()),
                project: Some(projects()[at]),
                has_ended: false,
                until: Some(self.known.minute + WORKER_SESSION.num_minutes()),
            });
        }
    }
}
