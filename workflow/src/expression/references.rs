//! What an expression names: the edges of the graph of scans, and what has to be at hand when it is evaluated.

use std::collections::BTreeSet;

/// The names in an expression or template.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct References {
    /// Scans named as `scans.X` or `scans["X"]`.
    pub scans: BTreeSet<String>,
    /// Whether it indexes `scans` by a computed name, and so may read any of them.
    pub any_scan: bool,
    /// Variables.
    pub vars: BTreeSet<String>,
    /// Secrets.
    pub secrets: BTreeSet<String>,
    /// Inputs.
    pub inputs: BTreeSet<String>,
    /// Whether it indexes `inputs` by a computed name.
    pub any_input: bool,
}

impl References {
    /// Adds all that `other` names.
    pub fn add(&mut self, other: &Self) {
        self.scans.extend(other.scans.iter().cloned());
        self.any_scan |= other.any_scan;
        self.vars.extend(other.vars.iter().cloned());
        self.secrets.extend(other.secrets.iter().cloned());
        self.inputs.extend(other.inputs.iter().cloned());
        self.any_input |= other.any_input;
    }

    /// Whether a success of `scan` is a reason to look at an `on.expr` with these references again: it names the scan,
    /// names none at all, or computes the name. Whose own success it is, is for the caller to know.
    pub fn woken_by(&self, scan: &str) -> bool {
        self.any_scan || self.scans.is_empty() || self.scans.contains(scan)
    }
}
