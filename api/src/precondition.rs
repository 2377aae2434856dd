//! Conditional edits: the ETags of the values that people edit, and the conditions of their requests (RFC 9110, section 13).

use std::collections::BTreeSet;

use http::HeaderMap;
use http::header::{HeaderName, IF_MATCH, IF_NONE_MATCH};
use model::decide::Precondition;

use crate::failure::Failure;

/// The ETag of a version. A version is never reused, so it names one value. The body also lists the scans that use the value; the
/// tag does not cover them, because nobody edits the list.
pub(crate) fn etag(version: u64) -> String {
    format!("\"{version}\"")
}

/// What the request expects of the value that it edits.
///
/// # Errors
/// If a condition cannot be read, or has no meaning for an edit. Ignoring it could make an unwanted edit.
pub(crate) fn precondition(headers: &HeaderMap) -> Result<Precondition, Failure> {
    match (tags(headers, IF_MATCH)?, tags(headers, IF_NONE_MATCH)?) {
        (None, None) => Ok(Precondition::Anything),
        (Some(Tags::Any), None) => Ok(Precondition::Present),
        (Some(Tags::OneOf(versions)), None) => Ok(Precondition::OneOf(versions)),
        (None, Some(Tags::Any)) => Ok(Precondition::Absent),
        (None, Some(Tags::OneOf(_))) => Err(Failure::invalid(
            "If-None-Match",
            "must be `*` here; `If-Match` takes versions",
        )),
        (Some(_), Some(_)) => Err(Failure::invalid(
            "If-None-Match",
            "cannot be combined with `If-Match`",
        )),
    }
}

enum Tags {
    /// `*`
    Any,
    /// The versions of the strong tags. Other tags belong to no version, so they match nothing.
    OneOf(BTreeSet<u64>),
}

fn tags(headers: &HeaderMap, name: HeaderName) -> Result<Option<Tags>, Failure> {
    let mut lines = headers.get_all(&name).iter().peekable();
    if lines.peek().is_none() {
        return Ok(None);
    }
    let unreadable = || Failure::invalid(name.as_str(), "must be `*`, or versions such as `\"3\"`");
    let mut versions = BTreeSet::new();
    let mut is_any = false;
    let mut count = 0;
    for line in lines {
        let line = line.to_str().map_err(|_| unreadable())?;
        for tag in line.split(',').map(str::trim) {
            count += 1;
            is_any |= tag == "*";
            let strong = tag.strip_prefix("W/").unwrap_or(tag);
            let quoted = strong
                .strip_prefix('"')
                .and_then(|rest| rest.strip_suffix('"'));
            if quoted.is_none() && tag != "*" {
                return Err(unreadable());
            }
            versions.extend(
                quoted
                    .and_then(|text| text.parse().ok())
                    .filter(|it| etag(*it) == tag),
            );
        }
    }
    match (is_any, count) {
        (true, 1) => Ok(Some(Tags::Any)),
        (true, _) => Err(unreadable()),
        (false, _) => Ok(Some(Tags::OneOf(versions))),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(pairs: &[(HeaderName, &str)]) -> Result<Precondition, Failure> {
        let mut headers = HeaderMap::new();
        for (name, value) in pairs {
            headers.append(name.clone(), value.parse().unwrap());
        }
        precondition(&headers)
    }

    #[test]
    fn conditions_are_compared_strongly() {
        let one_of = |versions: &[u64]| Precondition::OneOf(versions.iter().copied().collect());
        for (value, expected) in [
            ("*", Precondition::Present),
            ("\"3\"", one_of(&[3])),
            ("\"3\" , \"5\"", one_of(&[3, 5])),
            ("W/\"3\"", one_of(&[])),
            ("\"03\", \"abc\"", one_of(&[])),
        ] {
            assert_eq!(read(&[(IF_MATCH, value)]).unwrap(), expected, "{value}");
        }
        let two_lines = [(IF_MATCH, "\"3\""), (IF_MATCH, "\"5\"")];
        assert_eq!(read(&two_lines).unwrap(), one_of(&[3, 5]));
        assert_eq!(read(&[(IF_NONE_MATCH, "*")]).unwrap(), Precondition::Absent);
        assert_eq!(read(&[]).unwrap(), Precondition::Anything);
    }

    #[test]
    fn a_condition_without_meaning_is_refused() {
        for pairs in [
            &[(IF_MATCH, "3")][..],
            &[(IF_MATCH, "")],
            &[(IF_MATCH, "*, \"3\"")],
            &[(IF_NONE_MATCH, "\"3\"")],
            &[(IF_MATCH, "\"3\""), (IF_NONE_MATCH, "*")],
        ] {
            assert!(read(pairs).is_err(), "{pairs:?}");
        }
    }
}
