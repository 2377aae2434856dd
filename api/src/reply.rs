//! Responses.

mod pieces;

use std::panic::AssertUnwindSafe;

use futures_util::FutureExt;
use http::StatusCode;
use http::header::{CACHE_CONTROL, CONTENT_TYPE, ETAG, HeaderName, HeaderValue, WWW_AUTHENTICATE};
use serde::Serialize;
use warp::Reply;
use warp::reply::Response;

pub(crate) use self::pieces::{Pieces, Unread};
use crate::failure::Failure;
use crate::precondition::etag;

/// Most documents are shorter, and are written without being moved.
const ORDINARY_BYTES: usize = 1000;

/// A JSON document.
pub(crate) fn json<T: Serialize>(status: StatusCode, body: &T) -> Response {
    let mut bytes = Vec::with_capacity(ORDINARY_BYTES);
    match serde_json::to_writer(&mut bytes, body) {
        Ok(()) => {
            let mut response = bytes.into_response();
            *response.status_mut() = status;
            set_static(&mut response, CONTENT_TYPE, "application/json");
            set_static(&mut response, CACHE_CONTROL, "no-store");
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

/// A JSON document that people edit, with the tag of its version.
pub(crate) fn versioned<T: Serialize>(body: &T, version: u64) -> Response {
    let mut response = ok(body);
    set(&mut response, ETAG, &etag(version));
    response
}

/// A response without a body.
pub(crate) fn empty() -> Response {
    StatusCode::NO_CONTENT.into_response()
}

/// The caller already has the current version.
pub(crate) fn not_modified(etag: &str) -> Response {
    let mut response = StatusCode::NOT_MODIFIED.into_response();
    set(&mut response, ETAG, etag);
    response
}

/// The response to a failed request.
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

/// Sets a header, unless the value is not a valid header value.
pub(crate) fn set(response: &mut Response, name: HeaderName, value: &str) {
    if let Ok(value) = HeaderValue::from_str(value) {
        response.headers_mut().insert(name, value);
    }
}

/// Sets a header to a value that is known beforehand, without a copy of it.
pub(crate) fn set_static(response: &mut Response, name: HeaderName, value: &'static str) {
    let value = HeaderValue::from_static(value);
    response.headers_mut().insert(name, value);
}

/// A response whose pieces are made while it is read, never more than a few ahead of the reader.
pub(crate) fn streamed<F>(kind: &str, produce: impl FnOnce(Pieces) -> F) -> Response
where
    F: Future<Output = ()> + Send + 'static,
{
    let (pieces, unsent) = pieces::channel();
    let last = pieces.clone();
    let work = AssertUnwindSafe(produce(pieces)).catch_unwind();
    tokio::spawn(async move {
        if work.await.is_err() {
            tracing::error!("a handler panicked while its answer was being read");
            last.cut_off();
        }
    });
    let unsent = futures_util::stream::poll_fn(move |context| unsent.poll(context));
    let mut response = warp::reply::stream(unsent).into_response();
    set(&mut response, CONTENT_TYPE, kind);
    set(&mut response, CACHE_CONTROL, "no-store");
    response
}

#[cfg(test)]
mod tests {
    use bytes::Bytes;
    use http_body_util::BodyExt;

    use super::*;
    use crate::limits::STREAM_PIECES;

    #[tokio::test]
    async fn a_stream_whose_maker_panics_does_not_end_as_if_it_were_whole() {
        let piece = || Bytes::from_static(b"a line\n");
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

    #[tokio::test(start_paused = true)]
    async fn a_reader_that_does_not_read_is_disconnected_and_nothing_is_kept_for_it() {
        let (tell, over) = tokio::sync::oneshot::channel();
        let answer = streamed("text/plain", async move |pieces: Pieces| {
            let mut sent = 0;
            while pieces.send(Bytes::from_static(b"a line\n")).await.is_ok() {
                sent += 1;
            }
            tell.send(sent).unwrap();
        });
        assert_eq!(over.await.unwrap(), STREAM_PIECES);
        let mut body = answer.into_body();
        let first = body.frame().await.unwrap();
        assert!(
            first.is_err(),
            "no piece is kept, and none is taken for the whole"
        );
    }

    #[tokio::test]
    async fn makers_wait_for_room_and_are_told_when_the_reader_goes() {
        let (pieces, unsent) = pieces::channel();
        for _ in 0..STREAM_PIECES {
            pieces.send(Bytes::from_static(b"x")).await.unwrap();
        }
        let other = pieces.clone();
        let mut waiting = [&pieces, &other].map(|it| Box::pin(it.send(Bytes::from_static(b"y"))));
        for sending in &mut waiting {
            assert!(sending.now_or_never().is_none());
        }
        let mut taken = futures_util::stream::poll_fn(|context| unsent.poll(context));
        futures_util::StreamExt::next(&mut taken)
            .await
            .unwrap()
            .unwrap();
        let [first, second] = waiting;
        let sent = futures_util::future::select(first, second).await;
        let (futures_util::future::Either::Left((sent, rest))
        | futures_util::future::Either::Right((sent, rest))) = sent;
        assert!(sent.is_ok());
        let closed = pieces.closed();
        drop(unsent);
        assert!(rest.await.is_err() && pieces.is_closed());
        closed.await;
    }
}
