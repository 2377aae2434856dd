//! The one place that starts processes. A script runs in its own process group, and the whole group ends with it: SIGTERM
//! first, and SIGKILL after the grace period. A process that left the group (`setsid`) ends with the job (`escaped.rs`).

#![expect(
    clippy::disallowed_methods,
    reason = "the runner's one home of starting a program"
)]

use std::ffi::{OsStr, OsString};
use std::io;
use std::os::unix::process::ExitStatusExt as _;
use std::path::{Path, PathBuf};
use std::process::{ExitStatus, Stdio};
use std::time::Duration;

use rustix::io::Errno;
use rustix::process::{
    Pid, Signal, WaitOptions, kill_process_group, test_kill_process_group, waitpgid,
};
use tokio::net::unix::pipe;
use tokio::process::{Child, Command};
use tokio::time::{Instant, sleep};

use crate::limits;

/// What to start.
#[derive(Debug)]
pub(crate) struct Invocation<'a> {
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

impl From<ExitStatus> for Exit {
    fn from(status: ExitStatus) -> Self {
        match status.code() {
            Some(code) => Self::Code(code),
            None => Self::Signal(status.signal().unwrap_or_default()),
        }
    }
}

impl ProcessGroup {
    /// Starts a process with nothing on stdin and both outputs piped.
    ///
    /// # Errors
    /// An I/O error, for example if the program does not exist or the environment is too large.
    pub(crate) fn spawn(invocation: &Invocation<'_>) -> io::Result<(Self, Output)> {
        let mut leader = Command::new(invocation.program)
            .args(invocation.arguments)
            .env_clear()
            .envs(
                invocation
                    .environment
                    .iter()
                    .map(|(name, value)| (name, value)),
            )
            .current_dir(invocation.folder)
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .process_group(0)
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
        Ok((Self { leader, id }, output))
    }

    /// Waits for the leader alone.
    ///
    /// # Errors
    /// An I/O error.
    pub(crate) async fn exited(&mut self) -> io::Result<Exit> {
        self.leader.wait().await.map(Exit::from)
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
    // If the runner is process 1 of a container, orphans become its children: it has to wait for them.
    while matches!(waitpgid(group, WaitOptions::NOHANG), Ok(Some(_))) {}
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
