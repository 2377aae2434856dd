//! Requests of a worker about its job.

use std::collections::BTreeMap;
use std::sync::Arc;

use model::decide::{
    Claim, ClaimOutcome, Claimed, Command, Complete, CutEndedLog, CutLog, Evaluate, EvaluatedClaim,
    Failure, LargeInputs, Refusal, ReportSteps, StoreArtifact, declared_artifact,
};
use model::limits::{EVALUATIONS_COST, WORKER_LAST_WORDS};
use model::{
    Artifact, Job, JobId, JobState, LeftOut, LogCut, NamedValues, ProjectId, Revision, RunnerId,
    Step, TokenHash, World,
};
use state::{AuditActor, AuditEntry, EncodedRecord, LogReceipt, SubmitError, Upload};
use tokio::time::Instant;
use workflow::{InputValue, Outputs, Sandbox, hex};

use crate::error::WorkerError;
use crate::evaluations::Purpose;
use crate::handle::Handle;
use crate::limits::EVALUATED_BESIDE;
use crate::masking;
use crate::runners::ArtifactProgress;

#[derive(Debug, Clone)]
pub struct Worker {
    job: Arc<Job>,
    token: TokenHash,
    standing: Standing,
}

#[derive(Debug, Clone, Copy)]
enum Standing {
    Offered(RunnerId),
    Executing(RunnerId),
    Over,
}

/// What the request of a claim adds to it.
#[derive(Debug, Clone)]
pub struct ClaimRequest {
    /// Hash of the token for the steps.
    pub job_token: TokenHash,
    /// The line of the audit log if the job gets secrets, without its actor.
    pub audited: AuditEntry,
}

#[derive(Debug, Clone)]
pub struct Resolved {
    pub job: Arc<Job>,
    pub revision: Arc<Revision>,
    pub inputs: BTreeMap<String, InputValue>,
    /// The secrets that its expressions use, and the names without a value.
    pub values: NamedValues,
    pub next_log_record: u64,
}

impl Worker {
    pub fn job(&self) -> &Arc<Job> {
        &self.job
    }

    #[cfg(test)]
    pub(crate) const fn token(&self) -> TokenHash {
        self.token
    }

    pub(crate) fn executing(&self) -> Result<(), WorkerError> {
        match self.standing {
            Standing::Executing(_) => Ok(()),
            Standing::Offered(_) => Err(WorkerError::Unauthorized { job: self.job.id }),
            Standing::Over => Err(self.over()),
        }
    }

    fn over(&self) -> WorkerError {
        WorkerError::Over {
            job: self.job.id,
            state: self.job.state.name(),
        }
    }

    /// True if anyone except the worker ended the job a moment ago. The worker may still append to the log.
    fn may_still_log(&self, handle: &Handle) -> bool {
        match handle.runners().ended_ago(self.job.id) {
            Some(ago) => ago < WORKER_LAST_WORDS,
            // The job ended before the daemon started, was replaced, or ended some time ago. Its record contains the time.
            None => self.job.may_log_until(handle.now()).is_some(),
        }
    }
}

impl Handle {
    pub async fn worker(&self, job: JobId, token: TokenHash) -> Result<Worker, WorkerError> {
        let unauthorized = || WorkerError::Unauthorized { job };
        // The offer is read before the job. If a claim is published in between, the offer is missing but the claim is
        // visible.
        let offered_to = self
            .runners()
            .board()
            .offered_to(job, token, Instant::now());
        // Read both at once, because the expiry times of live jobs move together with the world's time.
        let (live, time) = self
            .state()
            .read(|world| (world.job(job).cloned(), self.time(world)));
        let record = match live {
            Some(record) => record,
            None => self.state().job(job).await?.ok_or_else(unauthorized)?,
        };
        let standing = match &record.state {
            JobState::Scheduled => Standing::Offered(offered_to.ok_or_else(unauthorized)?),
            JobState::Running { run } if run.token == token && time < run.expires_at => {
                self.runners().heard(run.runner.id);
                Standing::Executing(run.runner.id)
            }
            JobState::Running { .. } | JobState::Skipped { .. } => return Err(unauthorized()),
            JobState::Succeeded { run, .. } | JobState::Failed { run, .. }
                if run.token == token =>
            {
                Standing::Over
            }
            JobState::Cancelled { run: Some(run), .. } if run.token == token => Standing::Over,
            JobState::Succeeded { .. } | JobState::Failed { .. } | JobState::Cancelled { .. } => {
                return Err(unauthorized());
            }
        };
        Ok(Worker {
            job: record,
            token,
            standing,
        })
    }

    /// Claims the offered job. A repeated request gets the same answer.
    pub async fn resolve(
        &self,
        worker: &Worker,
        request: Option<ClaimRequest>,
    ) -> Result<Resolved, WorkerError> {
        let runner = match worker.standing {
            Standing::Offered(runner) | Standing::Executing(runner) => runner,
            Standing::Over => return Err(worker.over()),
        };
        self.runners().heard(runner);
        let Claimed { job, revision } = self.claim(worker, runner, request).await?;
        // If this fails, a repeated request finds the claimed job.
        let inputs = self.state().inputs(&job).await?;
        let values = self.named_values(&job, &revision);
        let next_log_record = match worker.standing {
            Standing::Executing(_) => self.state().logs().records(job.id).await?,
            Standing::Offered(_) | Standing::Over => 0,
        };
        Ok(Resolved {
            job,
            revision,
            inputs,
            values,
            next_log_record,
        })
    }

    /// Claims the job. Costly expressions are evaluated outside of the committer, and after some attempts by the committer.
    async fn claim(
        &self,
        worker: &Worker,
        runner: RunnerId,
        request: Option<ClaimRequest>,
    ) -> Result<Claimed, WorkerError> {
        let job_token = request.as_ref().map(|request| request.job_token);
        let state = match request {
            Some(request) => self
                .state()
                .audited_claim(self.by_runner(request.audited, runner)),
            None => self.state().clone(),
        };
        let mut claim = Claim {
            job: worker.job.id,
            runner,
            token: worker.token,
            job_token,
            evaluate: Evaluate::CHEAP,
        };
        let mut attempts = 0;
        loop {
            // While the committer evaluates, this turn stops other evaluations.
            let mut turn = None;
            if attempts > EVALUATED_BESIDE {
                let project = worker.job.project;
                let held = self.evaluations().turn(project, Purpose::Claim).await;
                turn.insert(held).charge(EVALUATIONS_COST);
                claim.evaluate = Evaluate::HERE;
            }
            let outcome = state.submit(claim.clone()).await;
            match outcome.map_err(|error| match error {
                SubmitError::Refused(Refusal::JobOver { job } | Refusal::NotYourJob { job }) => {
                    WorkerError::OfferLapsed { job }
                }
                // The offer stays valid, so the worker may retry until it expires.
                error => WorkerError::Submit(error),
            })? {
                ClaimOutcome::Claimed(claimed) => return Ok(claimed),
                ClaimOutcome::Skipped(job) => {
                    return Err(WorkerError::OfferLapsed { job: job.id });
                }
                ClaimOutcome::Unevaluated => {}
            }
            drop(turn);
            attempts += 1;
            if attempts <= EVALUATED_BESIDE {
                claim.evaluate = self.evaluate_claim(&claim, worker.job.project).await?;
            }
        }
    }

    /// The entry of the audit log, with a runner as its actor.
    fn by_runner(&self, entry: AuditEntry, runner: RunnerId) -> AuditEntry {
        let name = |world: &World| world.runner(runner).map(|runner| runner.name.clone());
        AuditEntry {
            actor: Some(AuditActor {
                name: self.state().read(name).unwrap_or_default(),
                runner: Some(runner),
                ..AuditActor::default()
            }),
            ..entry
        }
    }

    /// Evaluates the expressions of a claim. If there is nothing to evaluate, the committer refuses the claim with the
    /// reason.
    async fn evaluate_claim(
        &self,
        claim: &Claim,
        project: ProjectId,
    ) -> Result<Evaluate<EvaluatedClaim>, SubmitError> {
        let mut turn = self.evaluations().turn(project, Purpose::Claim).await;
        let state = self.state();
        let histories = state.read(|world| claim.histories(world));
        let read = state.recent_jobs(histories).await;
        let Some(prepared) = state.read(|world| claim.prepare(world, &read)) else {
            return Ok(Evaluate::HERE);
        };
        turn.charge(prepared.cost());
        let evaluating = turn.evaluate(|| prepared.evaluate(&Sandbox::shared()));
        Ok(Evaluate::Done(Arc::new(evaluating.await?)))
    }

    pub async fn report_steps(
        &self,
        worker: &Worker,
        mut steps: Vec<Step>,
        artifact: Option<ArtifactProgress>,
    ) -> Result<(), WorkerError> {
        worker.executing()?;
        self.runners().note_artifact_progress(&worker.job, artifact);
        self.mask_errors(&worker.job, &mut steps, None.into_iter())
            .await;
        Ok(self
            .state()
            .submit(ReportSteps {
                job: worker.job.id,
                token: worker.token,
                steps,
            })
            .await?)
    }

    /// Appends to the job's log, up to its limit. A worker may do so for a short time after its job was ended by anyone else.
    pub async fn append_log(
        &self,
        worker: &Worker,
        from: u64,
        records: Vec<EncodedRecord>,
    ) -> Result<LogReceipt, WorkerError> {
        if !worker.may_still_log(self) {
            worker.executing()?;
        }
        let (job, run) = (worker.job.id, worker.job.state.run());
        let limit = run.and_then(|run| run.log_limit).unwrap_or(u64::MAX);
        let limit = limit.min(self.settings().log_limit);
        let logs = self.state().logs();
        let receipt = logs.append_within(limit, job, from, records).await?;
        if let Some(record) = receipt.cut
            && run.is_some_and(|run| run.log_cut.is_none())
        {
            let cut = LogCut { record, limit };
            let token = worker.token;
            match self.state().submit(CutLog { job, token, cut }).await {
                Ok(()) => {}
                Err(SubmitError::Refused(Refusal::JobOver { .. })) => {
                    self.cut_ended_log(job, cut).await;
                }
                Err(error) => return Err(error.into()),
            }
        }
        Ok(receipt)
    }

    /// Records that the log of a finished job is cut. If this fails, the log itself still contains the cut.
    async fn cut_ended_log(&self, id: JobId, cut: LogCut) {
        let noting = async move |handle: Self| {
            let job = handle.finished(id).await?;
            let cut = CutEndedLog { job, cut };
            Ok(handle.state().cut_ended_log(cut).await?)
        };
        if let Err(error) = self.with_removal_lock(noting).await {
            tracing::warn!(job = %id, %error, "the cut log of a job cannot be recorded");
        }
    }

    /// Checks whether an artifact of this name may be uploaded, before its bytes are read.
    pub fn may_store_artifact(&self, worker: &Worker, name: &str) -> Result<(), WorkerError> {
        worker.executing()?;
        let declared = self
            .state()
            .read(|world| declared_artifact(world, &worker.job, name).map(drop));
        declared.map_err(|refusal| WorkerError::Submit(SubmitError::Refused(refusal)))
    }

    /// Stores and records an uploaded artifact. If it is already recorded, the same bytes get the same answer, and
    /// other bytes are refused.
    pub async fn store_artifact(
        &self,
        worker: &Worker,
        name: String,
        upload: Upload,
        content_digest: String,
    ) -> Result<Artifact, WorkerError> {
        worker.executing()?;
        let received = upload.finish().await?;
        let store = StoreArtifact {
            job: worker.job.id,
            token: worker.token,
            name,
            size: received.size(),
            sha256: hex(&received.sha256()),
            content_digest,
        };
        Ok(self.state().store_artifact(store, received).await?)
    }

    /// Completes the job. If the job has already ended, returns its final state. Afterwards the log is durable, so that
    /// the worker may delete its copy.
    pub async fn complete(
        &self,
        worker: &Worker,
        mut steps: Vec<Step>,
        outputs: Outputs,
        mut left_out: BTreeMap<String, LeftOut>,
        log_records: u64,
        mut failure: Option<Failure>,
    ) -> Result<Arc<Job>, WorkerError> {
        let id = worker.job.id;
        if let Standing::Over = worker.standing {
            return self.complete_over(worker.job.clone(), log_records).await;
        }
        worker.executing()?;
        let files = left_out.values_mut().flat_map(|of_one| &mut of_one.files);
        let texts = files.flat_map(|file| [&mut file.name, &mut file.reason]);
        let texts = texts.chain(failure.as_mut().and_then(masking::text));
        self.mask_errors(&worker.job, &mut steps, texts).await;
        let complete = Complete {
            job: id,
            token: worker.token,
            steps,
            outputs,
            left_out,
            log_records,
            log_bytes: 0,
            failure,
            large_inputs: LargeInputs::NotCopied,
        };
        match self
            .state()
            .complete(complete)
            .await
            .map_err(WorkerError::from)
        {
            Err(WorkerError::Submit(SubmitError::Refused(Refusal::JobOver { .. }))) => {
                // The job ended between the read and the decision.
                let job = self.state().job(id).await?;
                let job = job.ok_or(WorkerError::Unauthorized { job: id })?;
                self.complete_over(job, log_records).await
            }
            answer => answer,
        }
    }

    /// Answers the completion of a job that has ended. If its worker ended it, its log is already durable.
    async fn complete_over(
        &self,
        job: Arc<Job>,
        log_records: u64,
    ) -> Result<Arc<Job>, WorkerError> {
        if job.ended_by_another_at().is_some() {
            self.state().settle_log(job.id, log_records).await?;
        }
        Ok(job)
    }
}
