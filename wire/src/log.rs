//! Log records.

use chrono::{DateTime, Utc};
use serde::{Deserialize, Serialize};

/// One line of a job's log, numbered from 0 within the job.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct LogRecord {
    /// The record's number.
    pub n: u64,
    /// The line itself.
    #[serde(flatten)]
    pub record: NewLogRecord,
}

/// A log line before it has a number.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct NewLogRecord {
    /// When the runner read it.
    pub at: DateTime<Utc>,
    /// The step it belongs to, from 0; absent for lines about the job as a whole.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub step: Option<u32>,
    /// Where it came from.
    pub stream: Stream,
    /// The text without its line end.
    pub text: String,
}

/// Where a log line came from.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Stream {
    /// Standard output of a step.
    Stdout,
    /// Standard error of a step.
    Stderr,
    /// The runner's own word.
    Runner,
}

/// The answer to appended log records: how far the daemon has come.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct LogReceipt {
    /// Records below this number are stored; the next one expected has it.
    pub received: u64,
    /// Records below this number survive a power cut; the runner may forget them.
    pub durable: u64,
    /// The log has reached its limit: what steps print is not stored any more, so it need not be sent.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub full: bool,
}
