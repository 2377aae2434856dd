//! A runner claims a job.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use serde::Serialize;
use workflow::limits::HISTORY_SUCCESSES;
use workflow::{Context, EngineError, JobIdentity, Outputs, Sandbox, Scan};

use super::mints::mint_for;
use super::triggers::{Recheck, recheck, rechecked};
use super::{Command, Decision, Evaluate, Refusal, Urgency};
use crate::abilities::JOB_TOKEN;
use crate::callback::CallbackCause;
use crate::change::Change;
use crate::frozen;
use crate::job::{EndState, Inputs, Job, JobState, JobToken, Run, RunnerRef, Trigger};
use crate::life_cycle::JobEvent;
use crate::limits::{CONTEXT_BYTES, WORKER_SESSION};
use crate::moment::Moment;
use crate::read_set::{self, Evaluated, PreparedExpression, ReadSet, reading_cost};
use crate::recent::Recent;
use crate::revision::{ActiveWorkflow, Revision};
use crate::view::{View, histories, unreadable};
use crate::world::World;
use crate::{JobId, RunnerId, ScanKey, Scopes, TokenHash};

/// Claim a scheduled job for a runner, with the worker token of its offer.
#[derive(Debug, Clone)]
pub struct Claim {
    pub job: JobId,
    pub runner: RunnerId,
    /// Hash of the offer's token.
    pub token: TokenHash,
    /// Hash of the token for the steps.
    pub job_token: Option<TokenHash>,
    pub evaluate: Evaluate<EvaluatedClaim>,
}

/// A claimed job and the revision that it runs.
#[derive(Debug, Clone)]
pub struct Claimed {
    pub job: Arc<Job>,
    pub revision: Arc<Revision>,
}

#[derive(Debug, Clone)]
pub enum ClaimOutcome {
    Claimed(Claimed),
    /// The expression of the job is no longer true.
    Skipped(Arc<Job>),
    /// The job still waits. Its expressions were not evaluated, because their cost is too high or their inputs have changed.
    Unevaluated,
}

impl ClaimOutcome {
    /// The current record of the job, if the claim was decided.
    pub const fn job(&self) -> Option<&Arc<Job>> {
        match self {
            Self::Claimed(claimed) => Some(&claimed.job),
            Self::Skipped(job) => Some(job),
            Self::Unevaluated => None,
        }
    }
}

/// The expressions that a claim evaluates, with all their inputs.
pub struct PreparedClaim {
    /// The trigger's expression, if it must still be true.
    trigger: Option<PreparedExpression>,
    /// The inputs of the job's expressions.
    read: ReadSet,
    cost: u64,
}

/// The result of the evaluation for a claim, with its inputs.
#[derive(Debug, Clone)]
pub struct EvaluatedClaim {
    trigger: Option<Evaluated>,
    read: ReadSet,
    /// The part of `read` that is sent with the job.
    context: Context,
}

impl PreparedClaim {
    /// Upper bound of the cost of [`PreparedClaim::evaluate`], in the units of [`workflow::Expression::cost`].
    pub const fn cost(&self) -> u64 {
        self.cost
    }

    pub fn evaluate(self, sandbox: &Result<&Sandbox, EngineError>) -> EvaluatedClaim {
        let mut context = self.read.context();
        keep_within(&mut context, CONTEXT_BYTES);
        EvaluatedClaim {
            trigger: self.trigger.map(|trigger| trigger.evaluate(sandbox)),
            read: self.read,
            context,
        }
    }
}

impl EvaluatedClaim {
    /// True if evaluating `prepared` would return the same result.
    fn matches(&self, prepared: &PreparedClaim) -> bool {
        let is_same = match (&self.trigger, &prepared.trigger) {
            (Some(done), Some(prepared)) => done.matches(prepared),
            (None, None) => true,
            (Some(_), None) | (None, Some(_)) => false,
        };
        is_same && self.read == prepared.read
    }
}

impl Claim {
    /// Collects the expressions of the claim and their inputs. `read` supplies the newest jobs of scans that the world
    /// does not hold. None if there is nothing to evaluate; the decision then returns the reason.
    pub fn prepare(
        &self,
        world: &World,
        read: &BTreeMap<ScanKey, Arc<Recent>>,
    ) -> Option<PreparedClaim> {
        let job = world.job(self.job)?;
        let workflow = to_run(world, job)?;
        let scan = workflow.scan(&job.scan)?;
        Some(prepare(&View::with(world, read), &workflow, scan, job))
    }
}

impl Command for Claim {
    type Answer = ClaimOutcome;
    const URGENCY: Urgency = Urgency::Ordinary;

    fn histories(&self, world: &World) -> BTreeSet<ScanKey> {
        let workflow = world
            .job(self.job)
            .and_then(|job| Some((job, to_run(world, job)?)));
        let read = workflow.and_then(|(job, workflow)| {
            let scan = workflow.scan(&job.scan)?;
            Some(histories(world, &workflow, &scan.references()))
        });
        read.unwrap_or_default()
    }

    /// A repeat by the same worker gets the same answer. The claim is refused if another worker has claimed the job, or
    /// if the scan was removed, because then the job will be cancelled.
    fn decide(
        self,
        world: &World,
        moment: &mut Moment<'_>,
    ) -> Result<Decision<ClaimOutcome>, Refusal> {
        let Some(job) = world.job(self.job) else {
            return Err(Refusal::JobOver { job: self.job });
        };
        let runner = world.runner(self.runner).ok_or(Refusal::NoSuchRunner)?;
        let lost_revision = || Refusal::RevisionUnreadable {
            job: job.id,
            revision: job.revision.number,
        };
        let workflow = to_run(world, job).ok_or_else(lost_revision)?;
        let revision = workflow.revision.clone();
        if let JobState::Running { run } = &job.state {
            return if run.token == self.token {
                Ok(Decision::unchanged(ClaimOutcome::Claimed(Claimed {
                    job: job.clone(),
                    revision,
                })))
            } else {
                Err(Refusal::NotYourJob { job: job.id })
            };
        }
        if world.is_orphan(job) {
            return Err(Refusal::JobOver { job: job.id });
        }
        // The runner may have been limited since the offer.
        if !runner.projects.contain(job.project) {
            return Err(Refusal::NotServed {
                job: job.id,
                runner: runner.name.clone(),
            });
        }
        if let Some(suspension) = world.suspension(&job.scan_key()) {
            return Err(Refusal::JobHeld {
                job: job.id,
                why: Box::new(suspension.as_reason()),
            });
        }
        let scan = workflow.scan(&job.scan).ok_or_else(lost_revision)?;
        if let Some(scan) = unreadable(&View::of(world), &workflow, &scan.references()) {
            return Err(Refusal::HistoryUnreadable {
                scan: scan.scan.to_string(),
            });
        }
        let view = View::of(world);
        let evaluated = match self.evaluate {
            Evaluate::UpTo(limit) if cost(&view, &workflow, scan, job) > limit => None,
            Evaluate::UpTo(_) => {
                let prepared = prepare(&view, &workflow, scan, job);
                Some(Arc::new(prepared.evaluate(&moment.sandbox)))
            }
            Evaluate::Done(done) => {
                let is_same = done.matches(&prepare(&view, &workflow, scan, job));
                is_same.then_some(done)
            }
        };
        let Some(evaluated) = evaluated else {
            return Ok(Decision::unchanged(ClaimOutcome::Unevaluated));
        };
        let EvaluatedClaim {
            trigger, context, ..
        } = Arc::unwrap_or_clone(evaluated);
        let evaluation = trigger.map(|trigger| trigger.evaluation);
        let mut head = match recheck(world, job, evaluation, moment)? {
            Recheck::Wanted(head) => *head,
            Recheck::Skipped(job, changes) => {
                return Ok(Decision {
                    changes,
                    answer: ClaimOutcome::Skipped(job),
                });
            }
        };
        let minted = match &scan.callback {
            Some(server) => mint_for(world, job, server, moment)?,
            None => None,
        };
        let (callback, mut changes) = match minted {
            Some((callback, changes)) => (Some(callback), Vec::from(changes)),
            None => (None, Vec::new()),
        };
        let run = Run {
            runner: RunnerRef {
                id: runner.id,
                name: runner.name.clone(),
            },
            token: self.token,
            job_token: self
                .job_token
                .filter(|_| runner.capabilities.iter().any(|it| it == JOB_TOKEN))
                .map(|hash| JobToken {
                    hash,
                    permissions: scan.permissions.as_deref().map(Scopes::of_permissions),
                }),
            callback,
            started_at: moment.now,
            claimed: moment.order,
            expires_at: moment.steady + WORKER_SESSION,
            deadline: scan.timeout.map(|timeout| moment.steady + timeout),
            context,
            secrets: frozen::secrets(world, job.project, &scan.references()),
            steps: Vec::new(),
            artifacts: Vec::new(),
            outputs: Outputs::new(),
            log_records: 0,
            log_bytes: 0,
            log_limit: scan.log_limit,
            log_cut: None,
        };
        let claimed = job.after(JobEvent::Claimed(Box::new(run)))?;
        let job = Arc::new(Job {
            revision: revision.record.reference.clone(),
            inputs: match job.trigger {
                Trigger::Dispatch => job.inputs.clone(),
                Trigger::Cron | Trigger::Expr | Trigger::Callback => Inputs::defaults_of(scan),
            },
            source: match (&scan.checkout, job.trigger, &job.source) {
                (None, _, _) => None,
                (Some(_), Trigger::Dispatch, Some(fixed)) => Some(fixed.clone()),
                (Some(_), Trigger::Dispatch, None)
                | (Some(_), Trigger::Cron | Trigger::Expr | Trigger::Callback, _) => {
                    Some(Box::new(world.files_of(&workflow.record)))
                }
            },
            ..Job::clone(&claimed)
        });
        head.latest_claim = Some(moment.order);
        head.latest_job = head.latest_job.max(job.id);
        changes.extend([Change::Job(job.clone()), Change::Head(Arc::new(head))]);
        Ok(Decision {
            changes,
            answer: ClaimOutcome::Claimed(Claimed { job, revision }),
        })
    }
}

/// The workflow with the revision that the job runs.
fn to_run(world: &World, job: &Job) -> Option<ActiveWorkflow> {
    Some(ActiveWorkflow {
        record: world.workflow_record(job.workflow.id)?.clone(),
        revision: world.revision(world.revision_to_run(job))?.clone(),
    })
}

fn cost(view: &View<'_>, workflow: &ActiveWorkflow, scan: &Scan, job: &Job) -> u64 {
    let trigger = rechecked(view, job).map_or(0, |(active, expression)| {
        read_set::cost(&active, &expression)
    });
    trigger + reading_cost(workflow, &scan.references())
}

/// Collects the inputs of a claim from the world. The job's inputs are not read, because the job's record contains them.
fn prepare(view: &View<'_>, workflow: &ActiveWorkflow, scan: &Scan, job: &Job) -> PreparedClaim {
    let key = job.scan_key();
    let trigger = rechecked(view, job)
        .map(|(active, expression)| view.prepare(&active, &key, &expression, Some(job.id)));
    let mut read = view.read(workflow, &key, &scan.references(), Some(job.id));
    read.context.job = Some(JobIdentity {
        id: job.id.to_string(),
        name: job.scan.to_string(),
    });
    let cause = job.callback.as_deref();
    read.context.callback = cause.map(CallbackCause::summary).unwrap_or_default();
    PreparedClaim {
        trigger,
        read,
        cost: cost(view, workflow, scan, job),
    }
}

/// Removes the oldest jobs of the longest histories until the context fits into its record. The newest two successes of
/// each scan stay, if necessary without their outputs.
fn keep_within(context: &mut Context, bytes: usize) {
    let mut excess = length(&context.scans).saturating_sub(bytes);
    let longest = context.scans.values().map(|scan| scan.jobs.len()).max();
    let mut kept = longest.unwrap_or(0);
    while excess > 0 && kept > 1 {
        kept /= 2;
        for scan in context.scans.values_mut() {
            if excess == 0 {
                return;
            }
            if scan.jobs.len() <= kept {
                continue;
            }
            let before = length(&scan.jobs);
            let (mut at, mut successes) = (0, 0);
            scan.jobs.retain(|job| {
                let is_success = job.state == EndState::Succeeded.name();
                successes += usize::from(is_success);
                at += 1;
                at <= kept || (is_success && successes <= HISTORY_SUCCESSES)
            });
            excess = excess.saturating_sub(before - length(&scan.jobs));
        }
    }
    for place in (0..HISTORY_SUCCESSES).rev() {
        for scan in context.scans.values_mut() {
            if excess == 0 {
                return;
            }
            if let Some(job) = scan.jobs.get_mut(place) {
                let before = length(job);
                job.outputs.clear();
                excess = excess.saturating_sub(before - length(job));
            }
        }
    }
}

fn length(part: &impl Serialize) -> usize {
    serde_json::to_vec(part).map_or(0, |json| json.len())
}

#[cfg(test)]
mod tests {
    use workflow::{CallbackSummary, JobSummary, News, ScanHistory};

    use super::*;
    use crate::testing::line;

    #[test]
    fn a_large_context_keeps_the_newest_jobs_and_successes() {
        let failed = (3..100).map(|number| line(number, EndState::Failed).summary());
        let succeeded = (1..3).map(|number| line(number, EndState::Succeeded).summary());
        let jobs: Vec<_> = succeeded.chain(failed).rev().collect();
        let digests = BTreeMap::from([("list".to_owned(), "d".to_owned())]);
        let history = ScanHistory {
            size: 99,
            jobs,
            newest_successes: vec![digests],
            news: Some(News::default()),
            ..ScanHistory::default()
        };
        let mut context = Context {
            job: None,
            project: String::new(),
            workflow: String::new(),
            revision: String::new(),
            vars: BTreeMap::new(),
            secrets: BTreeMap::new(),
            inputs: BTreeMap::new(),
            callback: CallbackSummary::default(),
            scans: BTreeMap::from([("a".to_owned(), history.clone()), ("b".to_owned(), history)]),
            steps: BTreeMap::new(),
            ok: true,
        };
        keep_within(&mut context, 8 * 1024);
        assert!(serde_json::to_vec(&context.scans).unwrap().len() <= 8 * 1024);
        for scan in context.scans.values() {
            let succeeded = scan.jobs.iter().filter(|job| job.state == "succeeded");
            assert_eq!(succeeded.count(), 2);
            assert_eq!(scan.jobs[0].id, line(99, EndState::Failed).id.to_string());
            assert_eq!(scan.size, 99);
            // The successes that the job will have processed are complete.
            assert_eq!(scan.newest_successes[0]["list"], "d");
            assert_eq!(scan.news, Some(News::default()));
        }
    }

    #[test]
    fn outputs_are_removed_before_the_newest_jobs_and_the_oldest_first() {
        let outputs = Outputs::from([("key".to_owned(), "x".repeat(6 * 1024))]);
        let jobs: Vec<_> = (1..3)
            .rev()
            .map(|number| JobSummary {
                outputs: outputs.clone(),
                ..line(number, EndState::Succeeded).summary()
            })
            .collect();
        let history = ScanHistory {
            size: 2,
            jobs,
            ..ScanHistory::default()
        };
        let mut context = Context {
            job: None,
            project: String::new(),
            workflow: String::new(),
            revision: String::new(),
            vars: BTreeMap::new(),
            secrets: BTreeMap::new(),
            inputs: BTreeMap::new(),
            callback: CallbackSummary::default(),
            scans: BTreeMap::from([("a".to_owned(), history.clone()), ("b".to_owned(), history)]),
            steps: BTreeMap::new(),
            ok: true,
        };
        keep_within(&mut context, 16 * 1024);
        for scan in context.scans.values() {
            assert_eq!(scan.jobs[0].outputs, outputs);
            assert!(scan.jobs[1].outputs.is_empty());
        }
    }
}
