//! The part of the world that expressions of a workflow can read, before or after the current decision.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use workflow::limits::HISTORY_JOBS;
use workflow::{
    CallbackSummary, Context, Expression, News, Processed, Reach, References, ScanHistory, ScanName,
};

use crate::frozen;
use crate::history::HistoryLine;
use crate::job::Job;
use crate::ledger::ScanRead;
use crate::limits::SCANS_READ;
use crate::read_set::{JobsRead, PreparedExpression, ReadSet, cost, named, reach};
use crate::recent::Recent;
use crate::revision::ActiveWorkflow;
use crate::scan_head::ScanHead;
use crate::world::World;
use crate::{JobId, ScanKey};

/// The world, or the future world after the end of a job.
pub(crate) struct View<'a> {
    world: &'a World,
    ended: Option<&'a Ended>,
    /// Newest jobs of scans that the world does not hold.
    read: Option<&'a BTreeMap<ScanKey, Arc<Recent>>>,
}

/// A job that the current decision ends.
pub(crate) struct Ended {
    pub(crate) job: JobId,
    pub(crate) head: Arc<ScanHead>,
    pub(crate) scan: ScanKey,
    /// The head of the renamed scan, if the scan of the job was renamed.
    pub(crate) heir: Option<Arc<ScanHead>>,
    pub(crate) line: HistoryLine,
    /// The retry that the decision creates.
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

    /// The world, with newest jobs that were read without adding them to the world.
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

    /// The head of a scan. It is empty if the scan has no jobs.
    pub(crate) fn head(&self, scan: &ScanKey) -> Arc<ScanHead> {
        match self.ended {
            Some(ended) if ended.scan == *scan => ended.head.clone(),
            Some(Ended {
                heir: Some(head), ..
            }) if head.key() == *scan => head.clone(),
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

    /// The retry that the decision creates, if it is a job of `scan`.
    fn retry_of(&self, scan: &ScanKey) -> Option<&'a Arc<Job>> {
        let ended = self.ended.filter(|ended| ended.scan == *scan)?;
        ended.retry.as_ref()
    }

    /// Collects the inputs for expressions of `holder` with these references: the scans that they use, from the view of
    /// `holder`. The job that is being evaluated is left out.
    pub(crate) fn read(
        &self,
        workflow: &ActiveWorkflow,
        holder: &ScanKey,
        references: &References,
        evaluated: Option<JobId>,
    ) -> ReadSet {
        let mut scans = BTreeMap::new();
        let mut jobs = BTreeMap::new();
        for scan in named(workflow, references) {
            let mut history = self.history(holder, &scan.name, evaluated);
            if references.news.contains(scan.name.as_str()) {
                history.news = Some(self.news(holder, &scan.name));
            }
            scans.insert(scan.name.to_string(), history);
            if let Some(reach) = reach(references, scan) {
                let key = ScanKey::new(holder.workflow, &scan.name);
                jobs.insert(scan.name.to_string(), self.jobs(&key, evaluated, reach));
            }
        }
        ReadSet {
            context: Context {
                job: None,
                project: workflow.record.project.to_string(),
                workflow: workflow.record.id.to_string(),
                revision: workflow.revision.record.reference.id.to_string(),
                vars: frozen::vars(self.world, workflow.record.project, references),
                secrets: BTreeMap::new(),
                inputs: BTreeMap::new(),
                callback: CallbackSummary::default(),
                scans,
                steps: BTreeMap::new(),
                ok: true,
            },
            jobs,
            outputs: references.outputs,
        }
    }

    /// A scan's summary without its jobs.
    fn history(&self, holder: &ScanKey, scan: &ScanName, evaluated: Option<JobId>) -> ScanHistory {
        let key = ScanKey::new(holder.workflow, scan);
        let head = self.head(&key);
        // Counters and jobs from before a rename are still stored under the old name.
        let names = with_former(self.world, &key);
        let count = |name: &ScanKey| {
            let finished = self.world.retained(&self.head(name)).seen();
            finished + self.unfinished_count(name, evaluated) as u64
        };
        ScanHistory {
            size: names.iter().map(count).sum(),
            jobs: Vec::new(),
            available: is_available(&self.head(holder), &head),
            failed: has_failed(&self.head(holder), &head),
            successes: names
                .iter()
                .map(|name| self.head(name).totals.succeeded)
                .sum(),
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

    /// The results of a scan that `holder` has processed.
    fn news(&self, holder: &ScanKey, scan: &ScanName) -> News {
        let head = self.head(holder);
        let key = ScanKey::new(holder.workflow, scan);
        let names = with_former(self.world, &key);
        let processed = names
            .iter()
            .filter_map(|name| head.processed.get(&name.scan))
            .max_by_key(|processed| processed.claimed);
        let workflow = self.world.workflow(holder.workflow);
        let declared = workflow.as_ref().and_then(|it| it.scan(scan));
        let declared = declared.into_iter().flat_map(|scan| &scan.artifacts);
        News {
            processed: processed.map(|processed| Processed {
                id: processed.success.to_string(),
                artifacts: processed.digests.clone(),
            }),
            declared: declared.map(|artifact| artifact.name.to_string()).collect(),
        }
    }

    /// Counts the unfinished jobs of a scan without visiting them.
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

    /// The jobs of a scan that expressions can read.
    fn jobs(&self, scan: &ScanKey, evaluated: Option<JobId>, reach: Reach) -> JobsRead {
        let names = with_former(self.world, scan);
        let unfinished = names.iter().flat_map(|scan| self.unfinished(scan));
        let ended = self.ended.filter(|ended| names.contains(&ended.scan));
        JobsRead {
            reach,
            unfinished: unfinished
                .filter(|job| Some(job.id) != evaluated)
                .take(HISTORY_JOBS)
                .cloned()
                .collect(),
            recent: names
                .iter()
                .filter_map(|scan| self.recent(scan).cloned())
                .collect(),
            newest_success: self.head(scan).successes.first().map(|success| success.job),
            ended: ended.map(|ended| ended.line.clone()),
        }
    }

    /// Collects the inputs of the expression `on.expr` of a scan.
    pub(crate) fn prepare(
        &self,
        workflow: &ActiveWorkflow,
        holder: &ScanKey,
        expression: &Expression,
        evaluated: Option<JobId>,
    ) -> PreparedExpression {
        let read = self.read(workflow, holder, expression.references(), evaluated);
        let reads = read
            .context
            .scans
            .iter()
            .take(SCANS_READ)
            .map(|(name, scan)| {
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
            cost: cost(workflow, expression),
            expression: expression.clone(),
            read,
            reads,
        }
    }
}

/// The first scan whose jobs the expression reads, but whose history could not be read. Then the expression must not be
/// evaluated.
pub(crate) fn unreadable(
    view: &View<'_>,
    workflow: &ActiveWorkflow,
    references: &References,
) -> Option<ScanKey> {
    let mut read = histories(view.world, workflow, references).into_iter();
    read.find(|scan| view.recent(scan).is_none())
}

/// The scans whose jobs an expression with these references reads.
pub(crate) fn histories(
    world: &World,
    workflow: &ActiveWorkflow,
    references: &References,
) -> BTreeSet<ScanKey> {
    workflow
        .revision
        .definition
        .scans()
        .filter(|scan| references.reads_jobs_of(scan.name.as_str()))
        .flat_map(|scan| {
            let key = ScanKey::new(workflow.record.id, &scan.name);
            with_former(world, &key)
        })
        .collect()
}

/// A scan and its former names.
fn with_former(world: &World, scan: &ScanKey) -> Vec<ScanKey> {
    let mut names = vec![scan.clone()];
    names.extend(world.former_names(scan));
    names
}

/// True if `of` has a success that is newer than the last run of `holder` (design section 3).
fn is_available(holder: &ScanHead, of: &ScanHead) -> bool {
    match (of.successes.first(), holder.latest_claim) {
        (None, _) => false,
        (Some(_), None) => true,
        (Some(success), Some(claim)) => success.order > claim,
    }
}

/// True if the newest end of `of` is a failure that is newer than the last run of `holder`.
fn has_failed(holder: &ScanHead, of: &ScanHead) -> bool {
    of.failure.is_some_and(|failure| {
        holder
            .latest_claim
            .is_none_or(|claim| failure.order > claim)
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Order;
    use crate::scan_head::Success;
    use crate::testing::{NIGHTLY, TestWorld, key};

    #[test]
    fn a_scan_is_available_after_a_success_newer_than_the_last_run_of_the_holder() {
        let mut test = TestWorld::new();
        let workflow = test.push("nightly", NIGHTLY);
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
            // The holder has not run yet: one success is enough.
            (head(), succeeded(first), true),
            (executed(first), succeeded(second), true),
            (executed(second), succeeded(first), false),
            (executed(first), succeeded(first), false),
        ] {
            assert_eq!(is_available(&holder, &of), expected, "{holder:?} {of:?}");
        }
    }
}
