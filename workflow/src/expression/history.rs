//! Scans, their jobs and their artifacts as values of CEL. Members are created when they are read, so that an
//! expression pays only for what it reads.

use std::any::Any;
use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;

use cel_interpreter::common::traits::{self, Indexer, Iterable, Sizer};
use cel_interpreter::common::types::{
    CelBool, CelInt, CelMap, CelMapKey, CelNull, CelString, CelTimestamp, STRING_TYPE, Type,
};
use cel_interpreter::common::value::{CowVal, StaticVal, Val};
use cel_interpreter::{DeclarationError, Env, ExecutionError};
use chrono::{DateTime, Utc};

use super::absent::Absent;
use super::reads::Recorder;
use crate::context::{ArtifactSummary, JobSummary, ScanHistory};
use crate::limits::HISTORY_JOBS;
use crate::outputs::Outputs;

static SCANS_TYPE: Type = Type::new_unspecified_type("scans");
static HISTORY_TYPE: Type = Type::new_unspecified_type("scan");
pub(super) static JOB_TYPE: Type = Type::new_unspecified_type("job");

/// `scans`, in order of name.
#[derive(Debug, Clone)]
pub(super) struct Scans(Vec<History>);

/// `scans.X`.
#[derive(Debug, Clone)]
pub(super) struct History(Arc<Parts>);

#[derive(Debug)]
struct Parts {
    name: String,
    /// The scan without its jobs, which are separate.
    summary: ScanHistory,
    jobs: Vec<Job>,
    recorder: Recorder,
}

/// `scans.X[i]`.
#[derive(Debug, Clone)]
pub(super) struct Job(Arc<JobSummary>);

impl Scans {
    pub(super) fn new(scans: BTreeMap<String, ScanHistory>, recorder: &Recorder) -> Self {
        let history = |(name, mut summary): (String, ScanHistory)| {
            let jobs = std::mem::take(&mut summary.jobs).into_iter();
            History(Arc::new(Parts {
                name,
                summary,
                jobs: jobs.map(|job| Job(Arc::new(job))).collect(),
                recorder: recorder.clone(),
            }))
        };
        Self(scans.into_iter().map(history).collect())
    }

    fn find(&self, name: &str) -> Option<&History> {
        let by_name = |history: &History| history.0.name.as_str().cmp(name);
        let at = self.0.binary_search_by(by_name).ok()?;
        self.0.get(at)
    }
}

impl History {
    /// Records that the processed job was compared.
    fn note_processed(&self) {
        if let Some(processed) = self.0.summary.processed() {
            self.0.recorder.job(self.name(), &processed.id);
        }
    }

    pub(super) fn jobs(&self) -> &[Job] {
        &self.0.jobs
    }

    fn name(&self) -> &str {
        &self.0.name
    }

    /// Records that the newest successes were compared.
    fn note_successes(&self, count: usize) {
        for job in self.0.summary.newest_success_ids.iter().take(count) {
            self.0.recorder.job(self.name(), job);
        }
    }
}

impl Job {
    pub(super) fn summary(&self) -> &JobSummary {
        &self.0
    }

    fn member(&self, name: &str) -> Option<CowVal<'static, 'static>> {
        let job = &self.0;
        Some(match name {
            "id" => text(&job.id),
            "state" => text(&job.state),
            "trigger" => text(&job.trigger),
            "revision" => text(&job.revision),
            "created_at" => time(Some(job.created_at)),
            "started_at" => time(job.started_at),
            "finished_at" => time(job.finished_at),
            "artifacts" => map(job
                .artifacts
                .iter()
                .map(|(name, artifact)| (name.as_str(), artifact_value(artifact)))),
            "outputs" => outputs(&job.outputs),
            _ => return None,
        })
    }
}

/// Declares the functions of histories.
pub(super) fn declare(env: &mut Env) -> Result<(), DeclarationError> {
    let history = || HISTORY_TYPE.to_owned();
    env.add_member_overload(
        "is_available",
        "scan_is_available",
        history(),
        vec![],
        is_available,
    )?;
    env.add_member_overload("has_diff", "scan_has_diff", history(), vec![], has_diff)?;
    env.add_member_overload(
        "has_diff",
        "scan_has_diff_string",
        history(),
        vec![STRING_TYPE],
        has_diff,
    )?;
    env.add_member_overload("has_news", "scan_has_news", history(), vec![], has_news)?;
    env.add_member_overload(
        "has_news",
        "scan_has_news_string",
        history(),
        vec![STRING_TYPE],
        has_news,
    )?;
    env.add_member_overload(
        "last_success",
        "scan_last_success",
        history(),
        vec![],
        last_success,
    )?;
    env.add_member_overload("processed", "scan_processed", history(), vec![], processed)?;
    env.add_member_overload(
        "has_failed",
        "scan_has_failed",
        history(),
        vec![],
        has_failed,
    )?;
    env.add_member_overload("size", "scan_size", history(), vec![], size)?;
    env.add_overload("size", "size_scan", vec![history()], size)
}

fn receiver<'a, 'v>(
    method: &str,
    arguments: &'a [CowVal<'_, 'v>],
) -> Result<&'a History, ExecutionError> {
    arguments
        .first()
        .and_then(|value| value.downcast_ref::<History>())
        .ok_or_else(|| ExecutionError::function_error(method, "not a scan"))
}

fn is_available<'b, 'v>(arguments: Vec<CowVal<'b, 'v>>) -> Result<CowVal<'b, 'v>, ExecutionError> {
    let history = receiver("is_available", &arguments)?;
    history.note_successes(1);
    Ok(CowVal::owned(CelBool::from(history.0.summary.available)))
}

fn has_diff<'b, 'v>(arguments: Vec<CowVal<'b, 'v>>) -> Result<CowVal<'b, 'v>, ExecutionError> {
    let history = receiver("has_diff", &arguments)?;
    history.note_successes(2);
    let artifact = arguments
        .get(1)
        .and_then(|value| value.downcast_ref::<CelString<'_>>());
    Ok(CowVal::owned(CelBool::from(
        history.0.summary.has_diff(artifact.map(CelString::inner)),
    )))
}

fn has_news<'b, 'v>(arguments: Vec<CowVal<'b, 'v>>) -> Result<CowVal<'b, 'v>, ExecutionError> {
    let history = receiver("has_news", &arguments)?;
    history.note_successes(1);
    history.note_processed();
    let artifact = arguments
        .get(1)
        .and_then(|value| value.downcast_ref::<CelString<'_>>());
    Ok(CowVal::owned(CelBool::from(
        history.0.summary.has_news(artifact.map(CelString::inner)),
    )))
}

fn last_success<'b, 'v>(arguments: Vec<CowVal<'b, 'v>>) -> Result<CowVal<'b, 'v>, ExecutionError> {
    let history = receiver("last_success", &arguments)?;
    let summaries = history.jobs().iter().map(Job::summary);
    let place = history.0.summary.place_of_success(summaries);
    let Some(job) = place.and_then(|at| history.jobs().get(at)) else {
        let message = format!("scan {} has no success yet", history.name());
        return Ok(CowVal::owned(Absent::new(&message)));
    };
    history.0.recorder.job(history.name(), &job.0.id);
    Ok(CowVal::owned(job.clone()))
}

fn processed<'b, 'v>(arguments: Vec<CowVal<'b, 'v>>) -> Result<CowVal<'b, 'v>, ExecutionError> {
    let history = receiver("processed", &arguments)?;
    let Some(processed) = history.0.summary.processed() else {
        let message = format!(
            "no success of scan {} has been processed yet",
            history.name()
        );
        return Ok(CowVal::owned(Absent::new(&message)));
    };
    history.note_processed();
    let artifact = |digest: &str| map(std::iter::once(("checksum", text(digest))));
    let artifacts = processed.artifacts.iter();
    let artifacts = artifacts.map(|(name, digest)| (name.as_str(), artifact(digest)));
    Ok(map([
        ("id", text(&processed.id)),
        ("artifacts", map(artifacts)),
    ]
    .into_iter()))
}

fn has_failed<'b, 'v>(arguments: Vec<CowVal<'b, 'v>>) -> Result<CowVal<'b, 'v>, ExecutionError> {
    let history = receiver("has_failed", &arguments)?;
    Ok(CowVal::owned(CelBool::from(history.0.summary.failed)))
}

fn size<'b, 'v>(arguments: Vec<CowVal<'b, 'v>>) -> Result<CowVal<'b, 'v>, ExecutionError> {
    Ok(CowVal::owned(receiver("size", &arguments)?.size()))
}

impl Val for Scans {
    fn get_type(&self) -> &Type {
        &SCANS_TYPE
    }

    fn cel_type() -> &'static Type {
        &SCANS_TYPE
    }

    fn as_indexer<'b, 'v>(&'b self) -> Option<&'b (dyn Indexer + 'v)>
    where
        Self: 'v,
    {
        Some(self)
    }

    fn as_container(&self) -> Option<&dyn traits::Container> {
        Some(self)
    }

    fn clone_as_boxed<'v>(&self) -> Box<dyn Val + 'v> {
        Box::new(self.clone())
    }

    fn as_any(&self) -> Option<&dyn Any> {
        Some(self)
    }
}

impl StaticVal for Scans {}

impl Indexer for Scans {
    fn get<'b, 'v>(&'b self, index: &dyn Val) -> Result<CowVal<'b, 'v>, ExecutionError>
    where
        Self: 'v,
    {
        let name = name_of(index, "scan")?;
        let history = self
            .find(name)
            .ok_or_else(|| ExecutionError::no_such_key(&format!("scans.{name}")))?;
        history.0.recorder.scan(name);
        Ok(CowVal::Borrowed(history))
    }

    fn steal<'v>(self: Box<Self>, index: &dyn Val) -> Result<Box<dyn Val + 'v>, ExecutionError>
    where
        Self: 'v,
    {
        Ok(self.get(index)?.into_owned())
    }
}

impl traits::Container for Scans {
    fn contains(&self, value: &dyn Val) -> Result<bool, ExecutionError> {
        Ok(self.find(name_of(value, "scan")?).is_some())
    }
}

impl Val for History {
    fn get_type(&self) -> &Type {
        &HISTORY_TYPE
    }

    fn cel_type() -> &'static Type {
        &HISTORY_TYPE
    }

    fn as_indexer<'b, 'v>(&'b self) -> Option<&'b (dyn Indexer + 'v)>
    where
        Self: 'v,
    {
        Some(self)
    }

    fn as_iterable<'b, 'v>(&'b self) -> Option<&'b (dyn Iterable + 'v)>
    where
        Self: 'v,
    {
        Some(self)
    }

    fn as_sizer(&self) -> Option<&dyn Sizer> {
        Some(self)
    }

    fn equals(&self, other: &dyn Val) -> bool {
        other
            .downcast_ref::<Self>()
            .is_some_and(|other| self.name() == other.name())
    }

    fn clone_as_boxed<'v>(&self) -> Box<dyn Val + 'v> {
        Box::new(self.clone())
    }

    fn as_any(&self) -> Option<&dyn Any> {
        Some(self)
    }
}

impl StaticVal for History {}

impl Sizer for History {
    fn size(&self) -> CelInt {
        CelInt::from(i64::try_from(self.0.summary.size).unwrap_or(i64::MAX))
    }
}

impl Indexer for History {
    /// Positions count all retained jobs; only the newest can be read.
    fn get<'b, 'v>(&'b self, index: &dyn Val) -> Result<CowVal<'b, 'v>, ExecutionError>
    where
        Self: 'v,
    {
        let position = index
            .downcast_ref::<CelInt>()
            .map(|position| *position.inner())
            .ok_or_else(|| {
                ExecutionError::function_error(
                    self.name(),
                    format!(
                        "a job is read by its position, not by {}",
                        index.get_type().name()
                    ),
                )
            })?;
        let size = self.0.summary.size;
        let beyond = || {
            let there = match size {
                0 => "there is no job".to_owned(),
                1 => "there is 1 job".to_owned(),
                more => format!("there are {more} jobs"),
            };
            format!("scans.{}[{position}]: {there}", self.name())
        };
        let at = u64::try_from(position)
            .map_err(|_| ExecutionError::function_error(self.name(), beyond()))?;
        if at >= size {
            return Err(ExecutionError::function_error(self.name(), beyond()));
        }
        usize::try_from(at)
            .ok()
            .filter(|at| *at < HISTORY_JOBS)
            .and_then(|at| self.jobs().get(at))
            .map_or_else(
                || {
                    let message = format!(
                        "scans.{}[{position}]: only the newest {HISTORY_JOBS} jobs can be read",
                        self.name()
                    );
                    Err(ExecutionError::function_error(self.name(), message))
                },
                |job| {
                    self.0.recorder.job(self.name(), &job.0.id);
                    Ok(CowVal::Borrowed(job))
                },
            )
    }

    fn steal<'v>(self: Box<Self>, index: &dyn Val) -> Result<Box<dyn Val + 'v>, ExecutionError>
    where
        Self: 'v,
    {
        Ok(self.get(index)?.into_owned())
    }
}

impl Iterable for History {
    fn iter<'b, 'v>(&'b self) -> Box<dyn traits::Iterator<'b, 'v> + 'b>
    where
        Self: 'v,
    {
        Box::new(Jobs {
            history: self,
            rest: self.jobs().iter(),
        })
    }
}

struct Jobs<'b> {
    history: &'b History,
    rest: std::slice::Iter<'b, Job>,
}

impl<'b, 'v> traits::Iterator<'b, 'v> for Jobs<'b> {
    fn next(&mut self) -> Option<&'b (dyn Val + 'v)> {
        let job = self.rest.next()?;
        let history = self.history;
        history.0.recorder.job(history.name(), &job.0.id);
        Some(job)
    }
}

impl Val for Job {
    fn get_type(&self) -> &Type {
        &JOB_TYPE
    }

    fn cel_type() -> &'static Type {
        &JOB_TYPE
    }

    fn as_indexer<'b, 'v>(&'b self) -> Option<&'b (dyn Indexer + 'v)>
    where
        Self: 'v,
    {
        Some(self)
    }

    fn into_indexer<'v>(self: Box<Self>) -> Option<Box<dyn Indexer + 'v>>
    where
        Self: 'v,
    {
        Some(self)
    }

    fn equals(&self, other: &dyn Val) -> bool {
        other
            .downcast_ref::<Self>()
            .is_some_and(|other| self.0.id == other.0.id)
    }

    fn clone_as_boxed<'v>(&self) -> Box<dyn Val + 'v> {
        Box::new(self.clone())
    }

    fn as_any(&self) -> Option<&dyn Any> {
        Some(self)
    }
}

impl StaticVal for Job {}

impl Indexer for Job {
    fn get<'b, 'v>(&'b self, index: &dyn Val) -> Result<CowVal<'b, 'v>, ExecutionError>
    where
        Self: 'v,
    {
        let name = name_of(index, "member of a job")?;
        let value: CowVal<'b, 'v> = match self.member(name) {
            Some(CowVal::Owned(value)) => CowVal::Owned(value),
            Some(CowVal::Borrowed(value)) => CowVal::Borrowed(value),
            None => return Err(ExecutionError::no_such_key(name)),
        };
        Ok(value)
    }

    fn steal<'v>(self: Box<Self>, index: &dyn Val) -> Result<Box<dyn Val + 'v>, ExecutionError>
    where
        Self: 'v,
    {
        Ok(self.get(index)?.into_owned())
    }
}

/// The text of an index.
pub(super) fn name_of<'a>(index: &'a dyn Val, what: &str) -> Result<&'a str, ExecutionError> {
    index
        .downcast_ref::<CelString<'_>>()
        .map(CelString::inner)
        .ok_or_else(|| {
            ExecutionError::function_error(
                what,
                format!(
                    "a {what} is read by its name, not by {}",
                    index.get_type().name()
                ),
            )
        })
}

fn artifact_value(artifact: &ArtifactSummary) -> CowVal<'static, 'static> {
    let size = CelInt::from(i64::try_from(artifact.size).unwrap_or(i64::MAX));
    map([
        ("checksum", text(&artifact.checksum)),
        ("size", CowVal::owned(size)),
    ]
    .into_iter())
}

/// Outputs by key.
pub(super) fn outputs(outputs: &Outputs) -> CowVal<'static, 'static> {
    map(outputs
        .iter()
        .map(|(key, value)| (key.as_str(), text(value))))
}

pub(super) fn map<'a>(
    entries: impl Iterator<Item = (&'a str, CowVal<'static, 'static>)>,
) -> CowVal<'static, 'static> {
    let entries: HashMap<CelMapKey<'static>, Box<dyn Val>> = entries
        .map(|(name, value)| (CelMapKey::from(name.to_owned()), value.into_owned()))
        .collect();
    CowVal::owned(CelMap::from(entries))
}

fn text(text: &str) -> CowVal<'static, 'static> {
    CowVal::owned(CelString::from(text.to_owned()))
}

fn time(time: Option<DateTime<Utc>>) -> CowVal<'static, 'static> {
    match time {
        Some(time) => CowVal::owned(CelTimestamp::from(time.fixed_offset())),
        None => CowVal::owned(CelNull),
    }
}
