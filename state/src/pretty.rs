//! JSON for people who read it with `cat`: a line for each member, and small objects and lists on one line.

use serde::Serialize;

/// Columns of a line that was put together from several.
const WIDTH: usize = 100;

/// The text of a value, with a line end.
pub(crate) fn pretty(value: &impl Serialize) -> Result<Vec<u8>, serde_json::Error> {
    let indented = serde_json::to_string_pretty(value)?;
    Ok(joined(&indented).into_bytes())
}

/// Puts what is between two brackets on one line with them, from the inside out, where it fits. A line end is never
/// part of a JSON text, so lines can be joined without looking at what they say. The outermost brackets stay.
fn joined(indented: &str) -> String {
    let mut lines: Vec<Line> = Vec::new();
    // Where the blocks begin that are not closed yet.
    let mut open: Vec<usize> = Vec::new();
    for text in indented.lines() {
        let content = text.trim_start();
        let indent = text.len() - content.len();
        let line = Line {
            indent,
            text: content.to_owned(),
            is_closed: true,
        };
        if content.starts_with(['}', ']']) {
            lines.push(line);
            if let Some(start) = open.pop()
                && !open.is_empty()
            {
                join(&mut lines, start);
            }
        } else if content.ends_with(['{', '[']) {
            open.push(lines.len());
            lines.push(Line {
                is_closed: false,
                ..line
            });
        } else {
            lines.push(line);
        }
    }
    let mut text = String::with_capacity(indented.len());
    for line in lines {
        text.extend(std::iter::repeat_n(' ', line.indent));
        text.push_str(&line.text);
        text.push('\n');
    }
    text
}

/// A line on its way.
struct Line {
    indent: usize,
    text: String,
    /// Whether every bracket it opens is closed in it.
    is_closed: bool,
}

/// Joins the lines from `start` on, if they are one block of closed lines that fits.
fn join(lines: &mut Vec<Line>, start: usize) {
    let block = lines.get(start..).unwrap_or_default();
    let Some((first, rest)) = block.split_first() else {
        return;
    };
    // Each comma inside gets a space.
    let width = block.iter().map(|line| line.text.len() + 1).sum::<usize>() + first.indent;
    if width > WIDTH || rest.iter().any(|line| !line.is_closed) {
        return;
    }
    let mut text = first.text.clone();
    for (at, line) in rest.iter().enumerate() {
        if at > 0 && at + 1 < rest.len() {
            text.push(' ');
        }
        text.push_str(&line.text);
    }
    let indent = first.indent;
    lines.truncate(start);
    lines.push(Line {
        indent,
        text,
        is_closed: true,
    });
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    fn text(value: &Value) -> String {
        String::from_utf8(pretty(value).unwrap()).unwrap()
    }

    #[test]
    fn what_fits_stands_on_one_line_and_the_outermost_never_does() {
        let value = json!({
            "a": {"x": 1, "y": [1, 2, {"z": "}"}]},
            "empty": {},
            "list": ["w".repeat(60), "w".repeat(60)],
            "name": "a \"{\" in\nit [",
        });
        let expected = format!(
            "{{\n  \"a\": {{\"x\": 1, \"y\": [1, 2, {{\"z\": \"}}\"}}]}},\n  \"empty\": {{}},\n  \"list\": [\n    \"{w}\",\n    \"{w}\"\n  ],\n  \
             \"name\": \"a \\\"{{\\\" in\\nit [\"\n}}\n",
            w = "w".repeat(60)
        );
        assert_eq!(text(&value), expected);
        assert_eq!(text(&json!({})), "{}\n");
        assert_eq!(text(&json!({"a": 1})), "{\n  \"a\": 1\n}\n");
    }

    #[test]
    fn no_value_changes_and_no_joined_line_is_wide() {
        let mut value = json!("x");
        for depth in 0..40 {
            let name = "n".repeat(depth);
            value = match depth % 3 {
                0 => json!({name: value, "other": depth}),
                1 => json!([value, "[", "{", "}", "]", ","]),
                _ => json!([[], {}, value]),
            };
        }
        let text = text(&value);
        assert_eq!(serde_json::from_str::<Value>(&text).unwrap(), value);
        let is_joined = |line: &&str| line.trim_start().contains(": {\"") || line.contains(", ");
        let mut joined = text.lines().filter(is_joined);
        assert!(joined.all(|line| line.len() <= WIDTH), "{text}");
    }
}
