//! Calls the `git` program with a clean environment.
//!
//! Git runs no hook, does not prompt, reads no configuration of a user or the system, and uses only the protocol of the
//! URL. `process` runs it, `remote` interprets its output.

use std::ffi::OsStr;
use std::process::Command;
use std::time::Duration;

use super::calls::Calls;
use super::limits;
use super::location::Protocol;
use super::process::{self, CallError, Ended, Process};

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

/// Starts the program and waits for its end.
pub(super) fn run(call: &Call<'_>) -> Result<Ended, CallError> {
    process::run(Process {
        command: command(call),
        deadline: call.deadline,
        output_bytes: limits::LISTING_BYTES,
        file_bytes: call.file_bytes,
        calls: call.calls,
    })
}

fn command(call: &Call<'_>) -> Command {
    let mut command = process::command(call.program);
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
        );
    for setting in CONFIGURATION {
        command.arg("-c").arg(setting);
    }
    command.args(call.arguments);
    command
}

#[cfg(test)]
mod tests {
    use std::sync::mpsc;
    use std::thread;
    use std::time::Instant;

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
