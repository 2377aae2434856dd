//! The cookie of a browser's session, and where requests with it may come from.

use http::header::{COOKIE, HOST, HeaderName, ORIGIN};
use http::{HeaderMap, Method};
use model::SessionCookie;
use model::limits::SESSION_LIFE;
use wire::ErrorCode;

use crate::failure::Failure;
use crate::peer::Peer;

static SEC_FETCH_SITE: HeaderName = HeaderName::from_static("sec-fetch-site");

/// The name of the cookie. Over https the prefix binds it to this host. Over plain HTTP, which is for this machine, the port
/// tells daemons apart, since cookies do not.
fn name(headers: &HeaderMap, is_https: bool) -> String {
    if is_https {
        return "__Host-everscan".to_owned();
    }
    let host = headers.get(HOST).and_then(|host| host.to_str().ok());
    let port = host
        .and_then(|host| host.rsplit_once(':'))
        .map(|(_, port)| port)
        .filter(|port| port.parse::<u16>().is_ok());
    format!("everscan-{}", port.unwrap_or("80"))
}

/// The session that the request names, if any.
pub(crate) fn cookie(headers: &HeaderMap, peer: Peer) -> Option<SessionCookie> {
    let name = name(headers, peer.is_https);
    let lines = headers.get_all(COOKIE).iter();
    let pairs = lines
        .filter_map(|line| line.to_str().ok())
        .flat_map(|line| line.split(';'))
        .filter_map(|pair| pair.trim().split_once('='));
    let mut ours = pairs.filter(|(found, _)| *found == name);
    ours.find_map(|(_, value)| SessionCookie::parse(value).ok())
}

/// `Set-Cookie` with a new session.
pub(crate) fn set(headers: &HeaderMap, peer: Peer, cookie: &SessionCookie) -> String {
    let age = SESSION_LIFE.num_seconds();
    written(headers, peer, &cookie.reveal(), age)
}

/// `Set-Cookie` that removes the session's.
pub(crate) fn unset(headers: &HeaderMap, peer: Peer) -> String {
    written(headers, peer, "", 0)
}

fn written(headers: &HeaderMap, peer: Peer, value: &str, age: i64) -> String {
    let name = name(headers, peer.is_https);
    let secure = if peer.is_https { "; Secure" } else { "" };
    format!("{name}={value}; Path=/; Max-Age={age}; HttpOnly; SameSite=Lax{secure}")
}

/// Refuses a change that another site may have made the browser ask for.
pub(crate) fn check_origin(method: &Method, headers: &HeaderMap) -> Result<(), Failure> {
    if method.is_safe() || is_same_origin(headers) {
        return Ok(());
    }
    Err(Failure::new(
        ErrorCode::Forbidden,
        "a change with a session must come from a page of this daemon",
    )
    .hint("programs send `Authorization: Bearer …` with an access token instead of a cookie"))
}

/// Whether the browser says that a page of this daemon asks.
fn is_same_origin(headers: &HeaderMap) -> bool {
    if let Some(site) = headers.get(&SEC_FETCH_SITE) {
        return site == "same-origin";
    }
    let text = |name: HeaderName| headers.get(name).and_then(|value| value.to_str().ok());
    let (Some(origin), Some(host)) = (text(ORIGIN), text(HOST)) else {
        return false;
    };
    let origin = origin
        .strip_prefix("https://")
        .or_else(|| origin.strip_prefix("http://"));
    origin == Some(host)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn headers(pairs: &[(&'static str, &str)]) -> HeaderMap {
        let pairs = pairs.iter();
        pairs
            .map(|(name, value)| (HeaderName::from_static(name), value.parse().unwrap()))
            .collect()
    }

    #[test]
    fn the_name_tells_daemons_of_one_machine_apart() {
        let of = |host, is_https| name(&headers(&[("host", host)]), is_https);
        assert_eq!(of("localhost:7411", false), "everscan-7411");
        assert_eq!(of("[::1]:7412", false), "everscan-7412");
        assert_eq!(of("localhost", false), "everscan-80");
        assert_eq!(of("[::1]", false), "everscan-80");
        assert_eq!(of("everscan.example.org", true), "__Host-everscan");
    }

    #[test]
    fn a_change_needs_the_same_origin() {
        let host = ("host", "everscan.example.org");
        let allowed = |pairs: &[_]| check_origin(&Method::POST, &headers(pairs)).is_ok();
        assert!(allowed(&[host, ("sec-fetch-site", "same-origin")]));
        assert!(allowed(&[host, ("origin", "https://everscan.example.org")]));
        for site in ["cross-site", "same-site", "none"] {
            let pairs = [
                host,
                ("sec-fetch-site", site),
                ("origin", "https://everscan.example.org"),
            ];
            assert!(!allowed(&pairs), "{site}");
        }
        assert!(!allowed(&[host, ("origin", "https://evil.example.org")]));
        assert!(!allowed(&[host, ("origin", "null")]));
        assert!(!allowed(&[host]));
        assert!(check_origin(&Method::GET, &headers(&[])).is_ok());
    }
}
