//! Everything that is live, in memory, and the one way it changes.
//!
//! The world holds what decisions need: sources, newest revisions, scan heads, unfinished jobs, runners, tokens.
//! Finished jobs and old revisions are settled: they are on disk and no decision reads them. Records are shared, so a
//! second copy of the world costs its pointers.

mod ends;
mod jobs;
mod queue;
mod stocks;
mod triggers;

use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};
use std::sync::Arc;

use chrono::TimeDelta;

pub use self::ends::Holder;
use self::jobs::Jobs;
use self::queue::Place;
pub use self::stocks::StockMark;
use self::stocks::Stocks;
use self::triggers::Triggers;
use crate::change::Change;
use crate::idempotency::Idempotency;
use crate::job::{Job, JobState, Trigger};
use crate::project::{ProjectSecrets, ProjectVars};
use crate::recent::Recent;
use crate::retention::Retention;
use crate::revision::{ActiveWorkflow, Revision, RevisionRef, WorkflowRecord, WorkflowStatus};
use crate::runner::{Registration, Runner};
use crate::scan_head::{ScanHead, Totals};
use crate::source::{Source, StaleFile};
use crate::token::{Token, TokenHash};
use crate::{
    JobId, Order, ProjectId, Reason, RegistrationId, RevisionId, RunnerId, ScanKey, SourceName,
    Timestamp, TokenId, WorkflowId,
};

/// Everything that is live.
#[derive(Debug, Clone, Default)]
pub struct World {
    /// How far its time is ahead of the steady clock.
    followed: TimeDelta,
    /// Who holds ends that an earlier process set.
    loaded: HashSet<Holder>,
    sources: BTreeMap<SourceName, Arc<Source>>,
    workflows: BTreeMap<WorkflowId, Arc<WorkflowRecord>>,
    revisions: HashMap<RevisionId, Arc<Revision>>,
    heads: HashMap<ScanKey, Arc<ScanHead>>,
    retention: HashMap<ScanKey, Arc<Retention>>,
    stocks: Stocks,
    recent: HashMap<ScanKey, Arc<Recent>>,
    triggers: Triggers,
    jobs: Jobs,
    latest_job: Option<JobId>,
    latest_order: Order,
    runners: BTreeMap<RunnerId, Arc<Runner>>,
    tokens: BTreeMap<TokenId, Arc<Token>>,
    token_hashes: HashMap<TokenHash, TokenId>,
    registrations: BTreeMap<RegistrationId, Arc<Registration>>,
    vars: BTreeMap<ProjectId, Arc<ProjectVars>>,
    secrets: BTreeMap<ProjectId, Arc<ProjectSecrets>>,
    idempotency: HashMap<String, Arc<Idempotency>>,
    idempotency_by_age: BTreeSet<(Timestamp, String)>,
}

impl World {
    /// Makes `change` true.
    pub fn apply(&mut self, change: &Change) {
        match change {
            Change::Source(source) => {
                self.sources.insert(source.name.clone(), source.clone());
            }
            Change::Workflow(workflow) => {
                let before = self.workflows.insert(workflow.id, workflow.clone());
                let armed = workflow
                    .armed
                    .values()
                    .filter_map(|armed| Some(armed.expr.as_ref()?.since));
                self.latest_order = armed.fold(self.latest_order, Order::max);
                self.refile(workflow.id);
                self.rearm(workflow);
                if let Some(before) =
                    before.filter(|before| before.revision.id != workflow.revision.id)
                {
                    self.forget_unused(before.revision.id);
                }
            }
            Change::Revision(revision, _) => {
                self.revisions
                    .insert(revision.record.reference.id, revision.clone());
            }
            Change::Head(head) => {
                self.latest_job = self.latest_job.max(Some(head.latest_job));
                let successes = head.successes.iter().map(|success| success.order);
                self.latest_order = successes
                    .chain(head.latest_claim)
                    .chain(head.considered)
                    .fold(self.latest_order, Order::max);
                let scan = head.key();
                self.restock(&scan, |world| {
                    world.heads.insert(head.key(), head.clone());
                });
                self.look_at_triggers(&scan);
            }
            Change::Job(job) => self.apply_job(job),
            Change::Runner(runner) => {
                self.loaded.remove(&Holder::Runner(runner.id));
                self.runners.insert(runner.id, runner.clone());
            }
            Change::RunnerRemoved(id) => {
                self.runners.remove(id);
            }
            Change::Token(token) => {
                if let Some(before) = self.tokens.insert(token.id, token.clone()) {
                    self.token_hashes.remove(&before.hash);
                }
                self.token_hashes.insert(token.hash, token.id);
            }
            Change::Registration(registration) => {
                self.registrations
                    .insert(registration.id, registration.clone());
            }
            Change::RegistrationRemoved(id) => {
                self.registrations.remove(id);
            }
            Change::Vars(vars) => {
                self.vars.insert(vars.project, vars.clone());
            }
            Change::Secrets(secrets) => {
                self.secrets.insert(secrets.project, secrets.clone());
            }
            Change::Idempotency(request) => {
                self.loaded
                    .remove(&Holder::Idempotency(request.key.clone()));
                self.forget_request(&request.key);
                self.idempotency_by_age
                    .insert((request.expires_at, request.key.clone()));
                self.idempotency
                    .insert(request.key.clone(), request.clone());
            }
            Change::IdempotencyRemoved(key) => self.forget_request(key),
            Change::History(entry) => {
                if let Some(recent) = self.recent.get_mut(&entry.scan) {
                    Arc::make_mut(recent).add(entry.line.clone());
                }
            }
            Change::Recent(scan, recent) => {
                self.recent.insert(scan.clone(), recent.clone());
            }
            Change::JobRemoved(job) => {
                let scan = job.scan_key();
                if let Some(recent) = self.recent.get_mut(&scan)
                    && !Arc::make_mut(recent).remove(job.id)
                {
                    // It is read anew when it is needed.
                    self.recent.remove(&scan);
                }
            }
            Change::Retention(retention) => {
                self.restock(&retention.key(), |world| {
                    world.retention.insert(retention.key(), retention.clone());
                });
            }
            Change::ClockFollowed(by) => self.follow_clock(*by),
            Change::Tip(_)
            | Change::Digests(_)
            | Change::Repeats(..)
            | Change::ArtifactRemoved(..)
            | Change::Expiry(_)
            | Change::ExpiryRemoved(_)
            | Change::HistoryPageRemoved(..)
            | Change::Ledger(_)
            | Change::LedgerPageRemoved(..) => {}
        }
    }

    fn apply_job(&mut self, job: &Arc<Job>) {
        self.latest_job = self.latest_job.max(Some(job.id));
        let place = self.place(job);
        self.jobs.apply(job, place);
        if job.state.is_terminal() {
            self.forget_unused(job.revision.id);
        }
    }

    /// Files the waiting jobs of a workflow anew: its newest revision may have lost or changed their scans.
    fn refile(&mut self, workflow: WorkflowId) {
        let waiting: Vec<JobId> = self.jobs.queue().of_workflow(workflow).collect();
        for id in waiting {
            if let Some(job) = self.jobs.get(id) {
                let place = self.place(job);
                self.jobs.refile(workflow, id, place);
            }
        }
    }

    /// What a job waits for, or would.
    fn place(&self, job: &Job) -> Place {
        if self.is_orphan(job) {
            return Place::Orphan;
        }
        let scan = self
            .revision(self.revision_to_run(job))
            .and_then(|revision| revision.definition.scan(job.scan.as_str()));
        scan.map_or(Place::Unknown, |scan| {
            let mut labels = scan.runs_on.clone();
            labels.sort();
            Place::Offerable(labels.into())
        })
    }

    /// The revision a job runs, or will: one that was dispatched keeps its own, for the inputs were checked against
    /// it; others take the newest one until they are claimed (design section 4).
    pub fn revision_to_run(&self, job: &Job) -> RevisionId {
        let newest = self.workflows.get(&job.workflow.id);
        match (&job.state, job.trigger, newest) {
            (JobState::Scheduled, Trigger::Cron | Trigger::Expr, Some(newest)) => {
                newest.revision.id
            }
            _ => job.revision.id,
        }
    }

    /// Drops a request with its place in the order of age.
    fn forget_request(&mut self, key: &str) {
        if let Some(request) = self.idempotency.remove(key) {
            self.idempotency_by_age
                .remove(&(request.expires_at, request.key.clone()));
        }
    }

    /// Drops a revision that neither runs nor is needed by an unfinished job.
    fn forget_unused(&mut self, id: RevisionId) {
        let needed = self.revisions.get(&id).is_none_or(|revision| {
            let workflow = revision.record.workflow.id;
            self.workflows
                .get(&workflow)
                .is_some_and(|record| record.revision.id == id)
                || self.jobs.uses(id)
        });
        if !needed {
            self.revisions.remove(&id);
        }
    }

    /// Every source, by name.
    pub fn sources(&self) -> impl Iterator<Item = &Arc<Source>> {
        self.sources.values()
    }

    /// The source of that name.
    pub fn source(&self, name: &SourceName) -> Option<&Arc<Source>> {
        self.sources.get(name)
    }

    /// The source of that project.
    pub fn source_of(&self, project: ProjectId) -> Option<&Arc<Source>> {
        self.sources().find(|source| source.project == project)
    }

    /// The vars of a project that has had any.
    pub fn vars(&self, project: ProjectId) -> Option<&Arc<ProjectVars>> {
        self.vars.get(&project)
    }

    /// The secrets of a project that has had any.
    pub fn secrets(&self, project: ProjectId) -> Option<&Arc<ProjectSecrets>> {
        self.secrets.get(&project)
    }

    /// The secrets of every project that has had any.
    pub fn all_secrets(&self) -> impl Iterator<Item = &Arc<ProjectSecrets>> {
        self.secrets.values()
    }

    /// Every workflow with its newest revision.
    pub fn workflows(&self) -> impl Iterator<Item = ActiveWorkflow> {
        self.workflows
            .values()
            .filter_map(|record| self.with_revision(record))
    }

    /// The workflow of that id with its newest revision.
    pub fn workflow(&self, id: WorkflowId) -> Option<ActiveWorkflow> {
        self.workflows
            .get(&id)
            .and_then(|record| self.with_revision(record))
    }

    fn with_revision(&self, record: &Arc<WorkflowRecord>) -> Option<ActiveWorkflow> {
        let revision = self.revisions.get(&record.revision.id)?;
        Some(ActiveWorkflow {
            record: record.clone(),
            revision: revision.clone(),
        })
    }

    /// The record of a workflow, also of one whose newest revision could not be read.
    pub fn workflow_record(&self, id: WorkflowId) -> Option<&Arc<WorkflowRecord>> {
        self.workflows.get(&id)
    }

    /// The records of all workflows, also of those whose newest revision could not be read.
    pub fn all_workflow_records(&self) -> impl Iterator<Item = &Arc<WorkflowRecord>> {
        self.workflows.values()
    }

    /// The records of a source's workflows, also of those whose newest revision could not be read.
    pub fn workflow_records<'a>(
        &'a self,
        source: &'a SourceName,
    ) -> impl Iterator<Item = &'a Arc<WorkflowRecord>> + 'a {
        self.all_workflow_records()
            .filter(move |record| record.source == *source)
    }

    /// The workflows of a source.
    pub fn workflows_of<'a>(
        &'a self,
        source: &'a SourceName,
    ) -> impl Iterator<Item = ActiveWorkflow> + 'a {
        self.workflow_records(source)
            .filter_map(|record| self.with_revision(record))
    }

    /// Why a workflow is retired, if it is. Read from the source as it is now, so that the answer stays true when the
    /// configuration changes later.
    pub fn retirement(&self, workflow: &WorkflowRecord) -> Option<Reason> {
        let is_configured = self
            .source(&workflow.source)
            .is_none_or(|source| source.configured);
        match workflow.status {
            WorkflowStatus::Active => None,
            WorkflowStatus::Retired { .. } if is_configured => Some(Reason::Retired),
            WorkflowStatus::Retired { .. } => Some(Reason::SourceDropped),
        }
    }

    /// The file of a workflow, while it is invalid at the tip.
    pub fn stale_file(&self, workflow: &WorkflowRecord) -> Option<&StaleFile> {
        let mut stale = self.source(&workflow.source)?.stale_files.iter();
        stale.find(|stale| stale.workflow == workflow.id)
    }

    /// The revision that runs instead of an invalid file. A file that was never valid has none, and neither has the file
    /// of a retired workflow.
    pub fn last_good(&self, stale: &StaleFile) -> Option<&RevisionRef> {
        let record = self.workflow_record(stale.workflow)?;
        match record.status {
            WorkflowStatus::Active => Some(&record.revision),
            WorkflowStatus::Retired { .. } => None,
        }
    }

    /// A revision that runs or that an unfinished job needs.
    pub fn revision(&self, id: RevisionId) -> Option<&Arc<Revision>> {
        self.revisions.get(&id)
    }

    /// The head of a scan that has had a job.
    pub fn head(&self, scan: &ScanKey) -> Option<&Arc<ScanHead>> {
        self.heads.get(scan)
    }

    /// Every scan head.
    pub fn heads(&self) -> impl Iterator<Item = &Arc<ScanHead>> {
        self.heads.values()
    }

    /// What is remembered of the jobs removed from a scan, once one was.
    pub fn retention(&self, scan: &ScanKey) -> Option<&Arc<Retention>> {
        self.retention.get(scan)
    }

    /// The finished jobs of a scan that are still there.
    pub fn retained(&self, head: &ScanHead) -> Totals {
        match self.retention(&head.key()) {
            Some(retention) => head.totals.without(&retention.removed),
            None => head.totals,
        }
    }

    /// The newest finished jobs of a scan, once they have been read.
    pub fn recent(&self, scan: &ScanKey) -> Option<&Arc<Recent>> {
        self.recent.get(scan)
    }

    /// An unfinished job.
    pub fn job(&self, id: JobId) -> Option<&Arc<Job>> {
        self.jobs.get(id)
    }

    /// Every unfinished job, oldest first.
    pub fn jobs(&self) -> impl DoubleEndedIterator<Item = &Arc<Job>> {
        self.jobs.iter()
    }

    /// How many jobs are unfinished.
    pub fn unfinished_jobs(&self) -> usize {
        self.jobs.len()
    }

    /// The unfinished jobs of a scan, oldest first.
    pub fn jobs_of(&self, scan: &ScanKey) -> impl DoubleEndedIterator<Item = &Arc<Job>> {
        self.jobs.of_scan(scan)
    }

    /// How many jobs of a scan are unfinished.
    pub fn unfinished_of(&self, scan: &ScanKey) -> usize {
        self.jobs.unfinished_of(scan)
    }

    /// How many jobs of a scan wait for a runner.
    pub fn scheduled_of(&self, scan: &ScanKey) -> usize {
        self.jobs.scheduled_of(scan)
    }

    /// Jobs that wait for a runner with these labels: by workflow, oldest first. A workflow may come several times.
    pub fn offerable(
        &self,
        labels: &[String],
    ) -> impl Iterator<Item = (WorkflowId, &BTreeSet<JobId>)> {
        self.jobs.queue().offerable(labels)
    }

    /// Workflows that have a job waiting for a runner.
    pub fn waiting_workflows(&self) -> impl ExactSizeIterator<Item = WorkflowId> {
        self.jobs.queue().workflows()
    }

    /// Waiting jobs whose scan is gone.
    pub fn orphans(&self) -> impl Iterator<Item = JobId> {
        self.jobs.queue().orphans()
    }

    /// The jobs a runner executes, oldest first.
    pub fn running_on(&self, runner: RunnerId) -> impl Iterator<Item = &Arc<Job>> {
        self.jobs.running_on(runner)
    }

    /// Whether the job's scan is gone: its workflow is retired, or the newest revision has no such scan. A record or
    /// revision that cannot be read is never taken for one that is gone.
    pub fn is_orphan(&self, job: &Job) -> bool {
        self.workflows
            .get(&job.workflow.id)
            .is_some_and(|record| match record.status {
                WorkflowStatus::Retired { .. } => true,
                WorkflowStatus::Active => self
                    .revisions
                    .get(&record.revision.id)
                    .is_some_and(|newest| newest.definition.scan(job.scan.as_str()).is_none()),
            })
    }

    /// Every job that is executed, by runner.
    pub fn running(&self) -> impl Iterator<Item = &Arc<Job>> {
        self.jobs.running()
    }

    /// The newest job's id, or [`JobId::FIRST`] before any.
    pub fn latest_job(&self) -> JobId {
        self.latest_job.unwrap_or(JobId::FIRST)
    }

    /// The newest place in the order of decisions that any record remembers.
    pub fn latest_order(&self) -> Order {
        self.latest_order
    }

    /// Every runner.
    pub fn runners(&self) -> impl Iterator<Item = &Arc<Runner>> {
        self.runners.values()
    }

    /// The runner of that id.
    pub fn runner(&self, id: RunnerId) -> Option<&Arc<Runner>> {
        self.runners.get(&id)
    }

    /// Every token.
    pub fn tokens(&self) -> impl ExactSizeIterator<Item = &Arc<Token>> {
        self.tokens.values()
    }

    /// The token with that hash.
    pub fn token(&self, hash: &TokenHash) -> Option<&Arc<Token>> {
        self.token_hashes
            .get(hash)
            .and_then(|id| self.tokens.get(id))
    }

    /// The remembered request with that key.
    pub fn idempotency(&self, key: &str) -> Option<&Arc<Idempotency>> {
        self.idempotency.get(key)
    }

    /// Keys of remembered requests that have run out, oldest first.
    pub fn idempotency_over(&self, now: Timestamp) -> impl Iterator<Item = &str> {
        self.idempotency_by_age
            .iter()
            .take_while(move |(at, _)| *at <= now)
            .map(|(_, key)| key.as_str())
    }

    /// Every waiting registration.
    pub fn registrations(&self) -> impl Iterator<Item = &Arc<Registration>> {
        self.registrations.values()
    }
}

#[cfg(test)]
mod tests;
