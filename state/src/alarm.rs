//! The one place where a failure that the process must not survive is told.
//!
//! A sync that failed leaves nobody knowing what is on disk, and a second try says nothing either. Whoever sees one
//! rings here; the daemon waits for it and ends.

use model::error_chain;
use store::{Action, DiskError};
use tokio::sync::watch;

use crate::error::Fatal;

/// Rings once; the first failure counts. Cheap to clone.
#[derive(Clone)]
pub(crate) struct Alarm(watch::Sender<Option<Fatal>>);

impl Alarm {
    pub(crate) fn new() -> Self {
        Self(watch::Sender::new(None))
    }

    /// Reports a failure with everything that led to it.
    pub(crate) fn ring(&self, error: &dyn std::error::Error) {
        self.ring_with(error_chain(error));
    }

    pub(crate) fn ring_with(&self, message: String) {
        tracing::error!(message, "the state stops");
        self.0.send_if_modified(|fatal| {
            let is_first = fatal.is_none();
            fatal.get_or_insert(Fatal { message });
            is_first
        });
    }

    /// Rings when a failure means that what is durable is not known any more.
    pub(crate) fn watch(&self, error: &DiskError) {
        match error.action() {
            Action::SyncFile | Action::SyncFolder | Action::SyncFileSystem => self.ring(error),
            Action::Allocate
            | Action::ChangeMode
            | Action::CreateFile
            | Action::CreateFolder
            | Action::Inspect
            | Action::Link
            | Action::ListFolder
            | Action::Lock
            | Action::MeasureSpace
            | Action::Open
            | Action::Read
            | Action::RemoveFile
            | Action::RemoveFolder
            | Action::Rename
            | Action::Thread
            | Action::Write => {}
        }
    }

    /// The first failure, if there was one.
    pub(crate) fn first(&self) -> Option<Fatal> {
        self.0.borrow().clone()
    }

    /// Waits for the first failure.
    pub(crate) async fn rung(&self) -> Fatal {
        let mut fatal = self.0.subscribe();
        loop {
            if let Some(fatal) = fatal.borrow_and_update().clone() {
                return fatal;
            }
            if fatal.changed().await.is_err() {
                // Not while `self` holds the sender.
                std::future::pending::<()>().await;
            }
        }
    }
}
