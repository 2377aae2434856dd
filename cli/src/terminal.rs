//! Standard output for data and standard error for messages. No other code writes to them.

use std::io::{self, BufWriter, IsTerminal, Write};

use crate::error::Error;
use crate::untrusted::{Screen, clean};

pub(crate) struct Terminal {
    stdout: BufWriter<io::Stdout>,
    stderr: io::Stderr,
    is_data_watched: bool,
    screen: Screen,
    /// The length of the line that the next message replaces.
    unfinished: usize,
}

impl Terminal {
    pub(crate) fn of_this_process() -> Self {
        Self {
            stdout: BufWriter::new(io::stdout()),
            stderr: io::stderr(),
            is_data_watched: io::stdout().is_terminal(),
            screen: Screen::default(),
            unfinished: 0,
        }
    }

    pub(crate) fn data(&mut self, text: &str) -> Result<(), Error> {
        self.bytes(text.as_bytes())
    }

    /// Prints data. A terminal gets its colours, but no other control characters.
    pub(crate) fn bytes(&mut self, bytes: &[u8]) -> Result<(), Error> {
        let written = if self.is_data_watched {
            self.stdout.write_all(self.screen.push(bytes).as_bytes())
        } else {
            self.stdout.write_all(bytes)
        };
        written.map_err(|source| Error::Output { source })
    }

    pub(crate) fn line(&mut self, text: &str) -> Result<(), Error> {
        self.data(text)?;
        self.data("\n")
    }

    pub(crate) fn flush(&mut self) -> Result<(), Error> {
        self.stdout
            .write_all(self.screen.finish().as_bytes())
            .and_then(|()| self.stdout.flush())
            .map_err(|source| Error::Output { source })
    }

    /// Prints a message. A closed standard error is no failure. Control characters are replaced, because parts of the text may
    /// come from other systems.
    pub(crate) fn report(&mut self, text: &str) {
        self.keep_order();
        let mut end = self.erase();
        for line in text.lines() {
            drop(writeln!(self.stderr, "{end}{}", clean(line)));
            end.clear();
        }
    }

    pub(crate) fn is_data_watched(&self) -> bool {
        self.is_data_watched
    }

    /// Whether data may have colours: a person sees it and has not disabled colours.
    pub(crate) fn is_colourful(&self) -> bool {
        self.is_data_watched && std::env::var_os("NO_COLOR").is_none_or(|value| value.is_empty())
    }

    /// Whether standard error is a terminal, so that a progress line is useful.
    pub(crate) fn is_watched(&self) -> bool {
        self.stderr.is_terminal()
    }

    /// Prints a message that the next one replaces.
    pub(crate) fn print_replaceable(&mut self, text: &str) {
        drop(self.stdout.flush());
        let end = self.erase();
        drop(write!(self.stderr, "{end}{text}"));
        drop(self.stderr.flush());
        self.unfinished = text.chars().count();
    }

    /// Flushes data before a message, so that a terminal shows both in the right order. The next write or flush repeats a
    /// failure.
    fn keep_order(&mut self) {
        drop(self.flush());
    }

    /// The characters that erase the unfinished line.
    fn erase(&mut self) -> String {
        match std::mem::take(&mut self.unfinished) {
            0 => String::new(),
            length => format!("\r{}\r", " ".repeat(length)),
        }
    }
}
