//! Literal patterns of `matches`: an estimate of their compiled size, made without compiling them, because the library
//! compiles a pattern at each use and bounds only its memory.

use std::sync::Arc;

use cel_interpreter::Context;

use super::compile::ENVIRONMENT;
use crate::limits::{PATTERN_BYTES, PATTERN_STATES};

/// States assumed of a class such as `\w` or `\pL`, which covers much of Unicode.
const CLASS_STATES: u64 = 100;

/// States the pattern compiles to at most, or `None` when it is too long or too large. Every counted repetition is
/// taken to multiply the whole pattern: too much for repetitions side by side, right for nested ones.
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

/// Whether the library accepts the pattern, found by using it once.
pub(super) fn check(pattern: &str) -> Result<(), String> {
    let probe = "''.matches(pattern)";
    let program = ENVIRONMENT
        .compile(probe)
        .map_err(|_| "the pattern cannot be checked".to_owned())?;
    let mut context = Context::with_env(Arc::clone(&ENVIRONMENT));
    context.add_variable_from_value("pattern", pattern.to_owned());
    program
        .execute(&context)
        .map(drop)
        .map_err(|_| "this is no regular expression".to_owned())
}

#[cfg(test)]
mod tests {
    use super::states;

    #[test]
    fn nested_repetitions_multiply() {
        assert!(states("^v[0-9]+\\.[0-9]+$").is_some());
        assert!(states("a{3}").is_some());
        assert!(states("(\\w{50}){50}").is_none());
        assert!(states("((a{100}){100}){100}").is_none());
        assert!(states(&"a".repeat(300)).is_none());
        assert!(
            states("{99999999999999999999}").is_some(),
            "no repetition the library would take"
        );
    }
}
