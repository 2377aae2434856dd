//! From text to a checked expression. Runs on a sandbox thread.

use std::ops::Range;
use std::sync::{Arc, LazyLock};

use cel_interpreter::common::ast::{EntryExpr, Expr, IdedEntryExpr, IdedExpr};
use cel_interpreter::{Env, ParseErrors};

use super::analysis::{self, Findings};
use super::error::Fault;
use super::site::{Names, Site};
use super::{Expression, Parts, history, pattern};
use crate::diagnostic::Code;
use crate::limits::{
    EXPRESSION_BYTES, EXPRESSION_COST, EXPRESSION_DEPTH, EXPRESSION_NODES, SHALLOW_DEPTH,
};

/// The functions and macros of expressions; the same for every evaluation.
pub(super) static ENVIRONMENT: LazyLock<Arc<Env>> = LazyLock::new(|| {
    let mut env = Env::stdlib().with_optional_support(false);
    let declared = history::declare(&mut env).and_then(|()| pattern::declare(&mut env));
    debug_assert!(
        declared.is_ok(),
        "the standard library declares no such function: {declared:?}"
    );
    Arc::new(env)
});

/// A checked expression with what is of interest only while its file is loaded.
pub(crate) struct Compiled {
    pub(crate) expression: Expression,
    /// Whether free text that a dispatcher chose can be in its result.
    pub(crate) is_tainted: bool,
}

/// Compiles and checks `source`. Everything that is wrong is told, as far as it can be known.
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
        .map_err(|errors| syntax_faults(source, &errors))?;
    let depth = check_size(source, program.expression())?;
    let Findings {
        references,
        patterns,
        faults,
        cost,
        is_tainted,
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
    let is_always = matches!(&program.expression().expr, Expr::Ident(name) if name == "always");
    let parts = Parts {
        source: source.to_owned(),
        program,
        references,
        _patterns: patterns,
        cost,
        is_always,
        is_shallow: depth <= SHALLOW_DEPTH,
    };
    Ok(Compiled {
        expression: Expression(Arc::new(parts)),
        is_tainted,
    })
}

/// Bounds the tree before anything recurses over it, and answers how deep it is.
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

/// The direct parts of a node.
pub(super) fn children(expr: &Expr) -> Vec<&IdedExpr> {
    fn entries(entries: &[IdedEntryExpr]) -> Vec<&IdedExpr> {
        entries
            .iter()
            .flat_map(|entry| match &entry.expr {
                EntryExpr::StructField(field) => vec![&field.value],
                EntryExpr::MapEntry(entry) => vec![&entry.key, &entry.value],
            })
            .collect()
    }
    match expr {
        Expr::Unspecified | Expr::Ident(_) | Expr::Literal(_) => Vec::new(),
        Expr::Call(call) => call
            .target
            .iter()
            .map(AsRef::as_ref)
            .chain(&call.args)
            .collect(),
        Expr::Comprehension(comprehension) => vec![
            &comprehension.iter_range,
            &comprehension.accu_init,
            &comprehension.loop_cond,
            &comprehension.loop_step,
            &comprehension.result,
        ],
        Expr::List(list) => list.elements.iter().collect(),
        Expr::Map(map) => entries(&map.entries),
        Expr::Select(select) => vec![&select.operand],
        Expr::Struct(object) => entries(&object.entries),
    }
}

/// The library lists every token it would have liked; people need the place and what is wrong there.
fn syntax_faults(source: &str, errors: &ParseErrors) -> Vec<Fault> {
    let mut faults: Vec<Fault> = Vec::new();
    for error in &errors.errors {
        if error.msg.contains("Recursion limit") {
            let message = format!("the expression is nested more than {EXPRESSION_DEPTH} deep");
            return vec![Fault::new(
                0..source.len(),
                Code::ExpressionTooLarge,
                message,
            )];
        }
        let at = offset(source, error.pos);
        if faults.iter().any(|fault| fault.range.start == at.start) {
            continue;
        }
        let token = source.get(at.clone()).unwrap_or_default();
        let (message, hint) = misplaced(token, &error.msg);
        let fault = Fault::new(at, Code::ExpressionSyntax, message);
        faults.push(match hint {
            Some(hint) => fault.hint(hint),
            None => fault,
        });
    }
    if faults.is_empty() {
        faults.push(Fault::new(
            0..source.len(),
            Code::ExpressionSyntax,
            "this is no expression",
        ));
    }
    faults.sort_by_key(|fault| fault.range.start);
    // What follows the first error is mostly its echo.
    faults.truncate(1);
    faults
}

/// What is wrong with a token that the parser did not expect.
fn misplaced(token: &str, message: &str) -> (String, Option<&'static str>) {
    let hint = match token {
        "=" => Some("compare with `==`"),
        "&" | "and" | "AND" => Some("write `&&`"),
        "|" | "or" | "OR" => Some("write `||`"),
        "not" | "NOT" => Some("write `!`"),
        "'" | "\"" => return ("a string is not closed".to_owned(), None),
        "" => return ("the expression ends too early".to_owned(), None),
        _ => None,
    };
    // What it expected instead is no concern of the message.
    if message
        .split(" expecting ")
        .next()
        .is_some_and(|found| found.contains("<EOF>"))
    {
        return ("the expression ends too early".to_owned(), None);
    }
    (format!("`{token}` makes no sense here"), hint)
}

/// The bytes of the token that starts at a line and column, both from 1.
fn offset(source: &str, (line, column): (isize, isize)) -> Range<usize> {
    let line = usize::try_from(line).unwrap_or(1).max(1);
    let column = usize::try_from(column).unwrap_or(1).max(1);
    let start: usize = source
        .split_inclusive('\n')
        .take(line - 1)
        .map(str::len)
        .sum();
    let rest = source.get(start..).unwrap_or("");
    match rest.char_indices().nth(column - 1) {
        Some((at, character)) => {
            let token = rest.get(at..).unwrap_or("");
            let is_part = |c: char| c.is_alphanumeric() || c == '_';
            let length = match token.get(..2) {
                Some("&&" | "||" | "==" | "!=" | "<=" | ">=") => 2,
                _ if is_part(character) => token.find(|c| !is_part(c)).unwrap_or(token.len()),
                _ => character.len_utf8(),
            };
            start + at..start + at + length
        }
        None => source.len()..source.len(),
    }
}
