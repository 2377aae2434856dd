//! Comparisons of a job's `state`, which in `on.expr` ask for failures in vain.

use cel_interpreter::common::ast::{Expr, IdedExpr, operators};

use super::{Analysis, literal_text};
use crate::context::SUCCEEDED;
use crate::diagnostic::Code;
use crate::expression::error::Fault;
use crate::expression::kind::{Kind, Shape};
use crate::expression::site::Site;

impl Analysis<'_> {
    /// Remembers that `node` is the state of a job.
    pub(super) fn note_state(&mut self, node: &IdedExpr, operand: &Shape, member: &str) {
        if member == "state" && matches!(operand.kind, Kind::Job) {
            self.states.push(node.id);
        }
    }

    /// Warns if `state` is the state of a job and the comparison with `other` asks for another one than success.
    pub(super) fn compared_state(&mut self, node: &IdedExpr, state: &IdedExpr, other: &IdedExpr) {
        let is_success = |node: &IdedExpr| literal_text(node) == Some(SUCCEEDED);
        let asks_for_success = match (&node.expr, &other.expr) {
            (Expr::Call(call), _) if call.func_name == operators::NOT_EQUALS => false,
            (_, Expr::List(list)) => list.elements.iter().all(is_success),
            _ => is_success(other),
        };
        if self.site != Site::Trigger || !self.states.contains(&state.id) || asks_for_success {
            return;
        }
        let message = "`on.expr` is looked at when a job succeeds, so it does not see a failure when it happens";
        let warning = Fault::new(self.range(node), Code::UnseenFailure, message)
            .hint("`scans.NAME.has_failed()` is also looked at when a job fails");
        if !self.warnings.contains(&warning) {
            self.warnings.push(warning);
        }
    }
}
