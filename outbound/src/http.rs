//! One HTTP request on a connection of its own. Of the answer, only status and `Retry-After` are used.

use std::pin::pin;
use std::time::Duration;

use bytes::Bytes;
use chrono::{DateTime, Utc};
use futures_util::future::{Either, select};
use http::header::{HOST, RETRY_AFTER, USER_AGENT};
use http::uri::PathAndQuery;
use http::{HeaderMap, HeaderValue, Method, Request, Response, StatusCode, Uri};
use http_body_util::Full;
use hyper::body::Incoming;
use hyper::client::conn::http1::handshake;
use hyper_util::rt::TokioIo;
use tokio::io::{AsyncRead, AsyncWrite};

use crate::error::cause;
use crate::{Error, Outbound, check_host};

/// The longest pause that a server may ask for.
const LONGEST_PAUSE: Duration = Duration::from_secs(60 * 60);

/// What a server answered. Redirects (3xx) are answers, too.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Answer {
    pub status: StatusCode,
    /// At most an hour.
    pub retry_after: Option<Duration>,
}

impl Outbound {
    /// # Errors
    /// There is no answer.
    pub async fn get(&self, url: &str, now: DateTime<Utc>) -> Result<Answer, Error> {
        self.request(Method::GET, url, HeaderMap::new(), Bytes::new(), None, now)
            .await
    }

    /// The certificates in `ca` (PEM), if given, are trusted instead of the machine's.
    ///
    /// # Errors
    /// There is no answer.
    pub async fn post(
        &self,
        url: &str,
        headers: HeaderMap,
        body: impl Into<Bytes>,
        ca: Option<&str>,
        now: DateTime<Utc>,
    ) -> Result<Answer, Error> {
        self.request(Method::POST, url, headers, body.into(), ca, now)
            .await
    }

    async fn request(
        &self,
        method: Method,
        url: &str,
        headers: HeaderMap,
        body: Bytes,
        ca: Option<&str>,
        now: DateTime<Utc>,
    ) -> Result<Answer, Error> {
        let (address, is_https) = parse(url)?;
        let host = address.host().unwrap_or_default();
        let port = address
            .port_u16()
            .unwrap_or(if is_https { 443 } else { 80 });
        let mut request = Request::new(Full::new(body));
        *request.method_mut() = method;
        let path = address.path_and_query().cloned();
        *request.uri_mut() = path.unwrap_or(PathAndQuery::from_static("/")).into();
        *request.headers_mut() = headers;
        let authority = address.authority().map_or("", |name| name.as_str());
        let authority = HeaderValue::from_str(authority).map_err(|_| Error::Url("wrong host"))?;
        request.headers_mut().insert(HOST, authority);
        let agent = HeaderValue::from_static("everscan");
        request.headers_mut().insert(USER_AGENT, agent);
        let response = self.in_time(async {
            let stream = self.connect(host, port).await?;
            let response = if is_https {
                exchange(self.secure(stream, host, ca).await?, request).await
            } else {
                exchange(stream, request).await
            };
            response.map_err(|error| Error::Http {
                host: host.to_owned(),
                reason: cause(&error),
            })
        });
        let response = response.await?;
        let pause = response.headers().get(RETRY_AFTER);
        Ok(Answer {
            status: response.status(),
            retry_after: pause.and_then(|value| parse_pause(value.to_str().ok()?, now)),
        })
    }
}

/// # Errors
/// It is no URL of `http` or `https` that a request can be sent to, or has a password.
pub fn check_url(url: &str) -> Result<(), Error> {
    parse(url).map(drop)
}

fn parse(url: &str) -> Result<(Uri, bool), Error> {
    let address: Uri = url
        .parse()
        .map_err(|_| Error::Url("it has a character that a URL cannot have, or lacks a part"))?;
    let is_https = match address.scheme_str() {
        Some("https") => true,
        Some("http") => false,
        _ => return Err(Error::Url("it must begin with `https://` or `http://`")),
    };
    let Some(authority) = address.authority() else {
        return Err(Error::Url("it has no host"));
    };
    if authority.as_str().contains('@') {
        return Err(Error::Url("it must not have a user or a password"));
    }
    check_host(authority.host())?;
    let port = authority.as_str().strip_prefix(authority.host());
    if port != Some("") && authority.port_u16().is_none_or(|port| port == 0) {
        return Err(Error::Url("its port must be from 1 to 65535"));
    }
    Ok((address, is_https))
}

/// The connection is dropped after the head of the response: nobody reads its body.
async fn exchange(
    stream: impl AsyncRead + AsyncWrite + Unpin + Send + 'static,
    request: Request<Full<Bytes>>,
) -> Result<Response<Incoming>, hyper::Error> {
    let (mut sender, connection) = handshake(TokioIo::new(stream)).await?;
    match select(pin!(sender.send_request(request)), pin!(connection)).await {
        Either::Left((response, _)) => response,
        Either::Right((_, response)) => response.await,
    }
}

/// Seconds or a date.
fn parse_pause(text: &str, now: DateTime<Utc>) -> Option<Duration> {
    let pause = match text.trim().parse() {
        Ok(seconds) => Duration::from_secs(seconds),
        Err(_) => {
            let until = DateTime::parse_from_rfc2822(text.trim()).ok()?;
            (until.to_utc() - now).to_std().unwrap_or_default()
        }
    };
    Some(pause.min(LONGEST_PAUSE))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_pause_is_seconds_or_a_date_and_at_most_an_hour() {
        let now = "2026-03-01T12:00:00Z".parse().unwrap();
        let pause = |text| parse_pause(text, now).map(|pause| pause.as_secs());
        assert_eq!(pause("7"), Some(7));
        assert_eq!(pause("Sun, 01 Mar 2026 12:02:00 GMT"), Some(120));
        assert_eq!(pause("Sun, 01 Mar 2026 11:00:00 GMT"), Some(0));
        assert_eq!(pause("Mon, 02 Mar 2026 12:00:00 GMT"), Some(3600));
        assert_eq!(pause("18446744073709551615"), Some(3600));
        assert_eq!(pause("soon"), None);
        assert_eq!(pause("-1"), None);
    }

    #[test]
    fn a_url_has_a_scheme_and_a_host_and_no_password() {
        for right in ["https://example.org/x?y", "http://[::1]:25", "http://a_b:1"] {
            assert!(parse(right).is_ok(), "{right}");
        }
        for wrong in [
            "",
            "example.org",
            "/x",
            "ftp://example.org",
            "https://u:p@example.org",
            "https:///x",
            "https://h:99999/",
            "https://h:0/",
            "https://h:/",
            "http://h:p#x",
            "http://a b/",
            "http://a\tb/",
            "http://a\u{202e}b/",
            "http://[::1/",
            "http://h[::1]/",
        ] {
            assert!(parse(wrong).is_err(), "{wrong}");
        }
    }
}
