//! Why a job has to stop. All work on the job follows one signal, and its first reason stays. How much the runner still reports
//! to the daemon is separate: every further reason can reduce it.

use tokio::sync::watch;
use tokio::time::{Instant, timeout_at};

#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Stop {
    Cancelled,
    /// The scan's timeout has passed.
    DeadlinePassed,
    SessionExpired,
    /// The daemon was silent for so long that it may start a retry.
    ContactLost,
    RunnerStopped,
    /// The daemon has closed the job or does not know it any more.
    JobOver,
    LogFailed(String),
}

impl Stop {
    pub(crate) const fn explanation(&self) -> &'static str {
        match self {
            Self::Cancelled => "the job was cancelled",
            Self::DeadlinePassed => "the scan's timeout has passed",
            Self::SessionExpired => "the worker session has ended",
            Self::ContactLost => "the daemon did not answer for 100 seconds",
            Self::RunnerStopped => "the runner had to stop at once",
            Self::JobOver => "the daemon has closed the job",
            Self::LogFailed(_) => "the log cannot be kept",
        }
    }

    /// Whether steps that clean up may run. Not if the runner has to end, or if the daemon may start a retry.
    pub(crate) const fn allows_clean_up(&self) -> bool {
        match self {
            // The daemon closes a cancelled job, and a report may show this before the runner receives the cancel.
            Self::Cancelled | Self::DeadlinePassed | Self::SessionExpired | Self::JobOver => true,
            Self::ContactLost | Self::RunnerStopped | Self::LogFailed(_) => false,
        }
    }

    const fn reporting(&self) -> Reporting {
        match self {
            Self::DeadlinePassed
            | Self::SessionExpired
            | Self::ContactLost
            | Self::LogFailed(_) => Reporting::Everything,
            // The daemon accepts log and completion of a closed job for a while.
            Self::Cancelled | Self::RunnerStopped | Self::JobOver => Reporting::Brief,
        }
    }
}

/// How much is still reported to the daemon about a job that stops. It never increases.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Reporting {
    /// The whole log, and how the job ended.
    Everything,
    /// How the job ended, and as much of its log as can be shipped in a moment, because the slot is needed.
    Brief,
    /// Nothing: the daemon accepts no reports about the job.
    Nothing,
}

#[derive(Debug, Clone)]
struct Stopping {
    reason: Stop,
    since: Instant,
    reporting: Reporting,
    allows_clean_up: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Uploads {
    /// Uploads end with every stop.
    InTime,
    /// Uploads end at this time, and with every stop except the timeout, which has already passed.
    Late { until: Instant },
}

impl Stopping {
    fn ends(&self, uploads: Uploads) -> bool {
        match uploads {
            Uploads::InTime => true,
            Uploads::Late { until } => {
                let is_only_late = self.reporting == Reporting::Everything && self.allows_clean_up;
                !is_only_late || Instant::now() >= until
            }
        }
    }
}

/// Whether and why one job stops. Clones share it.
#[derive(Debug, Clone)]
pub(crate) struct StopSignal(watch::Sender<Option<Stopping>>);

impl StopSignal {
    pub(crate) fn new() -> Self {
        Self(watch::Sender::new(None))
    }

    pub(crate) fn request(&self, reason: Stop) {
        let (reporting, allows_clean_up) = (reason.reporting(), reason.allows_clean_up());
        self.reduce(Stopping {
            reason,
            since: Instant::now(),
            reporting,
            allows_clean_up,
        });
    }

    /// The daemon accepts neither log nor completion.
    pub(crate) fn stop_reporting(&self) {
        self.reduce(Stopping {
            reason: Stop::JobOver,
            since: Instant::now(),
            reporting: Reporting::Nothing,
            allows_clean_up: false,
        });
    }

    /// Forgets a cancel that belongs to an offer, because the job was claimed later. If the job has ended nevertheless, the
    /// daemon reports this at the next request.
    pub(crate) fn claimed(&self) {
        self.0.send_if_modified(|current| {
            let is_cancelled = current
                .as_ref()
                .is_some_and(|it| it.reason == Stop::Cancelled && it.allows_clean_up);
            if is_cancelled {
                *current = None;
            }
            is_cancelled
        });
    }

    fn reduce(&self, further: Stopping) {
        self.0.send_if_modified(|current| match current {
            None => {
                *current = Some(further);
                true
            }
            Some(stopping) => {
                let is_less = stopping.reporting < further.reporting
                    || stopping.allows_clean_up && !further.allows_clean_up;
                stopping.reporting = stopping.reporting.max(further.reporting);
                stopping.allows_clean_up &= further.allows_clean_up;
                is_less
            }
        });
    }

    /// The steps that clean up have ended. The rest of the job has a grace period from now on.
    pub(crate) fn cleaned_up(&self) {
        self.0.send_if_modified(|current| {
            if let Some(stopping) = current {
                stopping.since = Instant::now();
            }
            false
        });
    }

    pub(crate) fn reason(&self) -> Option<Stop> {
        let current = self.0.borrow();
        current.as_ref().map(|stopping| stopping.reason.clone())
    }

    /// When the job was first asked to stop, or finished cleaning up after that. None without a request.
    pub(crate) fn since(&self) -> Option<Instant> {
        let current = self.0.borrow();
        current.as_ref().map(|stopping| stopping.since)
    }

    pub(crate) fn is_over(&self) -> bool {
        let current = self.0.borrow();
        current
            .as_ref()
            .is_some_and(|stopping| stopping.reporting == Reporting::Nothing)
    }

    pub(crate) async fn requested(&self) -> Stop {
        self.reduced_to(Reporting::Everything).await
    }

    /// Waits until the job has to stop and at most `reporting` is left. Returns the first reason.
    pub(crate) async fn reduced_to(&self, reporting: Reporting) -> Stop {
        self.wait_for(|stopping| stopping.reporting >= reporting)
            .await
    }

    pub(crate) fn ends(&self, uploads: Uploads) -> bool {
        let current = self.0.borrow();
        current
            .as_ref()
            .is_some_and(|stopping| stopping.ends(uploads))
    }

    pub(crate) async fn ended(&self, uploads: Uploads) -> Stop {
        let ended = self.wait_for(|stopping| stopping.ends(uploads));
        match uploads {
            Uploads::InTime => ended.await,
            Uploads::Late { until } => match timeout_at(until, ended).await {
                Ok(reason) => reason,
                // The wait ended late because the job was stopped.
                Err(_) => self.requested().await,
            },
        }
    }

    pub(crate) fn is_at_once(&self) -> bool {
        let current = self.0.borrow();
        current
            .as_ref()
            .is_some_and(|stopping| !stopping.allows_clean_up)
    }

    pub(crate) async fn at_once(&self) -> Stop {
        self.wait_for(|stopping| !stopping.allows_clean_up).await
    }

    async fn wait_for(&self, is_reached: impl Fn(&Stopping) -> bool) -> Stop {
        let mut receiver = self.0.subscribe();
        let stopping = receiver.wait_for(|current| current.as_ref().is_some_and(&is_reached));
        if let Ok(stopping) = stopping.await
            && let Some(stopping) = &*stopping
        {
            return stopping.reason.clone();
        }
        // `self` holds the sender, so the wait does not fail.
        std::future::pending().await
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use tokio::time::timeout;

    use super::*;

    #[tokio::test]
    async fn the_first_reason_stays_and_late_listeners_get_it() {
        let stop = StopSignal::new();
        assert_eq!(stop.reason(), None);
        let other = stop.clone();
        other.request(Stop::Cancelled);
        other.request(Stop::RunnerStopped);
        assert_eq!(stop.requested().await, Stop::Cancelled);
        assert_eq!(stop.reason(), Some(Stop::Cancelled));
    }

    #[test]
    fn a_claimed_job_forgets_a_cancel_of_its_offer_and_nothing_else() {
        let stop = StopSignal::new();
        stop.request(Stop::Cancelled);
        stop.claimed();
        assert_eq!(stop.reason(), None);
        stop.request(Stop::Cancelled);
        stop.request(Stop::RunnerStopped);
        stop.claimed();
        assert_eq!(stop.reason(), Some(Stop::Cancelled));
    }

    #[tokio::test]
    async fn a_second_stop_ends_what_a_cancel_leaves_time_for() {
        for second in [
            Stop::RunnerStopped,
            Stop::ContactLost,
            Stop::LogFailed("full".to_owned()),
        ] {
            let stop = StopSignal::new();
            for gentle in [Stop::Cancelled, Stop::JobOver, Stop::Cancelled] {
                stop.request(gentle);
                assert!(!stop.is_at_once());
            }
            let waiting = stop.at_once();
            stop.request(second);
            assert_eq!(waiting.await, Stop::Cancelled);
            stop.request(Stop::DeadlinePassed);
            assert!(stop.is_at_once());
        }
        let stop = StopSignal::new();
        stop.request(Stop::SessionExpired);
        stop.stop_reporting();
        assert!(stop.is_at_once());
    }

    #[tokio::test]
    async fn what_has_timed_out_is_uploaded_until_another_stop() {
        for second in [
            Stop::Cancelled,
            Stop::JobOver,
            Stop::ContactLost,
            Stop::RunnerStopped,
            Stop::LogFailed("full".to_owned()),
        ] {
            let stop = StopSignal::new();
            stop.request(Stop::DeadlinePassed);
            let now = Instant::now();
            let until = now + Duration::from_secs(3_600);
            assert!(stop.ends(Uploads::InTime));
            assert!(stop.ends(Uploads::Late { until: now }));
            assert!(!stop.ends(Uploads::Late { until }));
            stop.request(second);
            assert!(stop.ends(Uploads::Late { until }));
            assert_eq!(
                stop.ended(Uploads::Late { until }).await,
                Stop::DeadlinePassed
            );
        }
    }

    #[tokio::test]
    async fn a_later_reason_reduces_reporting_and_never_extends_it() {
        let stop = StopSignal::new();
        stop.request(Stop::DeadlinePassed);
        let brief = timeout(Duration::ZERO, stop.reduced_to(Reporting::Brief));
        assert!(brief.await.is_err(), "everything is still reported");
        stop.request(Stop::Cancelled);
        assert_eq!(
            stop.reduced_to(Reporting::Brief).await,
            Stop::DeadlinePassed
        );
        stop.request(Stop::JobOver);
        assert!(!stop.is_over());
        stop.stop_reporting();
        stop.request(Stop::SessionExpired);
        assert!(stop.is_over());
        assert_eq!(
            stop.reduced_to(Reporting::Nothing).await,
            Stop::DeadlinePassed
        );
    }
}
