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
                job,
                failures,
                succeeded,
                ..
            } => {
                match failures {
                    1 => write!(f, "job {job} failed")?,
                    _ => write!(f, "{failures} jobs failed, the last was job {job}")?,
                }
                match succeeded {
                    Some(at) => write!(f, "; the last success was at {}", time(*at)),
                    None => f.write_str("; there was no success yet"),
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
                "job {job} succeeded after {}, less than the expected {}",
                duration(*took),
                duration(*at_least)
            ),
            Self::TooLong { job, at_most } => {
                write!(f, "job {job} takes longer than the expected {}", duration(*at_most))
            }
            Self::Circle { job } => write!(
                f,
                "it and other scans start each other in a circle; the newest job is job {job}"
            ),
            Self::Stuck { job, reason } => write!(f, "job {job} waits: {reason}"),
            Self::HistoryDamaged => f.write_str("some lines of its history cannot be read; the daemon's log names the file, and `everscand fsck` checks it"),
            Self::Suspended { by, text } => write!(f, "suspended by {by}: {text}"),
            Self::SourceFailing { reason } | Self::RemovalHeld { reason } => write!(f, "{reason}"),
            Self::InvalidFile { file, message } => write!(f, "{file} is invalid: {message}"),
            Self::MissingVar { name } => write!(f, "a workflow uses the var `{name}`, which is not set"),
            Self::MissingSecret { name } => write!(f, "a workflow uses the secret `{name}`, which is not set"),
            Self::MissingCallback { name } => write!(f, "a scan uses the callback server `{name}`, which the project does not have"),
            Self::MissingChannel { name } => write!(f, "a rule sends to the channel `{name}`, which the project does not have"),
            Self::RunnerLost => f.write_str("the runner is not connected"),
            Self::TokenExpires { at } => write!(f, "the token expires at {}", time(*at)),
            Self::CertificateExpires { at } => {
                write!(f, "the TLS certificate expires at {}", time(*at))
            }
            Self::CallbackCertificate { at, reason } => {
                match at {
                    Some(at) => write!(f, "the certificate of callback servers expires at {}", time(*at))?,
                    None => f.write_str("HTTPS of callback servers has no certificate")?,
                }
                match reason {
                    Some(reason) => write!(f, ", and no new one is issued: {reason}"),
                    None => Ok(()),
                }
            }
            Self::DiskLow => f.write_str("the disk of the state is nearly full: no job starts"),
            Self::BackupOld { newest: None } => f.write_str("there is no backup"),
            Self::BackupOld {
                newest: Some(newest),
            } => write!(f, "the newest backup is of {}", time(*newest)),
            Self::CallbackFull { callback } => write!(
                f,
                "callback server {callback} has reached a limit and records nothing more"
            ),
            Self::ChannelFailing { channel, reason } => {
                write!(f, "messages to the channel {channel} do not arrive: {reason}")
            }
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
                    fine_since: None,
                },
                "job 00000000-0000-0000-0000-000000000000 failed; there was no success yet",
            ),
            (
                Problem::Failing {
                    job,
                    failures: 3,
                    succeeded: Some(at),
                    fine_since: None,
                },
                "3 jobs failed, the last was job 00000000-0000-0000-0000-000000000000; the last success was at 2026-09-21T14:13:20Z",
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
                "job 00000000-0000-0000-0000-000000000000 waits: no runner of this project is registered",
            ),
            (Problem::BackupOld { newest: None }, "there is no backup"),
        ];
        for (problem, expected) in cases {
            assert_eq!(problem.to_string(), expected);
        }
    }
}
