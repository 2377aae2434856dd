//! The outputs of a job: lines `KEY=value` of its steps, for later steps and other scans. Their number and size are limited,
//! because they are stored in the job's record, in its line of the history, and in contexts.

use std::collections::BTreeMap;

use thiserror::Error;

use crate::limits::{OUTPUTS, OUTPUTS_BYTES, SHOWN_CHARS};
use crate::names::{NameError, check_variable_name};

/// Values by key.
pub type Outputs = BTreeMap<String, String>;

/// Why outputs are refused.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum OutputError {
    #[error("line {line} of the outputs is not `KEY=value`")]
    Line { line: usize },
    #[error("output `{key}`: {problem}")]
    Name { key: String, problem: NameError },
    #[error("output `{key}` has control characters; a value is one line")]
    Control { key: String },
    #[error("output `{key}` is one too many; a job has at most {OUTPUTS}")]
    TooMany { key: String },
    #[error("with output `{key}` the outputs of the job have more than {OUTPUTS_BYTES} bytes")]
    TooLarge { key: String },
}

/// Reads the lines that a step has written. If a key is repeated, its last line counts. Empty lines are ignored.
///
/// # Errors
/// The first problem.
pub fn read_outputs(text: &str) -> Result<Outputs, OutputError> {
    let mut outputs = Outputs::new();
    for (number, line) in (1..).zip(text.split('\n')) {
        let line = line.strip_suffix('\r').unwrap_or(line);
        if line.is_empty() {
            continue;
        }
        let (key, value) = line
            .split_once('=')
            .ok_or(OutputError::Line { line: number })?;
        check(key, value)?;
        outputs.insert(key.to_owned(), value.to_owned());
        // A file may have many more keys than allowed.
        if outputs.len() > OUTPUTS {
            return Err(OutputError::TooMany {
                key: key.to_owned(),
            });
        }
    }
    Ok(outputs)
}

/// The outputs of a job after one more step. Values of a later step win.
///
/// # Errors
/// The key that exceeds a limit.
pub fn with_outputs(mut outputs: Outputs, more: &Outputs) -> Result<Outputs, OutputError> {
    for (key, value) in more {
        outputs.insert(key.clone(), value.clone());
        check_bounds(&outputs, key)?;
    }
    Ok(outputs)
}

/// Checks the outputs of a whole job.
///
/// # Errors
/// The first problem.
pub fn check_outputs(outputs: &Outputs) -> Result<(), OutputError> {
    for (key, value) in outputs {
        check(key, value)?;
    }
    match outputs.last_key_value() {
        Some((key, _)) => check_bounds(outputs, key),
        None => Ok(()),
    }
}

fn check(key: &str, value: &str) -> Result<(), OutputError> {
    check_variable_name("the key of an output", key).map_err(|problem| OutputError::Name {
        key: key.chars().take(SHOWN_CHARS).collect(),
        problem,
    })?;
    if value.contains(|c: char| c.is_control() && c != '\t') {
        return Err(OutputError::Control {
            key: key.to_owned(),
        });
    }
    Ok(())
}

fn check_bounds(outputs: &Outputs, key: &str) -> Result<(), OutputError> {
    let key = || key.to_owned();
    if outputs.len() > OUTPUTS {
        return Err(OutputError::TooMany { key: key() });
    }
    let bytes: usize = outputs
        .iter()
        .map(|(key, value)| key.len() + value.len())
        .sum();
    if bytes > OUTPUTS_BYTES {
        return Err(OutputError::TooLarge { key: key() });
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn outputs(pairs: &[(&str, &str)]) -> Outputs {
        let owned = pairs
            .iter()
            .map(|(key, value)| ((*key).to_owned(), (*value).to_owned()));
        owned.collect()
    }

    #[test]
    fn lines_are_keys_with_values() {
        let text = "a=1\n\nb=x=y\tz\r\na=2\nempty=\n_c9=ü";
        let expected = outputs(&[("a", "2"), ("b", "x=y\tz"), ("empty", ""), ("_c9", "ü")]);
        assert_eq!(read_outputs(text), Ok(expected));
        assert_eq!(read_outputs(""), Ok(Outputs::new()));
    }

    #[test]
    fn an_invalid_output_is_reported_with_its_key() {
        for (text, expected) in [
            ("a=1\nb", "line 2 of the outputs is not `KEY=value`"),
            (
                "a=1\u{1b}[0m",
                "output `a` has control characters; a value is one line",
            ),
            (
                "a=1\r2",
                "output `a` has control characters; a value is one line",
            ),
        ] {
            assert_eq!(read_outputs(text).unwrap_err().to_string(), expected);
        }
        for text in ["=1", "a-b=1", "1a=1", " a=1", "in=1"] {
            let error = read_outputs(text).unwrap_err();
            assert!(matches!(error, OutputError::Name { .. }), "{text}: {error}");
        }
    }

    #[test]
    fn a_job_has_few_and_small_outputs() {
        let many = |count: usize| -> String { (0..count).map(|n| format!("k{n}=v\n")).collect() };
        assert_eq!(read_outputs(&many(32)).unwrap().len(), 32);
        let error = read_outputs(&many(33)).unwrap_err();
        assert_eq!(
            error.to_string(),
            "output `k32` is one too many; a job has at most 32"
        );

        let full = outputs(&[("a", &"x".repeat(8 * 1024 - 1))]);
        assert_eq!(check_outputs(&full), Ok(()));
        let error = with_outputs(full.clone(), &outputs(&[("b", "")])).unwrap_err();
        let expected = "with output `b` the outputs of the job have more than 8192 bytes";
        assert_eq!(error.to_string(), expected);
        // The value of a later step replaces the earlier value, so it needs no further space.
        let small = with_outputs(full, &outputs(&[("a", "y")])).unwrap();
        assert_eq!(small, outputs(&[("a", "y")]));
        let of_other_step = read_outputs(&many(32)).unwrap();
        let error = with_outputs(small, &of_other_step).unwrap_err();
        assert!(matches!(error, OutputError::TooMany { .. }), "{error}");
    }
}
