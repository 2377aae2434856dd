//! The scans that use the vars and secrets of their project.

use std::collections::{BTreeMap, BTreeSet};

use workflow::ScanName;

use crate::revision::ActiveWorkflow;

/// A scan that uses a var or secret.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct NamedBy {
    /// The workflow's name within its source.
    pub workflow: String,
    pub scan: ScanName,
}

/// The vars and secrets used in expressions and templates of a project, each with its scans.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Uses {
    pub vars: BTreeMap<String, BTreeSet<NamedBy>>,
    pub secrets: BTreeMap<String, BTreeSet<NamedBy>>,
}

impl Uses {
    /// The uses in the newest revisions of these workflows, which belong to one project.
    pub fn of<'a>(workflows: impl IntoIterator<Item = &'a ActiveWorkflow>) -> Self {
        let mut uses = Self::default();
        for workflow in workflows {
            for scan in workflow.revision.definition.scans() {
                let by = NamedBy {
                    workflow: workflow.record.name.clone(),
                    scan: scan.name.clone(),
                };
                let named = scan.references();
                for (names, all) in [
                    (named.vars, &mut uses.vars),
                    (named.secrets, &mut uses.secrets),
                ] {
                    for name in names {
                        all.entry(name).or_default().insert(by.clone());
                    }
                }
            }
        }
        uses
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::TestWorld;

    #[test]
    fn names_in_expressions_templates_and_env_are_found() {
        let mut test = TestWorld::new();
        let text = "
env: {ALL: '${{ vars.ALL }}'}
scans:
  a:
    on: {expr: 'vars.LEVEL == \"high\"'}
    steps: [{run: 'echo ${{ secrets.KEY }}', if: 'vars.GO != \"\"'}]
  b: {on: {dispatch: {}}, steps: [{run: 'echo ${{ secrets.KEY }}'}]}
";
        let id = test.push("w", text);
        let uses = Uses::of([&test.world.workflow(id).unwrap()]);
        let shown = |all: &BTreeMap<String, BTreeSet<NamedBy>>| -> Vec<String> {
            let one = |(name, by): (&String, &BTreeSet<NamedBy>)| {
                let scans: Vec<&str> = by.iter().map(|by| by.scan.as_str()).collect();
                format!("{name}: {}", scans.join(" "))
            };
            all.iter().map(one).collect()
        };
        assert_eq!(shown(&uses.vars), ["ALL: a b", "GO: a", "LEVEL: a"]);
        assert_eq!(shown(&uses.secrets), ["KEY: a b"]);
    }
}
