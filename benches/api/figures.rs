//! Times, rates and memory, and their output.

use std::fs::File;
use std::io::Write;
use std::time::{Duration, Instant};

/// Sorted samples.
pub(crate) struct Times(Vec<Duration>);

impl Times {
    pub(crate) fn of(mut samples: Vec<Duration>) -> Self {
        assert!(!samples.is_empty(), "no sample");
        samples.sort_unstable();
        Self(samples)
    }

    pub(crate) fn at(&self, percent: usize) -> Duration {
        self.0[(self.0.len() * percent / 100).min(self.0.len() - 1)]
    }
}

impl std::fmt::Display for Times {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let (p50, p95) = (ms(self.at(50)), ms(self.at(95)));
        write!(f, "p50 {p50:>6.2} ms, p95 {p95:>6.2} ms")
    }
}

pub(crate) fn ms(duration: Duration) -> f64 {
    duration.as_secs_f64() * 1_000.0
}

/// Memory of a process in kB, from `/proc`: `VmRSS` is the present memory, `VmHWM` the peak.
pub(crate) fn memory(pid: u32, key: &str) -> f64 {
    let status = std::fs::read_to_string(format!("/proc/{pid}/status")).unwrap();
    let line = status
        .lines()
        .find(|line| line.starts_with(key))
        .expect("the kernel tells it");
    let count = line.split_whitespace().nth(1).unwrap();
    count.parse().unwrap()
}

/// The floor of a commit.
pub(crate) fn append(mut journal: &File) -> Duration {
    let begun = Instant::now();
    journal.write_all(&[b'x'; 2048]).unwrap();
    journal.sync_data().unwrap();
    begun.elapsed()
}
