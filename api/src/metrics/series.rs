//! The metrics of scans and tokens. People decide how many there are, so the number of series is bounded.

use model::condition::Subject;
use model::{ActiveWorkflow, ScanKey, Timestamp, WorkflowStatus, World};
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::gauge::Gauge;
use prometheus_client::registry::Registry;
use reconciler::Handle;

use super::{Labels, add};
use crate::limits::METRIC_SERIES;

pub(super) struct SeriesMetrics {
    tokens: Family<Labels<2>, Gauge>,
    conditions: Family<Labels<5>, Gauge>,
    successes: Family<Labels<3>, Gauge>,
    ends: Family<Labels<4>, Gauge>,
    left_out: Gauge,
}

impl SeriesMetrics {
    #[rustfmt::skip]
    pub(super) fn new(registry: &mut Registry) -> Self {
        Self {
            tokens: add(registry, "token_expiry_timestamp_seconds", "When each access token that expires does so"),
            conditions: add(registry, "scan_conditions", "Conditions of each scan by kind, each open or acknowledged"),
            successes: add(registry, "scan_last_success_timestamp_seconds", "The end of the newest success of each scan"),
            ends: add(registry, "scan_last_end_timestamp_seconds", "The last end of a job of each scan, with the state of the job"),
            left_out: add(registry, "series_left_out", "Series of tokens and scans that are missing, because there are more than 5,000"),
        }
    }

    /// Reads records in memory only. What is urgent comes first, so that it is left out last.
    pub(super) fn update(&self, handle: &Handle, world: &World) {
        self.tokens.clear();
        self.conditions.clear();
        self.successes.clear();
        self.ends.clear();
        let mut room = Room::new(METRIC_SERIES);
        let seconds = |at: Timestamp| at.timestamp();
        let ahead = handle.now() - handle.time(world);
        for token in world.tokens() {
            if let Some(expires) = token.expires_at {
                let labels = [("token", &*token.id.to_string()), ("name", &token.name)];
                room.set(&self.tokens, labels, seconds(expires + ahead));
            }
        }
        for open in world.conditions() {
            if let Subject::Scan { workflow, scan } = &open.subject
                && let Some(record) = world.workflow_record(*workflow)
            {
                let [project, workflow] = [record.source.as_str(), &record.name];
                let state = match open.acknowledged {
                    Some(_) => "acknowledged",
                    None => "open",
                };
                let labels = [
                    ("project", project),
                    ("workflow", workflow),
                    ("scan", scan.as_str()),
                    ("kind", open.problem.code()),
                    ("state", state),
                ];
                room.set(&self.conditions, labels, 1);
            }
        }
        let is_active = |it: &ActiveWorkflow| it.record.status == WorkflowStatus::Active;
        for workflow in world.workflows().filter(is_active) {
            let record = &workflow.record;
            for scan in workflow.revision.definition.scans() {
                let Some(head) = world.head(&ScanKey::new(record.id, &scan.name)) else {
                    continue;
                };
                let [project, workflow, scan] = [
                    ("project", record.source.as_str()),
                    ("workflow", &*record.name),
                    ("scan", scan.name.as_str()),
                ];
                if let Some(at) = head.succeeded_at() {
                    room.set(&self.successes, [project, workflow, scan], seconds(at));
                }
                if let Some(end) = head.ended {
                    let labels = [project, workflow, scan, ("state", end.state.name())];
                    room.set(&self.ends, labels, seconds(end.at));
                }
            }
        }
        self.left_out.set(room.left_out);
    }
}

/// The room for series that is left.
struct Room {
    series: usize,
    left_out: i64,
}

impl Room {
    const fn new(series: usize) -> Self {
        Self {
            series,
            left_out: 0,
        }
    }

    fn set<const N: usize>(
        &mut self,
        family: &Family<Labels<N>, Gauge>,
        labels: [(&'static str, &str); N],
        value: i64,
    ) {
        let Some(left) = self.series.checked_sub(1) else {
            self.left_out += 1;
            return;
        };
        self.series = left;
        let labels = labels.map(|(name, value)| (name, value.to_owned()));
        family.get_or_create(&labels).set(value);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn series_over_the_bound_are_counted() {
        let family = Family::<Labels<1>, Gauge>::default();
        let mut room = Room::new(2);
        for scan in ["a", "b", "c", "d"] {
            room.set(&family, [("scan", scan)], 7);
        }
        assert_eq!(room.left_out, 2);
        let value = |scan: &str| family.get(&[("scan", scan.to_owned())]).map(|it| it.get());
        assert_eq!(["b", "c"].map(value), [Some(7), None]);
    }
}
