//! Parses a workflow file into the model. It reads the YAML tree itself, so that it can report all errors of a file together,
//! each with its place.

mod artifact;
mod checkout;
mod consistency;
mod declared;
mod expect;
mod expressions;
pub(crate) mod object;
mod project;
mod renames;
mod scan;
mod starts;
mod step;
#[cfg(test)]
mod tests;
mod text;
mod triggers;
mod unexpanded;
mod variables;

use std::collections::BTreeSet;
use std::rc::Rc;
use std::sync::Arc;

use crate::definition::{Scan, Variable, Workflow};
use crate::diagnostic::{Code, Diagnostic};
use crate::expression::{Holder, Names, Sandbox};
use crate::limits::{FILE_BYTES, TITLE_CHARS};
use crate::names::ScanName;
use crate::position::Span;
use crate::report::Report;
use crate::yaml::{self, Content, Entry, Node};

use consistency::InputsRead;
use object::{Object, keys};
pub use project::{parse_project, parse_rule};

/// A valid file.
#[derive(Debug, Clone)]
pub struct Parsed {
    pub workflow: Workflow,
    pub warnings: Vec<Diagnostic>,
}

/// The beginning of the text that Git LFS stores in a repository instead of a file.
const LFS_POINTER: &str = "version https://git-lfs.github.com/spec/";

/// How to report free text that is pasted into a script.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum TemplatePolicy {
    #[default]
    Warn,
    Deny,
}

/// Parses one workflow file; `file` is its name in messages. All the work is one task on a sandbox thread.
///
/// # Errors
/// All errors and warnings of the file, in the order of the file.
pub fn parse(file: &str, text: &str, policy: TemplatePolicy) -> Result<Parsed, Vec<Diagnostic>> {
    if matches!(file.rsplit('/').next(), Some(".yaml" | ".yml")) {
        return Err(vec![Diagnostic::nameless(file)]);
    }
    in_sandbox(file, text, move |file, text| parse_here(file, text, policy))
}

/// Reads a text on a sandbox thread, unless its size or its beginning forbids it.
fn in_sandbox<T: Send + 'static>(
    file: &str,
    text: &str,
    read: impl FnOnce(&str, &str) -> Result<T, Vec<Diagnostic>> + Send + 'static,
) -> Result<T, Vec<Diagnostic>> {
    if text.len() > FILE_BYTES {
        return Err(vec![Diagnostic::too_large(file)]);
    }
    if text.starts_with(LFS_POINTER) {
        return Err(vec![Diagnostic::lfs_pointer(file)]);
    }
    let (owned_file, owned_text) = (file.to_owned(), text.to_owned());
    let parsed =
        Sandbox::shared().and_then(|sandbox| sandbox.parse(move || read(&owned_file, &owned_text)));
    parsed.unwrap_or_else(|error| {
        let (code, message) = (Code::EngineUnavailable, error.to_string());
        Err(vec![Diagnostic::of_file(file, code, message, None)])
    })
}

fn parse_here(file: &str, text: &str, policy: TemplatePolicy) -> Result<Parsed, Vec<Diagnostic>> {
    let mut reader = Reader::new(file, text, policy);
    let workflow = yaml::build(text, &mut reader.report).and_then(|root| reader.workflow(&root));
    match workflow {
        Some(workflow) if !reader.report.has_errors() => Ok(Parsed {
            workflow,
            warnings: reader.report.finish(),
        }),
        Some(_) | None => {
            if !reader.report.has_errors() {
                reader
                    .report
                    .error(Span::default(), Code::Empty, "the file is empty")
                    .hint("a workflow has at least `scans:` with one scan");
            }
            Err(reader.report.finish())
        }
    }
}

/// Reads the tree. Its functions return the parts that they could read, and report the rest.
struct Reader<'t> {
    report: Report<'t>,
    policy: TemplatePolicy,
    /// Inputs that the expressions read since this was last emptied.
    inputs_read: InputsRead,
    /// Bytes of all expressions so far.
    expression_bytes: usize,
    /// Environment variables of the workflow.
    shared_variables: BTreeSet<String>,
    /// Environment variables of the scan that is being read.
    variables: BTreeSet<String>,
}

impl<'t> Reader<'t> {
    fn new(file: &'t str, text: &'t str, policy: TemplatePolicy) -> Self {
        Self {
            report: Report::new(file, text),
            policy,
            inputs_read: InputsRead::default(),
            expression_bytes: 0,
            shared_variables: BTreeSet::new(),
            variables: BTreeSet::new(),
        }
    }

    fn workflow(&mut self, root: &Rc<Node>) -> Option<Workflow> {
        if root.is_null() {
            return None;
        }
        let object = Object::of(
            root,
            "a workflow",
            "{ scans: { NAME: … } }",
            &mut self.report,
        )?;
        self.shared_variables = declared::variables(root);
        let before = self.report.unread();
        object.check_keys(&keys::WORKFLOW, &mut self.report);
        // True if the object has no unknown and no duplicate keys.
        let is_plain = self.report.unread() == before && !root.is_partial();
        let name = object.get("name").and_then(|entry| self.title(entry));
        let description = object
            .get("description")
            .and_then(|entry| self.text(&entry.value, "`description`"));
        if let Some(entry) = object.get("$schema") {
            self.text(&entry.value, "`$schema`");
        }
        let Some(scans) = object.get("scans") else {
            self.report
                .error(object.head(), Code::MissingKey, "a workflow needs `scans`")
                .hint("write `scans:` with one scan below it");
            return None;
        };
        let (scans, env) = self.scans(scans, object.get("env"), is_plain)?;
        Some(Workflow::new(
            name,
            description.map(str::to_owned),
            env,
            scans,
        ))
    }

    fn scans(
        &mut self,
        entry: &Entry,
        env: Option<&Entry>,
        is_plain: bool,
    ) -> Option<(Vec<Scan>, Arc<[Variable]>)> {
        let Content::Map(entries) = &entry.value.content else {
            self.wrong_type(entry, "`scans`", "an object of scans");
            return None;
        };
        if entries.is_empty() {
            self.report
                .error(entry.value.span, Code::Empty, "`scans` is empty")
                .hint("a workflow has at least one scan");
        }
        // Shared: with a copy for each scan, the cost would grow with the square of the number of scans.
        let scans = Arc::new(declared::scans(entries));
        let triggers: Vec<_> = entries
            .iter()
            .map(|entry| self.triggers_of(entry, &scans))
            .collect();
        self.bound_triggers(entries, &triggers);
        self.renames(entries);
        // An unread scan, or a scan below a misspelled key, may start first.
        if is_plain && !entry.value.is_partial() {
            self.starts(entries, &triggers);
        }
        let inputs: Vec<_> = entries
            .iter()
            .map(|entry| declared::inputs(&entry.value))
            .collect();
        let shared = Names {
            scans: Some(Arc::clone(&scans)),
            holder: Holder::EveryScan,
            inputs: declared::common(&inputs),
            steps: None,
            steps_before: 0,
            is_terse: self.report.is_full(),
        };
        let inherited = self.inherited(env, is_plain, &shared);
        let mut read = Vec::new();
        for ((entry, triggers), inputs) in entries.iter().zip(triggers).zip(inputs) {
            let names = Names {
                scans: Some(Arc::clone(&scans)),
                holder: Holder::Scan(entry.key.to_string()),
                inputs,
                steps: declared::steps(&entry.value),
                steps_before: usize::MAX,
                is_terse: self.report.is_full(),
            };
            self.variables = declared::variables(&entry.value);
            read.extend(self.scan(entry, triggers, &inherited, &names));
        }
        Some((read, inherited.variables))
    }

    fn title(&mut self, entry: &Entry) -> Option<String> {
        let text = self.text(&entry.value, "`name`")?;
        if text.trim().is_empty()
            || text.chars().count() > TITLE_CHARS
            || text.contains(char::is_control)
        {
            let message = format!("`name` is one line of 1 to {TITLE_CHARS} characters");
            self.report
                .error(entry.value.span, Code::InvalidValue, message);
            return None;
        }
        Some(text.to_owned())
    }

    fn scan_name(&mut self, entry: &Entry) -> Option<ScanName> {
        match ScanName::new(&*entry.key) {
            Ok(name) => {
                if !name.is_dotted() {
                    self.report
                        .warning(
                            entry.key_span,
                            Code::AwkwardName,
                            format!("expressions cannot write `scans.{name}`"),
                        )
                        .hint(format!("they reach it as `scans[\"{name}\"]`"));
                }
                Some(name)
            }
            Err(error) => {
                let suggestion: String = entry
                    .key
                    .chars()
                    .map(|c| if c.is_ascii_alphanumeric() { c } else { '_' })
                    .collect();
                let reported =
                    self.report
                        .error(entry.key_span, Code::InvalidName, error.to_string());
                if ScanName::new(suggestion.as_str()).is_ok() {
                    reported.hint(format!("write `{suggestion}`"));
                }
                None
            }
        }
    }
}
