//! The task that keeps to the policies by itself.

use std::collections::HashMap;
use std::time::Duration;

use model::retention::{RetentionPolicy, Stock};
use model::{Timestamp, WorkflowId};

use super::pass::{Manner, Pass};
use crate::error::RemovalError;
use crate::handle::Handle;
use crate::limits::{DEADLINE_LOOK, PRUNED_AT_ONCE, RETENTION_REST};

/// How a workflow was left.
#[derive(Debug, Clone, Copy)]
struct Left {
    stock: Stock,
    /// When time alone makes a job go.
    next: Option<Timestamp>,
}

impl Handle {
    /// Looks at every workflow with a policy whenever the world has changed, and removes what the policy does not keep.
    pub(crate) async fn keep_to_policies(self) {
        if self.retention().keep_everything() {
            return std::future::pending().await;
        }
        let mut changes = self.state().subscribe();
        let mut left: HashMap<WorkflowId, Left> = HashMap::new();
        loop {
            changes.mark_unchanged();
            for (workflow, stock) in self.stocks() {
                let policy = self.retention().of(workflow);
                if !is_due(&policy, stock, left.get(&workflow), self.now()) {
                    continue;
                }
                match self.keep_to(workflow, policy).await {
                    Ok(as_left) => drop(left.insert(workflow, as_left)),
                    Err(error) => {
                        // Tried again at the next look.
                        tracing::warn!(%workflow, %error, "finished jobs cannot be removed");
                    }
                }
            }
            tokio::time::sleep(RETENTION_REST).await;
            let pause = self.until(left.values().filter_map(|left| left.next).min());
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
        let mut pass = Pass::begin(self, workflow, policy, Manner::Remove).await?;
        let next = pass.run(PRUNED_AT_ONCE).await?;
        let stock = pass.stock();
        let removed = pass.report().removed();
        if removed.jobs > 0 {
            let (jobs, bytes) = (removed.jobs, removed.bytes);
            tracing::info!(%workflow, jobs, bytes, "finished jobs are removed, as retention says");
        }
        Ok(Left { stock, next })
    }

    /// What there is of each workflow with a policy.
    fn stocks(&self) -> HashMap<WorkflowId, Stock> {
        self.state().read(|world| {
            let mut stocks: HashMap<WorkflowId, Stock> = HashMap::new();
            let heads = world.heads();
            for head in heads.filter(|it| !self.retention().of(it.workflow).keeps_everything()) {
                let retained = world.retained(head);
                let stock = stocks.entry(head.workflow).or_default();
                stock.jobs += retained.jobs();
                stock.bytes += retained.bytes;
            }
            stocks
        })
    }

    fn until(&self, next: Option<Timestamp>) -> Duration {
        let wait = next.map(|next| (next - self.now()).to_std().unwrap_or_default());
        // The wall clock may be set forward meanwhile; without a moment to wait for nothing can come of that.
        wait.map_or(Duration::MAX, |wait| wait.min(DEADLINE_LOOK))
    }
}

/// Whether something may have to go. Where all that is too much is protected, nothing does until another job ends.
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
