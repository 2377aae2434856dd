//! Peers in Python. Tests that need them are skipped where they are not installed.

use std::process::Stdio;

use tokio::io::{AsyncBufReadExt, AsyncWriteExt, BufReader, Lines};
use tokio::process::{Child, ChildStdin, ChildStdout, Command};

use super::PATIENCE;

pub(crate) struct Python(String);

/// Python with `aiosmtpd` and `standardwebhooks`: `EVERSCAN_PYTHON`, or `python3`.
#[expect(clippy::print_stderr, reason = "a skipped test prints the reason")]
pub(crate) async fn python() -> Option<Python> {
    let program = std::env::var("EVERSCAN_PYTHON").unwrap_or_else(|_| "python3".to_owned());
    let python = Python(program);
    match python.run("import aiosmtpd, standardwebhooks", "").await {
        Ok(_) => Some(python),
        Err(error) => {
            eprintln!("SKIP: no Python with aiosmtpd and standardwebhooks: {error}");
            None
        }
    }
}

impl Python {
    /// What a script prints, or its error.
    pub(crate) async fn run(&self, script: &str, input: &str) -> Result<String, String> {
        let mut child = Command::new(&self.0)
            .args(["-c", script])
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .map_err(|error| error.to_string())?;
        let mut stdin = child.stdin.take().unwrap();
        let _unread = stdin.write_all(input.as_bytes()).await;
        drop(stdin);
        let output = child.wait_with_output().await.unwrap();
        let text = |bytes: Vec<u8>| String::from_utf8(bytes).unwrap();
        match output.status.success() {
            true => Ok(text(output.stdout)),
            false => Err(text(output.stderr)),
        }
    }

    /// Starts a script that runs until its input ends, and prints lines.
    pub(crate) fn start(&self, script: &str, args: &[&str]) -> Peer {
        let mut child = Command::new(&self.0)
            .args(["-c", script])
            .args(args)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .kill_on_drop(true)
            .spawn()
            .unwrap();
        Peer {
            lines: BufReader::new(child.stdout.take().unwrap()).lines(),
            _input: child.stdin.take().unwrap(),
            _child: child,
        }
    }
}

pub(crate) struct Peer {
    lines: Lines<BufReader<ChildStdout>>,
    _input: ChildStdin,
    _child: Child,
}

impl Peer {
    pub(crate) async fn line(&mut self) -> String {
        let line = tokio::time::timeout(PATIENCE, self.lines.next_line()).await;
        line.expect("a line in time").unwrap().expect("a line")
    }
}
