//! A runner takes a job.

use std::collections::BTreeMap;
use std::sync::Arc;

use workflow::{Context, JobIdentity};

use super::{Command, Decision, Refusal, Urgency};
use crate::job::{Job, JobState, Run, RunnerRef};
use crate::life_cycle::JobEvent;
use crate::limits::WORKER_SESSION;
use crate::moment::Moment;
use crate::revision::Revision;
use crate::scan_head::ScanHead;
use crate::world::{Change, World};
use crate::{JobId, RunnerId, TokenHash};

/// Claim a scheduled job for a runner, under the worker token of its offer.
#[derive(Debug, Clone)]
pub struct Claim {
    /// The job.
    pub job: JobId,
    /// Who was offered it.
    pub runner: RunnerId,
    /// Hash of the offer's token.
    pub token: TokenHash,
}

/// A claimed job and what it executes.
#[derive(Debug, Clone)]
pub struct Claimed {
    /// The job, running.
    pub job: Arc<Job>,
    /// Its revision.
    pub revision: Arc<Revision>,
}

impl Command for Claim {
    type Answer = Claimed;
    const URGENCY: Urgency = Urgency::Ordinary;

    /// A repeat by the same worker gets the same answer; a job somebody else claimed is refused, and so is one whose
    /// scan is gone: it is about to be cancelled.
    fn decide(self, world: &World, moment: &mut Moment<'_>) -> Result<Decision<Claimed>, Refusal> {
        let Some(job) = world.job(self.job) else {
            return Err(Refusal::JobOver { job: self.job });
        };
        let runner = world.runner(self.runner).ok_or(Refusal::NoSuchRunner)?;
        let Some(revision) = world.revision(job.revision.id).cloned() else {
            return Err(Refusal::RevisionUnreadable {
                job: job.id,
                revision: job.revision.number,
            });
        };
        if let JobState::Running { run } = &job.state {
            return if run.token == self.token {
                Ok(Decision::unchanged(Claimed {
                    job: job.clone(),
                    revision,
                }))
            } else {
                Err(Refusal::NotYourJob { job: job.id })
            };
        }
        if world.is_orphan(job) {
            return Err(Refusal::JobOver { job: job.id });
        }
        let timeout = revision
            .definition
            .scan(job.scan.as_str())
            .and_then(|scan| scan.timeout);
        let run = Run {
            runner: RunnerRef {
                id: runner.id,
                name: runner.name.clone(),
            },
            token: self.token,
            started_at: moment.now,
            claimed: moment.order,
            expires_at: moment.now + WORKER_SESSION,
            deadline: timeout.map(|timeout| moment.now + timeout),
            context: context(job),
            steps: Vec::new(),
            artifacts: Vec::new(),
            log_records: 0,
        };
        let job = job.after(JobEvent::Claimed(Box::new(run)))?;
        let key = job.scan_key();
        let mut head = world.head(&key).map_or_else(
            || ScanHead::new(key.workflow, key.scan),
            |head| ScanHead::clone(head),
        );
        head.latest_claim = Some(moment.order);
        head.latest_job = head.latest_job.max(job.id);
        Ok(Decision {
            changes: vec![Change::Job(job.clone()), Change::Head(Arc::new(head))],
            answer: Claimed { job, revision },
        })
    }
}

/// What the job's expressions read. Inputs are the job's own and are not repeated in its record.
fn context(job: &Job) -> Context {
    Context {
        job: Some(JobIdentity {
            id: job.id.to_string(),
            name: job.scan.to_string(),
        }),
        project: job.project.to_string(),
        workflow: job.workflow.id.to_string(),
        revision: job.revision.id.to_string(),
        vars: BTreeMap::new(),
        secrets: BTreeMap::new(),
        inputs: BTreeMap::new(),
        scans: BTreeMap::new(),
        ok: true,
    }
}
