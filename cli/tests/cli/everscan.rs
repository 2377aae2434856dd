//! Runs the program in an empty environment.

use std::process::{Command, Output, Stdio};

/// The exit code and output of a run.
#[derive(Debug)]
pub(crate) struct Run {
    pub(crate) code: i32,
    pub(crate) stdout: String,
    pub(crate) stderr: String,
}

pub(crate) fn command(line: &str) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_everscan"));
    command
        .args(line.split_whitespace())
        .env_clear()
        .stdin(Stdio::null());
    command
}

/// Runs a command line that needs no daemon.
pub(crate) fn run(line: &str) -> Run {
    finished(command(line).output().unwrap())
}

/// Runs a command line against a daemon.
pub(crate) fn run_at(url: &str, line: &str) -> Run {
    finished(command(line).env("SERVICE_URL", url).output().unwrap())
}

pub(crate) fn finished(output: Output) -> Run {
    Run {
        code: output.status.code().unwrap(),
        stdout: String::from_utf8(output.stdout).unwrap(),
        stderr: String::from_utf8(output.stderr).unwrap(),
    }
}
