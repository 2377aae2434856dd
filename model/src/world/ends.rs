//! When live records expire: tokens, sessions, running jobs and stored requests; and when retries are due.
//!
//! Expiry times are in the world's own time: the wall clock without its jumps since the process started. When a jump is
//! accepted, the world's time and the expiry times that this process set move together. So no period changes its
//! length, and the stored times are right for the clock that the next process reads.
//!
//! Expiry times that were loaded do not move. An earlier process set them by its own clock. Somebody who corrects a
//! clock that was wrong at the start wants them unchanged.

use std::sync::Arc;

use chrono::TimeDelta;

use super::World;
use crate::change::Change;
use crate::runner::Session;
use crate::token::Token;
use crate::{Holder, JobId, Timestamp};

impl World {
    /// The world's time. Expiry times are set and compared with it. `steady` is the clock that nobody can set.
    pub fn time(&self, steady: Timestamp) -> Timestamp {
        moved(steady, self.followed)
    }

    /// To be called once all live records are loaded. Their expiry times do not move until new ones are set.
    pub fn finish_loading(&mut self) {
        self.loaded = self.holders().into_iter().collect();
    }

    /// Every live record with an expiry time that this process set.
    pub fn holders(&self) -> Vec<Holder> {
        let has_end = |token: &&Arc<Token>| token.expires_at.is_some() || token.former.is_some();
        let tokens = self.tokens.values().filter(has_end);
        let tokens = tokens.map(|token| Holder::Token(token.id));
        let runners = self.runners.keys().copied().map(Holder::Runner);
        let registrations = self.registrations.keys().copied();
        let delayed = self.jobs.delayed();
        let jobs = self.running().map(|job| job.id).chain(delayed);
        let jobs = jobs.map(Holder::Job);
        let requests = self.idempotency.keys().cloned();
        tokens
            .chain(runners)
            .chain(registrations.map(Holder::Registration))
            .chain(jobs)
            .chain(requests.map(Holder::Idempotency))
            .filter(|holder| !self.loaded.contains(holder))
            .collect()
    }

    /// The present record of a holder, as a change. None if it is gone.
    pub(crate) fn as_it_is(&self, holder: &Holder) -> Option<Change> {
        match holder {
            Holder::Token(id) => self.tokens.get(id).cloned().map(Change::Token),
            Holder::Runner(id) => self.runners.get(id).cloned().map(Change::Runner),
            Holder::Registration(id) => {
                let registration = self.registrations.get(id).cloned();
                registration.map(Change::Registration)
            }
            Holder::Job(id) => self.job(*id).cloned().map(Change::Job),
            Holder::Idempotency(key) => self.idempotency(key).cloned().map(Change::Idempotency),
        }
    }

    /// Moves the world's time and the expiry times that this process set.
    pub(super) fn follow_clock(&mut self, by: TimeDelta) {
        self.followed = self.followed.checked_add(&by).unwrap_or(self.followed);
        let is_set = |holder: &Holder| !self.loaded.contains(holder);
        let tokens = self.tokens.iter_mut();
        for (_, token) in tokens.filter(|(id, _)| is_set(&Holder::Token(**id))) {
            let token = Arc::make_mut(token);
            token.expires_at = token.expires_at.map(|end| moved(end, by));
            if let Some(former) = &mut token.former {
                former.expires_at = moved(former.expires_at, by);
            }
        }
        let runners = self.runners.iter_mut();
        for (_, runner) in runners.filter(|(id, _)| is_set(&Holder::Runner(**id))) {
            let runner = Arc::make_mut(runner);
            let sessions = std::iter::once(&mut runner.session).chain(&mut runner.previous_session);
            for Session {
                issued_at,
                expires_at,
                ..
            } in sessions
            {
                *issued_at = moved(*issued_at, by);
                *expires_at = moved(*expires_at, by);
            }
        }
        let registrations = self.registrations.iter_mut();
        for (_, registration) in registrations.filter(|(id, _)| is_set(&Holder::Registration(**id)))
        {
            let registration = Arc::make_mut(registration);
            registration.expires_at = moved(registration.expires_at, by);
        }
        self.jobs.each_run(|job, run| {
            if is_set(&Holder::Job(job)) {
                run.expires_at = moved(run.expires_at, by);
                run.deadline = run.deadline.map(|deadline| moved(deadline, by));
            }
        });
        let delayed: Vec<JobId> = self.jobs.delayed().collect();
        for job in delayed.into_iter().filter(|job| is_set(&Holder::Job(*job))) {
            self.jobs.postpone(job, |at| moved(at, by));
        }
        self.idempotency_by_age.clear();
        for (key, request) in &mut self.idempotency {
            if is_set(&Holder::Idempotency(key.clone())) {
                let request = Arc::make_mut(request);
                request.expires_at = moved(request.expires_at, by);
            }
            self.idempotency_by_age
                .insert((request.expires_at, key.clone()));
        }
    }
}

/// The time plus `by`, or the same time if the result is out of range.
fn moved(at: Timestamp, by: TimeDelta) -> Timestamp {
    at.checked_add_signed(by).unwrap_or(at)
}
