//! The progress of a transfer, for a person at a terminal.

use std::time::Instant;

use crate::limits;
use crate::table::bytes;
use crate::terminal::Terminal;

pub(crate) struct Progress {
    total: Option<u64>,
    done: u64,
    shown_at: Instant,
}

impl Progress {
    /// Begins a transfer of `total` bytes, if that is known.
    pub(crate) fn new(total: Option<u64>) -> Self {
        Self {
            total,
            done: 0,
            shown_at: Instant::now(),
        }
    }

    pub(crate) fn add(&mut self, bytes: usize, terminal: &mut Terminal) {
        self.done = self
            .done
            .saturating_add(u64::try_from(bytes).unwrap_or(u64::MAX));
        if terminal.is_watched() && self.shown_at.elapsed() >= limits::PROGRESS {
            self.shown_at = Instant::now();
            terminal.print_replaceable(&self.text());
        }
    }

    fn text(&self) -> String {
        match self.total {
            Some(total) if total > 0 => {
                let percent = u128::from(self.done) * 100 / u128::from(total);
                format!("{} of {} ({percent} %)", bytes(self.done), bytes(total))
            }
            Some(_) | None => bytes(self.done),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn progress_has_a_percentage_if_the_size_is_known() {
        let mut progress = Progress::new(Some(2048));
        progress.done = 1024;
        assert_eq!(progress.text(), "1.0 KiB of 2.0 KiB (50 %)");
        progress.total = None;
        assert_eq!(progress.text(), "1.0 KiB");
    }
}
