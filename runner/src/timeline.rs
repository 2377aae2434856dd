//! What has happened to a job's steps so far, and the reports about it. A report has all steps, so only the newest one
//! matters. Reports are for people who watch the job: the completion repeats everything.

use std::time::Duration;

use model::Masker;
use tokio::sync::watch;
use tokio::time::sleep;
use wire::{Step, StepOutcome, StepStatus};

use crate::limits;
use crate::link::{Link, Verdict};

/// The steps that started, ended or were skipped, in order.
#[derive(Debug)]
pub(crate) struct Timeline {
    steps: watch::Sender<Vec<Step>>,
    masker: Masker,
}

impl Timeline {
    /// An empty timeline.
    pub(crate) fn new(masker: Masker) -> Self {
        Self {
            steps: watch::Sender::new(Vec::new()),
            masker,
        }
    }

    /// Adds or replaces a step's state. Masks secrets in its error.
    pub(crate) fn record(&self, mut report: Step) {
        report.error = report.error.map(|error| self.masker.mask(&error));
        self.steps.send_modify(|steps| {
            match steps.iter_mut().find(|step| step.index == report.index) {
                Some(step) => *step = report,
                None => steps.push(report),
            }
        });
    }

    /// Adds the steps that were not reached as skipped.
    pub(crate) fn skip_missing(&self, count: usize) {
        self.steps.send_modify(|steps| {
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

    /// All steps so far.
    pub(crate) fn steps(&self) -> Vec<Step> {
        self.steps.borrow().clone()
    }

    /// Follows the changes.
    pub(crate) fn watch(&self) -> watch::Receiver<Vec<Step>> {
        self.steps.subscribe()
    }
}

/// Reports changes until the timeline is dropped or the job is over. Waits a moment before each report, so that several
/// changes go together.
pub(crate) async fn report(
    mut steps: watch::Receiver<Vec<Step>>,
    link: Link,
    ship_after: Duration,
) {
    let mut backoff = limits::backoff();
    while steps.changed().await.is_ok() {
        sleep(ship_after).await;
        let timeline = wire::Timeline {
            steps: steps.borrow_and_update().clone(),
        };
        let request = link.client.timeline(link.job, &timeline).await;
        match link.judge(request) {
            Ok(()) => backoff.succeeded(),
            Err(failure) => match failure.verdict {
                Verdict::Again => {
                    link.pause(&mut backoff, &failure).await;
                    steps.mark_changed();
                }
                Verdict::LogFrom(_) | Verdict::Refused => {}
                Verdict::Over => return,
            },
        }
    }
}
