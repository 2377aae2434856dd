//! The present state of a scan's expression, for an evaluation outside of the committer.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use workflow::Expression;

use super::active;
use crate::ScanKey;
use crate::decide::Refusal;
use crate::read_set::{PreparedExpression, cost};
use crate::recent::Recent;
use crate::revision::ActiveWorkflow;
use crate::view::{View, histories, unreadable};
use crate::world::World;

/// A scan of an active workflow that is started by an expression.
#[derive(Debug, Clone)]
pub struct ExplainedTrigger {
    workflow: ActiveWorkflow,
    key: ScanKey,
    expression: Expression,
}

impl ExplainedTrigger {
    /// None if the scan has no expression or no longer exists.
    pub fn of(world: &World, key: &ScanKey) -> Option<Self> {
        let workflow = active(world, key)?;
        let expression = workflow.scan(&key.scan)?.on.expr.clone()?;
        Some(Self {
            workflow,
            key: key.clone(),
            expression,
        })
    }

    pub const fn scan(&self) -> &ScanKey {
        &self.key
    }

    /// Upper bound of the cost of evaluating it, in the units of [`Expression::cost`].
    pub fn cost(&self) -> u64 {
        cost(&self.workflow, &self.expression)
    }

    /// The scans whose newest jobs the expression reads.
    pub fn histories(&self, world: &World) -> BTreeSet<ScanKey> {
        histories(world, &self.workflow, self.expression.references())
    }

    /// Collects the inputs of the expression. `read` supplies the newest jobs of scans that the world does not hold.
    ///
    /// # Errors
    /// [`Refusal::HistoryUnreadable`] if neither the world nor `read` holds them.
    pub fn prepare(
        &self,
        world: &World,
        read: &BTreeMap<ScanKey, Arc<Recent>>,
    ) -> Result<PreparedExpression, Refusal> {
        let view = View::with(world, read);
        let references = self.expression.references();
        if let Some(scan) = unreadable(&view, &self.workflow, references) {
            return Err(Refusal::HistoryUnreadable {
                scan: scan.scan.to_string(),
            });
        }
        Ok(view.prepare(&self.workflow, &self.key, &self.expression, None))
    }
}
