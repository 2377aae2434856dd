//! What the parts of an expression said, what they read, and what was known of the scans they name.

use std::collections::BTreeMap;

use serde::Serialize;
use serde_json::Value;
use workflow::{Explanation, Operand, ScanHistory};

use crate::error::Error;
use crate::untrusted::clean;

/// Jobs that a line names. All of them are told in JSON.
const NAMED: usize = 3;

/// A part of an expression.
#[derive(Debug, Serialize)]
pub(crate) struct Clause {
    /// The operator of a combination, the source of a leaf.
    text: String,
    /// Absent also when the others had decided, so that it was left out.
    #[serde(skip_serializing_if = "Option::is_none")]
    value: Option<Value>,
    /// Why it has no value.
    #[serde(skip_serializing_if = "Option::is_none")]
    error: Option<String>,
    /// The scans that it asked, with the ids of the jobs that it read, newest first.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    jobs: BTreeMap<String, Vec<String>>,
    /// How many jobs it has read besides those.
    #[serde(skip)]
    more_jobs: u64,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    parts: Vec<Clause>,
}

impl From<Explanation> for Clause {
    fn from(explanation: Explanation) -> Self {
        let Explanation {
            text,
            result,
            jobs,
            parts,
        } = explanation;
        let (value, error) = match result {
            Ok(value) if value.fits_json() => (Some(value.to_json()), None),
            Ok(_) => (None, Some(Error::NoJson.to_string())),
            Err(error) => (None, Some(error.to_string())),
        };
        let newest_first = |jobs: std::collections::BTreeSet<String>| jobs.into_iter().rev();
        Self {
            text,
            value,
            error,
            jobs: jobs
                .into_iter()
                .map(|(scan, jobs)| (scan, newest_first(jobs).collect()))
                .collect(),
            more_jobs: 0,
            parts: parts.into_iter().map(Self::from).collect(),
        }
    }
}

impl From<Operand> for Clause {
    fn from(operand: Operand) -> Self {
        match operand {
            Operand::Evaluated(explanation) => explanation.into(),
            Operand::LeftOut(text) => Self {
                text,
                value: None,
                error: None,
                jobs: BTreeMap::new(),
                more_jobs: 0,
                parts: Vec::new(),
            },
        }
    }
}

impl From<&wire::Clause> for Clause {
    fn from(clause: &wire::Clause) -> Self {
        let ids = |jobs: &Vec<uuid::Uuid>| jobs.iter().map(ToString::to_string).collect();
        Self {
            text: clause.text.clone(),
            value: clause.value.clone(),
            error: clause.error.clone(),
            jobs: clause
                .jobs
                .iter()
                .map(|(scan, jobs)| (scan.clone(), ids(jobs)))
                .collect(),
            more_jobs: clause.more_jobs,
            parts: clause.parts.iter().map(Self::from).collect(),
        }
    }
}

impl Clause {
    /// The parts on lines of their own; deeper ones stand further in.
    pub(crate) fn tree(&self, depth: usize) -> String {
        let line = clean(&format!("{} = {}{}", self.text, self.said(), self.read()));
        let mut text = format!("{}{line}\n", "    ".repeat(depth));
        text.extend(self.parts.iter().map(|part| part.tree(depth + 1)));
        text
    }

    /// The value, or why there is none.
    pub(crate) fn said(&self) -> String {
        match (&self.value, &self.error) {
            (Some(value), _) => value.to_string(),
            (None, Some(error)) => format!("error: {error}"),
            (None, None) => "not evaluated".to_owned(),
        }
    }

    /// The jobs that were read, as the end of a line.
    fn read(&self) -> String {
        let jobs: Vec<&str> = self.jobs.values().flatten().map(String::as_str).collect();
        let named = jobs.get(..NAMED).unwrap_or(&jobs);
        let more = (jobs.len() - named.len()) as u64 + self.more_jobs;
        let named = named.join(", ");
        match (named.is_empty(), more) {
            (true, 0) => String::new(),
            // A record has room for so many ids, and earlier parts have taken it.
            (true, 1) => ", read 1 job".to_owned(),
            (true, jobs) => format!(", read {jobs} jobs"),
            (false, 0) => format!(", read {named}"),
            (false, more) => format!(", read {named} and {more} more"),
        }
    }
}

/// What was known of a scan.
#[derive(Debug, Serialize)]
pub(crate) struct Known {
    size: u64,
    available: bool,
    diff: bool,
    /// The ids of its two newest successes, newest first.
    successes: Vec<String>,
}

impl From<ScanHistory> for Known {
    fn from(history: ScanHistory) -> Self {
        Self {
            size: history.size,
            available: history.available,
            diff: history.has_diff(None),
            successes: history.newest_success_ids,
        }
    }
}

impl From<&wire::ScanRead> for Known {
    fn from(read: &wire::ScanRead) -> Self {
        let wire::ScanRead {
            size,
            available,
            diff,
            successes,
        } = read;
        Self {
            size: *size,
            available: *available,
            diff: *diff,
            successes: successes.iter().map(ToString::to_string).collect(),
        }
    }
}

impl Known {
    /// It on a line.
    pub(crate) fn line(&self, scan: &str) -> String {
        let Self {
            size,
            available,
            diff,
            successes,
        } = self;
        let successes = if successes.is_empty() {
            "none".to_owned()
        } else {
            successes.join(", ")
        };
        clean(&format!(
            "of {scan}: size() {size}, is_available() {available}, has_diff() {diff}; newest successes {successes}"
        ))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(jobs: usize, more_jobs: u64) -> String {
        let jobs = (1..=jobs).map(|number| format!("j{number}")).collect();
        let clause = Clause {
            text: "scans.a.exists(j, j.state == 'failed')".to_owned(),
            value: Some(true.into()),
            error: None,
            jobs: BTreeMap::from([("a".to_owned(), jobs)]),
            more_jobs,
            parts: Vec::new(),
        };
        clause.read()
    }

    #[test]
    fn a_line_names_the_newest_jobs_and_counts_the_others() {
        assert_eq!(read(0, 0), "");
        assert_eq!(read(2, 0), ", read j1, j2");
        assert_eq!(read(4, 0), ", read j1, j2, j3 and 1 more");
        assert_eq!(read(4, 95), ", read j1, j2, j3 and 96 more");
    }

    #[test]
    fn jobs_that_a_record_had_no_room_to_name_are_counted() {
        assert_eq!(read(0, 1), ", read 1 job");
        assert_eq!(read(0, 100), ", read 100 jobs");
    }

    #[test]
    fn a_scan_is_told_with_its_newest_successes() {
        let line = |successes: &[&str]| {
            let known = Known {
                size: 3,
                available: true,
                diff: false,
                successes: successes.iter().map(ToString::to_string).collect(),
            };
            known.line("hosts")
        };
        let head = "of hosts: size() 3, is_available() true, has_diff() false; newest successes";
        assert_eq!(line(&["j5", "j4"]), format!("{head} j5, j4"));
        assert_eq!(line(&[]), format!("{head} none"));
    }
}
