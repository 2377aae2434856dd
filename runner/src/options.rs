//! The spans of time a runner works with, so that a test need not wait as long as a user would.

use std::time::Duration;

use crate::limits;

/// Spans of time; the default is what the documentation promises.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Options {
    /// From SIGTERM to SIGKILL.
    pub grace: Duration,
    /// How long log lines and step changes wait for others.
    pub ship_after: Duration,
    /// How long a job that may be retried goes on without contact.
    pub silence: Duration,
    /// How long after a deadline the runner stops a job that the daemon has not cancelled.
    pub deadline_allowance: Duration,
    /// How long a runner that stops at once tries to say so.
    pub last_words: Duration,
    /// How long the log of a job that was cancelled is still shipped after its processes have ended.
    pub last_lines: Duration,
}

impl Default for Options {
    fn default() -> Self {
        Self {
            grace: limits::GRACE,
            ship_after: limits::SHIP_AFTER,
            silence: limits::SILENCE,
            deadline_allowance: limits::DEADLINE_ALLOWANCE,
            last_words: limits::LAST_WORDS,
            last_lines: limits::LAST_LINES,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_cancelled_job_frees_its_slot_in_time() {
        let options = Options::default();
        // The documentation names it, and the word on the cut is to be shipped as well.
        assert_eq!(options.last_lines, Duration::from_secs(3));
        assert!(options.last_lines < options.last_words);
        // Nothing is shipped after that, and what left its group has ended with the grace.
        let ignoring_sigterm = options.grace + options.last_words;
        assert!(options.last_words <= Duration::from_secs(10));
        assert!(ignoring_sigterm <= Duration::from_secs(20));
    }
}
