//! A log record as a line. Written here and not derived, since every line of every step passes through: no copy of the
//! text, and no look at a map of members.

use model::Timestamp;
use serde::Serialize;

use super::{NewLogRecord, Stream};

/// A record that belongs to somebody else. The same text as that of `LogRecord`.
#[derive(Serialize)]
struct Line<'a> {
    n: u64,
    at: Timestamp,
    #[serde(skip_serializing_if = "Option::is_none")]
    step: Option<u32>,
    stream: Stream,
    text: &'a str,
}

/// Adds a line with its line end.
pub(super) fn encode(
    lines: &mut Vec<u8>,
    n: u64,
    record: &NewLogRecord,
) -> Result<(), serde_json::Error> {
    let line = Line {
        n,
        at: record.at,
        step: record.step,
        stream: record.stream,
        text: &record.text,
    };
    serde_json::to_writer(&mut *lines, &line)?;
    lines.push(b'\n');
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::super::LogRecord;
    use super::*;

    #[test]
    fn a_line_reads_back_as_its_record() {
        let at = Timestamp::from_timestamp_nanos(1_795_176_000_123_456_789);
        for (step, stream) in [(None, Stream::Runner), (Some(3), Stream::Stderr)] {
            let record = NewLogRecord {
                at,
                step,
                stream,
                text: "a \"quoted\" \u{1} é \\".to_owned(),
            };
            let mut lines = b"before\n".to_vec();
            encode(&mut lines, 7, &record).unwrap();
            let line = lines.strip_prefix(b"before\n").unwrap();
            let whole = LogRecord { n: 7, record };
            assert_eq!(
                line.strip_suffix(b"\n").unwrap(),
                serde_json::to_vec(&whole).unwrap()
            );
            assert_eq!(serde_json::from_slice::<LogRecord>(line).unwrap(), whole);
        }
    }
}
