//! Formats JSON for people: one line for each member, and small objects and lists on one line. Also removes the white
//! space again, to compute the checksum.

/// The longest line with a whole object or list. A longer object or list gets a line for each member.
const WIDTH: usize = 100;

/// Formats a compact JSON text, with a line end.
pub(crate) fn pretty(compact: &[u8]) -> Vec<u8> {
    let mut page = Page {
        text: Vec::with_capacity(compact.len() * 2),
        line: 0,
        indent: 0,
        inline: 0,
    };
    let mut rest = compact;
    while let Some((token, after)) = next_token(rest) {
        match token {
            b"{" | b"[" => page.open(token, rest),
            b"}" | b"]" => page.close(token),
            b"," => page.separate(),
            b":" => page.text.extend(b": "),
            other => page.text.extend(other),
        }
        rest = after;
    }
    page.text.push(b'\n');
    page.text
}

/// The text without white space between its tokens. The string of the outermost member `blank` is emptied.
pub(crate) fn compact(text: &[u8], blank: &str) -> Vec<u8> {
    let mut compact = Vec::with_capacity(text.len());
    let mut rest = text;
    let (mut depth, mut is_blank) = (0_usize, false);
    let mut last: &[u8] = b"";
    let blank = format!("\"{blank}\"");
    while let Some((token, after)) = next_token(rest) {
        rest = after;
        match token {
            b"{" | b"[" => depth += 1,
            b"}" | b"]" => depth = depth.saturating_sub(1),
            b":" => is_blank = depth == 1 && last.trim_ascii() == blank.as_bytes(),
            _ => {}
        }
        if is_blank && token.starts_with(b"\"") {
            compact.extend(b"\"\"");
        } else {
            compact.extend(token);
        }
        is_blank &= token == b":";
        last = token;
    }
    compact
}

/// The next bracket, separator, string or other scalar, without white space, and what follows it.
fn next_token(text: &[u8]) -> Option<(&[u8], &[u8])> {
    let text = text.trim_ascii_start();
    let length = match text.first()? {
        b'{' | b'}' | b'[' | b']' | b',' | b':' => 1,
        b'"' => length_of_string(text),
        _ => {
            let is_end = |byte: &u8| b"{}[],:\"".contains(byte) || byte.is_ascii_whitespace();
            text.iter().position(is_end).unwrap_or(text.len())
        }
    };
    text.split_at_checked(length)
}

/// Includes both quotes. Without a closing quote, the string extends to the end of the text.
fn length_of_string(text: &[u8]) -> usize {
    let mut is_escaped = false;
    for (at, byte) in text.iter().enumerate().skip(1) {
        match byte {
            _ if is_escaped => is_escaped = false,
            b'\\' => is_escaped = true,
            b'"' => return at + 1,
            _ => {}
        }
    }
    text.len()
}

/// Whether the object or list at the beginning of the text fits into this many columns of one line.
fn fits(text: &[u8], columns: usize) -> bool {
    let (mut depth, mut width, mut rest) = (0_usize, 0, text);
    while width <= columns
        && let Some((token, after)) = next_token(rest)
    {
        rest = after;
        match token {
            b"{" | b"[" => depth += 1,
            b"}" | b"]" => depth = depth.saturating_sub(1),
            // A space follows.
            b"," | b":" => width += 1,
            _ => {}
        }
        width += token.len();
        if depth == 0 {
            return width <= columns;
        }
    }
    false
}

/// A text that is being formatted.
struct Page {
    text: Vec<u8>,
    /// Where the current line begins.
    line: usize,
    indent: usize,
    /// The number of open brackets whose content stays on the line.
    inline: usize,
}

impl Page {
    /// Opens the bracket at the beginning of `rest`. The outermost object or list gets a line for each member, unless
    /// it is empty.
    fn open(&mut self, bracket: &[u8], rest: &[u8]) {
        let column = self.text.len() - self.line;
        let columns = match self.indent {
            0 => 2,
            _ => WIDTH.saturating_sub(column + 1).max(2),
        };
        let stays = self.inline > 0 || fits(rest, columns);
        self.text.extend(bracket);
        if stays {
            self.inline += 1;
        } else {
            self.indent += 1;
            self.begin_line();
        }
    }

    fn close(&mut self, bracket: &[u8]) {
        if self.inline > 0 {
            self.inline -= 1;
        } else {
            self.indent = self.indent.saturating_sub(1);
            self.begin_line();
        }
        self.text.extend(bracket);
    }

    fn separate(&mut self) {
        self.text.push(b',');
        if self.inline > 0 {
            self.text.push(b' ');
        } else {
            self.begin_line();
        }
    }

    fn begin_line(&mut self) {
        self.text.push(b'\n');
        self.line = self.text.len();
        self.text.extend(std::iter::repeat_n(b' ', 2 * self.indent));
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    fn text(value: &Value) -> String {
        String::from_utf8(pretty(value.to_string().as_bytes())).unwrap()
    }

    #[test]
    fn short_values_are_on_one_line_but_the_outermost_never_is() {
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
    fn formatting_changes_no_value_and_joins_no_line_beyond_the_width() {
        let mut value = json!("x");
        for depth in 0..40 {
            let name = "n".repeat(depth);
            value = match depth % 3 {
                0 => json!({name: value, "other": depth}),
                1 => json!([value, "[", "{", "}", "]", ",", "\\", "\\\"", "é "]),
                _ => json!([[], {}, value, null, true, -1.5e-7]),
            };
        }
        let text = text(&value);
        assert_eq!(serde_json::from_str::<Value>(&text).unwrap(), value);
        let mut joined = text.lines().filter(|line| line.contains(", "));
        assert!(joined.all(|line| line.len() <= WIDTH), "{text}");
        let compact = compact(text.as_bytes(), "none");
        assert_eq!(String::from_utf8(compact).unwrap(), value.to_string());
    }

    #[test]
    fn only_the_outermost_member_of_that_name_is_blanked() {
        let text =
            r#"{ "sum" : "a" , "b": {"sum":"c"}, "d": ["sum", "e"], "f": "sum", "g": "\"sum\":" }"#;
        let expected = r#"{"sum":"","b":{"sum":"c"},"d":["sum","e"],"f":"sum","g":"\"sum\":"}"#;
        assert_eq!(compact(text.as_bytes(), "sum"), expected.as_bytes());
    }

    #[test]
    fn invalid_json_is_handled_without_a_panic() {
        for text in [
            "",
            "\"",
            "{",
            "}}]",
            "\"a",
            "{\"a\":\\",
            "nul",
            "\u{1}",
            ",,:",
        ] {
            pretty(text.as_bytes());
            compact(text.as_bytes(), "a");
        }
    }
}
