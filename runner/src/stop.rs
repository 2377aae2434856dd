//! Why a job has to stop, told once to everyone who works on it. The first reason stands; whoever starts to listen later
//! hears it too. What is still told to the daemon is another question: every reason can make it less.

use tokio::sync::watch;
use tokio::time::Instant;

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
    /// The daemon has closed the job or does not know it any more.
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

    const fn rest(&self) -> Rest {
        match self {
            Self::DeadlinePassed
            | Self::SessionExpired
            | Self::ContactLost
            | Self::LogFailed(_) => Rest::Everything,
            // A closed job takes its log and its completion for a while.
            Self::Cancelled | Self::RunnerStopped | Self::JobOver => Rest::LastWords,
        }
    }
}

/// What the daemon is still told about a job that stops. It only ever becomes less.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Rest {
    /// Its whole log, and how it ended.
    Everything,
    /// How it ended, and as much of its log as can be shipped in a moment: somebody waits for the slot.
    LastWords,
    /// Nothing: the daemon does not listen any more.
    Nothing,
}

/// A job that stops.
#[derive(Debug, Clone)]
struct Stopping {
    /// The first reason.
    reason: Stop,
    /// When it came.
    since: Instant,
    /// The least that any reason leaves.
    rest: Rest,
}

/// Whether and why one job stops. Clones share it.
#[derive(Debug, Clone)]
pub(crate) struct StopSignal(watch::Sender<Option<Stopping>>);

impl StopSignal {
    pub(crate) fn new() -> Self {
        Self(watch::Sender::new(None))
    }

    /// Asks the job to stop.
    pub(crate) fn request(&self, reason: Stop) {
        let rest = reason.rest();
        self.leave(reason, rest);
    }

    /// Says that the daemon takes neither log nor completion.
    pub(crate) fn nobody_listens(&self) {
        self.leave(Stop::JobOver, Rest::Nothing);
    }

    fn leave(&self, reason: Stop, rest: Rest) {
        self.0.send_if_modified(|current| match current {
            None => {
                *current = Some(Stopping {
                    reason,
                    since: Instant::now(),
                    rest,
                });
                true
            }
            Some(stopping) => {
                let is_less = stopping.rest < rest;
                stopping.rest = stopping.rest.max(rest);
                is_less
            }
        });
    }

    /// The first reason why the job stops, if it does.
    pub(crate) fn reason(&self) -> Option<Stop> {
        let current = self.0.borrow();
        current.as_ref().map(|stopping| stopping.reason.clone())
    }

    /// When the job was first asked to stop, if it was.
    pub(crate) fn since(&self) -> Option<Instant> {
        let current = self.0.borrow();
        current.as_ref().map(|stopping| stopping.since)
    }

    /// Whether the daemon does not listen any more.
    pub(crate) fn is_over(&self) -> bool {
        let current = self.0.borrow();
        current
            .as_ref()
            .is_some_and(|stopping| stopping.rest == Rest::Nothing)
    }

    /// Waits until the job has to stop, and gives the first reason.
    pub(crate) async fn requested(&self) -> Stop {
        self.leaves(Rest::Everything).await
    }

    /// Waits until the job has to stop with no more left to tell than this, and gives the first reason.
    pub(crate) async fn leaves(&self, rest: Rest) -> Stop {
        let mut receiver = self.0.subscribe();
        let stopping = receiver.wait_for(|current| {
            current
                .as_ref()
                .is_some_and(|stopping| stopping.rest >= rest)
        });
        if let Ok(stopping) = stopping.await
            && let Some(stopping) = &*stopping
        {
            return stopping.reason.clone();
        }
        // `self` holds the sender, so the wait does not fail; if it did, nobody could ask any more.
        std::future::pending().await
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use tokio::time::timeout;

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

    #[tokio::test]
    async fn a_later_reason_leaves_less_to_tell_and_never_more() {
        let stop = StopSignal::new();
        stop.request(Stop::DeadlinePassed);
        let last_words = timeout(Duration::ZERO, stop.leaves(Rest::LastWords));
        assert!(last_words.await.is_err(), "it may tell everything");
        stop.request(Stop::Cancelled);
        assert_eq!(stop.leaves(Rest::LastWords).await, Stop::DeadlinePassed);
        stop.request(Stop::JobOver);
        assert!(!stop.is_over());
        stop.nobody_listens();
        stop.request(Stop::SessionExpired);
        assert!(stop.is_over());
        assert_eq!(stop.leaves(Rest::Nothing).await, Stop::DeadlinePassed);
    }
}
