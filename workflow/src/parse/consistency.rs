//! Warnings about parts of a scan that do not fit together. Only certain problems are reported, because people ignore warnings
//! that are sometimes wrong. If an error hides a part of the file that could make a warning wrong, the warning is not given.

use std::collections::BTreeSet;

use super::Reader;
use super::declared::{member, member_entry};
use crate::definition::{Artifact, Step, UploadOn};
use crate::diagnostic::Code;
use crate::expression::References;
use crate::limits::SEARCHED_BYTES;
use crate::names::check_variable_name;
use crate::path_pattern::PathPattern;
use crate::yaml::{Content, Entry, Node};

/// The inputs that expressions name.
#[derive(Default)]
pub(super) struct InputsRead {
    names: BTreeSet<String>,
    any: bool,
}

impl InputsRead {
    pub(super) fn add(&mut self, references: &References) {
        self.names.extend(references.inputs.iter().cloned());
        self.any |= references.any_input;
    }

    pub(super) fn clear(&mut self) {
        self.names.clear();
        self.any = false;
    }

    fn has(&self, name: &str) -> bool {
        self.any || self.names.contains(name)
    }
}

impl Reader<'_> {
    /// Whether the tree is complete at `node`. Always true in a file without errors.
    pub(super) fn is_whole(&self, node: &Node) -> bool {
        !self.report.has_errors() || node.is_whole()
    }

    /// Reports inputs that are named neither in the scan at `entry`, which was read completely, nor in the workflow's `env`.
    pub(super) fn unused_inputs(&mut self, entry: &Entry, inherited: &InputsRead) {
        let inputs = member(&entry.value, "on")
            .and_then(|on| member(on, "dispatch"))
            .and_then(|dispatch| member(dispatch, "inputs"));
        let Some(Content::Map(inputs)) = inputs.map(|inputs| &inputs.content) else {
            return;
        };
        for input in inputs {
            let is_read = self.inputs_read.has(&input.key) || inherited.has(&input.key);
            // If an expression cannot write the input's name, this was already reported as an error.
            if is_read || check_variable_name("an input name", &input.key).is_err() {
                continue;
            }
            let message = format!(
                "nothing in scan `{}` reads input `{}`",
                entry.shown_key(),
                input.shown_key()
            );
            self.report
                .warning(input.key_span, Code::UnusedInput, message)
                .hint(format!(
                    "read it as `inputs.{}`, or remove it",
                    input.shown_key()
                ));
        }
    }

    /// Warns if the artifact is stored although the step that makes it may be skipped: then its file is missing, which fails the
    /// job. After a failure this does not matter.
    pub(super) fn artifact_condition(&mut self, node: &Node, artifact: &Artifact, steps: &[Step]) {
        match artifact.upload_on {
            UploadOn::Failure => return,
            UploadOn::Success | UploadOn::Always => {}
        }
        // Compute this only once per step: comparing conditions takes time, and one step may make many paths.
        let stored_when = artifact.condition.as_ref();
        let lacks: Vec<bool> = steps
            .iter()
            .map(|step| {
                let made_when = step.condition.as_ref();
                made_when.is_some_and(|made_when| !made_when.follows_from(stored_when))
            })
            .collect();
        if !lacks.contains(&true) {
            return;
        }
        let scripts: usize = steps.iter().map(|step| step.run.source().len()).sum();
        let looked_at = artifact.paths.iter().take(SEARCHED_BYTES / scripts.max(1));
        let lacking = looked_at.filter_map(|path| Some((path, producer(path, steps)?)));
        let mut lacking = lacking.filter(|(_, step)| lacks.get(*step) == Some(&true));
        let Some((path, step)) = lacking.next() else {
            return;
        };
        let Some(made_when) = steps.get(step).and_then(|step| step.condition.as_ref()) else {
            return;
        };
        let Some(at) = member_entry(node, "if").or(member_entry(node, "name")) else {
            return;
        };
        let span = self.report.places(&at.value).whole();
        let message = format!(
            "artifact `{}` is also stored when the step that makes `{path}` is skipped",
            artifact.name
        );
        self.report
            .warning(span, Code::ArtifactCondition, message)
            .hint(if made_when.handles_failure() {
                "write `upload_on: failure` if the step runs after a failure only".to_owned()
            } else {
                format!(
                    "give the artifact the step's condition: `if: {}`",
                    made_when.source()
                )
            });
    }
}

/// The place of the only step that can make `path`: the scan's only step, or the only step whose script names the path, if that
/// script clearly writes to it. A script that does not name the path may still make it, as `make` does, so a step that only reads
/// or moves the path does not count as its producer.
fn producer(path: &str, steps: &[Step]) -> Option<usize> {
    let path = path.trim_start_matches("./").trim_end_matches('/');
    // The job's own folder always exists.
    if matches!(path, "" | ".") {
        return None;
    }
    if steps.len() == 1 {
        return Some(0);
    }
    if PathPattern::of(path).is_some() {
        return None;
    }
    let folder = path.split('/').next().unwrap_or(path);
    let mut naming = steps
        .iter()
        .enumerate()
        .filter(|(_, step)| step.run.source().contains(folder));
    match (naming.next(), naming.next()) {
        (Some((at, step)), None) if writes(step.run.source(), path) => Some(at),
        _ => None,
    }
}

/// Whether a script redirects into `path`, or passes it to an output option.
fn writes(script: &str, path: &str) -> bool {
    let is_end = |c: char| c.is_whitespace() || matches!(c, '"' | '\'' | ';' | '&' | '|' | ')');
    script.match_indices(path).any(|(at, _)| {
        let behind = script.get(at + path.len()..).unwrap_or("");
        let before = script.get(..at).unwrap_or("");
        let before = before.strip_suffix("./").unwrap_or(before);
        let before = before.trim_end_matches(['"', '\'']);
        let is_option = ["-o ", "-o", "--output ", "--output="]
            .iter()
            .any(|option| {
                before
                    .strip_suffix(option)
                    .is_some_and(|rest| rest.ends_with(' '))
            });
        let is_target = before.trim_end_matches(' ').ends_with('>') || is_option;
        is_target && (behind.is_empty() || behind.starts_with(is_end))
    })
}

#[cfg(test)]
mod tests {
    use super::writes;

    #[test]
    fn only_a_plain_output_counts_as_written() {
        for script in [
            "probe > out.txt",
            "probe >out.txt; ls",
            "probe >> \"out.txt\"",
            "probe > ./out.txt\n",
            "curl -o out.txt https://example.org",
            "probe --output=out.txt | tee log",
        ] {
            assert!(writes(script, "out.txt"), "{script}");
        }
        for script in [
            "cat out.txt",
            "probe < out.txt",
            "probe > out.txt.part",
            "mv other out.txt",
            "grep -vo out.txt",
            "make",
        ] {
            assert!(!writes(script, "out.txt"), "{script}");
        }
    }
}
