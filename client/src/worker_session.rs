//! The calls of a worker about its job, with the job's token. They are not repeated here: the worker decides about repeats,
//! because it knows its spool.

use std::fs::File;

use bytes::Bytes;
use http::Method;
use http::header::{CONTENT_LENGTH, CONTENT_TYPE, HeaderName};
use http_body_util::BodyExt as _;
use uuid::Uuid;
use wire::{Assignment, CompleteJob, Completed, LogReceipt, Timeline};

use crate::artifact::Download;
use crate::job::job_route;
use crate::upload::pieces;
use crate::{Client, Error, limits};

const CONTENT_DIGEST: HeaderName = HeaderName::from_static(wire::CONTENT_DIGEST_HEADER);

/// A zip to store as an artifact.
pub struct ArtifactUpload<'a> {
    /// The name that the scan declares.
    pub name: &'a str,
    /// The digest over its entries, for `has_diff`.
    pub content_digest: &'a str,
    /// The zip, read from its start.
    pub file: File,
    pub size: u64,
    /// Gets the number of bytes that were sent so far, after each piece.
    pub sent: Box<dyn FnMut(u64) + Send>,
}

impl Client {
    /// Claims the job: `POST /jobs/{id}/resolve`. A repeat by the same worker gets the same answer.
    ///
    /// A lapsed offer is refused with [`wire::ErrorCode::OfferLapsed`] or [`wire::ErrorCode::JobOver`].
    pub async fn resolve(&self, job: Uuid) -> Result<Assignment, Error> {
        self.call(Method::POST, &job_route(job).then("resolve"))
            .answer()
            .await
    }

    /// Begins the download of the files of the repository, a tar: `GET /jobs/{id}/source`.
    ///
    /// If the commit is gone or contains unsupported files, this is refused with [`wire::ErrorCode::CheckoutFailed`].
    pub async fn source_files(&self, job: Uuid) -> Result<Download, Error> {
        let answer = self
            .call(Method::GET, &job_route(job).then("source"))
            .limit(limits::HELD_ANSWER)
            .open()
            .await?;
        Ok(Download::of(answer))
    }

    pub async fn timeline(&self, job: Uuid, timeline: &Timeline) -> Result<(), Error> {
        self.call(Method::POST, &job_route(job).then("timeline"))
            .json(timeline)?
            .done()
            .await
    }

    /// Appends log records: `PATCH /jobs/{id}/logs`. `records` is a JSON array of [`wire::NewLogRecord`]; the first record has
    /// number `from`.
    ///
    /// A gap is refused with [`wire::ErrorCode::LogMismatch`], and [`wire::Problem::next`] has the expected number.
    pub async fn append_logs(
        &self,
        job: Uuid,
        from: u64,
        records: Bytes,
    ) -> Result<LogReceipt, Error> {
        self.call(
            Method::PATCH,
            &job_route(job).then("logs").with("from", from),
        )
        .json_bytes(records)
        .answer()
        .await
    }

    /// Stores an artifact, read from its file piece by piece: `PUT /jobs/{id}/artifacts/{name}`.
    ///
    /// A file shorter than `size` fails with [`Error::Interrupted`].
    pub async fn upload_artifact(
        &self,
        job: Uuid,
        upload: ArtifactUpload<'_>,
    ) -> Result<(), Error> {
        let route = job_route(job).then("artifacts").name(upload.name)?;
        let (mut sent, mut report) = (0, upload.sent);
        let body = pieces(upload.file, Some(upload.size)).map_frame(move |frame| {
            sent += frame.data_ref().map_or(0, |data| data.len() as u64);
            report(sent);
            frame
        });
        self.call(Method::PUT, &route)
            .limit(limits::upload(upload.size))
            .header(CONTENT_DIGEST, upload.content_digest)?
            .header(CONTENT_TYPE, "application/zip")?
            // The daemon decides by the length whether it accepts the body.
            .header(CONTENT_LENGTH, &upload.size.to_string())?
            .send_streamed(body.boxed_unsync())
            .await
    }

    /// Completes the job: `POST /jobs/{id}/complete`. A repeat gets the same answer.
    pub async fn complete(&self, job: Uuid, end: &CompleteJob) -> Result<Completed, Error> {
        self.call(Method::POST, &job_route(job).then("complete"))
            .json(end)?
            .answer()
            .await
    }
}
