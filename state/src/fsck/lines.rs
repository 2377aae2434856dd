//! Reads the lines of a growing file piece by piece.

use store::look::Look;
use store::{DiskError, Key};

use crate::limits::{LINE_BYTES, READ_BYTES};

/// Calls `visit` with each line up to byte `end`: its offset, and its bytes with the line end. The last line may lack
/// its line end. A line that is too long comes in pieces. Returns the number of bytes read, or `None` if there is no
/// such file.
pub(crate) fn each_line(
    look: &Look,
    key: &Key,
    end: u64,
    mut visit: impl FnMut(u64, &[u8]),
) -> Result<Option<u64>, DiskError> {
    let (mut at, mut rest) = (0, Vec::new());
    loop {
        let left = usize::try_from(end.saturating_sub(at)).unwrap_or(usize::MAX);
        let wanted = READ_BYTES.min(left);
        let Some(piece) = look.piece(key, at, wanted)? else {
            return Ok(None);
        };
        let begin = at - rest.len() as u64;
        at += piece.len() as u64;
        rest.extend_from_slice(&piece);
        let is_last = piece.len() < READ_BYTES;
        let whole = if is_last || rest.len() > LINE_BYTES {
            rest.len()
        } else {
            rest.iter()
                .rposition(|byte| *byte == b'\n')
                .map_or(0, |end| end + 1)
        };
        let mut line_at = begin;
        for line in rest[..whole].split_inclusive(|byte| *byte == b'\n') {
            visit(line_at, line);
            line_at += line.len() as u64;
        }
        rest.drain(..whole);
        if is_last {
            return Ok(Some(at));
        }
    }
}
