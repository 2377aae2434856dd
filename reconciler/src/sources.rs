//! The sources of the configuration, by name.

use std::collections::HashMap;
use std::sync::Arc;

use model::{SourceName, Timestamp};
use tokio::sync::{Semaphore, watch};

use crate::error::SourceError;
use crate::git::Access;
use crate::limits::FILE_STREAMS;
use crate::source::SourceHandle;

pub struct Sources {
    by_name: HashMap<SourceName, SourceHandle>,
    /// Permits for workers that read files of repositories at the same time.
    pub(crate) file_streams: Arc<Semaphore>,
    stopping: watch::Receiver<bool>,
}

impl Sources {
    pub(crate) fn new(sources: &[SourceHandle], stopping: watch::Receiver<bool>) -> Self {
        let by_name = sources
            .iter()
            .map(|source| (source.name().clone(), source.clone()))
            .collect();
        Self {
            by_name,
            file_streams: Arc::new(Semaphore::new(FILE_STREAMS)),
            stopping,
        }
    }

    pub(crate) fn get(&self, name: &SourceName) -> Option<&SourceHandle> {
        self.by_name.get(name)
    }

    /// Requests a poll of a source. With `wait`, returns after the poll.
    pub async fn sync(&self, name: &SourceName, wait: bool) -> Result<(), SourceError> {
        let source = self
            .get(name)
            .ok_or_else(|| SourceError::NoSuchSource { name: name.clone() })?;
        let request = source.request();
        if !wait {
            return Ok(());
        }
        let mut stopping = self.stopping.clone();
        tokio::select! {
            () = source.handled(request) => Ok(()),
            _ = stopping.wait_for(|stopping| *stopping) => Err(SourceError::Stopping),
        }
    }

    /// When the repository was last read successfully, since the daemon started.
    pub fn checked_at(&self, name: &SourceName) -> Option<Timestamp> {
        self.get(name).and_then(SourceHandle::checked_at)
    }

    pub fn access(&self, name: &SourceName) -> Option<&Access> {
        self.get(name).map(SourceHandle::access)
    }
}
