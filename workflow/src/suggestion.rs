//! "Did you mean": finds the known name that is most similar to an unknown one.

use std::borrow::Borrow;
use std::collections::BTreeMap;
use std::ops::Bound;

use crate::limits::{SUGGESTED_NAMES, VARIABLE_NAME_BYTES};

/// The question "did you mean" with the most similar known name, if it is similar enough.
pub(crate) fn did_you_mean<'a>(
    given: &str,
    known: impl IntoIterator<Item = &'a str>,
) -> Option<String> {
    closest(given, known).map(|name| format!("did you mean `{name}`?"))
}

/// The known name that is most similar to `given`.
pub(crate) fn closest<'a>(
    given: &str,
    known: impl IntoIterator<Item = &'a str>,
) -> Option<&'a str> {
    const CLOSE_ENOUGH: f64 = 0.75;
    // The comparison is quadratic in the length.
    if given.len() > VARIABLE_NAME_BYTES {
        return None;
    }
    let given = given.to_lowercase();
    known
        .into_iter()
        .filter(|name| is_comparable(&given, name))
        .map(|name| (strsim::jaro_winkler(&given, &name.to_lowercase()), name))
        .filter(|(similarity, _)| *similarity >= CLOSE_ENOUGH)
        .max_by(|(one, _), (other, _)| one.total_cmp(other))
        .map(|(_, name)| name)
}

/// Whether two names can be compared. A name of one or two letters is similar to too many names.
fn is_comparable(given: &str, known: &str) -> bool {
    const VERY_SHORT: usize = 2;
    let (given, known) = (given.chars().count(), known.chars().count());
    (given > VERY_SHORT || known <= 2 * given) && (known > 1 || given <= VERY_SHORT)
}

/// The alphabetical neighbours of `given`. If there are very many names, only these are compared.
pub(crate) fn neighbours<'a, K: Borrow<str> + Ord, V>(
    given: &str,
    known: &'a BTreeMap<K, V>,
) -> impl Iterator<Item = &'a str> {
    let before = known.range::<str, _>((Bound::Unbounded, Bound::Excluded(given)));
    let behind = known.range::<str, _>((Bound::Included(given), Bound::Unbounded));
    before
        .rev()
        .take(SUGGESTED_NAMES)
        .chain(behind.take(SUGGESTED_NAMES))
        .map(|(name, _)| name.borrow())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_typing_error_finds_its_name() {
        assert_eq!(
            closest("artefacts", ["artifacts", "steps", "on"]),
            Some("artifacts")
        );
        assert_eq!(
            closest("Steps", ["artifacts", "steps", "on"]),
            Some("steps")
        );
        assert_eq!(closest("zzz", ["artifacts", "steps", "on"]), None);
    }

    #[test]
    fn a_single_letter_suggests_no_longer_name() {
        assert_eq!(closest("a", ["always"]), None);
        assert_eq!(closest("sc", ["scans"]), None);
        assert_eq!(closest("alpha", ["a"]), None);
        assert_eq!(closest("prob", ["probe"]), Some("probe"));
        assert_eq!(closest("o", ["ok"]), Some("ok"));
        assert_eq!(closest("ä", ["äöü"]), None);
        assert_eq!(closest("äö", ["äöüß"]), Some("äöüß"));
    }

    #[test]
    fn a_name_may_be_given_in_full_or_shortened() {
        let known = ["description", "env", "steps", "timeout"];
        assert_eq!(closest("timeout-minutes", known), Some("timeout"));
        assert_eq!(closest("environment", known), Some("env"));
        assert_eq!(closest("desc", known), Some("description"));
    }

    #[test]
    fn only_the_nearest_of_many_names_are_compared() {
        let known: BTreeMap<String, ()> =
            (0..10_000).map(|n| (format!("scan_{n:05}"), ())).collect();
        let near: Vec<&str> = neighbours("scan_05000x", &known).collect();
        assert_eq!(near.len(), 2 * SUGGESTED_NAMES);
        assert!(near.contains(&"scan_05000") && near.contains(&"scan_05001"));
    }
}
