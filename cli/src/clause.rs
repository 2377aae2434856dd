//! What an expression said, part by part.

use wire::Clause;

use crate::untrusted::clean;

/// The part on a line of its own, and below it, deeper, the parts that were looked at.
pub(crate) fn tree(clause: &Clause, depth: usize, text: &mut String) {
    let line = format!("{} = {}", clause.text, said(clause));
    text.push_str(&"    ".repeat(depth));
    text.push_str(&clean(&line));
    text.push('\n');
    for part in &clause.parts {
        tree(part, depth + 1, text);
    }
}

/// The value of a part, or why it has none.
pub(crate) fn said(clause: &Clause) -> String {
    match (&clause.value, &clause.error) {
        (Some(value), _) => value.to_string(),
        (None, Some(error)) => format!("error: {error}"),
        (None, None) => "nothing".to_owned(),
    }
}
