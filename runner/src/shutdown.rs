//! How a runner is told to end: first gently, then at once.

use tokio::signal::unix::{SignalKind, signal};
use tokio::sync::watch;

/// How urgently the runner has to end. It only ever grows.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Default)]
pub enum Urgency {
    /// It need not.
    #[default]
    None,
    /// Take no new jobs, finish those that run.
    Drain,
    /// Cancel the jobs that run.
    Cancel,
    /// Do not even wait for what they have to say.
    Abandon,
}

impl Urgency {
    /// The next step: each word to end makes it more urgent.
    #[must_use]
    pub const fn next(self) -> Self {
        match self {
            Self::None => Self::Drain,
            Self::Drain => Self::Cancel,
            Self::Cancel | Self::Abandon => Self::Abandon,
        }
    }
}

/// How urgently the runner was told to end, and how much of that it has heeded: what it was told while it did something
/// else is news all the same.
#[derive(Debug)]
pub(crate) struct Told {
    urgency: watch::Receiver<Urgency>,
    heeded: Urgency,
}

impl Told {
    pub(crate) const fn new(urgency: watch::Receiver<Urgency>) -> Self {
        Self {
            urgency,
            heeded: Urgency::None,
        }
    }

    /// How urgent it is now.
    pub(crate) fn now(&self) -> Urgency {
        *self.urgency.borrow()
    }

    /// Waits until it is more urgent than was answered before. Somebody who cannot tell any more does not.
    pub(crate) async fn news(&mut self) -> Urgency {
        let heeded = self.heeded;
        let told = self.urgency.wait_for(|urgency| *urgency > heeded).await;
        let told = told.map(|urgency| *urgency);
        match told {
            Ok(urgency) => {
                self.heeded = urgency;
                urgency
            }
            Err(_) => std::future::pending().await,
        }
    }
}

/// Follows SIGTERM and SIGINT: each makes the end more urgent. Must be called inside a runtime; the handlers stand when
/// it returns.
///
/// # Errors
/// When the handlers cannot be set.
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

    use super::{Told, Urgency};

    #[tokio::test]
    async fn what_is_told_while_nobody_waits_is_news_afterwards() {
        let (sender, receiver) = watch::channel(Urgency::None);
        let mut told = Told::new(receiver);
        sender.send_replace(Urgency::Drain);
        assert_eq!(told.news().await, Urgency::Drain);
        let waiting = timeout(Duration::ZERO, told.news());
        assert!(waiting.await.is_err(), "nothing new");
        sender.send_replace(Urgency::Cancel);
        assert_eq!(told.now(), Urgency::Cancel, "looked at, and not heeded");
        let news = timeout(Duration::from_secs(180), told.news());
        assert_eq!(news.await, Ok(Urgency::Cancel));
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
