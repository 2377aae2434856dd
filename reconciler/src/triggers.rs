//! Schedules and expressions: when somebody has to look, and why a scan ran or did not.
//!
//! What a success starts is decided in its own commit. This task looks at the rest: slots that come due, successes
//! that woke more scans than one commit holds, and those that a full disk or a job in the way kept waiting.

use std::sync::Arc;
use std::time::Duration;

use futures_util::future::BoxFuture;
use futures_util::{FutureExt, StreamExt, stream};
use model::decide::{Command, Consider, ExplainTrigger, Fire};
use model::{Evaluation, Job, LedgerRecord, ScanKey, Timestamp};
use state::{ReadError, State, SubmitError};

use crate::handle::Handle;
use crate::limits::{AT_ONCE, DEADLINE_LOOK, FIRST_RETRY};

/// Why a scan ran or did not.
#[derive(Debug, Clone)]
pub struct Why {
    /// Its jobs that are not over, newest first.
    pub unfinished: Vec<Arc<Job>>,
    /// The next slot of its schedule.
    pub next_slot: Option<Timestamp>,
    /// What its expression says now. Absent when a moment in the past was asked for.
    pub evaluation: Option<Evaluation>,
    /// What was looked at, newest first.
    pub records: Vec<LedgerRecord>,
}

/// Why no answer can be given.
#[derive(Debug, thiserror::Error)]
pub enum WhyError {
    /// The expression could not be evaluated.
    #[error(transparent)]
    Submit(#[from] SubmitError),
    /// The ledger could not be read.
    #[error(transparent)]
    Read(#[from] ReadError),
}

impl Handle {
    /// Looks at every trigger in its time.
    pub(crate) async fn pull_triggers(self) {
        let state = self.state();
        let mut changes = state.subscribe();
        loop {
            let now = self.now();
            let (due, unseen, next) =
                state.read(|world| (world.due(now), world.unseen(), world.next_slot(now)));
            let mut looks: Vec<BoxFuture<'static, bool>> = Vec::new();
            for scan in due {
                looks.push(look(state.clone(), Fire { scan }).boxed());
            }
            for scan in unseen {
                looks.push(look(state.clone(), Consider { scan }).boxed());
            }
            // Together, so that they share their commits.
            let failures = stream::iter(looks)
                .buffer_unordered(AT_ONCE)
                .filter(|looked| std::future::ready(!looked))
                .count()
                .await;
            let pause = if failures > 0 {
                FIRST_RETRY
            } else {
                until(next, now).min(DEADLINE_LOOK)
            };
            tokio::select! {
                changed = changes.changed(), if failures == 0 => if changed.is_err() { return },
                () = tokio::time::sleep(pause) => {}
            }
        }
    }

    /// Why a scan ran or did not, up to `at` when that is given.
    pub async fn why(
        &self,
        scan: &ScanKey,
        at: Option<Timestamp>,
        limit: usize,
    ) -> Result<Why, WhyError> {
        let evaluation = match at {
            None => {
                self.state()
                    .submit(ExplainTrigger { scan: scan.clone() })
                    .await?
            }
            Some(_) => None,
        };
        let (unfinished, next_slot) = self.state().read(|world| {
            let unfinished = world.jobs_of(scan).rev().cloned().collect();
            (unfinished, world.next_slot_of(scan))
        });
        let records = self.state().ledger(scan, at, limit).await?;
        Ok(Why {
            unfinished,
            next_slot,
            evaluation,
            records,
        })
    }
}

fn until(next: Option<Timestamp>, now: Timestamp) -> Duration {
    next.and_then(|next| (next - now).to_std().ok())
        .unwrap_or(DEADLINE_LOOK)
}

/// Looks at one trigger; false when that has to be done again.
async fn look<C: Command>(state: State, command: C) -> bool {
    match state.submit(command).await {
        Ok(_) => true,
        Err(error) => {
            tracing::warn!(%error, "a trigger cannot be looked at");
            false
        }
    }
}

#[cfg(test)]
mod tests;
