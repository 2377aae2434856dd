//! How far a transfer has come, told to a person who watches.

use std::time::Instant;

use crate::limits;
use crate::terminal::Terminal;

/// A transfer under way.
pub(crate) struct Progress {
    total: Option<u64>,
    done: u64,
    told: Instant,
}

impl Progress {
    /// Begins a transfer of `total` bytes, where that is known.
    pub(crate) fn new(total: Option<u64>) -> Self {
        Self {
            total,
            done: 0,
            told: Instant::now(),
        }
    }

    /// Counts further bytes.
    pub(crate) fn add(&mut self, bytes: usize, terminal: &mut Terminal) {
        self.done = self
            .done
            .saturating_add(u64::try_from(bytes).unwrap_or(u64::MAX));
        if terminal.is_watched() && self.told.elapsed() >= limits::PROGRESS {
            self.told = Instant::now();
            terminal.say_for_now(&self.text());
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

/// A number of bytes for a person.
pub(crate) fn bytes(count: u64) -> String {
    let mut tenths = u128::from(count) * 10;
    for unit in ["B", "KiB", "MiB", "GiB"] {
        if tenths < 10_240 {
            return match unit {
                "B" => format!("{count} B"),
                _ => format!("{}.{} {unit}", tenths / 10, tenths % 10),
            };
        }
        tenths /= 1024;
    }
    format!("{}.{} TiB", tenths / 10, tenths % 10)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bytes_have_a_fitting_unit() {
        for (count, expected) in [
            (0, "0 B"),
            (1023, "1023 B"),
            (1024, "1.0 KiB"),
            (1536, "1.5 KiB"),
            (40 * 1024 * 1024, "40.0 MiB"),
            (3 << 40, "3.0 TiB"),
        ] {
            assert_eq!(bytes(count), expected);
        }
    }

    #[test]
    fn a_known_size_gives_a_share() {
        let mut progress = Progress::new(Some(2048));
        progress.done = 1024;
        assert_eq!(progress.text(), "1.0 KiB of 2.0 KiB (50 %)");
        progress.total = None;
        assert_eq!(progress.text(), "1.0 KiB");
    }
}
