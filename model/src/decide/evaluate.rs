//! Where the expressions of a decision are evaluated.

use std::sync::Arc;

use crate::limits::EVALUATIONS_COST;

/// How a decision gets the values of its expressions (docs/decisions/0012). A decision that does not get them changes
/// nothing and says so.
#[derive(Debug, Clone)]
pub enum Evaluate<T> {
    /// It evaluates them, up to this static cost.
    UpTo(u64),
    /// They were evaluated outside the committer. The decision uses the result if they would still read the same.
    Done(Arc<T>),
}

impl<T> Evaluate<T> {
    /// In the decision, if that holds up nobody.
    pub const CHEAP: Self = Self::UpTo(EVALUATIONS_COST);

    /// In the decision, whatever it costs.
    pub const HERE: Self = Self::UpTo(u64::MAX);
}
