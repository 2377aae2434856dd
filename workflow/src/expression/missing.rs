//! Suggestions for names that an evaluation did not find. An evaluation gets only the values that its expression names, so the
//! other names are compared after it failed.

use std::borrow::Cow;
use std::collections::BTreeMap;

use cel_interpreter::common::ast::{Expr, IdedExpr, LiteralValue, operators};

use super::error::EvaluationError;
use super::explain::{Explanation, Operand};
use super::references::References;
use super::tree::{children, literal_text};
use crate::context::Context;
use crate::suggestion::{closest, neighbours};

/// The member of a job that holds artifacts by their names.
const ARTIFACTS: &str = "artifacts";

/// The name for a message. A map does not know its own name, so the error has only the missing key. The key is the name of an
/// artifact if no other part of the expression can have read it.
pub(super) fn full_name(root: &IdedExpr, name: &str) -> String {
    let mut maps = Vec::new();
    let mut pending = vec![root];
    while let Some(node) = pending.pop() {
        if let Some((map, key)) = lookup(&node.expr)
            && key.is_none_or(|key| is_or_ends_with(name, &key))
        {
            maps.push(map);
        }
        pending.extend(children(&node.expr));
    }
    let is_of_artifacts =
        |map: &&IdedExpr| matches!(&map.expr, Expr::Select(select) if select.field == ARTIFACTS);
    if !maps.is_empty() && maps.iter().all(is_of_artifacts) {
        format!("{ARTIFACTS}.{name}")
    } else {
        name.to_owned()
    }
}

/// The object in which a node needs a member, and the key unless the key is computed.
fn lookup(node: &Expr) -> Option<(&IdedExpr, Option<Cow<'_, str>>)> {
    match node {
        // A missing name in `has` is not an error.
        Expr::Select(select) if !select.test => {
            let key = Cow::Borrowed(select.field.as_str());
            Some((&select.operand, Some(key)))
        }
        Expr::Call(call) if call.func_name == operators::INDEX => {
            let [map, key] = call.args.as_slice() else {
                return None;
            };
            let key = match &key.expr {
                Expr::Literal(LiteralValue::Int(number)) => {
                    Some(Cow::Owned(number.inner().to_string()))
                }
                _ => literal_text(key).map(Cow::Borrowed),
            };
            Some((map, key))
        }
        _ => None,
    }
}

/// Whether `name` is the key, alone or with its table: `vars.KEY`.
fn is_or_ends_with(name: &str, key: &str) -> bool {
    name.strip_suffix(key)
        .is_some_and(|table| table.is_empty() || table.ends_with('.'))
}

/// Adds a suggestion to an error. Not for secrets, because a reader of the log may not be allowed to list them.
pub(super) fn suggested(
    mut error: EvaluationError,
    context: &Context,
    references: &References,
) -> EvaluationError {
    suggest(&mut error, context, references);
    error
}

fn suggest(error: &mut EvaluationError, context: &Context, references: &References) {
    let EvaluationError::Missing { name, meant, .. } = error else {
        return;
    };
    let Some((owner, given)) = name.split_once('.') else {
        return;
    };
    let artifacts;
    let known = match owner {
        "scans" => closest(given, neighbours(given, &context.scans)),
        "vars" => closest(given, neighbours(given, &context.vars)),
        "inputs" => closest(given, neighbours(given, &context.inputs)),
        ARTIFACTS => {
            artifacts = artifact_names(context, references);
            closest(given, neighbours(given, &artifacts))
        }
        _ => None,
    };
    *meant = known.map(|known| format!("{owner}.{known}"));
}

/// The same for each part of an explanation.
pub(super) fn suggest_in(
    explanation: &mut Explanation,
    context: &Context,
    references: &References,
) {
    if let Err(error) = &mut explanation.result {
        suggest(error, context, references);
    }
    for part in &mut explanation.parts {
        match part {
            Operand::Evaluated(part) => suggest_in(part, context, references),
            Operand::LeftOut(_) => {}
        }
    }
}

/// The artifacts of the jobs that the expression could read.
fn artifact_names<'c>(context: &'c Context, references: &References) -> BTreeMap<&'c str, ()> {
    let scans = references.jobs.keys();
    scans
        .filter_map(|scan| context.scans.get(scan))
        .flat_map(|scan| &scan.jobs)
        .flat_map(|job| job.artifacts.keys())
        .map(|name| (name.as_str(), ()))
        .collect()
}
