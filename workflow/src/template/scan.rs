//! Finds the expressions of a template. It understands only strings and braces of CEL.

use std::ops::Range;

use crate::expression::string_end;

const OPEN: &str = "${{";

/// A part of a template, in bytes of its source.
pub(super) enum Piece {
    Text(Range<usize>),
    Expression {
        whole: Range<usize>,
        inner: Range<usize>,
    },
    /// An opening without an end. It contains the rest of the source.
    Unclosed(Range<usize>),
}

/// The parts of `source`, in order.
pub(super) fn pieces(source: &str) -> Vec<Piece> {
    let mut pieces = Vec::new();
    let mut at = 0;
    while let Some(found) = source.get(at..).and_then(|rest| rest.find(OPEN)) {
        let start = at + found;
        if start > at {
            pieces.push(Piece::Text(at..start));
        }
        let inner = start + OPEN.len();
        let Some(end) = closing(source, inner) else {
            pieces.push(Piece::Unclosed(start..inner));
            return pieces;
        };
        pieces.push(Piece::Expression {
            whole: start..end + 2,
            inner: inner..end,
        });
        at = end + 2;
    }
    if at < source.len() {
        pieces.push(Piece::Text(at..source.len()));
    }
    pieces
}

/// The place of the `}}` that ends the expression starting at `from`.
fn closing(source: &str, from: usize) -> Option<usize> {
    let bytes = source.as_bytes();
    let mut depth = 0_usize;
    let mut at = from;
    while let Some(byte) = bytes.get(at) {
        match byte {
            b'"' | b'\'' => at = string_end(bytes, from, at)?,
            b'{' => {
                depth += 1;
                at += 1;
            }
            b'}' if depth > 0 => {
                depth -= 1;
                at += 1;
            }
            b'}' if bytes.get(at + 1) == Some(&b'}') => return Some(at),
            _ => at += 1,
        }
    }
    None
}
