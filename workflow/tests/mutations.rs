//! The fixtures with random damage: the parser never panics or hangs, and every refusal has an error. The seed is fixed, so every
//! run uses the same files.

#![expect(
    clippy::unwrap_used,
    reason = "a test may end where it finds what it does not expect"
)]

#[path = "fixtures/cases.rs"]
mod cases;

use std::time::{Duration, Instant};

use cases::{cases, files};
use workflow::{Code, Severity, TemplatePolicy, parse, render};

/// The number of damaged files. They take a few seconds in a debug build.
const FILES: u64 = 3_000;

/// Typical typing errors, and texts that are hard to parse.
const PIECES: [&str; 36] = [
    " ",
    "\n",
    "\t",
    "\r\n",
    "  ",
    ":",
    ": ",
    "- ",
    "#",
    "'",
    "\"",
    "{",
    "}",
    "[",
    "]",
    "|\n",
    ">-\n",
    "&a ",
    "*a",
    "<<: ",
    "---\n",
    "!!t ",
    "? ",
    "%",
    "@",
    "\\",
    "\0",
    "ä",
    "\u{202e}",
    "\u{feff}",
    "${{",
    "}}",
    "&&",
    "scans.",
    "0",
    "999999999999999999999",
];

/// A small generator (SplitMix64).
struct Random(u64);

impl Random {
    fn below(&mut self, bound: usize) -> usize {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        let mixed = mixed ^ (mixed >> 31);
        usize::try_from(mixed % u64::try_from(bound.max(1)).unwrap()).unwrap()
    }
}

fn fixtures() -> Vec<String> {
    let files = files(&["invalid", "valid"]);
    let cases = files.iter().flat_map(|file| cases(file));
    cases.map(|(_, yaml, _)| yaml).collect()
}

/// A random place in the text at which a character starts.
fn place(text: &str, random: &mut Random) -> usize {
    let mut at = random.below(text.len() + 1);
    while !text.is_char_boundary(at) {
        at -= 1;
    }
    at
}

/// Makes one change: a piece is inserted, a part is removed or repeated, or a part is taken from another file.
fn damage(text: &mut String, others: &[String], random: &mut Random) {
    let (one, other) = (place(text, random), place(text, random));
    let (from, to) = (one.min(other), one.max(other).min(one.min(other) + 40));
    let to = (from..=to)
        .rev()
        .find(|at| text.is_char_boundary(*at))
        .unwrap_or(from);
    match random.below(5) {
        0 | 1 => text.insert_str(from, PIECES[random.below(PIECES.len())]),
        2 => text.replace_range(from..to, ""),
        3 => {
            let part = text[from..to].to_owned();
            text.insert_str(from, &part.repeat(random.below(4)));
        }
        _ => {
            let donor = &others[random.below(others.len())];
            let (start, end) = (place(donor, random), place(donor, random));
            let part = &donor[start.min(end)..start.max(end)];
            text.insert_str(from, part);
        }
    }
}

#[test]
fn no_damaged_fixture_panics_or_hangs() {
    let fixtures = fixtures();
    let mut random = Random(7);
    for _ in 0..FILES {
        let mut text = fixtures[random.below(fixtures.len())].clone();
        for _ in 0..=random.below(4) {
            damage(&mut text, &fixtures, &mut random);
        }
        let begun = Instant::now();
        let (problems, is_refused) = match parse("file.yaml", &text, TemplatePolicy::Warn) {
            Ok(parsed) => (parsed.warnings, false),
            Err(problems) => (problems, true),
        };
        let has_error = problems.iter().any(|one| one.severity == Severity::Error);
        assert_eq!(has_error, is_refused, "{text}");
        for problem in &problems {
            assert_ne!(problem.code, Code::EngineUnavailable, "{text}");
            let (start, end) = (
                (problem.line, problem.column),
                (problem.end_line, problem.end_column),
            );
            assert!(start <= end, "{problem:?} in {text}");
            let lines = u32::try_from(text.split('\n').count()).unwrap();
            assert!(
                problem.line >= 1 && problem.end_line <= lines,
                "{problem:?} in {text}"
            );
        }
        assert_eq!(
            render(&problems, &text, false).is_empty(),
            problems.is_empty()
        );
        assert!(begun.elapsed() < Duration::from_secs(180), "{text}");
    }
}
