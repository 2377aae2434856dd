//! Runs a program with a deadline and bounded output. No process remains, even if the daemon stops in between.

#![expect(
    clippy::disallowed_methods,
    reason = "the daemon's one home of starting a program: `git` for remotes, and the operator's command for a token"
)]

use std::ffi::OsStr;
use std::io::{self, PipeReader, PipeWriter, Read, Write as _};
use std::os::fd::AsFd;
use std::os::unix::process::CommandExt;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags, poll};
use rustix::io::Errno;
use rustix::process::{Pid, Resource, Rlimit, Signal, WaitId, WaitIdOptions};

use super::calls::{Calls, Ended as AllEnded, Patience};
use super::limits;

pub(super) struct Process<'a> {
    /// Created by [`command`].
    pub command: Command,
    /// The input of the program. No other process sees it.
    pub input: Option<&'a [u8]>,
    pub deadline: Duration,
    pub output_bytes: usize,
    /// The most bytes that the program may write into one file.
    pub file_bytes: Option<u64>,
    pub calls: &'a Calls,
}

/// The result of a program that was not killed.
#[derive(Debug)]
pub(super) struct Ended {
    pub status: ExitStatus,
    pub output: Vec<u8>,
    pub complaint: String,
}

#[derive(Debug)]
pub(super) enum CallError {
    NotInstalled,
    TimedOut,
    Stopped,
    TooMuchOutput,
    Io(io::Error),
}

/// A command in its own process group, without input. Its output is piped.
pub(super) fn command(program: &OsStr) -> Command {
    let mut command = Command::new(program);
    command
        .current_dir("/")
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .process_group(0);
    command
}

/// Starts the program and waits for its end. At the deadline, or when all calls are ended, the program and its children
/// are killed.
pub(super) fn run(mut process: Process<'_>) -> Result<Ended, CallError> {
    let _running = process
        .calls
        .begin()
        .map_err(|AllEnded| CallError::Stopped)?;
    if process.input.is_some() {
        process.command.stdin(Stdio::piped());
    }
    // The write end of this pipe closes when the program has ended, which the readers notice. No error may return
    // between the start of the program and the wait for its end.
    let pipe = io::pipe().map_err(CallError::Io)?;
    let mut child = process
        .command
        .spawn()
        .map_err(|error| match error.kind() {
            io::ErrorKind::NotFound => CallError::NotInstalled,
            _ => CallError::Io(error),
        })?;
    let group = Pid::from_child(&child);
    if process.file_bytes.is_some() {
        // If the limit cannot be set, the deadline still applies.
        let _unlimited = rustix::process::prlimit(
            Some(group),
            Resource::Fsize,
            Rlimit {
                current: process.file_bytes,
                maximum: process.file_bytes,
            },
        );
    }
    supervise(&mut child, group, &process, pipe)
}

/// Waits without reaping the child, so that the process group's id stays valid until the last signal.
fn supervise(
    child: &mut Child,
    group: Pid,
    process: &Process<'_>,
    (ended, running): (PipeReader, PipeWriter),
) -> Result<Ended, CallError> {
    let stdin = child.stdin.take();
    let stdout = child.stdout.take();
    let stderr = child.stderr.take();
    let is_done = AtomicBool::new(false);
    let ended = &ended;
    let deadline = Instant::now() + process.deadline;
    thread::scope(|scope| {
        scope.spawn(|| {
            if let (Some(mut pipe), Some(input)) = (stdin, process.input) {
                // The program may end without reading its input.
                let _unread = pipe.write_all(input);
            }
        });
        let output = scope.spawn(|| {
            let bound = process.output_bytes;
            stdout.map_or(Ok(Some(Vec::new())), |pipe| {
                read_bounded(UntilEnd::of(pipe, ended), bound)
            })
        });
        let complaint = scope.spawn(|| {
            stderr.map_or(Ok(String::new()), |pipe| {
                read_end(UntilEnd::of(pipe, ended))
            })
        });
        let watchdog = scope.spawn(|| {
            let is_done = || is_done.load(Ordering::SeqCst);
            let patience = process.calls.watch(deadline, is_done);
            if patience != Patience::Done {
                kill(group);
            }
            patience
        });
        let waited = rustix::process::waitid(
            WaitId::Pid(group),
            WaitIdOptions::EXITED | WaitIdOptions::NOWAIT,
        );
        is_done.store(true, Ordering::SeqCst);
        process.calls.recheck();
        let patience = watchdog.join().unwrap_or(Patience::Done);
        kill(group);
        let status = child.wait();
        drop(running);
        let output = joined(output.join());
        let complaint = joined(complaint.join());

        waited.map_err(|error| CallError::Io(error.into()))?;
        match patience {
            Patience::Done => {}
            Patience::TimedOut => return Err(CallError::TimedOut),
            Patience::Ended => return Err(CallError::Stopped),
        }
        Ok(Ended {
            status: status.map_err(CallError::Io)?,
            output: output
                .map_err(CallError::Io)?
                .ok_or(CallError::TooMuchOutput)?,
            complaint: complaint.map_err(CallError::Io)?,
        })
    })
}

/// The group no longer exists if only its leader was in it.
fn kill(group: Pid) {
    let _gone = rustix::process::kill_process_group(group, Signal::KILL);
}

fn joined<T>(result: thread::Result<io::Result<T>>) -> io::Result<T> {
    result.unwrap_or_else(|_| Err(io::Error::other("a reader of the output ended")))
}

/// The output of a program. A child that has left the program's group may hold the pipe open forever. So after the end
/// of the program, only the present content of the pipe is read.
struct UntilEnd<'a, P> {
    pipe: P,
    ended: &'a PipeReader,
    /// Bytes that may still be read after the end: the capacity of a pipe.
    left: usize,
}

impl<'a, P> UntilEnd<'a, P> {
    fn of(pipe: P, ended: &'a PipeReader) -> Self {
        let left = limits::PIPE_BYTES;
        Self { pipe, ended, left }
    }
}

impl<P: Read + AsFd> Read for UntilEnd<'_, P> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let (has_output, has_ended) = loop {
            let mut waited = [
                PollFd::new(&self.pipe, PollFlags::IN),
                PollFd::new(self.ended, PollFlags::IN),
            ];
            match poll(&mut waited, None) {
                Ok(_) => {
                    break (
                        !waited[0].revents().is_empty(),
                        !waited[1].revents().is_empty(),
                    );
                }
                Err(Errno::INTR) => {}
                Err(error) => return Err(error.into()),
            }
        };
        if !has_output {
            return Ok(0);
        }
        let most = if has_ended {
            self.left.min(buffer.len())
        } else {
            buffer.len()
        };
        let length = self.pipe.read(&mut buffer[..most])?;
        if has_ended {
            self.left -= length;
        }
        Ok(length)
    }
}

/// The whole output, or none if it exceeds the limit. Dropping the pipe then ends the program.
fn read_bounded(mut pipe: impl Read, bound: usize) -> io::Result<Option<Vec<u8>>> {
    let mut bytes = Vec::new();
    pipe.by_ref()
        .take(bound as u64 + 1)
        .read_to_end(&mut bytes)?;
    Ok((bytes.len() <= bound).then_some(bytes))
}

/// The last bytes of a stream. The whole stream is read, so that its writer never blocks.
fn read_end(mut pipe: impl Read) -> io::Result<String> {
    let mut end = Vec::new();
    let mut piece = [0; 4096];
    loop {
        let length = pipe.read(&mut piece)?;
        if length == 0 {
            return Ok(String::from_utf8_lossy(&end).into_owned());
        }
        end.extend_from_slice(&piece[..length]);
        let excess = end.len().saturating_sub(limits::COMPLAINT_BYTES);
        end.drain(..excess);
    }
}
