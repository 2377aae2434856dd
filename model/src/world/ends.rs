//! The ends that live records hold: of tokens, sessions, running jobs and remembered requests.
//!
//! They are moments of the world's own time, which is the wall clock without the jumps it made since the process began.
//! Once a jump is believed, that time and the ends that this process set follow it together, so that no span of theirs
//! changes and what is stored is right by the clock that the next start reads.
//!
//! Ends that were loaded stay. An earlier process set them, by a clock that this process knows nothing of: whoever put
//! right a clock that was wrong at the start wants them as they are.

use std::sync::Arc;

use chrono::TimeDelta;

use super::World;
use crate::change::Change;
use crate::runner::Session;
use crate::{Holder, Timestamp};

impl World {
    /// What ends are compared with, and counted from. `steady` is the clock that nobody can set.
    pub fn time(&self, steady: Timestamp) -> Timestamp {
        moved(steady, self.followed)
    }

    /// All live records have been loaded. Their ends stay as they are, until new ones are set.
    pub fn finish_loading(&mut self) {
        self.loaded = self.holders().into_iter().collect();
    }

    /// Every live record with an end that this process set.
    pub fn holders(&self) -> Vec<Holder> {
        let tokens = self.tokens.values().filter(|it| it.expires_at.is_some());
        let tokens = tokens.map(|token| Holder::Token(token.id));
        let runners = self.runners.keys().copied().map(Holder::Runner);
        let registrations = self.registrations.keys().copied();
        let jobs = self.running().map(|job| Holder::Job(job.id));
        let requests = self.idempotency.keys().cloned();
        tokens
            .chain(runners)
            .chain(registrations.map(Holder::Registration))
            .chain(jobs)
            .chain(requests.map(Holder::Idempotency))
            .filter(|holder| !self.loaded.contains(holder))
            .collect()
    }

    /// A record that holds an end, as it is. Nothing once it is gone.
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

    /// Moves the world's time, and with it the ends that this process set.
    pub(super) fn follow_clock(&mut self, by: TimeDelta) {
        self.followed = self.followed.checked_add(&by).unwrap_or(self.followed);
        let is_set = |holder: &Holder| !self.loaded.contains(holder);
        for token in self.tokens.values_mut() {
            if let Some(end) = token.expires_at
                && is_set(&Holder::Token(token.id))
            {
                Arc::make_mut(token).expires_at = Some(moved(end, by));
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

/// The moment so much later. One that no clock can show stays as it is.
fn moved(at: Timestamp, by: TimeDelta) -> Timestamp {
    at.checked_add_signed(by).unwrap_or(at)
}
