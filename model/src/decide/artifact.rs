//! Records the artifact that a worker has uploaded.

use workflow::check_artifact_name;

use super::report::{declared, running};
use super::{Command, Decision, Refusal, Urgency};
use crate::change::Change;
use crate::job::{Artifact, Job};
use crate::life_cycle::JobEvent;
use crate::limits::{CONTENT_DIGEST_BYTES, NAME_CHARS, UNDECLARED_ARTIFACTS};
use crate::moment::Moment;
use crate::world::World;
use crate::{ArtifactId, JobId, TokenHash};

/// Record an artifact whose bytes are uploaded.
#[derive(Debug, Clone)]
pub struct StoreArtifact {
    pub job: JobId,
    pub token: TokenHash,
    pub name: String,
    /// Bytes of the zip.
    pub size: u64,
    /// SHA-256 of the zip, hexadecimal.
    pub sha256: String,
    /// Digest over entry names and contents.
    pub content_digest: String,
}

/// The declaration of the artifact in the job's scan. None if the job's revision cannot be read: then any artifact is
/// accepted.
pub fn declared_artifact<'a>(
    world: &'a World,
    job: &Job,
    name: &str,
) -> Result<Option<&'a workflow::Artifact>, Refusal> {
    let undeclared = || Refusal::UndeclaredArtifact {
        scan: job.scan.to_string(),
        artifact: name.chars().take(NAME_CHARS).collect(),
    };
    let Some(scan) = declared(world, job) else {
        let stored = job.state.run().map_or(0, |run| run.artifacts.len());
        let is_legal = check_artifact_name(name).is_ok() && stored < UNDECLARED_ARTIFACTS;
        return is_legal.then_some(None).ok_or_else(undeclared);
    };
    let mut artifacts = scan.artifacts.iter();
    let artifact = artifacts.find(|artifact| artifact.name == name);
    artifact.map(Some).ok_or_else(undeclared)
}

impl Command for StoreArtifact {
    type Answer = Artifact;
    const URGENCY: Urgency = Urgency::Finishing;

    /// A repeat with the same bytes gets the same answer. Other bytes are refused.
    fn decide(self, world: &World, moment: &mut Moment<'_>) -> Result<Decision<Artifact>, Refusal> {
        let (job, run) = running(world, self.job, self.token)?;
        if let Some(stored) = run.artifacts.iter().find(|stored| stored.name == self.name) {
            return if stored.sha256 == self.sha256 {
                Ok(Decision::unchanged(stored.clone()))
            } else {
                Err(Refusal::ArtifactMismatch {
                    job: job.id,
                    artifact: self.name,
                })
            };
        }
        let declared = declared_artifact(world, job, &self.name)?;
        let digest = &self.content_digest;
        if digest.is_empty()
            || digest.len() > CONTENT_DIGEST_BYTES
            || !digest.bytes().all(|byte| byte.is_ascii_graphic())
        {
            return Err(Refusal::BadReport {
                job: job.id,
                problem: format!(
                    "the content digest must be 1 to {CONTENT_DIGEST_BYTES} visible ASCII characters"
                ),
            });
        }
        let artifact = Artifact {
            id: ArtifactId::derive(job.id, &self.name),
            name: self.name,
            size: self.size,
            sha256: self.sha256,
            content_digest: self.content_digest,
            created_at: moment.now,
            // A finished job does not follow clock corrections, so the later clock decides.
            expires_at: declared
                .and_then(|declared| declared.expires_in)
                .map(|life| moment.now.max(moment.steady) + life),
            removed: None,
            left_out: None,
        };
        let job = job.after(JobEvent::ArtifactStored(artifact.clone()))?;
        Ok(Decision {
            changes: vec![Change::Job(job)],
            answer: artifact,
        })
    }
}
