//! The line that tells a person at a terminal how far a check has come.

use std::io::{IsTerminal, Write};
use std::time::Instant;

use crate::limits::PROGRESS;

/// A line on standard error that replaces itself; nothing where no terminal is.
pub(crate) struct ProgressLine {
    is_watched: bool,
    told: Instant,
    length: usize,
}

impl ProgressLine {
    pub(crate) fn new() -> Self {
        Self {
            is_watched: std::io::stderr().is_terminal(),
            told: Instant::now(),
            length: 0,
        }
    }

    pub(crate) fn show(&mut self, files: u64) {
        if !self.is_watched || self.told.elapsed() < PROGRESS {
            return;
        }
        self.told = Instant::now();
        let text = format!("{files} files");
        self.clear();
        // Nobody is left to be told when the terminal is gone.
        drop(write!(std::io::stderr(), "{text}"));
        self.length = text.len();
    }

    /// Makes room for something else.
    pub(crate) fn clear(&mut self) {
        if self.length > 0 {
            drop(write!(std::io::stderr(), "\r{}\r", " ".repeat(self.length)));
            self.length = 0;
        }
    }
}
