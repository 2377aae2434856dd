//! Derives the conditions of a subject from records.

mod touched;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use chrono::TimeDelta;
use workflow::notify::NotifyName;
use workflow::{Expect, ScanName};

pub(crate) use self::touched::touched;
use crate::callback::Callback;
use crate::change::Change;
use crate::channel::Channel;
use crate::condition::{Condition, Ended, Problem, Subject};
use crate::job::{Job, JobState};
use crate::limits::{JOBS_CONSIDERED, TOKEN_EXPIRES_SOON};
use crate::project::{ProjectSecrets, ProjectVars};
use crate::revision::{ActiveWorkflow, WorkflowStatus};
use crate::rules::ProjectRules;
use crate::scan_head::ScanHead;
use crate::source::{Removal, Source, Status};
use crate::suspension::Suspension;
use crate::token::Token;
use crate::world::World;
use crate::world::names::Name;
use crate::{
    ChannelId, JobId, ProjectId, Reason, ScanKey, SourceName, Timestamp, TokenId, WorkflowId,
};

/// The world as it is after some changes of one decision.
pub(crate) struct After<'a> {
    world: &'a World,
    changes: &'a [Change],
}

/// A condition that is open, or that begins later if nothing changes.
pub(crate) struct Derived {
    /// When it begins. None if it is open already.
    pub(crate) from: Option<Timestamp>,
    pub(crate) problem: Problem,
}

impl<'a> After<'a> {
    pub(crate) const fn of(world: &'a World, changes: &'a [Change]) -> Self {
        Self { world, changes }
    }

    /// What the last change that `record` accepts says.
    fn last<T>(&self, record: impl FnMut(&'a Change) -> Option<T>) -> Option<T> {
        self.changes.iter().rev().find_map(record)
    }

    fn head(&self, scan: &ScanKey) -> Option<&'a Arc<ScanHead>> {
        let changed = self.last(|change| match change {
            Change::Head(head) if head.key() == *scan => Some(head),
            _ => None,
        });
        changed.or_else(|| self.world.head(scan))
    }

    /// The oldest and the newest unfinished jobs of a scan, in no order.
    fn jobs(&self, scan: &ScanKey) -> Vec<&'a Arc<Job>> {
        let changed: Vec<&Arc<Job>> = self.changes.iter().filter_map(Change::job).collect();
        let is_same = |job: &&Arc<Job>| !changed.iter().any(|other| other.id == job.id);
        let oldest = self.world.jobs_of(scan).take(JOBS_CONSIDERED);
        let newest = self.world.jobs_of(scan).rev().take(JOBS_CONSIDERED);
        let mut jobs: Vec<&Arc<Job>> = oldest.chain(newest).filter(is_same).collect();
        let newest = |job: &JobId| changed.iter().rev().find(|other| other.id == *job);
        let mut ids: Vec<JobId> = changed.iter().map(|job| job.id).collect();
        ids.sort_unstable();
        ids.dedup();
        let of_scan = ids.iter().filter_map(newest).copied();
        jobs.extend(of_scan.filter(|job| job.scan_key() == *scan && !job.state.is_terminal()));
        jobs
    }

    /// The workflow, if it is active and its newest revision is readable.
    fn workflow(&self, id: WorkflowId) -> Option<ActiveWorkflow> {
        let changed = self.last(|change| change.workflow().filter(|record| record.id == id));
        let record = changed.or_else(|| self.world.workflow_record(id))?;
        let revision = self.last(|change| match change {
            Change::Revision(revision, _) if revision.record.reference.id == record.revision.id => {
                Some(revision)
            }
            _ => None,
        });
        let revision = revision.or_else(|| self.world.revision(record.revision.id))?;
        let workflow = ActiveWorkflow {
            record: record.clone(),
            revision: revision.clone(),
        };
        (record.status == WorkflowStatus::Active).then_some(workflow)
    }

    fn suspension(&self, id: WorkflowId, scan: Option<&ScanName>) -> Option<&'a Suspension> {
        let changed = self.last(|change| match change {
            Change::Suspension(suspension)
                if suspension.workflow.id == id && suspension.scan.as_ref() == scan =>
            {
                Some(suspension)
            }
            _ => None,
        });
        let latest = changed.or_else(|| self.world.latest_suspension(id, scan))?;
        latest.is_in_force().then_some(&**latest)
    }

    fn source(&self, name: &SourceName) -> Option<&'a Source> {
        let changed = self.last(|change| match change {
            Change::Source(source) if source.name == *name => Some(source),
            _ => None,
        });
        let source = changed.or_else(|| self.world.source(name))?;
        source.configured.then_some(&**source)
    }

    fn token(&self, id: TokenId) -> Option<&'a Token> {
        let changed = self.last(|change| match change {
            Change::Token(token) if token.id == id => Some(Some(token)),
            Change::TokenRemoved(removed) if *removed == id => Some(None),
            _ => None,
        });
        changed
            .unwrap_or_else(|| self.world.token(id))
            .map(|token| &**token)
    }

    fn channel(&self, id: ChannelId) -> Option<&'a Channel> {
        let changed = self.last(|change| match change {
            Change::Channel(channel) if channel.id == id => Some(Some(channel)),
            Change::ChannelRemoved(removed) if *removed == id => Some(None),
            _ => None,
        });
        changed
            .unwrap_or_else(|| self.world.channel(id))
            .map(|channel| &**channel)
    }

    fn callbacks(&self, project: ProjectId) -> Vec<&'a Arc<Callback>> {
        let known = self.world.callbacks().filter(|it| it.project == project);
        let changed = self.changes.iter().filter_map(|change| match change {
            Change::Callback(callback) if callback.project == project => Some(callback),
            _ => None,
        });
        let newest: BTreeMap<_, _> = known.chain(changed).map(|it| (it.id, it)).collect();
        let there = newest.into_values();
        there.filter(|callback| !callback.is_deleted).collect()
    }

    fn rules(&self, project: ProjectId) -> Option<&'a Arc<ProjectRules>> {
        let changed = self.last(|change| match change {
            Change::Rules(rules) if rules.project == Some(project) => Some(rules),
            _ => None,
        });
        changed.or_else(|| self.world.project_rules(Some(project)))
    }

    /// Whether the project can send to a channel of this name.
    fn has_channel(&self, project: ProjectId, name: &NotifyName) -> bool {
        let known = self
            .world
            .channels_for(Some(project))
            .map(|channel| channel.id);
        let changed = self.changes.iter().filter_map(|change| match change {
            Change::Channel(channel) => Some(channel.id),
            _ => None,
        });
        let mut channels = known.chain(changed).filter_map(|id| self.channel(id));
        channels.any(|channel| channel.name == *name && channel.serves(Some(project)))
    }

    /// Why a condition of these records is over.
    pub(crate) fn ended(&self, open: &Condition, now: Timestamp) -> Ended {
        let settled = self.last(|change| match change {
            Change::Condition(changed) if changed.id == open.id => Some(&changed.acknowledged),
            _ => None,
        });
        match settled {
            Some(Some(settled)) if open.acknowledged.as_ref() != Some(settled) => {
                Ended::Acknowledged(settled.clone())
            }
            _ if !self.exists(&open.subject) => Ended::Removed {
                label: self.world.label_of(&open.subject),
            },
            _ if open.problem.ends_at().is_some_and(|end| end <= now) => Ended::Expired,
            _ => Ended::Cured,
        }
    }

    /// False if the subject was removed, or is not used any more.
    pub(crate) fn exists(&self, subject: &Subject) -> bool {
        match subject {
            Subject::Scan { workflow, scan } => {
                let workflow = self.workflow(*workflow);
                workflow.is_some_and(|workflow| workflow.scan(scan).is_some())
            }
            Subject::Workflow { workflow } => self.workflow(*workflow).is_some(),
            Subject::Source { source } => self.source(source).is_some(),
            Subject::Project { project } => {
                let source = self.world.source_of(*project);
                source.is_none_or(|source| self.source(&source.name).is_some())
            }
            Subject::Runner { runner } => {
                let is_removed = |change: &Change| matches!(change, Change::RunnerRemoved(removed) if removed.id == *runner);
                self.world.runner(*runner).is_some() && !self.changes.iter().any(is_removed)
            }
            Subject::Token { token } => self.token(*token).is_some(),
            Subject::Channel { channel } => self.channel(*channel).is_some(),
            Subject::Instance => true,
        }
    }

    /// The names that the active workflows of a project use.
    fn names(&self, project: ProjectId) -> BTreeSet<Name> {
        let mut counts: BTreeMap<Name, i64> = self
            .world
            .names_used(project)
            .map(|(name, count)| (name.clone(), count as i64))
            .collect();
        let records = self.changes.iter().filter_map(Change::workflow);
        let changed: BTreeSet<WorkflowId> = records
            .filter(|record| record.project == project)
            .map(|record| record.id)
            .collect();
        for id in changed {
            let before = Self::of(self.world, &[]).workflow(id);
            for (workflow, by) in [(before, -1), (self.workflow(id), 1)] {
                let names = workflow
                    .iter()
                    .flat_map(|it| Name::all(&it.revision.definition));
                for name in names {
                    *counts.entry(name).or_default() += by;
                }
            }
        }
        counts.retain(|_, count| *count > 0);
        counts.into_keys().collect()
    }

    fn vars(&self, project: ProjectId) -> Option<&'a Arc<ProjectVars>> {
        let changed = self.last(|change| match change {
            Change::Vars(vars) if vars.project == project => Some(vars),
            _ => None,
        });
        changed.or_else(|| self.world.vars(project))
    }

    fn secrets(&self, project: ProjectId) -> Option<&'a Arc<ProjectSecrets>> {
        let changed = self.last(|change| match change {
            Change::Secrets(secrets) if secrets.project == project => Some(secrets),
            _ => None,
        });
        changed.or_else(|| self.world.secrets(project))
    }

    /// The project of a subject; none for the instance. `None` if the subject does not exist.
    pub(crate) fn project_of(&self, subject: &Subject) -> Option<Option<ProjectId>> {
        let of_workflow = |id: &WorkflowId| Some(self.world.workflow_record(*id)?.project);
        match subject {
            Subject::Scan { workflow, .. } | Subject::Workflow { workflow } => {
                let known = of_workflow(workflow);
                let new = || self.workflow(*workflow).map(|new| new.record.project);
                known.or_else(new).map(Some)
            }
            Subject::Source { source } => Some(Some(ProjectId::of_source(source))),
            Subject::Project { project } => Some(Some(*project)),
            Subject::Channel { channel } => {
                let known = self.world.channel(*channel).map(|channel| &**channel);
                Some(known.or_else(|| self.channel(*channel))?.project)
            }
            Subject::Runner { .. } | Subject::Token { .. } | Subject::Instance => Some(None),
        }
    }
}

/// The conditions of a subject that follow from records.
pub(crate) fn derived(after: &After<'_>, subject: &Subject) -> Vec<Derived> {
    match subject {
        Subject::Scan { workflow, scan } => of_scan(after, &ScanKey::new(*workflow, scan)),
        Subject::Workflow { workflow } => {
            let is_active = after.workflow(*workflow).is_some();
            let suspension = after.suspension(*workflow, None).filter(|_| is_active);
            suspension.into_iter().map(suspended).collect()
        }
        Subject::Source { source } => after.source(source).map_or_else(Vec::new, of_source),
        Subject::Token { token } => {
            let ends = after.token(*token).and_then(|token| token.expires_at);
            let expires = ends.map(|at| Derived {
                from: Some(at - TOKEN_EXPIRES_SOON),
                problem: Problem::TokenExpires { at },
            });
            expires.into_iter().collect()
        }
        Subject::Project { project } => {
            let mut found = missing(after, *project);
            found.extend(missing_channels(after, *project));
            found.extend(full_callbacks(after, *project));
            found
        }
        Subject::Channel { channel } => {
            let channel = after.channel(*channel);
            let failing = channel.and_then(|channel| {
                let reason = channel.failing.as_ref()?.reason.clone();
                Some(now(Problem::ChannelFailing {
                    channel: channel.name.clone(),
                    reason,
                }))
            });
            failing.into_iter().collect()
        }
        Subject::Runner { .. } | Subject::Instance => Vec::new(),
    }
}

/// The vars, secrets and callback servers that workflows use, but the project does not have.
fn missing(after: &After<'_>, project: ProjectId) -> Vec<Derived> {
    let (vars, secrets) = (after.vars(project), after.secrets(project));
    let callbacks = after.callbacks(project);
    let problem = |name| match name {
        Name::Var(name) => {
            let is_set = vars.is_some_and(|it| it.vars.contains_key(&name));
            (!is_set).then_some(Problem::MissingVar { name })
        }
        Name::Secret(name) => {
            let is_set = secrets.is_some_and(|it| it.secrets.contains_key(&name));
            (!is_set).then_some(Problem::MissingSecret { name })
        }
        Name::Callback(name) => {
            let is_there = callbacks.iter().any(|it| it.name == name);
            (!is_there).then_some(Problem::MissingCallback { name })
        }
    };
    let names = after.names(project).into_iter();
    names.filter_map(problem).map(now).collect()
}

/// The callback servers of a project that record nothing more.
fn full_callbacks(after: &After<'_>, project: ProjectId) -> impl Iterator<Item = Derived> {
    let callbacks = after.callbacks(project).into_iter();
    let full = callbacks.filter(|callback| callback.is_full());
    full.map(|callback| {
        now(Problem::CallbackFull {
            callback: callback.name.clone(),
        })
    })
}

/// The channels that rules name, but that neither the project has nor the instance offers to it.
fn missing_channels(after: &After<'_>, project: ProjectId) -> impl Iterator<Item = Derived> {
    let rules = after
        .rules(project)
        .into_iter()
        .flat_map(|rules| rules.all());
    let names: BTreeSet<&NotifyName> = rules.map(|rule| &rule.channel).collect();
    let missing = names
        .into_iter()
        .filter(move |name| !after.has_channel(project, name));
    missing.map(|name| {
        now(Problem::MissingChannel {
            name: name.to_string(),
        })
    })
}

/// The subjects of the scans of a workflow.
pub(crate) fn scans_of(workflow: &ActiveWorkflow) -> Vec<Subject> {
    let scans = workflow.revision.definition.scans();
    scans
        .map(|scan| Subject::from(&ScanKey::new(workflow.record.id, &scan.name)))
        .collect()
}

const fn now(problem: Problem) -> Derived {
    Derived {
        from: None,
        problem,
    }
}

fn suspended(suspension: &Suspension) -> Derived {
    now(Problem::Suspended {
        by: suspension.by.clone(),
        text: suspension.reason.clone(),
    })
}

fn seconds(time: TimeDelta) -> u64 {
    u64::try_from(time.num_seconds()).unwrap_or_default()
}

fn of_scan(after: &After<'_>, key: &ScanKey) -> Vec<Derived> {
    let Some(workflow) = after.workflow(key.workflow) else {
        return Vec::new();
    };
    let Some(scan) = workflow.scan(&key.scan) else {
        return Vec::new();
    };
    let head = after.head(key);
    let jobs = after.jobs(key);
    let mut found = Vec::new();
    let failing = head.and_then(|head| head.failing());
    found.extend(failing.map(|failing| {
        now(Problem::Failing {
            job: failing.job,
            failures: failing.failures,
            succeeded: head.and_then(|head| head.succeeded_at()),
            fine_since: head.and_then(|head| head.succeeded?.since),
        })
    }));
    if let Some(job) = jobs.iter().find(|job| job.hops.is_circle()) {
        found.push(now(Problem::Circle { job: job.id }));
    }
    let suspension = after.suspension(key.workflow, Some(&key.scan));
    found.extend(suspension.map(suspended));
    let since = workflow.record.armed.get(&key.scan);
    let since = since.and_then(|armed| armed.expected);
    expected(&scan.expect, since, head, &jobs, &mut found);
    found
}

/// The violated expectations, and when the others will be violated.
fn expected(
    expect: &Expect,
    since: Option<Timestamp>,
    head: Option<&Arc<ScanHead>>,
    jobs: &[&Arc<Job>],
    found: &mut Vec<Derived>,
) {
    let success = head.and_then(|head| head.succeeded.as_ref());
    let ended = success.map(|success| success.at);
    if let (Some(every), Some(since)) = (expect.success_every, ended.max(since)) {
        found.push(Derived {
            from: Some(since + every),
            problem: Problem::Overdue {
                every: seconds(every),
                since,
            },
        });
    }
    if let Some(within) = expect.starts_within {
        let waiting = jobs.iter().filter(|job| job.state == JobState::Scheduled);
        let first = waiting.min_by_key(|job| due(job));
        found.extend(first.map(|job| Derived {
            from: Some(due(job) + within),
            problem: Problem::Late {
                job: job.id,
                within: seconds(within),
            },
        }));
    }
    if let (Some(least), Some(success)) = (expect.at_least, success)
        && success.took < seconds(least)
    {
        found.push(now(Problem::TooShort {
            job: success.job,
            took: success.took,
            at_least: seconds(least),
        }));
    }
    if let Some(most) = expect.at_most {
        let at_most = seconds(most);
        let running = jobs
            .iter()
            .filter_map(|job| Some((job.state.run()?.started_at, job.id)));
        let long = success.filter(|success| success.took > at_most);
        let too_long = |from, job| Derived {
            from,
            problem: Problem::TooLong { job, at_most },
        };
        match (long, running.min()) {
            (Some(success), _) => found.push(too_long(None, success.job)),
            (None, Some((started, job))) => found.push(too_long(Some(started + most), job)),
            (None, None) => {}
        }
    }
}

/// When a waiting job should have started: its slot, its dispatch, or the end of the pause before a retry.
fn due(job: &Job) -> Timestamp {
    let slot = match job.reason {
        Reason::SlotDue { slot, .. } => slot,
        _ => job.created_at,
    };
    job.not_before.map_or(slot, |at| at.max(slot))
}

fn of_source(source: &Source) -> Vec<Derived> {
    // Each invalid file has a condition, and so has a held removal.
    let has_another = |reason: &Reason| {
        matches!(
            reason,
            Reason::FilesInvalid { .. }
                | Reason::TipPartlyActive { .. }
                | Reason::RemovalHeld { .. }
        )
    };
    let failing = source
        .conditions
        .iter()
        .find(|one| one.status == Status::False && !has_another(&one.reason));
    let failing = failing.map(|one| Problem::SourceFailing {
        reason: one.reason.clone(),
    });
    let mut reasons = source.conditions.iter().map(|one| &one.reason);
    let held = reasons.find(|reason| matches!(reason, Reason::RemovalHeld { .. }));
    let held = held.filter(|_| source.removal == Some(Removal::Held));
    let held = held.map(|reason| Problem::RemovalHeld {
        reason: reason.clone(),
    });
    let invalid = source.stale_files.iter().map(|stale| Problem::InvalidFile {
        file: stale.file.clone(),
        message: stale
            .diagnostics
            .first()
            .map(|first| format!("line {}: {}", first.line, first.message))
            .unwrap_or_default(),
    });
    failing
        .into_iter()
        .chain(held)
        .chain(invalid)
        .map(now)
        .collect()
}
