//! A copy of the first bytes of a connection: hyper changes the case of header names, and answers malformed requests itself.

use std::io;
use std::pin::Pin;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll};

use bytes::Bytes;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};

use super::head;
use crate::limits::{BODY_BYTES, HEAD_BYTES};

/// The length of `HTTP/1.1 400`.
const STATUS_LINE: usize = 12;

/// The first bytes of a connection.
#[derive(Clone, Default)]
pub(crate) struct Received(Arc<Mutex<Copied>>);

#[derive(Default)]
struct Copied {
    bytes: Vec<u8>,
    /// Whether more has arrived.
    is_cut: bool,
    is_request: bool,
    /// The beginning of the answer: `HTTP/1.1 400`.
    answer: Vec<u8>,
}

impl Received {
    fn lock(&self) -> MutexGuard<'_, Copied> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The head of a request that hyper has accepted.
    pub(crate) fn head(&self) -> Bytes {
        let mut copied = self.lock();
        copied.is_request = true;
        let length = head::length(&copied.bytes).unwrap_or(copied.bytes.len());
        Bytes::copy_from_slice(&copied.bytes[..length])
    }

    /// What has arrived after the head, and whether that is not all.
    pub(crate) fn body(&self, head: usize) -> (Bytes, bool) {
        let copied = self.lock();
        let body = copied.bytes.get(head..).unwrap_or_default();
        let kept = &body[..body.len().min(BODY_BYTES)];
        let is_cut = copied.is_cut || kept.len() < body.len();
        (Bytes::copy_from_slice(kept), is_cut)
    }

    /// All bytes, if they are no request, and the status of the answer.
    pub(crate) fn refused(&self) -> Option<(Bytes, String)> {
        let copied = self.lock();
        let kept = &copied.bytes[..copied.bytes.len().min(HEAD_BYTES)];
        let status = String::from_utf8_lossy(copied.answer.get(9..).unwrap_or(b"none"));
        let is_refused = !copied.is_request && !kept.is_empty();
        is_refused.then(|| (Bytes::copy_from_slice(kept), status.into_owned()))
    }
}

/// A connection whose first bytes are copied as they are read.
pub(crate) struct Copying<S> {
    stream: S,
    received: Received,
}

impl<S> Copying<S> {
    pub(crate) fn new(stream: S, received: Received) -> Self {
        Self { stream, received }
    }
}

impl<S: AsyncRead + Unpin> AsyncRead for Copying<S> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let before = buffer.filled().len();
        let polled = Pin::new(&mut self.stream).poll_read(context, buffer);
        let arrived = &buffer.filled()[before..];
        let mut copied = self.received.lock();
        let room = HEAD_BYTES + BODY_BYTES - copied.bytes.len();
        copied.is_cut |= arrived.len() > room;
        copied.bytes.extend(&arrived[..arrived.len().min(room)]);
        drop(copied);
        polled
    }
}

impl<S: AsyncWrite + Unpin> AsyncWrite for Copying<S> {
    fn poll_write(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        let mut copied = self.received.lock();
        let missing = STATUS_LINE - copied.answer.len();
        copied.answer.extend(bytes.iter().take(missing));
        drop(copied);
        Pin::new(&mut self.stream).poll_write(context, bytes)
    }

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_flush(context)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_shutdown(context)
    }
}
