//! Reads the lines of a history from its end, piece by piece. So the newest lines are read without the older ones.
//!
//! A page is divided into pieces of [`HISTORY_PIECE_BYTES`]. A line belongs to the piece in which it ends. So earlier
//! pieces stay the same when the page grows, and their summaries stay true.

use bytes::Bytes;
use model::retention::{Position, Retention};
use model::{ScanKey, TailEnd};
use store::{Key, Piece};

use crate::error::ReadError;
use crate::layout::Layout;
use crate::limits::{HISTORY_PIECE_BYTES, LINE_BEGIN_BYTES, LINE_BYTES};
use crate::reader::StoreReader;

/// How far a history was read: the lines before this place are unread.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Place {
    pub(crate) page: u64,
    /// Where the last read began in the page. `None`: read the page from its end.
    pub(crate) end: Option<u64>,
}

/// The number of the piece that contains a line ending at this byte of its page.
pub(crate) const fn piece_of(end: u64) -> u64 {
    end.saturating_sub(1) / HISTORY_PIECE_BYTES as u64
}

pub(crate) struct Lines {
    /// Their page.
    pub(crate) key: Key,
    /// Where the first line begins.
    pub(crate) begin: Position,
    pub(crate) bytes: Bytes,
    /// True if lines behind these are missing because the file was cut.
    pub(crate) is_cut: bool,
}

impl Place {
    /// The place behind the newest line. `None` if the history is empty or was removed completely.
    pub(crate) fn newest(end: TailEnd, retention: &Retention) -> Option<Self> {
        if end.bytes == 0 {
            return Self::below(end.page, retention);
        }
        let behind = end.page.checked_add(1)?;
        Self::below(behind, retention).map(|place| {
            // Later lines belong to jobs that had not finished when the head was read.
            let end = (place.page == end.page).then_some(end.bytes);
            Self { end, ..place }
        })
    }

    fn below(page: u64, retention: &Retention) -> Option<Self> {
        let page = retention.page_below(page)?;
        Some(Self { page, end: None })
    }

    /// Where to continue after the line at `begin` was read. `None` at the beginning of the history.
    pub(crate) fn before(begin: Position, retention: &Retention) -> Option<Self> {
        let Position { page, at } = begin;
        if at == 0 {
            return Self::below(page, retention);
        }
        Some(Self {
            page,
            end: Some(at),
        })
    }

    /// The lines right before this place, back to the start of their piece. `tail` is where the history ends.
    pub(crate) async fn read(
        self,
        reader: &StoreReader,
        scan: &ScanKey,
        tail: TailEnd,
    ) -> Result<Lines, ReadError> {
        let Self { page, end } = self;
        let key = Layout::history(scan, page);
        let is_last = page == tail.page && end == Some(tail.bytes);
        let first = |end: u64| piece_of(end) * HISTORY_PIECE_BYTES as u64;
        // At most `HISTORY_PIECE_BYTES`.
        let within = end.map_or(HISTORY_PIECE_BYTES, |end| (end - first(end)) as usize);
        // The first line of a piece may begin in an earlier piece.
        let mut earlier = LINE_BEGIN_BYTES;
        loop {
            let limit = within + earlier;
            let piece = reader.piece(&key, end.unwrap_or(u64::MAX), limit).await?;
            // Somebody may have removed the page.
            let Piece { at, mut bytes } = piece.unwrap_or(Piece {
                at: 0,
                bytes: Bytes::new(),
            });
            let there = at + bytes.len() as u64;
            // When the daemon started, it moved the end of the history behind a page that was already cut.
            let was_cut = end.is_none() && reader.warned().is_cut(&key);
            let is_cut = was_cut || is_last && there < tail.bytes;
            if is_cut {
                reader.warned().warn(&key, there, "it has lost its end");
                // The rest of a cut line counts as lost too.
                let whole = bytes.iter().rposition(|byte| *byte == b'\n');
                bytes.truncate(whole.map_or(0, |end| end + 1));
            }
            // If a page has an unexpected length, its actual length determines the piece.
            let first = first(at + bytes.len() as u64).saturating_sub(at);
            let before = usize::try_from(first).map_or(&bytes[..], |first| &bytes[..first]);
            let begin = before.iter().rposition(|byte| *byte == b'\n');
            let begin = begin.map(|end| end + 1).or((at == 0).then_some(0));
            // Bytes without line ends are not a history. The code that decodes the lines reports this.
            if let Some(first) = begin.or((earlier >= LINE_BYTES).then_some(0)) {
                let begin = Position {
                    page,
                    at: at + first as u64,
                };
                return Ok(Lines {
                    key,
                    begin,
                    bytes: bytes.slice(first..),
                    is_cut,
                });
            }
            earlier = earlier.saturating_mul(4);
        }
    }
}
