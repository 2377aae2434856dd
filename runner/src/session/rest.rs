//! Rests: while this machine cannot set up jobs, the runner polls for none.

use std::io;
use std::sync::Arc;
use std::time::Duration;

use client::Backoff;
use tokio::runtime::Handle;
use tokio::task::JoinSet;
use tokio::time::{Instant, sleep};

use crate::limits;
use crate::worker::Shared;

/// The current rest, if there is one, and data about earlier rests.
pub(super) struct Rests {
    /// Contains a task during a rest. The task ends when a check has succeeded.
    resting: JoinSet<()>,
    backoff: Backoff,
    /// When the newest rest began.
    began: Option<Instant>,
}

impl Rests {
    pub(super) fn new(first: Duration) -> Self {
        Self {
            resting: JoinSet::new(),
            backoff: Backoff::new(first, limits::LONGEST_REST),
            began: None,
        }
    }

    pub(super) fn is_resting(&self) -> bool {
        !self.resting.is_empty()
    }

    /// Waits for the end of the rest. Without a rest, waits forever.
    pub(super) async fn end(&mut self) {
        if self.resting.join_next().await.is_none() {
            std::future::pending().await
        }
    }

    /// If jobs could be set up for as long as the longest rest, the next rest is short again. A single success is not enough: one
    /// job may fit where others do not.
    pub(super) fn job_done(&mut self) {
        if self
            .began
            .is_none_or(|began| began.elapsed() > limits::LONGEST_REST)
        {
            self.backoff.succeeded();
        }
    }

    /// Begins a rest, which lasts until a job could be set up. Returns false during a rest.
    pub(super) fn begin(
        &mut self,
        error: &io::Error,
        shared: Arc<Shared>,
        runtime: &Handle,
    ) -> bool {
        if self.is_resting() {
            return false;
        }
        self.began = Some(Instant::now());
        let mut pause = self.backoff.failed();
        tracing::error!(
            %error,
            ?pause,
            "this machine cannot set up jobs: asking for none, and trying again"
        );
        let mut backoff = self.backoff.clone();
        let try_again = async move {
            loop {
                sleep(pause).await;
                let Err(error) = shared.try_set_up().await else {
                    return;
                };
                pause = backoff.failed();
                tracing::warn!(%error, ?pause, "this machine still cannot set up jobs");
            }
        };
        self.resting.spawn_on(try_again, runtime);
        true
    }
}
