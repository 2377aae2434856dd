//! Prints the lines of a log.

use wire::{LogRecord, LogText, OVERWRITTEN};

use crate::error::Error;
use crate::session::Session;

/// Prints records in the form that the user asked for.
#[derive(Debug, Default)]
pub(crate) struct LogLines {
    /// Makes the form with times; none for plain lines.
    timed: Option<LogText>,
    grep: Option<Grep>,
    read: u64,
    matched: u64,
}

impl LogLines {
    pub(crate) fn new(has_times: bool) -> Self {
        Self {
            timed: has_times.then(LogText::default),
            ..Self::default()
        }
    }

    /// Prints only matching lines.
    pub(crate) fn print_only(&mut self, grep: Grep) {
        self.grep = Some(grep);
    }

    /// True if no line was printed.
    pub(crate) fn is_empty(&self) -> bool {
        self.matched == 0
    }

    /// The next record belongs to another job.
    pub(crate) fn begin_another(&mut self) {
        if let Some(timed) = &mut self.timed {
            *timed = LogText::default();
        }
    }

    pub(crate) fn print(
        &mut self,
        session: &mut Session<'_>,
        record: &LogRecord,
    ) -> Result<(), Error> {
        self.read += 1;
        if self
            .grep
            .as_ref()
            .is_some_and(|grep| !grep.takes(&record.record.text))
        {
            return Ok(());
        }
        self.matched += 1;
        if let Some(line) = session.format.item(record)? {
            return session.terminal.line(&line);
        }
        let Some(timed) = &mut self.timed else {
            let text = &record.record.text;
            return match text.strip_suffix(OVERWRITTEN) {
                Some(text) if session.terminal.is_data_watched() => {
                    session.terminal.line(&format!("[overwritten] {text}"))
                }
                Some(_) | None => session.terminal.line(text),
            };
        };
        let mut text = String::new();
        timed.write(&record.record, &mut text);
        for line in text.split_terminator('\n') {
            session.terminal.line(line)?;
        }
        Ok(())
    }

    /// Reports how many of the lines matched.
    pub(crate) fn report_matched(&self, session: &mut Session<'_>) {
        report_matched(session, self.matched, self.read);
    }
}

pub(crate) fn report_matched(session: &mut Session<'_>, matched: u64, lines: u64) {
    session.report(&format!("matching lines: {matched} of {lines}"));
}

/// Finds a text in lines, like the daemon's search.
#[derive(Debug)]
pub(crate) struct Grep {
    text: String,
    ignores_case: bool,
}

impl Grep {
    pub(crate) fn new(text: &str) -> Self {
        Self {
            text: text.to_owned(),
            ignores_case: !text.chars().any(char::is_uppercase),
        }
    }

    fn takes(&self, line: &str) -> bool {
        if self.ignores_case {
            line.to_ascii_lowercase().contains(&self.text)
        } else {
            line.contains(&self.text)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_search_with_an_upper_case_letter_is_case_sensitive() {
        let takes = |text, line| Grep::new(text).takes(line);
        assert!(takes("error", "an Error") && takes("error", "an error"));
        assert!(takes("Error", "an Error") && !takes("Error", "an error"));
        assert!(takes("é!", "CAFé!") && !takes("é", "É"));
    }
}
