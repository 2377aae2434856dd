//! The known ids.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;
use std::sync::atomic::AtomicU64;

use crate::ids::{ServerId, Tag};

/// All known ids. It is immutable and replaced as a whole; a clone with one changed server is cheap.
#[derive(Debug, Clone, Default)]
pub struct Table {
    pub servers: HashMap<ServerId, Server>,
}

#[derive(Debug, Clone, Default)]
pub struct Server {
    /// The live tags that were made one by one.
    pub tags: Arc<HashSet<Tag>>,
    /// Whoever replaces a server in the table keeps its counts.
    pub counts: Arc<Counts>,
}

/// What of a server was answered and not reported as a [`crate::Hit`].
#[derive(Debug, Default)]
pub struct Counts {
    /// A tag that is not live.
    pub unknown_tag: AtomicU64,
    /// The channel was full.
    pub dropped: AtomicU64,
}
