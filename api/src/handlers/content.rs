//! Sends stored content: all of it or one range, with its digest as the ETag.

use std::ops::Range;

use http::StatusCode;
use http::header::{
    ACCEPT_RANGES, CONTENT_DISPOSITION, CONTENT_LENGTH, CONTENT_RANGE, CONTENT_TYPE, ETAG,
    IF_RANGE, RANGE,
};
use state::{Download, ReadError};
use warp::Reply;
use warp::reply::Response;
use wire::ErrorCode;

use crate::failure::Failure;
use crate::limits::CONTENT_PIECE;
use crate::reply;
use crate::request::Request;
use crate::visible::Visible;

pub(super) struct Content<'a> {
    pub(super) media_type: &'static str,
    pub(super) size: u64,
    pub(super) sha256: &'a str,
    pub(super) disposition: String,
    /// Whether the content is hashed while all of it is sent. If it is damaged, the response breaks off before its end.
    pub(super) is_checked: bool,
}

impl Content<'_> {
    fn etag(&self) -> String {
        format!("\"{}\"", self.sha256)
    }

    /// The content, or the requested part. If the file is shorter than the promised length, the download breaks off.
    pub(super) fn answer(
        &self,
        user: &Visible,
        request: &Request,
        stored: Download,
    ) -> Result<Response, Failure> {
        let (size, etag) = (self.size, self.etag());
        if request.has_already(&etag) {
            return Ok(reply::not_modified(&etag));
        }
        // A range with another tag belongs to other content. The reader must not join the two.
        let is_same = request.header(IF_RANGE).is_none_or(|tag| tag == etag);
        let range = match request
            .header(RANGE)
            .filter(|_| is_same)
            .map(|range| wanted_range(range, size))
        {
            None | Some(Wanted::All) => None,
            Some(Wanted::Part(range)) => Some(range),
            Some(Wanted::Outside) => {
                let text = format!("it has {size} bytes");
                return Err(Failure::new(ErrorCode::RangeNotSatisfiable, text)
                    .header(CONTENT_RANGE, format!("bytes */{size}")));
            }
        };
        let part = range.clone().unwrap_or(0..size);
        let stored = if part == (0..size) && self.is_checked {
            stored.checked(self.sha256, size)
        } else {
            stored
        };
        let length = part.end - part.start;
        let user = user.clone();
        let mut response = reply::streamed(self.media_type, move |pieces| async move {
            tokio::select! {
                sent = send(stored, part, &pieces) => {
                    if let Err(error) = sent {
                        tracing::warn!(%error, "a content cannot be read; its download is broken off");
                        pieces.cut_off();
                    }
                }
                _ = user.rights_lost() => pieces.cut_off(),
            }
        });
        if let Some(range) = range {
            *response.status_mut() = StatusCode::PARTIAL_CONTENT;
            reply::set(
                &mut response,
                CONTENT_RANGE,
                &format!("bytes {}-{}/{size}", range.start, range.end - 1),
            );
        }
        self.describe(&mut response, length);
        Ok(response)
    }

    pub(super) fn head(&self, request: &Request) -> Response {
        let etag = self.etag();
        if request.has_already(&etag) {
            return reply::not_modified(&etag);
        }
        let mut response = StatusCode::OK.into_response();
        reply::set(&mut response, CONTENT_TYPE, self.media_type);
        self.describe(&mut response, self.size);
        response
    }

    fn describe(&self, response: &mut Response, length: u64) {
        reply::set(response, CONTENT_LENGTH, &length.to_string());
        reply::set(response, ACCEPT_RANGES, "bytes");
        reply::set(response, ETAG, &self.etag());
        reply::set(response, CONTENT_DISPOSITION, &self.disposition);
    }
}

/// Sends a part piece by piece, until the reader goes away. A slow reader occupies the memory of one piece and no thread.
async fn send(
    mut stored: Download,
    part: Range<u64>,
    pieces: &reply::Pieces,
) -> Result<(), ReadError> {
    let mut at = part.start;
    while at < part.end {
        let wanted = usize::try_from(part.end - at)
            .unwrap_or(usize::MAX)
            .min(CONTENT_PIECE);
        let piece;
        (stored, piece) = stored.read(at, wanted).await?;
        at += wanted as u64;
        if pieces.send(piece).await.is_err() {
            return Ok(());
        }
    }
    Ok(())
}

pub(super) enum Wanted {
    All,
    Part(Range<u64>),
    Outside,
}

/// Reads a `Range` header. Several ranges, or units other than bytes, request the whole content.
pub(super) fn wanted_range(header: &str, size: u64) -> Wanted {
    let Some(range) = header
        .strip_prefix("bytes=")
        .filter(|range| !range.contains(','))
    else {
        return Wanted::All;
    };
    let Some((first, last)) = range.split_once('-') else {
        return Wanted::All;
    };
    let range = match (first.trim().parse::<u64>(), last.trim()) {
        (Ok(first), "") => first..size,
        (Ok(first), last) => match last.parse::<u64>() {
            Ok(last) if last >= first => first..last.saturating_add(1).min(size),
            Ok(_) | Err(_) => return Wanted::All,
        },
        (Err(_), last) if first.trim().is_empty() => match last.parse::<u64>() {
            Ok(length) => size.saturating_sub(length)..size,
            Err(_) => return Wanted::All,
        },
        (Err(_), _) => return Wanted::All,
    };
    if range.start < range.end {
        Wanted::Part(range)
    } else {
        Wanted::Outside
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ranges_are_read_as_rfc_9110_says() {
        let part = |header| match wanted_range(header, 100) {
            Wanted::All => "all".to_owned(),
            Wanted::Part(range) => format!("{}..{}", range.start, range.end),
            Wanted::Outside => "outside".to_owned(),
        };
        for (header, wanted) in [
            ("bytes=0-9", "0..10"),
            ("bytes=90-", "90..100"),
            ("bytes=-10", "90..100"),
            ("bytes=-1000", "0..100"),
            ("bytes=50-1000", "50..100"),
            ("bytes=100-", "outside"),
            ("bytes=-0", "outside"),
            ("bytes=9-0", "all"),
            ("bytes=0-1,5-6", "all"),
            ("lines=1-2", "all"),
            ("bytes=x-y", "all"),
            ("bytes=18446744073709551615-18446744073709551615", "outside"),
        ] {
            assert_eq!(part(header), wanted, "{header}");
        }
    }
}
