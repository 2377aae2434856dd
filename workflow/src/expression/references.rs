//! The names in an expression. They are the edges of the graph of scans, and the values that an evaluation needs.

use std::collections::{BTreeMap, BTreeSet};

/// How many jobs of a scan's history an evaluation needs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Reach {
    /// The newest success, however old it is.
    Success,
    /// This many of the newest jobs.
    Newest(usize),
    /// All jobs that expressions can read.
    All,
}

impl Reach {
    /// The reach that covers both.
    const fn and(self, other: Self) -> Self {
        match (self, other) {
            (Self::Success, Self::Success) => Self::Success,
            (Self::Newest(one), Self::Newest(two)) => {
                Self::Newest(if one > two { one } else { two })
            }
            (Self::Success | Self::Newest(_) | Self::All, _) => Self::All,
        }
    }
}

/// The names in an expression or template.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct References {
    /// Scans named as `scans.X` or `scans["X"]`.
    pub scans: BTreeSet<String>,
    /// Scans whose jobs it reads, with the number of jobs.
    pub jobs: BTreeMap<String, Reach>,
    /// Scans on which it calls `has_news()` or `processed()`.
    pub news: BTreeSet<String>,
    /// Scans on which it calls `has_failed()`.
    pub failures: BTreeSet<String>,
    /// Whether it indexes `scans` by a computed name, so that it may read any scan.
    pub any_scan: bool,
    pub vars: BTreeSet<String>,
    pub secrets: BTreeSet<String>,
    pub inputs: BTreeSet<String>,
    /// Whether it indexes `inputs` by a computed name.
    pub any_input: bool,
    /// Whether it may read the outputs of jobs.
    pub outputs: bool,
    /// Whether it reads steps of the same job.
    pub steps: bool,
    /// Whether it names `ok`.
    pub ok: bool,
    /// Whether it names `always`.
    pub always: bool,
}

impl References {
    pub fn add(&mut self, other: &Self) {
        self.scans.extend(other.scans.iter().cloned());
        for (scan, reach) in &other.jobs {
            self.reach(scan, *reach);
        }
        self.news.extend(other.news.iter().cloned());
        self.failures.extend(other.failures.iter().cloned());
        self.any_scan |= other.any_scan;
        self.vars.extend(other.vars.iter().cloned());
        self.secrets.extend(other.secrets.iter().cloned());
        self.inputs.extend(other.inputs.iter().cloned());
        self.any_input |= other.any_input;
        self.outputs |= other.outputs;
        self.steps |= other.steps;
        self.ok |= other.ok;
        self.always |= other.always;
    }

    /// Records that jobs of `scan` are read.
    pub(super) fn reach(&mut self, scan: &str, reach: Reach) {
        let known = self.jobs.entry(scan.to_owned()).or_insert(reach);
        *known = known.and(reach);
    }

    /// Whether any job of `scan` may be read.
    pub fn reads_jobs_of(&self, scan: &str) -> bool {
        self.any_scan || self.jobs.contains_key(scan)
    }

    /// Whether a success of `scan` causes an evaluation of an `on.expr` with these references: it names the scan, names no scan
    /// at all, or computes the name. The caller excludes the scan's own success.
    pub fn woken_by(&self, scan: &str) -> bool {
        self.is_woken_by_any() || self.scans.contains(scan)
    }

    /// Whether the success of any other scan causes an evaluation.
    pub(super) fn is_woken_by_any(&self) -> bool {
        self.any_scan || self.scans.is_empty()
    }

    /// Whether a failure of `scan` causes an evaluation of an `on.expr` with these references. Then its success also causes an
    /// evaluation.
    pub fn woken_by_failure(&self, scan: &str) -> bool {
        self.failures.contains(scan)
    }
}
