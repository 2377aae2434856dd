//! Asks a person for a secret without showing the input.

use std::io::{self, IsTerminal, Stdin};
use std::path::Path;
use std::thread;

use rustix::termios::{LocalModes, OptionalActions, Termios, tcgetattr, tcsetattr};
use tokio::sync::oneshot;

use crate::error::Error;
use crate::reading::without_line_end;
use crate::terminal::Terminal;

pub(crate) fn is_possible() -> bool {
    io::stdin().is_terminal()
}

/// Asks for one line. If the future is dropped, the terminal is restored.
pub(crate) async fn ask(terminal: &mut Terminal, question: &str) -> Result<String, Error> {
    let failed = Error::reading(Path::new("standard input"));
    let silence = Silence::begin().map_err(failed)?;
    terminal.print_replaceable(question);
    // Nothing waits for this thread, so an interrupted command ends at once.
    let (typed, line) = oneshot::channel();
    thread::spawn(move || {
        let mut line = String::new();
        let read = io::stdin().read_line(&mut line).map(|_| line);
        // The command may have been interrupted meanwhile.
        drop(typed.send(read));
    });
    let line = line
        .await
        .unwrap_or_else(|_| Err(io::ErrorKind::UnexpectedEof.into()));
    drop(silence);
    // The hidden line end of the input did not end the line of the question.
    terminal.report("");
    Ok(without_line_end(line.map_err(failed)?))
}

/// Hides the input while it lives.
struct Silence {
    stdin: Stdin,
    before: Termios,
}

impl Silence {
    fn begin() -> io::Result<Self> {
        let stdin = io::stdin();
        let before = tcgetattr(&stdin)?;
        let mut silent = before.clone();
        silent.local_modes.remove(LocalModes::ECHO);
        silent.local_modes.insert(LocalModes::ECHONL);
        tcsetattr(&stdin, OptionalActions::Flush, &silent)?;
        Ok(Self { stdin, before })
    }
}

impl Drop for Silence {
    fn drop(&mut self) {
        // Ignore a failure: the terminal may be gone.
        let _ = tcsetattr(&self.stdin, OptionalActions::Flush, &self.before);
    }
}
