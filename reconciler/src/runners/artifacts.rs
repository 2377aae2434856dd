//! The progress of artifacts that running jobs store. It is in memory only, because it is outdated within seconds.

use std::collections::HashMap;

use model::decide::declared_artifact;
use model::{Job, JobId, JobState, World};

use super::Runners;
use crate::supervise::lock;

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ArtifactProgress {
    pub name: String,
    pub phase: ArtifactPhase,
    /// Bytes of the packed files, or of the zip that was sent.
    pub bytes: u64,
    pub of: u64,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ArtifactPhase {
    Packing,
    Uploading,
}

#[derive(Debug, Default)]
pub(super) struct Progresses(HashMap<JobId, ArtifactProgress>);

impl Progresses {
    /// If there are this many reports, the reports of jobs that have ended are dropped.
    const MANY: usize = 64;

    fn note(
        &mut self,
        job: JobId,
        progress: Option<ArtifactProgress>,
        is_running: impl Fn(JobId) -> bool,
    ) {
        match progress {
            None => {
                self.0.remove(&job);
            }
            Some(progress) => {
                if self.0.len() >= Self::MANY {
                    self.0.retain(|job, _| is_running(*job));
                }
                self.0.insert(job, progress);
            }
        }
    }
}

impl Runners {
    pub(crate) fn note_artifact_progress(&self, job: &Job, progress: Option<ArtifactProgress>) {
        let progress = progress.filter(|progress| {
            if progress.bytes > progress.of {
                return false;
            }
            let declared = |world: &World| declared_artifact(world, job, &progress.name).is_ok();
            self.state.read(declared)
        });
        let is_running = |job| self.state.read(|world| world.job(job).is_some());
        lock(&self.artifacts).note(job.id, progress, is_running);
    }

    /// The artifact that a running job stores at this moment.
    pub fn artifact_progress(&self, job: &Job) -> Option<ArtifactProgress> {
        match job.state {
            JobState::Running { .. } => lock(&self.artifacts).0.get(&job.id).cloned(),
            JobState::Scheduled
            | JobState::Succeeded { .. }
            | JobState::Failed { .. }
            | JobState::Cancelled { .. }
            | JobState::Skipped { .. } => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_newest_report_is_kept_and_ended_jobs_are_forgotten() {
        let id = |number: u128| {
            let id = format!("00000000-0000-7000-8000-{number:012}");
            id.parse::<JobId>().unwrap()
        };
        let progress = |bytes| ArtifactProgress {
            name: "hosts".to_owned(),
            phase: ArtifactPhase::Packing,
            bytes,
            of: 9,
        };
        let mut all = Progresses::default();
        let is_running = |job| job == id(1);
        all.note(id(1), Some(progress(1)), is_running);
        all.note(id(1), Some(progress(2)), is_running);
        assert_eq!(all.0.get(&id(1)), Some(&progress(2)));
        for number in 2..200 {
            all.note(id(number), Some(progress(0)), is_running);
        }
        assert!(all.0.len() <= Progresses::MANY);
        assert_eq!(all.0.get(&id(1)), Some(&progress(2)));
        all.note(id(1), None, is_running);
        assert_eq!(all.0.get(&id(1)), None);
    }
}
