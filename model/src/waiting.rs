//! Why a scheduled job has not begun: what the runners lack that would take it.

use crate::job::{Job, JobState};
use crate::runner::Runner;
use crate::{Reason, RunnerId, World};

/// Why the job waits, if it does. `connected` says which runners were heard lately, which no record knows.
pub fn waiting(world: &World, job: &Job, connected: impl Fn(RunnerId) -> bool) -> Option<Reason> {
    match job.state {
        JobState::Scheduled => {}
        JobState::Running { .. }
        | JobState::Succeeded { .. }
        | JobState::Failed { .. }
        | JobState::Cancelled { .. }
        | JobState::Skipped { .. } => return None,
    }
    let revision = world.revision(world.revision_to_run(job))?;
    let scan = revision.definition.scan(job.scan.as_str())?;
    let registered = world.runners().count();
    if registered == 0 {
        return Some(Reason::NoRunner);
    }
    let mut connected = world
        .runners()
        .filter(|runner| connected(runner.id))
        .peekable();
    if connected.peek().is_none() {
        return Some(Reason::NoRunnerConnected {
            registered: registered as u64,
        });
    }
    let fitting: Vec<_> = connected
        .filter(|runner| {
            scan.runs_on
                .iter()
                .all(|wanted| runner.labels.contains(wanted))
        })
        .collect();
    Some(if fitting.is_empty() {
        Reason::NoRunnerFits {
            labels: scan.runs_on.clone(),
        }
    } else if fitting.iter().all(|runner| is_busy(world, runner)) {
        Reason::RunnersBusy {
            runners: fitting.len() as u64,
        }
    } else {
        Reason::NotFetched
    })
}

/// Whether a runner runs as many jobs as it was registered for.
fn is_busy(world: &World, runner: &Runner) -> bool {
    world.running_on(runner.id).count() as u64 >= u64::from(runner.capacity)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::JobId;
    use crate::testing::{House, NIGHTLY};

    fn why(house: &House, job: JobId, connected: &[RunnerId]) -> String {
        let job = house.world.job(job).unwrap();
        waiting(&house.world, job, |runner| connected.contains(&runner))
            .map_or_else(|| "-".to_owned(), |reason| reason.to_string())
    }

    #[test]
    fn what_the_runners_lack_is_named() {
        let mut house = House::new();
        let workflow = house.push("nightly", NIGHTLY);
        let strict = house
            .dispatch(workflow, "strict", json!({"target": "x"}))
            .unwrap();
        assert_eq!(why(&house, strict, &[]), "no runner is registered");

        let plain = house.runner("plain", &["linux"]);
        assert_eq!(
            why(&house, strict, &[]),
            "the only registered runner is not connected"
        );
        let fitting = house.runner("fitting", &["linux", "gpu"]);
        assert_eq!(
            why(&house, strict, &[]),
            "none of the 2 registered runners is connected"
        );
        assert_eq!(
            why(&house, strict, &[plain]),
            "no connected runner has the labels linux, gpu"
        );
        assert_eq!(
            why(&house, strict, &[plain, fitting]),
            "no runner with room for it has asked for work yet"
        );

        // A runner of the house takes two jobs.
        for _ in 0..2 {
            let job = house.dispatch(workflow, "probe", json!({})).unwrap();
            house.claim(job, fitting).unwrap();
            assert_eq!(why(&house, job, &[fitting]), "-");
        }
        assert_eq!(
            why(&house, strict, &[plain, fitting]),
            "the only runner that can take it is busy"
        );
        let probe = house.dispatch(workflow, "probe", json!({})).unwrap();
        assert_eq!(
            why(&house, probe, &[fitting, plain]),
            "no runner with room for it has asked for work yet"
        );
    }
}
