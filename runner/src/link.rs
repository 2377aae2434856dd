//! A worker's connection to the daemon for one job. It has the job's token, decides what an error means for the job, and records
//! the daemon's answers. The callers make the requests.

use std::time::Duration;

use client::{Backoff, Client};
use model::error_chain;
use tokio::time::sleep;
use uuid::Uuid;
use wire::ErrorCode;

use crate::contact::Contact;
use crate::stop::{Stop, StopSignal};

/// The connection for one job. Clones share everything.
#[derive(Debug, Clone)]
pub(crate) struct Link {
    pub(crate) client: Client,
    pub(crate) job: Uuid,
    /// Triggered when the daemon reports that the job has ended.
    pub(crate) stop: StopSignal,
    pub(crate) contact: Contact,
    /// Records the progress of this job: answers to its own requests, and pieces that are written, packed or uploaded.
    pub(crate) progress: Contact,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Verdict {
    /// The same request may succeed later.
    Again,
    /// The daemon expects the log from this record on.
    LogFrom(u64),
    /// The daemon has closed the job, or no longer knows it or its token.
    Over,
    /// The daemon has refused the request. The job has not changed.
    Refused,
}

impl Link {
    /// Records the result of a request, and stops a job that is over.
    pub(crate) fn judge<T>(&self, result: Result<T, client::Error>) -> Result<T, Failure> {
        match result {
            Ok(answer) => {
                self.heard();
                Ok(answer)
            }
            Err(error) => {
                let verdict = verdict(&error);
                match verdict {
                    Verdict::Again => {}
                    Verdict::LogFrom(_) | Verdict::Refused => self.heard(),
                    Verdict::Over => {
                        self.heard();
                        self.stop.request(Stop::JobOver);
                    }
                }
                Err(Failure { verdict, error })
            }
        }
    }

    pub(crate) fn heard(&self) {
        self.contact.heard();
        self.progress.heard();
    }

    pub(crate) async fn pause(&self, backoff: &mut Backoff, failure: &Failure) {
        let asked = failure.error.retry_after().unwrap_or_default();
        let pause: Duration = backoff.failed().max(asked);
        tracing::debug!(job = %self.job, error = error_chain(&failure.error), ?pause, "a request failed");
        sleep(pause).await;
    }
}

#[derive(Debug)]
pub(crate) struct Failure {
    pub(crate) verdict: Verdict,
    pub(crate) error: client::Error,
}

fn verdict(error: &client::Error) -> Verdict {
    if let Some(problem) = error.problem() {
        match (problem.code, problem.next) {
            (ErrorCode::LogMismatch, Some(next)) => return Verdict::LogFrom(next),
            (ErrorCode::JobOver | ErrorCode::OfferLapsed | ErrorCode::IllegalTransition, _) => {
                return Verdict::Over;
            }
            _ => {}
        }
    }
    match error.status() {
        Some(401 | 403 | 404) => Verdict::Over,
        _ if error.is_transient() => Verdict::Again,
        // An unreadable answer comes from something between the runner and the daemon.
        None => Verdict::Again,
        Some(_) => Verdict::Refused,
    }
}
