//! Reading the lines of a history from its end, piece by piece, so that the newest ones cost no more than they are.

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
    /// The byte of the page that was read first; none when the page is to be read from its end.
    end: Option<u64>,
}

/// Lines that follow each other.
pub(crate) struct Lines {
    /// Their page.
    pub(crate) key: Key,
    /// Where the first one begins.
    pub(crate) begin: Position,
    pub(crate) bytes: Bytes,
}

impl Place {
    /// Behind the newest line; none when the history is empty or all of it was removed.
    pub(crate) fn newest(end: Tail, retention: &Retention) -> Option<Self> {
        if end.bytes == 0 {
            return Self::below(end.page, retention);
        }
        let behind = end.page.checked_add(1)?;
        Self::below(behind, retention).map(|place| {
            // What was appended since belongs to jobs that were unfinished when the head was looked at.
            let end = (place.page == end.page).then_some(end.bytes);
            Self { end, ..place }
        })
    }

    fn below(page: u64, retention: &Retention) -> Option<Self> {
        let page = retention.page_below(page)?;
        Some(Self { page, end: None })
    }

    /// Where the reading goes on that came to the line at `begin`; none at the beginning of the history.
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

    /// The lines right before this place, about [`HISTORY_PIECE_BYTES`] of them.
    pub(crate) async fn read(
        self,
        reader: &StoreReader,
        scan: &ScanKey,
    ) -> Result<Lines, ReadError> {
        let Self { page, end } = self;
        let key = Layout::history(scan, page);
        let mut limit = HISTORY_PIECE_BYTES;
        loop {
            let piece = reader.piece(&key, end.unwrap_or(u64::MAX), limit).await?;
            let Some(Piece { at, bytes }) = piece else {
                // A page that somebody removed.
                let begin = Position { page, at: 0 };
                return Ok(Lines {
                    key,
                    begin,
                    bytes: Bytes::new(),
                });
            };
            let cut = if at == 0 { Some(0) } else { first_line(&bytes) };
            // Without line ends it is no history any more, and whoever reads lines tells so.
            if let Some(cut) = cut.or((limit >= LINE_BYTES).then_some(0)) {
                let begin = Position {
                    page,
                    at: at + cut as u64,
                };
                return Ok(Lines {
                    key,
                    begin,
                    bytes: bytes.slice(cut..),
                });
            }
            limit = limit.saturating_mul(4);
        }
    }
}

/// Where the first line begins of which nothing is missing.
fn first_line(bytes: &[u8]) -> Option<usize> {
    let end = bytes.iter().position(|byte| *byte == b'\n')?;
    (end + 1 < bytes.len()).then_some(end + 1)
}
