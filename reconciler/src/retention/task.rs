//! The task that enforces the retention policies.

use std::collections::HashMap;
use std::time::Duration;

use model::retention::{RetentionPolicy, Stock};
use model::{Timestamp, WorkflowId};

use super::pass::pass;
use crate::error::RemovalError;
use crate::handle::Handle;
use crate::limits::{DEADLINE_CHECK, RETENTION_REST};

#[derive(Debug, Clone, Copy)]
struct Left {
    stock: Stock,
    /// The time when the next job becomes too old.
    next: Option<Timestamp>,
}

/// The longest wait for a finished job, if the next job becomes too old at `next`. The wait is bounded because the wall
/// clock may be set forward. Without `next` the task need not wake up, unless `must_be_repeated`.
fn pause(next: Option<Timestamp>, now: Timestamp, must_be_repeated: bool) -> Duration {
    match next {
        Some(next) => (next - now)
            .to_std()
            .unwrap_or_default()
            .min(DEADLINE_CHECK),
        None if must_be_repeated => DEADLINE_CHECK,
        None => Duration::MAX,
    }
}

/// Applies the retention policies to workflows whose finished jobs have changed or become too old.
pub(crate) async fn enforce_retention(handle: Handle) {
    let retention = &handle.settings().retention;
    if retention.keep_everything() {
        return std::future::pending().await;
    }
    let mut changes = handle.state().changed();
    let mut left: HashMap<WorkflowId, Left> = HashMap::new();
    let mut was_trusted = true;
    loop {
        changes.mark_unchanged();
        let is_trusted = handle.clock().ages().is_some();
        if is_trusted && !was_trusted {
            // The due times were computed with a clock that was not trusted.
            left.clear();
        }
        was_trusted = is_trusted;
        let mut has_failed = false;
        for (workflow, stock) in handle.state().read(|world| world.stocks().clone()) {
            let policy = retention.of(workflow);
            if !is_due(&policy, stock, left.get(&workflow), handle.now()) {
                continue;
            }
            match enforce_policy(&handle, workflow, policy).await {
                Ok(as_left) => drop(left.insert(workflow, as_left)),
                Err(error) => {
                    tracing::warn!(%workflow, %error, "finished jobs cannot be removed");
                    has_failed = true;
                }
            }
        }
        tokio::time::sleep(RETENTION_REST).await;
        let next = left.values().filter_map(|left| left.next).min();
        let pause = pause(next, handle.now(), has_failed || !is_trusted);
        tokio::select! {
            changed = changes.changed() => if changed.is_err() { return },
            () = tokio::time::sleep(pause) => {}
        }
    }
}

async fn enforce_policy(
    handle: &Handle,
    workflow: WorkflowId,
    policy: RetentionPolicy,
) -> Result<Left, RemovalError> {
    let (retained, next) = pass(handle, workflow, policy, false).await?;
    let (stock, removed) = (retained.kept(), retained.removed());
    if removed.jobs > 0 {
        let (jobs, bytes) = (removed.jobs, removed.bytes);
        tracing::info!(%workflow, jobs, bytes, "finished jobs are removed by the retention policy");
    }
    Ok(Left { stock, next })
}

/// True if a job may have to be removed. If only protected jobs exceed the policy, nothing is removed until another job ends.
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
    fn a_failure_is_retried_without_a_change() {
        assert_eq!(pause(None, at(0), false), Duration::MAX);
        assert_eq!(pause(None, at(0), true), DEADLINE_CHECK);
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
        assert!(!is_due(left(3, None)), "the remaining jobs are protected");
        assert!(is_due(left(2, None)), "there is one more job");
        assert!(!is_due(left(3, Some(at(11)))));
        assert!(is_due(left(3, Some(at(10)))));
    }
}
