//! Files as request bodies.

use std::fs::File;
use std::io::SeekFrom;

use bytes::BytesMut;
use futures_util::stream;
use http_body_util::{BodyExt, StreamBody};
use hyper::body::Frame;
use tokio::io::{AsyncReadExt, AsyncSeekExt};

use crate::connector::RequestBody;
use crate::limits;

/// The first `size` bytes of a file. Without a size, the file is read from its current position to its end, like a pipe.
pub(crate) fn pieces(file: File, size: Option<u64>) -> RequestBody {
    let mut file = tokio::fs::File::from_std(file);
    file.set_max_buf_size(limits::UPLOAD_PIECE);
    let start = (file, size, size.is_some());
    let pieces = stream::try_unfold(start, async |(mut file, left, rewind)| {
        if rewind {
            file.seek(SeekFrom::Start(0)).await?;
        }
        if left == Some(0) {
            return Ok(None);
        }
        let mut piece = BytesMut::with_capacity(limits::UPLOAD_PIECE);
        let most = left.unwrap_or(u64::MAX);
        let read = (&mut file).take(most).read_buf(&mut piece).await?;
        if read == 0 {
            return match left {
                Some(_) => Err(std::io::ErrorKind::UnexpectedEof.into()),
                None => Ok(None),
            };
        }
        let read = u64::try_from(read).unwrap_or(u64::MAX);
        let left = left.map(|left| left.saturating_sub(read));
        Ok(Some((Frame::data(piece.freeze()), (file, left, false))))
    });
    StreamBody::new(pieces).boxed_unsync()
}
