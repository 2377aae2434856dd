//! Failures that end the process.
//!
//! After a failed sync nobody knows what is on disk, and a second sync does not tell either. The code that sees such a
//! failure rings the alarm. The daemon waits for the alarm and ends.

use model::error_chain;
use store::{Fault, FaultKind};
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
    pub(crate) fn ring(&self, error: &(dyn std::error::Error + 'static)) {
        self.ring_for(Fatal {
            message: error_chain(error),
            is_pulled_away: is_pulled_away(error),
        });
    }

    pub(crate) fn ring_with(&self, message: String) {
        self.ring_for(Fatal {
            message,
            is_pulled_away: false,
        });
    }

    fn ring_for(&self, failure: Fatal) {
        tracing::error!(message = failure.message, "the state stops");
        self.0.send_if_modified(|fatal| {
            let is_first = fatal.is_none();
            fatal.get_or_insert(failure);
            is_first
        });
    }

    /// Rings when a failure means that what is durable is not known any more.
    pub(crate) fn watch(&self, fault: &Fault) {
        match fault.kind() {
            FaultKind::Unsynced | FaultKind::PulledAway => self.ring(fault),
            FaultKind::Full | FaultKind::Other => {}
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

/// Whether the store named this as a cause of the error.
fn is_pulled_away(error: &(dyn std::error::Error + 'static)) -> bool {
    let causes = std::iter::successors(Some(error), |cause| cause.source());
    causes
        .filter_map(|cause| cause.downcast_ref::<Fault>())
        .any(|fault| fault.kind() == FaultKind::PulledAway)
}
