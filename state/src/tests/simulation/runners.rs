//! Runners: processes that poll, execute jobs, and may be stopped, lost and cut off.

use std::collections::{BTreeMap, BTreeSet};

use model::{JobId, RunnerId, TokenHash};

use super::choices::Choices;
use super::daemon::{Answer, Body, Message, Request};
use super::oracle::Oracle;
use super::time::SECOND;

/// A runner ends its jobs when it has not reached the daemon for so long.
const SILENCE: i64 = 100 * SECOND;

/// Which jobs fail in any case.
pub(super) type Fails<'a> = &'a dyn Fn(JobId) -> bool;

pub(super) struct Runner {
    pub(super) id: RunnerId,
    pub(super) capacity: usize,
    /// Whether there is a process.
    pub(super) is_up: bool,
    /// The process does nothing, and does not know it.
    pub(super) is_paused: bool,
    /// Nothing reaches the daemon, or nothing comes back.
    pub(super) is_cut_off: bool,
    /// It ends what it has and takes no more.
    pub(super) is_draining: bool,
    /// The daemon has not been told yet that it runs nothing.
    is_new: bool,
    contact: i64,
    polls: u64,
    work: BTreeMap<JobId, Work>,
}

struct Work {
    token: TokenHash,
    phase: Phase,
}

enum Phase {
    Offered,
    Running {
        is_stored: bool,
    },
    /// Its processes have ended, and the daemon is to be told how.
    Over {
        is_success: bool,
    },
}

impl Runner {
    pub(super) const fn new(id: RunnerId, capacity: usize) -> Self {
        Self {
            id,
            capacity,
            is_up: true,
            is_paused: false,
            is_cut_off: false,
            is_draining: false,
            is_new: true,
            contact: 0,
            polls: 0,
            work: BTreeMap::new(),
        }
    }

    /// Whether it can ask the daemon for something.
    pub(super) const fn is_connected(&self) -> bool {
        self.is_up && !self.is_paused && !self.is_cut_off
    }

    /// The jobs whose processes run.
    pub(super) fn executions(&self) -> impl Iterator<Item = JobId> {
        let lives = self.is_up && !self.is_paused;
        let work = self.work.iter().filter(move |_| lives);
        work.filter(|(_, work)| matches!(work.phase, Phase::Running { .. }))
            .map(|(job, _)| *job)
    }

    pub(super) fn holds(&self) -> bool {
        !self.work.is_empty()
    }

    /// The process and all that it runs is gone.
    pub(super) fn crash(&mut self) {
        self.work.clear();
        (self.is_up, self.is_paused, self.is_draining) = (false, false, false);
    }

    pub(super) fn start(&mut self, now: i64) {
        (self.is_up, self.is_new, self.contact) = (true, true, now);
    }

    /// What it does by its own clock, also before it does anything else after a pause.
    pub(super) fn mind_silence(&mut self, now: i64) {
        if self.is_up && !self.is_paused && now - self.contact >= SILENCE {
            self.work.clear();
            self.contact = now;
        }
    }

    /// A request that it makes now.
    pub(super) fn request(&mut self, choices: &mut Choices, fails: Fails<'_>) -> Request {
        let body = if self.is_new {
            Body::Empty
        } else if self.work.is_empty() || choices.percent(40) {
            self.poll()
        } else {
            let jobs: Vec<JobId> = self.work.keys().copied().collect();
            let job = jobs[choices.below(jobs.len())];
            self.work_on(job, choices, fails)
        };
        Request {
            runner: self.id,
            body,
        }
    }

    /// Requests that bring all its work forward.
    pub(super) fn all_requests(&mut self, choices: &mut Choices, fails: Fails<'_>) -> Vec<Request> {
        let runner = self.id;
        if self.is_new {
            let body = Body::Empty;
            return vec![Request { runner, body }];
        }
        let jobs: Vec<JobId> = self.work.keys().copied().collect();
        let bodies = jobs
            .into_iter()
            .map(|job| self.work_on(job, choices, fails));
        let mut bodies: Vec<Body> = bodies.collect();
        bodies.push(self.poll());
        let requests = bodies.into_iter();
        requests.map(|body| Request { runner, body }).collect()
    }

    fn poll(&mut self) -> Body {
        self.polls += 1;
        Body::Poll {
            number: self.polls,
            capacity: if self.is_draining { 0 } else { self.capacity },
            holding: self.work.keys().copied().collect::<BTreeSet<_>>(),
        }
    }

    fn work_on(&mut self, job: JobId, choices: &mut Choices, fails: Fails<'_>) -> Body {
        let Some(work) = self.work.get_mut(&job) else {
            return self.poll();
        };
        let token = work.token;
        match &mut work.phase {
            Phase::Offered => Body::Claim { job, token },
            Phase::Running { is_stored } => match choices.below(6) {
                0..3 => Body::Report { job, token },
                3 if !*is_stored => {
                    // Each job has one content, so that a repeat has the same.
                    let content = u64::from(job.uuid().as_bytes()[15] % 3);
                    Body::Artifact {
                        job,
                        token,
                        content,
                    }
                }
                _ => {
                    let is_success = !fails(job) && choices.percent(75);
                    work.phase = Phase::Over { is_success };
                    Body::Complete {
                        job,
                        token,
                        is_success,
                    }
                }
            },
            Phase::Over { is_success } => Body::Complete {
                job,
                token,
                is_success: *is_success,
            },
        }
    }

    /// The answer to one of its requests.
    pub(super) fn take(&mut self, body: &Body, answer: &Answer, now: i64, oracle: &mut Oracle) {
        if !self.is_up {
            return;
        }
        self.contact = now;
        match (body, answer) {
            (Body::Empty, Answer::Done) => self.is_new = false,
            (Body::Poll { .. }, Answer::Messages(messages)) => {
                for message in messages {
                    match message {
                        Message::Assigned(job, token) => {
                            let work = Work {
                                token: *token,
                                phase: Phase::Offered,
                            };
                            self.work.entry(*job).or_insert(work);
                        }
                        Message::Cancelled(job) => {
                            self.work.remove(job);
                        }
                    }
                }
            }
            (Body::Claim { job, token }, Answer::Done) => {
                let work = self.work.get_mut(job).filter(|work| work.token == *token);
                if let Some(work) = work
                    && matches!(work.phase, Phase::Offered)
                {
                    work.phase = Phase::Running { is_stored: false };
                    oracle.started(*job, *token);
                }
            }
            (Body::Artifact { job, .. }, Answer::Done) => {
                if let Some(work) = self.work.get_mut(job)
                    && let Phase::Running { is_stored } = &mut work.phase
                {
                    *is_stored = true;
                }
            }
            (
                Body::Complete {
                    job, is_success, ..
                },
                Answer::Done,
            ) => {
                self.work.remove(job);
                if *is_success {
                    oracle.was_told_of_success(*job);
                }
            }
            (
                Body::Claim { job, .. } | Body::Report { job, .. } | Body::Complete { job, .. },
                Answer::Refused,
            ) => {
                self.work.remove(job);
            }
            (Body::Artifact { job, .. }, Answer::Refused) => {
                if let Some(work) = self.work.get_mut(job)
                    && let Phase::Running { .. } = work.phase
                {
                    work.phase = Phase::Over { is_success: false };
                }
            }
            (_, Answer::Done | Answer::Messages(_) | Answer::Refused | Answer::Failed) => {}
        }
    }
}
