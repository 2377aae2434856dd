//! Records the responses of a daemon outside of its disk, and checks whether they are still true.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::path::Path;

use client::{Client, JobFilter};
use uuid::Uuid;
use wire::{ErrorCode, Job, JobState};

use crate::contents;
use crate::copies::Copies;
use crate::load::{dispatch_tag, register};
use crate::removals::{Deletion, Removals};
use crate::support::lines;

#[derive(Default)]
pub(crate) struct Promises {
    /// The latest known state of each job.
    jobs: BTreeMap<Uuid, Job>,
    /// The job of each request with a response.
    tags: BTreeMap<String, Option<Uuid>>,
    /// Jobs seen since they were last compared.
    fresh: BTreeSet<Uuid>,
    /// Jobs that were unfinished when last seen.
    unfinished: BTreeSet<Uuid>,
    register: Register,
    pub(crate) removals: Removals,
    pub(crate) copies: Copies,
    /// The number of promises: dispatches, numbers set, changes of jobs, and deletions.
    pub(crate) acknowledged: u64,
}

/// A number that only grows.
#[derive(Default)]
struct Register {
    attempted: u64,
    acknowledged: u64,
}

/// A broken promise.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Finding {
    /// An acknowledged change is missing, or a record is back in an earlier state.
    Lost(String),
    /// Only a part of a change exists.
    Torn(String),
    /// An event that may happen only once has happened twice.
    Twice(String),
    /// A program behaved wrongly.
    Wrong(String),
}

impl fmt::Display for Finding {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Lost(what) => write!(f, "lost: {what}"),
            Self::Torn(what) => write!(f, "torn: {what}"),
            Self::Twice(what) => write!(f, "twice: {what}"),
            Self::Wrong(what) => write!(f, "wrong: {what}"),
        }
    }
}

impl Promises {
    pub(crate) fn asked(&mut self, tag: &str) {
        self.tags.insert(tag.to_owned(), None);
    }

    pub(crate) fn answered(&mut self, tag: &str, job: &Job) {
        self.tags.insert(tag.to_owned(), Some(job.id));
        self.saw(job);
    }

    pub(crate) fn saw(&mut self, job: &Job) {
        let known = self.jobs.get(&job.id);
        if known.is_none_or(|known| rank(job.state) > rank(known.state)) {
            self.acknowledged += 1;
            self.fresh.insert(job.id);
            if job.state.is_terminal() {
                self.unfinished.remove(&job.id);
            } else {
                self.unfinished.insert(job.id);
            }
            self.jobs.insert(job.id, job.clone());
        }
    }

    /// The latest known state of each job.
    pub(crate) fn states(&self) -> BTreeMap<Uuid, JobState> {
        let jobs = self.jobs.values();
        let there = jobs.filter(|job| !self.removals.is_gone(job.id));
        there.map(|job| (job.id, job.state)).collect()
    }

    /// Chooses a job or artifact to delete.
    pub(crate) fn choose_deletion(&mut self) -> Option<Deletion> {
        self.removals.choose(self.jobs.values().rev())
    }

    /// A job was removed, and must not come back.
    pub(crate) fn saw_gone(&mut self, job: Uuid) {
        if self.removals.saw_gone(job) {
            self.acknowledged += 1;
            self.fresh.insert(job);
            self.unfinished.remove(&job);
        }
    }

    /// The artifacts of a job were removed, and must not come back.
    pub(crate) fn note_artifacts_removed(&mut self, job: Uuid) {
        if self.removals.note_artifacts_removed(job) {
            self.acknowledged += 1;
            self.fresh.insert(job);
        }
    }

    /// The next number to set.
    pub(crate) fn setting(&mut self) -> u64 {
        self.register.attempted += 1;
        self.register.attempted
    }

    /// The last number that was set.
    pub(crate) fn number(&self) -> u64 {
        self.register.acknowledged
    }

    pub(crate) fn set(&mut self, number: u64) {
        if number > self.register.acknowledged {
            self.acknowledged += 1;
            self.register.acknowledged = number;
        }
    }

    /// Unfinished jobs.
    pub(crate) const fn unfinished(&self) -> &BTreeSet<Uuid> {
        &self.unfinished
    }

    /// Compares the jobs that were seen since the last comparison, or were unfinished then, with
    /// the daemon's present responses. Repeats requests without a response, as a client would.
    pub(crate) async fn compare(&mut self, client: &Client) -> Result<Vec<Finding>, client::Error> {
        let mut findings = Vec::new();
        let fresh = std::mem::take(&mut self.fresh);
        for id in fresh.union(&self.unfinished.clone()).copied() {
            self.compare_job(client, id, &mut findings).await?;
        }
        let unanswered: Vec<String> = self
            .tags
            .iter()
            .filter(|(_, job)| job.is_none())
            .map(|(tag, _)| tag.clone())
            .collect();
        for tag in unanswered {
            match dispatch_tag(client, &tag).await {
                Ok(job) => self.answered(&tag, &job),
                // Its job has ended and was already removed.
                Err(error) if error.code() == Some(ErrorCode::JobOver) => {
                    self.tags.remove(&tag);
                }
                Err(error) => return Err(error),
            }
        }
        let number = register(client).await?.unwrap_or_default();
        let Register {
            attempted,
            acknowledged,
        } = self.register;
        if !(acknowledged..=attempted).contains(&number) {
            findings.push(Finding::Lost(format!(
                "the register is {number}, acknowledged was {acknowledged}, attempted {attempted}"
            )));
        }
        self.set(number);
        Ok(findings)
    }

    /// Compares all jobs ever seen, and the complete lists.
    pub(crate) async fn compare_all(
        &mut self,
        client: &Client,
    ) -> Result<Vec<Finding>, client::Error> {
        self.fresh = self.jobs.keys().copied().collect();
        let mut findings = self.compare(client).await?;
        let filter = JobFilter {
            scan: Some("count".to_owned()),
            ..JobFilter::default()
        };
        let mut tags = BTreeMap::new();
        let mut cursor = None;
        loop {
            let page = match client.jobs(&filter, Some(200), cursor.as_deref()).await {
                // A page with a job that is being removed may also give an error.
                Err(error) if error.status() == Some(500) => {
                    client.jobs(&filter, Some(200), cursor.as_deref()).await?
                }
                page => page?,
            };
            for job in &page.items {
                let wire::Input::Text(tag) = &job.inputs["tag"] else {
                    continue;
                };
                if tags.insert(tag.clone(), job.id).is_some() {
                    findings.push(Finding::Twice(format!("the request of job {}", job.id)));
                }
            }
            cursor = page.next_cursor;
            if cursor.is_none() {
                break;
            }
        }
        let asked: Vec<(String, Uuid)> = self
            .tags
            .iter()
            .filter_map(|(tag, job)| Some((tag.clone(), (*job)?)))
            .filter(|(tag, job)| !self.removals.is_gone(*job) && tags.get(tag) != Some(job))
            .collect();
        for (tag, job) in asked {
            // Either retention removed it meanwhile, or it should be in the list.
            if is_missing(client, job).await? {
                self.saw_gone(job);
            } else {
                findings.push(Finding::Lost(format!("request {tag} in the list")));
            }
        }
        Ok(findings)
    }

    async fn compare_job(
        &mut self,
        client: &Client,
        id: Uuid,
        findings: &mut Vec<Finding>,
    ) -> Result<(), client::Error> {
        let job = match client.job(id).await {
            Ok(job) => job,
            // A job that is removed while it is read may give an error once.
            Err(error) if error.status().is_some() => {
                if error.status() == Some(404) || is_missing(client, id).await? {
                    self.saw_gone(id);
                    self.fresh.remove(&id);
                } else {
                    findings.push(Finding::Torn(format!("job {id}: {error}")));
                }
                return Ok(());
            }
            Err(error) => return Err(error),
        };
        if self.removals.is_gone(id) {
            findings.push(Finding::Lost(format!("the removal of job {id}")));
            return Ok(());
        }
        if job.state == JobState::Succeeded {
            let mut torn = contents::compare(client, &job).await?;
            if !torn.is_empty() && is_missing(client, id).await? {
                // Retention removed it meanwhile.
                self.saw_gone(id);
                self.fresh.remove(&id);
                return Ok(());
            }
            findings.append(&mut torn);
        }
        let promised = &self.jobs[&id];
        let (was, is) = (promised.state, job.state);
        let changes = changes(promised, &job);
        if rank(is) < rank(was) || (was.is_terminal() && !changes.is_empty()) {
            findings.push(Finding::Lost(format!("job {id}, {was:?}: {changes:?}")));
        } else if promised.started_at.is_some() && promised.started_at != job.started_at {
            findings.push(Finding::Twice(format!("the claim of job {id}")));
        }
        findings.extend(self.removals.compare_artifacts(&job));
        self.saw(&job);
        self.fresh.remove(&id);
        Ok(())
    }

    /// Compares the file to which steps write with the states of their jobs.
    pub(crate) fn compare_executions(&self, ran: &Path) -> Vec<Finding> {
        let mut times: BTreeMap<String, usize> = BTreeMap::new();
        for job in lines(ran) {
            *times.entry(job).or_default() += 1;
        }
        let twice = times.iter().filter(|(_, times)| **times > 1);
        let twice =
            twice.map(|(job, times)| Finding::Twice(format!("job {job} ran {times} times")));
        let succeeded = self.jobs.values();
        let succeeded = succeeded.filter(|job| job.state == JobState::Succeeded);
        let unran = succeeded.filter(|job| !times.contains_key(&job.id.to_string()));
        let unran =
            unran.map(|job| Finding::Torn(format!("job {} succeeded and never ran", job.id)));
        twice.chain(unran).collect()
    }
}

/// The order of states: a job only moves to a higher rank.
const fn rank(state: JobState) -> u8 {
    match state {
        JobState::Scheduled => 0,
        JobState::Running => 1,
        JobState::Succeeded | JobState::Failed | JobState::Cancelled | JobState::Skipped => 2,
    }
}

async fn is_missing(client: &Client, job: Uuid) -> Result<bool, client::Error> {
    match client.job(job).await {
        Ok(_) => Ok(false),
        Err(error) => match error.status() {
            Some(status) => Ok(status == 404),
            None => Err(error),
        },
    }
}

/// The differences of a job, except for removed artifacts. The steps of a cancelled job may still change.
fn changes(was: &Job, is: &Job) -> Vec<String> {
    let value = |job: &Job| {
        let mut job = job.clone();
        job.artifacts.iter_mut().for_each(|it| it.removed = None);
        serde_json::to_value(job).unwrap()
    };
    let (was, is) = (value(was), value(is));
    let members = was.as_object().unwrap().iter();
    members
        .filter(|(member, _)| {
            was["state"] != "cancelled" || !["steps", "log"].contains(&&***member)
        })
        .filter(|(member, value)| is.get(member) != Some(value))
        .map(|(member, value)| format!("{member}: {value} → {}", is[member]))
        .collect()
}
