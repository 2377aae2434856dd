//! Reads the records of the world.

use std::collections::{BTreeSet, HashMap};
use std::sync::Arc;

use workflow::ScanName;
use workflow::notify::Rule;

use super::World;
use crate::abilities::Abilities;
use crate::idempotency::Idempotency;
use crate::job::Job;
use crate::limits::FORMER_NAMES;
use crate::matching::Turn;
use crate::principal::Share;
use crate::project::{ProjectSecrets, ProjectVars};
use crate::recent::Recent;
use crate::retention::{Retention, Stock};
use crate::rules::ProjectRules;
use crate::runner::{Registration, Runner};
use crate::scan_head::{ScanHead, Totals};
use crate::source::Source;
use crate::suspension::Suspension;
use crate::token::{Token, TokenHash};
use crate::{
    JobId, Order, ProjectId, Reach, RunnerId, ScanKey, SourceName, Timestamp, TokenId, UserId,
    WorkflowId,
};

impl World {
    pub fn sources(&self) -> impl Iterator<Item = &Arc<Source>> {
        self.sources.values()
    }

    pub fn source(&self, name: &SourceName) -> Option<&Arc<Source>> {
        self.sources.get(name)
    }

    pub fn source_of(&self, project: ProjectId) -> Option<&Arc<Source>> {
        self.source(self.source_names.get(&project)?)
    }

    /// The vars of a project, if it ever had any.
    pub fn vars(&self, project: ProjectId) -> Option<&Arc<ProjectVars>> {
        self.vars.get(&project)
    }

    /// The secrets of a project, if it ever had any.
    pub fn secrets(&self, project: ProjectId) -> Option<&Arc<ProjectSecrets>> {
        self.secrets.get(&project)
    }

    /// The rules of notifications of a project, or of the instance, if it ever had any.
    pub fn project_rules(&self, project: Option<ProjectId>) -> Option<&Arc<ProjectRules>> {
        self.rules.get(&project)
    }

    /// The rules of all projects and of the instance.
    pub(crate) fn all_rules(&self) -> impl Iterator<Item = &Arc<ProjectRules>> {
        self.rules.values()
    }

    /// The rules of a project, or of the instance, that are in force.
    pub fn rules_of(&self, project: Option<ProjectId>) -> impl Iterator<Item = &Rule> {
        self.project_rules(project)
            .into_iter()
            .flat_map(|rules| rules.all())
    }

    /// The secrets of all projects.
    pub fn all_secrets(&self) -> impl Iterator<Item = &Arc<ProjectSecrets>> {
        self.secrets.values()
    }

    /// The head of a scan, if it ever had a job.
    pub fn head(&self, scan: &ScanKey) -> Option<&Arc<ScanHead>> {
        self.heads.get(scan)
    }

    pub fn heads(&self) -> impl Iterator<Item = &Arc<ScanHead>> {
        self.heads.values()
    }

    /// The former names of a scan, newest first, up to a name that another scan has now.
    pub fn former_names(&self, scan: &ScanKey) -> Vec<ScanKey> {
        let mut found: Vec<ScanKey> = Vec::new();
        let mut next = self.head(scan).and_then(|head| head.renamed_from.clone());
        while let Some(name) = next
            && found.len() < FORMER_NAMES
        {
            let former = ScanKey {
                workflow: scan.workflow,
                scan: name,
            };
            // If the name is used again, it belongs to another scan.
            let is_taken = self
                .workflow(former.workflow)
                .is_some_and(|workflow| workflow.scan(&former.scan).is_some());
            if is_taken || found.contains(&former) {
                break;
            }
            next = self
                .head(&former)
                .and_then(|head| head.renamed_from.clone());
            found.push(former);
        }
        found
    }

    /// The renamed scan that has taken over from a scan that no longer exists.
    pub fn heir(&self, scan: &ScanKey) -> Option<ScanKey> {
        let workflow = self.workflow(scan.workflow)?;
        if workflow.scan(&scan.scan).is_some() {
            return None;
        }
        let mut scans = workflow
            .revision
            .definition
            .scans()
            .map(|other| ScanKey::new(scan.workflow, &other.name));
        scans.find(|other| self.former_names(other).contains(scan))
    }

    /// The record of the jobs that were removed from a scan. None if no job was removed.
    pub fn retention(&self, scan: &ScanKey) -> Option<&Arc<Retention>> {
        self.retention.get(scan)
    }

    /// Like `retention`, but returns a new record if there is none.
    pub fn retention_or_new(&self, scan: &ScanKey) -> Arc<Retention> {
        let known = self.retention(scan).cloned();
        known.unwrap_or_else(|| Arc::new(Retention::new(scan.workflow, scan.scan.clone())))
    }

    /// Counters of the finished jobs of a scan that still exist.
    pub fn retained(&self, head: &ScanHead) -> Totals {
        match self.retention(&head.key()) {
            Some(retention) => head.totals.without(&retention.removed),
            None => head.totals,
        }
    }

    /// The stock of finished jobs of each workflow that has had finished jobs.
    pub fn stocks(&self) -> &HashMap<WorkflowId, Stock> {
        &self.stocks
    }

    /// The newest finished jobs of a scan, if they were read from the history.
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

    pub fn unfinished_jobs(&self) -> usize {
        self.jobs.len()
    }

    pub fn unfinished_of_project(&self, project: ProjectId) -> usize {
        self.jobs.of_project(project)
    }

    pub fn unfinished_of_share(&self, share: Share) -> usize {
        self.jobs.of_share(share)
    }

    /// The job whose steps may have this token: it is running, or somebody has just ended it.
    pub fn job_with_token(&self, token: &TokenHash) -> Option<&Arc<Job>> {
        self.jobs.with_token(token)
    }

    /// The job with this id, if it is unfinished or its steps may still clean up.
    pub(crate) fn job_with_steps(&self, id: JobId) -> Option<&Arc<Job>> {
        self.jobs.with_steps(id)
    }

    /// The unfinished jobs of a scan, oldest first.
    pub fn jobs_of(&self, scan: &ScanKey) -> impl DoubleEndedIterator<Item = &Arc<Job>> {
        self.jobs.of_scan(scan)
    }

    pub fn unfinished_of(&self, scan: &ScanKey) -> usize {
        self.jobs.unfinished_of(scan)
    }

    pub fn scheduled_of(&self, scan: &ScanKey) -> usize {
        self.jobs.scheduled_of(scan)
    }

    /// Jobs that a runner with this reach can take: by workflow, oldest first. A workflow may appear several times.
    pub fn offerable(&self, reach: &Reach) -> impl Iterator<Item = (Turn, &BTreeSet<JobId>)> {
        self.jobs.queue().offerable(reach)
    }

    /// Jobs older than `job` that may be offered at `time` (the world's time) and that `take` accepts by their project and
    /// needs.
    pub(crate) fn older_waiting(
        &self,
        job: JobId,
        time: Timestamp,
        take: &impl Fn(ProjectId, &Abilities) -> bool,
    ) -> impl Iterator<Item = JobId> {
        self.jobs.queue().before(job, time, take)
    }

    /// The delayed jobs that a runner with this reach can take at `time` (the world's time).
    pub fn due_delayed(
        &self,
        reach: &Reach,
        time: Timestamp,
    ) -> impl Iterator<Item = (Turn, JobId)> {
        self.jobs.queue().due_delayed(reach, time)
    }

    /// When the first delayed job after `time` is due.
    pub fn next_delayed(&self, time: Timestamp) -> Option<Timestamp> {
        self.jobs.queue().next_delayed(time)
    }

    /// Workflows with jobs that wait for a runner.
    pub fn waiting_workflows(&self) -> impl ExactSizeIterator<Item = WorkflowId> {
        self.jobs.queue().workflows()
    }

    /// Projects with jobs that may be offered, now or later.
    pub fn waiting_projects(&self) -> impl ExactSizeIterator<Item = ProjectId> {
        self.jobs.queue().projects()
    }

    pub fn has_waiting(&self, project: ProjectId) -> bool {
        self.jobs.queue().has_project(project)
    }

    /// Waiting jobs whose scan was removed.
    pub fn orphans(&self) -> impl Iterator<Item = JobId> {
        self.jobs.queue().orphans()
    }

    /// Waiting jobs that must end, because their scan is suspended.
    pub fn withdrawn(&self) -> impl Iterator<Item = JobId> {
        self.jobs.queue().withdrawn()
    }

    /// The suspension of a scan or of its workflow, if one is in force.
    pub fn suspension(&self, scan: &ScanKey) -> Option<&Arc<Suspension>> {
        let latest = [None, Some(&scan.scan)].into_iter();
        latest
            .filter_map(|part| self.latest_suspension(scan.workflow, part))
            .find(|latest| latest.is_in_force())
    }

    /// The latest suspension of a workflow itself, or of a scan. It may have ended.
    pub fn latest_suspension(
        &self,
        workflow: WorkflowId,
        scan: Option<&ScanName>,
    ) -> Option<&Arc<Suspension>> {
        self.suspensions.latest(workflow, scan)
    }

    /// Includes suspensions that have ended.
    pub fn suspensions(&self) -> impl Iterator<Item = &Arc<Suspension>> {
        self.suspensions.all()
    }

    /// The jobs a runner executes, oldest first.
    pub fn running_on(&self, runner: RunnerId) -> impl Iterator<Item = &Arc<Job>> {
        self.jobs.running_on(runner)
    }

    /// Every running job, by runner.
    pub fn running(&self) -> impl Iterator<Item = &Arc<Job>> {
        self.jobs.running()
    }

    /// The busy runners with their jobs.
    pub fn busy_runners(
        &self,
    ) -> impl Iterator<Item = (RunnerId, impl Iterator<Item = &Arc<Job>>)> {
        self.jobs.busy_runners()
    }

    /// The running jobs with a deadline up to `time`, earliest first.
    pub fn ended_by(&self, time: Timestamp) -> impl Iterator<Item = &Arc<Job>> {
        self.jobs.ended_by(time)
    }

    /// The first deadline of a running job after `time`.
    pub fn next_end(&self, time: Timestamp) -> Option<Timestamp> {
        self.jobs.next_end(time)
    }

    /// The id of the newest job, or [`JobId::FIRST`] if there was no job yet.
    pub fn latest_job(&self) -> JobId {
        self.latest_job.unwrap_or(JobId::FIRST)
    }

    /// The newest position in the order of decisions in all records.
    pub fn latest_order(&self) -> Order {
        self.latest_order
    }

    pub fn runners(&self) -> impl ExactSizeIterator<Item = &Arc<Runner>> {
        self.runners.values()
    }

    pub fn runner(&self, id: RunnerId) -> Option<&Arc<Runner>> {
        self.runners.get(&id)
    }

    pub fn tokens(&self) -> impl ExactSizeIterator<Item = &Arc<Token>> {
        self.tokens.values()
    }

    pub fn tokens_of(&self, owner: UserId) -> impl Iterator<Item = &Arc<Token>> {
        let ids = self.tokens_of.get(&owner).into_iter().flatten();
        ids.filter_map(|id| self.token(*id))
    }

    pub fn token(&self, id: TokenId) -> Option<&Arc<Token>> {
        self.tokens.get(&id)
    }

    /// The token with this secret or former secret.
    pub fn token_of(&self, secret: &TokenHash) -> Option<&Arc<Token>> {
        self.token(*self.token_hashes.get(secret)?)
    }

    pub fn idempotency(&self, key: &str) -> Option<&Arc<Idempotency>> {
        self.idempotency.get(key)
    }

    /// Keys of the stored requests that have expired, oldest first.
    pub fn idempotency_over(&self, now: Timestamp) -> impl Iterator<Item = &str> {
        self.idempotency_by_age
            .iter()
            .take_while(move |(at, _)| *at <= now)
            .map(|(_, key)| key.as_str())
    }

    pub fn registrations(&self) -> impl Iterator<Item = &Arc<Registration>> {
        self.registrations.values()
    }
}
