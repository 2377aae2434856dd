//! Failures that end the process.
//!
//! After a failed sync nobody knows what is on disk, and a second sync does not help. The code that sees such a failure
//! rings the alarm. The daemon waits for the alarm and ends.

use std::sync::Arc;

use model::error_chain;
use store::{Fault, FaultKind};
use tokio::sync::SetOnce;

use crate::error::Fatal;

#[derive(Clone)]
pub(crate) struct Alarm(Arc<SetOnce<Fatal>>);

impl Alarm {
    pub(crate) fn new() -> Self {
        Self(Arc::default())
    }

    /// Reports a failure with its causes.
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
        // A later failure changes nothing.
        drop(self.0.set(failure));
    }

    /// Rings if the failure leaves it unknown what is durable.
    pub(crate) fn watch(&self, fault: &Fault) {
        match fault.kind() {
            FaultKind::Unsynced | FaultKind::PulledAway => self.ring(fault),
            FaultKind::Full | FaultKind::Other => {}
        }
    }

    pub(crate) fn first(&self) -> Option<Fatal> {
        self.0.get().cloned()
    }

    pub(crate) async fn rung(&self) -> Fatal {
        self.0.wait().await.clone()
    }
}

/// True if a cause of the error is a file or folder that was pulled away.
fn is_pulled_away(error: &(dyn std::error::Error + 'static)) -> bool {
    let causes = std::iter::successors(Some(error), |cause| cause.source());
    causes
        .filter_map(|cause| cause.downcast_ref::<Fault>())
        .any(|fault| fault.kind() == FaultKind::PulledAway)
}
