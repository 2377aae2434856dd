//! Every bound of this package, with its reason.

use chrono::TimeDelta;
use std::num::NonZeroU32;
use std::time::Duration;

use api::Rate;

/// Shortest polling interval of a source. A host may regard more frequent requests as an attack.
pub(crate) const SHORTEST_INTERVAL: Duration = Duration::from_secs(1);

pub(crate) const LONGEST_CYCLE_PAUSE: TimeDelta = TimeDelta::hours(1);

/// How long remaining tasks may run after the drain. The drain has waited for all important tasks.
pub(crate) const LAST_TASKS: Duration = Duration::from_secs(2);

/// The limit of open files is not raised above this: 12,000 connections and their other files. Some programs that steps start
/// close all files up to the limit.
pub(crate) const MOST_OPEN_FILES: u64 = 32_768;

/// Least limit of open files with which the daemon starts: the reserve, and connections for some runners and people.
pub(crate) const LEAST_OPEN_FILES: u64 = 512;

/// Open files that connections never use: the journal and the files that it is applied to, which are some dozens, and Git for
/// several sources.
pub(crate) const RESERVED_FILES: u64 = 256;

/// Each connection may send or receive a file.
pub(crate) const FILES_OF_A_CONNECTION: u64 = 2;

pub(crate) const PROGRESS: Duration = Duration::from_millis(200);

/// Longest key file. A key has fewer than a hundred bytes, and a wrong path must not fill memory.
pub(crate) const KEY_FILE_BYTES: u64 = 4 * 1024;

/// Polling interval of `up` for its folder. A file is committed if it is unchanged between two polls, so a file that is still
/// being written is left alone. The delay is too short for a person to notice.
pub(crate) const FOLDER_POLL: Duration = Duration::from_millis(150);

/// How long a program of a channel may run, unless the configuration says otherwise.
pub(crate) const NOTIFY_COMMAND_TIMEOUT: TimeDelta = TimeDelta::seconds(30);

/// The default pause between heartbeats: monitors count minutes.
pub(crate) const BEAT_EVERY: TimeDelta = TimeDelta::minutes(1);

/// A daemon that commits nothing for this long is not well. A slow disk takes a second.
pub(crate) const COMMIT_WITHIN: Duration = Duration::from_secs(10);

/// Longest pause after heartbeats that failed, unless they are rarer: soon after the monitor is back, it hears of the daemon.
pub(crate) const LONGEST_BEAT_PAUSE: Duration = Duration::from_secs(5 * 60);

/// The default rate of requests of one token from other machines: more than a person or a waiting program needs, and few enough
/// that one client in a loop leaves room for the others.
pub(crate) const REQUESTS: Rate = Rate {
    per_second: NonZeroU32::new(200).unwrap(),
    burst: NonZeroU32::new(1_000).unwrap(),
};

/// Zones of callback servers. A few for different purposes; each needs a delegation.
pub(crate) const CALLBACK_ZONES: usize = 4;

/// Addresses in each answer of DNS, so that it stays small.
pub(crate) const CALLBACK_ADDRESSES: usize = 8;

/// Hits of callback servers that wait for the recorder: as many as arrive while a commit takes a tenth of a second. The largest ones
/// together have 128 MiB.
pub(crate) const CALLBACK_HITS: usize = 1024;

/// How long a failed order of a certificate holds the first order after a start.
pub(crate) const CERTIFICATE_AFTER_START: TimeDelta = TimeDelta::hours(1);

/// Time between two looks at whether a certificate is to be ordered. The clock may be set in between.
pub(crate) const CERTIFICATE_CHECK: Duration = Duration::from_secs(3600);

/// How much is kept of what an authority says.
pub(crate) const CERTIFICATE_REASON_CHARS: usize = 500;

/// Pause before a certificate is kept that could not be kept: the disk may have room again.
pub(crate) const KEEP_AGAIN: Duration = Duration::from_secs(60);

/// How deep `up` searches its folder: deeper than any sensible workflow name.
pub(crate) const FOLDER_DEPTH: usize = 16;

/// New jobs that `up` reports at once. Nobody reads more; the oldest jobs are left out.
pub(crate) const PRINTED_JOBS: usize = 100;

/// Records of a ledger that `up` searches for the record that made a job. The record is one of the newest.
pub(crate) const SEARCHED_RECORDS: usize = 10;

/// Bytes of payloads that callback servers answer at the same time: six of the largest. More wait.
pub(crate) const SERVED_BYTES: usize = 64 * 1024 * 1024;
