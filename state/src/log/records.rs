//! Log records arrive as JSON and are stored as JSON. Every line of every step passes through this code. So a record in
//! *canonical form*, exactly as it would be stored, is neither decoded nor encoded again.

use bytes::Bytes;
use memchr::memchr2;

use super::{LogError, NewLogRecord};
use crate::limits::LOG_TEXT_BYTES;

/// Bytes that a line adds to its record: the number and the line end.
const LINE_FRAME_BYTES: usize = 28;

/// A log record without its number, in its stored form.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct EncodedRecord(Bytes);

impl EncodedRecord {
    /// Encodes records; the first will get the number `from`.
    pub fn all(from: u64, records: &[NewLogRecord]) -> Result<Vec<Self>, LogError> {
        let encode = |(at, record): (u64, &NewLogRecord)| {
            if record.text.len() > LOG_TEXT_BYTES {
                let n = from.saturating_add(at);
                return Err(LogError::TooLong { n });
            }
            let json = serde_json::to_vec(record).map_err(LogError::Unwritable)?;
            Ok(Self(json.into()))
        };
        (0..).zip(records).map(encode).collect()
    }

    /// The records of a JSON array, if all are in canonical form without white space in between.
    pub fn all_canonical(array: &Bytes) -> Option<Vec<Self>> {
        // Valid JSON escapes control characters.
        if array
            .iter()
            .fold(false, |found, byte| found | (*byte < b' '))
        {
            return None;
        }
        let mut rest = str::from_utf8(array).ok()?.strip_prefix('[')?;
        let mut records = Vec::new();
        if rest == "]" {
            return Some(records);
        }
        // The beginning of the last record, up to its text. The next record usually begins in the same way.
        let mut head = "";
        loop {
            let length = match rest.strip_prefix(head).filter(|_| !head.is_empty()) {
                Some(text) => head.len() + canonical_text(text)? + "}".len(),
                None => {
                    let first = first_record(rest)?;
                    head = &rest[..first.head];
                    first.length
                }
            };
            let (record, after) = rest.split_at_checked(length)?;
            if !record.ends_with('}') {
                return None;
            }
            records.push(Self(array.slice_ref(record.as_bytes())));
            match after {
                "]" => return Some(records),
                _ => rest = after.strip_prefix(',')?,
            }
        }
    }

    /// Appends the stored line of the record, with its line end.
    pub(super) fn write(&self, n: u64, lines: &mut Vec<u8>) -> Result<(), LogError> {
        lines.extend_from_slice(br#"{"n":"#);
        serde_json::to_writer(&mut *lines, &n).map_err(LogError::Unwritable)?;
        lines.push(b',');
        lines.extend_from_slice(self.0.strip_prefix(b"{").unwrap_or(&self.0));
        lines.push(b'\n');
        Ok(())
    }

    /// Upper bound for the bytes of its line.
    pub(super) fn line_bytes(&self) -> usize {
        self.0.len() + LINE_FRAME_BYTES
    }

    pub(super) fn decode_all(records: &[Self]) -> Result<Vec<NewLogRecord>, LogError> {
        let decode =
            |record: &Self| serde_json::from_slice(&record.0).map_err(LogError::Unwritable);
        records.iter().map(decode).collect()
    }
}

/// The stored line of a record, with its line end.
pub(super) fn line(n: u64, record: &NewLogRecord) -> Result<Vec<u8>, LogError> {
    let mut line = Vec::new();
    let json = serde_json::to_vec(record).map_err(LogError::Unwritable)?;
    EncodedRecord(json.into()).write(n, &mut line)?;
    Ok(line)
}

/// Byte lengths of a record in canonical form.
struct First {
    head: usize,
    length: usize,
}

/// The first record of a text, if encoding it again gives the same text.
fn first_record(text: &str) -> Option<First> {
    let mut records = serde_json::Deserializer::from_str(text).into_iter::<NewLogRecord>();
    let mut record = records.next()?.ok()?;
    let length = records.byte_offset();
    if serde_json::to_string(&record).ok()? != text.get(..length)? {
        return None;
    }
    record.text.clear();
    let head = serde_json::to_string(&record).ok()?.len() - r#"""}"#.len();
    canonical_text(&text[head..])?;
    Some(First { head, length })
}

/// The length of the JSON string at the beginning of a text, if it is in canonical form and short enough. The text has
/// no control characters.
fn canonical_text(text: &str) -> Option<usize> {
    let bytes = text.as_bytes();
    let mut at = 1;
    if bytes.first() != Some(&b'"') {
        return None;
    }
    loop {
        at += memchr2(b'"', b'\\', bytes.get(at..)?)?;
        match &bytes[at..] {
            // Escapes only lengthen a text, so the decoded text is short enough too.
            [b'"', ..] => return (at < LOG_TEXT_BYTES).then_some(at + 1),
            [b'\\', b'"' | b'\\' | b'b' | b'f' | b'n' | b'r' | b't', ..] => at += 2,
            // Control characters without a letter of their own.
            [b'\\', b'u', b'0', b'0', high, low, ..] if is_control(*high, *low) => at += 6,
            _ => return None,
        }
    }
}

/// Whether two hexadecimal digits encode a control character that has no letter.
fn is_control(high: u8, low: u8) -> bool {
    match (high, low) {
        (b'0', b'8' | b'9' | b'a' | b'c' | b'd') => false,
        (b'0' | b'1', b'0'..=b'9' | b'a'..=b'f') => true,
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use model::Timestamp;

    use super::super::{LogRecord, Stream};
    use super::*;

    fn record(micros: i64, step: Option<u32>, text: &str) -> NewLogRecord {
        NewLogRecord {
            at: Timestamp::from_timestamp_micros(1_795_176_000_000_000 + micros).unwrap(),
            step,
            stream: if step.is_some() {
                Stream::Stdout
            } else {
                Stream::Runner
            },
            text: text.to_owned(),
        }
    }

    fn array(records: &[NewLogRecord]) -> Bytes {
        serde_json::to_vec(records).unwrap().into()
    }

    #[test]
    fn canonical_records_are_stored_as_they_came() {
        let records = [
            record(
                1,
                None,
                "a \"quoted\" \u{1} \u{1f} \u{8}\u{c}\t\r\n é \\ \u{7f}/",
            ),
            record(1, None, ""),
            record(1, Some(0), "}]"),
            record(1, Some(0), "\\"),
            record(1_000, Some(10), "next"),
        ];
        let encoded = EncodedRecord::all_canonical(&array(&records)).unwrap();
        assert_eq!(encoded, EncodedRecord::all(0, &records).unwrap());
        assert_eq!(EncodedRecord::decode_all(&encoded).unwrap(), records);
        for (n, (record, encoded)) in (7..).zip(records.into_iter().zip(encoded)) {
            let mut line = Vec::new();
            encoded.write(n, &mut line).unwrap();
            let stored = serde_json::to_vec(&LogRecord { n, record }).unwrap();
            assert_eq!(line.strip_suffix(b"\n").unwrap(), stored);
        }
        assert_eq!(EncodedRecord::all_canonical(&"[]".into()), Some(Vec::new()));
    }

    #[test]
    fn records_that_are_not_canonical_are_not_stored_unchanged() {
        let line = r#"{"at":"2026-11-20T10:00:00.123Z","step":1,"stream":"stdout","text":"a"}"#;
        let canonical = |array: String| EncodedRecord::all_canonical(&array.into()).is_some();
        assert!(canonical(format!("[{line}]")));
        assert!(canonical(format!("[{line},{line}]")));
        for (before, after) in [
            ("{", "{ "),
            (".123Z", ".123000Z"),
            (".123Z", ".123+00:00"),
            ("-20T", "-31T"),
            (":1,", ":01,"),
            ("\"a\"", r#""\u0061""#),
            ("\"a\"", r#""\/""#),
            ("\"a\"", r#""\u000a""#),
            ("\"a\"", r#""\u001F""#),
            ("\"a\"", "\"\u{1}\""),
            ("\"a\"", "\"a"),
            ("\"a\"", r#""a","more":1"#),
            ("\"a\"", r#""a","text":"b""#),
            ("stdout", "nowhere"),
        ] {
            let other = line.replace(before, after);
            assert!(!canonical(format!("[{other}]")), "{other}");
            assert!(!canonical(format!("[{line},{other}]")), "{other}");
            assert!(!canonical(format!("[{other},{line}]")), "{other}");
        }
        for broken in [
            String::new(),
            "[".to_owned(),
            line.to_owned(),
            format!("[{line}"),
            format!("[{line},]"),
            format!("[{line} ,{line}]"),
            format!("[{line}]]"),
            format!("[{line}{line}]"),
        ] {
            assert!(!canonical(broken.clone()), "{broken}");
        }
        let invalid = [b"[", line.replace("\"a\"", "\"\"").as_bytes(), b"]"].concat();
        let at = invalid.len() - 3;
        let invalid = [&invalid[..at], b"\xff", &invalid[at..]].concat();
        assert_eq!(EncodedRecord::all_canonical(&invalid.into()), None);
    }

    #[test]
    fn the_error_for_a_text_that_is_too_long_names_its_record() {
        let long = [
            record(0, None, "short"),
            record(0, None, &"x".repeat(LOG_TEXT_BYTES + 1)),
        ];
        assert_eq!(EncodedRecord::all_canonical(&array(&long)), None);
        assert!(matches!(
            EncodedRecord::all(3, &long),
            Err(LogError::TooLong { n: 4 })
        ));
        let fits = [record(0, None, &"x".repeat(LOG_TEXT_BYTES))];
        assert!(EncodedRecord::all(0, &fits).is_ok());
        let two = [fits[0].clone(), fits[0].clone()];
        assert!(EncodedRecord::all(u64::MAX, &two).is_ok());
    }

    #[test]
    fn encoded_arrays_are_canonical_and_truncated_arrays_are_not() {
        let characters = (0..0x3000)
            .chain(0x1f600..0x1f610)
            .filter_map(char::from_u32);
        let records: Vec<_> = characters
            .map(|character| record(0, Some(1), &format!("a{character}{character}")))
            .collect();
        let encoded = EncodedRecord::all(0, &records).unwrap();
        assert_eq!(
            EncodedRecord::all_canonical(&array(&records)),
            Some(encoded)
        );
        let few = array(&records[..40]);
        for cut in 0..few.len() {
            assert_eq!(EncodedRecord::all_canonical(&few.slice(..cut)), None);
        }
    }
}
