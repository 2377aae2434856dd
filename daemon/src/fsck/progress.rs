//! The progress line of a check.

use std::io::{IsTerminal, Write};
use std::time::Instant;

use crate::limits::PROGRESS;

/// A line on standard error that replaces itself. Without a terminal it does nothing.
pub(crate) struct ProgressLine {
    is_watched: bool,
    shown_at: Instant,
    length: usize,
}

impl ProgressLine {
    pub(crate) fn new() -> Self {
        Self {
            is_watched: std::io::stderr().is_terminal(),
            shown_at: Instant::now(),
            length: 0,
        }
    }

    pub(crate) fn show(&mut self, files: u64) {
        if !self.is_watched || self.shown_at.elapsed() < PROGRESS {
            return;
        }
        self.shown_at = Instant::now();
        let text = format!("{files} files");
        self.clear();
        // Ignore a failure: the terminal may be gone.
        drop(write!(std::io::stderr(), "{text}"));
        self.length = text.len();
    }

    pub(crate) fn clear(&mut self) {
        if self.length > 0 {
            drop(write!(std::io::stderr(), "\r{}\r", " ".repeat(self.length)));
            self.length = 0;
        }
    }
}
