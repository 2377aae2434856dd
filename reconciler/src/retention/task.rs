//! The task that applies the retention policies.

use std::collections::HashMap;
use std::time::Duration;

use model::retention::{RetentionPolicy, Stock};
use model::{Timestamp, WorkflowId};

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

/// How long to wait at most for a finished job, if the next one becomes too old at `next`. The wall clock may be set forward
/// meanwhile. Without such a time there is no need to wake up, unless something `must_be_repeated`.
fn pause(next: Option<Timestamp>, now: Timestamp, must_be_repeated: bool) -> Duration {
    match next {
        Some(next) => (next - now).to_std().unwrap_or_default().min(DEADLINE_LOOK),
        None if must_be_repeated => DEADLINE_LOOK,
        None => Duration::MAX,
    }
}

impl Handle {
    /// Applies the policies to the workflows whose finished jobs have changed, and to those whose jobs become too old.
    pub(crate) async fn keep_to_policies(self) {
        if self.retention().keep_everything() {
            return std::future::pending().await;
        }
        let mut changes = self.state().changed();
        let mut left: HashMap<WorkflowId, Left> = HashMap::new();
        let mut was_believed = true;
        loop {
            changes.mark_unchanged();
            let is_believed = self.ages().is_some();
            if is_believed && !was_believed {
                // The due times came from a clock that was not trusted.
                left.clear();
            }
            was_believed = is_believed;
            let mut has_failed = false;
            for (workflow, stock) in self.state().read(|world| world.stocks().clone()) {
                let policy = self.retention().of(workflow);
                if !is_due(&policy, stock, left.get(&workflow), self.now()) {
                    continue;
                }
                match self.keep_to(workflow, policy).await {
                    Ok(as_left) => drop(left.insert(workflow, as_left)),
                    Err(error) => {
                        tracing::warn!(%workflow, %error, "finished jobs cannot be removed");
                        has_failed = true;
                    }
                }
            }
            tokio::time::sleep(RETENTION_REST).await;
            let next = left.values().filter_map(|left| left.next).min();
            let pause = pause(next, self.now(), has_failed || !is_believed);
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

    fn at(seconds: i64) -> Timestamp {
        Timestamp::from_timestamp(seconds, 0).unwrap()
    }

    #[test]
    fn what_went_wrong_is_tried_again_though_nothing_changes() {
        assert_eq!(pause(None, at(0), false), Duration::MAX);
        assert_eq!(pause(None, at(0), true), DEADLINE_LOOK);
        let next = Some(at(5));
        assert_eq!(pause(next, at(0), false), Duration::from_secs(5));
        assert_eq!(pause(next, at(9), false), Duration::ZERO);
    }

    #[test]
    fn a_workflow_is_due_when_a_job_is_too_old_or_there_are_too_many() {
        let (policy, few) = (RetentionPolicy::default(), Stock { jobs: 3, bytes: 0 });
        let policy = RetentionPolicy {
            jobs: Some(2),
            ..policy
        };
        let left = |jobs, next| Left {
            stock: Stock { jobs, bytes: 0 },
            next,
        };
        let is_due = |left: Left| is_due(&policy, few, Some(&left), at(10));
        assert!(!is_due(left(3, None)), "what is left is protected");
        assert!(is_due(left(2, None)), "there is one more");
        assert!(!is_due(left(3, Some(at(11)))));
        assert!(is_due(left(3, Some(at(10)))));
    }
}
