//! Simulated runners: processes that poll, execute jobs, and may be stopped, lost or cut off.

use std::collections::{BTreeMap, BTreeSet};

use model::{JobId, RunnerId, TokenHash};

use super::choices::Choices;
use super::daemon::{Answer, Body, Message, Request};
use super::oracle::Oracle;
use super::time::SECOND;

/// A runner ends its jobs if it has not reached the daemon for this time.
const SILENCE: i64 = 100 * SECOND;

/// Selects jobs that always fail.
pub(super) type Fails<'a> = &'a dyn Fn(JobId) -> bool;

pub(super) struct Runner {
    pub(super) id: RunnerId,
    pub(super) capacity: usize,
    /// Whether the process runs.
    pub(super) is_up: bool,
    /// The process is paused and does not notice it.
    pub(super) is_paused: bool,
    /// Requests or answers are lost.
    pub(super) is_cut_off: bool,
    /// The runner finishes its jobs and accepts no new jobs.
    pub(super) is_draining: bool,
    /// The runner has not yet reported to the daemon that it runs no jobs.
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
    /// The processes of the job have ended, and the result is not reported yet.
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

    /// Whether it can send requests to the daemon.
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

    /// Kills the process and its jobs.
    pub(super) fn crash(&mut self) {
        self.work.clear();
        (self.is_up, self.is_paused, self.is_draining) = (false, false, false);
    }

    pub(super) fn start(&mut self, now: i64) {
        (self.is_up, self.is_new, self.contact) = (true, true, now);
    }

    /// Ends the jobs after a long silence. After a pause, the runner checks this first.
    pub(super) fn check_silence(&mut self, now: i64) {
        if self.is_up && !self.is_paused && now - self.contact >= SILENCE {
            self.work.clear();
            self.contact = now;
        }
    }

    /// The next request of the runner.
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

    /// Requests that continue all work of the runner.
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
                    // Each job has one content, so that repeats are equal.
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

    /// Handles the answer to a request of the runner.
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
                    oracle.success_was_reported(*job);
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
