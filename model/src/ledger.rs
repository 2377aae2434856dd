//! The ledger of a scan: why its triggers created a job or did not.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use workflow::notify::NotifyName;

use crate::callback::CallbackId;
use crate::{Clause, JobId, Reason, Timestamp};

/// One check of a scan's trigger. Repeated checks with the same outcome share one record.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct LedgerRecord {
    pub at: Timestamp,
    /// The cause of the check.
    pub cause: Cause,
    /// The result of the expression, if an expression was evaluated.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub evaluation: Option<Evaluation>,
    pub outcome: Outcome,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "snake_case")]
pub enum Cause {
    /// Slots of the schedule were due.
    Slots {
        first: Timestamp,
        last: Timestamp,
        /// Counted up to a limit.
        count: u64,
        /// The schedule of a single slot, if the scan has several.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        schedule: Option<String>,
    },
    /// The scan was resumed. The slot was due during the suspension, and has an earlier record.
    Resumed {
        slot: Timestamp,
        /// The schedule of the slot, if the scan has several.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        schedule: Option<String>,
    },
    /// A scan succeeded.
    Success {
        scan: String,
        /// The newest successful job of this scan.
        job: JobId,
    },
    /// A revision added or changed the scan, whose expression uses `has_news`.
    Activation {
        /// The number of the revision.
        revision: u64,
    },
    /// A scan failed, and the expression uses `has_failed`.
    Failure {
        scan: String,
        /// The newest failed job of this scan.
        job: JobId,
    },
    /// A callback server had interactions that the scan had not considered.
    Interactions {
        server: CallbackId,
        name: NotifyName,
        first: u64,
        last: u64,
        count: u64,
        /// How many of them used names that jobs of the scan itself have made.
        #[serde(default, skip_serializing_if = "crate::is_zero")]
        own: u64,
    },
    /// A runner claimed a job that the expression had started.
    Claim { job: JobId },
    /// The clock is behind the cursor of the schedule.
    Clock { cursor: Timestamp },
    /// The same outcome as before, several times.
    Repeats {
        first: Timestamp,
        last: Timestamp,
        count: u64,
    },
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "snake_case")]
pub enum Outcome {
    Made {
        job: JobId,
    },
    NotMade {
        reason: Reason,
    },
    /// The job was skipped at its claim.
    Skipped {
        job: JobId,
        reason: Reason,
    },
}

/// The result of an expression, and its inputs.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Evaluation {
    pub expression: String,
    /// The result, with its parts.
    pub clause: Clause,
    /// The values that it read of each scan that it uses.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub scans: BTreeMap<String, ScanRead>,
}

impl Evaluation {
    /// True or false. `None` if the evaluation failed.
    pub fn holds(&self) -> Option<bool> {
        self.clause.value.as_ref()?.as_bool()
    }
}

/// The values that an expression read of a scan.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ScanRead {
    /// The value of `size()`.
    pub size: u64,
    /// The value of `is_available()`.
    pub available: bool,
    /// The value of `has_diff()`.
    pub diff: bool,
    /// The value of `has_news()`, if the expression uses it for this scan.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub news: Option<bool>,
    /// The value of `has_failed()`.
    #[serde(default)]
    pub failed: bool,
    /// The two newest successful jobs of the scan, newest first.
    pub successes: Vec<JobId>,
}

/// Repeated checks with the same outcome. While the outcome does not change, only this counter is written, so that a
/// refusal every minute does not make the ledger grow.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Repeats {
    /// Why these checks created no job.
    pub reason: Reason,
    /// The first check after the check that has its own record.
    pub first: Timestamp,
    pub last: Timestamp,
    /// The number of checks, without the check that has its own record.
    pub count: u64,
}

impl Repeats {
    /// None if there are no repeated checks.
    pub fn into_record(self) -> Option<LedgerRecord> {
        let Self {
            reason,
            first,
            last,
            count,
        } = self;
        (count > 0).then_some(LedgerRecord {
            at: last,
            cause: Cause::Repeats { first, last, count },
            evaluation: None,
            outcome: Outcome::NotMade { reason },
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_of_a_slot_keeps_its_form_with_and_without_a_schedule() {
        let at = "2026-11-21T11:00:00Z";
        let outcome = format!(
            r#""outcome":{{"kind":"made","job":"{}"}}"#,
            JobId::FIRST.uuid()
        );
        for cause in [
            format!(r#""kind":"slots","first":"{at}","last":"{at}","count":1"#),
            format!(r#""kind":"resumed","slot":"{at}""#),
        ] {
            let line = |cause: &str| format!(r#"{{"at":"{at}","cause":{{{cause}}},{outcome}}}"#);
            // An older program wrote no schedule.
            for (line, named) in [
                (line(&cause), None),
                (
                    line(&format!(r#"{cause},"schedule":"0 11 * * 6""#)),
                    Some("0 11 * * 6"),
                ),
            ] {
                let record: LedgerRecord = serde_json::from_str(&line).unwrap();
                let (Cause::Slots { schedule, .. } | Cause::Resumed { schedule, .. }) =
                    &record.cause
                else {
                    panic!("{record:?}")
                };
                assert_eq!(schedule.as_deref(), named);
                assert_eq!(serde_json::to_string(&record).unwrap(), line);
            }
        }
    }
}
