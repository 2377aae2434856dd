//! Where the demonstration waits: for its programs, and for the signal that ends it early.
//!
//! It is one thread, and signals are looked at while it waits. Whatever it does without waiting takes milliseconds.

use std::io;
use std::rc::Rc;

use tokio::process::Child;
use tokio::runtime::{Builder, Runtime};
use tokio::sync::watch;

use super::error::DemoError;
use crate::stop_signal::{StopSignal, StopSignals};

/// Waits that a signal ends.
#[derive(Clone)]
pub(super) struct Interruption {
    runtime: Rc<Runtime>,
    told: watch::Receiver<Option<StopSignal>>,
}

impl Interruption {
    /// From now on a signal ends the next wait, not the process.
    pub(super) fn receive() -> io::Result<Self> {
        let runtime = Builder::new_current_thread().enable_all().build()?;
        let mut signals = {
            let _inside = runtime.enter();
            StopSignals::receive()?
        };
        let (tell, told) = watch::channel(None);
        runtime.spawn(async move { while tell.send(Some(signals.next().await)).is_ok() {} });
        Ok(Self {
            runtime: Rc::new(runtime),
            told,
        })
    }

    /// Waits for the end of `work`, which is dropped when a signal comes first.
    pub(super) fn wait_for<T>(&self, work: impl Future<Output = T>) -> Result<T, DemoError> {
        let mut told = self.told.clone();
        let stopped = async move {
            match told.wait_for(Option::is_some).await.as_deref() {
                Ok(Some(signal)) => *signal,
                // The task that tells goes with the runtime.
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

    /// Waits until a program that was asked to stop has; each further signal asks it again.
    pub(super) fn wait_for_end(&self, child: &mut Child, ask: impl Fn(&Child)) {
        let mut told = self.told.clone();
        told.mark_unchanged();
        ask(child);
        self.runtime.block_on(async {
            loop {
                tokio::select! {
                    _ = child.wait() => break,
                    Ok(()) = told.changed() => ask(child),
                }
            }
        });
    }

    /// Does what needs the runtime and waits for nothing.
    pub(super) fn inside<T>(&self, work: impl FnOnce() -> T) -> T {
        let _inside = self.runtime.enter();
        work()
    }
}
