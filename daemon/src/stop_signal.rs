//! The signals that ask a program to stop.

use tokio::signal::unix::{Signal, SignalKind, signal};

/// The signals that ask the daemon to stop. The handlers are installed before the URL is printed, because a program that reads
/// the URL may send a signal at once.
pub(crate) struct StopSignals {
    terminate: Signal,
    interrupt: Signal,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum StopSignal {
    Terminate,
    Interrupt,
}

impl StopSignals {
    pub(crate) fn receive() -> std::io::Result<Self> {
        Ok(Self {
            terminate: signal(SignalKind::terminate())?,
            interrupt: signal(SignalKind::interrupt())?,
        })
    }

    pub(crate) async fn next(&mut self) -> StopSignal {
        tokio::select! {
            _ = self.terminate.recv() => StopSignal::Terminate,
            _ = self.interrupt.recv() => StopSignal::Interrupt,
        }
    }
}
