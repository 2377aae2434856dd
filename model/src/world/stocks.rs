//! How many finished jobs each workflow has and how many bytes they take, and which workflows have changed since a
//! mark. Without this index a reader would add up all scans.

use std::collections::{BTreeMap, HashMap};

use crate::WorkflowId;
use crate::retention::Stock;
use crate::scan_head::Totals;

/// A point in the changes of one world. The default is its beginning.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Default)]
pub struct StockMark(u64);

/// The totals of all workflows, and the order of their newest changes.
#[derive(Debug, Clone, Default)]
pub(super) struct Stocks {
    by_workflow: HashMap<WorkflowId, (Stock, StockMark)>,
    by_change: BTreeMap<StockMark, WorkflowId>,
    latest: StockMark,
}

impl Stocks {
    pub(super) fn of(&self, workflow: WorkflowId) -> Stock {
        let known = self.by_workflow.get(&workflow);
        known.map_or_else(Stock::default, |(stock, _)| *stock)
    }

    /// The workflows that have changed since `mark`, and the present mark.
    pub(super) fn changed_since(&self, mark: StockMark) -> (Vec<WorkflowId>, StockMark) {
        let later = self.by_change.range(StockMark(mark.0 + 1)..);
        let workflows = later.map(|(_, workflow)| *workflow).collect();
        (workflows, self.latest)
    }

    /// Records the totals of one scan's finished jobs before and after a change.
    pub(super) fn change(&mut self, workflow: WorkflowId, before: Totals, after: Totals) {
        if (before.jobs(), before.bytes) == (after.jobs(), after.bytes) {
            return;
        }
        self.latest.0 += 1;
        let (stock, changed) = self.by_workflow.entry(workflow).or_default();
        stock.jobs = (stock.jobs + after.jobs()).saturating_sub(before.jobs());
        stock.bytes = (stock.bytes + after.bytes).saturating_sub(before.bytes);
        self.by_change.remove(changed);
        *changed = self.latest;
        self.by_change.insert(self.latest, workflow);
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::Actor;
    use crate::decide::DeleteJob;
    use crate::testing::{House, NIGHTLY, complete};

    /// Adds up what there is, and holds the stock to it.
    fn counted(house: &House, workflow: WorkflowId) -> Stock {
        let heads = house.world.heads().filter(|head| head.workflow == workflow);
        let retained = heads.map(|head| house.world.retained(head));
        let sum = retained.fold(Stock::default(), |sum, retained| Stock {
            jobs: sum.jobs + retained.jobs(),
            bytes: sum.bytes + retained.bytes,
        });
        assert_eq!(house.world.stock(workflow), sum);
        sum
    }

    #[test]
    fn only_workflows_whose_finished_jobs_have_changed_are_named() {
        let mut house = House::new();
        let (job, token) = house.running();
        let workflow = house.world.job(job).unwrap().workflow.id;
        let other = house.push("other", NIGHTLY);
        let since = |house: &House, mark| house.world.restocked_since(mark);
        let (changed, mark) = since(&house, StockMark::default());
        assert_eq!((changed, counted(&house, workflow).jobs), (Vec::new(), 0));

        let ended = house.run(complete(job, token)).unwrap();
        let (changed, mark) = since(&house, mark);
        assert_eq!(changed, [workflow]);
        assert_eq!(counted(&house, workflow).bytes, 300);
        // A dispatch and a claim end nothing.
        let runner = house.world.runners().next().unwrap().id;
        let second = house.dispatch(other, "probe", json!({})).unwrap();
        let token = house.claim(second, runner).unwrap();
        assert_eq!(since(&house, mark), (Vec::new(), mark));

        house.run(complete(second, token)).unwrap();
        let delete = DeleteJob {
            job: ended,
            actor: Actor::Daemon,
        };
        house.run(delete).unwrap();
        let (changed, mark) = since(&house, mark);
        assert_eq!(changed, [other, workflow]);
        assert_eq!(counted(&house, workflow), Stock::default());
        assert_eq!(counted(&house, other).jobs, 1);
        let (all, _) = since(&house, StockMark::default());
        assert_eq!((all, since(&house, mark).0), (changed, Vec::new()));
    }
}
