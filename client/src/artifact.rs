//! Artifacts: listing, downloading and removing them.

use bytes::Bytes;
use http::Method;
use http::header::ETAG;
use tokio::time::timeout;
use uuid::Uuid;
use wire::{Artifact, ArtifactDiff, ArtifactEntry, Page};

use crate::call::Answer;
use crate::job::job_route;
use crate::route::Route;
use crate::{Client, Error, limits};

/// A file that is being downloaded: an artifact, or the files of a repository. Its content is not checked here.
pub struct Download {
    answer: Answer,
}

impl Client {
    pub async fn artifacts(&self, job: Uuid) -> Result<Vec<Artifact>, Error> {
        self.all(&job_route(job).then("artifacts")).await
    }

    pub async fn artifact_entries(
        &self,
        job: Uuid,
        artifact: &str,
        limit: u32,
        cursor: Option<&str>,
    ) -> Result<Page<ArtifactEntry>, Error> {
        let route = job_route(job)
            .then("artifacts")
            .name(artifact)?
            .then("entries")
            .with("limit", limit)
            .with_some("cursor", cursor);
        self.get(&route).answer().await
    }

    pub async fn artifact_diff(
        &self,
        job: Uuid,
        artifact: &str,
        against: Uuid,
        limit: u32,
        cursor: Option<&str>,
    ) -> Result<ArtifactDiff, Error> {
        let route = job_route(job)
            .then("artifacts")
            .name(artifact)?
            .then("diff")
            .with("against", against)
            .with("limit", limit)
            .with_some("cursor", cursor);
        self.get(&route).answer().await
    }

    /// Removes an artifact of a finished job, by id or name: `DELETE /jobs/{id}/artifacts/{artifact}`. Its record stays. `job`
    /// is the job's id or a part of it.
    ///
    /// An unfinished job is refused with [`wire::ErrorCode::IllegalTransition`].
    pub async fn delete_artifact(&self, job: &str, artifact: &str) -> Result<(), Error> {
        let route = Route::v0("jobs").name(job)?.then("artifacts");
        let route = route.name(artifact)?;
        self.call(Method::DELETE, &route).done().await
    }

    /// Begins the download of an artifact's zip by id or name: `GET /jobs/{id}/artifacts/{artifact}`.
    ///
    /// An artifact that has expired or was removed is refused with [`wire::ErrorCode::Gone`].
    pub async fn download_artifact(&self, job: Uuid, artifact: &str) -> Result<Download, Error> {
        let route = job_route(job).then("artifacts").name(artifact)?;
        Download::with_digest(self.get(&route).open().await?)
    }
}

impl Download {
    pub(crate) fn of(answer: Answer) -> Self {
        Self { answer }
    }

    /// A download with the digest that the daemon sends. A page of a proxy has none, and is an error.
    pub(crate) fn with_digest(answer: Answer) -> Result<Self, Error> {
        let download = Self::of(answer);
        match download.sha256() {
            Some(_) => Ok(download),
            None => Err(download.answer.foreign()),
        }
    }

    pub fn size(&self) -> Option<u64> {
        self.answer.content_length()
    }

    /// The SHA-256 in lower-case hexadecimal, if the answer has it.
    pub fn sha256(&self) -> Option<String> {
        let tag = self.answer.headers().get(ETAG)?.to_str().ok()?;
        digest_in(tag)
    }

    /// The next piece; `None` after the last piece. A download cannot be continued after an error.
    pub async fn piece(&mut self) -> Result<Option<Bytes>, Error> {
        match timeout(limits::STALL, self.answer.piece()).await {
            Ok(piece) => piece,
            Err(_) => Err(Error::TimedOut {
                operation: self.answer.operation().clone(),
            }),
        }
    }
}

/// The digest in an entity tag such as `"0123…"`.
fn digest_in(tag: &str) -> Option<String> {
    let tag = tag.strip_prefix("W/").unwrap_or(tag);
    let digest = tag.strip_prefix('"')?.strip_suffix('"')?;
    let digest = digest.strip_prefix("sha256:").unwrap_or(digest);
    let hexadecimal = digest.len() == 64 && digest.bytes().all(|byte| byte.is_ascii_hexdigit());
    hexadecimal.then(|| digest.to_ascii_lowercase())
}

#[cfg(test)]
mod tests {
    use super::digest_in;

    #[test]
    fn other_texts_are_not_digests() {
        let hex = "AB".repeat(32);
        let lower = Some("ab".repeat(32));
        assert_eq!(digest_in(&format!("\"{hex}\"")), lower);
        assert_eq!(digest_in(&format!("W/\"sha256:{hex}\"")), lower);
        for tag in ["", "\"", "\"abc\"", &hex] {
            assert_eq!(digest_in(tag), None, "{tag}");
        }
    }
}
