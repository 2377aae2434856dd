//! The pieces of a streamed answer on their way from the task that makes them to the connection.
//!
//! It is small: each open page of a browser has one all the time. tokio's channels reserve room for 32 pieces.

use std::collections::VecDeque;
use std::io;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll, Waker};

use bytes::Bytes;
use tokio::sync::Notify;

use crate::limits::{READER_PAUSE, STREAM_PIECES};

/// A new answer: the side that makes pieces, and the side that sends them.
pub(super) fn channel() -> (Pieces, Unsent) {
    let shared = Arc::new(Shared::default());
    shared.state().makers = 1;
    (Pieces(shared.clone()), Unsent(shared))
}

/// The sending side of a streamed response. The response ends when the last one is dropped.
pub(crate) struct Pieces(Arc<Shared>);

/// Pieces that wait for the reader.
pub(super) struct Unsent(Arc<Shared>);

#[derive(Default)]
struct Shared {
    state: Mutex<State>,
    /// A piece was taken, or the reader is gone.
    room: Notify,
    /// The reader is gone.
    gone: Notify,
}

#[derive(Default)]
struct State {
    pieces: VecDeque<Bytes>,
    makers: usize,
    /// No more pieces are taken.
    is_closed: bool,
    is_cut_off: bool,
    reader: Option<Waker>,
}

/// The reader is gone, or did not read for so long that the response was ended.
#[derive(Debug)]
pub(crate) struct Unread;

impl Shared {
    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Takes no more pieces, and wakes those who wait to send one.
    fn close(&self, state: &mut State) {
        state.is_closed = true;
        state.pieces.clear();
        self.room.notify_waiters();
        self.gone.notify_waiters();
    }
}

impl State {
    fn wake(&mut self) {
        if let Some(reader) = self.reader.take() {
            reader.wake();
        }
    }
}

impl Pieces {
    /// Sends the next piece, a few ahead of the reader.
    pub(crate) async fn send(&self, piece: Bytes) -> Result<(), Unread> {
        match tokio::time::timeout(READER_PAUSE, self.push(piece)).await {
            Ok(sent) => sent,
            Err(_) => {
                let mut state = self.0.state();
                state.is_cut_off = true;
                self.0.close(&mut state);
                state.wake();
                Err(Unread)
            }
        }
    }

    async fn push(&self, piece: Bytes) -> Result<(), Unread> {
        loop {
            // Before the look, so that no place that becomes free in between is missed.
            let room = self.0.room.notified();
            {
                let mut state = self.0.state();
                if state.is_closed {
                    return Err(Unread);
                }
                if state.pieces.len() < STREAM_PIECES {
                    state.pieces.push_back(piece);
                    state.wake();
                    return Ok(());
                }
            }
            room.await;
        }
    }

    /// Ends an incomplete response: the reader sees its connection break, and cannot take the part for the whole.
    pub(crate) fn cut_off(&self) {
        self.0.state().is_cut_off = true;
    }

    /// Whether the reader is gone.
    pub(crate) fn is_closed(&self) -> bool {
        self.0.state().is_closed
    }

    /// Waits until the reader is gone.
    pub(crate) async fn closed(&self) {
        loop {
            let gone = self.0.gone.notified();
            if self.is_closed() {
                return;
            }
            gone.await;
        }
    }
}

impl Clone for Pieces {
    fn clone(&self) -> Self {
        self.0.state().makers += 1;
        Self(self.0.clone())
    }
}

impl Drop for Pieces {
    fn drop(&mut self) {
        let mut state = self.0.state();
        state.makers -= 1;
        if state.makers == 0 {
            state.wake();
        }
    }
}

impl Unsent {
    /// The next piece; none at the end.
    pub(super) fn poll(&self, context: &Context<'_>) -> Poll<Option<io::Result<Bytes>>> {
        let mut state = self.0.state();
        if let Some(piece) = state.pieces.pop_front() {
            self.0.room.notify_one();
            return Poll::Ready(Some(Ok(piece)));
        }
        if state.makers > 0 && !state.is_closed {
            state.reader = Some(context.waker().clone());
            return Poll::Pending;
        }
        match std::mem::take(&mut state.is_cut_off) {
            true => Poll::Ready(Some(Err(io::Error::other("the answer was cut off")))),
            false => Poll::Ready(None),
        }
    }
}

impl Drop for Unsent {
    fn drop(&mut self) {
        let mut state = self.0.state();
        self.0.close(&mut state);
    }
}
