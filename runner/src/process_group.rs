//! The one place that starts processes, through a launcher (`launcher.rs`). A script leads a session and a process group,
//! and the whole group ends with it: SIGTERM first, and SIGKILL after the grace period. A process that left the group
//! (`setsid`) ends with the job (`escaped.rs`).

#![expect(
    clippy::disallowed_methods,
    reason = "the runner's one home of starting a program"
)]

use std::ffi::{OsStr, OsString};
use std::io::{self, PipeReader, Read as _};
use std::os::unix::process::ExitStatusExt as _;
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::time::Duration;

use rustix::io::Errno;
use rustix::process::{Pid, Signal, kill_process, kill_process_group, test_kill_process_group};
use tokio::net::unix::pipe;
use tokio::process::{Child, Command};
use tokio::time::{Instant, sleep};

use crate::launcher::{ARGUMENT, BEGUN};
use crate::limits;

/// What to start.
#[derive(Debug)]
pub(crate) struct Invocation<'a> {
    /// The runner's own program, which becomes the other one.
    pub(crate) launcher: &'a Path,
    /// The executable.
    pub(crate) program: &'a Path,
    /// Its arguments.
    pub(crate) arguments: &'a [OsString],
    /// Its whole environment.
    pub(crate) environment: &'a [(OsString, OsString)],
    /// Where it starts.
    pub(crate) folder: &'a Path,
}

/// A started process that leads its group.
#[derive(Debug)]
pub(crate) struct ProcessGroup {
    leader: Child,
    id: Pid,
    /// What the launcher says.
    report: PipeReader,
    program: PathBuf,
}

/// The outputs of a process, as pipes that never block the reader.
#[derive(Debug)]
pub(crate) struct Output {
    pub(crate) stdout: pipe::Receiver,
    pub(crate) stderr: pipe::Receiver,
}

/// How a leader ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Exit {
    /// By itself, with this exit code.
    Code(i32),
    /// By this signal.
    Signal(i32),
}

/// Why it is not known how a leader ended.
#[derive(Debug, thiserror::Error)]
pub(crate) enum LeaderError {
    /// It could not become the program.
    #[error("cannot start {}: {reason}", program.display())]
    Start { program: PathBuf, reason: String },
    #[error("cannot wait for the script: {0}")]
    Wait(#[from] io::Error),
}

impl ProcessGroup {
    /// Starts a process with nothing on stdin and both outputs piped.
    ///
    /// # Errors
    /// An I/O error, for example if the environment is too large. That the program does not exist is known when the leader
    /// has ended.
    pub(crate) fn spawn(invocation: &Invocation<'_>) -> io::Result<(Self, Output)> {
        let (report, reporter) = io::pipe()?;
        // It leads no group: it could not make a session then.
        let mut leader = Command::new(invocation.launcher)
            .arg(ARGUMENT)
            .arg(invocation.program)
            .args(invocation.arguments)
            .env_clear()
            .envs(
                invocation
                    .environment
                    .iter()
                    .map(|(name, value)| (name, value)),
            )
            .current_dir(invocation.folder)
            .stdin(reporter)
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .kill_on_drop(true)
            .spawn()?;
        let lost = || io::Error::other("the new process has lost its pipes");
        let id = leader
            .id()
            .and_then(|id| Pid::from_raw(i32::try_from(id).ok()?))
            .ok_or_else(lost)?;
        let stdout = leader.stdout.take().ok_or_else(lost)?.into_owned_fd()?;
        let stderr = leader.stderr.take().ok_or_else(lost)?.into_owned_fd()?;
        let output = Output {
            stdout: pipe::Receiver::from_owned_fd(stdout)?,
            stderr: pipe::Receiver::from_owned_fd(stderr)?,
        };
        let group = Self {
            leader,
            id,
            report,
            program: invocation.program.to_owned(),
        };
        Ok((group, output))
    }

    /// Waits for the leader alone. `None` if Ctrl-C on the runner's terminal has ended it before it became the program.
    ///
    /// # Errors
    /// [`LeaderError`].
    pub(crate) async fn exited(&mut self) -> Result<Option<Exit>, LeaderError> {
        let status = self.leader.wait().await?;
        // The launcher's end of the pipe is closed: it has become the program or has ended.
        let mut report = Vec::new();
        self.report.read_to_end(&mut report)?;
        let begun = report.strip_prefix(BEGUN);
        let error = begun.unwrap_or(&report);
        if !error.is_empty() {
            return Err(LeaderError::Start {
                program: self.program.clone(),
                reason: String::from_utf8_lossy(error).into_owned(),
            });
        }
        let signal = status.signal().unwrap_or_default();
        let of_terminal = [Signal::INT, Signal::QUIT].map(Signal::as_raw);
        Ok(match status.code() {
            Some(code) => Some(Exit::Code(code)),
            None if begun.is_none() && of_terminal.contains(&signal) => None,
            None => Some(Exit::Signal(signal)),
        })
    }

    /// Ends what is left of the group and waits until it is gone. If nothing is left, this is one system call.
    pub(crate) async fn end(mut self, grace: Duration) {
        if !self.signal(Signal::TERM) {
            return;
        }
        if self.gone_within(grace).await {
            return;
        }
        if self.signal(Signal::KILL) && !self.gone_within(limits::AFTER_KILL).await {
            tracing::warn!(
                group = self.id.as_raw_nonzero(),
                "a process has survived SIGKILL"
            );
        }
    }

    /// Whether the signal reached anyone.
    fn signal(&self, signal: Signal) -> bool {
        match kill_process_group(self.id, signal) {
            Ok(()) => true,
            // A launcher that has not left the runner's group yet. Its id is its own until it was waited for.
            Err(Errno::SRCH) if self.leader.id().is_some() => kill_process(self.id, signal).is_ok(),
            Err(Errno::SRCH) => false,
            Err(error) => {
                tracing::warn!(group = self.id.as_raw_nonzero(), %error, "cannot signal a process group");
                false
            }
        }
    }

    async fn gone_within(&mut self, patience: Duration) -> bool {
        let deadline = Instant::now() + patience;
        let mut pause = limits::FIRST_LOOK;
        loop {
            // An error means that the child is gone.
            let leader_ended = !matches!(self.leader.try_wait(), Ok(None));
            if leader_ended && !has_living_members(self.id) {
                return true;
            }
            let left = deadline.saturating_duration_since(Instant::now());
            if left.is_zero() {
                return false;
            }
            sleep(pause.min(left)).await;
            pause = (pause * 2).min(limits::LAST_LOOK);
        }
    }
}

impl Drop for ProcessGroup {
    /// If a worker is dropped halfway, its group must not survive.
    fn drop(&mut self) {
        if matches!(self.leader.try_wait(), Ok(None)) {
            self.signal(Signal::KILL);
        }
    }
}

/// Whether any process of the group still runs. The leader must have been waited for.
fn has_living_members(group: Pid) -> bool {
    test_kill_process_group(group).is_ok() && !consists_of_zombies(group)
}

/// Whether every member is a zombie, which the signal test cannot tell. Some init processes take seconds to wait for
/// zombies.
fn consists_of_zombies(group: Pid) -> bool {
    let Ok(processes) = std::fs::read_dir("/proc") else {
        return false;
    };
    !processes.flatten().any(|process| {
        std::fs::read_to_string(process.path().join("stat"))
            .is_ok_and(|stat| is_living_member(&stat, group.as_raw_nonzero().get()))
    })
}

/// Reads a line of `/proc/<id>/stat`: `id (name) state parent group …`. The name may have any characters.
fn is_living_member(stat: &str, group: i32) -> bool {
    let Some((_, fields)) = stat.rsplit_once(") ") else {
        return false;
    };
    let mut fields = fields.split(' ');
    let state = fields.next();
    let member_of = fields.nth(1).and_then(|field| field.parse().ok());
    member_of == Some(group) && !matches!(state, Some("Z" | "X"))
}

/// The executable that a shell would start for `program`. A path is used as it is, relative to `folder`; a bare name is
/// searched for in `path`.
pub(crate) fn find_program(program: &str, path: Option<&OsStr>, folder: &Path) -> Option<PathBuf> {
    if program.contains('/') {
        let program = folder.join(program);
        return is_executable(&program).then_some(program);
    }
    std::env::split_paths(path?)
        .map(|entry| folder.join(entry).join(program))
        .find(|candidate| is_executable(candidate))
}

fn is_executable(path: &Path) -> bool {
    use std::os::unix::fs::PermissionsExt as _;
    std::fs::metadata(path)
        .is_ok_and(|metadata| metadata.is_file() && metadata.permissions().mode() & 0o111 != 0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_state_is_read_after_the_name() {
        assert!(is_living_member("7 (a) b) S 1 42 42 0", 42));
        assert!(!is_living_member("7 (sh) Z 1 42 42 0", 42));
        assert!(!is_living_member("7 (sh) S 1 41 42 0", 42));
        assert!(!is_living_member("", 42));
    }

    #[test]
    fn programs_are_found_as_a_shell_finds_them() {
        let folder = Path::new("/");
        let path = Some(OsStr::new("/nowhere:/bin"));
        assert_eq!(
            find_program("sh", path, folder),
            Some(PathBuf::from("/bin/sh"))
        );
        assert_eq!(
            find_program("bin/sh", path, folder),
            Some(PathBuf::from("/bin/sh"))
        );
        assert_eq!(
            find_program("/bin/sh", None, folder),
            Some(PathBuf::from("/bin/sh"))
        );
        assert_eq!(find_program("no-such-shell", path, folder), None);
        assert_eq!(find_program("sh", None, folder), None);
        assert_eq!(find_program("/bin", path, folder), None);
    }
}
