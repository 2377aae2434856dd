use super::Places;
use crate::position::Span;
use crate::report::Report;
use crate::yaml::{Content, Entry, Node, build};

/// Calls `look` with the value of the first key.
fn first_value(text: &str, look: impl FnOnce(&Node)) {
    let mut report = Report::new("file.yaml", text);
    let root = build(text, &mut report).unwrap();
    match &root.content {
        Content::Map(entries) => look(entries.first().map(|Entry { value, .. }| value).unwrap()),
        other => panic!("{other:?}"),
    }
}

/// Asserts that each letter and digit of the value is found at its place in the file.
fn check(text: &str) {
    first_value(text, |node| {
        let Content::Scalar(scalar) = &node.content else {
            panic!("{text:?} is not a scalar")
        };
        let places = Places::of(node, text);
        assert!(!places.runs.is_empty(), "{text:?} has no places");
        let mut letters = 0;
        for (at, character) in scalar.text.char_indices() {
            let is_letter = character.is_alphanumeric();
            if is_letter {
                let span = places.locate(at..at + character.len_utf8());
                let written = text.get(span.start..span.end).unwrap();
                let is_escape = written.starts_with('\\');
                assert!(
                    is_escape || written == character.to_string(),
                    "{text:?}: {character} of {:?} is found at {written:?}",
                    scalar.text
                );
                letters += 1;
            }
        }
        assert!(letters > 0, "{text:?} has no letters");
    });
}

#[test]
fn every_character_of_every_style_is_found() {
    for text in [
        "k: plain",
        "k: plain with spaces   # a comment",
        "k: plain\n  over lines\n\n  and äöü paragraphs\n",
        "{k: plain in\n  flow}",
        "k: 'single'",
        "k: 'it''s ''quoted'' ä'",
        "k: 'single\n  over lines   \n\n\n  and more'",
        "k: \"double\"",
        "k: \"a\\tb\\\"c\\\\d\\x41e\\u00e4f\\U0001F600g\\ud83d\\ude00h\\_i\\Nj\\/k\\0l\\em\"",
        "k: \"double\n  over lines\n\n  and\\\n  joined \\\n\n  with \\  ends\"",
        "k: |\n  literal\n  lines\n",
        "k: |\n\n\n  leading\n   more\n\n  lines ä\n\n",
        "k: |2+\n   explicit\n  less\n\n\n",
        "k: |-  # comment\n    deep\n\n      deeper  \n    end",
        "k: >\n  folded\n  lines\n\n  and\n\n\n  paragraphs\n    more indented\n\n    again\n  back\n",
        "k: >-\n\n  leading ä\n  folded\n",
        "k: >+\n  kept\n\n\n",
        "k: >2\n   starts\n   indented\n  then not\n",
        "k: |\n  tab\tinside\n  \t\n  after\n",
        "ä: |\n  ünïcode 😀 x\n  y\n",
        "\u{feff}k: mark",
    ] {
        check(text);
        let windows = text.replace('\n', "\r\n");
        check(&windows);
    }
}

#[test]
fn a_range_over_lines_ends_with_its_last_character() {
    let text = "k: >\n  one two\n  three\n";
    first_value(text, |node| {
        let places = Places::of(node, text);
        let span = places.locate(4..13);
        assert_eq!(&text[span.start..span.end], "two\n  three");
        let whole = places.whole();
        assert_eq!(&text[whole.start..whole.end], "one two\n  three");
        let end = places.locate(13..13);
        assert_eq!(end.start, end.end);
    });
}

#[test]
fn an_escape_is_one_place() {
    let text = r#"k: "a\u00e4b""#;
    first_value(text, |node| {
        let places = Places::of(node, text);
        let span = places.locate(1..3);
        assert_eq!(&text[span.start..span.end], r"\u00e4");
        assert_eq!(places.locate(3..4), Span::new(11, 12));
    });
}

#[test]
fn a_value_that_is_not_text_has_one_place() {
    let text = "k: [a, b]";
    first_value(text, |node| {
        assert_eq!(Places::of(node, text).locate(1..2), node.span);
    });
}
