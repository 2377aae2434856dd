//! Expressions in CEL. They are checked when they are loaded, and the cost of their evaluation is limited.
//!
//! Every [`Expression`] is syntactically valid, uses only names that its [`Site`] offers, has the right type for its site and a
//! static cost below the limit. Only this module uses the CEL library. A [`Sandbox`] runs the library on threads with enough
//! stack for its recursion.

mod absent;
mod analysis;
mod cel_value;
mod compile;
mod endless;
mod equality;
mod error;
mod evaluate;
mod explain;
mod functions;
mod groups;
mod history;
mod implication;
mod kind;
mod literal;
mod missing;
mod pattern;
mod reach;
mod reads;
mod references;
mod renamed;
mod same;
mod sandbox;
mod site;
mod syntax;
#[cfg(test)]
mod tests;
mod tree;
mod value;
mod variables;

use std::fmt;
use std::sync::Arc;

use cel_interpreter::Program;
use cel_interpreter::common::ast::IdedExpr;

pub(crate) use compile::compile;
pub(crate) use endless::endless;
pub use error::{EngineError, EvaluationError, ExpressionError, Fault};
pub use explain::{Explanation, Operand};
pub(crate) use groups::groups;
pub(crate) use kind::Taint;
pub(crate) use literal::string_end;
use pattern::Pattern;
pub use references::{Reach, References};
pub use renamed::renamed;
pub use sandbox::Sandbox;
pub use site::Site;
pub(crate) use site::{Holder, Names};
pub use value::Value;

use crate::context::Context;

/// A checked expression. Cloning is cheap. Two expressions are equal if their sources are equal.
#[derive(Clone)]
pub struct Expression(Arc<Parts>);

struct Parts {
    source: String,
    program: Program,
    /// The program's tree with our own `==`, `!=` and `in`.
    evaluated: IdedExpr,
    references: References,
    /// The compiled patterns of `matches`. They stay compiled as long as the expression exists.
    _patterns: Vec<Arc<Pattern>>,
    cost: u64,
    is_shallow: bool,
}

impl Expression {
    /// Parses and checks an expression on its own, without its workflow: names of scans and inputs are not checked.
    ///
    /// # Errors
    /// Every problem at once, with its place in `source`.
    pub fn parse(source: &str, site: Site) -> Result<Self, ExpressionError> {
        let text = source.to_owned();
        let compiled = Sandbox::shared()
            .and_then(|sandbox| sandbox.parse(move || compile(&text, site, &Names::default())))
            .map_err(|error| ExpressionError::engine(source, &error))?;
        compiled
            .map(|compiled| compiled.expression)
            .map_err(ExpressionError::new)
    }

    pub fn source(&self) -> &str {
        &self.0.source
    }

    /// Whether both expressions mean the same, independent of their spelling.
    pub(crate) fn means_the_same(&self, other: &Self) -> bool {
        self == other || same::is_same(self.program().expression(), other.program().expression())
    }

    pub fn references(&self) -> &References {
        &self.0.references
    }

    /// Whether the expression handles failures itself: it names `ok` or `always`.
    pub(crate) fn handles_failure(&self) -> bool {
        self.references().ok || self.references().always
    }

    /// An upper bound of its cost, in units of about 100 ns.
    pub fn cost(&self) -> u64 {
        self.0.cost
    }

    /// Whether an evaluation fits into the stack of any thread.
    pub(crate) fn is_shallow(&self) -> bool {
        self.0.is_shallow
    }

    fn program(&self) -> &Program {
        &self.0.program
    }
}

/// Whether a step runs. A condition that names `ok` or `always` is evaluated unchanged. Any other condition counts as
/// `ok && (condition)`, and a missing condition as `ok`.
///
/// # Errors
/// The evaluation's error, which fails the step.
pub fn should_run(
    condition: Option<&Expression>,
    context: &Context,
    sandbox: &Sandbox,
) -> Result<bool, EvaluationError> {
    match condition {
        Some(condition) if context.ok || condition.handles_failure() => {
            sandbox.holds(condition, context)
        }
        Some(_) => Ok(false),
        None => Ok(context.ok),
    }
}

impl PartialEq for Expression {
    fn eq(&self, other: &Self) -> bool {
        self.source() == other.source()
    }
}

impl Eq for Expression {}

impl fmt::Debug for Expression {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Expression").field(&self.source()).finish()
    }
}

impl fmt::Display for Expression {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.source())
    }
}
