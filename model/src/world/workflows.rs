//! Reads workflows and their revisions in the world.

use std::collections::BTreeSet;
use std::sync::Arc;

use workflow::Workflow;

use super::World;
use super::names::Name;
use crate::job::{Job, JobSource, JobState, Trigger};
use crate::revision::{ActiveWorkflow, Revision, RevisionRef, WorkflowRecord, WorkflowStatus};
use crate::source::StaleFile;
use crate::{ProjectId, Reason, RevisionId, SourceName, WorkflowId};

impl World {
    /// The revision that a job runs. A dispatched job keeps its revision, because its inputs were checked against it.
    /// Other jobs use the newest revision until they are claimed (design section 4).
    pub fn revision_to_run(&self, job: &Job) -> RevisionId {
        let newest = self.workflows.get(&job.workflow.id);
        match (&job.state, job.trigger, newest) {
            (
                JobState::Scheduled,
                Trigger::Cron | Trigger::Expr | Trigger::Callback,
                Some(newest),
            ) => newest.revision.id,
            _ => job.revision.id,
        }
    }

    /// Every workflow with its newest revision.
    pub fn workflows(&self) -> impl Iterator<Item = ActiveWorkflow> {
        self.workflows
            .values()
            .filter_map(|record| self.with_revision(record))
    }

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

    /// The newest definition of a workflow, if it is active and readable.
    pub(super) fn active_definition(&self, id: WorkflowId) -> Option<Arc<Workflow>> {
        let workflow = self.workflow(id)?;
        let is_active = workflow.record.status == WorkflowStatus::Active;
        is_active.then(|| workflow.revision.definition.clone())
    }

    /// The names that the active workflows of a project use, with the number of these workflows.
    pub(crate) fn names_used(&self, project: ProjectId) -> impl Iterator<Item = (&Name, usize)> {
        self.names.of(project)
    }

    /// The record of a workflow, even if its newest revision could not be read.
    pub fn workflow_record(&self, id: WorkflowId) -> Option<&Arc<WorkflowRecord>> {
        self.workflows.get(&id)
    }

    /// The records of all workflows, even if their newest revision could not be read.
    pub fn all_workflow_records(&self) -> impl Iterator<Item = &Arc<WorkflowRecord>> {
        self.workflows.values()
    }

    /// The records of a source's workflows, even if their newest revision could not be read.
    pub fn workflow_records<'a>(
        &'a self,
        source: &'a SourceName,
    ) -> impl Iterator<Item = &'a Arc<WorkflowRecord>> + 'a {
        self.all_workflow_records()
            .filter(move |record| record.source == *source)
    }

    pub fn workflows_of<'a>(
        &'a self,
        source: &'a SourceName,
    ) -> impl Iterator<Item = ActiveWorkflow> + 'a {
        self.workflow_records(source)
            .filter_map(|record| self.with_revision(record))
    }

    /// The reason why a workflow is retired. None if it is active. It depends on the current state of the source, so it
    /// follows the configuration.
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

    /// The invalid file of a workflow at the tip.
    pub fn stale_file(&self, workflow: &WorkflowRecord) -> Option<&StaleFile> {
        let mut stale = self.source(&workflow.source)?.stale_files.iter();
        stale.find(|stale| stale.workflow == workflow.id)
    }

    /// The revision that stays active while a file is invalid. None if no version was valid, or the workflow is retired.
    pub fn last_good(&self, stale: &StaleFile) -> Option<&RevisionRef> {
        let record = self.workflow_record(stale.workflow)?;
        match record.status {
            WorkflowStatus::Active => Some(&record.revision),
            WorkflowStatus::Retired { .. } => None,
        }
    }

    /// The commit whose files the jobs of a workflow get: the newest tip whose workflow file is the active revision.
    pub fn files_of(&self, workflow: &WorkflowRecord) -> JobSource {
        let source = self.source(&workflow.source);
        let tip = source.and_then(|source| source.tip.as_ref());
        let number = tip.map_or(0, |tip| tip.number);
        let commit = match &workflow.held {
            Some(held) if held.counts(number) => &held.commit,
            // An older record has no held commit.
            _ if self.stale_file(workflow).is_some() => &workflow.revision.commit,
            _ => {
                let applied = source.and_then(|source| source.applied_commit.as_ref());
                applied
                    .or(tip.map(|tip| &tip.commit))
                    .unwrap_or(&workflow.revision.commit)
            }
        };
        let configured = source.and_then(|source| source.reference.as_ref());
        let default = source.and_then(|source| source.default_reference.as_ref());
        JobSource {
            commit: commit.clone(),
            reference: configured
                .or(default)
                .map_or_else(|| "HEAD".to_owned(), String::clone),
        }
    }

    /// The commits of a source that unfinished jobs use, and the commits that jobs may get before the next tip is applied.
    pub fn commits_in_use(&self, source: &SourceName) -> BTreeSet<String> {
        let of_jobs = self
            .jobs()
            .filter(|job| job.workflow.source == *source)
            .filter_map(|job| job.source.as_ref())
            .map(|source| source.commit.clone());
        let of_workflows = self
            .workflows_of(source)
            .filter(|workflow| match workflow.record.status {
                WorkflowStatus::Active => {
                    let mut scans = workflow.revision.definition.scans();
                    scans.any(|scan| scan.checkout.is_some())
                }
                WorkflowStatus::Retired { .. } => false,
            })
            .map(|workflow| self.files_of(&workflow.record).commit);
        of_jobs.chain(of_workflows).collect()
    }

    /// A revision, if it is active or an unfinished job needs it.
    pub fn revision(&self, id: RevisionId) -> Option<&Arc<Revision>> {
        self.revisions.get(&id)
    }

    /// True if the job's scan no longer exists: its workflow is retired, or the newest revision has no such scan. False
    /// if the record or the revision cannot be read.
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
}
