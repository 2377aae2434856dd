//! How far the artifacts are that running jobs store. Only in memory: it is old news after a second.

use std::collections::HashMap;

use model::decide::declared_artifact;
use model::{Job, JobId, JobState, World};

use crate::handle::Handle;

/// An artifact that a running job stores.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ArtifactProgress {
    pub name: String,
    pub phase: ArtifactPhase,
    /// Bytes of the files that are packed, or of the zip that was sent.
    pub bytes: u64,
    /// All bytes of the phase.
    pub of: u64,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ArtifactPhase {
    Packing,
    Uploading,
}

/// What workers have told last.
#[derive(Debug, Default)]
pub(crate) struct Progresses(HashMap<JobId, ArtifactProgress>);

impl Progresses {
    /// From how many on those of jobs that no longer run are dropped.
    const MANY: usize = 64;

    /// Notes what a worker tells.
    pub(crate) fn note(
        &mut self,
        job: JobId,
        progress: Option<ArtifactProgress>,
        runs: impl Fn(JobId) -> bool,
    ) {
        match progress {
            None => {
                self.0.remove(&job);
            }
            Some(progress) => {
                if self.0.len() >= Self::MANY {
                    self.0.retain(|job, _| runs(*job));
                }
                self.0.insert(job, progress);
            }
        }
    }

    pub(crate) fn of(&self, job: JobId) -> Option<&ArtifactProgress> {
        self.0.get(&job)
    }
}

impl Handle {
    /// Notes which artifact a worker stores and how far it is.
    pub(crate) fn note_artifact_progress(&self, job: &Job, progress: Option<ArtifactProgress>) {
        let progress = progress.filter(|progress| {
            if progress.bytes > progress.of {
                return false;
            }
            let declared = |world: &World| declared_artifact(world, job, &progress.name).is_ok();
            self.state().read(declared)
        });
        let runs = |job| self.state().read(|world| world.job(job).is_some());
        self.artifacts().note(job.id, progress, runs);
    }

    /// The artifact that a running job stores at this moment.
    pub fn artifact_progress(&self, job: &Job) -> Option<ArtifactProgress> {
        match job.state {
            JobState::Running { .. } => self.artifacts().of(job.id).cloned(),
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
    fn the_newest_counts_and_jobs_that_are_over_are_forgotten() {
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
        let runs = |job| job == id(1);
        all.note(id(1), Some(progress(1)), runs);
        all.note(id(1), Some(progress(2)), runs);
        assert_eq!(all.of(id(1)), Some(&progress(2)));
        for number in 2..200 {
            all.note(id(number), Some(progress(0)), runs);
        }
        assert!(all.0.len() <= Progresses::MANY);
        assert_eq!(all.of(id(1)), Some(&progress(2)));
        all.note(id(1), None, runs);
        assert_eq!(all.of(id(1)), None);
    }
}
