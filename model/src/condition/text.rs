//! The sentences that show problems.

use std::fmt;

use chrono::{SecondsFormat, TimeDelta};
use workflow::format_duration;

use super::Problem;
use crate::Timestamp;

impl fmt::Display for Problem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Failing {
                failures,
                succeeded,
                ..
            } => {
                match failures {
                    1 => f.write_str("failed")?,
                    _ => write!(f, "failed {failures} times")?,
                }
                match succeeded {
                    Some(at) => write!(f, " since its last success at {}", time(*at)),
                    None => f.write_str(" and has never succeeded"),
                }
            }
            Self::Overdue { every, since } => write!(
                f,
                "no success since {}, but one is expected every {}",
                time(*since),
                duration(*every)
            ),
            Self::Late { job, within } => write!(
                f,
                "no runner has taken job {job} within {}",
                duration(*within)
            ),
            Self::TooShort {
                job,
                took,
                at_least,
            } => write!(
                f,
                "job {job} succeeded after {took}s, but at least {} are expected",
                duration(*at_least)
            ),
            Self::TooLong { job, at_most } => {
                write!(f, "job {job} ran for longer than {}", duration(*at_most))
            }
            Self::Circle { job } => write!(
                f,
                "it and other scans start each other in a circle, newest job {job}"
            ),
            Self::Stuck { job, reason } => write!(f, "job {job} waits: {reason}"),
            Self::HistoryDamaged => f.write_str("some lines of its history cannot be read; the daemon's log names the file, and `everscand fsck` checks it"),
            Self::Suspended { by, text } => write!(f, "suspended by {by}: {text}"),
            Self::SourceFailing { reason } => write!(f, "{reason}"),
            Self::InvalidFile { file, message } => write!(f, "{file} is invalid: {message}"),
            Self::RemovalHeld { commit } => write!(
                f,
                "commit {} removes many workflows and waits for an approval",
                commit.get(..12).unwrap_or(commit)
            ),
            Self::MissingVar { name } => write!(f, "the var {name} is used, but not set"),
            Self::MissingSecret { name } => write!(f, "the secret {name} is used, but not set"),
            Self::RunnerLost => f.write_str("not connected"),
            Self::TokenExpires { at } => write!(f, "the token expires at {}", time(*at)),
            Self::CertificateExpires { at } => {
                write!(f, "the TLS certificate expires at {}", time(*at))
            }
            Self::DiskLow => f.write_str("the disk of the state is nearly full: no job starts"),
            Self::BackupOld { newest: None } => f.write_str("there is no backup"),
            Self::BackupOld {
                newest: Some(newest),
            } => write!(f, "the newest backup is of {}", time(*newest)),
        }
    }
}

fn time(at: Timestamp) -> String {
    at.to_rfc3339_opts(SecondsFormat::Secs, true)
}

fn duration(seconds: u64) -> String {
    let seconds = i64::try_from(seconds).ok().and_then(TimeDelta::try_seconds);
    format_duration(seconds.unwrap_or(TimeDelta::MAX))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Actor, JobId, Reason};

    #[test]
    fn every_problem_has_a_sentence() {
        let job = JobId::FIRST;
        let at = Timestamp::from_timestamp(1_790_000_000, 0).unwrap();
        let text = |it: &str| it.to_owned();
        let cases = [
            (
                Problem::Failing {
                    job,
                    failures: 1,
                    succeeded: None,
                },
                "failed and has never succeeded",
            ),
            (
                Problem::Failing {
                    job,
                    failures: 3,
                    succeeded: Some(at),
                },
                "failed 3 times since its last success at 2026-09-21T14:13:20Z",
            ),
            (
                Problem::Overdue {
                    every: 93_600,
                    since: at,
                },
                "no success since 2026-09-21T14:13:20Z, but one is expected every 1d2h",
            ),
            (
                Problem::Suspended {
                    by: Actor::Daemon,
                    text: text("holidays"),
                },
                "suspended by everscand: holidays",
            ),
            (
                Problem::Stuck {
                    job,
                    reason: Reason::NoRunner,
                },
                "job 00000000-0000-0000-0000-000000000000 waits: no runner is registered",
            ),
            (
                Problem::RemovalHeld {
                    commit: text("0123456789abcdef"),
                },
                "commit 0123456789ab removes many workflows and waits for an approval",
            ),
            (Problem::BackupOld { newest: None }, "there is no backup"),
        ];
        for (problem, expected) in cases {
            assert_eq!(problem.to_string(), expected);
        }
    }
}
