//! The client against a server on a real socket.

#![expect(clippy::unwrap_used, reason = "a test may fail by panic")]

mod calls;
mod logs;
mod server;
mod tls;
mod transfers;
