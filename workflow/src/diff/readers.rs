//! Finds the scans that still read an artifact that is no longer declared. The check of a file finds artifact names in `has_diff`
//! and `has_news`; this module finds the uses that a check cannot see: members of a job, and scripts that download the artifact.

use crate::definition::{Scan, Workflow};
use crate::expression::{Expression, References};

/// The other scans that read the artifact of `scan`.
pub(super) fn of_artifact(workflow: &Workflow, scan: &str, artifact: &str) -> Vec<String> {
    workflow
        .scans()
        .filter(|other| other.name.as_str() != scan && reads(other, scan, artifact))
        .map(|other| other.name.to_string())
        .collect()
}

fn reads(reader: &Scan, scan: &str, artifact: &str) -> bool {
    let conditions = reader
        .steps
        .iter()
        .map(|step| step.condition.as_ref())
        .chain(reader.artifacts.iter().map(|each| each.condition.as_ref()))
        .chain([reader.on.expr.as_ref()]);
    let conditions = conditions
        .flatten()
        .map(|it: &Expression| (it.source(), it.references()));
    let env = reader.env.iter().chain(reader.inherited_env.iter());
    let templates = env
        .map(|variable| &variable.value)
        .chain(reader.steps.iter().map(|step| &step.run));
    let templates = templates.map(|it| (it.source(), it.references()));
    let is_named = conditions.chain(templates).any(|(source, references)| {
        names(references, scan) && reads_member(source, scan, artifact)
    });
    is_named
        || (names(&reader.references(), scan)
            && reader
                .steps
                .iter()
                .any(|step| downloads(step.run.source(), artifact)))
}

fn names(references: &References, scan: &str) -> bool {
    references.any_scan || references.scans.contains(scan)
}

/// Whether an expression that names the scan reads the artifact, by name or together with all others.
fn reads_member(source: &str, scan: &str, artifact: &str) -> bool {
    let dense: String = source.split_whitespace().collect();
    let is_quoted = ['\'', '"']
        .iter()
        .any(|quote| dense.contains(&format!("{quote}{artifact}{quote}")));
    let is_member = dense
        .split(".artifacts.")
        .skip(1)
        .any(|rest| word(rest) == artifact);
    let compares_all = ["has_diff()", "has_news()"].iter().any(|call| {
        dense.contains(&format!("scans.{scan}.{call}"))
            || dense.contains(&format!("scans['{scan}'].{call}"))
            || dense.contains(&format!("scans[\"{scan}\"].{call}"))
    });
    is_quoted || is_member || compares_all
}

/// The name at the start of a text.
fn word(text: &str) -> &str {
    let end = text.find(|c: char| !c.is_ascii_alphanumeric() && c != '_');
    text.get(..end.unwrap_or(text.len())).unwrap_or_default()
}

/// Whether a script downloads an artifact of that name with `everscan job artifact download`.
fn downloads(script: &str, artifact: &str) -> bool {
    let words: Vec<&str> = script
        .split_whitespace()
        .map(|word| word.trim_matches(['\'', '"']))
        .collect();
    let is_flagged =
        |pair: &[&str]| matches!(pair, ["-a" | "--artifact", name] if *name == artifact);
    words.windows(2).any(is_flagged)
        || words.iter().any(|word| {
            let name = word.strip_prefix("--artifact=").or(word.strip_prefix("-a"));
            name.is_some_and(|name| name.trim_matches(['\'', '"', '=']) == artifact)
        })
}
