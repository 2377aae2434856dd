//! Calls of functions and methods.

use cel_interpreter::common::ast::{CallExpr, IdedExpr};

use super::{Analysis, function_range};
use crate::diagnostic::Code;
use crate::expression::functions::{self, Lookup};
use crate::expression::kind::{Kind, Shape, Taint};
use crate::expression::pattern;
use crate::expression::reach::scan_of;
use crate::expression::site::Holder;
use crate::expression::syntax::NEGATION;
use crate::expression::tree::literal_text;
use crate::limits::{ARTIFACTS, PATTERN_BYTES, PATTERN_STATES};

/// Bytes that are matched against a pattern for one unit of cost.
const BYTES_PER_UNIT: u64 = 16;

impl Analysis<'_> {
    pub(super) fn call(&mut self, node: &IdedExpr, call: &CallExpr) -> Shape {
        if call.target.is_none()
            && let Some(shape) = self.operator(node, &call.func_name, &call.args)
        {
            return shape;
        }
        let arguments: Vec<&IdedExpr> = call
            .target
            .iter()
            .map(AsRef::as_ref)
            .chain(&call.args)
            .collect();
        let shapes: Vec<Shape> = arguments
            .iter()
            .map(|argument| self.value(argument))
            .collect();
        let kinds: Vec<&Kind> = shapes.iter().map(|shape| &shape.kind).collect();
        let name = call.func_name.as_str();
        let shown = || {
            kinds
                .iter()
                .map(ToString::to_string)
                .collect::<Vec<_>>()
                .join(", ")
        };
        match functions::lookup(name, call.target.is_some(), &kinds) {
            Lookup::Known(kind) => {
                let bytes = shapes
                    .iter()
                    .map(|shape| shape.bytes)
                    .fold(0, u64::saturating_add);
                self.spend(bytes);
                match name {
                    "matches" => self.pattern(arguments.last().copied(), bytes),
                    "has_diff" => self.artifact(&shapes, &arguments),
                    "has_news" => {
                        self.news(name, &shapes, &arguments);
                        self.artifact(&shapes, &arguments);
                    }
                    "processed" => self.news(name, &shapes, &arguments),
                    "has_failed" => {
                        if let Some(scan) = self.another_scan(name, &shapes, &arguments) {
                            self.references.failures.insert(scan);
                        }
                    }
                    _ => {}
                }
                let taint = shapes.iter().map(|shape| shape.taint).max();
                let length = shapes.iter().map(|shape| shape.length).max().unwrap_or(0);
                let shape = Shape::of(kind);
                return Shape {
                    bytes: bytes.max(shape.bytes),
                    length: shape.length.max(length),
                    ..shape
                }
                .tainted(taint.unwrap_or(Taint::Nobody));
            }
            Lookup::WrongArguments => {
                let message = format!("`{name}` does not take {}", shown());
                self.fault(self.range(node), Code::ExpressionType, message, None);
            }
            Lookup::WrongCount(counts) => {
                let message = format!("`{name}` takes {counts}");
                self.fault(self.range(node), Code::ExpressionType, message, None);
            }
            Lookup::MalformedMacro => {
                let message = format!("`{name}` is not called like this");
                let hint = match name {
                    "has" => "write `has(a.b)`".to_owned(),
                    _ => format!("write `list.{name}(x, …)`"),
                };
                self.fault(self.range(node), Code::ExpressionType, message, Some(hint));
            }
            Lookup::WrongForm => {
                let (message, hint) = if call.target.is_some() {
                    (
                        format!("`{name}` is a function, not a method"),
                        format!("write `{name}(…)`"),
                    )
                } else {
                    (
                        format!("`{name}` is a method, not a function"),
                        format!("write `x.{name}(…)`"),
                    )
                };
                self.fault(self.range(node), Code::UnknownFunction, message, Some(hint));
            }
            Lookup::Unknown => {
                let hint = match call.target {
                    None => self.suggested_call(name),
                    Some(_) => self.did_you_mean(name, functions::names()),
                };
                let range = function_range(self.source, self.positions, node, call);
                self.fault(
                    range.unwrap_or_else(|| self.range(node)),
                    Code::UnknownFunction,
                    format!("there is no function `{name}`"),
                    hint,
                );
            }
        }
        Shape::of(Kind::Any)
    }

    /// What to write instead of an unknown function.
    fn suggested_call(&self, name: &str) -> Option<String> {
        let offers = |name| matches!(self.site.root(name), Some(Ok(_)));
        if offers(name) {
            return Some(format!("write `{name}` without parentheses"));
        }
        match name {
            "not" | "NOT" => Some(NEGATION.to_owned()),
            // Functions of similar languages.
            "success" if offers("ok") => Some("write `ok`".to_owned()),
            "failure" if offers("ok") => {
                Some("write `!ok`; YAML needs quotes around it: `\"!ok\"`".to_owned())
            }
            "success" | "failure" => None,
            _ => self.did_you_mean(name, functions::names()),
        }
    }

    /// A pattern must be a literal, because it is compiled during the check.
    fn pattern(&mut self, argument: Option<&IdedExpr>, bytes: u64) {
        let Some(argument) = argument else {
            return;
        };
        let Some(text) = literal_text(argument) else {
            let message = "a pattern must be a literal string".to_owned();
            self.fault(
                self.range(argument),
                Code::ExpressionTooCostly,
                message,
                None,
            );
            return;
        };
        match pattern::states(text).map(|_| pattern::compile(text)) {
            Some(Some(pattern)) => {
                self.cost = self.cost.saturating_add(bytes / BYTES_PER_UNIT);
                self.patterns.push(pattern);
            }
            Some(None) => {
                let message = "this is not a regular expression".to_owned();
                self.fault(self.range(argument), Code::InvalidPattern, message, None);
            }
            None => {
                let message = format!(
                    "the pattern is too large: at most {PATTERN_BYTES} bytes and about {PATTERN_STATES} states are allowed"
                );
                self.fault(
                    self.range(argument),
                    Code::ExpressionTooCostly,
                    message,
                    None,
                );
            }
        }
    }

    /// `has_news` and `processed` read the successes of another scan.
    fn news(&mut self, method: &str, shapes: &[Shape], arguments: &[&IdedExpr]) {
        if let Some(scan) = self.another_scan(method, shapes, arguments) {
            self.references.news.insert(scan);
        }
    }

    /// The receiver of a method that needs the literal name of another scan.
    fn another_scan(
        &mut self,
        method: &str,
        shapes: &[Shape],
        arguments: &[&IdedExpr],
    ) -> Option<String> {
        let (shape, history) = (shapes.first()?, arguments.first()?);
        let named = scan_of(history).filter(
            |name| matches!(&shape.kind, Kind::History(Some(scan)) if scan.as_str() == *name),
        );
        let Some(scan) = named else {
            let message = format!("`{method}` needs the name of a scan, written out");
            let hint = format!("write `scans.NAME.{method}()`");
            self.fault(self.range(history), Code::DynamicName, message, Some(hint));
            return None;
        };
        let (message, hint) = match &self.names.holder {
            Holder::Scan(own) if own == scan => (
                format!("scan `{scan}` cannot call `{method}()` on itself"),
                if method == "has_failed" {
                    "`retry` follows a failure of its own, and so does a step with `if: \"!ok\"`"
                } else {
                    "a scan processes the results of other scans; `has_diff()` compares its own"
                },
            ),
            Holder::EveryScan => (
                format!(
                    "the workflow's `env` is also that of scan `{scan}`, which cannot call `{method}()` on itself"
                ),
                "move the entry to the `env` of the scans that need it",
            ),
            Holder::Scan(_) | Holder::Unknown => return Some(scan.to_owned()),
        };
        self.fault(
            self.range(history),
            Code::OwnScan,
            message,
            Some(hint.to_owned()),
        );
        None
    }

    /// Checks that scan X declares the artifact in `scans.X.has_diff('name')` and `has_news('name')`.
    fn artifact(&mut self, shapes: &[Shape], arguments: &[&IdedExpr]) {
        let (
            [
                Shape {
                    kind: Kind::History(Some(scan)),
                    ..
                },
                _,
            ],
            [_, argument],
        ) = (shapes, arguments)
        else {
            return;
        };
        let declared = self.names.scans.as_ref().and_then(|scans| scans.get(scan));
        let (Some(declared), Some(name)) = (declared, literal_text(argument)) else {
            return;
        };
        if !declared.contains(name) {
            let known = declared.iter().take(ARTIFACTS).map(String::as_str);
            let hint = self.did_you_mean(name, known);
            let message = format!("scan `{scan}` declares no artifact `{name}`");
            self.fault(self.range(argument), Code::UnknownArtifact, message, hint);
        }
    }
}
