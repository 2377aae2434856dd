//! The world restricted to the rights of a caller.
//!
//! The handlers of users read the world only through [`Seen`]. Records that the caller may not see do not exist in it,
//! so lists, look-ups and events agree without their own checks.

use std::collections::BTreeSet;
use std::sync::Arc;

use workflow::ScanName;
use workflow::notify::NotifyName;

use crate::blob::BlobLink;
use crate::callback::{Callback, CallbackId, CallbackToken};
use crate::channel::Channel;
use crate::condition::Condition;
use crate::decide::{Refusal, readable_workflow};
use crate::job::Job;
use crate::outbox::Waiting;
use crate::payload::PayloadGroup;
use crate::principal::Principal;
use crate::project::{ProjectSecrets, ProjectVars};
use crate::reason::Reason;
use crate::revision::{ActiveWorkflow, Revision, RevisionRef, WorkflowRecord, WorkflowStatus};
use crate::rights::Rights;
use crate::role::Role;
use crate::rules::ProjectRules;
use crate::runner::{Runner, may_manage};
use crate::scan_head::{ScanHead, Totals};
use crate::schedule::Upcoming;
use crate::source::{Source, StaleFile};
use crate::suspension::Suspension;
use crate::token::Token;
use crate::user::{User, UserLink};
use crate::waiting::Slots;
use crate::world::World;
use crate::{
    BlobLinkId, JobId, PayloadGroupId, ProjectId, RunnerId, ScanKey, Scope, SourceName, Timestamp,
    TokenId, UserId, WorkflowId,
};

/// The part of the world that these rights allow to see.
#[derive(Debug, Clone, Copy)]
pub struct Seen<'w> {
    world: &'w World,
    rights: &'w Rights,
}

impl World {
    pub fn seen_by<'w>(&'w self, rights: &'w Rights) -> Seen<'w> {
        Seen {
            world: self,
            rights,
        }
    }
}

impl<'w> Seen<'w> {
    /// All sources by name, including sources that are no longer configured.
    pub fn sources(self) -> impl Iterator<Item = &'w Arc<Source>> {
        let sees = move |source: &&Arc<Source>| self.rights.sees(source.project);
        self.world.sources().filter(sees)
    }

    pub fn source(self, name: &SourceName) -> Option<&'w Arc<Source>> {
        let source = self.world.source(name)?;
        self.rights.sees(source.project).then_some(source)
    }

    pub fn source_of(self, project: ProjectId) -> Option<&'w Arc<Source>> {
        self.sources().find(|source| source.project == project)
    }

    pub fn vars(self, project: ProjectId) -> Option<&'w Arc<ProjectVars>> {
        let vars = self.world.vars(project);
        vars.filter(|_| self.rights.sees(project))
    }

    pub fn secrets(self, project: ProjectId) -> Option<&'w Arc<ProjectSecrets>> {
        let secrets = self.world.secrets(project);
        secrets.filter(|_| self.rights.sees(project))
    }

    /// The rules of notifications of a project. Those of the instance are for administrators.
    pub fn rules(self, project: Option<ProjectId>) -> Option<&'w Arc<ProjectRules>> {
        let rules = self.world.project_rules(project);
        rules.filter(|_| self.sees_channel_of(project))
    }

    /// The channels. Those of the instance are for administrators.
    pub fn channels(self) -> impl Iterator<Item = &'w Arc<Channel>> {
        let all = self.world.channels();
        all.filter(move |channel| self.sees_channel_of(channel.project))
    }

    /// Whether rules of a project, or of the instance, can name such a channel.
    pub fn has_channel(self, owner: Option<ProjectId>, name: &NotifyName) -> bool {
        self.world.channel_named(owner, name).is_some()
    }

    /// The channel of exactly this owner.
    pub fn channel_of(
        self,
        project: Option<ProjectId>,
        name: &NotifyName,
    ) -> Option<&'w Arc<Channel>> {
        let channel = self.world.channel_of(project, name)?;
        self.sees_channel_of(project).then_some(channel)
    }

    /// What is not sent to a channel yet.
    pub fn waiting(self, channel: &Channel, now: Timestamp) -> Option<Waiting> {
        self.world.waiting(channel, now)
    }

    /// Whether the caller sees channels of this owner, and what was sent to them.
    pub fn sees_channel_of(self, project: Option<ProjectId>) -> bool {
        match project {
            Some(project) => self.rights.sees(project),
            None => self.rights.scopes.allow(Scope::Admin),
        }
    }

    /// The links to blobs of a project that work at `now`.
    pub fn blob_links(
        self,
        project: ProjectId,
        now: Timestamp,
    ) -> impl Iterator<Item = &'w Arc<BlobLink>> {
        let sees = self.rights.sees(project);
        let links = self.world.blob_links();
        let is_open = move |link: &BlobLink| {
            let maker = Principal::of_link(self.world, link);
            maker.is_some_and(|maker| maker.rights(self.world, now).is_some())
        };
        links.filter(move |link| sees && link.project == project && is_open(link))
    }

    pub fn blob_link(self, id: BlobLinkId) -> Option<&'w Arc<BlobLink>> {
        let link = self.world.blob_link(id)?;
        self.rights.sees(link.project).then_some(link)
    }

    pub fn may(self, scope: Scope, project: ProjectId) -> bool {
        self.rights.may(scope, project)
    }

    pub fn callbacks(self) -> impl Iterator<Item = &'w Arc<Callback>> {
        let callbacks = self.world.callbacks();
        callbacks.filter(move |callback| self.rights.sees(callback.project))
    }

    pub fn callback(self, id: CallbackId) -> Option<&'w Arc<Callback>> {
        let callback = self.world.callback(id)?;
        self.rights.sees(callback.project).then_some(callback)
    }

    /// The names of a callback server that were made one by one.
    pub fn callback_tokens(
        self,
        callback: &Callback,
    ) -> impl Iterator<Item = &'w Arc<CallbackToken>> {
        self.world.callback_tokens(callback.id)
    }

    pub fn payload_groups(self) -> impl Iterator<Item = &'w Arc<PayloadGroup>> {
        let groups = self.world.payload_groups();
        groups.filter(move |group| self.rights.sees(group.project))
    }

    pub fn payload_group(self, id: PayloadGroupId) -> Option<&'w Arc<PayloadGroup>> {
        let group = self.world.payload_group(id)?;
        self.rights.sees(group.project).then_some(group)
    }

    /// The open conditions.
    pub fn conditions(self) -> impl Iterator<Item = &'w Arc<Condition>> {
        let all = self.world.conditions();
        all.filter(move |open| open.is_seen_by(self.rights))
    }

    /// The records of all workflows, including retired workflows.
    pub fn workflow_records(self) -> impl Iterator<Item = &'w Arc<WorkflowRecord>> {
        let sees = move |record: &&Arc<WorkflowRecord>| self.rights.sees(record.project);
        self.world.all_workflow_records().filter(sees)
    }

    pub fn workflow_record(self, id: WorkflowId) -> Option<&'w Arc<WorkflowRecord>> {
        let record = self.world.workflow_record(id)?;
        self.rights.sees(record.project).then_some(record)
    }

    /// The active workflows with their revisions.
    pub fn workflows(self) -> impl Iterator<Item = ActiveWorkflow> + 'w {
        let sees = move |workflow: &ActiveWorkflow| self.rights.sees(workflow.record.project);
        self.world.workflows().filter(sees)
    }

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
    /// If there is no such workflow, or its revision is unreadable.
    pub fn readable_workflow(self, id: WorkflowId) -> Result<ActiveWorkflow, Refusal> {
        if self.workflow_record(id).is_none() {
            let workflow = id.to_string();
            return Err(Refusal::NoSuchWorkflow { workflow });
        }
        readable_workflow(self.world, id)
    }

    /// The newest revision of a workflow, if it is readable.
    pub fn revision(self, record: &WorkflowRecord) -> Option<&'w Arc<Revision>> {
        self.world.revision(record.revision.id)
    }

    /// The reason why a workflow is retired. None if it is active.
    pub fn retirement(self, record: &WorkflowRecord) -> Option<Reason> {
        self.world.retirement(record)
    }

    /// The problems of the newest file of a workflow, if it is invalid.
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

    /// The suspension of a scan or of its workflow, if one is in force.
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

    /// The scan that has replaced a removed scan under a new name.
    pub fn heir(self, scan: &ScanKey) -> Option<ScanKey> {
        self.workflow_record(scan.workflow)?;
        self.world.heir(scan)
    }

    /// The number of existing finished jobs of a scan.
    pub fn finished(self, scan: &ScanKey) -> Totals {
        let head = self.head(scan);
        head.map(|head| self.world.retained(head))
            .unwrap_or_default()
    }

    pub fn next_slot_of(self, scan: &ScanKey) -> Option<Timestamp> {
        let is_seen = self.sees_workflow(scan.workflow);
        self.world.next_slot_of(scan).filter(|_| is_seen)
    }

    /// The next slot of every schedule that is not suspended, in order of time.
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

    /// A job, if it is unfinished.
    pub fn job(self, id: JobId) -> Option<&'w Arc<Job>> {
        let job = self.world.job(id)?;
        self.rights.sees(job.project).then_some(job)
    }

    /// The unfinished jobs, oldest first.
    pub fn jobs(self) -> impl DoubleEndedIterator<Item = &'w Arc<Job>> {
        let sees = move |job: &&Arc<Job>| self.rights.sees(job.project);
        self.world.jobs().filter(sees)
    }

    /// The unfinished jobs of a scan, oldest first.
    pub fn jobs_of(self, scan: &ScanKey) -> impl DoubleEndedIterator<Item = &'w Arc<Job>> {
        let sees = move |job: &&Arc<Job>| self.rights.sees(job.project);
        self.world.jobs_of(scan).filter(sees)
    }

    pub fn sees(self, project: ProjectId) -> bool {
        self.rights.sees(project)
    }

    /// The runners that serve a project of the caller.
    pub fn runners(self) -> impl Iterator<Item = &'w Arc<Runner>> {
        let all = self.world.runners();
        all.filter(move |runner| runner.is_seen_by(self.rights))
    }

    pub fn runner(self, id: RunnerId) -> Option<&'w Arc<Runner>> {
        let runner = self.world.runner(id)?;
        runner.is_seen_by(self.rights).then_some(runner)
    }

    /// True if the caller may limit and remove the runner.
    pub fn may_manage(self, runner: &Runner) -> bool {
        may_manage(self.rights, &runner.projects)
    }

    /// The jobs that a runner executes, oldest first.
    pub fn running_on(self, runner: RunnerId) -> impl Iterator<Item = &'w Arc<Job>> {
        let sees = move |job: &&Arc<Job>| self.rights.sees(job.project);
        self.world.running_on(runner).filter(sees)
    }

    /// The jobs that use the slots of a runner, including jobs of projects that the caller does not see.
    pub fn slots(self, runner: RunnerId, holding: Option<&BTreeSet<JobId>>) -> Slots {
        Slots::of(self.world, runner, holding)
    }

    /// The users, for administrators.
    pub fn users(self) -> impl Iterator<Item = &'w Arc<User>> {
        let sees = self.rights.is_administrator();
        let users = self.world.users().filter(|user| !user.is_deleted());
        users.filter(move |_| sees)
    }

    /// A user by name, for administrators and for those who give roles.
    pub fn user(self, name: &str) -> Option<&'w Arc<User>> {
        let may = self.rights.is_administrator() || self.rights.scopes.allow(Scope::MemberWrite);
        let user = self.world.user_named(&name.parse().ok()?)?;
        (may && !user.is_deleted()).then_some(user)
    }

    /// The invitation or reset of a user, if it can still be used at `now`.
    pub fn open_link(self, user: &User, now: Timestamp) -> Option<&UserLink> {
        let link = user.link.as_deref();
        link.filter(|link| self.world.is_open(user, link, now))
    }

    /// The members of a project with their roles.
    pub fn members(self, project: ProjectId) -> impl Iterator<Item = (&'w Arc<User>, Role)> {
        let sees = self.rights.sees(project);
        let users = self.world.users().filter(move |_| sees);
        users.filter_map(move |user| Some((user, user.roles.get(project)?)))
    }

    /// Any token, for administrators.
    pub fn token(self, id: TokenId) -> Option<&'w Arc<Token>> {
        self.world
            .token(id)
            .filter(|_| self.rights.is_administrator())
    }

    /// The name of a user. Every record that names a user may show it.
    pub fn user_name(self, id: UserId) -> &'w str {
        self.world
            .user(id)
            .map_or("unknown", |user| user.name.as_str())
    }

    /// The reason why a job waits, without the jobs that the caller does not see. Finished jobs of any project are
    /// removed too, because their project is not known here.
    pub fn reason_of_waiting(self, reason: Reason) -> Reason {
        match reason {
            Reason::RunnersBusy {
                runners,
                jobs,
                more,
                over,
                ahead,
            } if !self.rights.projects.is_all() => {
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
        self.workflow_record(workflow).is_some()
    }
}
