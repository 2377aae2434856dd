//! Whether one condition holds wherever another does, as far as `&&`, `||` and equal texts tell. A `no` means only that
//! their forms do not show it.

use std::collections::BTreeSet;

use cel_interpreter::common::ast::{Expr, IdedExpr, operators};

use super::{Expression, analysis};

impl Expression {
    /// Whether this certainly holds where `other` does and no step has failed the job; no condition holds always.
    pub(crate) fn follows_from(&self, other: Option<&Self>) -> bool {
        let mut facts: BTreeSet<String> = ["ok", "always", "true"].map(str::to_owned).into();
        if let Some(other) = other {
            other.collect(other.program().expression(), &mut facts);
        }
        self.follows(self.program().expression(), &facts)
    }

    /// Adds what holds where this does.
    fn collect(&self, node: &IdedExpr, facts: &mut BTreeSet<String>) {
        facts.insert(self.form(node));
        if let Expr::Call(call) = &node.expr
            && call.func_name == operators::LOGICAL_AND
        {
            for operand in &call.args {
                self.collect(operand, facts);
            }
        }
    }

    fn follows(&self, node: &IdedExpr, facts: &BTreeSet<String>) -> bool {
        if facts.contains(&self.form(node)) {
            return true;
        }
        let Expr::Call(call) = &node.expr else {
            return false;
        };
        let mut operands = call.args.iter();
        match call.func_name.as_str() {
            operators::LOGICAL_AND => operands.all(|operand| self.follows(operand, facts)),
            operators::LOGICAL_OR => operands.any(|operand| self.follows(operand, facts)),
            _ => false,
        }
    }

    /// The node's source without the spaces that mean nothing.
    fn form(&self, node: &IdedExpr) -> String {
        let range = analysis::covered(self.source(), self.program().source_info(), node);
        squeezed(self.source().get(range).unwrap_or(self.source()))
    }
}

/// The text without spaces outside of strings.
fn squeezed(source: &str) -> String {
    let mut quote = None;
    source
        .chars()
        .filter(|c| {
            match (quote, c) {
                (Some(open), c) if open == *c => quote = None,
                (None, '"' | '\'') => quote = Some(*c),
                _ => {}
            }
            quote.is_some() || !c.is_whitespace()
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use crate::expression::{Expression, Site};

    #[test]
    fn forms_show_what_follows_from_what() {
        let parse = |source: &str| Expression::parse(source, Site::Condition).unwrap();
        for (condition, from, expected) in [
            ("inputs.a == 'x y'", "inputs.a=='x y'", true),
            ("inputs.a == 'x y'", "inputs.a == 'xy'", false),
            ("ok && inputs.a", "inputs.a", true),
            (
                "inputs.a && inputs.b",
                "inputs.b && inputs.a && inputs.c",
                true,
            ),
            ("inputs.a && inputs.b", "inputs.a", false),
            ("inputs.a || inputs.b", "inputs.b && ok", true),
            ("inputs.a", "inputs.a || inputs.b", false),
            ("inputs.a || inputs.b", "inputs.a || inputs.b", true),
            ("!inputs.a", "inputs.a", false),
        ] {
            let follows = parse(condition).follows_from(Some(&parse(from)));
            assert_eq!(follows, expected, "{condition} from {from}");
        }
        assert!(parse("always").follows_from(None));
        assert!(!parse("inputs.a").follows_from(None));
    }
}
