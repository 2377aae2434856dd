//! The length of a chain of causes within a group: scans that can trigger each other, so that each success may start
//! the next job forever. From the second lap on, such jobs have a pause, and a group that runs in circles is reported.

use std::collections::BTreeMap;

use chrono::TimeDelta;
use serde::{Deserialize, Serialize};
use workflow::ScanName;

use crate::limits::{CIRCLE_LAPS, CYCLE_PAUSE_LEAST, HOPS_BY_STEPS, QUICK_LAP};
use crate::revision::WorkflowRef;
use crate::seen::Seen;
use crate::{JobId, Timestamp, is_zero};

/// The position of a job in its chain of causes, counted from the last slot of a schedule, dispatch, or cause from
/// outside of its group. Of several causes, the largest position counts.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Default, Serialize, Deserialize)]
pub struct Hops {
    /// Number of earlier jobs of the group.
    pub count: u64,
    /// Number of the latest laps, without interruption, that took less than a minute each.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub quick_laps: u64,
    /// The start of its lap, in the world's time.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    lap_began: Option<Timestamp>,
    /// True if a job of the chain was started by a step of the previous one. Then the chain is counted across groups,
    /// because such jobs can start each other forever in any scans.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub by_step: bool,
}

impl Hops {
    /// True if the job is the first of the group.
    pub fn is_none(&self) -> bool {
        self.count == 0
    }

    /// The position of a job that is started by this job's success. `scans` is the size of the group; `time` is the
    /// world's time.
    #[must_use]
    pub(crate) fn next(self, scans: usize, time: Timestamp) -> Self {
        let count = self.count.saturating_add(1);
        let ends_lap = count.checked_rem(scans as u64) == Some(0);
        match self.lap_began {
            Some(began) if ends_lap => Self {
                count,
                quick_laps: if time - began < QUICK_LAP {
                    self.quick_laps.saturating_add(1)
                } else {
                    0
                },
                lap_began: Some(time),
                ..self
            },
            began => Self {
                count,
                lap_began: began.or(Some(time)),
                ..self
            },
        }
    }

    /// The position of a job that a step of this job starts.
    #[must_use]
    pub(crate) fn started_by_step(self) -> Self {
        Self {
            count: self.count.saturating_add(1),
            by_step: true,
            ..Self::default()
        }
    }

    /// The pause before a job at this position that a step has started. None in a short chain.
    pub(crate) fn pause_after_step(self, cycle_pause: TimeDelta) -> Option<TimeDelta> {
        (self.by_step && self.count >= HOPS_BY_STEPS).then(|| cycle_pause.max(CYCLE_PAUSE_LEAST))
    }

    /// The pause before a job at this position. None in the first lap.
    pub(crate) fn pause(self, scans: usize, cycle_pause: TimeDelta) -> Option<TimeDelta> {
        let laps = self.count.checked_div(scans as u64)?;
        (laps > 0).then(|| cycle_pause.max(CYCLE_PAUSE_LEAST))
    }

    /// True if the group runs in circles and should be reported.
    pub(crate) const fn is_circle(self) -> bool {
        self.quick_laps > CIRCLE_LAPS
    }
}

/// A group that runs in circles: it has an unfinished job after more than a hundred laps of less than a minute each.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Circle {
    pub workflow: WorkflowRef,
    /// The scans of the group, by name.
    pub scans: Vec<ScanName>,
    /// Number of these laps.
    pub laps: u64,
    pub job: JobId,
}

impl Seen<'_> {
    /// The groups that run in circles.
    pub fn circles(self) -> Vec<Circle> {
        let mut found = BTreeMap::new();
        for job in self.jobs().filter(|job| job.hops.is_circle()) {
            let Some(workflow) = self.workflow(job.workflow.id) else {
                continue;
            };
            let Some(group) = workflow.revision.definition.group(job.scan.as_str()) else {
                continue;
            };
            let circle = Circle {
                workflow: workflow.record.reference(),
                scans: group.iter().cloned().collect(),
                laps: job.hops.quick_laps,
                job: job.id,
            };
            let key = (job.workflow.id, group.first().cloned());
            let known = found.entry(key).or_insert_with(|| circle.clone());
            if known.laps < circle.laps {
                *known = circle;
            }
        }
        found.into_values().collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(seconds: i64) -> Timestamp {
        Timestamp::UNIX_EPOCH + TimeDelta::seconds(seconds)
    }

    #[test]
    fn pauses_start_at_the_second_lap_and_have_a_minimum() {
        let second = TimeDelta::seconds(1);
        let mut hops = Hops::default();
        let mut pauses = Vec::new();
        for hop in 0..6 {
            pauses.push(hops.pause(3, second));
            hops = hops.next(3, at(hop));
        }
        let pause = Some(second);
        assert_eq!(pauses, [None, None, None, pause, pause, pause]);
        assert_eq!(hops.pause(3, TimeDelta::zero()), Some(CYCLE_PAUSE_LEAST));
    }

    #[test]
    fn laps_of_less_than_a_minute_are_counted_until_a_longer_lap() {
        let mut hops = Hops::default();
        let mut time = 0;
        let mut lap = |hops: Hops, seconds: i64| {
            time += seconds;
            let half = hops.next(2, at(time - seconds / 2));
            half.next(2, at(time))
        };
        for _ in 0..=CIRCLE_LAPS {
            assert!(!hops.is_circle());
            hops = lap(hops, 59);
        }
        assert!(hops.is_circle());
        assert_eq!((hops.count, hops.quick_laps), (202, 101));
        hops = lap(hops, 60);
        assert_eq!((hops.count, hops.quick_laps), (204, 0));
        assert!(!hops.is_circle());
    }

    #[test]
    fn the_cause_with_the_most_hops_counts() {
        let few = Hops {
            count: 3,
            quick_laps: 1,
            lap_began: Some(at(9)),
            by_step: true,
        };
        let many = Hops {
            count: 4,
            ..Hops::default()
        };
        assert_eq!(few.max(many), many);
    }
}
