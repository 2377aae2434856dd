//! Logging to standard error or to a file.

use std::fs::File;
use std::io::IsTerminal;
use std::sync::Mutex;

use clap::ValueEnum;
use thiserror::Error;
use tracing_subscriber::EnvFilter;

const VARIABLE: &str = "SERVICE_LOG";

const DEFAULT: &str = "info";

const LEVELS: [&str; 6] = ["off", "error", "warn", "info", "debug", "trace"];

#[derive(Debug, Error)]
#[error(
    "SERVICE_LOG is `{text}`, and `{part}` in it is neither a level nor TARGET=LEVEL\n\
     hint: levels are {}; `info,api=debug` says more of one part",
    LEVELS.join(", ")
)]
pub(crate) struct LogFilterError {
    text: String,
    part: String,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum LogForm {
    // For people.
    Text,
    // One object on each line, for programs.
    Json,
}

pub(crate) fn to_stderr(form: LogForm) -> Result<(), LogFilterError> {
    let logging = tracing_subscriber::fmt()
        .with_env_filter(filter()?)
        .with_writer(std::io::stderr);
    // An error means that logging was already set up.
    drop(match form {
        LogForm::Text => logging
            .with_ansi(std::io::stderr().is_terminal())
            .try_init(),
        LogForm::Json => logging.json().flatten_event(true).try_init(),
    });
    Ok(())
}

pub(crate) fn to_file(file: File) -> Result<(), LogFilterError> {
    let logging = tracing_subscriber::fmt()
        .with_env_filter(filter()?)
        .with_ansi(false)
        .with_writer(Mutex::new(file));
    drop(logging.try_init());
    Ok(())
}

fn filter() -> Result<EnvFilter, LogFilterError> {
    parse(
        &std::env::var_os(VARIABLE)
            .unwrap_or_default()
            .to_string_lossy(),
    )
}

/// Reads a filter. A single word must be a level: `tracing` would also accept it as a target, and a mistyped level would then
/// disable all other logs.
fn parse(text: &str) -> Result<EnvFilter, LogFilterError> {
    if text.trim().is_empty() {
        return Ok(EnvFilter::new(DEFAULT));
    }
    let is_level = |word: &str| LEVELS.iter().any(|level| word.eq_ignore_ascii_case(level));
    let is_good = |part: &str| {
        let part = part.trim();
        (part.contains('=') || is_level(part)) && EnvFilter::try_new(part).is_ok()
    };
    match text.split(',').find(|part| !is_good(part)) {
        None => Ok(EnvFilter::new(text)),
        Some(part) => Err(LogFilterError {
            text: text.to_owned(),
            part: part.to_owned(),
        }),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_filter_is_a_level_with_exceptions() {
        for text in [
            "",
            " ",
            "debug",
            "INFO",
            "info,api=debug",
            "warn, reconciler::source=trace",
        ] {
            assert!(parse(text).is_ok(), "{text}");
        }
    }

    #[test]
    fn an_invalid_filter_is_named() {
        for (text, part) in [
            ("inof", "`inof`"),
            ("info,api=loud", "`api=loud`"),
            ("info,", "``"),
        ] {
            let error = parse(text).unwrap_err().to_string();
            assert!(
                error.contains(part) && error.contains("SERVICE_LOG"),
                "{error}"
            );
        }
    }
}
