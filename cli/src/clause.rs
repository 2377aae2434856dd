//! Shows an evaluated expression: its parts with their values, and the scans and jobs that they read.

use serde_json::Value;
use wire::{Clause, ScanRead};
use workflow::{Explanation, Operand, ScanHistory};

use crate::error::Error;
use crate::untrusted::clean;

/// The number of jobs that a line names. JSON names all of them.
const NAMED: usize = 3;

pub(crate) fn of_explanation(explanation: Explanation) -> Clause {
    let Explanation {
        text,
        result,
        jobs,
        parts,
    } = explanation;
    let (value, error): (Option<Value>, _) = match result {
        Ok(value) if value.fits_json() => (Some(value.to_json()), None),
        Ok(_) => (None, Some(Error::NoJson.to_string())),
        Err(error) => (None, Some(error.to_string())),
    };
    // Ids increase with time.
    let jobs = jobs
        .into_iter()
        .map(|(scan, jobs)| (scan, jobs.into_iter().rev().collect()));
    let parts = parts.into_iter().map(|part| match part {
        Operand::Evaluated(explanation) => of_explanation(explanation),
        Operand::LeftOut(text) => Clause {
            text,
            ..Clause::default()
        },
    });
    Clause {
        text,
        value,
        error,
        jobs: jobs.collect(),
        more_jobs: 0,
        parts: parts.collect(),
    }
}

/// The facts about a scan's history that an expression reads.
pub(crate) fn scan_read(history: ScanHistory) -> ScanRead {
    ScanRead {
        size: history.size,
        available: history.available,
        diff: history.has_diff(None),
        news: history.news.is_some().then(|| history.has_news(None)),
        failed: history.failed,
        successes: history.newest_success_ids,
    }
}

/// A clause and its parts, one on each line. Each level is indented further.
pub(crate) fn tree(clause: &Clause, depth: usize) -> String {
    let line = format!("{} = {}{}", clause.text, result(clause), jobs_read(clause));
    let mut text = format!("{}{}\n", "    ".repeat(depth), clean(&line));
    text.extend(clause.parts.iter().map(|part| tree(part, depth + 1)));
    text
}

pub(crate) fn result(clause: &Clause) -> String {
    match (&clause.value, &clause.error) {
        (Some(value), _) => value.to_string(),
        (None, Some(error)) => format!("error: {error}"),
        (None, None) => "not evaluated".to_owned(),
    }
}

fn jobs_read(clause: &Clause) -> String {
    let jobs: Vec<&str> = clause.jobs.values().flatten().map(String::as_str).collect();
    let named = jobs.get(..NAMED).unwrap_or(&jobs);
    let more = (jobs.len() - named.len()) as u64 + clause.more_jobs;
    let named = named.join(", ");
    match (named.is_empty(), more) {
        (true, 0) => String::new(),
        // The record had no room for these ids, because earlier parts used it up.
        (true, 1) => ", read 1 job".to_owned(),
        (true, jobs) => format!(", read {jobs} jobs"),
        (false, 0) => format!(", read {named}"),
        (false, more) => format!(", read {named} and {more} more"),
    }
}

pub(crate) fn scan_line(scan: &str, read: &ScanRead) -> String {
    let ScanRead {
        size,
        available,
        diff,
        news,
        failed,
        successes,
    } = read;
    let news = news.map_or_else(String::new, |news| format!(", has_news() {news}"));
    let failed = if *failed { ", has_failed() true" } else { "" };
    let successes = if successes.is_empty() {
        "none".to_owned()
    } else {
        successes.join(", ")
    };
    clean(&format!(
        "of {scan}: size() {size}, is_available() {available}, has_diff() {diff}{news}{failed}; newest successes {successes}"
    ))
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::*;

    fn read(jobs: usize, more_jobs: u64) -> String {
        let jobs = (1..=jobs).map(|number| format!("j{number}")).collect();
        jobs_read(&Clause {
            jobs: BTreeMap::from([("a".to_owned(), jobs)]),
            more_jobs,
            ..Clause::default()
        })
    }

    #[test]
    fn a_line_names_the_newest_jobs_and_counts_the_others() {
        assert_eq!(read(0, 0), "");
        assert_eq!(read(2, 0), ", read j1, j2");
        assert_eq!(read(4, 0), ", read j1, j2, j3 and 1 more");
        assert_eq!(read(4, 95), ", read j1, j2, j3 and 96 more");
    }

    #[test]
    fn jobs_that_a_record_does_not_name_are_counted() {
        assert_eq!(read(0, 1), ", read 1 job");
        assert_eq!(read(0, 100), ", read 100 jobs");
    }

    #[test]
    fn a_scan_is_shown_with_its_newest_successes() {
        let line = |news, failed, successes: &[&str]| {
            let read = ScanRead {
                size: 3,
                available: true,
                diff: false,
                news,
                failed,
                successes: successes.iter().map(ToString::to_string).collect(),
            };
            scan_line("hosts", &read)
        };
        let head = "of hosts: size() 3, is_available() true, has_diff() false";
        let two = line(None, false, &["j5", "j4"]);
        assert_eq!(two, format!("{head}; newest successes j5, j4"));
        let none = line(Some(true), true, &[]);
        assert_eq!(
            none,
            format!("{head}, has_news() true, has_failed() true; newest successes none")
        );
    }
}
