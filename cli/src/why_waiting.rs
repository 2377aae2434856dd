//! Shows why a job has not started, and changes of the reason, to a waiting person.

use std::pin::{Pin, pin};

use client::Client;
use tokio::time::sleep;
use uuid::Uuid;
use wire::{Explanation, JobState};

use crate::limits;

/// A request for the reason, which is sent if the wait takes longer.
pub(crate) struct WhyWaiting<'a> {
    answer: Option<Pin<Box<dyn Future<Output = Option<Explanation>> + 'a>>>,
    /// The code of the last printed reason. The counts in its message change with every job.
    reported: Option<String>,
}

impl<'a> WhyWaiting<'a> {
    pub(crate) fn of(client: &'a Client, job: Uuid) -> Self {
        Self::new(async move {
            sleep(limits::PATIENCE).await;
            // Ignore an error here: the wait itself meets the same error.
            let job = client.job(job).await.ok()?;
            job.waiting.filter(|_| job.state == JobState::Scheduled)
        })
    }

    fn new(answer: impl Future<Output = Option<Explanation>> + 'a) -> Self {
        Self {
            answer: Some(Box::pin(answer)),
            reported: None,
        }
    }

    /// Runs `attempt`, and passes the reason to `report` if it arrives meanwhile. The reason is requested once per wait.
    pub(crate) async fn run<T>(
        &mut self,
        attempt: impl Future<Output = T>,
        report: impl FnOnce(&str),
    ) -> T {
        let mut attempt = pin!(attempt);
        if let Some(answer) = &mut self.answer {
            tokio::select! {
                biased;
                done = &mut attempt => return done,
                found = answer => {
                    self.answer = None;
                    self.renew(found.as_ref(), report);
                },
            }
        }
        attempt.await
    }

    /// Passes the reason in a later answer to `report`, if it has changed.
    pub(crate) fn renew(&mut self, reason: Option<&Explanation>, report: impl FnOnce(&str)) {
        // Do not print a reason at the beginning of a wait.
        let reason = reason.filter(|_| self.answer.is_none());
        if let Some(reason) = reason.filter(|it| Some(&it.code) != self.reported.as_ref()) {
            report(&format!("the job waits: {}", reason.message));
            self.reported = Some(reason.code.clone());
        }
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
            jobs: Vec::new(),
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
                .run(attempt, |text| messages.push(text.to_owned()))
                .await;
            assert_eq!(done, number);
        }
        assert_eq!(messages, ["the job waits: no runner is registered"]);
    }

    #[tokio::test]
    async fn a_changed_reason_is_reported_once() {
        let reason = |code: &str, message: &str| Explanation {
            code: code.to_owned(),
            message: message.to_owned(),
            jobs: Vec::new(),
        };
        let mut why = WhyWaiting::new(ready(found()));
        let mut messages = Vec::new();
        let mut report = |text: &str| messages.push(text.to_owned());
        why.renew(found().as_ref(), &mut report);
        why.run(yield_now(), &mut report).await;
        for ahead in [2, 2, 1] {
            let busy = reason("runners_busy", &format!("{ahead} jobs are ahead"));
            why.renew(Some(&busy), &mut report);
        }
        why.renew(None, &mut report);
        why.renew(found().as_ref(), &mut report);
        assert_eq!(
            messages,
            [
                "the job waits: no runner is registered",
                "the job waits: 2 jobs are ahead",
                "the job waits: no runner is registered",
            ]
        );
    }

    #[tokio::test]
    async fn a_wait_that_is_over_or_has_no_reason_is_silent() {
        let never = |text: &str| panic!("{text}");
        WhyWaiting::new(ready(found())).run(ready(()), never).await;
        WhyWaiting::new(pending()).run(yield_now(), never).await;
        WhyWaiting::new(ready(None)).run(yield_now(), never).await;
    }
}
