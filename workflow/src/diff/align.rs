//! Finds which entries of two lists belong together, in order: a longest common subsequence.

use std::ops::Range;

use crate::limits::DIFF_CELLS;

/// A range of entries without a counterpart in the other list, with the entries at the same place there.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Gap {
    pub(super) before: Range<usize>,
    pub(super) after: Range<usize>,
}

/// The gaps between the entries that both lists have, in order. Lists that are too long for this are one gap between
/// their common start and end.
pub(super) fn gaps<T: PartialEq>(before: &[T], after: &[T]) -> Vec<Gap> {
    let start = before.iter().zip(after).take_while(|(a, b)| a == b).count();
    let shorter = before.len().min(after.len());
    let ends = before.iter().rev().zip(after.iter().rev());
    let end = ends
        .take(shorter - start)
        .take_while(|(a, b)| a == b)
        .count();
    let before_middle = start..before.len() - end;
    let after_middle = start..after.len() - end;
    if before_middle.is_empty() && after_middle.is_empty() {
        return Vec::new();
    }
    if before_middle.len().saturating_mul(after_middle.len()) > DIFF_CELLS {
        return vec![Gap {
            before: before_middle,
            after: after_middle,
        }];
    }
    let (before, after) = (
        before.get(before_middle).unwrap_or_default(),
        after.get(after_middle).unwrap_or_default(),
    );
    walk(before, after)
        .into_iter()
        .map(|gap| Gap {
            before: gap.before.start + start..gap.before.end + start,
            after: gap.after.start + start..gap.after.end + start,
        })
        .collect()
}

/// Follows the longest common subsequence from the front.
fn walk<T: PartialEq>(before: &[T], after: &[T]) -> Vec<Gap> {
    let common = common(before, after);
    let length = |i: usize, j: usize| common.get(i * (after.len() + 1) + j).copied().unwrap_or(0);
    let mut gaps = Vec::new();
    let (mut i, mut j) = (0, 0);
    let mut open = (0, 0);
    let mut close = |open: (usize, usize), i: usize, j: usize| {
        if open != (i, j) {
            gaps.push(Gap {
                before: open.0..i,
                after: open.1..j,
            });
        }
    };
    while let (Some(one), Some(other)) = (before.get(i), after.get(j)) {
        if one == other {
            close(open, i, j);
            (i, j) = (i + 1, j + 1);
            open = (i, j);
        } else if length(i + 1, j) >= length(i, j + 1) {
            i += 1;
        } else {
            j += 1;
        }
    }
    close(open, before.len(), after.len());
    gaps
}

/// For each pair of places, row by row: how many entries the rests of the lists have in common.
fn common<T: PartialEq>(before: &[T], after: &[T]) -> Vec<u32> {
    let width = after.len() + 1;
    let mut lengths = vec![0_u32; (before.len() + 1) * width];
    for (i, one) in before.iter().enumerate().rev() {
        for (j, other) in after.iter().enumerate().rev() {
            let at = |i: usize, j: usize| lengths.get(i * width + j).copied().unwrap_or(0);
            let length = if one == other {
                at(i + 1, j + 1) + 1
            } else {
                at(i + 1, j).max(at(i, j + 1))
            };
            if let Some(cell) = lengths.get_mut(i * width + j) {
                *cell = length;
            }
        }
    }
    lengths
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::random::Random;

    fn found(before: &str, after: &str) -> Vec<(Range<usize>, Range<usize>)> {
        let letters = |text: &str| text.chars().collect::<Vec<_>>();
        gaps(&letters(before), &letters(after))
            .into_iter()
            .map(|gap| (gap.before, gap.after))
            .collect()
    }

    #[test]
    fn what_both_lists_have_is_in_no_gap() {
        assert_eq!(found("abc", "abc"), []);
        assert_eq!(found("", ""), []);
        assert_eq!(found("abc", "axc"), [(1..2, 1..2)]);
        assert_eq!(found("abc", "ac"), [(1..2, 1..1)]);
        assert_eq!(found("ac", "abc"), [(1..1, 1..2)]);
        assert_eq!(found("", "ab"), [(0..0, 0..2)]);
        assert_eq!(found("aa", "aaa"), [(2..2, 2..3)]);
        assert_eq!(found("abcd", "xbyd"), [(0..1, 0..1), (2..3, 2..3)]);
    }

    #[test]
    fn outside_the_gaps_the_lists_are_equal() {
        let mut random = Random::new(5);
        for _ in 0..500 {
            let before: Vec<char> = random.text("abc", 12).chars().collect();
            let after: Vec<char> = random.text("abc", 12).chars().collect();
            let (mut i, mut j) = (0, 0);
            for gap in gaps(&before, &after) {
                assert_eq!(before[i..gap.before.start], after[j..gap.after.start]);
                assert!(!(gap.before.is_empty() && gap.after.is_empty()));
                (i, j) = (gap.before.end, gap.after.end);
            }
            assert_eq!(before[i..], after[j..]);
        }
    }
}
