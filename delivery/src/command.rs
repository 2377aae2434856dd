//! A program that the daemon's configuration names. It gets the event as JSON on its standard input.

#![expect(
    clippy::disallowed_methods,
    reason = "the one home of starting the programs of channels"
)]

use std::process::Stdio;

use rustix::process::{Pid, Signal, kill_process_group};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::process::Command;
use tokio::time::timeout;

use crate::text::line;
use crate::webhook::body;
use crate::{Message, Outcome, Program};

/// What a program may print to its standard error. Its standard output is discarded.
const PRINTED_BYTES: u64 = 64 * 1024;

/// The characters of it that a reason shows.
const SHOWN_CHARS: usize = 300;

/// Runs the program in an environment that has only `PATH` and `LANG`. At the time limit, and when this future is dropped,
/// the program and its children are killed.
pub(crate) async fn run(program: &Program, message: &Message) -> Outcome {
    let name = program.program.display();
    let started = Command::new(&program.program)
        .args(&program.args)
        .env_clear()
        .env("PATH", "/usr/local/bin:/usr/bin:/bin")
        .env("LANG", "C.UTF-8")
        .current_dir("/")
        .stdin(Stdio::piped())
        .stdout(Stdio::null())
        .stderr(Stdio::piped())
        .process_group(0)
        .kill_on_drop(true)
        .spawn();
    let mut child = match started {
        Ok(child) => child,
        Err(error) => return Outcome::refused(format!("cannot start {name}: {error}")),
    };
    let group = Group(child.id().and_then(|id| Pid::from_raw(id.cast_signed())));
    let (stdin, stderr) = (child.stdin.take(), child.stderr.take());
    let input = async {
        if let Some(mut stdin) = stdin {
            // A program may end without reading its input.
            let _unread = stdin.write_all(body(message).as_bytes()).await;
        }
    };
    let output = async {
        let mut printed = Vec::new();
        if let Some(stderr) = stderr {
            let mut stderr = stderr.take(PRINTED_BYTES);
            let _incomplete = stderr.read_to_end(&mut printed).await;
        }
        printed
    };
    let work = async { tokio::join!(input, output, child.wait()) };
    let ended = timeout(program.timeout, work).await;
    drop(group);
    let (printed, status) = match ended {
        Ok(((), printed, Ok(status))) => (printed, status),
        Ok((_, _, Err(error))) => {
            return Outcome::retry(format!("cannot wait for {name}: {error}"));
        }
        Err(_) => {
            let limit = program.timeout.as_secs_f32();
            return Outcome::retry(format!(
                "{name} did not end within {limit} s and was killed"
            ));
        }
    };
    if status.success() {
        let reply = status.to_string();
        return Outcome::Delivered { reply };
    }
    let printed = line(&String::from_utf8_lossy(&printed));
    let shown: String = printed.trim().chars().take(SHOWN_CHARS).collect();
    Outcome::retry(format!("{name} failed ({status}): {shown}"))
}

/// The processes of a program.
struct Group(Option<Pid>);

impl Drop for Group {
    fn drop(&mut self) {
        if let Some(group) = self.0 {
            let _gone = kill_process_group(group, Signal::KILL);
        }
    }
}
