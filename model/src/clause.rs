//! The result of each part of an expression, cut to the limits of a record.

use std::collections::{BTreeMap, BTreeSet};

use serde::{Deserialize, Serialize};
use workflow::{Explanation, Operand, Value};

use crate::limits::{CLAUSE_CHARS, CLAUSES, JOBS_READ};
use crate::{JobId, is_zero};

/// A part of an expression with its result. A part without value and error was not evaluated, because other parts
/// decided the result.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Clause {
    /// The operator of a combination, or the source of a leaf.
    pub text: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub value: Option<serde_json::Value>,
    /// Why it has no value.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub error: Option<String>,
    /// The scans and jobs that a leaf has read, newest job first.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub jobs: BTreeMap<String, Vec<JobId>>,
    /// The number of other jobs that it has read.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub more_jobs: u64,
    /// The parts of a combination, in order.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub parts: Vec<Clause>,
}

impl Clause {
    pub(crate) fn of(explanation: &Explanation) -> Self {
        let mut room = Room {
            clauses: CLAUSES,
            jobs: JOBS_READ,
        };
        room.evaluated(explanation)
    }

    /// For an expression that the engine could not evaluate.
    pub(crate) fn failed(source: &str, error: &str) -> Self {
        Self {
            error: Some(cut(error)),
            ..Self::left_out(source)
        }
    }

    fn left_out(text: &str) -> Self {
        Self {
            text: cut(text),
            value: None,
            error: None,
            jobs: BTreeMap::new(),
            more_jobs: 0,
            parts: Vec::new(),
        }
    }
}

/// The remaining space in a record.
struct Room {
    clauses: usize,
    jobs: usize,
}

impl Room {
    fn evaluated(&mut self, explanation: &Explanation) -> Clause {
        self.clauses = self.clauses.saturating_sub(1);
        let (value, error) = match &explanation.result {
            Ok(value) => (Some(value_of(value)), None),
            Err(error) => (None, Some(cut(&error.to_string()))),
        };
        let (jobs, more_jobs) = self.jobs(&explanation.jobs);
        let mut parts = Vec::new();
        for part in &explanation.parts {
            if self.clauses == 0 {
                break;
            }
            parts.push(match part {
                Operand::Evaluated(part) => self.evaluated(part),
                Operand::LeftOut(source) => {
                    self.clauses -= 1;
                    Clause::left_out(source)
                }
            });
        }
        Clause {
            text: cut(&explanation.text),
            value,
            error,
            jobs,
            more_jobs,
            parts,
        }
    }

    /// The newest jobs that fit, and the number of other jobs.
    fn jobs(
        &mut self,
        read: &BTreeMap<String, BTreeSet<String>>,
    ) -> (BTreeMap<String, Vec<JobId>>, u64) {
        let mut more = 0;
        let jobs = read.iter().map(|(scan, jobs)| {
            // Newer jobs have greater ids.
            let newest = jobs.iter().rev().filter_map(|job| job.parse().ok());
            let newest: Vec<JobId> = newest.take(self.jobs).collect();
            self.jobs -= newest.len();
            more += (jobs.len() - newest.len()) as u64;
            (scan.clone(), newest)
        });
        (jobs.collect(), more)
    }
}

/// A value for a record. A long value is replaced by its type.
fn value_of(value: &Value) -> serde_json::Value {
    let whole = value.to_json();
    if whole.to_string().len() <= CLAUSE_CHARS {
        whole
    } else {
        serde_json::Value::String(value.label().to_owned())
    }
}

fn cut(text: &str) -> String {
    text.chars().take(CLAUSE_CHARS).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn leaf(jobs: usize) -> Explanation {
        let job = |number| format!("0198c5f2-7c1e-7000-8000-{number:012}");
        Explanation {
            text: "scans.a.exists(j, true)".to_owned(),
            result: Ok(Value::Bool(true)),
            jobs: BTreeMap::from([("a".to_owned(), (0..jobs).map(job).collect())]),
            parts: Vec::new(),
        }
    }

    #[test]
    fn a_record_lists_the_newest_jobs_and_counts_the_others() {
        let whole = Explanation {
            jobs: BTreeMap::new(),
            parts: vec![
                Operand::Evaluated(leaf(JOBS_READ - 1)),
                Operand::Evaluated(leaf(3)),
            ],
            ..leaf(0)
        };
        let clause = Clause::of(&whole);
        let [first, second] = clause.parts.as_slice() else {
            panic!("{clause:?}")
        };
        assert_eq!((first.jobs["a"].len(), first.more_jobs), (JOBS_READ - 1, 0));
        let newest = second.jobs["a"][0].to_string();
        assert!(newest.ends_with("0002"), "{newest}");
        assert_eq!((second.jobs["a"].len(), second.more_jobs), (1, 2));
    }

    #[test]
    fn a_part_that_was_left_out_has_neither_value_nor_error() {
        let whole = Explanation {
            parts: vec![
                Operand::Evaluated(leaf(1)),
                Operand::LeftOut("scans.b.has_diff()".to_owned()),
            ],
            ..leaf(0)
        };
        let clause = Clause::of(&whole);
        assert_eq!(clause.parts[1], Clause::left_out("scans.b.has_diff()"));
    }

    #[test]
    fn a_record_holds_a_bounded_number_of_parts() {
        let mut whole = leaf(0);
        for _ in 0..2 * CLAUSES {
            whole = Explanation {
                parts: vec![Operand::Evaluated(whole), Operand::LeftOut("x".to_owned())],
                ..leaf(0)
            };
        }
        fn count(clause: &Clause) -> usize {
            1 + clause.parts.iter().map(count).sum::<usize>()
        }
        assert_eq!(count(&Clause::of(&whole)), CLAUSES);
    }
}
