//! Selects records of a log, and finds where the last selected records begin.

use bytes::Bytes;
use model::Timestamp;
use store::volume::ReadAt;
use store::{Fault, Key};

use super::stream::decode;
use super::{NewLogRecord, Stream};
use crate::blocking::Awaited;
use crate::error::ReadError;
use crate::limits::READ_BYTES;

/// Selects records of a log. A field that is `None` does not restrict.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct LogFilter {
    /// Records of this step, from 0.
    pub step: Option<u32>,
    pub stream: Option<Stream>,
    /// Records written at this time or later.
    pub since: Option<Timestamp>,
}

impl LogFilter {
    pub(super) fn takes_all(&self) -> bool {
        *self == Self::default()
    }

    pub(super) fn takes(&self, record: &NewLogRecord) -> bool {
        self.step.is_none_or(|step| record.step == Some(step))
            && self.stream.is_none_or(|stream| record.stream == stream)
            && self.since.is_none_or(|since| record.at >= since)
    }

    /// The lines that match the filter.
    pub(super) fn sift(&self, lines: Bytes) -> Bytes {
        if self.takes_all() {
            return lines;
        }
        let mut taken = Vec::new();
        for line in lines.split_inclusive(|byte| *byte == b'\n') {
            if decode(line).is_some_and(|found| self.takes(&found.record)) {
                taken.extend_from_slice(line);
            }
        }
        taken.into()
    }
}

/// The number of the first of the last `count` records that match the filter; 0 if there are fewer.
///
/// Reads backwards and decodes each line until they are found: a filter with few matches reads the whole log.
pub(super) fn begin_of_last(
    file: &dyn ReadAt,
    key: &Key,
    filter: &LogFilter,
    count: u64,
    awaited: &Awaited,
) -> Result<u64, ReadError> {
    let failed = |fault| ReadError::file(key, fault);
    let mut end = file.size().map_err(failed)?;
    let mut missing = count;
    while end > 0 {
        awaited.check()?;
        let (begin, lines) = lines_before(file, end).map_err(failed)?;
        for line in lines.split_inclusive(|byte| *byte == b'\n').rev() {
            let Some(found) = decode(line).filter(|found| filter.takes(&found.record)) else {
                continue;
            };
            missing = missing.saturating_sub(1);
            if missing == 0 {
                return Ok(found.n);
            }
        }
        end = begin;
    }
    Ok(0)
}

/// The lines right before an offset, and where they begin. At least one line, if the offset is not 0.
fn lines_before(file: &dyn ReadAt, end: u64) -> Result<(u64, Vec<u8>), Fault> {
    let mut wanted = READ_BYTES as u64;
    loop {
        let begin = end.saturating_sub(wanted);
        let length = usize::try_from(end - begin).unwrap_or(usize::MAX);
        let mut piece = file.read_at(begin, length)?;
        if begin == 0 {
            return Ok((0, piece));
        }
        // The piece usually begins within a line, so its first line is dropped.
        let first = piece.iter().position(|byte| *byte == b'\n');
        if let Some(first) = first.filter(|first| first + 1 < piece.len()) {
            piece.drain(..=first);
            return Ok((begin + first as u64 + 1, piece));
        }
        wanted *= 2;
    }
}

#[cfg(test)]
mod tests {
    use super::super::records::line;
    use super::*;

    fn record(n: u64, bytes: usize) -> NewLogRecord {
        let step = (n >= 10).then(|| u32::try_from(n / 1_000).unwrap());
        NewLogRecord {
            at: Timestamp::from_timestamp(1_795_176_000 + i64::try_from(n).unwrap(), 0).unwrap(),
            step,
            stream: match n {
                0..10 => Stream::Runner,
                _ if n.is_multiple_of(7) => Stream::Stderr,
                _ => Stream::Stdout,
            },
            text: "x".repeat(bytes),
        }
    }

    #[test]
    fn the_last_matching_records_are_found_from_the_end() {
        let mut lines: Vec<Vec<u8>> = (0..3_000)
            .map(|n| line(n, &record(n, if n == 1_500 { 2 * READ_BYTES } else { 200 })).unwrap())
            .collect();
        let key = Key::new("log").unwrap();
        let find = |lines: &[Vec<u8>], filter: LogFilter, count| {
            let file = Bytes::from(lines.concat());
            assert!(file.len() > 4 * READ_BYTES);
            begin_of_last(&file, &key, &filter, count, &Awaited::always()).unwrap()
        };
        let all = LogFilter::default();
        for (count, begin) in [
            (1, 2_999),
            (700, 2_300),
            (2_999, 1),
            (3_000, 0),
            (u64::MAX, 0),
        ] {
            assert_eq!(find(&lines, all, count), begin, "{count}");
        }
        let step = |step| LogFilter {
            step: Some(step),
            ..all
        };
        assert_eq!(find(&lines, step(2), 3), 2_997);
        assert_eq!(find(&lines, step(0), 1), 999);
        assert_eq!(find(&lines, step(0), 990), 10);
        assert_eq!(find(&lines, step(0), 991), 0, "there are fewer");
        assert_eq!(find(&lines, step(9), 1), 0, "no record matches");
        let stderr = LogFilter {
            stream: Some(Stream::Stderr),
            ..step(1)
        };
        assert_eq!(find(&lines, stderr, 2), 1_988);
        let since = LogFilter {
            since: Some(record(2_990, 0).at),
            ..all
        };
        assert_eq!(find(&lines, since, 10), 2_990);
        assert_eq!(find(&lines, since, 11), 0);
        // A damaged line and half a line at the end are skipped.
        lines[2_998][0] = b'[';
        lines.push(lines[0][..30].to_vec());
        assert_eq!(find(&lines, all, 2), 2_997);
        let nothing = Bytes::new();
        let found = begin_of_last(&nothing, &key, &all, 1, &Awaited::always());
        assert_eq!(found.unwrap(), 0);
    }
}
