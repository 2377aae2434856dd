use std::time::Duration;

use model::decide::{EndJob, LimitRunner, Loss, RemoveRunner};
use model::{ProjectId, Rights, SourceName};
use tokio::sync::oneshot::Receiver;
use tokio::sync::oneshot::error::TryRecvError;

use super::*;
use crate::testing::{Lab, runner};

mod property;

/// A board and a world at a point in time.
struct Scene {
    lab: Lab,
    board: Board,
    now: Instant,
}

type Answer = Receiver<Vec<Message>>;

impl Scene {
    fn new() -> Self {
        Self {
            lab: Lab::new(5),
            board: Board::default(),
            now: Instant::now(),
        }
    }

    fn poll(&mut self, runner: RunnerId, capacity: u32, holding: &[JobId]) -> Answer {
        let wait = self.board.wait(Poll {
            runner,
            instance: Instance::default(),
            number: None,
            capacity,
            holding: holding.iter().copied().collect(),
        });
        self.assign();
        wait.answer
    }

    fn assign(&mut self) -> Option<Instant> {
        let now = Now {
            steady: self.now,
            time: self.time(),
        };
        self.board
            .assign(&self.lab.world, now, &mut self.lab.entropy)
    }

    /// The world's time.
    fn time(&self) -> Timestamp {
        self.lab.world.time(self.lab.now)
    }

    fn pass(&mut self, time: Duration) {
        self.now += time;
        self.lab.now += time;
        self.assign();
    }

    fn claim(&mut self, runner: RunnerId, job: JobId, token: &PlainToken) {
        let token = token.hash();
        assert_eq!(self.board.offered_to(job, token, self.now), Some(runner));
        self.lab.claim(job, runner, token);
        self.assign();
    }
}

fn said(answer: &mut Answer) -> Vec<Message> {
    answer.try_recv().expect("the poll has an answer")
}

fn offered(answer: &mut Answer) -> (JobId, PlainToken) {
    match said(answer).as_slice() {
        [Message::Assigned(job, token)] => (*job, token.clone()),
        other => panic!("no single offer: {other:?}"),
    }
}

fn waits(answer: &mut Answer) -> bool {
    answer.try_recv() == Err(TryRecvError::Empty)
}

fn is_ended(answer: &mut Answer) -> bool {
    answer.try_recv() == Err(TryRecvError::Closed)
}

#[tokio::test(start_paused = true)]
async fn held_jobs_of_a_runner_are_known_until_its_next_poll() {
    let mut scene = Scene::new();
    let (one, gone) = (scene.lab.register("one", 1, &[]), JobId::FIRST);
    let _waits = scene.poll(one, 1, &[gone]);
    let known = |scene: &Scene| scene.board.holding().get(&one).cloned();
    assert_eq!(known(&scene), Some(BTreeSet::from([gone])));
    let _waits = scene.poll(one, 1, &[]);
    assert_eq!(known(&scene), None);
    let _waits = scene.poll(one, 1, &[gone]);
    scene.board.forget(one);
    assert_eq!(known(&scene), None);
}

#[tokio::test]
async fn an_overtaken_poll_has_no_effect() {
    let mut scene = Scene::new();
    let (one, job) = (scene.lab.register("one", 1, &[]), JobId::FIRST);
    let poll = |process: u128, number, holding: &[JobId]| Poll {
        runner: one,
        instance: Instance::from_uuid(uuid::Uuid::from_u128(process)),
        number: Some(number),
        capacity: 1,
        holding: holding.iter().copied().collect(),
    };
    let holds = |scene: &Scene| scene.board.holding().contains_key(&one);
    let mut newer = scene.board.wait(poll(1, 8, &[])).answer;
    let older = poll(1, 7, &[job]);
    assert!(scene.board.is_overtaken(&older));
    assert!(is_ended(&mut scene.board.wait(older).answer));
    assert!(waits(&mut newer) && !holds(&scene));

    // A repeated poll, a poll of another process, and a restarted process with low numbers are not overtaken.
    let _waits = scene.board.wait(poll(1, 8, &[job]));
    assert!(is_ended(&mut newer) && holds(&scene));
    let _waits = scene.board.wait(poll(2, 1, &[]));
    assert!(!holds(&scene));
    let _waits = scene.board.wait(poll(2, 5, &[]));
    scene.board.forget(one);
    let _waits = scene.board.wait(poll(2, 1, &[job]));
    assert!(holds(&scene));
}

#[tokio::test]
async fn a_job_is_offered_to_exactly_one_waiting_poll() {
    let mut scene = Scene::new();
    let workflow = scene.lab.activate("a");
    let mut answers: Vec<Answer> = (0..100)
        .map(|number| {
            let runner = scene.lab.register(&format!("r{number}"), 4, &[]);
            scene.poll(runner, 4, &[])
        })
        .collect();
    let job = scene.lab.dispatch(workflow, "plain");
    scene.assign();
    let mut messages = answers
        .iter_mut()
        .filter_map(|answer| answer.try_recv().ok());
    let first = messages.next().unwrap();
    assert!(matches!(first.as_slice(), [Message::Assigned(offered, _)] if *offered == job));
    assert_eq!(messages.next(), None);
}

#[tokio::test]
async fn offered_running_and_stopping_jobs_use_slots() {
    let mut scene = Scene::new();
    let workflow = scene.lab.activate("a");
    let runner = scene.lab.register("r", 3, &[]);
    let jobs: Vec<JobId> = (0..5)
        .map(|_| scene.lab.dispatch(workflow, "plain"))
        .collect();

    assert!(waits(&mut scene.poll(runner, 0, &[])));
    let (first, token) = offered(&mut scene.poll(runner, 1, &[]));
    assert_eq!(first, jobs[0]);
    scene.claim(runner, first, &token);

    // A runner cannot get more jobs than its registered capacity.
    let more = said(&mut scene.poll(runner, 99, &[first]));
    assert_eq!(more.len(), 2, "{more:?}");
    let held = [jobs[0], jobs[1], jobs[2]];
    assert!(waits(&mut scene.poll(runner, 3, &held)));

    // The first job was ended by the daemon. While it stops, it still uses a slot.
    let end = EndJob::new(first, Loss::RunnerLost);
    scene.lab.decide(end).unwrap();
    let mut answer = scene.poll(runner, 3, &held);
    assert_eq!(said(&mut answer), [Message::Cancelled(first)]);
    let (fourth, _) = offered(&mut scene.poll(runner, 3, &held[1..]));
    assert_eq!(fourth, jobs[3]);
}

#[tokio::test]
async fn a_lost_offer_is_repeated_at_most_once_a_second() {
    let mut scene = Scene::new();
    let workflow = scene.lab.activate("a");
    let runner = scene.lab.register("r", 2, &[]);
    let job = scene.lab.dispatch(workflow, "plain");
    let (_, token) = offered(&mut scene.poll(runner, 2, &[]));

    let mut again = scene.poll(runner, 2, &[]);
    assert!(waits(&mut again));
    assert_eq!(scene.assign(), Some(scene.now + REPEAT));
    scene.pass(REPEAT);
    assert_eq!(offered(&mut again), (job, token.clone()));

    let mut held = scene.poll(runner, 2, &[job]);
    scene.pass(REPEAT);
    assert!(waits(&mut held), "the offer has arrived");
    scene.claim(runner, job, &token);
    assert!(waits(&mut held));
}

#[tokio::test]
async fn an_expired_offer_goes_to_another_runner() {
    let mut scene = Scene::new();
    let workflow = scene.lab.activate("a");
    let (slow, other) = (
        scene.lab.register("slow", 1, &[]),
        scene.lab.register("other", 1, &[]),
    );
    let job = scene.lab.dispatch(workflow, "plain");
    let (_, token) = offered(&mut scene.poll(slow, 1, &[]));
    let mut waiting = scene.poll(other, 1, &[]);
    assert!(waits(&mut waiting));
    let lapse = scene.assign();
    assert_eq!(
        lapse,
        Some(scene.now + OFFER),
        "the board must check again when the offer expires"
    );

    scene.pass(OFFER);
    assert_eq!(scene.board.offered_to(job, token.hash(), scene.now), None);
    let (again, second) = offered(&mut waiting);
    assert_eq!(again, job);
    assert_ne!(second, token);
    // The slow runner gets the message to drop the job, because it has not claimed it in time.
    let mut late = scene.poll(slow, 1, &[job]);
    assert_eq!(said(&mut late), [Message::Cancelled(job)]);
}

#[tokio::test]
async fn a_cancel_is_repeated_until_the_runner_drops_the_job() {
    let mut scene = Scene::new();
    let workflow = scene.lab.activate("a");
    let runner = scene.lab.register("r", 1, &[]);
    let job = scene.lab.dispatch(workflow, "plain");
    let (_, token) = offered(&mut scene.poll(runner, 1, &[]));
    scene.claim(runner, job, &token);
    let mut waiting = scene.poll(runner, 1, &[job]);
    assert!(waits(&mut waiting));

    let end = EndJob::new(job, Loss::TimedOut);
    scene.lab.decide(end).unwrap();
    scene.assign();
    for _ in 0..5 {
        assert_eq!(said(&mut waiting), [Message::Cancelled(job)]);
        waiting = scene.poll(runner, 1, &[job]);
        assert!(waits(&mut waiting), "at most once a second");
        scene.pass(REPEAT);
    }
    assert_eq!(said(&mut waiting), [Message::Cancelled(job)]);
    let mut free = scene.poll(runner, 1, &[]);
    scene.pass(REPEAT * 2);
    assert!(waits(&mut free));
}

#[tokio::test]
async fn a_runner_must_stop_jobs_that_it_was_not_given() {
    let mut scene = Scene::new();
    let workflow = scene.lab.activate("a");
    let (thief, owner) = (
        scene.lab.register("thief", 2, &[]),
        scene.lab.register("owner", 1, &[]),
    );
    let job = scene.lab.dispatch(workflow, "plain");
    let (_, token) = offered(&mut scene.poll(owner, 1, &[]));
    scene.claim(owner, job, &token);
    scene.lab.dispatch(workflow, "plain");

    let unknown = JobId::FIRST;
    let mut answer = scene.poll(thief, 2, &[unknown, job]);
    assert_eq!(
        said(&mut answer),
        [Message::Cancelled(unknown), Message::Cancelled(job)]
    );
}

#[tokio::test]
async fn after_a_restart_of_the_daemon_an_unclaimed_job_is_offered_again() {
    let mut scene = Scene::new();
    let workflow = scene.lab.activate("a");
    let runner = scene.lab.register("r", 2, &[]);
    let job = scene.lab.dispatch(workflow, "plain");
    let (_, old) = offered(&mut scene.poll(runner, 2, &[]));

    scene.board = Board::default();
    assert_eq!(scene.board.offered_to(job, old.hash(), scene.now), None);
    // While the runner still holds the job from the old offer, the job cannot start there again.
    assert_eq!(
        said(&mut scene.poll(runner, 2, &[job])),
        [Message::Cancelled(job)]
    );
    let (again, token) = offered(&mut scene.poll(runner, 2, &[]));
    assert_eq!(again, job);
    assert_ne!(token, old);
}

#[tokio::test]
async fn a_newer_poll_ends_the_older_poll_without_a_message() {
    let mut scene = Scene::new();
    let workflow = scene.lab.activate("a");
    let runner = scene.lab.register("r", 1, &[]);
    let mut older = scene.poll(runner, 1, &[]);
    let mut newer = scene.poll(runner, 1, &[]);
    assert!(is_ended(&mut older));
    assert!(waits(&mut newer));
    scene.lab.dispatch(workflow, "plain");
    scene.assign();
    offered(&mut newer);
}

#[tokio::test]
async fn a_job_for_a_disconnected_poll_goes_to_the_next_poll() {
    let mut scene = Scene::new();
    let workflow = scene.lab.activate("a");
    let (gone, next) = (
        scene.lab.register("gone", 1, &[]),
        scene.lab.register("next", 1, &[]),
    );
    drop(scene.poll(gone, 1, &[]));
    let mut waiting = scene.poll(next, 1, &[]);
    scene.lab.dispatch(workflow, "plain");
    scene.assign();
    offered(&mut waiting);
}

#[tokio::test]
async fn offers_of_a_runner_that_drains_or_says_goodbye_are_withdrawn() {
    let mut scene = Scene::new();
    let workflow = scene.lab.activate("a");
    let (first, second) = (
        scene.lab.register("first", 1, &[]),
        scene.lab.register("second", 1, &[]),
    );
    let job = scene.lab.dispatch(workflow, "plain");

    offered(&mut scene.poll(first, 1, &[]));
    let mut waiting = scene.poll(second, 1, &[]);
    let mut draining = scene.poll(first, 0, &[]);
    assert!(waits(&mut draining));
    assert_eq!(offered(&mut waiting).0, job);

    let mut waiting = scene.poll(first, 1, &[]);
    scene.board.forget(second);
    scene.assign();
    assert_eq!(offered(&mut waiting).0, job);
}

#[tokio::test]
async fn the_poll_of_a_removed_runner_ends_and_its_offer_is_free() {
    let mut scene = Scene::new();
    let workflow = scene.lab.activate("a");
    let (gone, stays) = (
        scene.lab.register("gone", 2, &[]),
        scene.lab.register("stays", 1, &[]),
    );
    let job = scene.lab.dispatch(workflow, "plain");
    offered(&mut scene.poll(gone, 1, &[]));
    let mut held = scene.poll(gone, 1, &[job]);
    let mut waiting = scene.poll(stays, 1, &[]);
    scene
        .lab
        .decide(RemoveRunner {
            runner: gone,
            by: Rights::admin(),
        })
        .unwrap();
    scene.assign();
    assert!(is_ended(&mut held));
    assert_eq!(offered(&mut waiting).0, job);
    assert!(
        is_ended(&mut scene.poll(runner(9), 1, &[])),
        "the poll of an unknown runner ends too"
    );
}

#[tokio::test]
async fn labels_are_respected_and_workflows_take_turns() {
    let mut scene = Scene::new();
    let (busy, quiet) = (scene.lab.activate("busy"), scene.lab.activate("quiet"));
    let plain = scene.lab.register("plain", 10, &[]);
    let gpu = scene.lab.register("gpu", 10, &["gpu", "big"]);
    let special = scene.lab.dispatch(busy, "special");
    assert!(waits(&mut scene.poll(plain, 1, &[])));
    assert_eq!(offered(&mut scene.poll(gpu, 1, &[])).0, special);

    let of_busy: Vec<JobId> = (0..3).map(|_| scene.lab.dispatch(busy, "plain")).collect();
    let of_quiet = scene.lab.dispatch(quiet, "plain");
    let messages = said(&mut scene.poll(plain, 10, &[]));
    let order: Vec<JobId> = messages
        .iter()
        .map(|message| match message {
            Message::Assigned(job, _) | Message::Cancelled(job) => *job,
        })
        .collect();
    assert_eq!(order, [of_quiet, of_busy[0], of_busy[1], of_busy[2]]);
}

#[tokio::test]
async fn a_closed_board_ends_every_poll() {
    let mut scene = Scene::new();
    let workflow = scene.lab.activate("a");
    let runner = scene.lab.register("r", 1, &[]);
    let mut before = scene.poll(runner, 1, &[]);
    scene.board.close();
    assert!(is_ended(&mut before));
    scene.lab.dispatch(workflow, "plain");
    assert!(is_ended(&mut scene.poll(runner, 1, &[])));
    assert_eq!(scene.assign(), None);
}

#[tokio::test(start_paused = true)]
async fn a_retry_is_not_offered_before_it_is_due() {
    let mut scene = Scene::new();
    let workflow = scene.lab.activate("a");
    let first = scene.lab.register("first", 1, &[]);
    let job = scene.lab.dispatch(workflow, "again");
    let (_, token) = offered(&mut scene.poll(first, 1, &[]));
    scene.claim(first, job, &token);
    let ended = scene
        .lab
        .decide(EndJob::new(job, Loss::RunnerLost))
        .unwrap();
    let retry = ended.retried_by.unwrap();

    let mut answer = scene.poll(first, 1, &[]);
    assert!(waits(&mut answer));
    let due = scene.now + Duration::from_secs(2);
    assert_eq!(
        scene.assign(),
        Some(due),
        "the board checks again when the retry is due"
    );
    scene.pass(Duration::from_millis(1_999));
    assert!(waits(&mut answer));
    assert_eq!(scene.assign(), Some(due));
    scene.pass(Duration::from_millis(1));
    let (next, token) = offered(&mut answer);
    assert_eq!(next, retry);
    scene.claim(first, retry, &token);

    // For a later retry the board checks more often, because the machine may sleep.
    let without = crate::testing::SCANS.replace("backoff: 2s", "backoff: 1h");
    scene
        .lab
        .decide(crate::testing::activate("a", &without))
        .unwrap();
    let other = scene.lab.register("other", 1, &[]);
    let job = scene.lab.dispatch(workflow, "again");
    let (_, token) = offered(&mut scene.poll(other, 1, &[]));
    scene.claim(other, job, &token);
    scene
        .lab
        .decide(EndJob::new(job, Loss::RunnerLost))
        .unwrap();
    assert_eq!(scene.assign(), Some(scene.now + DEADLINE_CHECK));
}

fn project(number: usize) -> (SourceName, ProjectId) {
    let name: SourceName = format!("p{number}").parse().unwrap();
    let id = ProjectId::of_source(&name);
    (name, id)
}

/// The lines that the next look examines, with a waiting job in one of this many projects. Each project has an idle runner.
fn lines_to_examine(projects: usize) -> usize {
    let mut scene = Scene::new();
    let mut answers = Vec::new();
    for number in 0..projects {
        let (_, id) = project(number);
        let name = format!("r{number}");
        let runner = scene.lab.register_for(Some(id), &name, 1, &[]);
        answers.push(scene.poll(runner, 1, &[]));
    }
    assert_eq!(scene.board.waiting.lines(&scene.lab.world).len(), 1);
    let workflow = scene.lab.activate_in(&project(projects / 2).0, "a");
    let job = scene.lab.dispatch(workflow, "plain");
    let lines = scene.board.waiting.lines(&scene.lab.world).len();
    scene.assign();
    assert_eq!(offered(&mut answers[projects / 2]).0, job);
    lines
}

#[tokio::test]
async fn a_look_at_the_board_costs_no_more_with_a_thousand_projects() {
    assert_eq!(lines_to_examine(1), 2);
    assert_eq!(lines_to_examine(1_000), 2);

    // The other way round: jobs wait in a thousand projects, and the only idle runner is of another one.
    let mut scene = Scene::new();
    for number in 0..1_000 {
        let workflow = scene.lab.activate_in(&project(number).0, "a");
        scene.lab.dispatch(workflow, "plain");
    }
    let (_, none) = project(1_001);
    let idle = scene.lab.register_for(Some(none), "idle", 1, &[]);
    assert!(waits(&mut scene.poll(idle, 1, &[])));
    assert_eq!(scene.board.waiting.lines(&scene.lab.world).len(), 1);
}

#[tokio::test]
async fn an_offer_of_a_runner_that_was_limited_goes_to_another_runner() {
    let mut scene = Scene::new();
    let workflow = scene.lab.activate("a");
    let old = scene.lab.register("old", 1, &[]);
    let other = scene.lab.register("other", 1, &[]);
    let job = scene.lab.dispatch(workflow, "plain");
    let (_, token) = offered(&mut scene.poll(old, 1, &[]));
    let mut waiting = scene.poll(other, 1, &[]);
    assert!(waits(&mut waiting));

    let mut poll = scene.poll(old, 1, &[]);
    let limit = LimitRunner {
        runner: old,
        projects: [project(1).1].into(),
        by: Rights::admin(),
    };
    scene.lab.decide(limit).unwrap();
    scene.board.end_poll(old);
    scene.assign();
    assert_eq!(scene.board.offered_to(job, token.hash(), scene.now), None);
    assert_eq!(offered(&mut waiting).0, job);
    assert!(is_ended(&mut poll), "the runner asks again");
    assert!(waits(&mut scene.poll(old, 1, &[])));
}
