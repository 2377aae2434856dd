//! Reads expressions and templates. Their total size in a file is limited, because compiling takes far longer than reading.

use super::{Reader, TemplatePolicy};
use crate::diagnostic::Code;
use crate::expression::{Expression, Fault, Names, Site, Taint, compile};
use crate::limits::{EXPRESSION_BYTES, FILE_EXPRESSION_BYTES};
use crate::position::Span;
use crate::template::{Tainted, Template, compile_template, expression_bytes};
use crate::yaml::{Content, Entry, Meaning, Node};

impl Reader<'_> {
    /// Compiles an expression. `what` is its key.
    pub(super) fn expression(
        &mut self,
        entry: &Entry,
        what: &str,
        site: Site,
        names: &Names,
    ) -> Option<Expression> {
        if entry.value.is_null() {
            self.wrong_type(entry, what, "an expression");
            return None;
        }
        // `if: true` is a valid condition although it is not text. A number is invalid, and has its own message.
        let literal = match &entry.value.content {
            Content::Scalar(scalar) => match scalar.meaning() {
                Meaning::Bool(_) => Some(scalar.text.to_lowercase()),
                Meaning::Number => Some(scalar.text.clone()),
                Meaning::Null | Meaning::Text => None,
            },
            Content::List(_) | Content::Map(_) | Content::Invalid => None,
        };
        let text = match &literal {
            Some(text) => text.as_str(),
            None => self.text(&entry.value, what)?,
        };
        // YAML keeps a line break at the end of a block.
        let trimmed = text.trim_end();
        if !self.affords(entry.value.span, trimmed.len().min(EXPRESSION_BYTES)) {
            return None;
        }
        match compile(trimmed, site, names) {
            Ok(compiled) => {
                self.inputs_read.add(compiled.expression.references());
                self.warnings(&entry.value, compiled.warnings);
                Some(compiled.expression)
            }
            Err(faults) => {
                self.faults(&entry.value, faults);
                None
            }
        }
    }

    /// Compiles a template. `what` is its key.
    pub(super) fn template(
        &mut self,
        node: &Node,
        what: &str,
        site: Site,
        names: &Names,
    ) -> Option<Template> {
        let text = self.text(node, what)?;
        if !self.affords(node.span, expression_bytes(text)) {
            return None;
        }
        let compiled = compile_template(text, site, names);
        self.warnings(node, compiled.warnings);
        if site == Site::Script && !compiled.tainted.is_empty() {
            let places = self.report.places(node);
            for tainted in compiled.tainted {
                // If an error hides the inputs, it is unknown which inputs are free text.
                if names.inputs.is_some() || tainted.taint == Taint::OfVar {
                    self.tainted(places.locate(tainted.range.clone()), &tainted);
                }
            }
        }
        match compiled.checked {
            Ok(template) => {
                self.inputs_read.add(template.references());
                Some(template)
            }
            Err(faults) => {
                self.faults(node, faults);
                None
            }
        }
    }

    /// Counts the bytes towards the file's limit for expressions. Only the first excess is reported.
    fn affords(&mut self, span: Span, bytes: usize) -> bool {
        let before = self.expression_bytes;
        self.expression_bytes = before.saturating_add(bytes);
        if self.expression_bytes <= FILE_EXPRESSION_BYTES {
            return true;
        }
        if before <= FILE_EXPRESSION_BYTES {
            let message = format!(
                "the expressions of the file have more than {FILE_EXPRESSION_BYTES} bytes together; aliases count each time"
            );
            self.report
                .error(span, Code::FileTooComplex, message)
                .hint("split the workflow, or compute in a step what many conditions share");
        } else {
            self.report.leave_unread();
        }
        false
    }

    fn faults(&mut self, node: &Node, faults: Vec<Fault>) {
        let places = self.report.places(node);
        for fault in faults {
            self.report.fault(&places, fault);
        }
    }

    fn warnings(&mut self, node: &Node, warnings: Vec<Fault>) {
        if warnings.is_empty() {
            return;
        }
        let places = self.report.places(node);
        for warning in warnings {
            let span = places.locate(warning.range);
            self.report
                .warning(span, warning.code, warning.message)
                .suggest(|| warning.hint);
        }
    }

    /// A var is only a warning, whatever the policy says: many files that are in use have one.
    fn tainted(&mut self, span: Span, tainted: &Tainted) {
        let is_var = tainted.taint == Taint::OfVar;
        let what = match tainted {
            _ if is_var => "a var",
            Tainted { is_of_step, .. } if *is_of_step => "an output",
            _ => "free text",
        };
        let message = format!("this pastes {what} into the script, where it can run any command");
        let reported = match self.policy {
            TemplatePolicy::Deny if !is_var => {
                self.report.error(span, Code::TaintedScript, message)
            }
            TemplatePolicy::Warn | TemplatePolicy::Deny => {
                self.report.warning(span, Code::TaintedScript, message)
            }
        };
        reported.hint(if tainted.is_of_step && !is_var {
            "compare it in an `if`, or pass the text on in a file"
        } else {
            "bind it to a name in `env` and write `\"$NAME\"` in the script"
        });
    }
}
