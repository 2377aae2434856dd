//! Calls the `git` program with a clean environment.
//!
//! Git runs no hook, does not prompt, and uses only the protocol of the URL. It does not read the configuration of a
//! user or the system, except that of the daemon's user for a repository on this machine. It gets a token through a
//! pipe that only its children inherit, and only for the host of the URL. Arguments, environment and files never
//! contain the token. `process` runs the program, `remote` interprets its output.

use std::ffi::{OsStr, OsString};
use std::path::Path;
use std::process::Command;
use std::time::Duration;

use super::RemoteUrl;
use super::calls::Calls;
use super::credentials::Credentials;
use super::limits;
use super::location::Protocol;
use super::process::{self, CallError, Ended, Process};

/// Environment variables that are passed to `git`: the search path, the key agent, the proxy and the certificates. All
/// other variables are removed.
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

/// A very slow transfer counts as a hang. A transfer becomes one pack. Git runs no maintenance during or after it.
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

/// Runs the program with its standard input as descriptor 3, which its children inherit. Their standard input is
/// another pipe.
const WITH_INPUT_FOR_CHILDREN: [&str; 2] = ["-c", "exec 3<&0 </dev/null; exec \"$0\" \"$@\""];

/// The credential helper of `git`, which prints its input. `git` also calls it to report valid and invalid credentials,
/// and expects no answer then.
const HELPER: &str = "!f() { test \"$1\" != get || cat <&3; }; f";

/// The exit code of a shell if it does not find a program.
const NOT_FOUND: i32 = 127;

pub(super) struct Call<'a> {
    pub program: &'a OsStr,
    pub arguments: &'a [&'a OsStr],
    pub url: &'a RemoteUrl,
    pub credentials: Option<&'a Credentials>,
    pub ca_file: Option<&'a Path>,
    pub deadline: Duration,
    /// The most bytes that the program may write into one file.
    pub file_bytes: u64,
    pub calls: &'a Calls,
}

pub(super) fn run(call: &Call<'_>) -> Result<Ended, CallError> {
    let ended = process::run(Process {
        command: command(call),
        input: call.credentials.map(Credentials::answer),
        deadline: call.deadline,
        output_bytes: limits::LISTING_BYTES,
        file_bytes: Some(call.file_bytes),
        calls: call.calls,
    })?;
    let Some(credentials) = call.credentials else {
        return Ok(ended);
    };
    if ended.status.code() == Some(NOT_FOUND) {
        return Err(CallError::NotInstalled);
    }
    Ok(Ended {
        complaint: credentials.mask(&ended.complaint),
        ..ended
    })
}

fn command(call: &Call<'_>) -> Command {
    let mut command = match call.credentials {
        None => process::command(call.program),
        Some(_) => {
            let mut shell = process::command(OsStr::new("sh"));
            shell.args(WITH_INPUT_FOR_CHILDREN).arg(call.program);
            shell
        }
    };
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
            match call.url.protocol() {
                Protocol::Https => "https",
                Protocol::LoopbackHttp => "http",
                Protocol::Ssh => "ssh",
                Protocol::Path => "file",
            },
        );
    if call.url.protocol() == Protocol::Path {
        // As with libgit2, `safe.directory` in the configuration of the daemon's user allows the repository of another user.
        command.env_remove("GIT_CONFIG_GLOBAL");
        command.envs(std::env::var_os("HOME").map(|home| ("HOME", home)));
    }
    for setting in CONFIGURATION {
        command.arg("-c").arg(setting);
    }
    if call.credentials.is_some() {
        let helper = format!("credential.{}.helper={HELPER}", call.url.origin());
        command.arg("-c").arg(helper);
    }
    if let Some(path) = call.ca_file {
        let mut setting = OsString::from("http.sslCAInfo=");
        setting.push(path);
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
    use crate::git::Location;

    fn url() -> RemoteUrl {
        let Ok(Location::Remote(url)) = Location::parse("https://forge.example/a") else {
            panic!("it is remote");
        };
        url
    }

    /// `git` with an alias runs a shell, which can show the environment and the process group.
    fn shell(script: &str, deadline: Duration) -> Result<Ended, CallError> {
        shell_among(&Calls::default(), script, deadline)
    }

    fn shell_among(calls: &Calls, script: &str, deadline: Duration) -> Result<Ended, CallError> {
        let alias = format!("alias.probe=!{script}");
        let arguments = ["-c", &alias, "probe"].map(OsStr::new);
        run(&Call {
            program: OsStr::new("git"),
            arguments: &arguments,
            url: &url(),
            credentials: None,
            ca_file: None,
            deadline,
            file_bytes: 1024,
            calls,
        })
    }

    const LONG: Duration = Duration::from_secs(180);

    #[test]
    fn a_missing_program_is_reported_as_not_installed() {
        let error = run(&Call {
            program: OsStr::new("no-such-git"),
            arguments: &[],
            url: &url(),
            credentials: None,
            ca_file: None,
            deadline: LONG,
            file_bytes: 1024,
            calls: &Calls::default(),
        })
        .unwrap_err();
        assert!(matches!(error, CallError::NotInstalled));
    }

    fn credentials() -> Credentials {
        let token = crate::git::TokenSource::Command {
            program: "echo".to_owned(),
            arguments: vec!["hunter2".to_owned()],
        };
        let username = crate::git::Username::default();
        let login = crate::git::Login { username, token };
        Credentials::read(&login, &Calls::default()).unwrap()
    }

    fn with_credentials(program: &str, arguments: &[&str]) -> Result<Ended, CallError> {
        let arguments: Vec<&OsStr> = arguments.iter().map(OsStr::new).collect();
        run(&Call {
            program: OsStr::new(program),
            arguments: &arguments,
            url: &url(),
            credentials: Some(&credentials()),
            ca_file: None,
            deadline: LONG,
            file_bytes: 1024,
            calls: &Calls::default(),
        })
    }

    #[test]
    fn a_missing_program_is_reported_as_not_installed_with_credentials() {
        let error = with_credentials("no-such-git", &[]).unwrap_err();
        assert!(matches!(error, CallError::NotInstalled), "{error:?}");
    }

    /// If a proxy asks for a login, `git` treats the proxy as another host.
    #[test]
    fn only_the_host_of_the_url_gets_the_credentials() {
        for (host, is_known) in [
            ("https\nhost=forge.example", true),
            ("https\nhost=forge.example:8443", false),
            ("https\nhost=proxy.example", false),
            ("http\nhost=forge.example", false),
        ] {
            let ask = format!("alias.probe=!printf 'protocol={host}\\n\\n' | git credential fill");
            let ended = with_credentials("git", &["-c", &ask, "probe"]).unwrap();
            let said = String::from_utf8(ended.output).unwrap();
            assert_eq!(
                said.contains("password=hunter2\n"),
                is_known,
                "{host}: {said}"
            );
            assert_eq!(
                ended.status.success(),
                is_known,
                "{host}: {}",
                ended.complaint
            );
        }
    }

    #[test]
    fn neither_arguments_nor_environment_have_the_token_and_complaints_are_masked() {
        let see = "alias.probe=!cat /proc/$PPID/cmdline /proc/self/environ; \
                   printf 'protocol=https\\nhost=forge.example\\n\\n' | git credential fill >&2";
        let ended = with_credentials("git", &["-c", see, "probe"]).unwrap();
        let seen = String::from_utf8_lossy(&ended.output).into_owned();
        assert!(
            seen.contains("credential.https://forge.example.helper"),
            "{seen}"
        );
        assert!(!seen.contains("hunter2"), "{seen}");
        assert!(
            ended.complaint.contains("password=***"),
            "{}",
            ended.complaint
        );
    }

    #[test]
    fn the_daemons_environment_is_not_passed_on() {
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
    fn ending_all_calls_ends_the_whole_group_and_refuses_new_calls() {
        let folder = tempfile::tempdir().unwrap();
        let begun = folder.path().join("begun");
        let status = Command::new("mkfifo").arg(&begun).status().unwrap();
        assert!(status.success());
        let calls = Calls::default();
        let of_call = calls.clone();
        let script = format!("sleep 600 & echo > {}; sleep 600", begun.display());
        let (sender, outcome) = mpsc::channel();
        thread::spawn(move || sender.send(shell_among(&of_call, &script, LONG * 10)));
        // Opening the other end waits until the script has started.
        std::fs::read(&begun).unwrap();

        // `end` waits for every process that holds the output, so the whole group has ended.
        assert!(calls.end(LONG));
        let outcome = outcome.recv_timeout(LONG).unwrap();
        assert!(matches!(outcome, Err(CallError::Stopped)), "{outcome:?}");
        let outcome = shell_among(&calls, "echo late", LONG);
        assert!(matches!(outcome, Err(CallError::Stopped)), "{outcome:?}");
    }

    #[test]
    fn a_remaining_child_does_not_delay_the_call() {
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
