//! Names that an evaluation did not find, and which of the names that are there were probably meant. An evaluation is
//! given only the values that its expression names, so the others are looked at when it has failed.

use std::collections::BTreeMap;

use cel_interpreter::common::ast::{Expr, IdedExpr, operators};

use super::analysis::literal_text;
use super::compile::children;
use super::error::EvaluationError;
use super::explain::{Explanation, Operand};
use super::references::References;
use crate::context::Context;
use crate::suggestion::{closest, neighbours};

/// The member of a job that holds artifacts by their names.
const ARTIFACTS: &str = "artifacts";

/// The name as a message shows it: a map does not know what it is, so its missing key has lost where it was looked for.
pub(super) fn full_name(node: &IdedExpr, name: &str) -> String {
    if is_artifact(node, name) {
        format!("{ARTIFACTS}.{name}")
    } else {
        name.to_owned()
    }
}

/// Whether `x.artifacts.name` or `x.artifacts["name"]` is in it.
fn is_artifact(root: &IdedExpr, name: &str) -> bool {
    let mut pending = vec![root];
    while let Some(node) = pending.pop() {
        let (map, key) = match &node.expr {
            Expr::Select(select) => (Some(&*select.operand), Some(select.field.as_str())),
            Expr::Call(call) if call.func_name == operators::INDEX => {
                (call.args.first(), call.args.get(1).and_then(literal_text))
            }
            _ => (None, None),
        };
        let is_of_artifacts = map.is_some_and(
            |map| matches!(&map.expr, Expr::Select(select) if select.field == ARTIFACTS),
        );
        if is_of_artifacts && key == Some(name) {
            return true;
        }
        pending.extend(children(&node.expr));
    }
    false
}

/// Adds to an error what was probably meant. Secrets are left alone: who may not list them learns no name from a log.
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
