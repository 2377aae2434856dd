//! What is measured of commits.

use std::sync::{Arc, OnceLock};
use std::time::Duration;

/// A commit that has just succeeded.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct CommitMeasure {
    /// The commands whose decisions share it.
    pub commands: usize,
    pub bytes: usize,
    /// The time to decide them.
    pub deciding: Duration,
    /// The time until it was durable.
    pub took: Duration,
}

/// Gets every measure, on the thread that commits.
pub(crate) type Measuring = Arc<OnceLock<Box<dyn Fn(&CommitMeasure) + Send + Sync>>>;
