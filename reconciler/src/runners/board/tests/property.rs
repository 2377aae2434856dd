//! Random polls, dispatches, claims, expired offers, cancels and restarts, checked against the promises of the board.

use std::collections::HashMap;

use model::decide::Cancel;
use model::{Actor, WorkflowId};

use super::*;

/// Steps per run. With this number of seeds the test takes a second and reaches every branch of the board hundreds of
/// times.
const STEPS: usize = 400;
const SEEDS: u64 = 60;

/// What the simulated runner itself knows. The board may differ.
struct Simulated {
    id: RunnerId,
    capacity: u32,
    poll: Option<(Answer, u32)>,
    /// The jobs that it holds, each with the token of its offer or claim.
    hand: HashMap<JobId, PlainToken>,
    claimed: BTreeSet<JobId>,
}

struct Simulation {
    scene: Scene,
    workflows: Vec<WorkflowId>,
    runners: Vec<Simulated>,
    /// The offers after the last round, without offers that were withdrawn since.
    standing: HashMap<JobId, (PlainToken, Instant)>,
    dispatched: usize,
}

impl Simulation {
    fn new(seed: u64) -> Self {
        let mut scene = Scene::new();
        scene.lab = Lab::new(seed);
        let mut workflows: Vec<_> = ["a", "b"].map(|name| scene.lab.activate(name)).into();
        let (other, of_other) = project(1);
        workflows.push(scene.lab.activate_in(&other, "c"));
        let runners = [
            (1, "plain", None),
            (2, "gpu", Some(of_other)),
            (5, "gpu", None),
        ]
        .into_iter()
        .enumerate()
        .map(|(number, (capacity, label, project))| Simulated {
            id: scene
                .lab
                .register_for(project, &format!("r{number}"), capacity, &[label]),
            capacity,
            poll: None,
            hand: HashMap::new(),
            claimed: BTreeSet::new(),
        })
        .collect();
        Self {
            scene,
            workflows,
            runners,
            standing: HashMap::new(),
            dispatched: 0,
        }
    }

    fn random(&mut self, bound: usize) -> usize {
        self.scene.lab.entropy.below(bound)
    }

    fn step(&mut self) {
        let at = self.random(self.runners.len());
        match self.random(12) {
            0..=2 => self.dispatch(),
            3 | 4 => {
                let capacity = self.runners[at].capacity;
                let capacity = u32::try_from(self.random(usize::try_from(capacity + 1).unwrap()));
                self.poll(at, capacity.unwrap());
            }
            5 | 6 => self.read(at, true),
            7 => self.claim(at),
            8 => self.complete(at),
            9 => self.cancel_one(),
            10 => {
                let seconds = self.random(12);
                self.pass(Duration::from_secs(u64::try_from(seconds).unwrap()));
            }
            11 => match self.random(6) {
                0 => self.restart_daemon(),
                1 => self.restart_runner(at),
                2 => self.read(at, false),
                3 => self.runners[at].poll = None,
                _ => {}
            },
            _ => unreachable!("below the bound"),
        }
        self.scene.assign();
        self.check();
    }

    fn dispatch(&mut self) {
        let workflow = self.random(self.workflows.len());
        let scan = ["plain", "special", "again"][self.random(3)];
        self.scene.lab.dispatch(self.workflows[workflow], scan);
        self.dispatched += 1;
    }

    fn poll(&mut self, at: usize, capacity: u32) {
        let runner = &self.runners[at];
        let hand: Vec<JobId> = runner.hand.keys().copied().collect();
        let id = runner.id;
        // As `Runners::poll` does: a running job that its runner does not list is lost.
        self.lose(id, &hand);
        if capacity == 0 {
            let offers = &self.scene.board.offers;
            self.standing.retain(|job, _| {
                hand.contains(job) || offers.get(job).is_none_or(|offer| offer.runner != id)
            });
        }
        let answer = self.scene.poll(id, capacity, &hand);
        self.runners[at].poll = Some((answer, capacity));
    }

    /// Receives an answer, or loses it in transit.
    fn read(&mut self, at: usize, arrives: bool) {
        let Some((answer, _)) = &mut self.runners[at].poll else {
            return;
        };
        let messages = match answer.try_recv() {
            Ok(messages) => messages,
            Err(TryRecvError::Empty) => return,
            Err(TryRecvError::Closed) => Vec::new(),
        };
        self.runners[at].poll = None;
        for message in messages {
            match message {
                Message::Assigned(job, token) if arrives => {
                    self.runners[at].hand.entry(job).or_insert(token);
                }
                Message::Cancelled(job) if arrives => {
                    let runner = &mut self.runners[at];
                    runner.hand.remove(&job);
                    runner.claimed.remove(&job);
                }
                Message::Assigned(..) | Message::Cancelled(_) => {}
            }
        }
    }

    fn claim(&mut self, at: usize) {
        let runner = &self.runners[at];
        let waiting = |job: &&JobId| !runner.claimed.contains(*job);
        let Some(job) = runner.hand.keys().filter(waiting).min().copied() else {
            return;
        };
        let (id, token) = (runner.id, runner.hand[&job].hash());
        if self.scene.board.offered_to(job, token, self.scene.now) == Some(id) {
            self.scene.lab.claim(job, id, token);
            self.runners[at].claimed.insert(job);
        } else {
            self.runners[at].hand.remove(&job);
        }
    }

    fn complete(&mut self, at: usize) {
        let runner = &mut self.runners[at];
        let Some(job) = runner.claimed.pop_first() else {
            return;
        };
        runner.hand.remove(&job);
        // The result of the job does not matter here, and it may already have ended.
        let loss = Loss::RunnerLost;
        drop(self.scene.lab.decide(EndJob::new(job, loss)));
    }

    fn cancel_one(&mut self) {
        let jobs: Vec<JobId> = self.scene.lab.world.jobs().map(|job| job.id).collect();
        if !jobs.is_empty() {
            let job = jobs[self.random(jobs.len())];
            let actor = Actor::Daemon;
            self.scene.lab.decide(Cancel { job, actor }).unwrap();
        }
    }

    fn pass(&mut self, time: Duration) {
        self.scene.now += time;
        self.scene.lab.now += time;
    }

    fn restart_daemon(&mut self) {
        self.scene.board = Board::default();
        self.standing.clear();
        for runner in &mut self.runners {
            runner.poll = None;
        }
    }

    fn restart_runner(&mut self, at: usize) {
        let runner = &mut self.runners[at];
        let id = runner.id;
        runner.poll = None;
        runner.hand.clear();
        runner.claimed.clear();
        self.scene.board.forget(id);
        let offers = &self.scene.board.offers;
        self.standing.retain(|job, _| offers.contains_key(job));
        self.lose(id, &[]);
    }

    /// Ends the running jobs of a runner that are not `named`.
    fn lose(&mut self, runner: RunnerId, named: &[JobId]) {
        let running = self.scene.lab.world.running_on(runner);
        let running: Vec<JobId> = running.map(|job| job.id).collect();
        for job in running {
            if !named.contains(&job) {
                let loss = Loss::RunnerLost;
                self.scene.lab.decide(EndJob::new(job, loss)).unwrap();
            }
        }
    }

    /// Checks the promises after every round.
    fn check(&mut self) {
        let Scene { lab, board, now } = &self.scene;
        // No job is offered to two runners at once: an offer stays the same until it expires.
        for (job, (token, until)) in &self.standing {
            if *now < *until && is_claimable(&lab.world, *job) {
                let offer = board.offers.get(job).map(|offer| &offer.token);
                assert_eq!(offer, Some(token), "the offer of {job} has changed");
            }
        }
        self.standing = board
            .offers
            .iter()
            .map(|(job, offer)| (*job, (offer.token.clone(), offer.until)))
            .collect();
        for (job, offer) in &board.offers {
            assert!(
                is_claimable(&lab.world, *job),
                "{job} is offered but not scheduled"
            );
            assert!(*now < offer.until);
            assert!(serves(&lab.world, offer.runner, *job));
        }
        for runner in &self.runners {
            let busy = lab.world.running_on(runner.id).count()
                + board
                    .offers
                    .values()
                    .filter(|offer| offer.runner == runner.id)
                    .count();
            let capacity = usize::try_from(runner.capacity).unwrap();
            assert!(busy <= capacity, "{busy} jobs on a runner for {capacity}");
        }
        for job in board.offers.keys().filter_map(|job| lab.world.job(*job)) {
            let early = job.waits_for_its_time(self.scene.time());
            assert_eq!(early, None, "a retry is offered before it is due");
        }
        for poll in board.waiting.iter().map(|waiting| &waiting.poll) {
            let runner = lab.world.runner(poll.runner).unwrap();
            let stopping = poll.holding.iter().filter(|job| {
                let offer = board.offers.get(job);
                offer.is_none_or(|offer| offer.runner != poll.runner)
                    && !runs_on(&lab.world, **job, poll.runner)
            });
            let busy = lab.world.running_on(poll.runner).count()
                + board
                    .offers
                    .values()
                    .filter(|offer| offer.runner == poll.runner)
                    .count()
                + stopping.count();
            if busy < usize::try_from(poll.capacity).unwrap() {
                let time = self.scene.time();
                let taken = |job| board.offers.contains_key(&job) || poll.holding.contains(&job);
                let reach = Reach::of(runner);
                let missed = next_job(&lab.world, &reach, &Turns::default(), time, taken);
                assert_eq!(
                    missed, None,
                    "a runner with a free slot waits although a job waits"
                );
            }
        }
    }

    /// From now on all runners behave correctly, and every job is executed within bounded time.
    fn settle(&mut self) {
        for _ in 0..self.dispatched * 12 + 50 {
            if self.scene.lab.world.jobs().next().is_none() {
                return;
            }
            for at in 0..self.runners.len() {
                self.read(at, true);
                let capacity = self.runners[at].capacity;
                self.poll(at, capacity);
                self.read(at, true);
                self.claim(at);
                self.complete(at);
            }
            self.pass(Duration::from_millis(600));
            self.scene.assign();
            self.check();
        }
        let left: Vec<JobId> = self.scene.lab.world.jobs().map(|job| job.id).collect();
        panic!("never executed: {left:?}");
    }
}

#[tokio::test]
async fn jobs_are_offered_once_within_capacity_and_finally_executed() {
    for seed in 0..SEEDS {
        let mut simulation = Simulation::new(seed);
        for _ in 0..STEPS {
            simulation.step();
        }
        simulation.settle();
    }
}
