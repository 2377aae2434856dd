//! Making answers.

use std::panic::AssertUnwindSafe;

use bytes::Bytes;
use futures_util::FutureExt;
use http::StatusCode;
use http::header::{CACHE_CONTROL, CONTENT_TYPE, HeaderName, HeaderValue, WWW_AUTHENTICATE};
use serde::Serialize;
use tokio::sync::mpsc;
use warp::Reply;
use warp::reply::Response;

use crate::failure::Failure;
use crate::limits::STREAM_PIECES;

/// A JSON document.
pub(crate) fn json<T: Serialize>(status: StatusCode, body: &T) -> Response {
    match serde_json::to_vec(body) {
        Ok(bytes) => {
            let mut response = bytes.into_response();
            *response.status_mut() = status;
            set(&mut response, CONTENT_TYPE, "application/json");
            set(&mut response, CACHE_CONTROL, "no-store");
            response
        }
        Err(error) => {
            tracing::error!(%error, "an answer cannot be written as JSON");
            StatusCode::INTERNAL_SERVER_ERROR.into_response()
        }
    }
}

/// A JSON document with status 200.
pub(crate) fn ok<T: Serialize>(body: &T) -> Response {
    json(StatusCode::OK, body)
}

/// An answer without a body.
pub(crate) fn empty() -> Response {
    StatusCode::NO_CONTENT.into_response()
}

/// A failed request's answer.
pub(crate) fn problem(failure: Failure, request_id: &str) -> Response {
    if let Some(inward) = failure.inward() {
        tracing::error!(request_id, error = inward, "a request failed");
    }
    let status = failure.status();
    let (problem, headers) = failure.problem(request_id);
    let mut response = json(status, &problem);
    set(&mut response, CONTENT_TYPE, wire::PROBLEM_MEDIA_TYPE);
    if status == StatusCode::UNAUTHORIZED {
        set(&mut response, WWW_AUTHENTICATE, "Bearer");
    }
    for (name, value) in headers {
        set(&mut response, name, &value);
    }
    response
}

/// Sets a header; a value that is no header value is left out.
pub(crate) fn set(response: &mut Response, name: HeaderName, value: &str) {
    if let Ok(value) = HeaderValue::from_str(value) {
        response.headers_mut().insert(name, value);
    }
}

/// Where a streamed answer's pieces go. A send fails once the reader has gone away, which ends the stream.
pub(crate) type Pieces = mpsc::Sender<Result<Bytes, std::io::Error>>;

/// An answer whose pieces are made while it is read, never more than a few ahead of the reader.
pub(crate) fn streamed<F>(kind: &str, produce: impl FnOnce(Pieces) -> F) -> Response
where
    F: Future<Output = ()> + Send + 'static,
{
    let (sender, mut receiver) = mpsc::channel(STREAM_PIECES);
    let last = sender.clone();
    let work = AssertUnwindSafe(produce(sender)).catch_unwind();
    tokio::spawn(async move {
        if work.await.is_err() {
            tracing::error!("a handler panicked while its answer was being read");
            // What was cut off must not pass for the whole.
            let cut_off = std::io::Error::other("the answer was cut off");
            drop(last.send(Err(cut_off)).await);
        }
    });
    let mut response = warp::reply::stream(futures_util::stream::poll_fn(move |context| {
        receiver.poll_recv(context)
    }))
    .into_response();
    set(&mut response, CONTENT_TYPE, kind);
    set(&mut response, CACHE_CONTROL, "no-store");
    response
}

#[cfg(test)]
mod tests {
    use http_body_util::BodyExt;

    use super::*;

    #[tokio::test]
    async fn a_stream_whose_maker_panics_does_not_end_as_if_it_were_whole() {
        let piece = || Ok(Bytes::from_static(b"a line\n"));
        let whole = streamed("text/plain", async move |pieces: Pieces| {
            pieces.send(piece()).await.unwrap();
        });
        let whole = whole.into_body().collect().await.unwrap().to_bytes();
        assert_eq!(whole, "a line\n");
        let broken = streamed("text/plain", async move |pieces: Pieces| {
            pieces.send(piece()).await.unwrap();
            panic!("on purpose");
        });
        assert!(broken.into_body().collect().await.is_err());
    }
}
