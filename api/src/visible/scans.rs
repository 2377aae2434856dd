//! Scans, revisions and sources as the caller sees them.

use std::sync::Arc;

use model::retention::Position;
use model::{RevisionRecord, RevisionRef, ScanKey, Source, Timestamp, TipRecord, WorkflowRef};
use reconciler::Why;
use state::{HistoryPage, Ledger, ReadError, StoredRevision};

use super::{Shown, Visible};
use crate::convert::sources::PollStatus;
use crate::failure::Failure;

impl Visible {
    pub(crate) async fn why(
        &self,
        scan: &Shown<ScanKey>,
        at: Option<Timestamp>,
        limit: usize,
    ) -> Result<Why, Failure> {
        Ok(self.handle.why(scan, at, limit).await?)
    }

    pub(crate) async fn removed_by(
        &self,
        scan: &Shown<ScanKey>,
    ) -> Result<Option<RevisionRef>, Failure> {
        Ok(self.state().removed_by(scan).await?)
    }

    pub(crate) async fn history(
        &self,
        scan: &Shown<ScanKey>,
        before: Option<Position>,
        limit: usize,
    ) -> Result<HistoryPage, Failure> {
        Ok(self.state().history(scan, before, limit).await?)
    }

    pub(crate) async fn ledger(
        &self,
        scan: &Shown<ScanKey>,
        before: Option<Position>,
        limit: usize,
    ) -> Result<Ledger, Failure> {
        Ok(self.state().ledger(scan, None, before, limit).await?)
    }

    pub(crate) async fn revisions(
        &self,
        workflow: &Shown<WorkflowRef>,
    ) -> Result<Vec<RevisionRef>, Failure> {
        Ok(self.state().revisions(workflow.id).await?)
    }

    /// The records of these revisions. None for a record that cannot be read.
    pub(crate) async fn revision_records(
        &self,
        workflow: &Shown<WorkflowRef>,
        revisions: &[RevisionRef],
    ) -> Result<Vec<Option<RevisionRecord>>, Failure> {
        Ok(self
            .state()
            .revision_records(workflow.id, revisions)
            .await?)
    }

    pub(crate) async fn revision_text(
        &self,
        workflow: &Shown<WorkflowRef>,
        revision: &RevisionRef,
    ) -> Result<StoredRevision, ReadError> {
        self.state().revision_text(workflow.id, revision).await
    }

    /// Whether the repository of a source can be reached, and when it was last read.
    pub(crate) fn poll_status(&self, source: &Source) -> PollStatus<'_> {
        PollStatus {
            access: self.handle.sources().access(&source.name),
            checked_at: self.handle.sources().checked_at(&source.name),
        }
    }

    /// The record of the newest tip. None if there is no tip or the record cannot be read.
    pub(crate) async fn tip_record(&self, source: &Shown<Arc<Source>>) -> Option<TipRecord> {
        let tip = source.tip.as_ref()?;
        self.state().tip_record(&source.name, tip).await
    }

    pub(crate) async fn tips(
        &self,
        source: &Shown<Arc<Source>>,
        last: u64,
        limit: usize,
    ) -> Result<Vec<TipRecord>, Failure> {
        Ok(self.state().tips(&source.name, last, limit).await?)
    }
}
