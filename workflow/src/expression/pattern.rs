//! Patterns of `matches`. They are literals, so their size is known when the file is loaded. An estimate refuses large patterns
//! before they are compiled. The others are compiled once and kept while an expression uses them.

use std::collections::HashMap;
use std::sync::{Arc, LazyLock, Mutex, MutexGuard, PoisonError, Weak};

use cel_interpreter::common::types::{CelBool, CelString, STRING_TYPE};
use cel_interpreter::common::value::CowVal;
use cel_interpreter::{DeclarationError, Env, ExecutionError};
use regex::{Regex, RegexBuilder};

use crate::limits::{PATTERN_BYTES, PATTERN_COMPILED_BYTES, PATTERN_STATES};

/// Assumed states of a class such as `\w` or `\pL`, which covers much of Unicode.
const CLASS_STATES: u64 = 100;

/// Every pattern of an existing expression, by its text. The library passes only texts to a function, so a compiled pattern must
/// be found by its text.
static PATTERNS: LazyLock<Mutex<HashMap<String, Weak<Pattern>>>> = LazyLock::new(Mutex::default);

/// A compiled pattern. Expressions with the same pattern share it.
#[derive(Debug)]
pub(super) struct Pattern {
    text: String,
    regex: Regex,
}

/// An upper bound for the states of the compiled pattern. `None` if the pattern is too long or too large. Every counted
/// repetition multiplies the whole pattern: this is exact for nested repetitions, and too high for others.
pub(super) fn states(pattern: &str) -> Option<u64> {
    if pattern.len() > PATTERN_BYTES {
        return None;
    }
    let classes = u64::try_from(pattern.matches(['\\', '.', '[']).count()).ok()?;
    let mut states = u64::try_from(pattern.len()).ok()? + classes * CLASS_STATES;
    for repetition in pattern.split('{').skip(1) {
        let inside = repetition.split('}').next().unwrap_or("");
        let times = inside
            .split(',')
            .filter_map(|number| number.trim().parse::<u64>().ok())
            .max()
            .unwrap_or(1);
        states = states.checked_mul(times.max(1))?;
    }
    (states <= PATTERN_STATES).then_some(states)
}

/// The compiled pattern of a text; `None` if it is not a regular expression.
pub(super) fn compile(text: &str) -> Option<Arc<Pattern>> {
    let mut patterns = patterns();
    if let Some(known) = patterns.get(text).and_then(Weak::upgrade) {
        return Some(known);
    }
    let regex = RegexBuilder::new(text)
        .size_limit(PATTERN_COMPILED_BYTES)
        .build()
        .ok()?;
    let pattern = Arc::new(Pattern {
        text: text.to_owned(),
        regex,
    });
    patterns.insert(text.to_owned(), Arc::downgrade(&pattern));
    Some(pattern)
}

/// Declares `matches` as a function and as a method.
pub(super) fn declare(env: &mut Env) -> Result<(), DeclarationError> {
    env.add_member_overload(
        "matches",
        "string_matches_string",
        STRING_TYPE,
        vec![STRING_TYPE],
        matches,
    )?;
    env.add_overload(
        "matches",
        "matches_string_string",
        vec![STRING_TYPE, STRING_TYPE],
        matches,
    )
}

fn matches<'b, 'v>(arguments: Vec<CowVal<'b, 'v>>) -> Result<CowVal<'b, 'v>, ExecutionError> {
    let mut texts = arguments
        .iter()
        .filter_map(|value| value.downcast_ref::<CelString<'_>>())
        .map(CelString::inner);
    let (Some(text), Some(pattern)) = (texts.next(), texts.next()) else {
        return Err(ExecutionError::function_error("matches", "not two strings"));
    };
    let pattern = compile(pattern)
        .ok_or_else(|| ExecutionError::function_error("matches", "not a regular expression"))?;
    Ok(CowVal::owned(CelBool::from(pattern.regex.is_match(text))))
}

fn patterns() -> MutexGuard<'static, HashMap<String, Weak<Pattern>>> {
    PATTERNS.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Drop for Pattern {
    fn drop(&mut self) {
        let mut patterns = patterns();
        // The pattern may have been compiled again since its last user was dropped.
        if patterns
            .get(&self.text)
            .is_some_and(|known| known.strong_count() == 0)
        {
            patterns.remove(&self.text);
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::{compile, patterns, states};

    #[test]
    fn nested_repetitions_multiply() {
        assert!(states("^v[0-9]+\\.[0-9]+$").is_some());
        assert!(states("a{3}").is_some());
        assert!(states("(\\w{50}){50}").is_none());
        assert!(states("((a{100}){100}){100}").is_none());
        assert!(states(&"a".repeat(300)).is_none());
        assert!(
            states("{99999999999999999999}").is_some(),
            "the library would not accept this repetition"
        );
    }

    #[test]
    fn a_pattern_is_compiled_once_and_kept_while_it_is_used() {
        let text = "^kept-while-it-is-used$";
        let first = compile(text).unwrap();
        let second = compile(text).unwrap();
        assert!(Arc::ptr_eq(&first, &second));
        drop(first);
        assert!(patterns().contains_key(text));
        drop(second);
        assert!(!patterns().contains_key(text));
        assert!(compile("(").is_none());
    }

    #[test]
    fn a_pattern_that_compiles_to_too_much_is_refused() {
        assert!(compile("(\\w{100}){100}").is_none());
    }
}
