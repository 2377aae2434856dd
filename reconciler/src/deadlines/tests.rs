use model::RunnerId;
use model::decide::RemoveRunner;
use model::limits::WORKER_SESSION;

use super::*;
use crate::testing::{Lab, at};

/// A world with one running job, and the time of its claim.
struct Scene {
    lab: Lab,
    presence: Presence,
    steady: Instant,
    runner: RunnerId,
    job: JobId,
}

impl Scene {
    fn running(scan: &str) -> Self {
        let mut lab = Lab::new(3);
        let workflow = lab.activate("a");
        let runner = lab.register("r", 4, &[]);
        let job = lab.dispatch(workflow, scan);
        let token = model::TokenHash::of("worker");
        lab.claim(job, runner, token);
        let steady = Instant::now();
        Self {
            lab,
            presence: Presence::new(steady),
            steady,
            runner,
            job,
        }
    }

    /// The jobs due at this time after the claim, by the wall clock and by the clock that never jumps. If a job is due,
    /// `next` does not matter.
    fn due(&self, wall: TimeDelta, steady: TimeDelta) -> Due {
        let steady = self.steady + steady.to_std().unwrap();
        let due = due(&self.lab.world, &self.presence, at(0) + wall, steady, true);
        Due {
            next: due.next.filter(|_| due.jobs.is_empty()),
            ..due
        }
    }

    fn hear(&mut self, after: TimeDelta) {
        let steady = self.steady + after.to_std().unwrap();
        self.presence.heard(self.runner, at(0) + after, steady);
    }
}

fn nothing_for(next: TimeDelta) -> Due {
    Due {
        jobs: Vec::new(),
        next: Some(next.to_std().unwrap()),
    }
}

fn due_now(job: JobId, loss: Loss) -> Due {
    Due {
        jobs: vec![(job, loss)],
        next: None,
    }
}

const SECOND: TimeDelta = TimeDelta::seconds(1);

#[tokio::test]
async fn a_silent_runner_loses_its_jobs_after_two_minutes() {
    let mut scene = Scene::running("plain");
    let almost = RUNNER_SILENCE - SECOND;
    assert_eq!(scene.due(almost, almost), nothing_for(SECOND));
    assert_eq!(
        scene.due(RUNNER_SILENCE, RUNNER_SILENCE),
        due_now(scene.job, Loss::RunnerLost)
    );
    scene.hear(almost);
    assert_eq!(
        scene.due(RUNNER_SILENCE, RUNNER_SILENCE),
        nothing_for(RUNNER_SILENCE - SECOND)
    );
}

#[tokio::test]
async fn setting_the_wall_clock_does_not_count_as_silence() {
    let scene = Scene::running("plain");
    for jump in [TimeDelta::hours(3), TimeDelta::days(-1)] {
        assert_eq!(
            scene.due(jump, SECOND),
            nothing_for(RUNNER_SILENCE - SECOND)
        );
        assert_eq!(
            scene.due(jump, RUNNER_SILENCE),
            due_now(scene.job, Loss::RunnerLost)
        );
    }
}

#[tokio::test]
async fn a_job_ends_two_minutes_after_its_timeout_and_when_its_session_expires() {
    let mut scene = Scene::running("short");
    let timeout = TimeDelta::minutes(30);
    let end = timeout + TIMEOUT_END;
    scene.hear(timeout + SECOND);
    assert_eq!(scene.due(timeout, timeout), nothing_for(TIMEOUT_END));
    assert_eq!(scene.due(end - SECOND, end - SECOND), nothing_for(SECOND));
    assert_eq!(scene.due(end, end), due_now(scene.job, Loss::TimedOut));
    // Checked late, as after a pause of the machine: the earlier deadline is the reason.
    let late = timeout + TimeDelta::hours(6);
    assert_eq!(scene.due(late, late), due_now(scene.job, Loss::TimedOut));

    let mut scene = Scene::running("plain");
    scene.hear(WORKER_SESSION - SECOND);
    assert_eq!(
        scene.due(WORKER_SESSION - SECOND, WORKER_SESSION - SECOND),
        nothing_for(SECOND)
    );
    assert_eq!(
        scene.due(WORKER_SESSION, WORKER_SESSION),
        due_now(scene.job, Loss::SessionExpired)
    );
}

#[tokio::test]
async fn after_a_standstill_a_runner_may_still_report_a_job_past_its_timeout() {
    let mut scene = Scene::running("short");
    let timeout = TimeDelta::minutes(30);
    let woken = timeout + TimeDelta::minutes(5);
    let instant = scene.steady + woken.to_std().unwrap();
    assert!(scene.presence.notice_standstill(instant).is_some());
    assert_eq!(scene.due(woken, woken), nothing_for(TIMEOUT_END));
    scene.hear(woken + SECOND);
    let end = woken + TIMEOUT_END;
    assert_eq!(scene.due(end, end), due_now(scene.job, Loss::TimedOut));
    // The session ends without delay. The reason is the timeout, which is the earlier deadline.
    let wall = WORKER_SESSION;
    assert_eq!(scene.due(wall, woken), due_now(scene.job, Loss::TimedOut));
}

#[tokio::test]
async fn after_a_standstill_every_silence_starts_at_zero() {
    let mut scene = Scene::running("plain");
    let woken = TimeDelta::seconds(130);
    let instant = scene.steady + woken.to_std().unwrap();
    assert!(scene.presence.notice_standstill(instant).is_some());
    assert_eq!(scene.due(woken, woken), nothing_for(RUNNER_SILENCE));
    let end = woken + RUNNER_SILENCE;
    assert_eq!(scene.due(end, end), due_now(scene.job, Loss::RunnerLost));
}

#[tokio::test]
async fn the_jobs_of_a_removed_runner_are_lost_at_once() {
    let mut scene = Scene::running("plain");
    let runner = scene.runner;
    scene
        .lab
        .decide(RemoveRunner {
            runner,
            by: model::Rights::admin(),
        })
        .unwrap();
    assert_eq!(
        scene.due(SECOND, SECOND),
        due_now(scene.job, Loss::RunnerLost)
    );
}

#[tokio::test]
async fn without_leases_only_stored_deadlines_are_checked() {
    let scene = Scene::running("short");
    let due_without_leases = |wall: TimeDelta| {
        let steady = scene.steady + RUNNER_SILENCE.to_std().unwrap();
        due(
            &scene.lab.world,
            &scene.presence,
            at(0) + wall,
            steady,
            false,
        )
    };
    let end = TimeDelta::minutes(30) + TIMEOUT_END;
    assert_eq!(
        due_without_leases(RUNNER_SILENCE),
        nothing_for(end - RUNNER_SILENCE)
    );
    // The earlier deadline is the reason, and the job is listed once.
    assert_eq!(due_without_leases(end).jobs.len(), 1);
    assert_eq!(scene.due(end, end).jobs.len(), 1);
}

#[tokio::test]
async fn scheduled_jobs_have_no_deadline() {
    let mut lab = Lab::new(3);
    let workflow = lab.activate("a");
    lab.dispatch(workflow, "short");
    let presence = Presence::new(Instant::now());
    let far = at(0) + TimeDelta::days(400);
    let due = due(&lab.world, &presence, far, Instant::now(), true);
    assert_eq!(
        due,
        Due {
            jobs: Vec::new(),
            next: None
        }
    );
}
