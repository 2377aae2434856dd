//! The scans that a scan reads: the edges of a workflow's graph.

use crate::definition::{Scan, Workflow};
use crate::names::ScanName;

/// How a scan reads another scan.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum How {
    /// A success of the other scan causes an evaluation of `on.expr`, which may start this scan.
    Starts,
    /// This scan reads the other's results in another expression or a template, or reads its own history.
    Reads,
}

/// A scan that is read by another scan.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Reading {
    pub scan: ScanName,
    pub how: How,
}

impl Workflow {
    /// The scans that start this scan, and the scans whose results it reads, in the order of the file. A computed name
    /// may be the name of any scan.
    pub fn reads(&self, scan: &Scan) -> Vec<Reading> {
        let starts = scan.on.expr.as_ref().map(|expr| expr.references());
        let executed = scan.executed_references();
        let mut found = Vec::new();
        for other in self.scans() {
            let name = other.name.as_str();
            let is_itself = other.name == scan.name;
            let reading = |how| Reading {
                scan: other.name.clone(),
                how,
            };
            if !is_itself && starts.is_some_and(|references| references.woken_by(name)) {
                found.push(reading(How::Starts));
            }
            let reads_itself = is_itself && starts.is_some_and(|it| it.scans.contains(name));
            if reads_itself || executed.any_scan || executed.scans.contains(name) {
                found.push(reading(How::Reads));
            }
        }
        found
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{TemplatePolicy, parse};

    #[test]
    fn a_scan_is_started_by_what_its_expression_names_and_reads_what_its_steps_name() {
        let text = "
scans:
  a: { on: { dispatch: {} }, steps: [ { run: x } ] }
  b: { on: { expr: 'scans.a.has_diff() && scans.b.is_available()' }, steps: [ { run: x } ] }
  c:
    on: { expr: 'scans.a.is_available()' }
    steps: [ { run: 'echo ${{ scans.a[0].id }} ${{ scans.b.size() }}' } ]
  d: { on: { expr: 'vars.GO == \"1\"' }, steps: [ { run: x } ] }
  e: { on: { dispatch: {} }, steps: [ { run: x, if: 'scans[vars.NAME].size() > 0' } ] }
";
        let workflow = parse("w.yaml", text, TemplatePolicy::Warn)
            .unwrap()
            .workflow;
        let reads = |name: &str| -> Vec<String> {
            let readings = workflow.reads(workflow.scan(name).unwrap());
            let short = |it: &Reading| match it.how {
                How::Starts => format!("{}>", it.scan),
                How::Reads => format!("{}?", it.scan),
            };
            readings.iter().map(short).collect()
        };
        for (name, expected) in [
            ("a", &[][..]),
            ("b", &["a>", "b?"]),
            ("c", &["a>", "a?", "b?"]),
            ("d", &["a>", "b>", "c>", "e>"]),
            ("e", &["a?", "b?", "c?", "d?", "e?"]),
        ] {
            assert_eq!(reads(name), expected, "{name}");
        }
    }
}
