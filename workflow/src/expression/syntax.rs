//! Turns the CEL parser's errors into messages for people. The library lists all tokens that it expected, but people need the
//! place and the problem.

use std::ops::Range;

use cel_interpreter::{ParseError, ParseErrors};

use super::analysis::hyphen::{self, name_around};
use super::error::Fault;
use super::literal::{self, ESCAPES, Flaw};
use super::site::Names;
use crate::diagnostic::Code;
use crate::limits::EXPRESSION_DEPTH;

/// The hint for an operator between an integer and a double.
pub(super) const AS_DOUBLES: &str =
    "calculate with decimals on both sides, as in `double(inputs.a) + 1.0`";

/// The hint for `not`.
pub(super) const NEGATION: &str = "write `!`, as in `!ok`";

/// The only fault to report: later errors are mostly consequences of the first error.
pub(super) fn fault(source: &str, errors: &ParseErrors, names: &Names) -> Fault {
    let errors = &errors.errors;
    let is_too_deep = |error: &ParseError| error.msg.contains("Recursion limit");
    if errors.iter().any(is_too_deep) {
        let message = format!("the expression is nested more than {EXPRESSION_DEPTH} deep");
        return Fault::new(0..source.len(), Code::ExpressionTooLarge, message);
    }
    // The library reports an incomplete part at the start of the expression. The part itself has the better place.
    let is_echo = |error: &&ParseError| error.msg.starts_with("Incomplete ");
    let first = errors
        .iter()
        .map(|error| (is_echo(&error), offset(source, error.pos), error))
        .min_by_key(|(is_echo, at, _)| (*is_echo, at.start));
    let Some((_, at, error)) = first else {
        return Fault::new(
            0..source.len(),
            Code::ExpressionSyntax,
            "this is not an expression",
        );
    };
    if let Some(fault) = misnamed(source, &at, names) {
        return fault;
    }
    if error.msg.starts_with("reserved identifier") && source.get(at.clone()) == Some("var") {
        return var(source, at);
    }
    let mut echoes = errors.iter().filter(is_echo);
    let is_choice = echoes.any(|echo| echo.msg.contains("`_?_:_`"));
    let is_colon = source.get(at.clone()) == Some(":");
    if is_choice && !is_colon && error.msg.contains("':'") {
        let message = "`?` needs `:` and what the expression yields otherwise";
        let hint = match source.get(at.clone()) {
            Some("?") => "put the inner `?:` into parentheses",
            _ => "write `condition ? a : b`",
        };
        return Fault::new(at, Code::ExpressionSyntax, message).hint(hint);
    }
    badly_written(source, &at, &error.msg).unwrap_or_else(|| misplaced(source, at, &error.msg))
}

/// Suggests `vars.X` for `var.X`. The parser refuses `var`, because CEL reserves it.
fn var(source: &str, at: Range<usize>) -> Fault {
    let behind = source.get(at.end..).unwrap_or_default();
    let member = behind.strip_prefix('.').unwrap_or_default();
    let member = &member[..member.find(|c| !is_word(c)).unwrap_or(member.len())];
    let hint = match member {
        "" => "did you mean `vars`?".to_owned(),
        member => format!("did you mean `vars.{member}`?"),
    };
    Fault::new(at, Code::UnknownName, "there is no `var`").hint(hint)
}

/// Reports a name that cannot follow a dot.
fn misnamed(source: &str, at: &Range<usize>, names: &Names) -> Option<Fault> {
    // A number may start with a dot.
    let is_dot = source.get(at.clone()) == Some(".");
    let start = at.start + usize::from(is_dot);
    let (namespace, range) = name_around(source, start)?;
    let name = source.get(range.clone())?;
    if let Some(operator) = name.find('-') {
        return hyphen::fault(source, range.start + operator, names);
    }
    // Other names neither start with a digit nor are reserved words.
    (namespace == "scans" && range.start == start).then(|| {
        let message = format!("`{name}` cannot follow a dot");
        Fault::new(range, Code::ExpressionSyntax, message)
            .hint(format!("write `scans[\"{name}\"]`"))
    })
}

/// Reports an invalid string or number.
fn badly_written(source: &str, at: &Range<usize>, message: &str) -> Option<Fault> {
    let syntax = |range, message: &str| Fault::new(range, Code::ExpressionSyntax, message);
    let behind = source.get(at.start..)?;
    let out_of_range = |hint: String| {
        let is_part = |c: char| c.is_ascii_alphanumeric() || c == '.';
        let end = behind.find(|c| !is_part(c)).unwrap_or(behind.len());
        syntax(at.start..at.start + end, "the number is out of range").hint(hint)
    };
    match message {
        "invalid int literal" => {
            return Some(out_of_range(format!(
                "whole numbers are from {} to {}",
                i64::MIN,
                i64::MAX
            )));
        }
        "invalid uint literal" => {
            return Some(out_of_range(format!(
                "numbers with `u` are from 0 to {}",
                u64::MAX
            )));
        }
        "invalid double literal" => {
            return Some(out_of_range(
                "the largest number is about 1.8e308".to_owned(),
            ));
        }
        _ => {}
    }
    let is_string = message.contains("token recognition error")
        || message.starts_with("invalid string literal")
        || message.starts_with("invalid bytes literal");
    // Bytes have a letter before their quote.
    let quote = at.start + behind.find(['"', '\'']).filter(|_| is_string)?;
    if !matches!(quote - at.start, 0 | 1) {
        return None;
    }
    Some(match literal::flaw(source.get(quote..)?)? {
        Flaw::Open => syntax(quote..quote + 1, "a string is not closed"),
        Flaw::Escape(escape) => {
            let range = quote + escape.start..quote + escape.end;
            let shown = source.get(range.clone()).unwrap_or_default();
            let message = format!("`{shown}` is not a known escape");
            syntax(range, &message).hint(ESCAPES)
        }
    })
}

/// Reports a token that the parser did not expect.
fn misplaced(source: &str, at: Range<usize>, message: &str) -> Fault {
    let token = source.get(at.clone()).unwrap_or_default();
    // The list of expected tokens is not shown.
    let found = message.split(" expecting ").next().unwrap_or_default();
    if token.is_empty() || found.contains("<EOF>") {
        return Fault::new(at, Code::ExpressionSyntax, "the expression ends too early");
    }
    let before = source.get(..at.start).unwrap_or_default();
    let (at, hint) = match token {
        "=" => (at, Some("compare with `==`")),
        "&" | "and" | "AND" => (at, Some("write `&&`")),
        "|" | "or" | "OR" => (at, Some("write `||`")),
        "not" | "NOT" => (at, Some(NEGATION)),
        ">" if before.ends_with('<') => (at.start - 1..at.end, Some("write `!=`")),
        _ => match negation(before) {
            Some(word) => (word, Some(NEGATION)),
            None => (at, None),
        },
    };
    let token = source.get(at.clone()).unwrap_or_default();
    let message = format!("unexpected `{token}`");
    let fault = Fault::new(at, Code::ExpressionSyntax, message);
    match hint {
        Some(hint) => fault.hint(hint),
        None => fault,
    }
}

/// The bytes of a `not` that is the last word of a text. The parser treats it as a name.
fn negation(before: &str) -> Option<Range<usize>> {
    let before = before.trim_end();
    let rest = before
        .strip_suffix("not")
        .or_else(|| before.strip_suffix("NOT"))?;
    (!rest.ends_with(is_word)).then_some(rest.len()..before.len())
}

fn is_word(c: char) -> bool {
    c.is_alphanumeric() || c == '_'
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
            let length = match token.get(..2) {
                Some("&&" | "||" | "==" | "!=" | "<=" | ">=") => 2,
                _ if is_word(character) => token.find(|c| !is_word(c)).unwrap_or(token.len()),
                _ => character.len_utf8(),
            };
            start + at..start + at + length
        }
        None => source.len()..source.len(),
    }
}
