//! Searches a log for a text. The whole log is read, so the count is exact. Only lines with a hit are examined, and
//! usually only the returned lines are decoded.
//!
//! A line is JSON, and the search uses the JSON form of the text. A hit may be outside the text of its record, or
//! within an escape, so each hit is confirmed.

use memchr::{memchr, memmem, memrchr};
use store::Key;
use store::volume::ReadAt;

use super::filter::LogFilter;
use super::stream::{decode, last_number, read_lines};
use super::{LogRecord, NewLogRecord};
use crate::blocking::Awaited;
use crate::error::ReadError;
use crate::limits::FOUND_TEXT_BYTES;

/// The beginning of a record's line, up to its number.
const LINE_BEGIN: &[u8] = br#"{"n":"#;

/// The end of a record's line, after its text.
const LINE_END: &[u8] = b"\"}\n";

/// What to search for, and which matches to show.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LogSearch {
    /// Must not be empty.
    pub text: String,
    /// Ignores the case of ASCII letters.
    pub ignores_case: bool,
    /// Records that the filter rejects do not match.
    pub filter: LogFilter,
    /// Matches before this record are counted but not shown.
    pub from: u64,
    /// How many matches are shown at most; at least 1. With long texts fewer are shown.
    pub limit: usize,
}

/// The result of a search.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct LogMatches {
    /// The number of all matches in the log.
    pub total: u64,
    pub matches: Vec<LogRecord>,
    /// The record number at which to continue, if there are more matches.
    pub next: Option<u64>,
    /// How many records the log has.
    pub records: u64,
}

/// Searches a whole log, piece by piece.
pub(super) fn search(
    file: &dyn ReadAt,
    key: &Key,
    wanted: &LogSearch,
    piece: usize,
    awaited: &Awaited,
) -> Result<LogMatches, ReadError> {
    let failed = |fault| ReadError::file(key, fault);
    // The search must end even if the log grows faster than it is searched.
    let end = file.size().map_err(failed)?;
    let mut matches = LogMatches::default();
    let mut search = Search::new(wanted, &mut matches);
    let mut at = 0;
    while at < end {
        awaited.check()?;
        let lines = read_lines(file, at, piece).map_err(failed)?;
        if lines.is_empty() {
            break;
        }
        search.take(&lines);
        at += lines.len() as u64;
    }
    let last = last_number(file).map_err(failed)?;
    matches.records = last.map_or(0, |last| last.saturating_add(1));
    Ok(matches)
}

struct Needle {
    finder: memmem::Finder<'static>,
    ignores_case: bool,
}

impl Needle {
    fn new(text: &[u8], ignores_case: bool) -> Self {
        let folded = if ignores_case {
            text.to_ascii_lowercase()
        } else {
            text.to_vec()
        };
        Self {
            finder: memmem::Finder::new(&folded).into_owned(),
            ignores_case,
        }
    }

    fn is_in(&self, text: &[u8]) -> bool {
        if self.ignores_case {
            self.finder.find(&text.to_ascii_lowercase()).is_some()
        } else {
            self.finder.find(text).is_some()
        }
    }
}

struct Search<'a> {
    wanted: &'a LogSearch,
    /// The text without escapes.
    plain: Needle,
    /// The text in its JSON form. Escapes have no upper-case letters, so lower case does not change them.
    escaped: Needle,
    /// A buffer for lines in lower case, used if the search ignores case.
    folded: Vec<u8>,
    frame: Frame,
    found: &'a mut LogMatches,
    shown_bytes: usize,
}

/// The JSON between the number and the text of a line. Neighbouring lines usually have the same frame, so most lines
/// need not be decoded.
#[derive(Default)]
struct Frame {
    json: Vec<u8>,
    /// Whether the filter matches records with this frame.
    is_taken: bool,
}

impl<'a> Search<'a> {
    fn new(wanted: &'a LogSearch, found: &'a mut LogMatches) -> Self {
        let LogSearch {
            text, ignores_case, ..
        } = wanted;
        Self {
            wanted,
            plain: Needle::new(text.as_bytes(), *ignores_case),
            escaped: Needle::new(&escape(text), *ignores_case),
            folded: Vec::new(),
            frame: Frame::default(),
            found,
            shown_bytes: 0,
        }
    }

    /// Searches whole lines.
    fn take(&mut self, lines: &[u8]) {
        let mut folded = std::mem::take(&mut self.folded);
        let searched = if self.wanted.ignores_case {
            folded.clear();
            folded.extend_from_slice(lines);
            folded.make_ascii_lowercase();
            &folded
        } else {
            lines
        };
        let mut at = 0;
        while let Some(hit) = self.escaped.finder.find(&searched[at..]) {
            let hit = at + hit;
            let begin = memrchr(b'\n', &lines[at..hit]).map_or(at, |end| at + end + 1);
            let end = memchr(b'\n', &lines[hit..]).map_or(lines.len(), |end| hit + end + 1);
            self.look_at(&lines[begin..end], &searched[begin..end]);
            at = end;
        }
        self.folded = folded;
    }

    /// Confirms a hit. `searched` is the line, in lower case if the search ignores case.
    fn look_at(&mut self, line: &[u8], searched: &[u8]) {
        match self.frame.text_of(line) {
            Some(_) if !self.frame.is_taken => {}
            Some((n, text)) if is_plain(&line[text.clone()]) => {
                if self.escaped.finder.find(&searched[text]).is_some() {
                    self.count(n, || decode(line));
                }
            }
            Some(_) | None => {
                let Some(found) = decode(line) else {
                    return;
                };
                self.frame = Frame::of(&found.record, &self.wanted.filter);
                if self.frame.is_taken && self.plain.is_in(found.record.text.as_bytes()) {
                    self.count(found.n, || Some(found));
                }
            }
        }
    }

    fn count(&mut self, n: u64, record: impl FnOnce() -> Option<LogRecord>) {
        let found = &mut *self.found;
        found.total += 1;
        if n < self.wanted.from || found.next.is_some() {
            return;
        }
        let is_full =
            found.matches.len() >= self.wanted.limit || self.shown_bytes >= FOUND_TEXT_BYTES;
        if is_full {
            found.next = found.matches.last().map(|last| last.n.saturating_add(1));
        } else if let Some(record) = record() {
            self.shown_bytes += record.record.text.len();
            found.matches.push(record);
        }
    }
}

impl Frame {
    fn of(record: &NewLogRecord, filter: &LogFilter) -> Self {
        let bare = NewLogRecord {
            text: String::new(),
            ..*record
        };
        // Writing to memory does not fail.
        let mut json = serde_json::to_vec(&bare).unwrap_or_default();
        json.truncate(json.len().saturating_sub(LINE_END.len() - 1));
        if let Some(first) = json.first_mut() {
            *first = b',';
        }
        Self {
            json,
            is_taken: filter.takes(record),
        }
    }

    /// The number of a line with this frame, and the position of its text.
    fn text_of(&self, line: &[u8]) -> Option<(u64, std::ops::Range<usize>)> {
        let rest = line.strip_prefix(LINE_BEGIN)?;
        let digits = rest.iter().take_while(|byte| byte.is_ascii_digit());
        let digits = digits.count();
        if digits > 1 && rest.first() == Some(&b'0') {
            return None;
        }
        let n = str::from_utf8(&rest[..digits]).ok()?.parse().ok()?;
        let text = rest[digits..].strip_prefix(&*self.json);
        let text = text.filter(|_| !self.json.is_empty())?;
        let length = text.strip_suffix(LINE_END)?.len();
        let begin = line.len() - text.len();
        Some((n, begin..begin + length))
    }
}

/// True if the text is valid UTF-8 and has no JSON escapes.
fn is_plain(text: &[u8]) -> bool {
    let is_plain = |plain, byte: &u8| plain & (*byte >= b' ') & !matches!(byte, b'"' | b'\\');
    text.iter().fold(true, is_plain) && str::from_utf8(text).is_ok()
}

/// The JSON form of a text, without quotes.
fn escape(text: &str) -> Vec<u8> {
    // Writing to memory does not fail.
    let quoted = serde_json::to_vec(text).unwrap_or_default();
    let inner = quoted.get(1..quoted.len().saturating_sub(1));
    inner.unwrap_or_default().to_vec()
}

#[cfg(test)]
mod tests;
