//! The values that expressions read, as plain data. They are frozen into the job's record, sent to the runner and read
//! by `everscan expr eval`, so an evaluation gives the same result everywhere. Secret values are never serialised.

mod given;

use std::collections::BTreeMap;
use std::fmt;

use chrono::{DateTime, Utc};
use serde::{Deserialize, Serialize};

use crate::dispatch::InputValue;
use crate::expression::{Reach, References};
use crate::limits::HISTORY_SUCCESSES;
use crate::outputs::Outputs;

/// The state of a successful job.
pub(crate) const SUCCEEDED: &str = "succeeded";

/// The values behind an expression's names.
#[derive(Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Context {
    /// The job: `id` and `name`. Absent for `on.expr`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub job: Option<JobIdentity>,
    /// `project.id`.
    pub project: String,
    /// `workflow.id`.
    pub workflow: String,
    /// `revision.id`.
    pub revision: String,
    /// `vars`.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub vars: BTreeMap<String, String>,
    /// `secrets`. Never serialised, never shown.
    #[serde(skip)]
    pub secrets: BTreeMap<String, String>,
    /// `inputs`, complete with defaults.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub inputs: BTreeMap<String, InputValue>,
    /// `callback`: the interactions that started the job.
    #[serde(default, skip_serializing_if = "CallbackSummary::is_none")]
    pub callback: CallbackSummary,
    /// `scans`, as the scan that holds the expression sees them.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub scans: BTreeMap<String, ScanHistory>,
    /// `steps`: the named steps of the same job that have ended.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub steps: BTreeMap<String, StepSummary>,
    /// `ok`: false once a step has failed the job.
    #[serde(default = "yes")]
    pub ok: bool,
}

/// A step of the same job: `steps.NAME`.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct StepSummary {
    /// The values that it has set.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub outputs: Outputs,
}

/// Interactions of a callback server that started a job. Nothing here was written by a stranger. Empty, and 0, if something else
/// started the job.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct CallbackSummary {
    /// The name of the callback server.
    pub server: String,
    /// How many interactions.
    pub count: u64,
    /// The number of the first one.
    pub first: u64,
    /// The number of the last one.
    pub last: u64,
    /// The kinds of the requests: `dns`, `http`.
    pub types: Vec<String>,
    /// The job that made the name of the newest one that was made by a job. Empty if none was.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub job: String,
}

impl CallbackSummary {
    fn is_none(&self) -> bool {
        *self == Self::default()
    }
}

/// The job an expression belongs to.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct JobIdentity {
    pub id: String,
    /// The name of its scan.
    pub name: String,
}

/// One scan, from the view of another scan whose expression reads it.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ScanHistory {
    /// The result of `size()`: the number of all retained jobs that count.
    pub size: u64,
    /// The newest 100 jobs, newest first, and older successes, so that the two newest successes are always included.
    pub jobs: Vec<JobSummary>,
    /// The result of `is_available()` for the scan that has the expression.
    pub available: bool,
    /// The result of `has_failed()` for the scan that has the expression.
    #[serde(default, skip_serializing_if = "is_false")]
    pub failed: bool,
    /// The number of successes, retained or not.
    pub successes: u64,
    /// For each of the two newest successes, newest first: artifact name to content digest. `has_diff()` compares
    /// these.
    pub newest_successes: Vec<BTreeMap<String, String>>,
    /// The ids of these successes, in the same order, for explanations.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub newest_success_ids: Vec<String>,
    /// The results of this scan that the asking scan has processed. Present only if its expression calls `has_news()` or
    /// `processed()`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub news: Option<News>,
}

/// The data that decides whether the newest success of a scan is news.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct News {
    /// Absent if no success has been processed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub processed: Option<Processed>,
    /// The names of the artifacts that the file declares for the scan. No expression reads them.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub declared: Vec<String>,
}

/// A success of another scan that a successful job of the asking scan has read: `scans.X.processed()`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Processed {
    /// The job of the other scan. Retention may have removed it.
    pub id: String,
    /// Artifact name to content digest.
    pub artifacts: BTreeMap<String, String>,
}

/// A job of a scan's history: `scans.X[i]`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct JobSummary {
    pub id: String,
    pub state: String,
    pub trigger: String,
    pub revision: String,
    pub created_at: DateTime<Utc>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub started_at: Option<DateTime<Utc>>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub finished_at: Option<DateTime<Utc>>,
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub artifacts: BTreeMap<String, ArtifactSummary>,
    /// The outputs of its steps.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub outputs: Outputs,
}

/// An artifact of a job of a scan's history.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ArtifactSummary {
    pub checksum: String,
    /// Bytes of the zip.
    pub size: u64,
}

impl JobSummary {
    /// The job, with or without its outputs.
    #[must_use]
    pub fn narrowed(&self, with_outputs: bool) -> Self {
        Self {
            outputs: if with_outputs {
                self.outputs.clone()
            } else {
                Outputs::new()
            },
            id: self.id.clone(),
            state: self.state.clone(),
            trigger: self.trigger.clone(),
            revision: self.revision.clone(),
            artifacts: self.artifacts.clone(),
            ..*self
        }
    }
}

impl ScanHistory {
    /// The result of `has_diff()`, or of `has_diff('name')` for one artifact: the two newest successes differ, or there is
    /// exactly one success. An artifact that is in only one of the two successes differs.
    pub fn has_diff(&self, artifact: Option<&str>) -> bool {
        match (self.successes, self.newest_successes.as_slice()) {
            (1, _) => true,
            (0, _) | (_, [] | [_]) => false,
            (_, [newest, before, ..]) => match artifact {
                None => newest != before,
                Some(name) => newest.get(name) != before.get(name),
            },
        }
    }

    /// The result of `has_news()`, or of `has_news('name')` for one artifact: an artifact of the newest success has other content
    /// than the processed artifact. An artifact that the newest success lacks is not news. If nothing was processed, the success
    /// is news.
    pub fn has_news(&self, artifact: Option<&str>) -> bool {
        let Some(newest) = self.newest_successes.first() else {
            return false;
        };
        let Some(processed) = self.processed() else {
            return artifact.is_none_or(|name| newest.contains_key(name));
        };
        let mut asked = newest
            .iter()
            .filter(|(name, _)| artifact.is_none_or(|artifact| artifact == name.as_str()));
        asked.any(|(name, digest)| processed.artifacts.get(name) != Some(digest))
    }

    /// The results of this scan that the asking scan has processed.
    pub fn processed(&self) -> Option<&Processed> {
        self.news.as_ref()?.processed.as_ref()
    }

    /// The index of the newest success among the jobs of this scan, for `last_success()`.
    pub(crate) fn place_of_success<'j>(
        &self,
        jobs: impl Iterator<Item = &'j JobSummary> + Clone,
    ) -> Option<usize> {
        let newest = self.newest_success_ids.first();
        let known = newest.and_then(|newest| jobs.clone().position(|job| job.id == *newest));
        known.or_else(|| jobs.clone().position(|job| job.state == SUCCEEDED))
    }

    /// The part that an expression with this reach can read.
    fn narrowed(&self, reach: Option<&Reach>, with_outputs: bool, with_news: bool) -> Self {
        let jobs = match reach {
            None => &[],
            Some(Reach::Success) => {
                let place = self.place_of_success(self.jobs.iter());
                place.map_or(&[][..], |at| self.jobs.get(at..=at).unwrap_or_default())
            }
            Some(Reach::Newest(count)) => self.jobs.get(..*count).unwrap_or(&self.jobs),
            Some(Reach::All) => self.jobs.as_slice(),
        };
        Self {
            size: self.size,
            jobs: jobs.iter().map(|job| job.narrowed(with_outputs)).collect(),
            available: self.available,
            failed: self.failed,
            successes: self.successes,
            newest_successes: self.newest_successes.clone(),
            newest_success_ids: self.success_ids(),
            news: self.news.clone().filter(|_| with_news),
        }
    }

    /// The ids of the newest successes. If a context written by a person lacks them, they are taken from its jobs.
    fn success_ids(&self) -> Vec<String> {
        if !self.newest_success_ids.is_empty() {
            return self.newest_success_ids.clone();
        }
        let successes = self.jobs.iter().filter(|job| job.state == SUCCEEDED);
        let newest = successes.take(HISTORY_SUCCESSES);
        newest.map(|job| job.id.clone()).collect()
    }
}

impl Context {
    /// The part that expressions with these references can read. Only this part is frozen.
    pub fn narrowed(&self, references: &References) -> Self {
        fn named<T: Clone>(
            all: &BTreeMap<String, T>,
            names: &std::collections::BTreeSet<String>,
        ) -> BTreeMap<String, T> {
            names
                .iter()
                .filter_map(|name| Some((name.clone(), all.get(name)?.clone())))
                .collect()
        }
        Self {
            job: self.job.clone(),
            project: self.project.clone(),
            workflow: self.workflow.clone(),
            revision: self.revision.clone(),
            vars: named(&self.vars, &references.vars),
            secrets: named(&self.secrets, &references.secrets),
            inputs: if references.any_input {
                self.inputs.clone()
            } else {
                named(&self.inputs, &references.inputs)
            },
            callback: self.callback.clone(),
            scans: if references.any_scan {
                self.scans.clone()
            } else {
                let known = references.scans.iter();
                let known = known.filter_map(|name| Some((name, self.scans.get(name)?)));
                known
                    .map(|(name, scan)| {
                        let reach = references.jobs.get(name);
                        let with_news = references.news.contains(name);
                        let scan = scan.narrowed(reach, references.outputs, with_news);
                        (name.clone(), scan)
                    })
                    .collect()
            },
            steps: self.steps.clone(),
            ok: self.ok,
        }
    }
}

/// Shows the names of secrets only.
impl fmt::Debug for Context {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Context")
            .field("job", &self.job)
            .field("project", &self.project)
            .field("workflow", &self.workflow)
            .field("revision", &self.revision)
            .field("vars", &self.vars)
            .field("secrets", &self.secrets.keys())
            .field("inputs", &self.inputs)
            .field("callback", &self.callback)
            .field("scans", &self.scans)
            .field("steps", &self.steps)
            .field("ok", &self.ok)
            .finish()
    }
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde gives a reference")]
const fn is_false(value: &bool) -> bool {
    !*value
}

const fn yes() -> bool {
    true
}

#[cfg(test)]
mod tests {
    use super::*;

    fn history(successes: u64, newest: &[&[(&str, &str)]]) -> ScanHistory {
        let digests = |pairs: &[(&str, &str)]| {
            pairs
                .iter()
                .map(|(k, v)| ((*k).to_owned(), (*v).to_owned()))
                .collect()
        };
        ScanHistory {
            successes,
            newest_successes: newest.iter().map(|pairs| digests(pairs)).collect(),
            ..ScanHistory::default()
        }
    }

    #[test]
    fn the_first_success_is_a_difference() {
        assert!(!history(0, &[]).has_diff(None));
        assert!(history(1, &[&[]]).has_diff(None));
        assert!(history(1, &[&[("a", "1")]]).has_diff(Some("b")));
    }

    #[test]
    fn two_successes_are_compared_by_digest() {
        let same = history(2, &[&[("a", "1"), ("b", "2")], &[("a", "1"), ("b", "2")]]);
        assert!(!same.has_diff(None));
        let other = history(7, &[&[("a", "1"), ("b", "2")], &[("a", "1"), ("c", "2")]]);
        assert!(other.has_diff(None));
        assert!(!other.has_diff(Some("a")));
        assert!(
            other.has_diff(Some("b")),
            "absent from one of the two differs"
        );
        assert!(!other.has_diff(Some("z")), "absent from both does not");
    }

    #[test]
    fn secrets_are_neither_serialised_nor_shown() {
        let context = Context {
            job: None,
            project: "p".to_owned(),
            workflow: "w".to_owned(),
            revision: "r".to_owned(),
            vars: BTreeMap::new(),
            secrets: BTreeMap::from([("TOKEN".to_owned(), "hunter2".to_owned())]),
            inputs: BTreeMap::new(),
            callback: CallbackSummary::default(),
            scans: BTreeMap::new(),
            steps: BTreeMap::new(),
            ok: true,
        };
        assert!(!serde_json::to_string(&context).unwrap().contains("hunter2"));
        assert!(!format!("{context:?}").contains("hunter2"));
        assert!(format!("{context:?}").contains("TOKEN"));
    }
}
