//! Scans, their jobs and their artifacts as values of CEL. Members are created when they are read, so an expression pays only for
//! the members that it reads.

mod functions;

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;

use cel_interpreter::ExecutionError;
use cel_interpreter::common::traits::{self, Iterable, Sizer};
use cel_interpreter::common::types::{
    CelInt, CelMap, CelMapKey, CelNull, CelString, CelTimestamp, Type,
};
use cel_interpreter::common::value::{CowVal, Val};
use chrono::{DateTime, Utc};

use super::cel_value::cel_value;
use super::reads::Recorder;
use crate::context::{ArtifactSummary, JobSummary, ScanHistory};
use crate::limits::HISTORY_JOBS;
use crate::outputs::Outputs;

pub(super) use functions::declare;

static SCANS_TYPE: Type = Type::new_unspecified_type("scans");
static HISTORY_TYPE: Type = Type::new_unspecified_type("scan");
pub(super) static JOB_TYPE: Type = Type::new_unspecified_type("job");

/// `scans`, sorted by name.
#[derive(Debug, Clone)]
pub(super) struct Scans(Vec<History>);

/// `scans.X`.
#[derive(Debug, Clone)]
pub(super) struct History(Arc<Parts>);

#[derive(Debug)]
struct Parts {
    name: String,
    /// The scan without its jobs, which are stored separately.
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

    fn at<'b, 'v>(&'b self, index: &dyn Val) -> Result<CowVal<'b, 'v>, ExecutionError> {
        let name = name_of(index, "scan")?;
        let history = self
            .find(name)
            .ok_or_else(|| ExecutionError::no_such_key(&format!("scans.{name}")))?;
        history.0.recorder.scan(name);
        Ok(CowVal::Borrowed(history))
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

    /// Records that a job is read.
    fn note_job(&self, job: &Job) {
        self.0.recorder.job(self.name(), &job.0.id);
    }

    /// Positions count all retained jobs, but only the newest jobs can be read.
    fn at<'b, 'v>(&'b self, index: &dyn Val) -> Result<CowVal<'b, 'v>, ExecutionError> {
        let failed = |message: String| ExecutionError::function_error(self.name(), message);
        let Some(position) = index.downcast_ref::<CelInt>() else {
            let kind = index.get_type().name();
            return Err(failed(format!(
                "a job is read by its position, not by {kind}"
            )));
        };
        let place = format!("scans.{}[{}]", self.name(), position.inner());
        let size = self.0.summary.size;
        let at = u64::try_from(*position.inner()).ok();
        let Some(at) = at.filter(|at| *at < size) else {
            return Err(failed(match size {
                0 => format!("{place}: there is no job"),
                1 => format!("{place}: there is 1 job"),
                more => format!("{place}: there are {more} jobs"),
            }));
        };
        let newest = self.jobs().iter().take(HISTORY_JOBS);
        let Some((job, _)) = newest.zip(0..).find(|(_, place)| *place == at) else {
            return Err(failed(format!(
                "{place}: only the newest {HISTORY_JOBS} jobs can be read"
            )));
        };
        self.note_job(job);
        Ok(CowVal::Borrowed(job))
    }
}

impl Job {
    fn at<'b, 'v>(&'b self, index: &dyn Val) -> Result<CowVal<'b, 'v>, ExecutionError> {
        let name = name_of(index, "member of a job")?;
        let value = self.member(name);
        let value = value.ok_or_else(|| ExecutionError::no_such_key(name))?;
        Ok(CowVal::Owned(value.into_owned()))
    }

    pub(super) fn member(&self, name: &str) -> Option<CowVal<'static, 'static>> {
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

cel_value!(Scans, SCANS_TYPE {
    fn as_container(&self) -> Option<&dyn traits::Container> {
        Some(self)
    }
});

impl traits::Container for Scans {
    fn contains(&self, value: &dyn Val) -> Result<bool, ExecutionError> {
        Ok(self.find(name_of(value, "scan")?).is_some())
    }
}

cel_value!(History, HISTORY_TYPE {
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
});

impl Sizer for History {
    fn size(&self) -> CelInt {
        CelInt::from(i64::try_from(self.0.summary.size).unwrap_or(i64::MAX))
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
        self.history.note_job(job);
        Some(job)
    }
}

cel_value!(Job, JOB_TYPE {
    fn equals(&self, other: &dyn Val) -> bool {
        other
            .downcast_ref::<Self>()
            .is_some_and(|other| self.0.id == other.0.id)
    }
});

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
