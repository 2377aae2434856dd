//! Damaged lines of one file. The first few are reported one by one and the rest are counted, so that a file of random
//! bytes produces few findings.

use std::fmt;

use store::Key;

use super::check::Check;
use super::finding::Code;
use crate::limits::REPORTED_LINES;

pub(crate) struct DamagedLines {
    code: Code,
    key: Key,
    lines: Vec<String>,
    more: u64,
}

impl DamagedLines {
    pub(crate) fn new(code: Code, key: &Key) -> Self {
        Self {
            code,
            key: key.clone(),
            lines: Vec::new(),
            more: 0,
        }
    }

    pub(crate) const fn is_empty(&self) -> bool {
        self.lines.is_empty()
    }

    pub(crate) fn add(&mut self, at: u64, problem: impl fmt::Display) {
        if (self.lines.len() as u64) < REPORTED_LINES {
            self.lines.push(format!("at byte {at}: {problem}"));
        } else {
            self.more += 1;
        }
    }

    pub(crate) fn finish(self, check: &mut Check<'_>) {
        for line in self.lines {
            check.find(self.code, &self.key, line);
        }
        if self.more > 0 {
            let what = format!("{} more lines are damaged", self.more);
            check.find(self.code, &self.key, what);
        }
    }
}
