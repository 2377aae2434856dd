//! The inputs of expressions. A [`ReadSet`] holds references to records, so it is cheap to make. The values that an
//! expression reads are built from it later. Equal read sets result in equal values.

use std::collections::BTreeMap;
use std::sync::Arc;

use workflow::limits::{HISTORY_JOBS, HISTORY_SUCCESSES};
use workflow::{
    ArtifactSummary, Context, EngineError, Expression, JobSummary, Reach, References, Sandbox, Scan,
};

use crate::history::HistoryLine;
use crate::job::{EndState, Job};
use crate::ledger::{Evaluation, ScanRead};
use crate::limits::{ARTIFACT_READ_COST, JOB_READ_COST, OUTPUTS_READ_COST, SCAN_READ_COST};
use crate::recent::Recent;
use crate::revision::ActiveWorkflow;
use crate::{Clause, JobId};

/// The inputs of all expressions with the same references.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct ReadSet {
    /// Everything except the jobs.
    pub(crate) context: Context,
    /// The jobs of the scans whose jobs are read.
    pub(crate) jobs: BTreeMap<String, JobsRead>,
    /// True if the outputs of jobs are read.
    pub(crate) outputs: bool,
}

#[derive(Debug, Clone)]
pub(crate) struct JobsRead {
    pub(crate) reach: Reach,
    pub(crate) unfinished: Vec<Arc<Job>>,
    /// The finished jobs of the scan, also under its former names.
    pub(crate) recent: Vec<Arc<Recent>>,
    /// The success that ended last.
    pub(crate) newest_success: Option<JobId>,
    /// The job that the current decision ends.
    pub(crate) ended: Option<HistoryLine>,
}

/// Equal if expressions read the same jobs. A finished job never changes.
impl PartialEq for JobsRead {
    fn eq(&self, other: &Self) -> bool {
        let (jobs, others) = (self.readable_jobs(), other.readable_jobs());
        let is_equal = |pair: (&Known<'_>, &Known<'_>)| match pair {
            (Known::Unfinished(one), Known::Unfinished(other)) => {
                std::ptr::eq(*one, *other) || summary_of(one) == summary_of(other)
            }
            (Known::Finished(one), Known::Finished(other)) => one.id == other.id,
            (Known::Unfinished(_), Known::Finished(_))
            | (Known::Finished(_), Known::Unfinished(_)) => false,
        };
        jobs.len() == others.len() && jobs.iter().zip(&others).all(is_equal)
    }
}

/// A job that an expression may read.
enum Known<'a> {
    Unfinished(&'a Job),
    Finished(&'a HistoryLine),
}

impl Known<'_> {
    fn state(&self) -> &'static str {
        match self {
            Self::Unfinished(job) => job.state.name(),
            Self::Finished(line) => line.state.name(),
        }
    }

    fn summary(&self) -> JobSummary {
        match self {
            Self::Unfinished(job) => summary_of(job),
            Self::Finished(line) => line.summary(),
        }
    }
}

impl ReadSet {
    pub(crate) fn context(&self) -> Context {
        let mut context = self.context.clone();
        for (scan, jobs) in &self.jobs {
            if let Some(history) = context.scans.get_mut(scan) {
                history.jobs = jobs.readable_jobs().iter().map(Known::summary).collect();
                if !self.outputs {
                    history.jobs.iter_mut().for_each(|job| job.outputs.clear());
                }
            }
        }
        context
    }
}

impl JobsRead {
    /// The jobs that expressions can read, newest first.
    fn readable_jobs<'a>(&'a self) -> Vec<Known<'a>> {
        let unfinished = self.unfinished.iter();
        let mut jobs: BTreeMap<JobId, Known<'_>> = unfinished
            .map(|job| (job.id, Known::Unfinished(job)))
            .collect();
        let recent = self.recent.iter().flat_map(|recent| recent.lines());
        jobs.extend(
            recent
                .chain(&self.ended)
                .map(|line| (line.id, Known::Finished(line))),
        );
        let reachable = match self.reach {
            Reach::Success => {
                let newest = self.newest_success.and_then(|newest| jobs.remove(&newest));
                let is_success = |job: &Known<'_>| job.state() == EndState::Succeeded.name();
                let found = newest.or_else(|| jobs.into_values().rev().find(is_success));
                return found.into_iter().collect();
            }
            Reach::Newest(count) => count.min(HISTORY_JOBS),
            Reach::All => HISTORY_JOBS,
        };
        let mut successes = 0;
        let in_reach = |(at, job): (usize, Known<'a>)| {
            let is_success = job.state() == EndState::Succeeded.name();
            successes += usize::from(is_success);
            let is_kept = match self.reach {
                Reach::Success | Reach::Newest(_) => at < reachable,
                Reach::All => at < reachable || (is_success && successes <= HISTORY_SUCCESSES),
            };
            is_kept.then_some(job)
        };
        jobs.into_values()
            .rev()
            .filter(|job| job.state() != EndState::Skipped.name())
            .enumerate()
            .filter_map(in_reach)
            .collect()
    }
}

/// An expression with all its inputs. It no longer needs the world.
pub struct PreparedExpression {
    pub(crate) expression: Expression,
    pub(crate) read: ReadSet,
    /// What the ledger records about these inputs, by scan.
    pub(crate) reads: BTreeMap<String, ScanRead>,
    pub(crate) cost: u64,
}

/// An evaluation with its inputs.
#[derive(Debug, Clone)]
pub struct Evaluated {
    pub(crate) read: ReadSet,
    pub evaluation: Evaluation,
}

impl Evaluated {
    /// True if evaluating `prepared` would return the same result.
    pub(crate) fn matches(&self, prepared: &PreparedExpression) -> bool {
        self.read == prepared.read
    }
}

impl PreparedExpression {
    /// Upper bound of the cost of [`PreparedExpression::evaluate`], in the units of [`Expression::cost`].
    pub const fn cost(&self) -> u64 {
        self.cost
    }

    /// If the expression fails, its clause has the error.
    pub fn evaluate(self, sandbox: &Result<&Sandbox, EngineError>) -> Evaluated {
        let Self {
            expression,
            read,
            reads,
            cost: _,
        } = self;
        let explained = match sandbox {
            Ok(sandbox) => sandbox
                .explain(&expression, &read.context())
                .map_err(|error| error.to_string()),
            Err(error) => Err(error.to_string()),
        };
        let clause = match explained {
            Ok(explanation) => Clause::of(&explanation),
            Err(error) => Clause::failed(expression.source(), &error),
        };
        Evaluated {
            read,
            evaluation: Evaluation {
                expression: expression.source().to_owned(),
                clause,
                scans: reads,
            },
        }
    }
}

/// The scans that an expression with these references can read.
pub(crate) fn named<'w>(
    workflow: &'w ActiveWorkflow,
    references: &'w References,
) -> Box<dyn Iterator<Item = &'w Scan> + 'w> {
    let definition = &workflow.revision.definition;
    if references.any_scan {
        Box::new(definition.scans())
    } else {
        Box::new(
            references
                .scans
                .iter()
                .filter_map(|name| definition.scan(name)),
        )
    }
}

/// Which jobs of a scan an expression with these references can read. None if it reads no jobs.
pub(crate) fn reach(references: &References, scan: &Scan) -> Option<Reach> {
    if references.any_scan {
        Some(Reach::All)
    } else {
        references.jobs.get(scan.name.as_str()).copied()
    }
}

/// Upper bound of the cost of building the inputs for these references, in the units of [`Expression::cost`].
pub(crate) fn reading_cost(workflow: &ActiveWorkflow, references: &References) -> u64 {
    let of_scan = |scan: &Scan| {
        let jobs = match reach(references, scan) {
            None => 0,
            Some(Reach::Success) => 1,
            Some(Reach::Newest(count)) => count.min(HISTORY_JOBS),
            Some(Reach::All) => HISTORY_JOBS + HISTORY_SUCCESSES,
        };
        let outputs = if references.outputs {
            OUTPUTS_READ_COST
        } else {
            0
        };
        let artifacts = ARTIFACT_READ_COST * scan.artifacts.len() as u64;
        SCAN_READ_COST + jobs as u64 * (JOB_READ_COST + outputs + artifacts)
    };
    named(workflow, references).map(of_scan).sum()
}

/// Upper bound of the cost of an expression and its inputs.
pub(crate) fn cost(workflow: &ActiveWorkflow, expression: &Expression) -> u64 {
    expression.cost() + reading_cost(workflow, expression.references())
}

fn summary_of(job: &Job) -> JobSummary {
    let run = job.state.run();
    JobSummary {
        id: job.id.to_string(),
        state: job.state.name().to_owned(),
        trigger: job.trigger.name().to_owned(),
        revision: job.revision.id.to_string(),
        created_at: job.created_at,
        started_at: run.map(|run| run.started_at),
        finished_at: job.state.end().map(|end| end.at),
        artifacts: run
            .iter()
            .flat_map(|run| &run.artifacts)
            .map(|artifact| {
                let summary = ArtifactSummary {
                    checksum: artifact.content_digest.clone(),
                    size: artifact.size,
                };
                (artifact.name.clone(), summary)
            })
            .collect(),
        outputs: run.map(|run| run.outputs.clone()).unwrap_or_default(),
    }
}
