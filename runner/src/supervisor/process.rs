//! The supervisor itself: a process with one thread. It starts the steps of a job, one after the other, and is the parent of all
//! their processes, even if they change their group, session or environment. It ends with the runner, or after a long idle time.

#![expect(clippy::disallowed_methods, reason = "the home of starting a step")]

use std::ffi::OsString;
use std::io;
use std::os::fd::AsFd as _;
use std::os::unix::net::UnixStream as StdStream;
use std::os::unix::process::CommandExt as _;
use std::process::{Command, ExitCode, Stdio};
use std::time::Duration;

use rustix::io::Errno;
use rustix::process::{
    Pid, Signal as Number, WaitOptions, chdir, getpid, set_child_subreaper, setsid,
    test_kill_process_group, wait,
};
use tokio::net::UnixStream;
use tokio::runtime::Builder;
use tokio::signal::unix::{Signal, SignalKind, signal};
use tokio::time::{Instant, timeout};

use super::message::{Answering, Exit, Reply, Request, Start};
use crate::processes;

/// The first argument of a supervisor. The grace period and the longest idle time follow, in milliseconds.
pub(super) const ARGUMENT: &str = "supervise-steps";

const NAME: &std::ffi::CStr = c"everscan-steps";

/// Signals that show a defect of the program itself. Other signals must not end it: they are meant for steps or come from steps.
const DEFECTS: [Number; 4] = [Number::ABORT, Number::BUS, Number::SYS, Number::TRAP];

/// Supervises steps, if the arguments are those of a supervisor. Must be called before anything else.
pub(crate) fn supervise(arguments: &[OsString]) -> Option<ExitCode> {
    let [_, first, grace, idle] = arguments else {
        return None;
    };
    if first != ARGUMENT {
        return None;
    }
    let time = |text: &OsString| Some(Duration::from_millis(text.to_str()?.parse().ok()?));
    let done = run(time(grace)?, time(idle)?);
    // Nobody reads a message, so return only the exit code.
    Some(done.map_or(ExitCode::FAILURE, |()| ExitCode::SUCCESS))
}

fn run(grace: Duration, idle: Duration) -> io::Result<()> {
    // Steps have no terminal, and Ctrl-C reaches only the runner.
    setsid()?;
    set_child_subreaper(Some(getpid()))?;
    chdir("/")?;
    rustix::thread::set_name(NAME)?;
    let runtime = Builder::new_current_thread().enable_all().build()?;
    runtime.block_on(async {
        handle_signals();
        let socket = StdStream::from(io::stdin().as_fd().try_clone_to_owned()?);
        socket.set_nonblocking(true)?;
        let mut supervisor = Supervisor {
            runner: Answering::new(UnixStream::from_std(socket)?),
            child_ended: signal(SignalKind::child())?,
            grace,
        };
        // The supervisor was idle, or the runner is gone.
        let _ended = supervisor.serve(idle).await;
        end_all(grace).await;
        Ok(())
    })
}

/// A step starts with the default disposition of every signal, since `exec` resets signals that have a handler.
fn handle_signals() {
    for number in 1..=64 {
        if !DEFECTS.map(Number::as_raw).contains(&number) {
            // An error means that the kernel or the C library reserves the signal.
            let _unhandled = signal(SignalKind::from_raw(number));
        }
    }
}

struct Supervisor {
    runner: Answering,
    child_ended: Signal,
    grace: Duration,
}

impl Supervisor {
    /// Serves the runner until it is gone, or has had no job for a long time.
    async fn serve(&mut self, idle: Duration) -> io::Result<()> {
        loop {
            let request = if wait_for_ended(None).is_empty {
                timeout(idle, self.runner.request()).await??
            } else {
                self.request().await?
            };
            match request {
                Request::Start(start) => self.run(start).await?,
                // The step has ended meanwhile.
                Request::Stop => {}
                Request::Clear(grace) => {
                    let (is_empty, ended) = end_all(grace).await;
                    let ended = i32::try_from(ended).unwrap_or(i32::MAX);
                    let cleared = Reply::Cleared { is_empty, ended };
                    self.runner.reply(&[cleared]).await?;
                }
            }
        }
    }

    /// The next request. While it waits, it reaps processes that steps have left.
    async fn request(&mut self) -> io::Result<Request> {
        loop {
            tokio::select! {
                request = self.runner.request() => return request,
                _ = self.child_ended.recv() => {
                    wait_for_ended(None);
                }
            }
        }
    }

    async fn run(&mut self, start: Start) -> io::Result<()> {
        // Report this before the start, because the step may kill this process at once.
        self.runner.reply(&[Reply::Begun]).await?;
        let step = match spawn(start) {
            Ok(step) => step,
            Err(error) => {
                let number = error.raw_os_error().unwrap_or(Errno::INVAL.raw_os_error());
                return self.runner.reply(&[Reply::NotStarted(number)]).await;
            }
        };
        let ended = loop {
            let ended = wait_for_ended(Some(step));
            if ended.exit.is_some() {
                break ended;
            }
            tokio::select! {
                _ = self.child_ended.recv() => {}
                // While a step runs, only a stop can arrive.
                request = self.runner.request() => {
                    request?;
                    break ended;
                }
            }
        };
        let mut replies: Vec<_> = ended.exit.map(Reply::Exited).into_iter().collect();
        let mut is_empty = ended.is_empty;
        if !is_empty && test_kill_process_group(step).is_ok() {
            self.runner.reply(&replies).await?;
            replies.clear();
            self.end_group(step).await?;
            is_empty = wait_for_ended(None).is_empty;
        }
        replies.push(Reply::StepGone { is_empty });
        self.runner.reply(&replies).await
    }

    async fn end_group(&mut self, group: Pid) -> io::Result<()> {
        let find = || {
            wait_for_ended(None);
            test_kill_process_group(group).ok()?;
            let mut left = processes::descendants(|_| true);
            left.retain(|process| process.group == Some(group) && !process.is_zombie);
            (!left.is_empty()).then_some(left)
        };
        let ending = processes::end(find, Instant::now() + self.grace);
        tokio::pin!(ending);
        loop {
            tokio::select! {
                _ = &mut ending => return Ok(()),
                // The step ended just before the stop arrived, or the runner is gone.
                request = self.runner.request() => {
                    request?;
                }
            }
        }
    }
}

fn spawn(start: Start) -> io::Result<Pid> {
    let Ok([stdout, stderr]) = <[_; 2]>::try_from(start.outputs) else {
        return Err(Errno::MFILE.into());
    };
    let child = Command::new(start.program)
        .args(start.arguments)
        .env_clear()
        .envs(start.environment)
        .current_dir(start.folder)
        .process_group(0)
        .stdin(Stdio::null())
        .stdout(stdout)
        .stderr(stderr)
        .spawn()?;
    Ok(Pid::from_child(&child))
}

struct Ended {
    exit: Option<Exit>,
    is_empty: bool,
}

fn wait_for_ended(step: Option<Pid>) -> Ended {
    let mut exit = None;
    loop {
        let is_empty = match wait(WaitOptions::NOHANG) {
            Ok(Some((id, status))) => {
                if Some(id) == step {
                    let signal = || Exit::Signal(status.terminating_signal().unwrap_or_default());
                    exit = Some(status.exit_status().map_or_else(signal, Exit::Code));
                }
                continue;
            }
            Ok(None) => false,
            Err(_) => true,
        };
        return Ended { exit, is_empty };
    }
}

/// Ends all processes. Returns whether all have ended, and how many were signalled.
async fn end_all(grace: Duration) -> (bool, usize) {
    let find = || (!wait_for_ended(None).is_empty).then(|| processes::descendants(|_| true));
    let ended = processes::end(find, Instant::now() + grace).await;
    (wait_for_ended(None).is_empty, ended)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn other_arguments_start_no_supervisor() {
        for words in [
            &["everscand"][..],
            &["everscand", "run"],
            &["a", "b", "c", "d"],
            &["a", ARGUMENT],
            &["a", ARGUMENT, "b", "c"],
        ] {
            let arguments: Vec<OsString> = words.iter().map(OsString::from).collect();
            assert_eq!(supervise(&arguments), None);
        }
    }
}
