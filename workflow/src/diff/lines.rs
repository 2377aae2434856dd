//! The difference between two texts, line by line, in the unified form.

use serde::Serialize;
use similar::{Algorithm, DiffOp, capture_diff_slices, group_diff_ops};

use crate::limits::{DIFF_CONTEXT, DIFF_INPUT_LINES, DIFF_LINES};

#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize)]
pub struct LineDifference {
    /// In the order of the texts.
    pub hunks: Vec<Hunk>,
    /// Whether a very long difference was cut.
    pub cut: bool,
}

/// Neighbouring lines that differ, with unchanged lines around them.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Hunk {
    /// The number of its first line in the former text, from 1.
    pub from: usize,
    /// The number of its first line in the present text, from 1.
    pub to: usize,
    /// Removed lines after `-`, added lines after `+`, unchanged lines after a space.
    pub lines: Vec<String>,
}

pub fn line_diff(before: &str, after: &str) -> LineDifference {
    let before: Vec<&str> = before.lines().collect();
    let after: Vec<&str> = after.lines().collect();
    let ops = compared(&before, &after);
    let mut difference = LineDifference::default();
    let mut left = DIFF_LINES;
    for group in group_diff_ops(ops, DIFF_CONTEXT) {
        let Some(first) = group.first() else { continue };
        let changes = group.iter().flat_map(|op| op.iter_changes(&before, &after));
        let lines = changes.take(left);
        let hunk = Hunk {
            from: first.old_range().start + 1,
            to: first.new_range().start + 1,
            lines: lines
                .map(|line| format!("{}{}", line.tag(), line.value()))
                .collect(),
        };
        left -= hunk.lines.len();
        difference.hunks.push(hunk);
        if left == 0 {
            difference.cut = true;
            break;
        }
    }
    difference
}

/// The operations that turn one list of lines into the other. Very long lists count as completely different.
pub(super) fn compared(before: &[&str], after: &[&str]) -> Vec<DiffOp> {
    let (old_len, new_len) = (before.len(), after.len());
    if before == after || old_len + new_len <= DIFF_INPUT_LINES {
        return capture_diff_slices(Algorithm::Myers, before, after);
    }
    vec![DiffOp::Replace {
        old_index: 0,
        old_len,
        new_index: 0,
        new_len,
    }]
}

#[cfg(test)]
mod tests {
    use std::ops::Range;

    use super::*;
    use crate::random::Random;

    fn numbers(range: Range<usize>) -> Vec<String> {
        range.map(|number| number.to_string()).collect()
    }

    #[test]
    fn lines_around_a_change_are_shown() {
        let before = numbers(1..31);
        let mut after = before.clone();
        after[9] = "ten".to_owned();
        after.remove(14);
        after.push("31".to_owned());
        let difference = line_diff(&before.join("\n"), &after.join("\n"));
        let lines = |at: usize| difference.hunks[at].lines.join(" ");
        assert_eq!(
            lines(0),
            " 7  8  9 -10 +ten  11  12  13  14 -15  16  17  18"
        );
        assert_eq!((difference.hunks[0].from, difference.hunks[0].to), (7, 7));
        assert_eq!(lines(1), " 28  29  30 +31");
        assert_eq!((difference.hunks[1].from, difference.hunks[1].to), (28, 27));
        assert_eq!((difference.hunks.len(), difference.cut), (2, false));
        assert_eq!(line_diff("a\nb", "a\nb\n"), LineDifference::default());
    }

    #[test]
    fn a_long_difference_is_cut_and_marked_as_cut() {
        let all = numbers(0..DIFF_LINES).join("\n");
        let difference = line_diff("", &all);
        assert_eq!(difference.hunks[0].lines.len(), DIFF_LINES);
        assert!(difference.cut);
        let fewer = numbers(1..DIFF_LINES).join("\n");
        assert!(!line_diff("", &fewer).cut);
    }

    #[test]
    fn very_long_texts_are_not_compared_line_by_line() {
        let before = numbers(0..DIFF_INPUT_LINES).join("\n");
        let difference = line_diff(&before, &format!("{before}\nmore"));
        assert_eq!(difference.hunks[0].lines[0], "-0");
        assert!(difference.cut);
        assert_eq!(line_diff(&before, &before), LineDifference::default());
    }

    #[test]
    fn the_hunks_turn_one_text_into_the_other() {
        let mut random = Random::new(7);
        for _ in 0..500 {
            let text = |random: &mut Random| {
                let letters: Vec<String> =
                    random.text("abc", 40).chars().map(String::from).collect();
                letters.join("\n")
            };
            let (before, after) = (text(&mut random), text(&mut random));
            assert_eq!(applied(&before, &line_diff(&before, &after)), after);
        }
    }

    fn applied(before: &str, difference: &LineDifference) -> String {
        let before: Vec<&str> = before.lines().collect();
        let (mut made, mut at) = (Vec::new(), 0);
        for hunk in &difference.hunks {
            made.extend(&before[at..hunk.from - 1]);
            assert_eq!(made.len(), hunk.to - 1);
            at = hunk.from - 1;
            for line in &hunk.lines {
                let (mark, text) = line.split_at(1);
                if mark != "+" {
                    assert_eq!(before[at], text);
                    at += 1;
                }
                if mark != "-" {
                    made.push(text);
                }
            }
        }
        made.extend(&before[at..]);
        made.join("\n")
    }
}
