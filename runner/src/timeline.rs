//! The progress of a job's steps and artifacts, and the reports about it. A report has all steps, so only the newest report
//! matters. Reports are for people who watch the job: the completion repeats everything.

use std::time::Duration;

use model::Masker;
use tokio::sync::watch;
use tokio::time::sleep;
use wire::{ArtifactPhase, Step, StepOutcome, StepStatus};

use crate::artifact::Progress;
use crate::limits;
use crate::link::{Link, Verdict};

/// The steps that started, ended or were skipped, in order.
#[derive(Debug)]
pub(crate) struct Timeline {
    report: watch::Sender<wire::Timeline>,
    masker: Masker,
}

impl Timeline {
    pub(crate) fn new(masker: Masker) -> Self {
        Self {
            report: watch::Sender::new(wire::Timeline::default()),
            masker,
        }
    }

    /// Adds or replaces a step's state. Masks secrets in its error.
    pub(crate) fn record(&self, mut report: Step) {
        report.error = report.error.map(|error| self.masker.mask(&error));
        self.report.send_modify(|wire::Timeline { steps, .. }| {
            match steps.iter_mut().find(|step| step.index == report.index) {
                Some(step) => *step = report,
                None => steps.push(report),
            }
        });
    }

    pub(crate) fn skip_missing(&self, count: usize) {
        self.report.send_modify(|wire::Timeline { steps, .. }| {
            let first = steps.len();
            let missing = (0..).take(count).skip(first);
            steps.extend(missing.map(|index| Step {
                name: None,
                index,
                status: StepStatus::Skipped,
                outcome: Some(StepOutcome::Skipped),
                exit_code: None,
                error: None,
                started_at: None,
                finished_at: None,
            }));
        });
    }

    /// Waits until the script of a step runs, or until no script runs.
    pub(crate) async fn step_runs(&self, runs: bool) {
        let mut report = self.report.subscribe();
        let is_reached = |report: &wire::Timeline| {
            let mut steps = report.steps.iter();
            steps.any(|step| step.status == StepStatus::Running) == runs
        };
        // `self` holds the sender, so the wait does not fail.
        let _ = report.wait_for(is_reached).await;
    }

    pub(crate) fn steps(&self) -> Vec<Step> {
        self.report.borrow().steps.clone()
    }

    pub(crate) fn progress(
        &self,
        artifact: &str,
        phase: ArtifactPhase,
        every: Duration,
    ) -> Progress {
        Progress::new(self.report.clone(), artifact, phase, every)
    }

    pub(crate) fn end_progress(&self) {
        self.report
            .send_if_modified(|report| report.artifact.take().is_some());
    }

    pub(crate) fn watch(&self) -> watch::Receiver<wire::Timeline> {
        self.report.subscribe()
    }
}

/// Reports changes until the timeline is dropped or the job has ended. Waits a moment before each report, so that one report
/// contains several changes.
pub(crate) async fn report(
    mut reports: watch::Receiver<wire::Timeline>,
    link: Link,
    ship_after: Duration,
) {
    let mut backoff = limits::backoff();
    while reports.changed().await.is_ok() {
        sleep(ship_after).await;
        let timeline = reports.borrow_and_update().clone();
        let request = link.client.timeline(link.job, &timeline).await;
        match link.judge(request) {
            Ok(()) => backoff.succeeded(),
            Err(failure) => match failure.verdict {
                Verdict::Again => {
                    link.pause(&mut backoff, &failure).await;
                    reports.mark_changed();
                }
                Verdict::LogFrom(_) | Verdict::Refused => {}
                Verdict::Over => return,
            },
        }
    }
}
