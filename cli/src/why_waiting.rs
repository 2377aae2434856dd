//! Why a job has not begun, said once to a person who waits for it.

use std::pin::{Pin, pin};

use client::Client;
use tokio::time::sleep;
use uuid::Uuid;
use wire::{Explanation, JobState};

use crate::limits;

/// A question that is asked after a while, if the wait is not over by then.
pub(crate) struct WhyWaiting<'a> {
    answer: Option<Pin<Box<dyn Future<Output = Option<Explanation>> + 'a>>>,
}

impl<'a> WhyWaiting<'a> {
    /// Begins to count.
    pub(crate) fn of(client: &'a Client, job: Uuid) -> Self {
        Self::told_by(async move {
            sleep(limits::PATIENCE).await;
            // An error is left to the wait itself, which meets it as well.
            let job = client.job(job).await.ok()?;
            job.waiting.filter(|_| job.state == JobState::Scheduled)
        })
    }

    fn told_by(answer: impl Future<Output = Option<Explanation>> + 'a) -> Self {
        Self {
            answer: Some(Box::pin(answer)),
        }
    }

    /// Goes on with `attempt`; what is found out meanwhile is said, once in all attempts of a wait.
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
    async fn what_is_found_out_is_said_once() {
        let mut why = WhyWaiting::told_by(ready(found()));
        let mut said = Vec::new();
        for number in 0..2 {
            let attempt = async {
                yield_now().await;
                number
            };
            let done = why.beside(attempt, |text| said.push(text.to_owned())).await;
            assert_eq!(done, number);
        }
        assert_eq!(said, ["the job waits: no runner is registered"]);
    }

    #[tokio::test]
    async fn a_wait_that_is_over_or_has_no_reason_is_silent() {
        let never = |text: &str| panic!("{text}");
        WhyWaiting::told_by(ready(found()))
            .beside(ready(()), never)
            .await;
        WhyWaiting::told_by(pending())
            .beside(yield_now(), never)
            .await;
        WhyWaiting::told_by(ready(None))
            .beside(yield_now(), never)
            .await;
    }
}
