//! A worker's line to the daemon about one job: the job's token, what an error means for the job, and the note that the
//! daemon was heard. What is said is the callers' business.

use std::time::Duration;

use client::{Backoff, Client};
use model::error_chain;
use tokio::time::sleep;
use uuid::Uuid;
use wire::ErrorCode;

use crate::contact::Contact;
use crate::stop::{Stop, StopSignal};

/// Speaks for one job. Clones share everything.
#[derive(Debug, Clone)]
pub(crate) struct Link {
    /// Carries the job's token.
    pub(crate) client: Client,
    /// The job.
    pub(crate) job: Uuid,
    /// Told when the daemon says that the job is over.
    pub(crate) stop: StopSignal,
    /// Told of every answer.
    pub(crate) contact: Contact,
}

/// What an error means for the job.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Verdict {
    /// The same request may succeed later.
    Again,
    /// The log is expected from this record on.
    LogFrom(u64),
    /// The daemon has closed the job, or does not know it or its token any more.
    Over,
    /// The request was understood and refused; the job is as it was.
    Refused,
}

impl Link {
    /// Takes note of the result of a request, and stops a job that is over.
    pub(crate) fn judge<T>(&self, result: Result<T, client::Error>) -> Result<T, Failure> {
        match result {
            Ok(answer) => {
                self.contact.heard();
                Ok(answer)
            }
            Err(error) => {
                let verdict = verdict(&error);
                match verdict {
                    Verdict::Again => {}
                    Verdict::LogFrom(_) | Verdict::Refused => self.contact.heard(),
                    Verdict::Over => {
                        self.contact.heard();
                        self.stop.request(Stop::JobOver);
                    }
                }
                Err(Failure { verdict, error })
            }
        }
    }

    /// Waits after a failed request.
    pub(crate) async fn pause(&self, backoff: &mut Backoff, failure: &Failure) {
        let pause: Duration = backoff.failed();
        tracing::debug!(job = %self.job, error = error_chain(&failure.error), ?pause, "a request failed");
        sleep(pause).await;
    }
}

/// A request without its answer.
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
        // An answer that cannot be read comes from something between here and the daemon.
        None => Verdict::Again,
        Some(_) => Verdict::Refused,
    }
}
