//! When a job has to stop.

use std::time::Duration;

use chrono::{DateTime, Utc};
use tokio::time::{Instant, sleep_until};
use wire::Assignment;

use crate::link::Link;
use crate::stop::Stop;

/// The deadlines of a job, on the monotonic clock. They are converted once, at the start. Later changes of a wall clock have no
/// effect, and neither has a difference between the clocks of the daemon and this machine.
#[derive(Clone, Copy)]
pub(super) struct Deadlines {
    /// The timeout of the scan.
    pub(super) scan: Option<Instant>,
    session: Instant,
    /// When the job's token expires.
    pub(super) token: Instant,
}

impl Deadlines {
    pub(super) fn of(assignment: &Assignment, allowance: Duration) -> Self {
        let now = Instant::now();
        let after = |at: DateTime<Utc>| now + (at - assignment.now).to_std().unwrap_or_default();
        let token = after(assignment.expires_at);
        Self {
            scan: assignment.deadline.map(after),
            session: token + allowance,
            token,
        }
    }
}

/// Stops the job at a deadline, or when a job that may be retried has lost contact with the daemon. A job that has timed out may
/// still clean up until the session expires.
pub(super) async fn watch(link: Link, deadlines: Deadlines, needs_contact: bool) {
    let timed_out = async {
        if let Some(deadline) = deadlines.scan {
            sleep_until(deadline).await;
            link.stop.request(Stop::DeadlinePassed);
        }
    };
    let expired = async {
        sleep_until(deadlines.session).await;
        link.stop.request(Stop::SessionExpired);
    };
    let lost = async {
        if needs_contact {
            link.contact.lost().await;
            link.stop.request(Stop::ContactLost);
        }
    };
    tokio::join!(timed_out, expired, lost);
}
