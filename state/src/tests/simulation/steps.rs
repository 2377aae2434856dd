//! The random steps of the simulation.

mod faults;
mod interactions;
mod messages;
mod people;
mod users;

use std::sync::{Arc, Mutex};

use model::decide::{ConfigureSource, CreateRegistration, RegisterRunner};
use model::{JobId, WorkflowId};
use store::memory::{Injected, MemoryStore};
use store::{Room, Seq};

use self::interactions::set_server;
use self::messages::set_channels;
pub(super) use self::messages::{QUIET, rules};
use self::people::Asked;
use self::users::{Begun, Member, note_program, set_users};
use super::Trace;
use super::choices::Choices;
use super::daemon::{Daemon, Request};
use super::oracle::{Now, Oracle};
use super::runners::Runner;
use super::scenario::{Repository, files, source};
use super::time::{HOUR, MINUTE, SECOND, Time};

/// A late request arrives within this time.
const LATE: i64 = 5 * MINUTE;
/// The longest time between two checks.
const CHUNK: i64 = 20 * SECOND;
/// After this many rounds no job may be unfinished.
const ROUNDS: usize = 200;

pub(super) struct Simulation {
    choices: Choices,
    time: Arc<Time>,
    store: MemoryStore,
    daemon: Option<Daemon>,
    runners: Vec<Runner>,
    repository: Repository,
    oracle: Oracle,
    /// Requests on their way, with the time at which they arrive.
    late: Vec<(i64, Request)>,
    asked: Vec<Asked>,
    members: Vec<Member>,
    begun: Vec<Begun>,
    is_calm: bool,
    /// When the last daemon ended.
    ended_at: i64,
    /// The newest commit of this daemon that the oracle has checked.
    seen: Option<Seq>,
    trace: Arc<Mutex<Trace>>,
}

impl Simulation {
    pub(super) async fn start(seed: u64, trace: Arc<Mutex<Trace>>) -> Self {
        let (mut choices, time, store) =
            (Choices(seed), Arc::new(Time::default()), MemoryStore::new());
        let mut daemon = Daemon::start(&store, &time, choices.next()).await;
        let configure = ConfigureSource {
            name: source(),
            url: "https://example.org/recon.git".to_owned(),
            reference: None,
            folder: "workflows".to_owned(),
            interval_seconds: 60,
        };
        daemon.submit(configure).await.unwrap();
        set_channels(&mut daemon).await;
        set_server(&mut daemon).await;
        let members = set_users(&mut daemon).await;
        let mut runners = Vec::new();
        for (name, labels, capacity) in [
            ("one", vec!["linux"], 2),
            ("two", vec!["linux", "big"], 1),
            ("three", vec!["linux"], 3),
        ] {
            let registration = daemon.submit(CreateRegistration::default()).await.unwrap();
            let register = RegisterRunner {
                registration: registration.secret.hash(),
                name: name.to_owned(),
                labels: labels.into_iter().map(str::to_owned).collect(),
                exclusive: false,
                capacity,
                version: "0.1.0".to_owned(),
                replace: false,
            };
            let new = daemon.submit(register).await.unwrap();
            daemon
                .submit(note_program(new.session.runner))
                .await
                .unwrap();
            runners.push(Runner::new(new.session.runner, capacity as usize));
        }
        Self {
            choices,
            time,
            store,
            daemon: Some(daemon),
            runners,
            repository: Repository::new(),
            oracle: Oracle::default(),
            late: Vec::new(),
            asked: Vec::new(),
            members,
            begun: Vec::new(),
            is_calm: false,
            ended_at: 0,
            seen: None,
            trace,
        }
    }

    fn note(&self, step: String) {
        let at = self.time.steady();
        let step = format!("{:6}.{:03}s {step}", at / SECOND, at % SECOND);
        self.trace.lock().unwrap().note(step);
    }

    /// Runs one random step.
    pub(super) async fn step(&mut self) {
        if self.daemon.is_none() && self.choices.percent(20) {
            self.start_daemon().await;
        }
        match self.choices.below(100) {
            0..30 => self.pass_random_time().await,
            30..57 => self.runner_request().await,
            57..60 => self.hear().await,
            60..64 => self.act_as_user().await,
            64..67 => self.act_as_job().await,
            67..69 => self.change_role().await,
            69..70 => self.change_token().await,
            70..73 => self.dispatch().await,
            73..75 => self.attend().await,
            75..77 => self.cancel().await,
            77..79 => self.rerun().await,
            79..81 => self.suspend().await,
            81..83 => self.resume().await,
            83..86 => {
                self.repository.push(&mut self.choices);
                self.note(format!("push {:?}", self.repository));
                if let Some(daemon) = &mut self.daemon {
                    daemon.poll_due = true;
                }
            }
            86..88 => {
                let most = if self.choices.percent(50) {
                    HOUR
                } else {
                    6 * HOUR
                };
                let set_by = self.time.set_by() + self.choices.between(-most, most);
                self.set_clock(set_by.clamp(-10 * HOUR, 10 * HOUR));
            }
            88..92 => self.disturb_runner(),
            92..94 => self.disturb_daemon().await,
            94..96 => {
                let rooms = [Room::Enough, Room::Enough, Room::Low, Room::Full];
                let room = rooms[self.choices.below(4)];
                self.note(format!("the disk has {room:?}"));
                self.store.set_room(room);
            }
            96..98 if self.daemon.is_some() => {
                let fault = match self.choices.below(5) {
                    0 => Injected::Full,
                    1 => Injected::TooLarge,
                    2 => Injected::Unknown { stored: false },
                    _ => Injected::Unknown { stored: true },
                };
                self.note(format!("the next commit is {fault:?}"));
                self.store.inject(fault);
            }
            _ => {
                let scans: Vec<_> = files().iter().flat_map(|file| file.scans()).collect();
                let scan = scans[self.choices.below(scans.len())].clone();
                self.note(format!("a late check of {}", scan.scan));
                if let Some(daemon) = &mut self.daemon {
                    daemon.check_late(scan).await;
                }
            }
        }
        self.check().await;
        if self.choices.percent(60) {
            self.tick().await;
        }
    }

    fn set_clock(&mut self, set_by: i64) {
        self.note(format!("the wall clock is {} s ahead", set_by / SECOND));
        self.time.set(set_by);
        self.oracle.clock_was_set(self.time.steady());
        if self.daemon.is_none() {
            self.oracle.clock_is_unknown();
        }
    }

    async fn pass_random_time(&mut self) {
        let millis = match self.choices.below(10) {
            0..3 => self.choices.between(1, SECOND),
            3..8 => self.choices.between(SECOND, 20 * SECOND),
            _ => self.choices.between(20 * SECOND, 4 * MINUTE),
        };
        self.note(format!("{millis} ms pass"));
        self.pass(millis).await;
    }

    /// Lets time pass. Connected runners poll meanwhile.
    async fn pass(&mut self, mut millis: i64) {
        loop {
            // A late request arrives at its time, not at the end of a chunk.
            let arrivals = self.late.iter().map(|(at, _)| at - self.time.steady());
            let step = millis.min(CHUNK);
            let step = arrivals.fold(step, i64::min).max(0);
            self.time.pass(step);
            millis -= step;
            let now = self.time.steady();
            for runner in &mut self.runners {
                runner.check_silence(now);
            }
            let arrived: Vec<_> = self.late.extract_if(.., |(at, _)| *at <= now).collect();
            for (_, request) in arrived {
                self.note(format!("late: {request:?}"));
                self.deliver(request).await;
            }
            self.tick().await;
            if millis <= 0 {
                return;
            }
            for at in 0..self.runners.len() {
                if self.runners[at].is_connected() {
                    self.ask(at, false).await;
                }
            }
        }
    }

    /// Runs the loops of the daemon once.
    async fn tick(&mut self) {
        for task in 0..8 {
            let may_wait = !self.is_calm && self.choices.percent(30);
            let Some(daemon) = &mut self.daemon else {
                return;
            };
            match task {
                0 => daemon.check_clock().await,
                1 if self.is_calm || self.choices.percent(15) => {
                    let answers = daemon.serve_admitted().await;
                    let now = self.time.steady();
                    for (request, answer) in answers {
                        let mut runners = self.runners.iter_mut();
                        let runner = runners.find(|runner| runner.id == request.runner);
                        if let Some(runner) = runner.filter(|runner| runner.is_connected()) {
                            runner.take(&request.body, &answer, now, &mut self.oracle);
                        }
                    }
                }
                2 if !may_wait && daemon.poll_due => daemon.poll_source(&self.repository).await,
                3 => daemon.keep_time().await,
                4 => daemon.pull_triggers().await,
                5 => daemon.keep_conditions().await,
                6 => daemon.plan_messages().await,
                7 => {
                    let (choices, oracle) = (&mut self.choices, &mut self.oracle);
                    daemon.send(choices, oracle, self.is_calm).await;
                }
                _ => continue,
            }
            self.check().await;
        }
    }

    /// Lets the oracle check everything. A daemon whose commit failed is replaced.
    async fn check(&mut self) {
        let (steady, wall) = (self.time.steady(), self.time.wall());
        if let Some(daemon) = self.daemon.take_if(|daemon| daemon.has_failed) {
            self.note("the daemon ends, because a commit failed".to_owned());
            self.crash(daemon).await;
        } else if let Some(daemon) = &self.daemon
            && self.seen != Some(daemon.state.seq())
        {
            self.seen = Some(daemon.state.seq());
            let time = Some(daemon.world_time());
            let now = Now { steady, wall, time };
            self.oracle.check(&daemon.state, &self.store, now).await;
        }
        let executions = self.runners.iter().flat_map(Runner::executions);
        self.oracle.check_executions(executions);
    }

    /// Checks the state that a dead daemon left behind.
    async fn check_remains(&mut self) {
        let (steady, wall, time) = (self.time.steady(), self.time.wall(), None);
        let next = Daemon::start(&self.store, &self.time, 0).await;
        let now = Now { steady, wall, time };
        self.oracle.check(&next.state, &self.store, now).await;
        next.crash().await;
    }

    async fn runner_request(&mut self) {
        let at = self.choices.below(self.runners.len());
        if self.runners[at].is_connected() {
            self.ask(at, true).await;
        } else if self.choices.percent(20) {
            self.disturb_runner();
        }
    }

    /// A runner sends a request. The network may fail.
    async fn ask(&mut self, at: usize, is_noted: bool) {
        let request = self.runners[at].request(&mut self.choices, &|_| false);
        let is_start = matches!(request.body, super::daemon::Body::Empty);
        let may_be_late = !is_start && !self.is_calm;
        let fate = self.choices.below(100);
        if is_noted {
            self.note(format!("{request:?} with fate {fate}"));
        }
        let arrives = self.time.steady() + self.choices.between(1, LATE);
        match fate {
            0..8 => {}
            8..16 => self.deliver(request).await,
            16..23 if may_be_late => self.late.push((arrives, request)),
            23..30 if may_be_late => {
                self.late.push((arrives, request.clone()));
                self.deliver_with_answer(at, request).await;
            }
            _ => self.deliver_with_answer(at, request).await,
        }
    }

    async fn deliver(&mut self, request: Request) {
        if let Some(daemon) = &mut self.daemon {
            daemon.answer(request).await;
            self.check().await;
        }
    }

    async fn deliver_with_answer(&mut self, at: usize, request: Request) {
        let Some(daemon) = &mut self.daemon else {
            return;
        };
        let body = request.body.clone();
        let answer = daemon.answer(request).await;
        let now = self.time.steady();
        self.runners[at].take(&body, &answer, now, &mut self.oracle);
        self.check().await;
    }

    /// Stops the faults. Then all jobs must finish.
    pub(super) async fn settle_all(&mut self) {
        self.note("the faults stop".to_owned());
        self.is_calm = true;
        self.store.set_room(Room::Enough);
        let now = self.time.steady();
        for runner in &mut self.runners {
            (runner.is_paused, runner.is_cut_off) = (false, false);
            runner.check_silence(now);
            if !runner.is_up || runner.is_draining {
                runner.crash();
                runner.start(now);
            }
        }
        let mut is_prepared = false;
        for _ in 0..ROUNDS {
            if self.daemon.is_none() {
                self.start_daemon().await;
            }
            if !is_prepared {
                is_prepared = self.resume_most().await;
            }
            let mut is_at_rest = false;
            for _ in 0..6 {
                self.tick().await;
                self.continue_work().await;
                let holds = self.runners.iter().any(Runner::holds);
                let rests = self.daemon.as_ref().is_some_and(Daemon::is_at_rest);
                is_at_rest = is_prepared && rests && !holds && self.late.is_empty();
                if is_at_rest {
                    break;
                }
            }
            if is_at_rest {
                let wall = self.time.wall();
                if let Some(daemon) = &self.daemon {
                    let state = &daemon.state;
                    state.read(|world| self.oracle.check_at_rest(world, wall));
                }
                self.note("all jobs are finished".to_owned());
                self.empty_outbox().await;
                self.is_calm = false;
                return;
            }
            self.pass(self.until_next_retry().unwrap_or(5 * SECOND))
                .await;
        }
        let jobs: Vec<_> = self
            .daemon
            .iter()
            .flat_map(|daemon| daemon.unfinished())
            .collect();
        let jobs: Vec<_> = jobs
            .iter()
            .map(|job| (job.id, &job.scan, job.reason()))
            .collect();
        panic!("these jobs do not finish: {jobs:?}");
    }

    /// Lets every runner send all its requests, without faults. The jobs of the cycle fail, because otherwise it would
    /// never end.
    async fn continue_work(&mut self) {
        for at in 0..self.runners.len() {
            let oracle = &self.oracle;
            let cycle: WorkflowId = files()[1].id;
            let fails = |job: JobId| oracle.workflow_of(job) == Some(cycle);
            let requests = self.runners[at].all_requests(&mut self.choices, &fails);
            for request in requests {
                self.deliver_with_answer(at, request).await;
            }
        }
    }

    fn until_next_retry(&self) -> Option<i64> {
        let daemon = self.daemon.as_ref()?;
        let time = daemon.world_time();
        let next = daemon.state.read(|world| world.next_delayed(time))?;
        Some((next - time).num_milliseconds().clamp(SECOND, 6 * HOUR))
    }

    /// Stops the simulation. Returns how many jobs have succeeded, messages were sent and jobs were made by users, by steps and by interactions.
    pub(super) async fn end(mut self) -> [usize; 5] {
        if let Some(daemon) = self.daemon.take() {
            daemon.stop().await;
        }
        let [by_users, by_steps] = self.oracle.acts();
        [
            self.oracle.successes,
            self.oracle.messages,
            by_users,
            by_steps,
            self.oracle.heard,
        ]
    }
}
