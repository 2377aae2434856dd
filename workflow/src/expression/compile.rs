//! Compiles text into a checked expression. Runs on a sandbox thread.

use std::sync::{Arc, LazyLock};

use cel_interpreter::Env;
use cel_interpreter::common::ast::IdedExpr;

use super::analysis::{self, Findings};
use super::error::Fault;
use super::kind::Taint;
use super::site::{Names, Site};
use super::tree::children;
use super::{Expression, Parts, equality, history, pattern, syntax};
use crate::diagnostic::Code;
use crate::limits::{
    EXPRESSION_BYTES, EXPRESSION_COST, EXPRESSION_DEPTH, EXPRESSION_NODES, SHALLOW_DEPTH,
};

/// The functions and macros of expressions; the same for every evaluation.
pub(super) static ENVIRONMENT: LazyLock<Arc<Env>> = LazyLock::new(|| {
    let mut env = Env::stdlib().with_optional_support(false);
    let declared = history::declare(&mut env)
        .and_then(|()| pattern::declare(&mut env))
        .and_then(|()| equality::declare(&mut env));
    debug_assert!(
        declared.is_ok(),
        "the standard library declares no such function: {declared:?}"
    );
    Arc::new(env)
});

/// A checked expression, and results that only the loader of its file needs.
pub(crate) struct Compiled {
    pub(crate) expression: Expression,
    pub(crate) warnings: Vec<Fault>,
    /// Who can choose the text of its result.
    pub(crate) taint: Taint,
}

/// Compiles and checks `source`. Reports all faults that can be found.
pub(crate) fn compile(source: &str, site: Site, names: &Names) -> Result<Compiled, Vec<Fault>> {
    if source.trim().is_empty() {
        return Err(vec![Fault::new(
            0..source.len(),
            Code::ExpressionSyntax,
            "the expression is empty",
        )]);
    }
    if source.len() > EXPRESSION_BYTES {
        let message = format!(
            "the expression has {} bytes; at most {EXPRESSION_BYTES} are allowed",
            source.len()
        );
        return Err(vec![
            Fault::new(0..source.len(), Code::ExpressionTooLarge, message)
                .hint("compute it in a step instead"),
        ]);
    }
    if source.trim_start().starts_with("${{") {
        return Err(vec![
            Fault::new(
                0..source.len(),
                Code::ExpressionSyntax,
                "this is a template, not an expression",
            )
            .hint("leave `${{` and `}}` out"),
        ]);
    }
    let program = ENVIRONMENT
        .compile(source)
        .map_err(|errors| vec![syntax::fault(source, &errors, names)])?;
    let depth = check_size(source, program.expression())?;
    let Findings {
        references,
        patterns,
        faults,
        warnings,
        cost,
        taint,
    } = analysis::analyse(source, &program, site, names);
    if !faults.is_empty() {
        return Err(faults);
    }
    if cost > EXPRESSION_COST {
        let message = format!(
            "evaluating the expression could cost {cost} units; at most {EXPRESSION_COST} are allowed"
        );
        return Err(vec![
            Fault::new(0..source.len(), Code::ExpressionTooCostly, message)
                .hint("nest fewer `filter`, `map`, `all` or `exists`, or compute it in a step"),
        ]);
    }
    let parts = Parts {
        source: source.to_owned(),
        evaluated: equality::replaced(program.expression()),
        program,
        references,
        _patterns: patterns,
        cost,
        is_shallow: depth <= SHALLOW_DEPTH,
    };
    Ok(Compiled {
        expression: Expression(Arc::new(parts)),
        warnings,
        taint,
    })
}

/// Checks the size of the tree before any recursive walk. Returns its depth.
fn check_size(source: &str, root: &IdedExpr) -> Result<usize, Vec<Fault>> {
    let mut pending = vec![(root, 1)];
    let (mut nodes, mut deepest) = (0, 0);
    let too_large = |message: String| {
        Err(vec![
            Fault::new(0..source.len(), Code::ExpressionTooLarge, message)
                .hint("compute it in a step instead"),
        ])
    };
    while let Some((node, depth)) = pending.pop() {
        nodes += 1;
        deepest = deepest.max(depth);
        if depth > EXPRESSION_DEPTH {
            return too_large(format!(
                "the expression is nested more than {EXPRESSION_DEPTH} deep"
            ));
        }
        if nodes > EXPRESSION_NODES {
            return too_large(format!(
                "the expression has more than {EXPRESSION_NODES} parts"
            ));
        }
        pending.extend(
            children(&node.expr)
                .into_iter()
                .map(|child| (child, depth + 1)),
        );
    }
    Ok(deepest)
}
