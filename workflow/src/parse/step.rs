//! Reads `steps`.

use std::collections::BTreeSet;

use super::Reader;
use super::object::{Object, keys};
use crate::definition::Step;
use crate::diagnostic::Code;
use crate::expression::{Names, Site};
use crate::limits::{JOB_TIMEOUT, STEPS};
use crate::names::check_variable_name;
use crate::yaml::{Content, Entry, Node};

impl Reader<'_> {
    pub(super) fn steps(&mut self, entry: &Entry, names: &Names) -> Vec<Step> {
        if let Content::List(items) = &entry.value.content
            && items.is_empty()
        {
            self.report
                .error(entry.value.span, Code::Empty, "`steps` is empty")
                .hint("a scan has at least one step with `run`");
        }
        let items = self.items(entry, "`steps`", "[ { run: ls } ]", STEPS);
        let mut used = BTreeSet::new();
        let mut names = names.clone();
        let mut steps = Vec::with_capacity(items.len());
        for (place, item) in items.iter().enumerate() {
            names.steps_before = place;
            steps.extend(self.step(item, &mut used, &names));
        }
        steps
    }

    fn step(&mut self, node: &Node, used: &mut BTreeSet<String>, names: &Names) -> Option<Step> {
        let object = Object::of(node, "a step", "{ run: ls }", &mut self.report)?;
        object.check_keys(&keys::STEP, &mut self.report);
        let name = object
            .get("name")
            .and_then(|entry| self.step_name(entry, used));
        let run = match object.get("run") {
            Some(entry) => self.template(&entry.value, "`run`", Site::Script, names),
            None => {
                self.report
                    .error(object.head(), Code::MissingKey, "a step needs `run`")
                    .hint("write the script after `run: |`");
                None
            }
        };
        let shell = object.get("shell").and_then(|entry| self.shell(entry));
        if let (Some(entry), Some(run)) = (object.get("run"), &run)
            && shell.is_some() == object.get("shell").is_some()
        {
            self.shebang(&entry.value, run.source(), shell.as_deref());
        }
        let condition = object
            .get("if")
            .and_then(|entry| self.expression(entry, "`if`", Site::Condition, names));
        let allow_failure = object
            .get("allow_failure")
            .and_then(|entry| self.boolean(entry, "`allow_failure`"))
            .unwrap_or(false);
        let timeout = object
            .get("timeout")
            .and_then(|entry| self.duration(entry, "`timeout`", Some(JOB_TIMEOUT)));
        Some(Step {
            name,
            run: run?,
            shell,
            condition,
            allow_failure,
            timeout,
        })
    }

    fn step_name(&mut self, entry: &Entry, used: &mut BTreeSet<String>) -> Option<String> {
        let text = self.text(&entry.value, "`name`")?;
        if let Err(error) = check_variable_name("a step name", text) {
            self.report
                .error(entry.value.span, Code::InvalidName, error.to_string())
                .hint("expressions write it as `steps.NAME`");
            return None;
        }
        if !used.insert(text.to_owned()) {
            let message = format!("the scan has two steps named `{text}`");
            self.report
                .error(entry.value.span, Code::DuplicateName, message);
            return None;
        }
        Some(text.to_owned())
    }

    /// The words of a command line, split like in a shell.
    fn shell(&mut self, entry: &Entry) -> Option<Vec<String>> {
        if let Content::List(_) = &entry.value.content {
            let message = "`shell` must be a string, found a list";
            self.report
                .error(entry.value.span, Code::WrongType, message)
                .hint("write the words in one text, such as `bash -eu`");
            return None;
        }
        let text = self.text(&entry.value, "`shell`")?;
        match shell_words::split(text) {
            Ok(words) if words.is_empty() => {
                self.report
                    .error(
                        entry.value.span,
                        Code::InvalidShell,
                        "`shell` names no program",
                    )
                    .hint("leave the key out for the default shell");
                None
            }
            Ok(words) => {
                if text.contains("${{") {
                    let message = "`shell` is not a template: `${{` in it is passed on unchanged";
                    self.report
                        .warning(entry.value.span, Code::NoEffect, message)
                        .hint("write the command line as it is; values belong in `env` and `run`");
                }
                self.placeholder(&entry.value, text);
                Some(words)
            }
            Err(_) => {
                self.report.error(
                    entry.value.span,
                    Code::InvalidShell,
                    "a quote in `shell` is not closed",
                );
                None
            }
        }
    }
}
