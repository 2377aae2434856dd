//! Payloads that a server answers to whoever asks, at `/-/<group>/<payload>`.

use std::fmt;
use std::pin::Pin;
use std::sync::Arc;

use bytes::Bytes;
use http_body_util::Full;
use hyper::Response;
use hyper::header::{CONTENT_TYPE, HeaderValue};

/// A payload with its body. It lives as long as its answer is sent.
#[derive(Debug, Clone)]
pub struct Payload {
    /// What the hit says of it, as in `img.svg@3`.
    pub name: String,
    pub content_type: String,
    pub body: Bytes,
}

/// Finds a payload by its group and name.
pub type Find = dyn Fn(String, String) -> Finding + Send + Sync;
pub type Finding = Pin<Box<dyn Future<Output = Option<Payload>> + Send>>;

/// Where a server has its payloads. Nothing of them is in memory.
#[derive(Clone)]
pub struct Served(pub Arc<Find>);

impl fmt::Debug for Served {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Served")
    }
}

impl Served {
    /// The payload that a request asks for.
    pub(crate) async fn find(&self, target: &[u8]) -> Option<Payload> {
        let (group, payload) = wanted(target)?;
        (self.0)(group.to_owned(), payload.to_owned()).await
    }
}

impl Payload {
    pub(crate) fn response(self) -> Response<Full<Bytes>> {
        let kind = HeaderValue::from_str(&self.content_type);
        let kind = kind.unwrap_or(HeaderValue::from_static("application/octet-stream"));
        let mut response = Response::new(Full::from(self.body));
        response.headers_mut().insert(CONTENT_TYPE, kind);
        response
    }
}

/// The group and the payload in a target.
fn wanted(target: &[u8]) -> Option<(&str, &str)> {
    let path = target.split(|byte| matches!(byte, b'?' | b'#')).next()?;
    let rest = std::str::from_utf8(path).ok()?.strip_prefix("/-/")?;
    rest.split_once('/')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_path_names_group_and_payload() {
        for (target, expected) in [
            (&b"/-/xss/img.svg"[..], Some(("xss", "img.svg"))),
            (b"/-/xss/img.svg@3?x#y", Some(("xss", "img.svg@3"))),
            (b"/-/xss/a/b", Some(("xss", "a/b"))),
            (b"/-/xss", None),
            (b"/xss/img.svg", None),
            (b"/-/\xff/a", None),
            (b"", None),
        ] {
            assert_eq!(wanted(target), expected, "{target:?}");
        }
    }
}
