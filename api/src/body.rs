//! Request bodies. A handler reads a body on demand, with a bound on its bytes and its time.

use std::pin::Pin;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use bytes::{Bytes, BytesMut};
use futures_util::{Stream, StreamExt};
use http::HeaderMap;
use http::header::{CONTENT_LENGTH, CONTENT_TYPE};
use serde::de::DeserializeOwned;
use tokio::sync::{Semaphore, SemaphorePermit};
use tokio::time::Instant;
use wire::ErrorCode;

use crate::failure::Failure;
use crate::limits::{BODIES_KIB, BODY_EXPECTED, BODY_PIECE, BODY_RATE, BODY_WAIT, SMALL_BODY};

/// The memory for all bodies, in KiB.
static ROOM: Semaphore = Semaphore::const_new(BODIES_KIB);

type Pieces = Pin<Box<dyn Stream<Item = Result<Bytes, warp::Error>> + Send>>;

pub(crate) struct Body {
    /// Never locked. Only one reader can have the stream; the mutex lets threads share the request by reference.
    pieces: Mutex<Pieces>,
    limit: u64,
    /// Bytes to reserve at once.
    expected: usize,
    read: u64,
    waited: Duration,
    /// The part of [`ROOM`] that this body takes.
    room: Option<SemaphorePermit<'static>>,
}

impl Body {
    /// A body of at most `limit` bytes. A body that announces more is refused before it is read.
    pub(crate) fn new<B: bytes::Buf>(
        pieces: impl Stream<Item = Result<B, warp::Error>> + Send + 'static,
        headers: &HeaderMap,
        limit: u64,
    ) -> Result<Self, Failure> {
        let announced = headers
            .get(CONTENT_LENGTH)
            .and_then(|length| length.to_str().ok()?.parse::<u64>().ok());
        if announced.is_some_and(|announced| announced > limit) {
            return Err(too_large(limit));
        }
        let pieces =
            pieces.map(|piece| piece.map(|mut piece| piece.copy_to_bytes(piece.remaining())));
        Ok(Self {
            pieces: Mutex::new(Box::pin(pieces)),
            limit,
            expected: usize::try_from(announced.unwrap_or(0).min(BODY_EXPECTED)).unwrap_or(0),
            read: 0,
            waited: Duration::ZERO,
            room: None,
        })
    }

    /// The next piece; none at the end.
    pub(crate) async fn next(&mut self) -> Result<Option<Bytes>, Failure> {
        let pieces = self
            .pieces
            .get_mut()
            .unwrap_or_else(PoisonError::into_inner);
        let begun = Instant::now();
        let arrived = tokio::time::timeout(patience(self.read, self.waited), pieces.next()).await;
        self.waited += begun.elapsed();
        let piece = match arrived {
            Ok(None) => return Ok(None),
            Ok(Some(Ok(piece))) => piece,
            Ok(Some(Err(_))) => {
                return Err(Failure::new(
                    ErrorCode::InvalidRequest,
                    "the body broke off",
                ));
            }
            Err(_) => {
                return Err(Failure::new(
                    ErrorCode::RequestTimeout,
                    "the body did not arrive in time",
                ));
            }
        };
        self.read += piece.len() as u64;
        if self.read > self.limit {
            Err(too_large(self.limit))
        } else {
            Ok(Some(piece))
        }
    }

    /// The next piece. Reserves room for the whole body so far.
    async fn next_kept(&mut self) -> Result<Option<Bytes>, Failure> {
        let piece = self.next().await?;
        let taken = self.room.as_ref().map_or(0, SemaphorePermit::num_permits);
        let wanted = self.read.saturating_sub(SMALL_BODY).div_ceil(1024);
        let more = usize::try_from(wanted)
            .unwrap_or(usize::MAX)
            .saturating_sub(taken);
        if more > 0 {
            let more = u32::try_from(more).unwrap_or(u32::MAX);
            let found = ROOM.try_acquire_many(more);
            let found = found.map_err(|_| {
                Failure::rate_limited("too many large bodies are on their way", BODY_WAIT)
            })?;
            match &mut self.room {
                Some(room) => room.merge(found),
                None => self.room = Some(found),
            }
        }
        Ok(piece)
    }

    pub(crate) async fn bytes(&mut self) -> Result<Bytes, Failure> {
        let Some(first) = self.next_kept().await? else {
            return Ok(Bytes::new());
        };
        let Some(second) = self.next_kept().await? else {
            return Ok(first);
        };
        let mut all = BytesMut::with_capacity(self.expected);
        all.extend_from_slice(&first);
        all.extend_from_slice(&second);
        while let Some(piece) = self.next_kept().await? {
            all.extend_from_slice(&piece);
        }
        Ok(all.freeze())
    }

    /// Reads the body as JSON, if there is one.
    pub(crate) async fn json_or_default<T: DeserializeOwned + Default>(
        &mut self,
        headers: &HeaderMap,
    ) -> Result<T, Failure> {
        let bytes = self.bytes().await?;
        if bytes.is_empty() {
            return Ok(T::default());
        }
        is_json(headers)?;
        parse(&bytes)
    }

    pub(crate) async fn json<T: DeserializeOwned>(
        &mut self,
        headers: &HeaderMap,
    ) -> Result<T, Failure> {
        is_json(headers)?;
        parse(&self.bytes().await?)
    }
}

/// Reads a JSON object. `serde` alone would also accept a list of the members in their order, which is not documented.
pub(crate) fn parse<T: DeserializeOwned>(bytes: &[u8]) -> Result<T, Failure> {
    if is_list(bytes) {
        return Err(Failure::invalid("body", "must be an object"));
    }
    parse_any(bytes)
}

pub(crate) fn is_list(bytes: &[u8]) -> bool {
    bytes.trim_ascii_start().first() == Some(&b'[')
}

/// Reads an object or a list.
pub(crate) fn parse_any<T: DeserializeOwned>(bytes: &[u8]) -> Result<T, Failure> {
    serde_json::from_slice(bytes).map_err(|error| Failure::invalid("body", error.to_string()))
}

pub(crate) fn is_json(headers: &HeaderMap) -> Result<(), Failure> {
    let kind = headers
        .get(CONTENT_TYPE)
        .and_then(|kind| kind.to_str().ok())
        .unwrap_or("");
    let essence = kind.split(';').next().unwrap_or("").trim();
    if essence.eq_ignore_ascii_case("application/json") {
        Ok(())
    } else {
        Err(Failure::new(
            ErrorCode::UnsupportedMediaType,
            "this takes `Content-Type: application/json`",
        ))
    }
}

/// How long to wait for the next piece, after `read` bytes and a total wait of `waited`.
fn patience(read: u64, waited: Duration) -> Duration {
    let owed = BODY_PIECE + Duration::from_secs(read / BODY_RATE);
    owed.saturating_sub(waited).min(BODY_PIECE)
}

fn too_large(limit: u64) -> Failure {
    Failure::new(
        ErrorCode::BodyTooLarge,
        format!("the body is larger than {limit} bytes"),
    )
}

#[cfg(test)]
mod tests {
    use futures_util::stream;
    use tokio::sync::Mutex;

    use super::*;

    /// Tests of large bodies run one after the other, because they share one room.
    static ONE_AT_A_TIME: Mutex<()> = Mutex::const_new(());

    /// Reads a body whose pieces arrive with a pause between them.
    async fn arrives(pieces: usize, bytes: usize, pause: Duration) -> Result<usize, ErrorCode> {
        let _turn = ONE_AT_A_TIME.lock().await;
        let pieces = stream::iter(0..pieces).then(move |_| async move {
            tokio::time::sleep(pause).await;
            Ok::<_, warp::Error>(Bytes::from(vec![b'x'; bytes]))
        });
        let mut body = Body::new(pieces, &HeaderMap::new(), 1024 * 1024).unwrap();
        body.bytes()
            .await
            .map(|bytes| bytes.len())
            .map_err(|failure| failure.code)
    }

    #[tokio::test(start_paused = true)]
    async fn a_body_that_stops_or_trickles_is_refused() {
        let seconds = Duration::from_secs;
        let late = Err(ErrorCode::RequestTimeout);
        assert_eq!(arrives(1, 10, seconds(29)).await, Ok(10));
        assert_eq!(arrives(1, 10, seconds(31)).await, late);
        assert_eq!(arrives(1_000, 1, seconds(1)).await, late, "a byte a second");
        assert_eq!(
            arrives(200, 2_048, seconds(1)).await,
            Ok(409_600),
            "a slow connection"
        );
    }

    #[tokio::test]
    async fn the_bytes_of_a_body_are_counted_even_if_its_header_has_another_length() {
        assert_eq!(
            arrives(2, 600 * 1024, Duration::ZERO).await,
            Err(ErrorCode::BodyTooLarge)
        );
    }

    #[tokio::test]
    async fn large_bodies_share_their_room() {
        let _turn = ONE_AT_A_TIME.lock().await;
        let body = || {
            let piece = Bytes::from(vec![b'x'; 100 * 1024]);
            let pieces = stream::iter([Ok::<_, warp::Error>(piece)]);
            Body::new(pieces, &HeaderMap::new(), 1024 * 1024).unwrap()
        };
        let taken = ROOM
            .try_acquire_many(u32::try_from(BODIES_KIB).unwrap() - 40)
            .unwrap();
        let mut first = body();
        first.bytes().await.unwrap();
        let failure = body().bytes().await.unwrap_err();
        assert_eq!(failure.code, ErrorCode::RateLimited);
        drop(first);
        body().bytes().await.unwrap();
        drop(taken);
    }
}
