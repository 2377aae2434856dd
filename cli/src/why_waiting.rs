//! Tells a waiting person once why a job has not begun.

use std::pin::{Pin, pin};

use client::Client;
use tokio::time::sleep;
use uuid::Uuid;
use wire::{Explanation, JobState};

use crate::limits;

/// A question that is sent if the wait lasts for a while.
pub(crate) struct WhyWaiting<'a> {
    answer: Option<Pin<Box<dyn Future<Output = Option<Explanation>> + 'a>>>,
}

impl<'a> WhyWaiting<'a> {
    /// Starts the delay.
    pub(crate) fn of(client: &'a Client, job: Uuid) -> Self {
        Self::new(async move {
            sleep(limits::PATIENCE).await;
            // The wait itself meets the same error.
            let job = client.job(job).await.ok()?;
            job.waiting.filter(|_| job.state == JobState::Scheduled)
        })
    }

    fn new(answer: impl Future<Output = Option<Explanation>> + 'a) -> Self {
        Self {
            answer: Some(Box::pin(answer)),
        }
    }

    /// Runs `attempt`, and passes the answer to `say` if it comes meanwhile. Only one attempt of a wait does so.
    pub(crate) async fn beside<T>(
        &mut self,
        attempt: impl Future<Output = T>,
        say: impl FnOnce(&str),
    ) -> T {
        let mut attempt = pin!(attempt);
        if let Some(answer) = &mut self.answer {
            tokio::select! {
                biased;
                done = &mut attempt => return done,
                found = answer => if let Some(found) = found {
                    say(&format!("the job waits: {}", found.message));
                },
            }
            self.answer = None;
        }
        attempt.await
    }
}

#[cfg(test)]
mod tests {
    use std::future::{pending, ready};

    use tokio::task::yield_now;

    use super::*;

    fn found() -> Option<Explanation> {
        Some(Explanation {
            code: "no_runner".to_owned(),
            message: "no runner is registered".to_owned(),
        })
    }

    #[tokio::test]
    async fn the_reason_is_reported_once() {
        let mut why = WhyWaiting::new(ready(found()));
        let mut messages = Vec::new();
        for number in 0..2 {
            let attempt = async {
                yield_now().await;
                number
            };
            let done = why
                .beside(attempt, |text| messages.push(text.to_owned()))
                .await;
            assert_eq!(done, number);
        }
        assert_eq!(messages, ["the job waits: no runner is registered"]);
    }

    #[tokio::test]
    async fn a_wait_that_is_over_or_has_no_reason_is_silent() {
        let never = |text: &str| panic!("{text}");
        WhyWaiting::new(ready(found()))
            .beside(ready(()), never)
            .await;
        WhyWaiting::new(pending()).beside(yield_now(), never).await;
        WhyWaiting::new(ready(None))
            .beside(yield_now(), never)
            .await;
    }
}
