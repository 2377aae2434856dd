//! Runs the program when it is process 1 of a container. Every orphaned process becomes a child of process 1, which must wait for
//! it, but process 1 must not wait for children that the program started itself. So process 1 only waits: the program runs as its
//! child, and gets the signals that ask it to end.

#![expect(clippy::disallowed_methods, reason = "the program itself")]

use std::ffi::OsString;
use std::io::{self, IsTerminal as _};
use std::os::unix::process::CommandExt as _;
use std::process::{Command, ExitCode};

use rustix::process::{Pid, Signal, WaitOptions, WaitStatus, getpid, kill_process, wait};
use rustix::termios::tcsetpgrp;
use tokio::runtime::Builder;
use tokio::signal::unix::{SignalKind, signal};

use crate::supervisor::OWN_PROGRAM;

const ENDED_BY_SIGNAL: i32 = 128;

/// If this is process 1, runs the program in another process, waits for all orphans, and returns the program's exit code.
pub(crate) fn wait_for_all(arguments: &[OsString]) -> Option<io::Result<ExitCode>> {
    if getpid() != Pid::INIT {
        return None;
    }
    let runtime = Builder::new_current_thread().enable_io().build();
    Some(runtime.and_then(|runtime| runtime.block_on(run(arguments))))
}

async fn run(arguments: &[OsString]) -> io::Result<ExitCode> {
    let mut ended = signal(SignalKind::child())?;
    let mut terminate = signal(SignalKind::terminate())?;
    let mut interrupt = signal(SignalKind::interrupt())?;
    let (name, rest) = arguments.split_at(arguments.len().min(1));
    let mut command = Command::new(OWN_PROGRAM);
    command.args(rest).process_group(0);
    if let [name] = name {
        command.arg0(name);
    }
    let program = Pid::from_child(&command.spawn()?);
    if io::stdin().is_terminal() {
        // Then the program receives Ctrl-C only once, and not again from this process.
        tcsetpgrp(io::stdin(), program)?;
        // The program was stopped if it has read from the terminal before.
        kill_process(program, Signal::CONT)?;
    }
    loop {
        while let Some((process, status)) = wait(WaitOptions::NOHANG)? {
            if process == program {
                return Ok(ExitCode::from(exit_code(status)));
            }
        }
        let asked = tokio::select! {
            _ = ended.recv() => continue,
            _ = terminate.recv() => Signal::TERM,
            _ = interrupt.recv() => Signal::INT,
        };
        kill_process(program, asked)?;
    }
}

fn exit_code(status: WaitStatus) -> u8 {
    let by_signal = || Some(ENDED_BY_SIGNAL + status.terminating_signal()?);
    let code = status.exit_status().or_else(by_signal);
    code.and_then(|code| u8::try_from(code).ok())
        .unwrap_or(u8::MAX)
}
