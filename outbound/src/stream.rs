//! A TCP stream that receives a bounded number of bytes, so that endless answers end.

use std::io;
use std::pin::Pin;
use std::task::{Context, Poll, ready};

use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::TcpStream;

use crate::error::too_much;

/// What one connection can receive, TLS included.
pub const RECEIVED_BYTES: usize = 64 * 1024;

/// A connection to a checked address.
#[derive(Debug)]
pub struct Stream {
    tcp: TcpStream,
    left: usize,
}

impl Stream {
    pub(crate) const fn new(tcp: TcpStream) -> Self {
        let left = RECEIVED_BYTES;
        Self { tcp, left }
    }
}

impl AsyncRead for Stream {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        if self.left == 0 {
            return Poll::Ready(Err(io::Error::other(too_much())));
        }
        let most = self.left.min(buffer.remaining());
        let mut bytes = ReadBuf::new(buffer.initialize_unfilled_to(most));
        ready!(Pin::new(&mut self.tcp).poll_read(context, &mut bytes))?;
        let length = bytes.filled().len();
        buffer.advance(length);
        self.left -= length;
        Poll::Ready(Ok(()))
    }
}

impl AsyncWrite for Stream {
    fn poll_write(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.tcp).poll_write(context, bytes)
    }

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.tcp).poll_flush(context)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.tcp).poll_shutdown(context)
    }
}
