//! Runs the `git` program with a clean environment, a deadline and bounded output. It leaves no process behind, even if
//! the daemon stops meanwhile.
//!
//! Git runs no hook, does not prompt, reads no configuration of a user or the system, and uses only the protocol of the
//! URL. `remote` interprets its output.

#![expect(
    clippy::disallowed_methods,
    reason = "the daemon's one home of starting a program: `git` for remotes"
)]

use std::ffi::OsStr;
use std::io::{self, Read};
use std::os::unix::process::CommandExt;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use rustix::process::{Pid, Resource, Rlimit, Signal, WaitId, WaitIdOptions};

use super::calls::{Calls, Ended as AllEnded, Patience};
use super::limits;
use super::location::Protocol;

/// Environment variables that are passed to `git`: the search path, the key agent, the proxy and the certificates. All
/// others are removed.
const PASSED_ON: [&str; 8] = [
    "PATH",
    "SSH_AUTH_SOCK",
    "https_proxy",
    "HTTPS_PROXY",
    "no_proxy",
    "NO_PROXY",
    "SSL_CERT_FILE",
    "SSL_CERT_DIR",
];

const ENVIRONMENT: [(&str, &str); 11] = [
    ("HOME", "/dev/null"),
    ("LC_ALL", "C"),
    ("GIT_CONFIG_GLOBAL", "/dev/null"),
    ("GIT_CONFIG_NOSYSTEM", "1"),
    ("GIT_ATTR_NOSYSTEM", "1"),
    ("GIT_TERMINAL_PROMPT", "0"),
    ("GIT_ASKPASS", "/bin/false"),
    ("SSH_ASKPASS", "/bin/false"),
    ("GIT_OPTIONAL_LOCKS", "0"),
    ("GIT_CEILING_DIRECTORIES", "/"),
    (
        "GIT_SSH_COMMAND",
        "ssh -oBatchMode=yes -oStrictHostKeyChecking=yes -oConnectTimeout=20",
    ),
];

/// A very slow transfer counts as a hang. A transfer becomes one pack. No maintenance runs during or after it.
const CONFIGURATION: [&str; 11] = [
    "protocol.ext.allow=never",
    "protocol.file.allow=never",
    "core.hooksPath=/dev/null",
    "credential.helper=",
    "http.followRedirects=false",
    "http.lowSpeedLimit=1000",
    "http.lowSpeedTime=20",
    "gc.auto=0",
    "maintenance.auto=false",
    "fetch.unpackLimit=1",
    "submodule.recurse=false",
];

/// One call of the program.
pub(super) struct Call<'a> {
    /// The program's name or path.
    pub program: &'a OsStr,
    pub arguments: &'a [&'a OsStr],
    pub protocol: Protocol,
    pub deadline: Duration,
    /// Bytes the program may write into one file.
    pub file_bytes: u64,
    pub calls: &'a Calls,
}

/// The result of a program that ended by itself.
#[derive(Debug)]
pub(super) struct Ended {
    pub status: ExitStatus,
    pub output: Vec<u8>,
    /// The end of its error output.
    pub complaint: String,
}

#[derive(Debug)]
pub(super) enum CallError {
    NotInstalled,
    TimedOut,
    /// All calls were ended.
    Stopped,
    /// The output exceeds [`limits::LISTING_BYTES`].
    TooMuchOutput,
    Io(io::Error),
}

/// Starts the program and waits for its end. At the deadline, or when all calls are ended, it is killed with all its
/// children.
pub(super) fn run(call: &Call<'_>) -> Result<Ended, CallError> {
    let _running = call.calls.begin().map_err(|AllEnded| CallError::Stopped)?;
    let mut child = command(call).spawn().map_err(|error| match error.kind() {
        io::ErrorKind::NotFound => CallError::NotInstalled,
        _ => CallError::Io(error),
    })?;
    let group = Pid::from_child(&child);
    // If the limit cannot be set, the deadline still applies.
    let _unlimited = rustix::process::prlimit(
        Some(group),
        Resource::Fsize,
        Rlimit {
            current: Some(call.file_bytes),
            maximum: Some(call.file_bytes),
        },
    );
    supervise(&mut child, group, call)
}

fn command(call: &Call<'_>) -> Command {
    let mut command = Command::new(call.program);
    command
        .env_clear()
        .envs(
            PASSED_ON
                .iter()
                .filter_map(|name| Some((name, std::env::var_os(name)?))),
        )
        .envs(ENVIRONMENT)
        .env(
            "GIT_ALLOW_PROTOCOL",
            match call.protocol {
                Protocol::Https => "https",
                Protocol::LoopbackHttp => "http",
                Protocol::Ssh => "ssh",
            },
        )
        .current_dir("/")
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .process_group(0);
    for setting in CONFIGURATION {
        command.arg("-c").arg(setting);
    }
    command.args(call.arguments);
    command
}

/// Waits without reaping, so that the process group's id stays valid until the last signal.
fn supervise(child: &mut Child, group: Pid, call: &Call<'_>) -> Result<Ended, CallError> {
    let stdout = child.stdout.take();
    let stderr = child.stderr.take();
    let is_done = AtomicBool::new(false);
    let deadline = Instant::now() + call.deadline;
    thread::scope(|scope| {
        let output = scope.spawn(|| stdout.map_or(Ok(Some(Vec::new())), read_bounded));
        let complaint = scope.spawn(|| stderr.map_or(Ok(String::new()), read_end));
        let watchdog = scope.spawn(|| {
            let is_done = || is_done.load(Ordering::SeqCst);
            let patience = call.calls.watch(deadline, is_done);
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
        call.calls.look_again();
        let patience = watchdog.join().unwrap_or(Patience::Done);
        kill(group);
        let status = child.wait();
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

/// The group is gone already if only its leader was in it.
fn kill(group: Pid) {
    let _gone = rustix::process::kill_process_group(group, Signal::KILL);
}

fn joined<T>(result: thread::Result<io::Result<T>>) -> io::Result<T> {
    result.unwrap_or_else(|_| Err(io::Error::other("a reader of the output ended")))
}

/// The whole output, or none if it exceeds the limit. Dropping the pipe then ends the program.
fn read_bounded(mut pipe: impl Read) -> io::Result<Option<Vec<u8>>> {
    let mut bytes = Vec::new();
    let bound = limits::LISTING_BYTES as u64;
    pipe.by_ref().take(bound + 1).read_to_end(&mut bytes)?;
    Ok((bytes.len() <= limits::LISTING_BYTES).then_some(bytes))
}

/// The last bytes of a stream. It is read to its end, so that its writer never blocks.
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

#[cfg(test)]
mod tests {
    use std::sync::mpsc;

    use super::*;

    /// `git` with an alias runs a shell, which shows the environment and the process group.
    fn shell(script: &str, deadline: Duration) -> Result<Ended, CallError> {
        shell_among(&Calls::default(), script, deadline)
    }

    fn shell_among(calls: &Calls, script: &str, deadline: Duration) -> Result<Ended, CallError> {
        let alias = format!("alias.probe=!{script}");
        let arguments = ["-c", &alias, "probe"].map(OsStr::new);
        run(&Call {
            program: OsStr::new("git"),
            arguments: &arguments,
            protocol: Protocol::Https,
            deadline,
            file_bytes: 1024,
            calls,
        })
    }

    const LONG: Duration = Duration::from_secs(180);

    #[test]
    fn a_missing_program_is_told_apart() {
        let error = run(&Call {
            program: OsStr::new("no-such-git"),
            arguments: &[],
            protocol: Protocol::Ssh,
            deadline: LONG,
            file_bytes: 1024,
            calls: &Calls::default(),
        })
        .unwrap_err();
        assert!(matches!(error, CallError::NotInstalled));
    }

    #[test]
    fn nothing_of_the_daemons_environment_gets_through() {
        let ended = shell("env", LONG).unwrap();
        assert!(ended.status.success(), "{}", ended.complaint);
        let text = String::from_utf8(ended.output).unwrap();
        let of_the_shell = ["PWD", "OLDPWD", "SHLVL", "_", "GIT_PREFIX", "GIT_DIR"];
        let of_git = ["GIT_CONFIG_PARAMETERS", "GIT_EXEC_PATH"];
        for name in text.lines().filter_map(|line| line.split('=').next()) {
            assert!(
                PASSED_ON.contains(&name)
                    || ENVIRONMENT.iter().any(|(known, _)| *known == name)
                    || name == "GIT_ALLOW_PROTOCOL"
                    || of_the_shell.contains(&name)
                    || of_git.contains(&name),
                "{name}"
            );
        }
        assert!(text.contains("HOME=/dev/null\n"));
        assert!(text.contains("GIT_ALLOW_PROTOCOL=https\n"));
    }

    #[test]
    fn the_deadline_ends_the_whole_group() {
        let started = Instant::now();
        let error = shell("sleep 600 & sleep 600", Duration::from_millis(200)).unwrap_err();
        assert!(matches!(error, CallError::TimedOut));
        assert!(started.elapsed() < LONG);
    }

    #[test]
    fn the_end_of_all_calls_ends_the_whole_group_and_lets_none_begin() {
        let folder = tempfile::tempdir().unwrap();
        let begun = folder.path().join("begun");
        let status = Command::new("mkfifo").arg(&begun).status().unwrap();
        assert!(status.success());
        let calls = Calls::default();
        let of_call = calls.clone();
        let script = format!("sleep 600 & echo > {}; sleep 600", begun.display());
        let (told, outcome) = mpsc::channel();
        thread::spawn(move || told.send(shell_among(&of_call, &script, LONG * 10)));
        // Opening the other end waits until the script is there.
        std::fs::read(&begun).unwrap();

        // It waits for everybody who holds the output, so the whole group is gone.
        assert!(calls.end(LONG));
        let outcome = outcome.recv_timeout(LONG).unwrap();
        assert!(matches!(outcome, Err(CallError::Stopped)), "{outcome:?}");
        let outcome = shell_among(&calls, "echo late", LONG);
        assert!(matches!(outcome, Err(CallError::Stopped)), "{outcome:?}");
    }

    #[test]
    fn a_child_left_behind_does_not_hold_the_call() {
        let started = Instant::now();
        let ended = shell("sleep 600 & echo done", LONG).unwrap();
        assert_eq!(ended.output, b"done\n");
        assert!(started.elapsed() < LONG);
    }

    #[test]
    fn output_is_bounded_and_the_end_of_a_complaint_is_kept() {
        let error = shell("yes", LONG).unwrap_err();
        assert!(matches!(error, CallError::TooMuchOutput));

        let ended = shell("yes | head -c 100000 >&2; echo last >&2; exit 3", LONG).unwrap();
        assert_eq!(ended.status.code(), Some(3));
        assert!(ended.complaint.len() <= limits::COMPLAINT_BYTES);
        assert!(ended.complaint.ends_with("last\n"));
    }
}
