//! What a caller may see and do: the scopes and the projects of a credential, and the world as far as they reach.
//!
//! [`Seen`] is the only way in which the handlers of users read the world. What the viewer may not see does not exist
//! in it, so a list, a look-up and an event agree without a check of their own.

use std::collections::BTreeSet;
use std::sync::Arc;

use serde::{Deserialize, Serialize};
use workflow::ScanName;

use crate::blob::BlobLink;
use crate::decide::{Refusal, readable_workflow};
use crate::job::Job;
use crate::project::{ProjectSecrets, ProjectVars};
use crate::reason::Reason;
use crate::revision::{ActiveWorkflow, Revision, RevisionRef, WorkflowRecord, WorkflowStatus};
use crate::runner::Runner;
use crate::scan_head::{ScanHead, Totals};
use crate::schedule::Upcoming;
use crate::scope::Scopes;
use crate::source::{Source, StaleFile};
use crate::suspension::Suspension;
use crate::token::Token;
use crate::waiting::Slots;
use crate::world::World;
use crate::{BlobLinkId, JobId, ProjectId, RunnerId, ScanKey, SourceName, Timestamp, WorkflowId};

/// The projects that a credential is for.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(untagged)]
pub enum Projects {
    /// These alone.
    Only(BTreeSet<ProjectId>),
    /// All, also those that come later.
    #[default]
    All,
}

impl Projects {
    pub fn is_all(&self) -> bool {
        *self == Self::All
    }

    pub fn contain(&self, project: ProjectId) -> bool {
        match self {
            Self::All => true,
            Self::Only(projects) => projects.contains(&project),
        }
    }

    /// Whether all of `other` are among these.
    pub fn cover(&self, other: &Self) -> bool {
        match (self, other) {
            (Self::All, _) => true,
            (Self::Only(_), Self::All) => false,
            (Self::Only(these), Self::Only(others)) => others.is_subset(these),
        }
    }
}

/// Who asks, as far as it decides what they may see and do.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Viewer {
    pub scopes: Scopes,
    pub projects: Projects,
}

impl Viewer {
    /// Everything of the installation.
    pub fn admin() -> Self {
        Self {
            scopes: Scopes::admin(),
            projects: Projects::All,
        }
    }

    pub fn sees(&self, project: ProjectId) -> bool {
        self.projects.contain(project)
    }

    /// Whether the token may do nothing that this viewer may not. Others do not exist for the viewer.
    pub fn covers(&self, token: &Token) -> bool {
        self.scopes.cover(&token.scopes) && self.projects.cover(&token.projects)
    }
}

impl From<&Token> for Viewer {
    fn from(token: &Token) -> Self {
        Self {
            scopes: token.scopes.clone(),
            projects: token.projects.clone(),
        }
    }
}

/// The world as far as a viewer sees it.
#[derive(Debug, Clone, Copy)]
pub struct Seen<'w> {
    world: &'w World,
    viewer: &'w Viewer,
}

impl World {
    pub fn seen_by<'w>(&'w self, viewer: &'w Viewer) -> Seen<'w> {
        Seen {
            world: self,
            viewer,
        }
    }

    /// The project of a workflow, which may be retired.
    fn project_of(&self, workflow: WorkflowId) -> Option<ProjectId> {
        Some(self.workflow_record(workflow)?.project)
    }
}

impl<'w> Seen<'w> {
    /// The sources, also those that are no longer configured, by name.
    pub fn sources(self) -> impl Iterator<Item = &'w Arc<Source>> {
        let sees = move |source: &&Arc<Source>| self.viewer.sees(source.project);
        self.world.sources().filter(sees)
    }

    pub fn source(self, name: &SourceName) -> Option<&'w Arc<Source>> {
        let source = self.world.source(name)?;
        self.viewer.sees(source.project).then_some(source)
    }

    /// The source of a project.
    pub fn source_of(self, project: ProjectId) -> Option<&'w Arc<Source>> {
        self.sources().find(|source| source.project == project)
    }

    pub fn vars(self, project: ProjectId) -> Option<&'w Arc<ProjectVars>> {
        let vars = self.world.vars(project);
        vars.filter(|_| self.viewer.sees(project))
    }

    pub fn secrets(self, project: ProjectId) -> Option<&'w Arc<ProjectSecrets>> {
        let secrets = self.world.secrets(project);
        secrets.filter(|_| self.viewer.sees(project))
    }

    /// The links to blobs of a project, also those whose time is over.
    pub fn blob_links(self, project: ProjectId) -> impl Iterator<Item = &'w Arc<BlobLink>> {
        let sees = self.viewer.sees(project);
        let links = self.world.blob_links();
        links.filter(move |link| sees && link.project == project)
    }

    pub fn blob_link(self, id: BlobLinkId) -> Option<&'w Arc<BlobLink>> {
        let link = self.world.blob_link(id)?;
        self.viewer.sees(link.project).then_some(link)
    }

    /// The records of all workflows, also of retired ones.
    pub fn workflow_records(self) -> impl Iterator<Item = &'w Arc<WorkflowRecord>> {
        let sees = move |record: &&Arc<WorkflowRecord>| self.viewer.sees(record.project);
        self.world.all_workflow_records().filter(sees)
    }

    pub fn workflow_record(self, id: WorkflowId) -> Option<&'w Arc<WorkflowRecord>> {
        let record = self.world.workflow_record(id)?;
        self.viewer.sees(record.project).then_some(record)
    }

    /// The workflows that are active, with their revisions.
    pub fn workflows(self) -> impl Iterator<Item = ActiveWorkflow> + 'w {
        let sees = move |workflow: &ActiveWorkflow| self.viewer.sees(workflow.record.project);
        self.world.workflows().filter(sees)
    }

    /// The active workflows of a project, with their revisions.
    pub fn workflows_of(self, project: ProjectId) -> Vec<ActiveWorkflow> {
        let is_its = |workflow: &ActiveWorkflow| {
            let record = &workflow.record;
            record.project == project && record.status == WorkflowStatus::Active
        };
        self.workflows().filter(is_its).collect()
    }

    pub fn workflow(self, id: WorkflowId) -> Option<ActiveWorkflow> {
        self.workflow_record(id)?;
        self.world.workflow(id)
    }

    /// The workflow with its newest revision.
    ///
    /// # Errors
    /// If there is no such workflow, or its revision cannot be read.
    pub fn readable_workflow(self, id: WorkflowId) -> Result<ActiveWorkflow, Refusal> {
        if self.workflow_record(id).is_none() {
            let workflow = id.to_string();
            return Err(Refusal::NoSuchWorkflow { workflow });
        }
        readable_workflow(self.world, id)
    }

    /// The newest revision of a workflow, if it could be read.
    pub fn revision(self, record: &WorkflowRecord) -> Option<&'w Arc<Revision>> {
        self.world.revision(record.revision.id)
    }

    /// Why a workflow is retired, if it is.
    pub fn retirement(self, record: &WorkflowRecord) -> Option<Reason> {
        self.world.retirement(record)
    }

    /// What is wrong with the newest file of a workflow, if it is invalid.
    pub fn stale_file(self, record: &WorkflowRecord) -> Option<&'w StaleFile> {
        self.world.stale_file(record)
    }

    /// The revision that stays active while a file is invalid.
    pub fn last_good(self, stale: &StaleFile) -> Option<&'w RevisionRef> {
        self.world.last_good(stale)
    }

    /// The latest suspension of a workflow itself, or of a scan. It may have ended.
    pub fn latest_suspension(
        self,
        workflow: WorkflowId,
        scan: Option<&ScanName>,
    ) -> Option<&'w Arc<Suspension>> {
        self.workflow_record(workflow)?;
        self.world.latest_suspension(workflow, scan)
    }

    /// Why nothing of a scan starts now, if it or its workflow is suspended.
    pub fn suspension(self, scan: &ScanKey) -> Option<&'w Arc<Suspension>> {
        self.workflow_record(scan.workflow)?;
        self.world.suspension(scan)
    }

    pub fn heads(self) -> impl Iterator<Item = &'w Arc<ScanHead>> {
        let sees = move |head: &&Arc<ScanHead>| self.sees_workflow(head.workflow);
        self.world.heads().filter(sees)
    }

    pub fn head(self, scan: &ScanKey) -> Option<&'w Arc<ScanHead>> {
        let head = self.world.head(scan)?;
        self.sees_workflow(head.workflow).then_some(head)
    }

    /// The scan that has taken over what was known of a scan, which is gone.
    pub fn heir(self, scan: &ScanKey) -> Option<ScanKey> {
        self.workflow_record(scan.workflow)?;
        self.world.heir(scan)
    }

    /// How many finished jobs of a scan there are.
    pub fn finished(self, scan: &ScanKey) -> Totals {
        let head = self.head(scan);
        head.map(|head| self.world.retained(head))
            .unwrap_or_default()
    }

    /// The next slot of a scan's schedule.
    pub fn next_slot_of(self, scan: &ScanKey) -> Option<Timestamp> {
        let is_seen = self.sees_workflow(scan.workflow);
        self.world.next_slot_of(scan).filter(|_| is_seen)
    }

    /// The next slot of every schedule that may start a job, in their order: what is suspended has none.
    pub fn next_slots(self) -> impl Iterator<Item = Upcoming> + 'w {
        let slots = self.world.next_slots();
        let may_start =
            move |(_, scan): &(Timestamp, &ScanKey)| self.world.suspension(scan).is_none();
        slots.filter(may_start).filter_map(move |(at, scan)| {
            Some(Upcoming {
                at,
                workflow: self.workflow(scan.workflow)?,
                scan: scan.scan.clone(),
            })
        })
    }

    /// An unfinished job.
    pub fn job(self, id: JobId) -> Option<&'w Arc<Job>> {
        let job = self.world.job(id)?;
        self.viewer.sees(job.project).then_some(job)
    }

    /// The unfinished jobs, oldest first.
    pub fn jobs(self) -> impl DoubleEndedIterator<Item = &'w Arc<Job>> {
        let sees = move |job: &&Arc<Job>| self.viewer.sees(job.project);
        self.world.jobs().filter(sees)
    }

    /// The unfinished jobs of a scan, oldest first.
    pub fn jobs_of(self, scan: &ScanKey) -> impl DoubleEndedIterator<Item = &'w Arc<Job>> {
        let sees = move |job: &&Arc<Job>| self.viewer.sees(job.project);
        self.world.jobs_of(scan).filter(sees)
    }

    /// The runners. They serve all projects.
    pub fn runners(self) -> impl Iterator<Item = &'w Arc<Runner>> {
        self.world.runners()
    }

    pub fn runner(self, id: RunnerId) -> Option<&'w Arc<Runner>> {
        self.world.runner(id)
    }

    /// The jobs that a runner executes, oldest first.
    pub fn running_on(self, runner: RunnerId) -> impl Iterator<Item = &'w Arc<Job>> {
        let sees = move |job: &&Arc<Job>| self.viewer.sees(job.project);
        self.world.running_on(runner).filter(sees)
    }

    /// What takes the slots of a runner, which serves all projects: jobs of others are among them.
    pub fn slots(self, runner: RunnerId, holding: Option<&BTreeSet<JobId>>) -> Slots {
        Slots::of(self.world, runner, holding)
    }

    /// The tokens that may do no more than the viewer.
    pub fn tokens(self) -> impl Iterator<Item = &'w Arc<Token>> {
        let covers = move |token: &&Arc<Token>| self.viewer.covers(token);
        self.world.tokens().filter(covers)
    }

    /// Why a job waits, without the jobs of others. Whether those that are over may be seen is not known.
    pub fn reason_of_waiting(self, reason: Reason) -> Reason {
        match reason {
            Reason::RunnersBusy {
                runners,
                jobs,
                more,
                over,
                ahead,
            } if !self.viewer.projects.is_all() => {
                let all = jobs.len();
                let jobs: Vec<JobId> = jobs
                    .into_iter()
                    .filter(|job| self.job(*job).is_some())
                    .collect();
                Reason::RunnersBusy {
                    runners,
                    more: more + (all - jobs.len()) as u64,
                    jobs,
                    over,
                    ahead: ahead.without_scans(|workflow| self.sees_workflow(workflow)),
                }
            }
            Reason::NotFetched { ahead } => Reason::NotFetched {
                ahead: ahead.without_scans(|workflow| self.sees_workflow(workflow)),
            },
            reason => reason,
        }
    }

    fn sees_workflow(self, workflow: WorkflowId) -> bool {
        let project = self.world.project_of(workflow);
        project.is_some_and(|project| self.viewer.sees(project))
    }
}
