//! Reports the progress of an artifact from time to time.

use std::time::{Duration, Instant};

use tokio::sync::watch;
use wire::{ArtifactPhase, ArtifactProgress, Timeline};

#[derive(Debug)]
pub(crate) struct Progress {
    report: watch::Sender<Timeline>,
    name: String,
    phase: ArtifactPhase,
    every: Duration,
    reported_at: Instant,
}

impl Progress {
    pub(crate) fn new(
        report: watch::Sender<Timeline>,
        name: &str,
        phase: ArtifactPhase,
        every: Duration,
    ) -> Self {
        Self {
            report,
            name: name.to_owned(),
            phase,
            every,
            reported_at: Instant::now(),
        }
    }

    pub(crate) fn note(&mut self, bytes: u64, of: u64) {
        let now = Instant::now();
        if now.duration_since(self.reported_at) < self.every {
            return;
        }
        self.reported_at = now;
        let progress = ArtifactProgress {
            name: self.name.clone(),
            phase: self.phase,
            bytes,
            of,
        };
        self.report
            .send_modify(|report| report.artifact = Some(progress));
    }
}
