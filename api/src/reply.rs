//! Responses.

use std::io;
use std::panic::AssertUnwindSafe;
use std::sync::{Arc, Mutex, PoisonError, Weak};
use std::task::{Context, Poll};

use bytes::Bytes;
use futures_util::FutureExt;
use http::StatusCode;
use http::header::{CACHE_CONTROL, CONTENT_TYPE, ETAG, HeaderName, HeaderValue, WWW_AUTHENTICATE};
use serde::Serialize;
use tokio::sync::mpsc;
use warp::Reply;
use warp::reply::Response;

use crate::failure::Failure;
use crate::limits::{READER_PAUSE, STREAM_PIECES};
use crate::precondition::etag;

/// Most documents fit and are written without a reallocation.
const ORDINARY_BYTES: usize = 1000;

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

pub(crate) fn ok<T: Serialize>(body: &T) -> Response {
    json(StatusCode::OK, body)
}

/// A JSON document with the ETag of its version.
pub(crate) fn versioned<T: Serialize>(body: &T, version: u64) -> Response {
    let mut response = ok(body);
    set(&mut response, ETAG, &etag(version));
    response
}

pub(crate) fn empty() -> Response {
    StatusCode::NO_CONTENT.into_response()
}

pub(crate) fn not_modified(etag: &str) -> Response {
    let mut response = StatusCode::NOT_MODIFIED.into_response();
    set(&mut response, ETAG, etag);
    response
}

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

/// Adds a header, beside others with this name.
pub(crate) fn add(response: &mut Response, name: HeaderName, value: &str) {
    if let Ok(value) = HeaderValue::from_str(value) {
        response.headers_mut().append(name, value);
    }
}

/// Sets a header to a static value, without a copy.
pub(crate) fn set_static(response: &mut Response, name: HeaderName, value: &'static str) {
    let value = HeaderValue::from_static(value);
    response.headers_mut().insert(name, value);
}

#[derive(Clone)]
pub(crate) struct Pieces {
    sender: mpsc::Sender<Bytes>,
    /// The response owns it.
    waiting: Weak<Mutex<Waiting>>,
}

struct Waiting {
    pieces: mpsc::Receiver<Bytes>,
    is_cut_off: bool,
}

/// The reader left, or it paused for so long that the response was ended.
#[derive(Debug)]
pub(crate) struct Unread;

impl Pieces {
    /// Sends the next piece. Waits while too many pieces are unread.
    pub(crate) async fn send(&self, piece: Bytes) -> Result<(), Unread> {
        match tokio::time::timeout(READER_PAUSE, self.sender.send(piece)).await {
            Ok(sent) => sent.map_err(|_| Unread),
            Err(_) => {
                self.cut_off();
                self.with_waiting(|waiting| {
                    waiting.pieces.close();
                    while waiting.pieces.try_recv().is_ok() {}
                });
                Err(Unread)
            }
        }
    }

    /// Ends an incomplete response. The connection breaks, so the reader cannot take the part for the whole.
    pub(crate) fn cut_off(&self) {
        self.with_waiting(|waiting| waiting.is_cut_off = true);
    }

    pub(crate) fn is_closed(&self) -> bool {
        self.sender.is_closed()
    }

    pub(crate) async fn closed(&self) {
        self.sender.closed().await;
    }

    fn with_waiting(&self, work: impl FnOnce(&mut Waiting)) {
        if let Some(waiting) = self.waiting.upgrade() {
            work(&mut waiting.lock().unwrap_or_else(PoisonError::into_inner));
        }
    }
}

impl Waiting {
    fn poll(&mut self, context: &mut Context<'_>) -> Poll<Option<io::Result<Bytes>>> {
        match self.pieces.poll_recv(context) {
            Poll::Ready(None) if std::mem::take(&mut self.is_cut_off) => {
                Poll::Ready(Some(Err(io::Error::other("the answer was cut off"))))
            }
            polled => polled.map(|piece| piece.map(Ok)),
        }
    }
}

/// A response that is produced while it is read, never more than a few pieces ahead of the reader.
pub(crate) fn streamed<F>(kind: &str, produce: impl FnOnce(Pieces) -> F) -> Response
where
    F: Future<Output = ()> + Send + 'static,
{
    let (sender, pieces) = mpsc::channel(STREAM_PIECES);
    let waiting = Arc::new(Mutex::new(Waiting {
        pieces,
        is_cut_off: false,
    }));
    let pieces = Pieces {
        sender,
        waiting: Arc::downgrade(&waiting),
    };
    let last = pieces.clone();
    let work = AssertUnwindSafe(produce(pieces)).catch_unwind();
    tokio::spawn(async move {
        if work.await.is_err() {
            tracing::error!("a handler panicked while its answer was being read");
            last.cut_off();
        }
    });
    let mut response = warp::reply::stream(futures_util::stream::poll_fn(move |context| {
        let mut waiting = waiting.lock().unwrap_or_else(PoisonError::into_inner);
        waiting.poll(context)
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
    async fn a_stream_breaks_off_if_its_producer_panics() {
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
    async fn a_reader_that_pauses_too_long_is_disconnected_and_loses_the_pieces() {
        let (report, over) = tokio::sync::oneshot::channel();
        let answer = streamed("text/plain", async move |pieces: Pieces| {
            let mut sent = 0;
            while pieces.send(Bytes::from_static(b"a line\n")).await.is_ok() {
                sent += 1;
            }
            report.send(sent).unwrap();
        });
        assert_eq!(over.await.unwrap(), STREAM_PIECES);
        let mut body = answer.into_body();
        let first = body.frame().await.unwrap();
        assert!(
            first.is_err(),
            "no piece is kept, and the response does not seem complete"
        );
    }
}
