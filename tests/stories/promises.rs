//! What a daemon has told its clients, kept outside of its disk, and whether it is still true.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::path::Path;

use client::{Client, JobFilter};
use uuid::Uuid;
use wire::{Job, JobState};

use crate::load::{dispatch_tag, expected_log, register};
use crate::support::lines;

#[derive(Default)]
pub(crate) struct Promises {
    /// The furthest that each job was seen.
    jobs: BTreeMap<Uuid, Job>,
    /// The job that each request was answered with, if it was answered.
    tags: BTreeMap<String, Option<Uuid>>,
    /// Jobs seen since they were last compared.
    fresh: BTreeSet<Uuid>,
    register: Register,
    /// What was told: dispatches, numbers that were set, and jobs that went on.
    pub(crate) acknowledged: u64,
}

/// A number that only grows.
#[derive(Default)]
struct Register {
    attempted: u64,
    acknowledged: u64,
}

/// Something that is not as it was promised.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Finding {
    /// What was acknowledged is not there, or is back where it was.
    Lost(String),
    /// A change is there in parts.
    Torn(String),
    /// What may happen once has happened twice.
    Twice(String),
    /// A program did not behave.
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
            self.jobs.insert(job.id, job.clone());
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

    /// Jobs that everything is known of but their end.
    pub(crate) fn unfinished(&self) -> impl Iterator<Item = Uuid> {
        let jobs = self.jobs.values();
        jobs.filter(|job| !job.state.is_terminal())
            .map(|job| job.id)
    }

    /// Compares what was seen since the last time with what the daemon says now. Requests without an answer are
    /// repeated, as their clients would.
    pub(crate) async fn compare(&mut self, client: &Client) -> Result<Vec<Finding>, client::Error> {
        let mut findings = Vec::new();
        for id in std::mem::take(&mut self.fresh) {
            self.compare_job(client, id, &mut findings).await?;
        }
        let unanswered: Vec<String> = self
            .tags
            .iter()
            .filter(|(_, job)| job.is_none())
            .map(|(tag, _)| tag.clone())
            .collect();
        for tag in unanswered {
            let job = dispatch_tag(client, &tag).await?;
            self.answered(&tag, &job);
        }
        let number = register(client).await?.unwrap_or_default();
        let Register {
            attempted,
            acknowledged,
        } = self.register;
        if !(acknowledged..=attempted).contains(&number) {
            findings.push(Finding::Lost(format!(
                "the register is {number}; {acknowledged} was acknowledged, {attempted} attempted"
            )));
        }
        self.set(number);
        Ok(findings)
    }

    /// The same for everything that was ever seen, and for what only the whole tells.
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
        let mut tags = BTreeSet::new();
        let mut cursor = None;
        loop {
            let page = client.jobs(&filter, Some(200), cursor.as_deref()).await?;
            for job in &page.items {
                let wire::Input::Text(tag) = &job.inputs["tag"] else {
                    continue;
                };
                if !tags.insert(tag.clone()) {
                    findings.push(Finding::Twice(format!("the request of job {}", job.id)));
                }
            }
            cursor = page.next_cursor;
            if cursor.is_none() {
                break;
            }
        }
        let unlisted = self.tags.keys().filter(|tag| !tags.contains(*tag));
        findings.extend(unlisted.map(|tag| Finding::Lost(format!("request {tag} in the list"))));
        Ok(findings)
    }

    async fn compare_job(
        &mut self,
        client: &Client,
        id: Uuid,
        findings: &mut Vec<Finding>,
    ) -> Result<(), client::Error> {
        let promised = &self.jobs[&id];
        let job = match client.job(id).await {
            Ok(job) => job,
            Err(error) if error.status() == Some(404) => {
                let state = promised.state;
                findings.push(Finding::Lost(format!("job {id}, which was {state:?}")));
                return Ok(());
            }
            Err(error) if error.status().is_some() => {
                findings.push(Finding::Torn(format!("job {id}: {error}")));
                return Ok(());
            }
            Err(error) => return Err(error),
        };
        let (was, is) = (promised.state, job.state);
        let changes = changes(promised, &job);
        if rank(is) < rank(was) || (was.is_terminal() && !changes.is_empty()) {
            findings.push(Finding::Lost(format!("job {id}, {was:?}: {changes:?}")));
        } else if promised.started_at.is_some() && promised.started_at != job.started_at {
            findings.push(Finding::Twice(format!("the claim of job {id}")));
        }
        if is == JobState::Succeeded {
            compare_log(client, &job, findings).await?;
            compare_artifacts(client, &job, findings).await?;
        }
        self.saw(&job);
        self.fresh.remove(&id);
        Ok(())
    }

    /// Compares the file that steps write to with what their jobs became.
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

/// States only get further.
const fn rank(state: JobState) -> u8 {
    match state {
        JobState::Scheduled => 0,
        JobState::Running => 1,
        JobState::Succeeded | JobState::Failed | JobState::Cancelled | JobState::Skipped => 2,
    }
}

/// What is different about a job. One that is cancelled still takes what its steps have to say.
fn changes(was: &Job, is: &Job) -> Vec<String> {
    let (was, is) = (
        serde_json::to_value(was).unwrap(),
        serde_json::to_value(is).unwrap(),
    );
    let members = was.as_object().unwrap().iter();
    members
        .filter(|(member, _)| {
            was["state"] != "cancelled" || !["steps", "log"].contains(&&***member)
        })
        .filter(|(member, value)| is.get(member) != Some(value))
        .map(|(member, value)| format!("{member}: {value} → {}", is[member]))
        .collect()
}

async fn compare_log(
    client: &Client,
    job: &Job,
    findings: &mut Vec<Finding>,
) -> Result<(), client::Error> {
    let mut log = client.logs(job.id, 0, false);
    let mut found = Vec::new();
    while let Some(record) = log.next_record().await? {
        found.push(record.record.text);
    }
    if found != expected_log(job) {
        findings.push(Finding::Torn(format!(
            "the log of job {} has {} records: {found:?}",
            job.id,
            found.len()
        )));
    }
    Ok(())
}

async fn compare_artifacts(
    client: &Client,
    job: &Job,
    findings: &mut Vec<Finding>,
) -> Result<(), client::Error> {
    let names: Vec<&str> = job.artifacts.iter().map(|found| &*found.name).collect();
    let expected: &[&str] = match job.scan.as_str() {
        "count" => &["numbers"],
        _ => &[],
    };
    if names != expected {
        findings.push(Finding::Torn(format!("job {} has {names:?}", job.id)));
    }
    for artifact in &job.artifacts {
        let mut content = Vec::new();
        match client.download_artifact(job.id, &artifact.name).await {
            Ok(mut download) => {
                while let Some(piece) = download.piece().await? {
                    content.extend_from_slice(&piece);
                }
            }
            // Gone or unreadable, so that its digest is another one.
            Err(error) if error.status().is_some() => {}
            Err(error) => return Err(error),
        }
        let digest = workflow::sha256(&content);
        if digest != artifact.sha256 {
            findings.push(Finding::Torn(format!(
                "artifact {} of job {} has {} bytes of {}, digest {digest}",
                artifact.name,
                job.id,
                content.len(),
                artifact.size
            )));
        }
    }
    Ok(())
}
