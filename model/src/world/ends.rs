//! The expiry times of live records: tokens, sessions, running jobs, stored requests and links; and the times when
//! retries are due.
//!
//! Expiry times are in the world's own time: the wall clock without its jumps since the process started. When a jump is
//! accepted, the world's time and its expiry times move together. So no period changes its length, and the stored times
//! fit the clock that the next process reads.
//!
//! Loaded expiry times belong to the world's time if the record of a jump contains the clock that set them. Then their
//! offset is known, and they are moved at once. Other loaded times do not move: an earlier process set them by its own
//! clock, and an operator who corrects a wrong clock wants them unchanged.

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;

use chrono::TimeDelta;

use super::World;
use crate::change::Change;
use crate::clocks::Clocks;
use crate::job::JobState;
use crate::limits::{CLOCK_LAG, CLOCK_NOTE, CLOCKS};
use crate::runner::Session;
use crate::token::Token;
use crate::{Holder, JobId, Timestamp};

/// The clocks by which expiry times were set.
#[derive(Debug, Clone, Default)]
pub(super) struct Ends {
    /// The difference between the world's time and the steady clock.
    followed: TimeDelta,
    /// The number of the clock of the world's time.
    clock: u64,
    /// Earlier clocks that set stored expiry times, and how far each of them is behind the world's time.
    earlier: BTreeMap<u64, TimeDelta>,
    /// Records whose expiry times were set by an unknown clock of an earlier process, with the number of this clock.
    loaded: HashMap<Holder, u64>,
    /// The record on disk.
    noted: Option<Arc<Clocks>>,
}

impl World {
    /// The world's time. Expiry times are set and compared in this time. `steady` is the clock that cannot be set.
    pub fn time(&self, steady: Timestamp) -> Timestamp {
        moved(steady, self.ends.followed)
    }

    /// Call this when all live records are loaded, with the wall clock and the clocks that set their expiry times.
    /// Expiry times of known clocks are moved to the world's time. Other times do not move until they are set again.
    pub fn finish_loading(&mut self, now: Timestamp, mut set_by: HashMap<Holder, u64>) {
        if let Some(clocks) = self.ends.noted.clone() {
            let continued = clocks.continued_by(now);
            let readings = clocks.readings.iter();
            let earlier = readings.map(|(number, reading)| (*number, continued - *reading));
            self.ends.earlier = earlier.collect();
        }
        let numbers = set_by.values().chain(self.ends.earlier.keys());
        self.ends.clock = numbers.max().map_or(0, |newest| *newest) + 1;
        let mut known = HashMap::new();
        for holder in self.holders() {
            let number = set_by.remove(&holder).unwrap_or_default();
            match self.ends.earlier.get(&number) {
                Some(by) => drop(known.insert(holder, *by)),
                None => drop(self.ends.loaded.insert(holder, number)),
            }
        }
        self.move_ends(|holder| known.get(holder).copied());
    }

    /// Every live record whose expiry time is in the world's time.
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
        let links = self.blob_links().map(|link| Holder::BlobLink(link.id));
        let users = self.users().filter(|user| user.link.is_some());
        tokens
            .chain(runners)
            .chain(registrations.map(Holder::Registration))
            .chain(jobs)
            .chain(requests.map(Holder::Idempotency))
            .chain(links)
            .chain(users.map(|user| Holder::User(user.id)))
            .filter(|holder| !self.ends.loaded.contains_key(holder))
            .collect()
    }

    /// The current record of a holder, as a change. None if it no longer exists.
    pub(crate) fn as_it_is(&self, holder: &Holder) -> Option<Change> {
        match holder {
            Holder::Token(id) => self.tokens.get(id).cloned().map(Change::Token),
            Holder::User(id) => self.user(*id).cloned().map(Change::User),
            Holder::Runner(id) => self.runners.get(id).cloned().map(Change::Runner),
            Holder::Registration(id) => {
                let registration = self.registrations.get(id).cloned();
                registration.map(Change::Registration)
            }
            Holder::Job(id) => self.job(*id).cloned().map(Change::Job),
            Holder::Idempotency(key) => self.idempotency(key).cloned().map(Change::Idempotency),
            Holder::BlobLink(id) => self.blob_link(*id).cloned().map(Change::BlobLink),
        }
    }

    /// The number of the clock that set the expiry times in a change that is about to be applied. None if the change
    /// has no expiry times.
    pub fn clock_of(&self, change: &Change) -> Option<u64> {
        let holder = Holder::of(change)?;
        let before = self.ends.loaded.get(&holder);
        let before = before.filter(|_| !self.has_new_ends(&holder, change));
        Some(before.copied().unwrap_or(self.ends.clock))
    }

    /// The record of a jump that the stored expiry times do not follow yet.
    pub const fn clocks(&self) -> Option<&Arc<Clocks>> {
        self.ends.noted.as_ref()
    }

    /// True if the difference between the wall clock and the world's time was recently recorded on disk.
    pub fn is_noted(&self, wall: Timestamp, time: Timestamp) -> bool {
        let Some(clocks) = &self.ends.noted else {
            return (wall - time).abs() < CLOCK_LAG;
        };
        clocks.readings.get(&self.ends.clock).is_some_and(|noted| {
            let moved = (wall - time) - (clocks.wall - *noted);
            moved.abs() < CLOCK_LAG && time - *noted < CLOCK_NOTE
        })
    }

    /// True if an earlier clock set some of the stored expiry times.
    pub fn has_earlier_clocks(&self) -> bool {
        !self.ends.earlier.is_empty()
    }

    /// The readings of all clocks while the wall clock shows `wall` and the world's time is `time`.
    pub(crate) fn clocks_at(&self, wall: Timestamp, time: Timestamp) -> Clocks {
        let Ends { clock, earlier, .. } = &self.ends;
        let earlier = earlier.iter();
        let mut readings: BTreeMap<_, _> =
            earlier.map(|(it, by)| (*it, moved(time, -*by))).collect();
        readings.insert(*clock, time);
        Clocks { wall, readings }
    }

    /// The readings after the world's time has followed the wall clock to `wall`.
    pub(crate) fn clocks_followed(&self, wall: Timestamp, time: Timestamp) -> Clocks {
        let mut clocks = self.clocks_at(wall, time);
        clocks.readings.insert(self.ends.clock + 1, wall);
        while clocks.readings.len() > CLOCKS {
            clocks.readings.pop_first();
        }
        clocks
    }

    /// Stores the new record of the clocks. Without a record, the current clock has set all stored expiry times.
    pub(super) fn note_clocks(&mut self, clocks: Option<Arc<Clocks>>) {
        let readings = clocks.as_ref().map(|clocks| &clocks.readings);
        let is_known = |number: &u64| readings.is_some_and(|them| them.contains_key(number));
        self.ends.earlier.retain(|number, _| is_known(number));
        self.ends.noted = clocks;
    }

    /// Moves the world's time and its expiry times. From now on, a new clock sets them.
    pub(super) fn follow_clock(&mut self, by: TimeDelta) {
        let Ends {
            followed,
            clock,
            earlier,
            ..
        } = &mut self.ends;
        *followed = followed.checked_add(&by).unwrap_or(*followed);
        earlier.insert(*clock, TimeDelta::zero());
        for behind in earlier.values_mut() {
            *behind = behind.checked_add(&by).unwrap_or(*behind);
        }
        *clock += 1;
        let loaded = std::mem::take(&mut self.ends.loaded);
        self.move_ends(|holder| (!loaded.contains_key(holder)).then_some(by));
        self.ends.loaded = loaded;
    }

    /// Records that a change sets new expiry times for a loaded record.
    pub(super) fn note_new_ends(&mut self, change: &Change) {
        if !self.ends.loaded.is_empty()
            && let Some(holder) = Holder::of(change)
            && self.has_new_ends(&holder, change)
        {
            self.ends.loaded.remove(&holder);
        }
    }

    /// True if a change sets new expiry times. For example, recording a token's use does not.
    fn has_new_ends(&self, holder: &Holder, change: &Change) -> bool {
        let before = self.as_it_is(holder);
        let before = before.and_then(|before| expiry_times(&before));
        before
            .is_none_or(|(_, before)| Some(before) != expiry_times(change).map(|(_, times)| times))
    }

    /// Moves expiry times by the span that `by` returns for their holder.
    fn move_ends(&mut self, by: impl Fn(&Holder) -> Option<TimeDelta>) {
        for (id, token) in &mut self.tokens {
            if let Some(by) = by(&Holder::Token(*id)) {
                let token = Arc::make_mut(token);
                token.expires_at = token.expires_at.map(|end| moved(end, by));
                if let Some(former) = &mut token.former {
                    former.expires_at = moved(former.expires_at, by);
                }
            }
        }
        for (id, runner) in &mut self.runners {
            if let Some(by) = by(&Holder::Runner(*id)) {
                let runner = Arc::make_mut(runner);
                let sessions = std::iter::once(&mut runner.session);
                for session in sessions.chain(&mut runner.previous_session) {
                    let Session {
                        issued_at,
                        expires_at,
                        ..
                    } = session;
                    *issued_at = moved(*issued_at, by);
                    *expires_at = moved(*expires_at, by);
                }
            }
        }
        for (id, registration) in &mut self.registrations {
            if let Some(by) = by(&Holder::Registration(*id)) {
                let registration = Arc::make_mut(registration);
                registration.expires_at = moved(registration.expires_at, by);
            }
        }
        self.jobs.each_run(|job, run| {
            if let Some(by) = by(&Holder::Job(job)) {
                run.expires_at = moved(run.expires_at, by);
                run.deadline = run.deadline.map(|deadline| moved(deadline, by));
            }
        });
        let delayed: Vec<JobId> = self.jobs.delayed().collect();
        for job in delayed {
            if let Some(by) = by(&Holder::Job(job)) {
                self.jobs.postpone(job, |at| moved(at, by));
            }
        }
        self.blobs.each_link(|link, end| {
            let by = by(&Holder::BlobLink(link));
            by.map_or(end, |by| moved(end, by))
        });
        self.users.each_link(|user, end| {
            let by = by(&Holder::User(user));
            by.map_or(end, |by| moved(end, by))
        });
        self.idempotency_by_age.clear();
        for (key, request) in &mut self.idempotency {
            if let Some(by) = by(&Holder::Idempotency(key.clone())) {
                let request = Arc::make_mut(request);
                request.expires_at = moved(request.expires_at, by);
            }
            self.idempotency_by_age
                .insert((request.expires_at, key.clone()));
        }
    }
}

impl Holder {
    /// The holder whose record is in a change. None if the record does not expire.
    pub fn of(change: &Change) -> Option<Self> {
        expiry_times(change).map(|(holder, _)| holder)
    }
}

/// The holder whose record is in a change, and its expiry times.
fn expiry_times(change: &Change) -> Option<(Holder, [Option<Timestamp>; 2])> {
    Some(match change {
        Change::Token(token) => {
            let former = token.former.as_ref().map(|former| former.expires_at);
            (Holder::Token(token.id), [token.expires_at, former])
        }
        Change::Runner(runner) => {
            let previous = runner.previous_session.as_ref().map(|it| it.expires_at);
            let times = [Some(runner.session.expires_at), previous];
            (Holder::Runner(runner.id), times)
        }
        Change::Registration(it) => (Holder::Registration(it.id), [Some(it.expires_at), None]),
        Change::Job(job) => {
            let times = match &job.state {
                JobState::Scheduled => [job.not_before, None],
                JobState::Running { run } => [Some(run.expires_at), run.deadline],
                JobState::Succeeded { .. }
                | JobState::Failed { .. }
                | JobState::Cancelled { .. }
                | JobState::Skipped { .. } => return None,
            };
            (Holder::Job(job.id), times)
        }
        Change::Idempotency(it) => {
            let holder = Holder::Idempotency(it.key.clone());
            (holder, [Some(it.expires_at), None])
        }
        Change::BlobLink(link) => (Holder::BlobLink(link.id), [Some(link.expires_at), None]),
        Change::User(user) => {
            let link = user.link.as_ref()?;
            (Holder::User(user.id), [Some(link.expires_at), None])
        }
        Change::Source(_)
        | Change::Tip(_)
        | Change::Workflow(_)
        | Change::Revision(..)
        | Change::Suspension(_)
        | Change::RevisionRead(_)
        | Change::Head(_)
        | Change::Digests(_)
        | Change::Repeats(..)
        | Change::History(_)
        | Change::JobRemoved(_)
        | Change::ArtifactRemoved(..)
        | Change::Expiry(_)
        | Change::ExpiryRemoved(_)
        | Change::Retention(_)
        | Change::HistoryPageRemoved(..)
        | Change::Ledger(_)
        | Change::LedgerPageRemoved(..)
        | Change::Recent(..)
        | Change::RunnerRemoved(_)
        | Change::TokenRemoved(_)
        | Change::Session(_)
        | Change::SessionRemoved(_)
        | Change::RegistrationRemoved(_)
        | Change::IdempotencyRemoved(_)
        | Change::Vars(_)
        | Change::Secrets(_)
        | Change::Rules(_)
        | Change::Blob(_)
        | Change::BlobRemoved(..)
        | Change::BlobLinkRemoved(_)
        | Change::BlobUsage(_)
        | Change::Condition(_)
        | Change::ConditionClosed(..)
        | Change::Channel(_)
        | Change::ChannelRemoved(_)
        | Change::Event(_)
        | Change::Outgoing(_)
        | Change::OutgoingRemoved(_)
        | Change::Delivery(_)
        | Change::Callback(_)
        | Change::CallbackRemoved(_)
        | Change::CallbackToken(_)
        | Change::CallbackCertificate(_)
        | Change::CallbackTokenRemoved(..)
        | Change::PayloadGroup(_)
        | Change::PayloadGroupRemoved(_)
        | Change::PayloadVersionRemoved(..)
        | Change::Minted(_)
        | Change::MintRemoved(..)
        | Change::Interactions(..)
        | Change::ClockFollowed(_)
        | Change::Clocks(_) => return None,
    })
}

/// The time plus `by`, or the same time if the result is out of range.
fn moved(at: Timestamp, by: TimeDelta) -> Timestamp {
    at.checked_add_signed(by).unwrap_or(at)
}
