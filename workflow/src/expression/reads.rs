//! Records which jobs an evaluation reads, for explanations.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex, PoisonError};

/// The jobs that an evaluation has read, by scan. If only a scan's summary was read, the scan is listed without jobs.
pub(super) type Reads = BTreeMap<String, BTreeSet<String>>;

/// Records the reads, if recording is on.
#[derive(Debug, Clone, Default)]
pub(super) struct Recorder(Option<Arc<Mutex<Reads>>>);

impl Recorder {
    /// A recorder that is on.
    pub(super) fn on() -> Self {
        Self(Some(Arc::default()))
    }

    /// The reads since the last call.
    pub(super) fn take(&self) -> Reads {
        let lock = |reads: &Arc<Mutex<Reads>>| {
            std::mem::take(&mut *reads.lock().unwrap_or_else(PoisonError::into_inner))
        };
        self.0.as_ref().map(lock).unwrap_or_default()
    }

    /// Records that a scan is read.
    pub(super) fn scan(&self, scan: &str) {
        self.note(scan, None);
    }

    /// Records that a job of a scan is read.
    pub(super) fn job(&self, scan: &str, job: &str) {
        self.note(scan, Some(job));
    }

    fn note(&self, scan: &str, job: Option<&str>) {
        if let Some(reads) = &self.0 {
            let mut reads = reads.lock().unwrap_or_else(PoisonError::into_inner);
            let jobs = reads.entry(scan.to_owned()).or_default();
            jobs.extend(job.map(str::to_owned));
        }
    }
}
