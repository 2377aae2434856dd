//! `steps`.

use super::Reader;
use super::keys;
use super::object::Object;
use crate::definition::Step;
use crate::diagnostic::Code;
use crate::expression::{Names, Site};
use crate::limits::{JOB_TIMEOUT, STEPS};
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
        items
            .iter()
            .filter_map(|item| self.step(item, names))
            .collect()
    }

    fn step(&mut self, node: &Node, names: &Names) -> Option<Step> {
        let object = Object::of(node, "a step", "{ run: ls }", &mut self.report)?;
        object.check_keys(&keys::STEP, &mut self.report);
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
            run: run?,
            shell,
            condition,
            allow_failure,
            timeout,
        })
    }

    /// The words of a command line, split as a shell splits them.
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
