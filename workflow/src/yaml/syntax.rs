//! What the YAML parser's errors mean to a person, and what to do about each.

use serde_yaml::granit_parser::{ErrorKind, ScanError};

use crate::diagnostic::Code;
use crate::limits::YAML_DEPTH;

/// An error in words.
pub(super) struct Explained {
    pub(super) code: Code,
    pub(super) message: String,
    pub(super) hint: Option<&'static str>,
}

/// Says what an error means.
pub(super) fn explain(error: &ScanError) -> Explained {
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
        ErrorKind::MappingValueNotAllowed => syntax(
            "a second `: ` makes no sense in this line",
            "quote a text that contains `: `, or write it as a block after `|`",
        ),
        ErrorKind::MissingAnchorOrAliasName => syntax(
            "`*` and `&` stand before a name",
            "a text that starts with such a character must be quoted",
        ),
        ErrorKind::TabInBlockIndentation
        | ErrorKind::TabInIndentation
        | ErrorKind::TabAtBlockScalarStart
        | ErrorKind::TabNotAllowed => syntax("a tab cannot indent", "indent with spaces"),
        ErrorKind::UnexpectedCharacter { character } => syntax(
            &format!("a text cannot start with `{character}`"),
            "quote it",
        ),
        ErrorKind::UnclosedQuotedScalar | ErrorKind::InvalidQuotedScalarIndent => syntax(
            "a quoted text before this has no end",
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
            "what is in brackets before this has no end",
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
