//! Why a scheduled job has not started: a suspension, or missing or busy runners.

use std::collections::BTreeSet;

use crate::abilities::needed_capabilities;
use crate::job::{Job, JobState};
use crate::limits::NAMED_JOBS;
use crate::{Abilities, Ahead, JobId, ProjectId, Reason, Runner, RunnerId, Timestamp, World};

/// The reason why the job waits. None if it does not wait. `time` is the world's time. `connected` is true for runners that
/// have contacted the daemon recently. `holding` returns the jobs that a runner reports to hold; this is in no record.
pub fn waiting<'h>(
    world: &World,
    job: &Job,
    time: Timestamp,
    connected: impl Fn(RunnerId) -> bool,
    holding: impl Fn(RunnerId) -> Option<&'h BTreeSet<JobId>>,
) -> Option<Reason> {
    match job.state {
        JobState::Scheduled => {}
        JobState::Running { .. }
        | JobState::Succeeded { .. }
        | JobState::Failed { .. }
        | JobState::Cancelled { .. }
        | JobState::Skipped { .. } => return None,
    }
    if let Some(suspension) = world.suspension(&job.scan_key()) {
        return Some(suspension.as_reason());
    }
    let revision = world.revision(world.revision_to_run(job))?;
    let scan = revision.definition.scan(job.scan.as_str())?;
    // Runners of other projects do not exist for the job and its readers.
    let serving = || {
        let all = world.runners();
        all.filter(|runner| runner.projects.contain(job.project))
    };
    let registered = serving().count();
    if registered == 0 {
        return Some(Reason::NoRunner);
    }
    let fits = |runner: &Runner| {
        let mut wanted = scan.runs_on.iter();
        wanted.all(|wanted| runner.labels.contains(wanted))
    };
    let mut fitting: Vec<_> = serving()
        .filter(|runner| fits(runner) && connected(runner.id))
        .collect();
    if fitting.is_empty() {
        return Some(if serving().any(|runner| connected(runner.id)) {
            Reason::NoRunnerFits {
                labels: scan.runs_on.clone(),
            }
        } else {
            Reason::NoRunnerConnected {
                registered: registered as u64,
            }
        });
    }
    // Exclusive runners refuse only scans without labels.
    if scan.runs_on.is_empty() {
        let runners = fitting.len() as u64;
        fitting.retain(|runner| !runner.exclusive);
        if fitting.is_empty() {
            return Some(Reason::RunnersExclusive { runners });
        }
    }
    let lacking = needed_capabilities(scan).find(|name| {
        !fitting
            .iter()
            .any(|runner| runner.capabilities.iter().any(|one| one == name))
    });
    if let Some(capability) = lacking {
        return Some(Reason::RunnersTooOld {
            capability: capability.to_owned(),
        });
    }
    let needed = Abilities::needed_by(scan);
    let fitting: Vec<_> = fitting
        .into_iter()
        .map(|runner| (runner, Abilities::of(runner)))
        .filter(|(_, abilities)| abilities.cover(&needed))
        .collect();
    let slots = fitting.iter().map(|(runner, _)| {
        let slots = Slots::of(world, runner.id, holding(runner.id));
        (slots.taken() >= u64::from(runner.capacity)).then_some(slots)
    });
    let slots: Option<Vec<Slots>> = slots.collect();
    let take = |project: ProjectId, needed: &Abilities| {
        let mut fitting = fitting.iter();
        fitting
            .any(|(runner, abilities)| runner.projects.contain(project) && abilities.cover(needed))
    };
    let ahead = Ahead::of(world, job.id, time, take);
    Some(match slots {
        None => Reason::NotFetched { ahead },
        Some(slots) => busy(&slots, ahead),
    })
}

/// The jobs that use the slots of a runner.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Slots {
    /// The jobs that it executes.
    pub running: Vec<JobId>,
    /// Finished jobs that the runner still holds.
    pub finished: Vec<JobId>,
}

impl Slots {
    /// `holding` are the jobs that the runner reports to hold.
    pub fn of(world: &World, runner: RunnerId, holding: Option<&BTreeSet<JobId>>) -> Self {
        // Scheduled jobs in `holding` are still on their way to the runner.
        let has_finished = |job: &JobId| world.job(*job).is_none();
        let held = holding.into_iter().flatten().copied();
        Self {
            running: world.running_on(runner).map(|job| job.id).collect(),
            finished: held.filter(has_finished).collect(),
        }
    }

    pub const fn taken(&self) -> u64 {
        (self.running.len() + self.finished.len()) as u64
    }
}

fn busy(slots: &[Slots], ahead: Ahead) -> Reason {
    let finished = || slots.iter().flat_map(|slots| &slots.finished);
    let all = || finished().chain(slots.iter().flat_map(|slots| &slots.running));
    Reason::RunnersBusy {
        runners: slots.len() as u64,
        jobs: all().take(NAMED_JOBS).copied().collect(),
        more: all().skip(NAMED_JOBS).count() as u64,
        over: finished().count() as u64,
        ahead,
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::testing::{NIGHTLY, TestWorld};
    use crate::{JobId, Reach, Turns, next_job};

    fn why(test: &TestWorld, job: JobId, connected: &[RunnerId]) -> String {
        why_holding(test, job, connected, &BTreeSet::new())
    }

    /// `held` are the jobs that each runner reports to hold.
    fn why_holding(
        test: &TestWorld,
        job: JobId,
        connected: &[RunnerId],
        held: &BTreeSet<JobId>,
    ) -> String {
        let job = test.world.job(job).unwrap();
        let is_connected = |runner| connected.contains(&runner);
        waiting(&test.world, job, test.now, is_connected, |_| Some(held))
            .map_or_else(|| "-".to_owned(), |reason| reason.to_string())
    }

    #[test]
    fn the_reason_names_missing_runners_and_labels() {
        let mut test = TestWorld::new();
        let workflow = test.push("nightly", NIGHTLY);
        let strict = test
            .dispatch(workflow, "strict", json!({"target": "x"}))
            .unwrap();
        assert_eq!(
            why(&test, strict, &[]),
            "no runner of this project is registered"
        );

        let plain = test.runner("plain", &["linux"]);
        assert_eq!(
            why(&test, strict, &[]),
            "the only registered runner is not connected"
        );
        let fitting = test.runner("fitting", &["linux", "gpu"]);
        assert_eq!(
            why(&test, strict, &[]),
            "none of the 2 registered runners is connected"
        );
        assert_eq!(
            why(&test, strict, &[plain]),
            "no connected runner has the labels linux, gpu"
        );
        assert_eq!(
            why(&test, strict, &[plain, fitting]),
            "no runner with room for it has asked for work yet"
        );

        // Each runner takes two jobs.
        let mut running = Vec::new();
        for _ in 0..2 {
            let job = test.dispatch(workflow, "probe", json!({})).unwrap();
            test.claim(job, fitting).unwrap();
            assert_eq!(why(&test, job, &[fitting]), "-");
            running.push(job);
        }
        let [a, b] = running.as_slice() else {
            panic!("{running:?}")
        };
        assert_eq!(
            why(&test, strict, &[plain, fitting]),
            format!("the only runner that can take it is busy with jobs {a}, {b}")
        );
        let probe = test.dispatch(workflow, "probe", json!({})).unwrap();
        assert_eq!(
            why(&test, probe, &[fitting, plain]),
            "no runner with room for it has asked for work yet; 1 older job of `strict` waits for the same runners"
        );
        let last = test.dispatch(workflow, "probe", json!({})).unwrap();
        assert_eq!(
            why(&test, last, &[fitting]),
            format!(
                "the only runner that can take it is busy with jobs {a}, {b}; 2 older jobs of `probe`, `strict` wait for \
                 the same runners"
            )
        );
        // A runner without the labels cannot take the other job, so that job does not count.
        assert_eq!(
            why(&test, last, &[plain]),
            "no runner with room for it has asked for work yet; 1 older job of `probe` waits for the same runners"
        );
    }

    #[test]
    fn an_exclusive_runner_takes_only_jobs_that_require_its_labels() {
        let mut test = TestWorld::new();
        let workflow = test.push("nightly", NIGHTLY);
        let exclusive = test.exclusive_runner("gpu", &["linux", "gpu"]);
        let probe = test.dispatch(workflow, "probe", json!({})).unwrap();
        let strict = test
            .dispatch(workflow, "strict", json!({"target": "x"}))
            .unwrap();
        assert_eq!(
            why(&test, probe, &[exclusive]),
            "the only connected runner takes only scans whose `runs_on` names one of its labels"
        );
        let runner = test.world.runner(exclusive).unwrap();
        let next = |reach: &Reach| {
            let turns = Turns::default();
            next_job(&test.world, reach, &turns, test.now, |_| false).map(|(_, job)| job)
        };
        let mut reach = Reach::of(runner);
        assert_eq!(next(&reach), Some(strict));
        reach.abilities.exclusive = false;
        assert_eq!(next(&reach), Some(probe));
        let second = test.exclusive_runner("arm", &["arm"]);
        assert_eq!(
            why(&test, probe, &[exclusive, second]),
            "all 2 connected runners take only scans whose `runs_on` names one of their labels"
        );
    }

    #[test]
    fn finished_jobs_that_still_use_slots_are_listed_first() {
        let mut test = TestWorld::new();
        let workflow = test.push("nightly", NIGHTLY);
        let runner = test.runner("first", &[]);
        let probe = test.dispatch(workflow, "probe", json!({})).unwrap();
        let running = test.dispatch(workflow, "probe", json!({})).unwrap();
        test.claim(running, runner).unwrap();
        let gone: Vec<JobId> = (1..=4)
            .map(|number| format!("00000000-0000-7000-8000-00000000000{number}"))
            .map(|id| id.parse().unwrap())
            .collect();
        let held = |count: usize| {
            let over = gone.iter().take(count).copied();
            over.chain([running, probe]).collect::<BTreeSet<_>>()
        };
        // A job on its way to the runner uses no slot yet.
        assert_eq!(
            why_holding(&test, probe, &[runner], &held(0)),
            "no runner with room for it has asked for work yet"
        );
        assert_eq!(
            why_holding(&test, probe, &[runner], &held(1)),
            format!(
                "the only runner that can take it is busy with jobs {}, {running}; 1 of them is over and still holds its \
                 slot",
                gone[0]
            )
        );
        assert_eq!(
            why_holding(&test, probe, &[runner], &held(4)),
            format!(
                "the only runner that can take it is busy with jobs {}, {}, {} and 2 more; 4 of them are over and still \
                 hold their slots",
                gone[0], gone[1], gone[2]
            )
        );
    }
}
