//! Users with roles that change, who act with tokens that may be revoked, and steps of jobs, which act with the token of their job.

use std::sync::Arc;

use model::decide::{CreateToken, CreateUser, Giver, NoteProgram, RevokeToken, SetMember};
use model::{
    Guard, JOB_TOKEN, JobId, Principal, ProjectId, Projects, Rights, Role, Scope, Scopes,
    TokenHash, TokenManager, UserId,
};

use super::Simulation;
use crate::SubmitError;
use crate::tests::simulation::daemon::{Daemon, job_token};
use crate::tests::simulation::scenario::{files, source};

/// How many users there are.
pub(super) const USERS: usize = 3;

const ROLES: [Option<Role>; 4] = [
    None,
    Some(Role::Viewer),
    Some(Role::Operator),
    Some(Role::Maintainer),
];

/// A user, and the present token of the user.
pub(super) struct Member {
    id: UserId,
    token: TokenHash,
}

/// A dispatch whose rights were checked. Its command comes later.
pub(super) struct Begun {
    user: usize,
    guard: Arc<Guard>,
}

fn project() -> ProjectId {
    ProjectId::of_source(&source())
}

fn giver() -> Giver {
    Giver {
        user: UserId::OWNER,
        rights: Rights::admin(),
        token: None,
    }
}

pub(super) async fn set_users(daemon: &mut Daemon) -> Vec<Member> {
    let mut members = Vec::new();
    for number in 0..USERS {
        let create = CreateUser {
            name: format!("user{number}").parse().unwrap(),
            is_service: true,
            is_administrator: false,
            roles: [(project(), Role::Operator)].into(),
            by: giver(),
        };
        let id = daemon.submit(create).await.unwrap().user.id;
        let token = daemon.submit(token_of(id)).await.unwrap().secret.hash();
        members.push(Member { id, token });
    }
    members
}

fn token_of(owner: UserId) -> CreateToken {
    CreateToken {
        name: "ci".to_owned(),
        scopes: Scopes::from_iter([Scope::Dispatch, Scope::WorkflowRead]),
        projects: Projects::All,
        owner,
        by: owner,
        life: None,
        granted_by: Rights::admin(),
        ends_by: None,
    }
}

pub(super) fn note_program(runner: model::RunnerId) -> NoteProgram {
    NoteProgram {
        runner,
        version: "0.1.0".to_owned(),
        capabilities: vec![JOB_TOKEN.to_owned()],
    }
}

impl Simulation {
    /// Gives a user another role in the project, or takes it.
    pub(super) async fn change_role(&mut self) {
        let at = self.choices.below(USERS);
        let role = ROLES[self.choices.below(ROLES.len())];
        self.note(format!("user {at} becomes {role:?}"));
        let set = SetMember {
            user: self.members[at].id,
            project: project(),
            role,
            by: giver(),
        };
        if let Some(daemon) = &mut self.daemon {
            let done = daemon.submit(set).await.is_ok();
            self.oracle.role_was_set(at, role, done);
        }
    }

    /// Revokes the token of a user, or makes another one after that.
    pub(super) async fn change_token(&mut self) {
        let at = self.choices.below(USERS);
        self.note(format!("the token of user {at} changes"));
        let (Some(daemon), member) = (&mut self.daemon, &mut self.members[at]) else {
            return;
        };
        let token = daemon
            .state
            .read(|world| Some(world.token_of(&member.token)?.id));
        match token {
            Some(token) => {
                let by = TokenManager::owner();
                let revoked = daemon.submit(RevokeToken { token, by }).await.is_ok();
                self.oracle.token_was_revoked(member.token, revoked);
            }
            None => {
                if let Ok(made) = daemon.submit(token_of(member.id)).await {
                    member.token = made.secret.hash();
                }
            }
        }
    }

    /// A user begins to dispatch a scan, or the command of an earlier request is decided.
    pub(super) async fn act_as_user(&mut self) {
        let Some(daemon) = &self.daemon else {
            return;
        };
        if self.choices.percent(50) || self.begun.is_empty() {
            let user = self.choices.below(USERS);
            let token = self.members[user].token;
            let now = daemon.world_time();
            let found = daemon.state.read(|world| {
                let principal = Principal::of_token(world.token_of(&token)?, token);
                let rights = principal.rights(world, now)?;
                Some((principal, rights))
            });
            if let Some(found) = found {
                let guard = Arc::new(Guard::begin(found, Some(Scope::Dispatch)));
                self.begun.push(Begun { user, guard });
            }
            return;
        }
        let at = self.choices.below(self.begun.len());
        let Begun { user, guard } = self.begun.swap_remove(at);
        // The handler finds the workflow with the rights of this moment.
        let now = daemon.world_time();
        let sees = daemon
            .state
            .read(|world| guard.rights(world, now).sees(project()));
        if !sees {
            return;
        }
        let token = guard.by.used().map(|used| used.secret);
        self.note(format!("user {user} dispatches"));
        if let Some(answer) = self.dispatch_as(&guard).await {
            self.oracle.user_has_acted(user, token, &answer);
        }
    }

    /// A step of a job dispatches a scan with the token of the job. The job may be over.
    pub(super) async fn act_as_job(&mut self) {
        let Some(daemon) = &self.daemon else {
            return;
        };
        let started = self.oracle.newest_started();
        let Some(&(job, token)) = self.choices.one_of(&started) else {
            return;
        };
        let now = daemon.world_time();
        let works = daemon.is_allowed(job, token);
        let found = daemon.state.read(|world| {
            let principal = Principal::of_job(world, job_token(token))?;
            let rights = principal.rights(world, now)?;
            Some((principal, rights))
        });
        self.oracle
            .check_job_token(job, works, found.is_some(), self.time.steady());
        let Some(found) = found else {
            return;
        };
        assert_eq!(found.0.job(), Some(job));
        self.note(format!("a step of {job} dispatches"));
        let guard = Arc::new(Guard::begin(found, Some(Scope::Dispatch)));
        if let Some(Ok(_)) = self.dispatch_as(&guard).await {
            self.oracle.step_has_acted();
        }
    }

    async fn dispatch_as(&mut self, guard: &Arc<Guard>) -> Option<Result<JobId, SubmitError>> {
        let dispatched = [(0, "produce"), (0, "always"), (1, "left"), (1, "itself")];
        let (file, scan) = dispatched[self.choices.below(dispatched.len())];
        let mut dispatch = self.new_dispatch(files()[file].id, scan, None)?;
        (dispatch.actor, dispatch.idempotency) = (guard.by.actor(), None);
        let daemon = self.daemon.as_mut()?;
        let answer = daemon.submit_guarded(guard, dispatch).await;
        if let Ok(job) = answer {
            self.oracle.was_dispatched(job);
        }
        Some(answer)
    }
}
