//! Reading the lines of a history from its end, piece by piece: to read the newest ones, no older ones are read.

use bytes::Bytes;
use model::retention::{Position, Retention};
use model::{ScanKey, Tail};
use store::{Key, Piece};

use crate::error::ReadError;
use crate::layout::Layout;
use crate::limits::{HISTORY_PIECE_BYTES, LINE_BYTES};
use crate::reader::StoreReader;

/// How far a history was read: everything before this place is still to be read.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Place {
    pub(crate) page: u64,
    /// Where the last read began in the page. None: read the page from its end.
    end: Option<u64>,
}

/// Consecutive lines.
pub(crate) struct Lines {
    /// Their page.
    pub(crate) key: Key,
    /// Where the first one begins.
    pub(crate) begin: Position,
    pub(crate) bytes: Bytes,
    /// Whether the history goes on behind them, and its file has lost that.
    pub(crate) is_cut: bool,
}

impl Place {
    /// The place behind the newest line. None when the history is empty or all of it was removed.
    pub(crate) fn newest(end: Tail, retention: &Retention) -> Option<Self> {
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

    /// Where to go on after the line at `begin`. None at the beginning of the history.
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

    /// The lines right before this place, about [`HISTORY_PIECE_BYTES`] of them. `tail` is where the history ends.
    pub(crate) async fn read(
        self,
        reader: &StoreReader,
        scan: &ScanKey,
        tail: Tail,
    ) -> Result<Lines, ReadError> {
        let Self { page, end } = self;
        let key = Layout::history(scan, page);
        let is_last = page == tail.page && end == Some(tail.bytes);
        let mut limit = HISTORY_PIECE_BYTES;
        loop {
            let piece = reader.piece(&key, end.unwrap_or(u64::MAX), limit).await?;
            // Somebody may have removed the page.
            let Piece { at, mut bytes } = piece.unwrap_or(Piece {
                at: 0,
                bytes: Bytes::new(),
            });
            let there = at + bytes.len() as u64;
            let is_cut = is_last && there < tail.bytes;
            if is_cut {
                let problem = format!("it has lost its end, and had {} bytes", tail.bytes);
                reader.warned().warn(&key, there, problem);
                // What is left of a line counts with what is gone.
                let whole = bytes.iter().rposition(|byte| *byte == b'\n');
                bytes.truncate(whole.map_or(0, |end| end + 1));
            }
            let first = if at == 0 { Some(0) } else { first_line(&bytes) };
            // Without line ends this is no history any more. The code that decodes the lines reports it.
            if let Some(first) = first.or((limit >= LINE_BYTES).then_some(0)) {
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
            limit = limit.saturating_mul(4);
        }
    }
}

/// Where the first complete line begins.
fn first_line(bytes: &[u8]) -> Option<usize> {
    let end = bytes.iter().position(|byte| *byte == b'\n')?;
    (end + 1 < bytes.len()).then_some(end + 1)
}
