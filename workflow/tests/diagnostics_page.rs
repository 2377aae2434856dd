//! `docs/diagnostics.md` has one entry for each code. Its wrong example has exactly this problem, and its right example
//! has no problem.

#![expect(
    clippy::unwrap_used,
    reason = "a test may end where it finds what it does not expect"
)]

use std::collections::BTreeMap;

use workflow::{Code, Diagnostic, TemplatePolicy, parse};

const PAGE: &str = include_str!("../../docs/diagnostics.md");

/// Codes without an example: they depend on the file's size, on reading it, or on the machine.
const WITHOUT_EXAMPLE: [Code; 5] = [
    Code::FileTooLarge,
    Code::FileTooComplex,
    Code::UnreadableFile,
    Code::MoreProblems,
    Code::EngineUnavailable,
];

/// The examples of one entry.
#[derive(Default)]
struct Entry {
    wrong: Option<String>,
    right: Option<String>,
}

/// The page's entries in its order.
fn entries() -> Vec<(String, Entry)> {
    let mut entries: Vec<(String, Entry)> = Vec::new();
    let mut block: Option<String> = None;
    for line in PAGE.lines() {
        match (&mut block, line) {
            (None, "```yaml") => block = Some(String::new()),
            (None, line) => {
                if let Some(code) = line.strip_prefix("### `") {
                    let code = code.strip_suffix('`').unwrap().to_owned();
                    entries.push((code, Entry::default()));
                }
            }
            (Some(text), "```") => {
                let entry = &mut entries.last_mut().unwrap().1;
                let place = match text.lines().next() {
                    Some("# wrong") => &mut entry.wrong,
                    Some("# right") => &mut entry.right,
                    other => panic!("an example starts with {other:?}"),
                };
                assert!(place.replace(std::mem::take(text)).is_none());
                block = None;
            }
            (Some(text), line) => {
                text.push_str(line);
                text.push('\n');
            }
        }
    }
    entries
}

fn problems(text: &str) -> Vec<Diagnostic> {
    match parse("example.yaml", text, TemplatePolicy::Warn) {
        Ok(parsed) => parsed.warnings,
        Err(diagnostics) => diagnostics,
    }
}

#[test]
fn every_code_has_one_entry() {
    let mut found: BTreeMap<String, usize> = BTreeMap::new();
    for (code, _) in entries() {
        *found.entry(code).or_default() += 1;
    }
    let expected: BTreeMap<String, usize> = Code::ALL
        .iter()
        .map(|code| (code.name().to_owned(), 1))
        .collect();
    assert_eq!(found, expected);
}

#[test]
fn wrong_examples_have_their_problem_and_right_examples_have_none() {
    let mut failures = Vec::new();
    for (name, entry) in entries() {
        let code = *Code::ALL.iter().find(|code| code.name() == name).unwrap();
        let is_shown = !WITHOUT_EXAMPLE.contains(&code);
        assert_eq!(entry.wrong.is_some(), is_shown, "{name}");
        assert_eq!(entry.right.is_some(), is_shown, "{name}");
        if let (Some(wrong), Some(right)) = (entry.wrong, entry.right) {
            for (text, expected) in [(wrong, vec![code]), (right, vec![])] {
                let found: Vec<Code> = problems(&text).iter().map(|one| one.code).collect();
                if found != expected {
                    failures.push(format!("{name}: {found:?} in\n{text}"));
                }
            }
        }
    }
    assert!(failures.is_empty(), "{}", failures.join("\n"));
}

/// The page shows one whole message, which must be the real one.
#[test]
fn the_message_that_the_page_shows_is_real() {
    let (_, entry) = entries()
        .into_iter()
        .find(|(code, _)| code == Code::UnknownScan.name())
        .unwrap();
    // The page's marker is not part of the file.
    let wrong = entry.wrong.unwrap();
    let wrong = wrong.strip_prefix("# wrong\n").unwrap();
    let diagnostics = parse("build.yaml", wrong, TemplatePolicy::Warn).unwrap_err();
    let shown = workflow::render(&diagnostics, wrong, false);
    assert!(PAGE.contains(shown.trim_end()), "{shown}");
}
