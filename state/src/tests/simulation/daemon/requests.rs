//! Requests of runners and their answers.

use std::collections::BTreeSet;
use std::sync::Arc;

use bytes::Bytes;
use chrono::TimeDelta;
use model::decide::{
    Claim, ClaimOutcome, Command, Complete, EndJob, Evaluate, LargeInputs, Loss, Refusal,
    ReportSteps, StoreArtifact,
};
use model::limits::WORKER_SESSION;
use model::{
    JobId, JobState, PlainToken, Reach, RunnerId, Step, StepOutcome, StepStatus, TokenHash,
    next_job,
};
use workflow::{Outputs, Sandbox, hex};

use super::{Daemon, OFFER, Offer};
use crate::SubmitError;
use crate::log::CompleteError;
use crate::tests::fixture::Seeded;
use crate::tests::simulation::time::SECOND;

/// A request of a runner or of a worker on it.
#[derive(Clone, Debug)]
pub(crate) struct Request {
    pub(crate) runner: RunnerId,
    pub(crate) body: Body,
}

#[derive(Clone, Debug)]
pub(crate) enum Body {
    /// The process of the runner has started or ends, and runs no jobs.
    Empty,
    Poll {
        number: u64,
        capacity: usize,
        holding: BTreeSet<JobId>,
    },
    Claim {
        job: JobId,
        token: TokenHash,
    },
    Report {
        job: JobId,
        token: TokenHash,
    },
    Artifact {
        job: JobId,
        token: TokenHash,
        content: u64,
    },
    Complete {
        job: JobId,
        token: TokenHash,
        is_success: bool,
    },
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Message {
    Assigned(JobId, TokenHash),
    Cancelled(JobId),
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Answer {
    Done,
    Messages(Vec<Message>),
    /// A retry would be refused too.
    Refused,
    /// The runner may retry the request.
    Failed,
}

impl Daemon {
    pub(crate) async fn answer(&mut self, request: Request) -> Answer {
        let runner = request.runner;
        match &request.body {
            Body::Empty => {
                self.heard.insert(runner, self.time.steady());
                self.offers.retain(|_, offer| offer.runner != runner);
                self.newest_polls.remove(&runner);
                self.lose(runner, |_, _| true).await
            }
            Body::Poll {
                number,
                capacity,
                holding,
            } => {
                self.heard.insert(runner, self.time.steady());
                let newest = self.newest_polls.entry(runner).or_default();
                if number < newest {
                    return Answer::Messages(Vec::new());
                }
                *newest = *number;
                let stale = WORKER_SESSION - TimeDelta::milliseconds(OFFER);
                let is_fresh = |left| left > stale && left <= WORKER_SESSION;
                let is_lost = |job: JobId, left| !holding.contains(&job) && !is_fresh(left);
                if self.lose(runner, is_lost).await != Answer::Done {
                    return Answer::Failed;
                }
                Answer::Messages(self.messages(runner, *capacity, holding))
            }
            Body::Claim { job, token }
            | Body::Report { job, token }
            | Body::Artifact { job, token, .. }
            | Body::Complete { job, token, .. } => {
                if !self.is_allowed(*job, *token) {
                    return Answer::Refused;
                }
                self.heard.insert(runner, self.time.steady());
                if self.choices.percent(5) {
                    // The command is submitted later.
                    self.admitted.push(request);
                    return Answer::Failed;
                }
                self.serve(request).await
            }
        }
    }

    /// Submits the commands of requests that were accepted earlier. Returns the requests with their answers.
    pub(crate) async fn serve_admitted(&mut self) -> Vec<(Request, Answer)> {
        let mut answers = Vec::new();
        for request in std::mem::take(&mut self.admitted) {
            let answer = self.serve(request.clone()).await;
            answers.push((request, answer));
        }
        answers
    }

    /// Whether the token belongs to the job's offer or execution.
    pub(crate) fn is_allowed(&self, id: JobId, token: TokenHash) -> bool {
        let offer = self.offers.get(&id);
        let is_offered =
            offer.is_some_and(|offer| offer.token == token && self.time.steady() < offer.until);
        let time = self.world_time();
        self.state.read(|world| {
            world.job(id).is_some_and(|job| match &job.state {
                JobState::Scheduled => is_offered,
                JobState::Running { run } => run.token == token && time < run.expires_at,
                JobState::Succeeded { .. }
                | JobState::Failed { .. }
                | JobState::Cancelled { .. }
                | JobState::Skipped { .. } => false,
            })
        })
    }

    async fn serve(&mut self, request: Request) -> Answer {
        let runner = request.runner;
        match request.body {
            Body::Claim { job, token } => {
                let mut claim = Claim {
                    job,
                    runner,
                    token,
                    job_token: Some(job_token(token)),
                    evaluate: Evaluate::CHEAP,
                };
                let mut outcome = self.submit(claim.clone()).await;
                if let Ok(ClaimOutcome::Unevaluated) = outcome {
                    // Other decisions may come between evaluation and claim.
                    let histories = self.state.read(|world| claim.histories(world));
                    let read = self.state.recent_jobs(histories).await;
                    let prepared = self.state.read(|world| claim.prepare(world, &read));
                    if self.choices.percent(50) {
                        self.pull_triggers().await;
                    }
                    claim.evaluate = prepared.map_or(Evaluate::HERE, |prepared| {
                        Evaluate::Done(Arc::new(prepared.evaluate(&Sandbox::shared())))
                    });
                    outcome = self.submit(claim.clone()).await;
                }
                if let Ok(ClaimOutcome::Unevaluated) = outcome {
                    claim.evaluate = Evaluate::HERE;
                    outcome = self.submit(claim).await;
                }
                match outcome {
                    Ok(ClaimOutcome::Claimed(_)) => Answer::Done,
                    Ok(ClaimOutcome::Skipped(_)) => Answer::Refused,
                    Ok(ClaimOutcome::Unevaluated) => {
                        panic!("the committer did not evaluate the expression")
                    }
                    Err(error) => refused(&error),
                }
            }
            Body::Report { job, token } => {
                let steps = vec![step(None)];
                done(self.submit(ReportSteps { job, token, steps }).await)
            }
            Body::Artifact {
                job,
                token,
                content,
            } => self.store(job, token, content).await,
            Body::Complete {
                job,
                token,
                is_success,
            } => {
                let outcome = if is_success {
                    StepOutcome::Succeeded
                } else {
                    StepOutcome::Failed
                };
                let complete = Complete {
                    job,
                    token,
                    steps: vec![step(Some(outcome))],
                    outputs: Outputs::new(),
                    left_out: std::collections::BTreeMap::new(),
                    log_records: 0,
                    log_bytes: 0,
                    failure: None,
                    large_inputs: LargeInputs::NotCopied,
                };
                let answer = match self.state.complete(complete).await {
                    Ok(job) => Ok(job),
                    Err(CompleteError::Submit(error)) => Err(error),
                    Err(CompleteError::Log(error)) => panic!("there is no log: {error}"),
                };
                done(self.note(answer))
            }
            Body::Empty | Body::Poll { .. } => Answer::Failed,
        }
    }

    async fn store(&mut self, job: JobId, token: TokenHash, content: u64) -> Answer {
        let Ok(upload) = self.state.begin_upload().await else {
            return Answer::Failed;
        };
        let content = content.to_string();
        let upload = upload.write(Bytes::from(content.clone())).await.unwrap();
        let received = upload.finish().await.unwrap();
        let store = StoreArtifact {
            job,
            token,
            name: "out".to_owned(),
            size: received.size(),
            sha256: hex(&received.sha256()),
            content_digest: content,
        };
        let answer = self.state.store_artifact(store, received).await;
        done(self.note(answer))
    }

    /// Ends jobs of a runner as lost. `is_lost` gets the remaining time of the job's session.
    async fn lose(
        &mut self,
        runner: RunnerId,
        is_lost: impl Fn(JobId, TimeDelta) -> bool,
    ) -> Answer {
        let time = self.world_time();
        let ends: Vec<EndJob> = self.state.read(|world| {
            let jobs = world.running_on(runner).filter(|job| {
                let run = job.state.run();
                run.is_some_and(|run| is_lost(job.id, run.expires_at - time))
            });
            jobs.map(|job| EndJob::new(job.id, Loss::RunnerLost))
                .collect()
        });
        let answers = self.submit_all(ends).await;
        if answers.iter().all(|(_, answer)| answer.is_ok()) {
            Answer::Done
        } else {
            Answer::Failed
        }
    }

    /// The messages for a runner: jobs that it must stop, and jobs that it may claim.
    fn messages(
        &mut self,
        runner: RunnerId,
        capacity: usize,
        holding: &BTreeSet<JobId>,
    ) -> Vec<Message> {
        let now = self.time.steady();
        let state = self.state.clone();
        let time = self.world_time();
        state.read(|world| {
            self.offers.retain(|job, offer| {
                let job = world.job(*job);
                now < offer.until
                    && job.is_some_and(|job| {
                        let is_held = world.suspension(&job.scan_key()).is_some();
                        matches!(job.state, JobState::Scheduled) && !is_held
                    })
            });
            self.turns.keep_waiting(world);
            let mut messages = Vec::new();
            let mut busy = world.running_on(runner).count();
            for job in holding {
                let offer = self.offers.get(job);
                let is_offered = offer.is_some_and(|offer| offer.runner == runner);
                let runs = world.running_on(runner).any(|running| running.id == *job);
                if !is_offered && !runs {
                    busy += 1;
                    messages.push(Message::Cancelled(*job));
                }
            }
            for (job, offer) in &mut self.offers {
                if offer.runner == runner {
                    busy += 1;
                    if !holding.contains(job) && offer.reported + SECOND <= now {
                        offer.reported = now;
                        messages.push(Message::Assigned(*job, offer.token));
                    }
                }
            }
            let Some(reach) = world.runner(runner).map(|runner| Reach::of(runner)) else {
                return messages;
            };
            while busy < capacity {
                let taken = |job| self.offers.contains_key(&job) || holding.contains(&job);
                let next = next_job(world, &reach, &self.turns, time, taken);
                let Some((turn, job)) = next else {
                    break;
                };
                let token = PlainToken::session(&mut Seeded(self.choices.next())).hash();
                self.turns.serve(turn);
                let offer = Offer {
                    runner,
                    token,
                    until: now + OFFER,
                    reported: now,
                };
                self.offers.insert(job, offer);
                messages.push(Message::Assigned(job, token));
                busy += 1;
            }
            messages
        })
    }
}

fn step(outcome: Option<StepOutcome>) -> Step {
    let status = match outcome {
        None => StepStatus::Running,
        Some(StepOutcome::Failed | StepOutcome::Cancelled) => StepStatus::Failed,
        Some(StepOutcome::Succeeded | StepOutcome::Skipped) => StepStatus::Succeeded,
    };
    Step {
        name: None,
        index: 0,
        status,
        outcome,
        exit_code: None,
        error: None,
        started_at: None,
        finished_at: None,
    }
}

/// The hash of the token for the steps of a job, derived from the token of its worker.
pub(crate) fn job_token(worker: TokenHash) -> TokenHash {
    TokenHash::of(&format!("for the steps of {worker:?}"))
}

fn done<A>(answer: Result<A, SubmitError>) -> Answer {
    answer.map_or_else(|error| refused(&error), |_| Answer::Done)
}

/// `Refused` if a retry would be refused too, and otherwise `Failed`.
fn refused(error: &SubmitError) -> Answer {
    match error {
        SubmitError::Refused(
            Refusal::JobOver { .. }
            | Refusal::NotYourJob { .. }
            | Refusal::ArtifactMismatch { .. }
            | Refusal::UndeclaredArtifact { .. },
        ) => Answer::Refused,
        SubmitError::Refused(Refusal::JobHeld { .. })
        | SubmitError::DiskLow
        | SubmitError::DiskFull
        | SubmitError::TooLarge
        | SubmitError::Contradicted
        | SubmitError::Defect { .. }
        | SubmitError::OutcomeUnknown => Answer::Failed,
        SubmitError::Refused(refusal) => panic!("a runner must not get this refusal: {refusal}"),
    }
}
