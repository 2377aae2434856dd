//! Waiting, interrupted by a stop signal.
//!
//! The demonstration has one thread. It handles signals only while it waits; everything else takes milliseconds.

use std::io;
use std::rc::Rc;

use tokio::process::Child;
use tokio::runtime::{Builder, Runtime};
use tokio::sync::watch;

use super::error::DemoError;
use crate::stop_signal::{StopSignal, StopSignals};

/// Runs futures until they are finished or a signal arrives.
#[derive(Clone)]
pub(super) struct Interruption {
    runtime: Rc<Runtime>,
    signal: watch::Receiver<Option<StopSignal>>,
}

impl Interruption {
    /// From now on, a signal ends the next wait instead of the process.
    pub(super) fn receive() -> io::Result<Self> {
        let runtime = Builder::new_current_thread().enable_all().build()?;
        let mut signals = {
            let _inside = runtime.enter();
            StopSignals::receive()?
        };
        let (sender, signal) = watch::channel(None);
        runtime.spawn(async move { while sender.send(Some(signals.next().await)).is_ok() {} });
        Ok(Self {
            runtime: Rc::new(runtime),
            signal,
        })
    }

    /// Waits for `work`. A signal drops the future.
    pub(super) fn wait_for<T>(&self, work: impl Future<Output = T>) -> Result<T, DemoError> {
        let mut signal = self.signal.clone();
        let stopped = async move {
            match signal.wait_for(Option::is_some).await.as_deref() {
                Ok(Some(signal)) => *signal,
                // The task that forwards signals ends only with the runtime.
                Ok(None) | Err(_) => std::future::pending().await,
            }
        };
        self.runtime.block_on(async {
            tokio::select! {
                done = work => Ok(done),
                signal = stopped => Err(DemoError::Stopped(signal)),
            }
        })
    }

    /// Asks a program to stop and waits until it has ended. Each further signal asks again.
    pub(super) fn wait_for_end(&self, child: &mut Child, ask: impl Fn(&Child)) {
        let mut signal = self.signal.clone();
        signal.mark_unchanged();
        ask(child);
        self.runtime.block_on(async {
            loop {
                tokio::select! {
                    _ = child.wait() => break,
                    Ok(()) = signal.changed() => ask(child),
                }
            }
        });
    }

    pub(super) fn inside<T>(&self, work: impl FnOnce() -> T) -> T {
        let _inside = self.runtime.enter();
        work()
    }
}
