//! The simulated daemon: the state, and short forms of the reconciler's loops for deadlines, triggers and offers of
//! jobs.

mod requests;
mod sender;

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;

use model::decide::{
    ApproveRemoval, Command, Consider, Considered, EndJob, Evaluate, Evaluated, ExplainedTrigger,
    Fire, FollowClock, ForgetClocks, Hear, Loss, NoteClocks, RecordInteractions, RecordTip,
    StoreExpiry,
};
use model::limits::TIMEOUT_END;
use model::plan::Standing;
use model::{Clock, Guard, Job, JobId, JobState, RunnerId, ScanKey, Timestamp, TokenHash, Turns};
use store::memory::MemoryStore;
use tokio::task::{JoinHandle, JoinSet};
use workflow::Sandbox;

pub(super) use self::requests::{Answer, Body, Message, Request, job_token};
use self::sender::Attempt;
use super::choices::Choices;
use super::scenario::{Repository, source};
use super::time::{HOUR, MINUTE, ProcessClock, SECOND, Time};
use crate::tests::fixture::Seeded;
use crate::{State, SubmitError};

/// How long a job is offered to one runner.
const OFFER: i64 = 10 * SECOND;
/// The silence after which a runner is lost.
const SILENCE: i64 = 2 * MINUTE;
/// Delay before a trigger that could not be checked is tried again.
const REST: i64 = 5 * SECOND;

/// A running daemon. Only its store survives a drop.
pub(super) struct Daemon {
    pub(super) state: State,
    committer: JoinHandle<Result<(), store::CloseError>>,
    clock: Arc<ProcessClock>,
    time: Arc<Time>,
    choices: Choices,
    turns: Turns,
    offers: BTreeMap<JobId, Offer>,
    heard: HashMap<RunnerId, i64>,
    newest_polls: HashMap<RunnerId, u64>,
    started: i64,
    resting: HashMap<ScanKey, i64>,
    /// The latest evaluation of each expression.
    evaluated: HashMap<ScanKey, Arc<Evaluated>>,
    /// Accepted requests whose commands have not been submitted yet.
    admitted: Vec<Request>,
    last_clock_offset: i64,
    doubted_until: i64,
    /// Whether the tip is not applied yet.
    pub(super) poll_due: bool,
    /// A commit failed: the process must end.
    pub(super) has_failed: bool,
    /// The messages on their way.
    attempts: Vec<Attempt>,
    /// The sender has not planned anything yet.
    is_new_sender: bool,
}

struct Offer {
    runner: RunnerId,
    token: TokenHash,
    until: i64,
    reported: i64,
}

impl Daemon {
    pub(super) async fn start(store: &MemoryStore, time: &Arc<Time>, seed: u64) -> Self {
        let clock = ProcessClock::new(time);
        let entropy = Box::new(Seeded(seed));
        let opened = State::open_on(store.engine(), clock.clone(), entropy).await;
        let crate::open::Opened {
            state, committer, ..
        } = opened.unwrap();
        // If the previous process recorded a clock jump, distrust the clock again.
        let is_doubted = state.read(|world| world.clocks().is_some());
        let doubted_until = if is_doubted {
            time.steady() + HOUR
        } else {
            i64::MIN
        };
        Self {
            state,
            committer: tokio::spawn(committer.run()),
            clock,
            time: time.clone(),
            choices: Choices(seed),
            turns: Turns::default(),
            offers: BTreeMap::new(),
            heard: HashMap::new(),
            newest_polls: HashMap::new(),
            started: time.steady(),
            resting: HashMap::new(),
            evaluated: HashMap::new(),
            admitted: Vec::new(),
            last_clock_offset: time.set_by(),
            doubted_until,
            poll_due: true,
            has_failed: false,
            attempts: Vec::new(),
            is_new_sender: true,
        }
    }

    /// Kills the process.
    pub(super) async fn crash(self) {
        self.committer.abort();
        // The committer may have ended on its own.
        drop(self.committer.await);
    }

    /// Stops the process cleanly.
    pub(super) async fn stop(mut self) {
        self.follow_clock().await;
        drop(self.state);
        drop(self.committer.await);
    }

    pub(super) fn world_time(&self) -> Timestamp {
        let steady = self.clock.steady();
        self.state.read(|world| world.time(steady))
    }

    pub(super) async fn submit<C: Command>(
        &mut self,
        command: C,
    ) -> Result<C::Answer, SubmitError> {
        let answer = self.state.submit(command).await;
        self.note(answer)
    }

    /// Submits a command of a request whose rights were checked before.
    pub(super) async fn submit_guarded<C: Command>(
        &mut self,
        guard: &Arc<Guard>,
        command: C,
    ) -> Result<C::Answer, SubmitError> {
        let answer = self.state.guarded(guard.clone()).submit(command).await;
        self.note(answer)
    }

    fn note<A>(&mut self, answer: Result<A, SubmitError>) -> Result<A, SubmitError> {
        self.has_failed |= matches!(answer, Err(SubmitError::OutcomeUnknown));
        answer
    }

    /// Submits commands together, so that they share their commits.
    async fn submit_all<C: Command>(
        &mut self,
        commands: Vec<C>,
    ) -> Vec<(C, Result<C::Answer, SubmitError>)> {
        let mut submitted = JoinSet::new();
        for command in commands {
            let state = self.state.clone();
            submitted.spawn(async move {
                let answer = state.submit(command.clone()).await;
                (command, answer)
            });
        }
        let mut answers = Vec::new();
        while let Some(answer) = submitted.join_next().await {
            let (command, answer) = answer.unwrap();
            answers.push((command, self.note(answer)));
        }
        answers
    }

    /// Records interactions. What cannot be recorded is lost.
    pub(super) async fn record(&mut self, record: RecordInteractions) {
        let recorded = self.state.record_interactions(record).await;
        drop(self.note(recorded));
    }

    /// Applies the tip. After a failure, the next poll tries again.
    pub(super) async fn poll_source(&mut self, repository: &Repository) {
        let (name, now) = (source(), self.time.wall());
        let planned = self.state.read(|world| {
            let source = world.source(&name)?;
            Some(model::plan::plan(source, repository.tip(world), world, now))
        });
        let Some(plan) = planned else {
            return;
        };
        for activate in plan.activate {
            if self.submit(activate).await.is_err() {
                return;
            }
        }
        for retire in plan.retire {
            if self.submit(retire).await.is_err() {
                return;
            }
        }
        for hold in plan.hold {
            if self.submit(hold).await.is_err() {
                return;
            }
        }
        let is_held = matches!(plan.standing, Standing::Held(_));
        let tip = RecordTip {
            name: name.clone(),
            commit: format!("{:040}", repository.commit),
            summary: String::new(),
            author: String::new(),
            history_rewritten: false,
            skipped: Vec::new(),
            more_skipped: false,
            files: plan.verdicts,
            stale_files: plan.stale,
            warnings: Vec::new(),
            rules: None,
            file_count: repository.files.len() as u64,
            standing: plan.standing,
            default_reference: None,
        };
        self.poll_due = self.submit(tip).await.is_err() || is_held;
        if is_held {
            let commit = format!("{:040}", repository.commit);
            drop(self.submit(ApproveRemoval { name, commit }).await);
        }
    }

    /// When a clock jump is trusted, shifts all deadlines by it. Before that, only records the jump.
    pub(super) async fn check_clock(&mut self) {
        let set_by = self.time.set_by();
        if (set_by - self.last_clock_offset).abs() >= HOUR {
            self.doubted_until = self.time.steady() + HOUR;
            self.last_clock_offset = set_by;
        }
        let (wall, time) = (self.time.wall(), self.world_time());
        if self.time.steady() >= self.doubted_until {
            self.follow_clock().await;
        } else if !self.state.read(|world| world.is_noted(wall, time)) {
            drop(self.submit(NoteClocks).await);
        }
    }

    async fn follow_clock(&mut self) {
        let lag = (self.time.wall() - self.world_time()).num_milliseconds();
        if lag.abs() >= MINUTE && self.submit(FollowClock).await.is_err() {
            return;
        }
        let (is_noted, holders) = self.state.read(|world| {
            let holders = world.has_earlier_clocks().then(|| world.holders());
            (world.clocks().is_some(), holders.unwrap_or_default())
        });
        let keep = holders.into_iter().map(|holder| StoreExpiry { holder });
        let kept = self.submit_all(keep.collect()).await;
        if is_noted && kept.iter().all(|(_, kept)| kept.is_ok()) {
            drop(self.submit(ForgetClocks).await);
        }
    }

    /// True if a process that starts now can recognize all clock jumps. A difference of less than an hour does not
    /// count as a jump, because it could be elapsed time.
    pub(super) fn is_sure_of_clock(&self) -> bool {
        let (wall, time) = (self.time.wall(), self.world_time());
        self.state.read(|world| {
            let noted = world.clocks();
            let mut known: Vec<Timestamp> = noted
                .iter()
                .flat_map(|clocks| clocks.readings.values().copied().chain([clocks.wall]))
                .collect();
            known.sort();
            let distances = known
                .windows(2)
                .map(|two| (two[1] - two[0]).num_milliseconds());
            let mut distances = distances.chain([(wall - time).num_milliseconds().abs()]);
            let is_known =
                (wall - time).num_milliseconds().abs() < MINUTE || world.is_noted(wall, time);
            is_known && distances.all(|by| !(MINUTE..HOUR).contains(&by))
        })
    }

    /// Ends jobs whose deadline has passed, and waiting jobs that are no longer wanted.
    pub(super) async fn keep_time(&mut self) {
        let steady = self.clock.steady();
        let ends: Vec<EndJob> = self.state.read(|world| {
            let time = world.time(steady);
            let orphans = world.orphans().map(|job| EndJob::new(job, Loss::Retired));
            let withdrawn = world.withdrawn();
            let withdrawn = withdrawn.map(|job| EndJob::new(job, Loss::Suspended));
            let running = world.running().filter_map(|job| {
                let JobState::Running { run } = &job.state else {
                    return None;
                };
                let loss = if self.is_silent(run.runner.id) {
                    Loss::RunnerLost
                } else if run
                    .deadline
                    .is_some_and(|deadline| deadline + TIMEOUT_END <= time)
                {
                    Loss::TimedOut
                } else if run.expires_at <= time {
                    Loss::SessionExpired
                } else {
                    return None;
                };
                Some(EndJob::new(job.id, loss))
            });
            orphans.chain(withdrawn).chain(running).collect()
        });
        self.submit_all(ends).await;
    }

    fn is_silent(&self, runner: RunnerId) -> bool {
        let heard = self.heard.get(&runner).copied();
        self.time.steady() - heard.unwrap_or(self.started) >= SILENCE
    }

    /// Checks the triggers that are due.
    pub(super) async fn pull_triggers(&mut self) {
        let steady = self.time.steady();
        self.resting.retain(|_, until| *until > steady);
        let now = self.time.wall();
        let (mut due, mut unseen, (mut heard, _)) = self
            .state
            .read(|world| (world.due(now), world.unseen(), world.heard(now)));
        heard.retain(|scan| !self.resting.contains_key(scan));
        due.retain(|scan| !self.resting.contains_key(scan));
        unseen.retain(|scan| !self.resting.contains_key(scan));
        let fire = due.into_iter().map(|scan| Fire { scan }).collect();
        // Expressions are evaluated outside the committer. If their inputs changed meanwhile, the committer evaluates them again.
        let mut consider = Vec::new();
        for scan in unseen {
            let evaluate = self.evaluate(&scan).await;
            consider.push(Consider { scan, evaluate });
        }
        for (Fire { scan }, answer) in self.submit_all(fire).await {
            if answer.is_err() {
                self.resting.insert(scan, steady + REST);
            }
        }
        let hear = heard.into_iter().map(|scan| Hear { scan }).collect();
        for (Hear { scan }, answer) in self.submit_all(hear).await {
            if answer.is_err() {
                self.resting.insert(scan, steady + REST);
            }
        }
        let mut changed = Vec::new();
        for (Consider { scan, .. }, answer) in self.submit_all(consider).await {
            match answer {
                Ok(Considered::Settled(_)) => {}
                Ok(Considered::Unevaluated) => changed.push(Consider {
                    scan,
                    evaluate: Evaluate::HERE,
                }),
                Err(_) => {
                    self.resting.insert(scan, steady + REST);
                }
            }
        }
        for (Consider { scan, .. }, answer) in self.submit_all(changed).await {
            match answer {
                Ok(Considered::Settled(_)) => {}
                Ok(Considered::Unevaluated) | Err(_) => {
                    self.resting.insert(scan, steady + REST);
                }
            }
        }
    }

    /// Checks a trigger that may not be due, like a task with an old view of the world.
    pub(super) async fn check_late(&mut self, scan: ScanKey) {
        drop(self.submit(Fire { scan: scan.clone() }).await);
        drop(self.submit(Hear { scan: scan.clone() }).await);
        // An old evaluation counts only if its inputs are unchanged.
        let evaluate = match self.evaluated.get(&scan).cloned() {
            Some(done) => Evaluate::Done(done),
            None => Evaluate::HERE,
        };
        drop(self.submit(Consider { scan, evaluate }).await);
    }

    /// Evaluates the expression of a scan on the published world. If a history cannot be read, the committer evaluates
    /// the expression.
    async fn evaluate(&mut self, scan: &ScanKey) -> Evaluate<Evaluated> {
        let Some(trigger) = self.state.read(|world| ExplainedTrigger::of(world, scan)) else {
            return Evaluate::HERE;
        };
        let histories = self.state.read(|world| trigger.histories(world));
        let read = self.state.recent_jobs(histories).await;
        let Ok(prepared) = self.state.read(|world| trigger.prepare(world, &read)) else {
            return Evaluate::HERE;
        };
        let done = Arc::new(prepared.evaluate(&Sandbox::shared()));
        self.evaluated.insert(scan.clone(), done.clone());
        Evaluate::Done(done)
    }

    /// True if only people can cause further work: all unfinished jobs are held by a suspension.
    pub(super) fn is_at_rest(&self) -> bool {
        let now = self.time.wall();
        self.state.read(|world| {
            let mut jobs = world.jobs();
            let is_held = |job: &Arc<Job>| {
                matches!(job.state, JobState::Scheduled)
                    && world.suspension(&job.scan_key()).is_some()
            };
            jobs.all(|job| is_held(job) && !job.ends_with_suspension())
                && world.due(now).is_empty()
                && world.unseen().is_empty()
                && world.heard(now) == (Vec::new(), None)
        }) && !self.poll_due
    }

    /// The unfinished jobs, for actions of people.
    pub(super) fn unfinished(&self) -> Vec<Arc<Job>> {
        self.state.read(|world| world.jobs().cloned().collect())
    }
}
