//! A program that the daemon's configuration names. It gets the event as JSON on its standard input.

#![expect(
    clippy::disallowed_methods,
    reason = "the one home of starting the programs of channels"
)]

use std::convert::Infallible;
use std::future::pending;
use std::process::Stdio;

use rustix::process::{Pid, Signal, kill_process_group};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::process::Command;
use tokio::time::timeout;

use crate::text::line;
use crate::webhook::body;
use crate::{Message, Outcome, Program, Settings};

/// What a program may print to its standard error. Its standard output is discarded.
const PRINTED_BYTES: usize = 64 * 1024;

/// The characters of it that a reason shows.
const SHOWN_CHARS: usize = 300;

/// The program that the daemon's configuration gives this name.
pub(crate) fn find<'s>(settings: &'s Settings, name: &str) -> Result<&'s Program, String> {
    let program = settings.commands.get(name);
    program.ok_or_else(|| {
        format!(
            "the daemon's configuration has no `{}` in `notify_commands`",
            line(name)
        )
    })
}

/// Runs the program in an environment that has only `PATH` and `LANG`. When it ends, at the time limit, and when this future is
/// dropped, its process group is killed. Nothing waits for children that have left the group and keep its streams open.
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
    let (stdin, mut stderr) = (child.stdin.take(), child.stderr.take());
    let mut printed = Vec::new();
    let input = async {
        if let Some(mut stdin) = stdin {
            // A program may end without reading its input.
            let _unread = stdin.write_all(body(message).as_bytes()).await;
        }
    };
    let output = async {
        while let Some(open) = &mut stderr {
            let read = open.read_buf(&mut printed).await;
            if printed.len() >= PRINTED_BYTES || !read.is_ok_and(|count| count > 0) {
                stderr = None;
            }
        }
    };
    let streams = async {
        tokio::join!(input, output);
        pending::<Infallible>().await
    };
    let work = async {
        tokio::select! {
            status = child.wait() => status,
            never = streams => match never {},
        }
    };
    let ended = timeout(program.timeout, work).await;
    drop(group);
    let status = match ended {
        Ok(Ok(status)) => status,
        Ok(Err(error)) => {
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
    // The runtime may not know yet that there is more. The stream does not block.
    let mut more = [0; 4096];
    while let Some(open) = stderr.as_ref().filter(|_| printed.len() < PRINTED_BYTES)
        && let Ok(count @ 1..) = rustix::io::read(open, &mut more)
    {
        printed.extend_from_slice(&more[..count]);
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
