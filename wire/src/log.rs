//! Log records, and the text form of a log with times.

use chrono::{DateTime, SecondsFormat, Utc};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// One line of a job's log, numbered from 0 within the job.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct LogRecord {
    pub n: u64,
    #[serde(flatten)]
    pub record: NewLogRecord,
}

/// A log line before it has a number.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct NewLogRecord {
    /// When the runner read it.
    pub at: DateTime<Utc>,
    /// The step, from 0; absent for lines about the whole job.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub step: Option<u32>,
    pub stream: Stream,
    /// The text without its line end. A text that ends with a carriage return was overwritten by later output, for example by a
    /// progress bar. The runner keeps one such text per second, and the last one.
    pub text: String,
}

/// The last character of a text that was overwritten.
pub const OVERWRITTEN: char = '\r';

/// The start of a record's JSON, up to its text. It is the same for all lines that were read together.
#[derive(Debug, Clone)]
pub struct RecordHead(Vec<u8>);

impl RecordHead {
    pub fn new(at: DateTime<Utc>, step: Option<u32>, stream: Stream) -> Self {
        let record = NewLogRecord {
            at,
            step,
            stream,
            text: String::new(),
        };
        // Writing to memory does not fail.
        let mut json = serde_json::to_vec(&record).unwrap_or_default();
        json.truncate(json.len().saturating_sub(br#"""}"#.len()));
        Self(json)
    }

    /// Appends a whole record, with the same JSON as [`NewLogRecord`].
    pub fn write(&self, text: &str, json: &mut Vec<u8>) {
        json.extend_from_slice(&self.0);
        // Nearly every line is plain, and this check is several times faster than escaping.
        let is_plain = |plain, byte: &u8| plain & (*byte >= b' ') & !matches!(byte, b'"' | b'\\');
        if text.as_bytes().iter().fold(true, is_plain) {
            json.push(b'"');
            json.extend_from_slice(text.as_bytes());
            json.push(b'"');
        } else {
            // Writing to memory does not fail.
            drop(serde_json::to_writer(&mut *json, text));
        }
        json.push(b'}');
    }
}

names! {
    /// The origin of a log line.
    pub enum Stream {
        /// Standard output of a step.
        Stdout = "stdout",
        /// Standard error of a step.
        Stderr = "stderr",
        /// The runner itself.
        Runner = "runner",
    }
}

impl Stream {}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct LogMatches {
    /// All matches in the log, even if the page has fewer.
    pub total: u64,
    /// The matches of this page, oldest first.
    pub matches: Vec<LogRecord>,
    /// The `cursor` of the next page: the number of the record after the last shown one. Absent on the last page.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub next_cursor: Option<String>,
    /// The number of records of the log.
    pub records: u64,
}

/// The answer to appended log records.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct LogReceipt {
    /// Records below this number are stored. It is the number of the next record.
    pub received: u64,
    /// Records below this number are durable. The runner may drop them.
    pub durable: u64,
    /// True if the log has reached its limit. Output of steps is no longer stored and need not be sent.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub full: bool,
}

/// Writes records as text for people: each line with its time, a mark unless it is standard output, and a mark if it
/// was overwritten. A heading precedes each step.
#[derive(Debug, Clone, Default)]
pub struct LogText {
    /// The step of the last heading.
    step: Option<u32>,
}

impl LogText {
    /// Appends the lines of a record.
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
    use super::*;

    #[test]
    fn a_record_written_in_two_parts_is_the_same_json() {
        let at = DateTime::from_timestamp_micros(1_790_000_000_123_456).unwrap();
        for (step, stream) in [(None, Stream::Runner), (Some(3), Stream::Stderr)] {
            for text in ["", "plain", "a \"quoted\" \u{1} \t é \\ \u{7f}"] {
                let mut json = Vec::new();
                RecordHead::new(at, step, stream).write(text, &mut json);
                let text = text.to_owned();
                let whole = NewLogRecord {
                    at,
                    step,
                    stream,
                    text,
                };
                assert_eq!(json, serde_json::to_vec(&whole).unwrap());
            }
        }
    }

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
