//! Reads the token of a source, from its file or from its command, for one attempt.
//!
//! Only `git` gets the token, through a pipe. The error output of `git` and of the command is masked before it is kept.

use std::ffi::OsStr;
use std::fs::{self, File};
use std::io::{self, Read as _};
use std::os::unix::fs::{OpenOptionsExt as _, PermissionsExt as _};
use std::path::{Path, PathBuf};
use std::process::ExitStatus;

use model::{Masker, SecretValue};
use rustix::fs::OFlags;

use super::access::{Login, TokenSource};
use super::calls::Calls;
use super::complaint::last_failure;
use super::limits;
use super::process::{self, CallError, Process};

/// The mode bit that lets every user read a file.
const EVERYBODY: u32 = 0o004;

#[derive(Debug)]
pub(super) struct Credentials {
    answer: SecretValue,
    masker: Masker,
    /// The mode of the token's file, if every user of the machine can read it.
    pub(super) open_to_all: Option<u32>,
}

#[derive(Debug, thiserror::Error)]
pub(crate) enum TokenError {
    #[error("cannot read {from}")]
    Unreadable {
        from: TokenSource,
        #[source]
        source: io::Error,
    },
    #[error("{from} is no file")]
    NoFile { from: TokenSource },
    #[error("{from} gives more than {} bytes", limits::TOKEN_BYTES)]
    TooLong { from: TokenSource },
    #[error("{from} gives no token: {problem}")]
    NoToken {
        from: TokenSource,
        problem: &'static str,
    },
    #[error("the program of {from} is not installed")]
    NotInstalled { from: TokenSource },
    #[error("{from} was not done within {} seconds", limits::TOKEN_COMMAND.as_secs())]
    TimedOut { from: TokenSource },
    #[error("the daemon stopped while {from} ran")]
    Stopped { from: TokenSource },
    #[error("{from} failed ({status}): {complaint}")]
    Failed {
        from: TokenSource,
        status: ExitStatus,
        complaint: String,
    },
}

/// Why the certificates of a source's own authorities cannot be used.
#[derive(Debug, thiserror::Error)]
pub(crate) enum CaFileError {
    #[error("cannot read ca_file {}", path.display())]
    Unreadable {
        path: PathBuf,
        #[source]
        source: io::Error,
    },
    #[error("ca_file {} is no file", path.display())]
    NoFile { path: PathBuf },
    #[error("ca_file {} is longer than {} bytes", path.display(), limits::CA_FILE_BYTES)]
    TooLong { path: PathBuf },
    #[error("ca_file {} holds no certificate in PEM form", path.display())]
    NoCertificate { path: PathBuf },
}

impl Credentials {
    pub(super) fn read(login: &Login, calls: &Calls) -> Result<Self, TokenError> {
        let from = &login.token;
        let (bytes, open_to_all) = match from {
            TokenSource::File(path) => from_file(from, path)?,
            TokenSource::Command { program, arguments } => {
                (from_command(from, program, arguments, calls)?, None)
            }
        };
        let wrong = |problem| TokenError::NoToken {
            from: from.clone(),
            problem,
        };
        let token = token(&bytes).map_err(wrong)?;
        let username = login.username.as_str();
        let pair = format!("{username}:{token}");
        Ok(Self {
            answer: SecretValue::new(format!("username={username}\npassword={token}\n")),
            masker: Masker::new([token, &pair]).map_err(|_| wrong("it cannot be masked"))?,
            open_to_all,
        })
    }

    /// The answer of a credential helper of `git`.
    pub(super) fn answer(&self) -> &[u8] {
        self.answer.reveal().as_bytes()
    }

    pub(super) fn mask(&self, text: &str) -> String {
        self.masker.mask(text)
    }
}

/// The token in a text of one line, without the white space around it.
fn token(bytes: &[u8]) -> Result<&str, &'static str> {
    let text = std::str::from_utf8(bytes).map_err(|_| "it is not UTF-8")?;
    match text.trim() {
        "" => Err("it is empty"),
        token if token.contains(char::is_control) => Err("it is more than one line of text"),
        token => Ok(token),
    }
}

fn from_file(from: &TokenSource, path: &Path) -> Result<(Vec<u8>, Option<u32>), TokenError> {
    let (bytes, mode) = read_bounded(path, limits::TOKEN_BYTES).map_err(|error| {
        let from = from.clone();
        match error {
            ReadError::Io(source) => TokenError::Unreadable { from, source },
            ReadError::NoFile => TokenError::NoFile { from },
            ReadError::TooLong => TokenError::TooLong { from },
        }
    })?;
    let mode = mode & 0o777;
    Ok((bytes, (mode & EVERYBODY != 0).then_some(mode)))
}

/// Runs the command in the daemon's environment, because it is the operator's own.
fn from_command(
    from: &TokenSource,
    program: &str,
    arguments: &[String],
    calls: &Calls,
) -> Result<Vec<u8>, TokenError> {
    let from = || from.clone();
    let mut command = process::command(OsStr::new(program));
    command.args(arguments);
    let ended = process::run(Process {
        command,
        input: None,
        deadline: limits::TOKEN_COMMAND,
        output_bytes: limits::TOKEN_BYTES,
        file_bytes: None,
        calls,
    });
    let ended = ended.map_err(|error| match error {
        CallError::NotInstalled => TokenError::NotInstalled { from: from() },
        CallError::TimedOut => TokenError::TimedOut { from: from() },
        CallError::Stopped => TokenError::Stopped { from: from() },
        CallError::TooMuchOutput => TokenError::TooLong { from: from() },
        CallError::Io(source) => TokenError::Unreadable {
            from: from(),
            source,
        },
    })?;
    if ended.status.success() {
        return Ok(ended.output);
    }
    // The command may have printed the token before it failed, even in its error output.
    let output = String::from_utf8_lossy(&ended.output);
    let complaint = match Masker::new([output.trim()]) {
        Ok(masker) => last_failure(&masker.mask(&ended.complaint)),
        Err(_) => "what it said cannot be masked".to_owned(),
    };
    Err(TokenError::Failed {
        from: from(),
        status: ended.status,
        complaint,
    })
}

/// Checks that a file holds certificates. `git` would fail later with a less helpful message.
pub(super) fn check_ca_file(path: &Path) -> Result<(), CaFileError> {
    let path = || path.to_owned();
    let (bytes, _) = read_bounded(&path(), limits::CA_FILE_BYTES).map_err(|error| match error {
        ReadError::Io(source) => CaFileError::Unreadable {
            path: path(),
            source,
        },
        ReadError::NoFile => CaFileError::NoFile { path: path() },
        ReadError::TooLong => CaFileError::TooLong { path: path() },
    })?;
    const BEGINNING: &[u8] = b"-----BEGIN CERTIFICATE-----";
    if !bytes.windows(BEGINNING.len()).any(|part| part == BEGINNING) {
        return Err(CaFileError::NoCertificate { path: path() });
    }
    Ok(())
}

enum ReadError {
    Io(io::Error),
    NoFile,
    TooLong,
}

/// The content and the mode of a regular file. Opening a named pipe must not block.
fn read_bounded(path: &Path, bound: usize) -> Result<(Vec<u8>, u32), ReadError> {
    let nonblocking = OFlags::NONBLOCK.bits().cast_signed();
    let file: File = fs::OpenOptions::new()
        .read(true)
        .custom_flags(nonblocking)
        .open(path)
        .map_err(ReadError::Io)?;
    let metadata = file.metadata().map_err(ReadError::Io)?;
    if !metadata.is_file() {
        return Err(ReadError::NoFile);
    }
    let mut bytes = Vec::new();
    file.take(bound as u64 + 1)
        .read_to_end(&mut bytes)
        .map_err(ReadError::Io)?;
    if bytes.len() > bound {
        return Err(ReadError::TooLong);
    }
    Ok((bytes, metadata.permissions().mode()))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn command(script: &str) -> Login {
        login(TokenSource::Command {
            program: "sh".to_owned(),
            arguments: vec!["-c".to_owned(), script.to_owned()],
        })
    }

    fn login(token: TokenSource) -> Login {
        Login {
            username: Default::default(),
            token,
        }
    }

    fn failed(login: &Login) -> String {
        let error = Credentials::read(login, &Calls::default()).unwrap_err();
        model::error_chain(&error)
    }

    #[test]
    fn a_file_is_read_at_each_attempt_without_its_white_space() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("token");
        let login = login(TokenSource::File(path.clone()));
        for (text, token) in [("first\n", "first"), (" second \r\n\n", "second")] {
            fs::write(&path, text).unwrap();
            let read = Credentials::read(&login, &Calls::default()).unwrap();
            let expected = format!("username=x-access-token\npassword={token}\n");
            assert_eq!(read.answer(), expected.as_bytes());
            assert!(!format!("{read:?}").contains(token));
        }
    }

    #[test]
    fn an_error_names_the_file_without_a_token() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("token");
        let login = login(TokenSource::File(path.clone()));
        let named = format!("token_file {}", path.display());
        assert!(failed(&login).starts_with(&format!("cannot read {named}: No such file")));
        let long = "x".repeat(limits::TOKEN_BYTES + 1);
        for (bytes, wanted) in [
            (&b" \n"[..], "it is empty"),
            (b"a\nb\n", "more than one line"),
            (b"a\0b", "more than one line"),
            (b"\xff", "not UTF-8"),
            (long.as_bytes(), "more than 8192 bytes"),
        ] {
            fs::write(&path, bytes).unwrap();
            let message = failed(&login);
            assert!(
                message.contains(&named) && message.contains(wanted),
                "{message}"
            );
        }
        fs::remove_file(&path).unwrap();
        let made = std::process::Command::new("mkfifo").arg(&path).status();
        assert!(made.unwrap().success());
        assert_eq!(failed(&login), format!("{named} is no file"));
    }

    #[test]
    fn a_file_that_everybody_can_read_is_reported() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("token");
        fs::write(&path, "t0ken").unwrap();
        for (mode, open) in [(0o600, None), (0o640, None), (0o644, Some(0o644))] {
            fs::set_permissions(&path, fs::Permissions::from_mode(mode)).unwrap();
            let login = login(TokenSource::File(path.clone()));
            let read = Credentials::read(&login, &Calls::default()).unwrap();
            assert_eq!(read.open_to_all, open);
        }
    }

    #[test]
    fn a_failed_command_is_reported_with_its_error_output_only() {
        let read = Credentials::read(&command("echo t0ken"), &Calls::default()).unwrap();
        assert_eq!(read.answer(), b"username=x-access-token\npassword=t0ken\n");

        let message = failed(&command(
            "echo hunter2; echo no hunter2 for you >&2; exit 3",
        ));
        assert_eq!(
            message,
            "token_command `sh` failed (exit status: 3): no *** for you"
        );
        assert!(failed(&command("yes")).contains("more than 8192 bytes"));
        assert!(failed(&command("true")).contains("token_command `sh` gives no token"));
        let missing = login(TokenSource::Command {
            program: "no-such-program".to_owned(),
            arguments: Vec::new(),
        });
        assert!(failed(&missing).contains("`no-such-program` is not installed"));
    }

    #[test]
    fn the_daemon_does_not_wait_for_a_child_of_the_command() {
        let folder = tempfile::tempdir().unwrap();
        let child = folder.path().join("child");
        let script = format!(
            "setsid sleep 600 & echo $! > {}; echo hunter2",
            child.display()
        );
        let read = Credentials::read(&command(&script), &Calls::default()).unwrap();
        assert!(read.answer().ends_with(b"=hunter2\n"));
        // The child is still running, so its end of the pipe was open.
        let child: i32 = fs::read_to_string(child).unwrap().trim().parse().unwrap();
        let child = rustix::process::Pid::from_raw(child).unwrap();
        rustix::process::kill_process(child, rustix::process::Signal::KILL).unwrap();
    }

    #[test]
    fn the_token_is_masked_in_the_output_of_git() {
        let read = Credentials::read(&command("echo hunter2"), &Calls::default()).unwrap();
        // base64 of x-access-token:hunter2
        let basic = "eC1hY2Nlc3MtdG9rZW46aHVudGVyMg==";
        let masked = read.mask(&format!("https://x:hunter2@host/ {basic}"));
        assert!(
            !masked.contains("hunter2") && !masked.contains(&basic[8..]),
            "{masked}"
        );
    }

    #[test]
    fn a_ca_file_holds_certificates() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("ca.pem");
        let message = |path: &Path| model::error_chain(&check_ca_file(path).unwrap_err());
        let named = format!("ca_file {}", path.display());
        assert!(message(&path).starts_with(&format!("cannot read {named}: ")));
        assert!(message(folder.path()).ends_with("is no file"));
        fs::write(&path, "-----BEGIN PRIVATE KEY-----").unwrap();
        assert_eq!(
            message(&path),
            format!("{named} holds no certificate in PEM form")
        );
        fs::write(&path, "# mine\n-----BEGIN CERTIFICATE-----\n").unwrap();
        check_ca_file(&path).unwrap();
    }
}
