//! Where the expressions of a decision are evaluated.

use std::sync::Arc;

use crate::limits::EVALUATIONS_COST;

/// How a decision gets the values of its expressions (docs/decisions/0012). Without them, the decision changes nothing
/// and reports it.
#[derive(Debug, Clone)]
pub enum Evaluate<T> {
    /// The decision evaluates them, up to this static cost.
    UpTo(u64),
    /// They were evaluated outside of the committer. The decision uses the result if their inputs have not changed.
    Done(Arc<T>),
}

impl<T> Evaluate<T> {
    /// Evaluate in the decision if this does not delay other commands.
    pub const CHEAP: Self = Self::UpTo(EVALUATIONS_COST);

    /// Evaluate in the decision at any cost.
    pub const HERE: Self = Self::UpTo(u64::MAX);
}
