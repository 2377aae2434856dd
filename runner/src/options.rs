//! The durations and bounds that a runner works with. Tests use shorter ones.

use std::time::Duration;

use crate::limits;

/// Each field is explained at the constant with its default.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Options {
    pub grace: Duration,
    pub answer: Duration,
    pub clean_up: Duration,
    pub full_pause: Duration,
    pub ship_after: Duration,
    pub artifact_progress: Duration,
    pub silence: Duration,
    pub session_allowance: Duration,
    pub timeout_uploads: Duration,
    pub final_report: Duration,
    pub stopped_silence: Duration,
    pub first_rest: Duration,
    pub final_log: Duration,
    pub supervisor_idle: Duration,
    pub source_cache: u64,
}

impl Default for Options {
    fn default() -> Self {
        Self {
            grace: limits::GRACE,
            answer: limits::ANSWER,
            clean_up: limits::CLEAN_UP,
            full_pause: limits::FULL_PAUSE,
            ship_after: limits::SHIP_AFTER,
            artifact_progress: limits::ARTIFACT_PROGRESS,
            silence: limits::SILENCE,
            session_allowance: limits::SESSION_ALLOWANCE,
            timeout_uploads: limits::TIMEOUT_UPLOADS,
            final_report: limits::FINAL_REPORT,
            stopped_silence: limits::STOPPED_SILENCE,
            first_rest: limits::FIRST_REST,
            final_log: limits::FINAL_LOG,
            supervisor_idle: limits::SUPERVISOR_IDLE,
            source_cache: limits::SOURCE_CACHE_BYTES,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::stop::Stop;

    #[test]
    fn a_job_without_contact_has_ended_before_its_retry_may_begin() {
        let options = Options::default();
        let stopped = options.silence + options.grace + limits::ANSWER;
        assert!(stopped < model::limits::RUNNER_SILENCE.to_std().unwrap());
        let seconds = format!("for {} seconds", options.silence.as_secs());
        assert!(Stop::ContactLost.explanation().ends_with(&seconds));
    }

    #[test]
    fn a_job_that_timed_out_is_reported_before_the_daemon_ends_it() {
        let options = Options::default();
        let cleaned_up = options.grace + options.clean_up + options.grace + limits::AFTER_KILL;
        assert!(cleaned_up < limits::TIMEOUT_REPORT);
        let end = model::limits::TIMEOUT_END.to_std().unwrap();
        assert!(limits::TIMEOUT_REPORT + options.final_log < end);
    }

    #[test]
    fn a_cancelled_job_frees_its_slot_in_time() {
        let options = Options::default();
        // The documentation has this value. There must also be time to ship the line about the cut.
        assert_eq!(options.final_log, Duration::from_secs(3));
        assert!(options.final_log < options.final_report);
        // Nothing is shipped after that. Processes that left their group have ended within the grace period.
        let ignoring_sigterm = options.grace + options.final_report;
        assert!(options.final_report <= Duration::from_secs(10));
        assert!(ignoring_sigterm <= Duration::from_secs(20));
        // The steps after a cancel come in addition, with their own grace period. The daemon must still accept the log.
        let with_clean_up = ignoring_sigterm + options.clean_up + options.grace;
        assert!(with_clean_up < limits::AFTER_EXPIRY);
    }
}
