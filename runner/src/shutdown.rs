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
    use super::Urgency;

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
