//! Measurements of commits.

use std::sync::{Arc, OnceLock};
use std::time::Duration;

/// The measurements of a commit that has just succeeded.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct CommitMeasure {
    /// The number of commands whose decisions share the commit.
    pub commands: usize,
    pub bytes: usize,
    /// The time to decide the commands.
    pub deciding: Duration,
    /// The time until the commit was durable.
    pub took: Duration,
}

/// Called with the measurements of every commit, on the committer's thread.
pub(crate) type Measuring = Arc<OnceLock<Box<dyn Fn(&CommitMeasure) + Send + Sync>>>;
