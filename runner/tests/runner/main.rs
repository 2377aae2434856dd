//! The runner against a fake daemon on a real socket, executing real scripts.

#![expect(
    clippy::disallowed_methods,
    reason = "tests lay out files and start the programs they are about"
)]
#![cfg_attr(test, expect(clippy::unwrap_used, reason = "a test may fail by panic"))]

mod artifacts;
mod checkout;
mod commands;
mod fake_daemon;
mod harness;
mod logs;
mod outputs;
mod processes;
mod secrets;
mod session;
mod steps;
mod timeout;
