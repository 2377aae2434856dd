//! Checks that a job has the right causes and the right place in their chain, and that jobs of later laps begin after
//! their pause.

use model::{Actor, Job, JobId, Trigger};

use super::{Known, Now, Oracle, is_success};
use crate::tests::simulation::scenario::{group_of, woken_by};
use crate::tests::simulation::time::SECOND;

impl Oracle {
    pub(super) fn check_place(&self, job: &Job, now: Now) {
        let hops = match (job.retry_of, job.trigger) {
            (Some(retry), _) => {
                let before = &self.cause(job, retry.job).record;
                assert_eq!(job.causes, before.causes, "the causes of {}", job.id);
                before.hops.count
            }
            (None, Trigger::Dispatch | Trigger::Cron) => {
                assert!(job.causes.is_empty(), "{} has causes", job.id);
                match job.actor {
                    Actor::Job { id } => self.cause(job, id).record.hops.count + 1,
                    _ => 0,
                }
            }
            (None, Trigger::Callback) => match job.causes[..] {
                [] => 0,
                [planted] => self.cause(job, planted).record.hops.count + 1,
                _ => panic!("{} has several causes", job.id),
            },
            (None, Trigger::Expr) => self.hops_by_causes(job),
        };
        assert_eq!(job.hops.count, hops, "the hops of {}", job.id);
        self.check_pause(job, now);
    }

    fn cause(&self, job: &Job, cause: JobId) -> &Known {
        let known = self.jobs.get(&cause);
        known.unwrap_or_else(|| panic!("{} names {cause}, which is unknown", job.id))
    }

    /// The number of hops according to the causes. A job made by an activation has no causes.
    fn hops_by_causes(&self, job: &Job) -> u64 {
        let scan = job.scan_key();
        let mut scans = Vec::new();
        let mut hops = 0;
        for cause in &job.causes {
            let record = &self.cause(job, *cause).record;
            let of = record.scan_key();
            assert!(is_success(record), "{cause} has not succeeded");
            let wakes = woken_by(&of).any(|woken| woken == scan);
            assert!(wakes, "{cause} does not wake {}", scan.scan);
            let is_in_group = group_of(&scan).is_some() && group_of(&of).is_some();
            // A chain with a job that a step has started is counted across groups.
            if is_in_group || record.hops.by_step {
                hops = hops.max(record.hops.count + 1);
            }
            assert!(
                !scans.contains(&of),
                "{} has two causes from the same scan",
                job.id
            );
            scans.push(of);
        }
        hops
    }

    /// From the second lap on, a job waits after its causes.
    fn check_pause(&self, job: &Job, now: Now) {
        let laps = group_of(&job.scan_key()).map_or(0, |scans| job.hops.count / scans);
        let ends = job
            .causes
            .iter()
            .map(|cause| self.cause(job, *cause).ended_at);
        let Some(ended_at) = ends.max().filter(|_| laps > 0) else {
            return;
        };
        // The pause is in the world's time, which a new process takes from the wall clock.
        let is_claimed_now = job.state.run().is_some()
            && self.jobs[&job.id].since < self.round
            && self.clock_set < ended_at;
        if is_claimed_now {
            let pause = now.steady - ended_at;
            assert!(pause >= SECOND, "{} begins after {pause} ms", job.id);
        }
    }
}
