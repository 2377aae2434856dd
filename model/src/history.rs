//! The history of a scan: one line per finished job.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use workflow::{ArtifactSummary, JobSummary, Outputs};

use crate::job::{EndState, Job, Trigger};
use crate::{JobId, RevisionId, Timestamp, is_zero};

/// The line of a finished job. Lists show it, and expressions read it as `scans.X[i]`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct HistoryLine {
    pub id: JobId,
    pub state: EndState,
    pub trigger: Trigger,
    pub revision: RevisionId,
    pub created_at: Timestamp,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub started_at: Option<Timestamp>,
    pub finished_at: Timestamp,
    /// Artifact name to content digest and size.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub artifacts: BTreeMap<String, (String, u64)>,
    /// The outputs of its steps.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub outputs: Outputs,
    /// The code of the reason for the end. Absent in lines of an older daemon.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
    /// The name of the runner that executed the job. Absent if the job never ran, and in lines of an older daemon.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub runner: Option<String>,
    /// The job that retries it. Absent in lines of an older daemon.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub retried_by: Option<JobId>,
    /// The jobs whose ends started it.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub causes: Vec<JobId>,
    /// Bytes of its log, inputs and artifacts.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub bytes: u64,
}

impl HistoryLine {
    /// The job in the form for expressions.
    pub fn summary(&self) -> JobSummary {
        JobSummary {
            id: self.id.to_string(),
            state: self.state.name().to_owned(),
            trigger: self.trigger.name().to_owned(),
            revision: self.revision.to_string(),
            created_at: self.created_at,
            started_at: self.started_at,
            finished_at: Some(self.finished_at),
            artifacts: self
                .artifacts
                .iter()
                .map(|(name, (checksum, size))| {
                    let summary = ArtifactSummary {
                        checksum: checksum.clone(),
                        size: *size,
                    };
                    (name.clone(), summary)
                })
                .collect(),
            outputs: self.outputs.clone(),
        }
    }

    /// The history line of a job. None if the job has not ended.
    pub fn of(job: &Job) -> Option<Self> {
        let end = job.state.end()?;
        let run = job.state.run();
        Some(Self {
            id: job.id,
            state: job.state.kind().ended()?,
            trigger: job.trigger,
            revision: job.revision.id,
            created_at: job.created_at,
            started_at: run.map(|run| run.started_at),
            finished_at: end.at,
            artifacts: run
                .iter()
                .flat_map(|run| &run.artifacts)
                .map(|artifact| {
                    (
                        artifact.name.clone(),
                        (artifact.content_digest.clone(), artifact.size),
                    )
                })
                .collect(),
            outputs: run.map(|run| run.outputs.clone()).unwrap_or_default(),
            reason: Some(end.reason.code().to_owned()),
            runner: run.map(|run| run.runner.name.clone()),
            retried_by: job.retried_by,
            causes: job.causes.clone(),
            bytes: job.bytes(),
        })
    }
}
