//! Finds the brackets that belong to a part of a valid expression.

use std::ops::Range;

use crate::expression::string_end;

/// A bracket of any kind. In a valid expression they are nested correctly.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Bracket {
    Opening,
    Closing,
}

/// Extends the range by adjacent brackets whose counterparts are inside. If both brackets of a pair are outside, the pair
/// surrounds the whole range and does not belong to it.
pub(super) fn balanced(source: &str, range: Range<usize>) -> Range<usize> {
    let (mut to_open, mut to_close) = (0_usize, 0_usize);
    for (_, bracket) in brackets(source, range.clone()) {
        match bracket {
            Bracket::Opening => to_close += 1,
            Bracket::Closing if to_close > 0 => to_close -= 1,
            Bracket::Closing => to_open += 1,
        }
    }
    let start = opened_before(source, range.start, to_open).unwrap_or(range.start);
    let end = closed_behind(source, range.end, to_close).unwrap_or(range.end);
    start..end
}

/// The place of the outermost of the `count` brackets that are open at a place.
fn opened_before(source: &str, place: usize, count: usize) -> Option<usize> {
    let count = count.checked_sub(1)?;
    let mut open = Vec::new();
    for (at, bracket) in brackets(source, 0..place) {
        match bracket {
            Bracket::Opening => open.push(at),
            Bracket::Closing => drop(open.pop()),
        }
    }
    open.into_iter().nth_back(count)
}

/// The place after the last of the `count` brackets that close the open brackets.
fn closed_behind(source: &str, place: usize, mut count: usize) -> Option<usize> {
    if count == 0 {
        return None;
    }
    for (at, bracket) in brackets(source, place..source.len()) {
        match bracket {
            Bracket::Opening => count += 1,
            Bracket::Closing => count -= 1,
        }
        if count == 0 {
            return Some(at + 1);
        }
    }
    None
}

/// The brackets in a range that begins between two words, without brackets in strings and comments.
fn brackets(source: &str, range: Range<usize>) -> impl Iterator<Item = (usize, Bracket)> {
    let bytes = source.as_bytes();
    let mut next = range.start;
    std::iter::from_fn(move || {
        while next < range.end {
            let at = next;
            next += 1;
            match bytes.get(at)? {
                b'(' | b'[' | b'{' => return Some((at, Bracket::Opening)),
                b')' | b']' | b'}' => return Some((at, Bracket::Closing)),
                b'"' | b'\'' => next = string_end(bytes, range.start, at)?,
                b'/' if bytes.get(next) == Some(&b'/') => {
                    let comment = source.get(next..)?;
                    next += comment.find('\n').unwrap_or(comment.len());
                }
                _ => {}
            }
        }
        None
    })
}

#[cfg(test)]
mod tests {
    use super::balanced;

    /// The range between the two bars, after it was extended.
    fn grown(marked: &str) -> String {
        let [before, part, behind] = marked.split('|').collect::<Vec<_>>()[..] else {
            panic!("{marked} has no two bars");
        };
        let source = [before, part, behind].concat();
        source[balanced(&source, before.len()..before.len() + part.len())].to_owned()
    }

    #[test]
    fn a_part_has_the_brackets_whose_counterparts_are_in_it() {
        for (marked, expected) in [
            ("(|a + b).f(|)", "(a + b).f()"),
            ("(( |a) + b) > 0|", "(( a) + b) > 0"),
            ("(|(a) + b) > 0|", "((a) + b) > 0"),
            ("f(|a|)", "a"),
            ("(|a| && b)", "a"),
            ("|g([a]).f(|(b), c)", "g([a]).f((b), c)"),
            ("x[(|a + b).f(|{'k': [c]})]", "(a + b).f({'k': [c]})"),
        ] {
            assert_eq!(grown(marked), expected, "{marked}");
        }
    }

    #[test]
    fn brackets_in_strings_and_comments_are_ignored() {
        for (marked, expected) in [
            ("'(' + |a + ')'|", "a + ')'"),
            ("(|a + ')').f(|)", "(a + ')').f()"),
            ("(r'(\\' + |a).f('))', |b)", "(r'(\\' + a).f('))', b)"),
            ("('\\'(' + |a).f(|)", "('\\'(' + a).f()"),
            ("('''(' ''' + |a).f(|)", "('''(' ''' + a).f()"),
            ("( // it's (\n|a).f(|// )\n)", "( // it's (\na).f(// )\n)"),
        ] {
            assert_eq!(grown(marked), expected, "{marked}");
        }
    }
}
