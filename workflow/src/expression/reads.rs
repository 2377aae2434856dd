//! Which jobs an evaluation reads, for those who want to know why a value is what it is.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex, PoisonError};

/// The jobs that an evaluation has read, by scan; a scan of which only the summary was asked is there without any.
pub(super) type Reads = BTreeMap<String, BTreeSet<String>>;

/// Notes what is read, when somebody wants to know.
#[derive(Debug, Clone, Default)]
pub(super) struct Recorder(Option<Arc<Mutex<Reads>>>);

impl Recorder {
    /// One that notes.
    pub(super) fn on() -> Self {
        Self(Some(Arc::default()))
    }

    /// What was read since the last call.
    pub(super) fn take(&self) -> Reads {
        let lock = |reads: &Arc<Mutex<Reads>>| {
            std::mem::take(&mut *reads.lock().unwrap_or_else(PoisonError::into_inner))
        };
        self.0.as_ref().map(lock).unwrap_or_default()
    }

    /// Notes that a scan is asked.
    pub(super) fn scan(&self, scan: &str) {
        self.note(scan, None);
    }

    /// Notes that a job of a scan is read.
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
