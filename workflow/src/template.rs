//! Templates: texts with `${{ expression }}`, in `run` and in values of `env`. Substitution is single-pass; `}}` inside a string
//! of the expression does not end it.

mod scan;
#[cfg(test)]
mod tests;

use std::fmt;
use std::ops::Range;
use std::sync::Arc;

use crate::diagnostic::Code;
use crate::expression::{
    EvaluationError, Expression, ExpressionError, Fault, Names, References, Sandbox, Site, Taint,
    Value, compile,
};
use crate::limits::{EXPRESSION_BYTES, EXPRESSION_COST, TEMPLATE_EXPRESSIONS};

/// A checked template. Cloning is cheap. Two templates are equal if their sources are equal.
#[derive(Clone)]
pub struct Template(Arc<Parts>);

struct Parts {
    source: String,
    pieces: Vec<Piece>,
    references: References,
}

enum Piece {
    Text(String),
    Expression(Expression),
}

/// A template, and results that only the loader of its file needs.
pub(crate) struct CompiledTemplate {
    /// The template, or every problem of it.
    pub(crate) checked: Result<Template, Vec<Fault>>,
    pub(crate) warnings: Vec<Fault>,
    /// The expressions whose text others can choose.
    pub(crate) tainted: Vec<Tainted>,
}

/// An expression whose text others can choose.
pub(crate) struct Tainted {
    /// The bytes of the expression in the source.
    pub(crate) range: Range<usize>,
    pub(crate) taint: Taint,
    /// Whether the text is an output of a step of the same job.
    pub(crate) is_of_step: bool,
}

impl Template {
    /// Whether all its expressions are shallow.
    pub(crate) fn is_shallow(&self) -> bool {
        self.0.pieces.iter().all(|piece| match piece {
            Piece::Text(_) => true,
            Piece::Expression(expression) => expression.is_shallow(),
        })
    }

    /// Parses and checks a template on its own, without its workflow: names of scans and inputs are not checked.
    ///
    /// # Errors
    /// Every problem at once, with its place in `source`.
    pub fn parse(source: &str, site: Site) -> Result<Self, ExpressionError> {
        let text = source.to_owned();
        let compiled = Sandbox::shared()
            .and_then(|sandbox| {
                sandbox.parse(move || compile_template(&text, site, &Names::default()))
            })
            .map_err(|error| ExpressionError::engine(source, &error))?;
        compiled.checked.map_err(ExpressionError::new)
    }

    pub fn source(&self) -> &str {
        &self.0.source
    }

    /// Whether both templates give the same text, independent of the spelling of their expressions.
    pub(crate) fn means_the_same(&self, other: &Self) -> bool {
        let (ones, others) = (&self.0.pieces, &other.0.pieces);
        let is_same = |(one, other): (&Piece, &Piece)| match (one, other) {
            (Piece::Text(one), Piece::Text(other)) => one == other,
            (Piece::Expression(one), Piece::Expression(other)) => one.means_the_same(other),
            (Piece::Text(_), Piece::Expression(_)) | (Piece::Expression(_), Piece::Text(_)) => {
                false
            }
        };
        self == other || ones.len() == others.len() && ones.iter().zip(others).all(is_same)
    }

    /// The text between its expressions. Templates that [mean the same](Self::means_the_same) have the same text.
    pub(crate) fn texts(&self) -> impl Iterator<Item = &str> {
        self.0.pieces.iter().filter_map(|piece| match piece {
            Piece::Text(text) => Some(text.as_str()),
            Piece::Expression(_) => None,
        })
    }

    pub fn references(&self) -> &References {
        &self.0.references
    }

    /// The whole text, if the template has no expression.
    pub(crate) fn as_text(&self) -> Option<&str> {
        match self.0.pieces.as_slice() {
            [] => Some(""),
            [Piece::Text(text)] => Some(text),
            _ => None,
        }
    }

    /// Fills the template. Calls `evaluate` for each value.
    pub(crate) fn render_with(
        &self,
        evaluate: impl Fn(&Expression) -> Result<Value, EvaluationError>,
    ) -> Result<String, EvaluationError> {
        let mut text = String::new();
        for piece in &self.0.pieces {
            match piece {
                Piece::Text(piece) => text.push_str(piece),
                Piece::Expression(expression) => {
                    let value = evaluate(expression)?;
                    let shown = value.to_text().ok_or_else(|| EvaluationError::NotText {
                        expression: expression.source().to_owned(),
                        found: value.label(),
                    })?;
                    text.push_str(&shown);
                }
            }
        }
        Ok(text)
    }
}

/// The parts of a template outside of its expressions.
pub(crate) fn texts(source: &str) -> impl Iterator<Item = Range<usize>> {
    let pieces = scan::pieces(source).into_iter();
    pieces.filter_map(|piece| match piece {
        scan::Piece::Text(range) => Some(range),
        scan::Piece::Expression { .. } | scan::Piece::Unclosed(_) => None,
    })
}

/// Bytes of the expressions in a template, up to the limit of their number.
pub(crate) fn expression_bytes(source: &str) -> usize {
    let expressions = scan::pieces(source)
        .into_iter()
        .filter_map(|piece| match piece {
            scan::Piece::Expression { inner, .. } => Some(inner.len().min(EXPRESSION_BYTES)),
            scan::Piece::Text(_) | scan::Piece::Unclosed(_) => None,
        });
    expressions.take(TEMPLATE_EXPRESSIONS).sum()
}

/// Compiles and checks a template. Runs on a sandbox thread.
pub(crate) fn compile_template(source: &str, site: Site, names: &Names) -> CompiledTemplate {
    let mut faults = Vec::new();
    let mut pieces = Vec::new();
    let mut tainted = Vec::new();
    let mut warnings = Vec::new();
    let mut references = References::default();
    let mut cost: u64 = 0;
    let mut expressions = 0;
    for piece in scan::pieces(source) {
        match piece {
            scan::Piece::Text(range) => pieces.push(Piece::Text(
                source.get(range).unwrap_or_default().to_owned(),
            )),
            scan::Piece::Unclosed(range) => faults.push(
                Fault::new(range, Code::UnclosedTemplate, "this `${{` is not closed")
                    .hint("end the expression with `}}`"),
            ),
            scan::Piece::Expression { whole, inner } => {
                expressions += 1;
                if expressions > TEMPLATE_EXPRESSIONS {
                    let message =
                        format!("more than {TEMPLATE_EXPRESSIONS} expressions in one text");
                    faults.push(Fault::new(whole, Code::TooMany, message));
                    break;
                }
                let raw = source.get(inner.clone()).unwrap_or_default();
                let start = inner.start + (raw.len() - raw.trim_start().len());
                if raw.trim().is_empty() {
                    faults.push(Fault::new(
                        whole,
                        Code::ExpressionSyntax,
                        "the expression is empty",
                    ));
                    continue;
                }
                match compile(raw.trim(), site, names) {
                    Ok(compiled) => {
                        references.add(compiled.expression.references());
                        cost = cost.saturating_add(compiled.expression.cost());
                        let found = compiled.warnings.into_iter();
                        warnings.extend(found.map(|warning| warning.shifted(start)));
                        if compiled.taint != Taint::Nobody {
                            tainted.push(Tainted {
                                range: whole,
                                taint: compiled.taint,
                                is_of_step: compiled.expression.references().steps,
                            });
                        }
                        pieces.push(Piece::Expression(compiled.expression));
                    }
                    Err(found) => {
                        faults.extend(found.into_iter().map(|fault| fault.shifted(start)))
                    }
                }
            }
        }
    }
    if faults.is_empty() && cost > EXPRESSION_COST {
        let message = format!(
            "evaluating the expressions could cost {cost} units; at most {EXPRESSION_COST} are allowed"
        );
        faults.push(Fault::new(
            0..source.len(),
            Code::ExpressionTooCostly,
            message,
        ));
    }
    let checked = if faults.is_empty() {
        Ok(Template(Arc::new(Parts {
            source: source.to_owned(),
            pieces,
            references,
        })))
    } else {
        Err(faults)
    };
    CompiledTemplate {
        checked,
        warnings,
        tainted,
    }
}

impl PartialEq for Template {
    fn eq(&self, other: &Self) -> bool {
        self.source() == other.source()
    }
}

impl Eq for Template {}

impl fmt::Debug for Template {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Template").field(&self.source()).finish()
    }
}
