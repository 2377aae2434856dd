//! The text form of a log with times.

use chrono::SecondsFormat;

use crate::{NewLogRecord, OVERWRITTEN, Stream};

/// Writes records as text for people: each line with its time, and with a mark unless it is standard output, and if it was
/// overwritten. A heading stands before the first line of each step.
#[derive(Debug, Clone, Default)]
pub struct LogText {
    /// The step of the last heading.
    step: Option<u32>,
}

impl LogText {
    /// Appends the lines of the next record, each with its line end.
    pub fn write(&mut self, record: &NewLogRecord, text: &mut String) {
        if let Some(step) = record.step
            && self.step.replace(step) != Some(step)
        {
            // People count from 1.
            text.push_str(&format!("--- step {} ---\n", u64::from(step) + 1));
        }
        let at = record.at.to_rfc3339_opts(SecondsFormat::Millis, true);
        let mark = match record.stream {
            Stream::Stdout => "",
            Stream::Stderr => "[stderr] ",
            Stream::Runner => "[runner] ",
        };
        let (line, is_overwritten) = match record.text.strip_suffix(OVERWRITTEN) {
            Some(line) => (line, true),
            None => (&*record.text, false),
        };
        // A text with line ends must not look like several records.
        for line in line.split('\n') {
            text.push_str(&at);
            text.push(' ');
            text.push_str(mark);
            text.push_str(if is_overwritten { "[overwritten] " } else { "" });
            text.push_str(line);
            text.push('\n');
        }
    }
}

#[cfg(test)]
mod tests {
    use chrono::DateTime;

    use super::*;

    #[test]
    fn lines_have_times_marks_and_headings() {
        let mut written = LogText::default();
        let mut text = String::new();
        for (second, step, stream, line) in [
            (0, None, Stream::Runner, "begins"),
            (1, Some(0), Stream::Stdout, "one"),
            (2, Some(0), Stream::Stderr, "two\nlines"),
            (3, None, Stream::Runner, "a word"),
            (4, Some(0), Stream::Stdout, ""),
            (4, Some(0), Stream::Stderr, "10%\r"),
            (5, Some(2), Stream::Runner, "failed"),
        ] {
            let record = NewLogRecord {
                at: DateTime::from_timestamp_micros(1_790_000_000_123_456 + second * 1_000_000)
                    .unwrap(),
                step,
                stream,
                text: line.to_owned(),
            };
            written.write(&record, &mut text);
        }
        assert_eq!(
            text,
            "2026-09-21T14:13:20.123Z [runner] begins\n\
             --- step 1 ---\n\
             2026-09-21T14:13:21.123Z one\n\
             2026-09-21T14:13:22.123Z [stderr] two\n\
             2026-09-21T14:13:22.123Z [stderr] lines\n\
             2026-09-21T14:13:23.123Z [runner] a word\n\
             2026-09-21T14:13:24.123Z \n\
             2026-09-21T14:13:24.123Z [stderr] [overwritten] 10%\n\
             --- step 3 ---\n\
             2026-09-21T14:13:25.123Z [runner] failed\n"
        );
    }
}
