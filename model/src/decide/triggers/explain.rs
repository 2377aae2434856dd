//! How the expression of a scan stands now, for whoever evaluates it beside the committer.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use workflow::Expression;

use super::active;
use crate::ScanKey;
use crate::decide::Refusal;
use crate::read_set::PreparedExpression;
use crate::recent::Recent;
use crate::revision::ActiveWorkflow;
use crate::view::{View, histories, unreadable};
use crate::world::World;

/// A scan of an active workflow that starts by an expression.
#[derive(Debug, Clone)]
pub struct ExplainedTrigger {
    workflow: ActiveWorkflow,
    key: ScanKey,
}

impl ExplainedTrigger {
    /// None when the scan has no expression, or is gone.
    pub fn of(world: &World, key: &ScanKey) -> Option<Self> {
        let trigger = Self {
            workflow: active(world, key)?,
            key: key.clone(),
        };
        trigger.expression()?;
        Some(trigger)
    }

    /// The scans whose newest jobs the expression reads.
    pub fn histories(&self, world: &World) -> BTreeSet<ScanKey> {
        self.expression().map_or_else(BTreeSet::new, |expression| {
            histories(world, &self.workflow, expression.references())
        })
    }

    /// Takes from the world what the expression reads. `read` has the newest jobs of scans of which the world has none at
    /// hand.
    ///
    /// # Errors
    /// [`Refusal::HistoryUnreadable`] when neither has them.
    pub fn prepare(
        &self,
        world: &World,
        read: &BTreeMap<ScanKey, Arc<Recent>>,
    ) -> Result<Option<PreparedExpression>, Refusal> {
        let Some(expression) = self.expression() else {
            return Ok(None);
        };
        let view = View::with(world, read);
        if let Some(scan) = unreadable(&view, &self.workflow, expression.references()) {
            return Err(Refusal::HistoryUnreadable {
                scan: scan.scan.to_string(),
            });
        }
        Ok(Some(view.prepare(
            &self.workflow,
            &self.key,
            expression,
            None,
        )))
    }

    fn expression(&self) -> Option<&Expression> {
        self.workflow.scan(&self.key.scan)?.on.expr.as_ref()
    }
}
