//! Everything that is live, in memory, and the one way it changes.
//!
//! The world holds what decisions need: sources, newest revisions, scan heads, unfinished jobs, runners, tokens.
//! Finished jobs and old revisions are settled: they are on disk and no decision reads them. Records are shared, so a
//! second copy of the world costs its pointers.

use std::collections::hash_map::Entry;
use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::sync::Arc;

use serde::{Deserialize, Serialize};
use workflow::ScanName;

use crate::idempotency::Idempotency;
use crate::job::{Job, JobState};
use crate::revision::{ActiveWorkflow, Revision, WorkflowRecord, WorkflowStatus};
use crate::runner::{Registration, Runner};
use crate::scan_head::ScanHead;
use crate::source::{Source, TipRecord};
use crate::token::{Secret, Token, TokenHash};
use crate::{
    JobId, Order, RegistrationId, RevisionId, RunnerId, SourceName, Timestamp, TokenId, WorkflowId,
};

/// One change of a decision. It carries the whole new record, so applying it makes no choice and a repeat is harmless.
#[derive(Debug, Clone)]
pub enum Change {
    /// A source is as given.
    Source(Arc<Source>),
    /// A tip was seen. Settled at once.
    Tip(Arc<TipRecord>),
    /// A workflow is as given.
    Workflow(Arc<WorkflowRecord>),
    /// A workflow has a new revision, with its text unless that is an object.
    Revision(Arc<Revision>, Option<Arc<str>>),
    /// A scan's head is as given.
    Head(Arc<ScanHead>),
    /// A job is as given. Once terminal it leaves the world.
    Job(Arc<Job>),
    /// A finished job's line goes to its scan's history.
    History(HistoryEntry),
    /// A runner is as given.
    Runner(Arc<Runner>),
    /// A runner is gone.
    RunnerRemoved(RunnerId),
    /// A token is as given.
    Token(Arc<Token>),
    /// A registration waits.
    Registration(Arc<Registration>),
    /// A registration was used or ran out.
    RegistrationRemoved(RegistrationId),
    /// A request is remembered.
    Idempotency(Arc<Idempotency>),
    /// A request is forgotten, by its key.
    IdempotencyRemoved(String),
    /// The first admin token goes to its file, for the operator to read.
    InitialAdminToken(Secret),
}

/// A line for a scan's history and the place it goes to.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HistoryEntry {
    /// The scan.
    pub scan: ScanKey,
    /// The page, from 0.
    pub page: u64,
    /// The offset in the page, in bytes.
    pub at: u64,
    /// The line, as JSON with its line end.
    pub line: String,
}

/// Names a scan of a workflow.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct ScanKey {
    /// The workflow.
    pub workflow: WorkflowId,
    /// The scan.
    pub scan: ScanName,
}

/// Everything that is live.
#[derive(Debug, Clone, Default)]
pub struct World {
    sources: BTreeMap<SourceName, Arc<Source>>,
    workflows: BTreeMap<WorkflowId, Arc<WorkflowRecord>>,
    revisions: HashMap<RevisionId, Arc<Revision>>,
    heads: HashMap<ScanKey, Arc<ScanHead>>,
    jobs: BTreeMap<JobId, Arc<Job>>,
    scheduled: BTreeMap<WorkflowId, BTreeSet<JobId>>,
    /// How many of them are of one scan; never 0.
    scheduled_of: HashMap<ScanKey, usize>,
    running: HashMap<RunnerId, BTreeSet<JobId>>,
    latest_job: Option<JobId>,
    latest_order: Order,
    runners: BTreeMap<RunnerId, Arc<Runner>>,
    tokens: BTreeMap<TokenId, Arc<Token>>,
    token_hashes: HashMap<TokenHash, TokenId>,
    registrations: BTreeMap<RegistrationId, Arc<Registration>>,
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
                    .fold(self.latest_order, Order::max);
                self.heads.insert(head.key(), head.clone());
            }
            Change::Job(job) => self.apply_job(job),
            Change::Runner(runner) => {
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
            Change::Idempotency(request) => {
                self.forget_request(&request.key);
                self.idempotency_by_age
                    .insert((request.expires_at, request.key.clone()));
                self.idempotency
                    .insert(request.key.clone(), request.clone());
            }
            Change::IdempotencyRemoved(key) => self.forget_request(key),
            Change::Tip(_) | Change::History(_) | Change::InitialAdminToken(_) => {}
        }
    }

    fn apply_job(&mut self, job: &Arc<Job>) {
        let workflow = job.workflow.id;
        self.latest_job = self.latest_job.max(Some(job.id));
        if matches!(job.state, JobState::Scheduled) {
            if self.scheduled.entry(workflow).or_default().insert(job.id) {
                *self.scheduled_of.entry(job.scan_key()).or_default() += 1;
            }
        } else if let Some(waiting) = self.scheduled.get_mut(&workflow) {
            if waiting.remove(&job.id)
                && let Entry::Occupied(mut count) = self.scheduled_of.entry(job.scan_key())
            {
                *count.get_mut() -= 1;
                if *count.get() == 0 {
                    count.remove();
                }
            }
            if waiting.is_empty() {
                self.scheduled.remove(&workflow);
            }
        }
        if let Some(run) = job.state.run() {
            let running = self.running.entry(run.runner.id).or_default();
            if job.state.is_terminal() {
                running.remove(&job.id);
            } else {
                running.insert(job.id);
            }
            if running.is_empty() {
                self.running.remove(&run.runner.id);
            }
        }
        if job.state.is_terminal() {
            self.jobs.remove(&job.id);
            self.forget_unused(job.revision.id);
        } else {
            self.jobs.insert(job.id, job.clone());
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
                || self.jobs.values().any(|job| job.revision.id == id)
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

    /// The records of a source's workflows, also of those whose newest revision could not be read.
    pub fn workflow_records<'a>(
        &'a self,
        source: &'a SourceName,
    ) -> impl Iterator<Item = &'a Arc<WorkflowRecord>> + 'a {
        let records = self.workflows.values();
        records.filter(move |record| record.source == *source)
    }

    /// The workflows of a source.
    pub fn workflows_of<'a>(
        &'a self,
        source: &'a SourceName,
    ) -> impl Iterator<Item = ActiveWorkflow> + 'a {
        self.workflow_records(source)
            .filter_map(|record| self.with_revision(record))
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

    /// An unfinished job.
    pub fn job(&self, id: JobId) -> Option<&Arc<Job>> {
        self.jobs.get(&id)
    }

    /// Every unfinished job, oldest first.
    pub fn jobs(&self) -> impl DoubleEndedIterator<Item = &Arc<Job>> {
        self.jobs.values()
    }

    /// How many jobs are unfinished.
    pub fn unfinished_jobs(&self) -> usize {
        self.jobs.len()
    }

    /// How many jobs of a scan wait for a runner.
    pub fn scheduled_of(&self, scan: &ScanKey) -> usize {
        self.scheduled_of.get(scan).copied().unwrap_or(0)
    }

    /// Jobs that wait for a runner: by workflow, oldest first.
    pub fn scheduled(&self) -> impl Iterator<Item = (WorkflowId, &BTreeSet<JobId>)> {
        self.scheduled
            .iter()
            .map(|(workflow, jobs)| (*workflow, jobs))
    }

    /// The jobs a runner executes, oldest first.
    pub fn running_on(&self, runner: RunnerId) -> impl Iterator<Item = &Arc<Job>> {
        let ids = self.running.get(&runner).into_iter().flatten();
        ids.filter_map(|id| self.jobs.get(id))
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
        let ids = self.running.values().flatten();
        ids.filter_map(|id| self.jobs.get(id))
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
