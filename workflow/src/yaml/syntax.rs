//! Turns the YAML parser's errors into messages and hints for people.

use granit_parser::{ErrorKind, ScanError};

use crate::diagnostic::Code;
use crate::limits::YAML_DEPTH;

/// The most characters of a key that is on one line with its value, a rule of YAML.
const KEY_CHARS: usize = 1024;

/// An error in words.
pub(super) struct Explained {
    pub(super) code: Code,
    pub(super) message: String,
    pub(super) hint: Option<&'static str>,
}

/// Explains an error that was found in `line`.
pub(super) fn explain(error: &ScanError, line: &str) -> Explained {
    let syntax = |message: &str, hint| Explained {
        code: Code::Syntax,
        message: message.to_owned(),
        hint: Some(hint),
    };
    match error.kind() {
        ErrorKind::RecursionLimitExceeded => Explained {
            code: Code::TooDeep,
            message: format!("nested more than {YAML_DEPTH} deep"),
            hint: None,
        },
        ErrorKind::MappingValueNotAllowed
        | ErrorKind::SimpleKeyExpected
        | ErrorKind::InvalidSimpleKey
            if has_long_key(line) =>
        {
            syntax(
                &format!("a key has at most {KEY_CHARS} characters, this one has more"),
                "shorten it",
            )
        }
        ErrorKind::MappingValueNotAllowed => syntax(
            "a line cannot have a second `: `",
            "quote a text that contains `: `, or write it as a block after `|`",
        ),
        ErrorKind::MissingAnchorOrAliasName => syntax(
            "`*` and `&` need a name after them",
            "a text that starts with such a character must be quoted",
        ),
        ErrorKind::TabInBlockIndentation
        | ErrorKind::TabInIndentation
        | ErrorKind::TabAtBlockScalarStart
        | ErrorKind::TabNotAllowed => syntax("a tab cannot indent", "indent with spaces"),
        ErrorKind::UnexpectedCharacter { character } if !is_text(*character) => syntax(
            &format!(
                "the character U+{:04X} is not allowed in a file",
                u32::from(*character)
            ),
            "remove it",
        ),
        ErrorKind::UnexpectedCharacter { character } => syntax(
            &format!("a text cannot start with `{character}`"),
            "quote it",
        ),
        ErrorKind::UnclosedQuotedScalar | ErrorKind::InvalidQuotedScalarIndent => syntax(
            "a quoted text before this is not closed",
            "close its quote, and indent its further lines",
        ),
        ErrorKind::InvalidTrailingSingleQuotedScalar => syntax(
            "a quoted text ended before this",
            "write `''` for a quote within single quotes",
        ),
        ErrorKind::InvalidTrailingDoubleQuotedScalar => syntax(
            "a quoted text ended before this",
            "write `\\\"` for a quote within double quotes",
        ),
        ErrorKind::UnknownQuotedScalarEscape
        | ErrorKind::InvalidQuotedScalarHexEscape
        | ErrorKind::InvalidUnicodeEscape => syntax(
            "this text has a `\\` that YAML gives no meaning",
            "write `\\\\`, or use single quotes, within which `\\` means itself",
        ),
        ErrorKind::ExpectedBlockMappingKey | ErrorKind::InvalidIndentation => syntax(
            "this line is indented like no line before it",
            "indent all keys of an object alike, and more than the key they belong to",
        ),
        ErrorKind::ExpectedBlockSequenceEntry
        | ErrorKind::BlockSequenceEntryNotAllowed
        | ErrorKind::InvalidBlockEntryWhitespace => syntax(
            "a list item is out of place",
            "start each item of a list with `- `, all indented alike",
        ),
        ErrorKind::SimpleKeyExpected | ErrorKind::InvalidSimpleKey => syntax(
            "a key without `: ` and a value",
            "write `key: value`; further lines of a text are indented more than its key",
        ),
        ErrorKind::InvalidColonPlacement
        | ErrorKind::UnexpectedEofFlowSequence
        | ErrorKind::UnexpectedEofFlowMapping
        | ErrorKind::UnexpectedEofImplicitFlowMapping
        | ErrorKind::ExpectedFlowMappingSeparator
        | ErrorKind::ExpectedFlowSequenceSeparator
        | ErrorKind::InvalidFlowScalarIndent => syntax(
            "a bracket before this is not closed",
            "close the bracket; a text with `: ` or a comma in brackets must be quoted",
        ),
        ErrorKind::MisplacedFlowCollectionEnd | ErrorKind::MismatchedFlowCollectionEnd { .. } => {
            syntax(
                "this bracket closes nothing",
                "remove it, or quote a text that contains it",
            )
        }
        ErrorKind::UnclosedFlowCollection { .. } => {
            syntax("this bracket is not closed", "close it, or quote the text")
        }
        ErrorKind::InvalidBlockScalarHeader => syntax(
            "the text after `|` or `>` starts on the next line",
            "break the line here, and indent the text",
        ),
        ErrorKind::InvalidBlockScalarIndent => syntax(
            "a line of the block is indented less than its first",
            "indent all lines of a block at least as its first",
        ),
        _ => Explained {
            code: Code::Syntax,
            message: error.info().trim_end_matches('.').to_owned(),
            hint: None,
        },
    }
}

/// Whether a line starts with a key that is too long.
fn has_long_key(line: &str) -> bool {
    let line = line.trim_start_matches([' ', '-']);
    let colon = line
        .find(": ")
        .or_else(|| line.trim_end().strip_suffix(':').map(str::len));
    colon
        .and_then(|colon| line.get(..colon))
        .is_some_and(|key| key.chars().nth(KEY_CHARS).is_some())
}

/// The forbidden character, if that is the error. The parser reports the start of the text that contains it.
pub(super) fn forbidden(error: &ScanError) -> Option<char> {
    match error.kind() {
        ErrorKind::UnexpectedCharacter { character } if !is_text(*character) => Some(*character),
        _ => None,
    }
}

/// Whether YAML allows the character.
fn is_text(character: char) -> bool {
    !character.is_control() && !matches!(character, '\u{fffe}' | '\u{ffff}')
}

#[cfg(test)]
mod tests {
    use crate::TemplatePolicy;

    /// The error for a file that is not YAML, with line and column.
    fn error_of(text: &str) -> (u32, u32, String) {
        let mut found = crate::parse("a.yaml", text, TemplatePolicy::Warn).unwrap_err();
        assert_eq!(found.len(), 1, "{found:?}");
        let found = found.remove(0);
        (found.line, found.column, found.message)
    }

    #[test]
    fn a_forbidden_character_is_named() {
        let named = |name: &str| format!("the character {name} is not allowed in a file");
        for (text, column, name) in [
            ("name: a\0b", 8, "U+0000"),
            ("name: \u{1}b", 7, "U+0001"),
            ("# a\0b\nname: x", 4, "U+0000"),
            ("name: \u{7f}", 7, "U+007F"),
            ("name: abc def\u{1}g", 14, "U+0001"),
        ] {
            assert_eq!(error_of(text), (1, column, named(name)), "{text:?}");
        }
        assert_eq!(error_of("name: @a").2, "a text cannot start with `@`");
    }

    #[test]
    fn a_long_key_has_its_own_message() {
        let long = "é".repeat(1025);
        let message = "a key has at most 1024 characters, this one has more";
        for text in [
            format!("{long}: 1"),
            format!("scans:\n  \"{long}\": 1\n"),
            format!("name: a\n{long}:\n  a: 1\n"),
        ] {
            assert_eq!(error_of(&text).2, message);
        }
        let second = error_of(&format!("name: {long}: 1")).2;
        assert_eq!(second, "a line cannot have a second `: `");
    }
}
