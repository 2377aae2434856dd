//! Why a job has to stop, told once to everyone who works on it. The first reason stands; whoever starts to listen later
//! hears it too.

use tokio::sync::watch;

/// Why a job stops before its steps are through.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Stop {
    /// The daemon said that the job was cancelled.
    Cancelled,
    /// The scan's time is up.
    DeadlinePassed,
    /// The worker token ends.
    SessionExpired,
    /// The daemon has not been heard for so long that it may start a retry.
    ContactLost,
    /// The runner was told to stop at once.
    RunnerStopped,
    /// The daemon has closed the job or does not know it any more; nobody waits for a completion.
    JobOver,
    /// The log cannot be kept.
    LogFailed(String),
}

impl Stop {
    /// The reason as a line of the job's log.
    pub(crate) const fn explanation(&self) -> &'static str {
        match self {
            Self::Cancelled => "the job was cancelled",
            Self::DeadlinePassed => "the scan's time is up",
            Self::SessionExpired => "the worker session has ended",
            Self::ContactLost => "the daemon has not been heard for too long",
            Self::RunnerStopped => "the runner was told to stop at once",
            Self::JobOver => "the daemon has closed the job",
            Self::LogFailed(_) => "the log cannot be kept",
        }
    }
}

/// One job's stop reason. Clones share it.
#[derive(Debug, Clone)]
pub(crate) struct StopSignal(watch::Sender<Option<Stop>>);

impl StopSignal {
    pub(crate) fn new() -> Self {
        Self(watch::Sender::new(None))
    }

    /// Asks the job to stop. Only the first reason counts.
    pub(crate) fn request(&self, reason: Stop) {
        self.0.send_if_modified(|current| {
            let first = current.is_none();
            if first {
                *current = Some(reason);
            }
            first
        });
    }

    /// Why the job stops, if it does.
    pub(crate) fn reason(&self) -> Option<Stop> {
        self.0.borrow().clone()
    }

    /// Waits until the job has to stop.
    pub(crate) async fn requested(&self) -> Stop {
        let mut receiver = self.0.subscribe();
        loop {
            if let Some(reason) = receiver.borrow_and_update().clone() {
                return reason;
            }
            // `self` holds the sender, so this cannot fail; if it did, nobody could ask any more.
            if receiver.changed().await.is_err() {
                return std::future::pending().await;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn the_first_reason_stands_and_late_listeners_hear_it() {
        let stop = StopSignal::new();
        assert_eq!(stop.reason(), None);
        let other = stop.clone();
        other.request(Stop::Cancelled);
        other.request(Stop::RunnerStopped);
        assert_eq!(stop.requested().await, Stop::Cancelled);
        assert_eq!(stop.reason(), Some(Stop::Cancelled));
    }
}
