//! What an expression sees of its workflow: the jobs of its scans, as they are or as a decision is about to make them.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use workflow::limits::{HISTORY_JOBS, HISTORY_SUCCESSES};
use workflow::{
    ArtifactSummary, Context, EngineError, Expression, JobSummary, News, Processed, Reach,
    References, Sandbox, Scan, ScanHistory, ScanName,
};

use crate::frozen;
use crate::history::HistoryLine;
use crate::job::{EndState, Job};
use crate::ledger::{Evaluation, ScanRead};
use crate::limits::SCANS_READ;
use crate::moment::Moment;
use crate::recent::Recent;
use crate::revision::ActiveWorkflow;
use crate::scan_head::ScanHead;
use crate::world::World;
use crate::{Clause, JobId, ScanKey};

/// The world, or the world as it will be after a job has ended.
pub(crate) struct View<'a> {
    world: &'a World,
    ended: Option<&'a Ended>,
    /// Newest jobs of scans that the world does not have at hand.
    read: Option<&'a BTreeMap<ScanKey, Arc<Recent>>>,
}

/// A job that ends in the decision that is being taken.
pub(crate) struct Ended {
    pub(crate) job: JobId,
    pub(crate) head: Arc<ScanHead>,
    pub(crate) scan: ScanKey,
    pub(crate) line: HistoryLine,
    /// The job that retries it, which the decision makes.
    pub(crate) retry: Option<Arc<Job>>,
}

impl<'a> View<'a> {
    pub(crate) const fn of(world: &'a World) -> Self {
        Self {
            world,
            ended: None,
            read: None,
        }
    }

    pub(crate) const fn after(world: &'a World, ended: &'a Ended) -> Self {
        Self {
            world,
            ended: Some(ended),
            read: None,
        }
    }

    /// The world, with newest jobs that were read for somebody who does not change it.
    pub(crate) const fn with(world: &'a World, read: &'a BTreeMap<ScanKey, Arc<Recent>>) -> Self {
        Self {
            world,
            ended: None,
            read: Some(read),
        }
    }

    fn recent(&self, scan: &ScanKey) -> Option<&'a Arc<Recent>> {
        let read = || self.read?.get(scan);
        self.world.recent(scan).or_else(read)
    }

    pub(crate) const fn world(&self) -> &'a World {
        self.world
    }

    /// The head of a scan; that of one without jobs is empty.
    pub(crate) fn head(&self, scan: &ScanKey) -> Arc<ScanHead> {
        match self.ended {
            Some(ended) if ended.scan == *scan => ended.head.clone(),
            Some(_) | None => self
                .world
                .head(scan)
                .cloned()
                .unwrap_or_else(|| Arc::new(ScanHead::new(scan.workflow, scan.scan.clone()))),
        }
    }

    /// The unfinished jobs of a scan, newest first.
    pub(crate) fn unfinished(&self, scan: &ScanKey) -> impl Iterator<Item = &'a Arc<Job>> {
        let ended = self.ended.map(|ended| ended.job);
        let jobs = self.world.jobs_of(scan).rev();
        let jobs = jobs.filter(move |job| Some(job.id) != ended);
        self.retry_of(scan).into_iter().chain(jobs)
    }

    /// The retry that the decision makes, if it is a job of `scan`.
    fn retry_of(&self, scan: &ScanKey) -> Option<&'a Arc<Job>> {
        let ended = self.ended.filter(|ended| ended.scan == *scan)?;
        ended.retry.as_ref()
    }

    /// What expressions of `holder` may read: the scans they name, as that scan sees them. The job that is being
    /// evaluated is left out.
    pub(crate) fn scans(
        &self,
        workflow: &ActiveWorkflow,
        holder: &ScanKey,
        references: &References,
        evaluated: Option<JobId>,
    ) -> BTreeMap<String, ScanHistory> {
        let named =
            |scan: &&Scan| references.any_scan || references.scans.contains(scan.name.as_str());
        workflow
            .revision
            .definition
            .scans()
            .filter(named)
            .map(|scan| {
                let reach = if references.any_scan {
                    Some(Reach::All)
                } else {
                    references.jobs.get(scan.name.as_str()).copied()
                };
                let mut history = self.history(holder, &scan.name, reach, evaluated);
                if references.news.contains(scan.name.as_str()) {
                    history.news = Some(self.news(holder, &scan.name));
                }
                if !references.outputs {
                    history.jobs.iter_mut().for_each(|job| job.outputs.clear());
                }
                (scan.name.to_string(), history)
            })
            .collect()
    }

    fn history(
        &self,
        holder: &ScanKey,
        scan: &ScanName,
        reach: Option<Reach>,
        evaluated: Option<JobId>,
    ) -> ScanHistory {
        let key = ScanKey {
            workflow: holder.workflow,
            scan: scan.clone(),
        };
        let head = self.head(&key);
        ScanHistory {
            size: self.world.retained(&head).seen() + self.unfinished_count(&key, evaluated) as u64,
            jobs: reach.map_or_else(Vec::new, |reach| self.jobs(&key, evaluated, reach)),
            available: is_available(&self.head(holder), &head),
            failed: has_failed(&self.head(holder), &head),
            successes: head.totals.succeeded,
            newest_successes: head
                .successes
                .iter()
                .map(|success| success.digests.clone())
                .collect(),
            newest_success_ids: head
                .successes
                .iter()
                .map(|success| success.job.to_string())
                .collect(),
            news: None,
        }
    }

    /// What `holder` has processed of a scan.
    fn news(&self, holder: &ScanKey, scan: &ScanName) -> News {
        let head = self.head(holder);
        let processed = head.processed.get(scan);
        News {
            processed: processed.map(|processed| Processed {
                id: processed.success.to_string(),
                artifacts: processed.digests.clone(),
            }),
        }
    }

    /// How many jobs of a scan are unfinished, without going through them.
    fn unfinished_count(&self, scan: &ScanKey, evaluated: Option<JobId>) -> usize {
        let left_out = [self.ended.map(|ended| ended.job), evaluated];
        let is_of_scan = |id: &JobId| {
            let job = self.world.job(*id);
            job.is_some_and(|job| job.scan_key() == *scan)
        };
        let left_out = left_out.iter().flatten().filter(|id| is_of_scan(id));
        self.world.unfinished_of(scan) + usize::from(self.retry_of(scan).is_some())
            - left_out.count()
    }

    /// The jobs that expressions can read, newest first.
    fn jobs(&self, scan: &ScanKey, evaluated: Option<JobId>, reach: Reach) -> Vec<JobSummary> {
        let mut jobs: BTreeMap<JobId, JobSummary> = self
            .unfinished(scan)
            .filter(|job| Some(job.id) != evaluated)
            .take(HISTORY_JOBS)
            .map(|job| (job.id, summary_of(job)))
            .collect();
        if let Some(recent) = self.recent(scan) {
            jobs.extend(recent.lines().map(|line| (line.id, line.summary())));
        }
        if let Some(ended) = self.ended.filter(|ended| ended.scan == *scan) {
            jobs.insert(ended.job, ended.line.summary());
        }
        let reachable = match reach {
            Reach::Success => {
                let newest = self.head(scan).successes.first().map(|success| success.job);
                let newest = newest.and_then(|newest| jobs.remove(&newest));
                let is_success = |job: &JobSummary| job.state == EndState::Succeeded.name();
                let found = newest.or_else(|| jobs.into_values().rev().find(is_success));
                return found.into_iter().collect();
            }
            Reach::Newest(count) => count.min(HISTORY_JOBS),
            Reach::All => HISTORY_JOBS,
        };
        let mut successes = 0;
        let in_reach = |(at, job): (usize, JobSummary)| {
            let is_success = job.state == EndState::Succeeded.name();
            successes += usize::from(is_success);
            let is_kept = match reach {
                Reach::Success | Reach::Newest(_) => at < reachable,
                Reach::All => at < reachable || (is_success && successes <= HISTORY_SUCCESSES),
            };
            is_kept.then_some(job)
        };
        jobs.into_values()
            .rev()
            .filter(|job| job.state != EndState::Skipped.name())
            .enumerate()
            .filter_map(in_reach)
            .collect()
    }

    /// Evaluates `on.expr` of a scan, and explains the result.
    pub(crate) fn evaluate(
        &self,
        workflow: &ActiveWorkflow,
        holder: &ScanKey,
        expression: &Expression,
        evaluated: Option<JobId>,
        moment: &Moment<'_>,
    ) -> Evaluation {
        self.prepare(workflow, holder, expression, evaluated)
            .evaluate(&moment.sandbox)
    }

    /// Takes from the world what `on.expr` of a scan reads.
    pub(crate) fn prepare<'e>(
        &self,
        workflow: &ActiveWorkflow,
        holder: &ScanKey,
        expression: &'e Expression,
        evaluated: Option<JobId>,
    ) -> PreparedExpression<'e> {
        let references = expression.references();
        let context = Context {
            job: None,
            project: workflow.record.project.to_string(),
            workflow: workflow.record.id.to_string(),
            revision: workflow.record.revision.id.to_string(),
            vars: frozen::vars(self.world, workflow.record.project, references),
            secrets: BTreeMap::new(),
            inputs: BTreeMap::new(),
            scans: self.scans(workflow, holder, references, evaluated),
            steps: BTreeMap::new(),
            ok: true,
        };
        let reads = context.scans.iter().take(SCANS_READ).map(|(name, scan)| {
            let key = ScanKey {
                workflow: holder.workflow,
                scan: workflow
                    .revision
                    .definition
                    .scan(name)
                    .map_or_else(|| holder.scan.clone(), |scan| scan.name.clone()),
            };
            let head = self.head(&key);
            let read = ScanRead {
                size: scan.size,
                available: scan.available,
                diff: scan.has_diff(None),
                news: scan.news.is_some().then(|| scan.has_news(None)),
                failed: scan.failed,
                successes: head.successes.iter().map(|success| success.job).collect(),
            };
            (name.clone(), read)
        });
        let reads = reads.collect();
        PreparedExpression {
            expression,
            context,
            reads,
        }
    }
}

/// An expression with everything that it reads. It needs no world any more.
pub struct PreparedExpression<'e> {
    expression: &'e Expression,
    context: Context,
    reads: BTreeMap<String, ScanRead>,
}

impl PreparedExpression<'_> {
    /// Evaluates it. An expression that fails says so in its clause.
    pub fn evaluate(self, sandbox: &Result<&Sandbox, EngineError>) -> Evaluation {
        let Self {
            expression,
            context,
            reads,
        } = self;
        let explained = match sandbox {
            Ok(sandbox) => sandbox
                .explain(expression, &context)
                .map_err(|error| error.to_string()),
            Err(error) => Err(error.to_string()),
        };
        let clause = match explained {
            Ok(explanation) => Clause::of(&explanation),
            Err(error) => Clause::failed(expression.source(), &error),
        };
        Evaluation {
            expression: expression.source().to_owned(),
            clause,
            scans: reads,
        }
    }
}

/// The first scan whose jobs the expression reads and whose history could not be read. The expression must not be
/// evaluated then.
pub(crate) fn unreadable(
    view: &View<'_>,
    workflow: &ActiveWorkflow,
    references: &References,
) -> Option<ScanKey> {
    let mut read = histories(workflow, references).into_iter();
    read.find(|scan| view.recent(scan).is_none())
}

/// The scans whose jobs an expression with these references reads.
pub(crate) fn histories(workflow: &ActiveWorkflow, references: &References) -> BTreeSet<ScanKey> {
    workflow
        .revision
        .definition
        .scans()
        .filter(|scan| references.reads_jobs_of(scan.name.as_str()))
        .map(|scan| ScanKey {
            workflow: workflow.record.id,
            scan: scan.name.clone(),
        })
        .collect()
}

/// Whether `of` has a success that the scan of `holder` has not executed after (design section 3).
fn is_available(holder: &ScanHead, of: &ScanHead) -> bool {
    match (of.successes.first(), holder.latest_claim) {
        (None, _) => false,
        (Some(_), None) => true,
        (Some(success), Some(claim)) => success.order > claim,
    }
}

/// Whether the newest success or failure of `of` is a failure that the scan of `holder` has not executed after.
fn has_failed(holder: &ScanHead, of: &ScanHead) -> bool {
    of.failure.is_some_and(|failure| {
        holder
            .latest_claim
            .is_none_or(|claim| failure.order > claim)
    })
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Order;
    use crate::scan_head::Success;
    use crate::testing::{House, NIGHTLY, key};

    #[test]
    fn a_scan_is_available_by_a_success_after_the_newest_execution_of_who_asks() {
        let mut house = House::new();
        let workflow = house.push("nightly", NIGHTLY);
        let head = || ScanHead::new(workflow, key(workflow, "subdomains_all").scan);
        let [first, second] = [Order::START.next(), Order::START.next().next()];
        let succeeded = |order: Order| ScanHead {
            successes: vec![Success {
                job: JobId::FIRST,
                order,
                artifacts: 0,
                hops: crate::Hops::default(),
                digests: BTreeMap::new(),
            }],
            ..head()
        };
        let executed = |order: Order| ScanHead {
            latest_claim: Some(order),
            ..head()
        };
        for (holder, of, expected) in [
            (head(), head(), false),
            (executed(first), head(), false),
            // It has not executed yet: one success is enough.
            (head(), succeeded(first), true),
            (executed(first), succeeded(second), true),
            (executed(second), succeeded(first), false),
            (executed(first), succeeded(first), false),
        ] {
            assert_eq!(is_available(&holder, &of), expected, "{holder:?} {of:?}");
        }
    }
}
