//! Checks that nobody acts without a role or with a revoked token, and that the token of a job works exactly while its worker
//! does.

use std::collections::{BTreeMap, BTreeSet};

use model::decide::Refusal;
use model::{JobId, JobState, Reason, Role, TokenHash};

use super::Oracle;
use crate::SubmitError;
use crate::tests::simulation::time::{MINUTE, SECOND};

/// What is known of the users. A commit that failed may have changed a role or not.
#[derive(Default)]
pub(super) struct Users {
    /// The roles that a user may have. Each is an operator at first.
    roles: BTreeMap<usize, BTreeSet<Option<Role>>>,
    /// Tokens, with whether it is certain that they are revoked.
    revoked: BTreeMap<TokenHash, bool>,
    acts: [usize; 2],
}

impl Oracle {
    /// How many jobs users and steps have made.
    pub(in crate::tests::simulation) const fn acts(&self) -> [usize; 2] {
        self.users.acts
    }

    pub(in crate::tests::simulation) const fn step_has_acted(&mut self) {
        self.users.acts[1] += 1;
    }

    pub(in crate::tests::simulation) fn role_was_set(
        &mut self,
        user: usize,
        role: Option<Role>,
        is_certain: bool,
    ) {
        let roles = self.users.roles.entry(user);
        let roles = roles.or_insert_with(|| [Some(Role::Operator)].into());
        if is_certain {
            roles.clear();
        }
        roles.insert(role);
    }

    pub(in crate::tests::simulation) fn token_was_revoked(
        &mut self,
        token: TokenHash,
        is_certain: bool,
    ) {
        self.users.revoked.insert(token, is_certain);
    }

    /// A user has dispatched, with this answer.
    pub(in crate::tests::simulation) fn user_has_acted(
        &mut self,
        user: usize,
        token: Option<TokenHash>,
        answer: &Result<JobId, SubmitError>,
    ) {
        let roles = self.users.roles.get(&user);
        let may = |role: &Option<Role>| *role >= Some(Role::Operator);
        let may_be_allowed = roles.is_none_or(|roles| roles.iter().any(may));
        let may_be_refused = roles.is_some_and(|roles| !roles.iter().all(may));
        let revoked = token.and_then(|token| self.users.revoked.get(&token));
        match answer {
            Ok(job) => {
                assert!(may_be_allowed, "user {user} has made {job} with {roles:?}");
                assert_ne!(revoked, Some(&true), "a revoked token has made {job}");
                self.users.acts[0] += 1;
            }
            Err(SubmitError::Refused(Refusal::NoRights | Refusal::RightsReduced)) => {
                assert!(
                    may_be_refused || revoked.is_some(),
                    "user {user} has {roles:?}"
                );
            }
            Err(_) => {}
        }
    }

    /// Jobs that were started, with the tokens of their workers: those that are unfinished, and some that are over.
    pub(in crate::tests::simulation) fn newest_started(&self) -> Vec<(JobId, TokenHash)> {
        let is_open = |job: &JobId| !self.jobs[job].record.state.is_terminal();
        let open = self.started.iter().filter(|(job, _)| is_open(job));
        let newest = self.started.iter().rev().take(2);
        let all = open.chain(newest);
        all.map(|(job, token)| (*job, *token)).collect()
    }

    /// The token of a job is valid as long as its worker's. After an end that the worker has not reported, steps may clean up for
    /// two minutes.
    pub(in crate::tests::simulation) fn check_job_token(
        &self,
        job: JobId,
        works: bool,
        is_valid: bool,
        steady: i64,
    ) {
        let known = &self.jobs[&job];
        let is_reported = match &known.record.state {
            JobState::Succeeded { .. } => true,
            JobState::Failed { .. } => {
                matches!(
                    known.record.reason(),
                    Reason::StepFailed { .. } | Reason::ArtifactFailed { .. }
                )
            }
            JobState::Scheduled | JobState::Running { .. } => false,
            JobState::Cancelled { .. } | JobState::Skipped { .. } => false,
        };
        let ended = steady - known.ended_at;
        // A clock that is set by less than a minute is not recognized, and a new process may not know by how much it was set.
        let is_over = known.record.state.is_terminal()
            && (is_reported || ended > 3 * MINUTE + SECOND && self.clock_set < known.ended_at);
        assert!(
            is_valid || !works,
            "the token of {job} has ended before its worker"
        );
        assert!(
            !is_valid || !is_over,
            "the token of {job} outlives its worker: {:?}",
            known.record.state
        );
    }
}
