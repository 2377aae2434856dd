//! The two streams of this process: data on standard output, talk on standard error. Nothing else writes to them.

use std::io::{self, BufWriter, IsTerminal, Write};

use crate::error::Error;
use crate::untrusted;

/// Where a command writes.
pub(crate) struct Terminal {
    data: BufWriter<io::Stdout>,
    talk: io::Stderr,
    is_data_watched: bool,
    /// Length of the line that the next word on standard error replaces.
    unfinished: usize,
}

impl Terminal {
    pub(crate) fn of_this_process() -> Self {
        Self {
            data: BufWriter::new(io::stdout()),
            talk: io::stderr(),
            is_data_watched: io::stdout().is_terminal(),
            unfinished: 0,
        }
    }

    /// Writes data as it is.
    pub(crate) fn data(&mut self, text: &str) -> Result<(), Error> {
        self.bytes(text.as_bytes())
    }

    /// Writes data that may be no text.
    pub(crate) fn bytes(&mut self, bytes: &[u8]) -> Result<(), Error> {
        self.data
            .write_all(bytes)
            .map_err(|source| Error::Output { source })
    }

    /// Writes a line of data.
    pub(crate) fn line(&mut self, text: &str) -> Result<(), Error> {
        self.data(text)?;
        self.data("\n")
    }

    /// Lets the reader have the data written so far.
    pub(crate) fn flush(&mut self) -> Result<(), Error> {
        self.data.flush().map_err(|source| Error::Output { source })
    }

    /// Says something to the person, if one listens: a closed standard error fails nothing. Parts of it may come from
    /// elsewhere, so that it is said without control characters.
    pub(crate) fn say(&mut self, text: &str) {
        self.keep_order();
        let mut end = self.erase();
        for line in text.lines() {
            drop(writeln!(self.talk, "{end}{}", untrusted::clean(line)));
            end.clear();
        }
    }

    /// Writes a line that somebody's program printed. A terminal gets its colours, but obeys nothing else in it.
    pub(crate) fn printed_line(&mut self, text: &str) -> Result<(), Error> {
        if self.is_data_watched {
            self.line(&untrusted::coloured(text))
        } else {
            self.line(text)
        }
    }

    /// Whether a person watches the data.
    pub(crate) fn is_data_watched(&self) -> bool {
        self.is_data_watched
    }

    /// Whether data may have colours: a person watches, who has not asked for none.
    pub(crate) fn is_colourful(&self) -> bool {
        self.is_data_watched && std::env::var_os("NO_COLOR").is_none_or(|value| value.is_empty())
    }

    /// Whether a person watches standard error, so that a moving line makes sense.
    pub(crate) fn is_watched(&self) -> bool {
        self.talk.is_terminal()
    }

    /// Says a line that the next one replaces.
    pub(crate) fn say_for_now(&mut self, text: &str) {
        self.keep_order();
        let end = self.erase();
        drop(write!(self.talk, "{end}{text}"));
        drop(self.talk.flush());
        self.unfinished = text.chars().count();
    }

    /// Lets the data go ahead of what is said next, so that a terminal shows things in the order in which they happened.
    /// A failure shows again when the data is written to or flushed next.
    fn keep_order(&mut self) {
        drop(self.data.flush());
    }

    /// What removes the unfinished line.
    fn erase(&mut self) -> String {
        match std::mem::take(&mut self.unfinished) {
            0 => String::new(),
            length => format!("\r{}\r", " ".repeat(length)),
        }
    }
}
