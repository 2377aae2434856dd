//! How a runner is asked to end: first gently, then at once.

use tokio::signal::unix::{SignalKind, signal};
use tokio::sync::watch;

/// How urgently the runner has to end. The urgency never decreases.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Default)]
pub enum Urgency {
    /// It need not.
    #[default]
    None,
    /// Take no new jobs, and finish the running jobs.
    Drain,
    Cancel,
    /// End at once, without waiting for reports.
    Abandon,
}

impl Urgency {
    #[must_use]
    pub const fn next(self) -> Self {
        match self {
            Self::None => Self::Drain,
            Self::Drain => Self::Cancel,
            Self::Cancel | Self::Abandon => Self::Abandon,
        }
    }
}

/// How urgently the runner has to end, and up to which urgency it has acted. A signal that arrives while the runner is busy is
/// not missed.
#[derive(Debug)]
pub(crate) struct Shutdown {
    urgency: watch::Receiver<Urgency>,
    handled: Urgency,
}

impl Shutdown {
    pub(crate) const fn new(urgency: watch::Receiver<Urgency>) -> Self {
        Self {
            urgency,
            handled: Urgency::None,
        }
    }

    pub(crate) fn now(&self) -> Urgency {
        *self.urgency.borrow()
    }

    /// Waits until the urgency exceeds the last one returned here. Waits forever once the sender is gone.
    pub(crate) async fn changed(&mut self) -> Urgency {
        let handled = self.handled;
        let changed = self.urgency.wait_for(|urgency| *urgency > handled).await;
        let changed = changed.map(|urgency| *urgency);
        match changed {
            Ok(urgency) => {
                self.handled = urgency;
                urgency
            }
            Err(_) => std::future::pending().await,
        }
    }
}

/// Waits until this urgency is reached. Waits forever once the sender is gone.
pub(crate) async fn reaches(urgency: &watch::Receiver<Urgency>, least: Urgency) {
    let mut urgency = urgency.clone();
    if urgency.wait_for(|urgency| *urgency >= least).await.is_err() {
        std::future::pending().await
    }
}

/// Follows SIGTERM and SIGINT: each increases the urgency. Must be called inside a runtime. When it returns, the handlers are
/// installed.
pub(crate) fn on_signals() -> std::io::Result<watch::Receiver<Urgency>> {
    let mut terminate = signal(SignalKind::terminate())?;
    let mut interrupt = signal(SignalKind::interrupt())?;
    let (sender, receiver) = watch::channel(Urgency::None);
    tokio::spawn(async move {
        loop {
            tokio::select! {
                _ = terminate.recv() => {}
                _ = interrupt.recv() => {}
                () = sender.closed() => return,
            }
            sender.send_modify(|urgency| *urgency = urgency.next());
        }
    });
    Ok(receiver)
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use tokio::sync::watch;
    use tokio::time::timeout;

    use super::{Shutdown, Urgency};

    #[tokio::test]
    async fn a_signal_while_nobody_waits_is_returned_afterwards() {
        let (sender, receiver) = watch::channel(Urgency::None);
        let mut shutdown = Shutdown::new(receiver);
        sender.send_replace(Urgency::Drain);
        assert_eq!(shutdown.changed().await, Urgency::Drain);
        let waiting = timeout(Duration::ZERO, shutdown.changed());
        assert!(waiting.await.is_err(), "nothing new");
        sender.send_replace(Urgency::Cancel);
        assert_eq!(shutdown.now(), Urgency::Cancel, "read, and not handled");
        let changed = timeout(Duration::from_secs(180), shutdown.changed());
        assert_eq!(changed.await, Ok(Urgency::Cancel));
    }

    #[test]
    fn every_signal_makes_it_more_urgent() {
        let mut urgency = Urgency::None;
        for expected in [
            Urgency::Drain,
            Urgency::Cancel,
            Urgency::Abandon,
            Urgency::Abandon,
        ] {
            urgency = urgency.next();
            assert_eq!(urgency, expected);
        }
    }
}
