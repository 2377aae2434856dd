//! Every bound of this package, with its reason.

use chrono::TimeDelta;
use std::num::NonZeroU32;
use std::time::Duration;

use api::Rate;

/// Shortest polling interval of a source. A host may take more frequent requests for an attack.
pub(crate) const SHORTEST_INTERVAL: Duration = Duration::from_secs(1);

pub(crate) const LONGEST_CYCLE_PAUSE: TimeDelta = TimeDelta::hours(1);

/// How long remaining tasks may run after the drain. The drain has waited for everything that matters.
pub(crate) const LAST_TASKS: Duration = Duration::from_secs(2);

/// Open files beyond which the limit is not raised: 12,000 connections and what stands behind them. Some programs that
/// steps start close all files up to the limit.
pub(crate) const MOST_OPEN_FILES: u64 = 32_768;

/// Open files below which the daemon does not start: the reserve, and connections for some runners and people.
pub(crate) const LEAST_OPEN_FILES: u64 = 512;

/// Open files that connections never use: the journal and the files it is brought to, which take some dozens, and Git
/// for several sources.
pub(crate) const RESERVED_FILES: u64 = 256;

/// A connection may send or receive a file.
pub(crate) const FILES_OF_A_CONNECTION: u64 = 2;

pub(crate) const PROGRESS: Duration = Duration::from_millis(200);

/// Longest key file. A key has fewer than a hundred bytes, and a wrong path must not fill memory.
pub(crate) const KEY_FILE_BYTES: u64 = 4 * 1024;

/// Polling interval of `up` for its folder. A file is committed once it is unchanged between two polls, so a file that
/// is still being written is left alone. A person feels the delay as immediate.
pub(crate) const FOLDER_POLL: Duration = Duration::from_millis(150);

/// Requests of one token from other machines, unless the configuration says otherwise: more than a person or a program
/// that waits for its answers makes, and few enough that one client in a loop leaves room for the others.
pub(crate) const REQUESTS: Rate = Rate {
    per_second: NonZeroU32::new(200).unwrap(),
    burst: NonZeroU32::new(1_000).unwrap(),
};

/// How deep `up` searches its folder: deeper than any sensible workflow name.
pub(crate) const FOLDER_DEPTH: usize = 16;

/// New jobs that `up` reports at once. Nobody reads more; the oldest are left out.
pub(crate) const PRINTED_JOBS: usize = 100;

/// Records of a ledger that `up` searches for the record that made a job. It is among the newest.
pub(crate) const SEARCHED_RECORDS: usize = 10;
