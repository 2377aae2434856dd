//! The task that applies the retention policies.

use std::collections::{BTreeSet, HashMap};
use std::time::Duration;

use model::retention::{RetentionPolicy, Stock};
use model::{StockMark, Timestamp, WorkflowId};

use super::pass::pass;
use crate::error::RemovalError;
use crate::handle::Handle;
use crate::limits::{DEADLINE_LOOK, RETENTION_REST};

/// The result for a workflow.
#[derive(Debug, Clone, Copy)]
struct Left {
    stock: Stock,
    /// When the next job becomes too old.
    next: Option<Timestamp>,
}

/// The results for all workflows that were checked, and when each is due by age.
#[derive(Debug, Default)]
struct Agenda {
    left: HashMap<WorkflowId, Left>,
    by_time: BTreeSet<(Timestamp, WorkflowId)>,
    /// Workflows that failed.
    again: BTreeSet<WorkflowId>,
}

impl Agenda {
    /// The workflows that are due by age, and those to retry.
    fn due(&mut self, now: Timestamp) -> BTreeSet<WorkflowId> {
        let mut due = std::mem::take(&mut self.again);
        let by_time = self.by_time.iter().take_while(|(next, _)| *next <= now);
        due.extend(by_time.map(|(_, workflow)| *workflow));
        due
    }

    fn leave(&mut self, workflow: WorkflowId, left: Left) {
        if let Some(next) = left.next {
            self.by_time.insert((next, workflow));
        }
        let before = self.left.insert(workflow, left);
        if let Some(before) = before.and_then(|before| before.next)
            && left.next != Some(before)
        {
            self.by_time.remove(&(before, workflow));
        }
    }

    fn next(&self) -> Option<Timestamp> {
        self.by_time.first().map(|(next, _)| *next)
    }

    /// How long to wait at most for a finished job. The wall clock may be set forward meanwhile, and failures must be
    /// retried. Without both there is no need to wake up.
    fn pause(&self, now: Timestamp) -> Duration {
        match self.next() {
            Some(next) => (next - now).to_std().unwrap_or_default().min(DEADLINE_LOOK),
            None if self.again.is_empty() => Duration::MAX,
            None => DEADLINE_LOOK,
        }
    }
}

impl Handle {
    /// Applies the policies to the workflows whose finished jobs have changed, and to those whose jobs become too old.
    pub(crate) async fn keep_to_policies(self) {
        if self.retention().keep_everything() {
            return std::future::pending().await;
        }
        let mut changes = self.state().changed();
        let mut agenda = Agenda::default();
        let mut seen = StockMark::default();
        let mut was_believed = true;
        loop {
            changes.mark_unchanged();
            let is_believed = self.ages().is_some();
            if is_believed && !was_believed {
                // The due times came from a clock that was not trusted.
                (agenda, seen) = (Agenda::default(), StockMark::default());
            }
            was_believed = is_believed;
            let (changed, mark) = self.state().read(|world| world.restocked_since(seen));
            seen = mark;
            let mut looks = agenda.due(self.now());
            looks.extend(changed);
            for workflow in looks {
                let policy = self.retention().of(workflow);
                let stock = self.state().read(|world| world.stock(workflow));
                if !is_due(&policy, stock, agenda.left.get(&workflow), self.now()) {
                    continue;
                }
                match self.keep_to(workflow, policy).await {
                    Ok(as_left) => agenda.leave(workflow, as_left),
                    Err(error) => {
                        tracing::warn!(%workflow, %error, "finished jobs cannot be removed");
                        agenda.again.insert(workflow);
                    }
                }
            }
            tokio::time::sleep(RETENTION_REST).await;
            let pause = match agenda.pause(self.now()) {
                pause if is_believed => pause,
                pause => pause.min(DEADLINE_LOOK),
            };
            tokio::select! {
                changed = changes.changed() => if changed.is_err() { return },
                () = tokio::time::sleep(pause) => {}
            }
        }
    }

    /// One pass.
    async fn keep_to(
        &self,
        workflow: WorkflowId,
        policy: RetentionPolicy,
    ) -> Result<Left, RemovalError> {
        let (retained, next) = pass(self, workflow, policy, false).await?;
        let (stock, removed) = (retained.kept(), retained.removed());
        if removed.jobs > 0 {
            let (jobs, bytes) = (removed.jobs, removed.bytes);
            tracing::info!(%workflow, jobs, bytes, "finished jobs are removed, as retention says");
        }
        Ok(Left { stock, next })
    }
}

/// Whether a job may have to be removed. If only protected jobs exceed the policy, nothing is removed until another job
/// ends.
fn is_due(policy: &RetentionPolicy, stock: Stock, left: Option<&Left>, now: Timestamp) -> bool {
    let Some(left) = left else {
        return policy.age.is_some() || policy.is_exceeded_by(stock);
    };
    if left.next.is_some_and(|next| next <= now) {
        return true;
    }
    let has_changed = left.stock != stock;
    has_changed && (policy.is_exceeded_by(stock) || (policy.age.is_some() && left.next.is_none()))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn workflow(number: u128) -> WorkflowId {
        WorkflowId::from_uuid(uuid::Uuid::from_u128(number))
    }

    fn at(seconds: i64) -> Timestamp {
        Timestamp::from_timestamp(seconds, 0).unwrap()
    }

    #[test]
    fn an_agenda_names_what_is_due_and_what_went_wrong() {
        let mut agenda = Agenda::default();
        let left = |next: Option<i64>| Left {
            stock: Stock::default(),
            next: next.map(at),
        };
        let (one, two, three) = (workflow(1), workflow(2), workflow(3));
        agenda.leave(one, left(Some(10)));
        agenda.leave(two, left(Some(20)));
        agenda.leave(three, left(None));
        assert_eq!(agenda.next(), Some(at(10)));
        assert_eq!(agenda.due(at(9)), BTreeSet::new());
        agenda.again.insert(three);
        assert_eq!(agenda.due(at(10)), BTreeSet::from([one, three]));
        assert_eq!(
            agenda.due(at(10)),
            BTreeSet::from([one]),
            "until it is left"
        );
        agenda.leave(one, left(Some(30)));
        agenda.leave(two, left(Some(20)));
        assert_eq!(agenda.due(at(29)), BTreeSet::from([two]));
        agenda.leave(two, left(None));
        assert_eq!(
            (agenda.next(), agenda.due(at(29))),
            (Some(at(30)), BTreeSet::new())
        );
    }

    #[test]
    fn what_went_wrong_is_tried_again_though_nothing_changes() {
        let mut agenda = Agenda::default();
        assert_eq!(agenda.pause(at(0)), Duration::MAX);
        agenda.again.insert(workflow(1));
        assert_eq!(agenda.pause(at(0)), DEADLINE_LOOK);
        let next = Some(at(5));
        let stock = Stock::default();
        agenda.leave(workflow(2), Left { stock, next });
        assert_eq!(agenda.pause(at(0)), Duration::from_secs(5));
        assert_eq!(agenda.pause(at(9)), Duration::ZERO);
    }
}
