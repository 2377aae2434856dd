//! Artifacts up and down.

use std::io::Write;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use client::{ArtifactUpload, Error};
use uuid::Uuid;

use crate::server::{Reply, Server};

/// Content of several pieces. No two pieces are equal.
fn content() -> Vec<u8> {
    (0..300_000_u32).flat_map(u32::to_le_bytes).collect()
}

fn upload(size: u64) -> ArtifactUpload<'static> {
    let mut file = tempfile::tempfile().unwrap();
    file.write_all(&content()).unwrap();
    ArtifactUpload {
        name: "report.zip",
        content_digest: "sha256:00",
        file,
        size,
        sent: Box::new(|_| ()),
    }
}

#[tokio::test]
async fn an_upload_sends_the_file_from_its_beginning() {
    let server = Server::start([Reply::new(201, &[], "")]).await;
    let size = content().len().try_into().unwrap();
    let client = server.client();
    let reported = Arc::new(AtomicU64::new(0));
    let report = reported.clone();
    let upload = ArtifactUpload {
        sent: Box::new(move |bytes| report.store(bytes, Ordering::Relaxed)),
        ..upload(size)
    };
    let sent = client.upload_artifact(Uuid::nil(), upload);
    sent.await.unwrap();
    assert_eq!(reported.load(Ordering::Relaxed), size);
    let request = &server.seen()[0];
    assert_eq!(
        request.line,
        format!("PUT /v0/jobs/{}/artifacts/report.zip", Uuid::nil())
    );
    assert_eq!(request.header("x-content-digest"), Some("sha256:00"));
    assert_eq!(request.header("content-type"), Some("application/zip"));
    assert_eq!(request.header("transfer-encoding"), None);
    assert_eq!(request.body, content());
}

#[tokio::test]
async fn a_file_shorter_than_announced_is_an_error() {
    let server = Server::start([Reply::new(201, &[], "")]).await;
    let size = u64::try_from(content().len()).unwrap() + 1;
    let client = server.client();
    let sent = client.upload_artifact(Uuid::nil(), upload(size));
    let error = sent.await.unwrap_err();
    assert!(matches!(error, Error::Interrupted { .. }), "{error:?}");
    assert!(server.seen().is_empty());
}

#[tokio::test]
async fn a_download_has_its_size_its_digest_and_all_bytes() {
    let tag = format!("\"{}\"", "ab".repeat(32));
    let server = Server::start([
        Reply::problem(503, "unavailable"),
        Reply::new(200, &[("etag", &tag)], content()),
    ])
    .await;
    let client = server.client();
    let mut download = client
        .download_artifact(Uuid::nil(), "report.zip")
        .await
        .unwrap();
    assert_eq!(download.size(), content().len().try_into().ok());
    assert_eq!(download.sha256(), Some("ab".repeat(32)));
    let mut bytes = Vec::new();
    while let Some(piece) = download.piece().await.unwrap() {
        bytes.extend_from_slice(&piece);
    }
    assert_eq!(bytes, content());
}

#[tokio::test]
async fn an_interrupted_download_is_an_error() {
    let tag = format!("\"{}\"", "ab".repeat(32));
    let server = Server::start([Reply::new(200, &[("etag", &tag)], content()).torn(1)]).await;
    let client = server.client();
    let mut download = client.download_artifact(Uuid::nil(), "a").await.unwrap();
    let error = loop {
        match download.piece().await {
            Ok(Some(_)) => {}
            Ok(None) => panic!("the download ended too early"),
            Err(error) => break error,
        }
    };
    assert!(matches!(error, Error::Interrupted { .. }), "{error:?}");
}

#[tokio::test]
async fn a_refused_upload_returns_the_reason() {
    let server = Server::start([Reply::problem(409, "job_over")]).await;
    let size = content().len().try_into().unwrap();
    let client = server.client();
    let sent = client.upload_artifact(Uuid::nil(), upload(size));
    let error = sent.await.unwrap_err();
    assert_eq!(error.code(), Some(wire::ErrorCode::JobOver));
}
