//! The artifacts of a job, which are packed and uploaded after its steps.

use std::collections::BTreeSet;
use std::path::Path;
use std::sync::PoisonError;

use client::ArtifactUpload;
use model::error_chain;
use tokio::task::spawn_blocking;
use tokio::time::Instant;
use wire::{ArtifactPhase, JobFailure, LeftOut, LeftOutFile, ScanArtifact};

use super::{Worker, failure_of};
use crate::artifact::{ArtifactError, Packed, Progress, pack};
use crate::evaluation::Evaluation;
use crate::limits;
use crate::link::Verdict;
use crate::stop::{Stop, Uploads};
use crate::workdir;

impl Worker<'_> {
    /// Uploads the artifacts whose `upload_on` includes this result of the steps. If a step has failed the job (not `ok`), a
    /// failed artifact is only a line in the log.
    pub(super) async fn store_artifacts(
        &self,
        ok: bool,
        folder: &Path,
        evaluation: &Evaluation,
    ) -> Result<(), JobFailure> {
        let mut stored = BTreeSet::new();
        let artifacts = self.assignment.artifacts.iter();
        for artifact in artifacts.filter(|artifact| artifact.upload_on.includes(ok)) {
            let storing = self.store_artifact(artifact, ok, Uploads::InTime, folder, evaluation);
            let Err(message) = storing.await else {
                stored.insert(artifact.name.as_str());
                continue;
            };
            // All steps have ended without a stop, so the stop must be the job's failure.
            if let Some(failure) = self.link.stop.reason().as_ref().and_then(failure_of) {
                if failure != JobFailure::TimedOut {
                    return Err(failure);
                }
                self.report(Stop::DeadlinePassed.explanation());
                self.store_late_artifacts(&stored, folder, evaluation).await;
                // An earlier failure of a step is more useful.
                return if ok { Err(failure) } else { Ok(()) };
            }
            let message = format!("artifact {}: {message}", artifact.name);
            self.report(&message);
            if ok {
                return Err(JobFailure::ArtifactFailed(message));
            }
            if self.link.stop.reason().is_some() {
                return Ok(());
            }
        }
        Ok(())
    }

    /// Uploads the remaining artifacts of a job that has timed out, if they are wanted after a failure. An artifact that cannot
    /// be stored in time is only a line in the log.
    pub(super) async fn store_late_artifacts(
        &self,
        stored: &BTreeSet<&str>,
        folder: &Path,
        evaluation: &Evaluation,
    ) {
        let until = Instant::now() + self.shared.options.timeout_uploads;
        let uploads = Uploads::Late {
            until: self.deadlines.scan.map_or(until, |deadline| {
                until.min(deadline + limits::TIMEOUT_REPORT)
            }),
        };
        let artifacts = self.assignment.artifacts.iter();
        let is_due = |artifact: &&ScanArtifact| {
            artifact.upload_on.includes(false) && !stored.contains(artifact.name.as_str())
        };
        for artifact in artifacts.filter(is_due) {
            let storing = self.store_artifact(artifact, false, uploads, folder, evaluation);
            if let Err(message) = storing.await {
                self.report(&format!("artifact {}: {message}", artifact.name));
            }
        }
        self.link.stop.cleaned_up();
    }

    /// Uploads an artifact, unless uploads must end, or the artifact is not wanted after this result of the steps.
    async fn store_artifact(
        &self,
        artifact: &ScanArtifact,
        ok: bool,
        uploads: Uploads,
        folder: &Path,
        evaluation: &Evaluation,
    ) -> Result<(), String> {
        if let (true, Some(reason)) = (self.link.stop.ends(uploads), self.link.stop.reason()) {
            return Err(reason.explanation().to_owned());
        }
        let stored = tokio::select! {
            biased;
            stored = self.try_artifact(artifact, ok, uploads, folder, evaluation) => stored,
            reason = self.link.stop.ended(uploads) => Err(reason.explanation().to_owned()),
        };
        self.timeline.end_progress();
        stored
    }

    async fn try_artifact(
        &self,
        artifact: &ScanArtifact,
        ok: bool,
        uploads: Uploads,
        folder: &Path,
        evaluation: &Evaluation,
    ) -> Result<(), String> {
        let should_upload = evaluation
            .should_upload(artifact.condition.as_deref(), ok)
            .await
            .map_err(|error| format!("cannot evaluate if: {}", error_chain(&error)))?;
        if !should_upload {
            return Ok(());
        }
        let packed = self.pack(artifact, uploads, folder).await?;
        if !packed.left_out.files.is_empty() {
            self.report(&describe_left_out(&artifact.name, &packed.left_out));
        }
        let mut backoff = limits::backoff();
        loop {
            let mut progress = self.progress(artifact, ArtifactPhase::Uploading);
            let size = packed.size;
            let moved = self.link.progress.clone();
            let file = packed
                .file
                .try_clone()
                .map_err(|error| format!("cannot read the zip: {error}"))?;
            let upload = ArtifactUpload {
                name: &artifact.name,
                content_digest: &packed.content_digest,
                file,
                size,
                sent: Box::new(move |bytes| {
                    moved.heard();
                    progress.note(bytes, size);
                }),
            };
            let request = self.link.client.upload_artifact(self.link.job, upload);
            match self.link.judge(request.await) {
                Ok(()) => {
                    self.note_left_out(artifact, packed.left_out);
                    return Ok(());
                }
                Err(failure) if failure.verdict == Verdict::Again => {
                    self.link.pause(&mut backoff, &failure).await;
                }
                Err(failure) => return Err(error_chain(&failure.error)),
            }
        }
    }

    /// Records the files that the job's record must list.
    fn note_left_out(&self, artifact: &ScanArtifact, mut left_out: LeftOut) {
        let Ok(masker) = &self.masker else {
            return;
        };
        if left_out.files.is_empty() {
            return;
        }
        for LeftOutFile { name, reason } in &mut left_out.files {
            *name = masker.mask(name);
            *reason = masker.mask(reason);
        }
        self.left_out
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .insert(artifact.name.clone(), left_out);
    }

    fn progress(&self, artifact: &ScanArtifact, phase: ArtifactPhase) -> Progress {
        let every = self.shared.options.artifact_progress;
        self.timeline.progress(&artifact.name, phase, every)
    }

    async fn pack(
        &self,
        artifact: &ScanArtifact,
        uploads: Uploads,
        folder: &Path,
    ) -> Result<Packed, String> {
        let zip = self.shared.workdir.pack_path(self.link.job);
        let folder = folder.to_owned();
        let (paths, strict) = (artifact.paths.clone(), artifact.strict);
        let (stop, moved) = (self.link.stop.clone(), self.link.progress.clone());
        let mut progress = self.progress(artifact, ArtifactPhase::Packing);
        let packing = spawn_blocking(move || {
            let file = workdir::make_private_file(&zip).map_err(ArtifactError::Write)?;
            // The open file is enough. Without a name, it is removed when the process ends.
            std::fs::remove_file(&zip).map_err(ArtifactError::Write)?;
            pack(&folder, &paths, strict, file, |bytes, of| {
                moved.heard();
                progress.note(bytes, of);
                !stop.ends(uploads)
            })
        });
        match packing.await {
            Ok(packed) => packed.map_err(|error| error_chain(&error)),
            Err(error) => Err(format!("packing panicked: {error}")),
        }
    }
}

/// The files that an artifact leaves out, as lines of the log.
fn describe_left_out(artifact: &str, left_out: &LeftOut) -> String {
    let files = left_out.files.iter();
    let mut lines: Vec<_> = files
        .map(|LeftOutFile { name, reason }| {
            format!("artifact {artifact}: left out: {name:?} {reason}")
        })
        .collect();
    if left_out.more > 0 {
        lines.push(format!(
            "artifact {artifact}: left out: {} more",
            left_out.more
        ));
    }
    lines.join("\n")
}
