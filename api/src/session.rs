//! The cookies of a browser, and the origins that may send requests with them. One cookie is the session; the other only says that
//! its user has signed in from this browser before.

use std::net::IpAddr;

use http::header::{COOKIE, HOST, HeaderName, ORIGIN};
use http::uri::Authority;
use http::{HeaderMap, Method};
use model::SessionCookie;
use model::limits::SESSION_LIFE;
use wire::ErrorCode;

use crate::failure::Failure;
use crate::limits::KNOWN_BROWSER;
use crate::peer::Peer;
use crate::request::Arrival;

static SEC_FETCH_SITE: HeaderName = HeaderName::from_static("sec-fetch-site");

/// What a cookie is for.
#[derive(Clone, Copy)]
enum Use {
    Session,
    KnownBrowser,
}

/// The name of a cookie. Over HTTPS its prefix binds it to this host. A daemon below a path has a cookie for that path, which
/// that prefix does not allow. Plain HTTP is only for this machine; there the name contains the port, because browsers share
/// cookies between the ports of a host.
fn name(of: Use, headers: &HeaderMap, arrival: &Arrival) -> String {
    let name = match of {
        Use::Session => "everscan",
        Use::KnownBrowser => "everscan-browser",
    };
    if arrival.peer.is_https {
        let prefix = match arrival.base.as_str() {
            "" => "__Host-",
            _ => "__Secure-",
        };
        return format!("{prefix}{name}");
    }
    let host = headers.get(HOST).and_then(|host| host.to_str().ok());
    let port = host
        .and_then(|host| host.rsplit_once(':'))
        .map(|(_, port)| port)
        .filter(|port| port.parse::<u16>().is_ok());
    format!("{name}-{}", port.unwrap_or("80"))
}

pub(crate) fn cookie(headers: &HeaderMap, arrival: &Arrival) -> Option<SessionCookie> {
    let mut found = values(Use::Session, headers, arrival);
    found.find_map(|value| SessionCookie::parse(value).ok())
}

/// The cookie of a browser from which somebody signed in before, as it was sent.
pub(crate) fn known_browser<'a>(headers: &'a HeaderMap, arrival: &Arrival) -> Option<&'a str> {
    values(Use::KnownBrowser, headers, arrival).next()
}

fn values<'a>(
    of: Use,
    headers: &'a HeaderMap,
    arrival: &Arrival,
) -> impl Iterator<Item = &'a str> + use<'a> {
    let name = headers
        .contains_key(COOKIE)
        .then(|| name(of, headers, arrival));
    let lines = headers.get_all(COOKIE).iter();
    let pairs = lines
        .filter_map(|line| line.to_str().ok())
        .flat_map(|line| line.split(';'))
        .filter_map(|pair| pair.trim().split_once('='));
    let ours = pairs.filter(move |(found, _)| name.as_ref().is_some_and(|name| found == name));
    ours.map(|(_, value)| value)
}

pub(crate) fn set(headers: &HeaderMap, arrival: &Arrival, cookie: &SessionCookie) -> String {
    let age = SESSION_LIFE.num_seconds();
    written(Use::Session, headers, arrival, &cookie.reveal(), age)
}

pub(crate) fn set_known_browser(headers: &HeaderMap, arrival: &Arrival, value: &str) -> String {
    let age = KNOWN_BROWSER.as_secs().cast_signed();
    written(Use::KnownBrowser, headers, arrival, value, age)
}

pub(crate) fn unset(headers: &HeaderMap, arrival: &Arrival) -> String {
    written(Use::Session, headers, arrival, "", 0)
}

fn written(of: Use, headers: &HeaderMap, arrival: &Arrival, value: &str, age: i64) -> String {
    let name = name(of, headers, arrival);
    let secure = if arrival.peer.is_https {
        "; Secure"
    } else {
        ""
    };
    let path = match arrival.base.as_str() {
        "" => "/",
        base => base,
    };
    format!("{name}={value}; Path={path}; Max-Age={age}; HttpOnly; SameSite=Lax{secure}")
}

/// Refuses a change that another site may have caused.
pub(crate) fn check_origin(
    method: &Method,
    headers: &HeaderMap,
    peer: Peer,
) -> Result<(), Failure> {
    if method.is_safe() || is_same_origin(headers, peer.is_https) {
        return Ok(());
    }
    Err(Failure::new(
        ErrorCode::Forbidden,
        "a change with a session must come from a page of this daemon",
    )
    .hint("programs send `Authorization: Bearer …` with an access token instead of a cookie"))
}

/// True if the browser reports a page of this daemon as the origin.
fn is_same_origin(headers: &HeaderMap, is_https: bool) -> bool {
    let mut sites = headers.get_all(&SEC_FETCH_SITE).iter().peekable();
    if sites.peek().is_some() {
        return sites.all(|site| site == "same-origin");
    }
    let text = |name: HeaderName| headers.get(name).and_then(|value| value.to_str().ok());
    let (Some(origin), Some(host)) = (text(ORIGIN), text(HOST)) else {
        return false;
    };
    let scheme = if is_https { "https://" } else { "http://" };
    origin.strip_prefix(scheme) == Some(host)
}

/// Whether the request names this machine by its address or as `localhost`. Another site could use a name of its own that
/// resolves to this machine, but not these names.
pub(crate) fn names_this_machine(headers: &HeaderMap) -> bool {
    let Some(host) = headers.get(HOST) else {
        return true;
    };
    let host: Option<Authority> = host.to_str().ok().and_then(|host| host.parse().ok());
    host.is_some_and(|host| {
        let name = host.host().trim_matches(['[', ']']);
        name.parse::<IpAddr>().is_ok() || name.eq_ignore_ascii_case("localhost")
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn peer(is_https: bool) -> Peer {
        Peer {
            address: IpAddr::from([127, 0, 0, 1]),
            is_https,
            is_local: true,
        }
    }

    fn arrival(is_https: bool, base: &str) -> Arrival {
        Arrival {
            id: uuid::Uuid::nil(),
            method: Method::GET,
            path: "/".to_owned(),
            base: base.parse().unwrap(),
            peer: peer(is_https),
        }
    }

    fn headers(pairs: &[(&'static str, &str)]) -> HeaderMap {
        let pairs = pairs.iter();
        pairs
            .map(|(name, value)| (HeaderName::from_static(name), value.parse().unwrap()))
            .collect()
    }

    #[test]
    fn daemons_on_one_machine_have_different_cookies() {
        let of = |host, is_https| {
            name(
                Use::Session,
                &headers(&[("host", host)]),
                &arrival(is_https, ""),
            )
        };
        assert_eq!(of("localhost:7411", false), "everscan-7411");
        assert_eq!(of("[::1]:7412", false), "everscan-7412");
        assert_eq!(of("localhost", false), "everscan-80");
        assert_eq!(of("[::1]", false), "everscan-80");
        assert_eq!(of("everscan.example.org", true), "__Host-everscan");
    }

    #[test]
    fn the_cookie_of_a_known_browser_is_not_that_of_the_session() {
        let set = set_known_browser(&headers(&[]), &arrival(true, ""), "x.y");
        let expected =
            "__Host-everscan-browser=x.y; Path=/; Max-Age=34560000; HttpOnly; SameSite=Lax; Secure";
        assert_eq!(set, expected);
        let both = "everscan-7411=s.s; everscan-browser-7411=x.y";
        let sent = headers(&[("host", "localhost:7411"), ("cookie", both)]);
        assert_eq!(known_browser(&sent, &arrival(false, "")), Some("x.y"));
        let only_session = headers(&[("host", "localhost:7411"), ("cookie", "everscan-7411=s.s")]);
        assert_eq!(known_browser(&only_session, &arrival(false, "")), None);
    }

    #[test]
    fn below_a_path_the_cookie_is_for_that_path() {
        let host = headers(&[("host", "localhost:7411")]);
        let removed = |is_https| unset(&host, &arrival(is_https, "/everscan"));
        let plain = "everscan-7411=; Path=/everscan; Max-Age=0; HttpOnly; SameSite=Lax";
        assert_eq!(removed(false), plain);
        let over_tls =
            "__Secure-everscan=; Path=/everscan; Max-Age=0; HttpOnly; SameSite=Lax; Secure";
        assert_eq!(removed(true), over_tls);
    }

    #[test]
    fn a_change_needs_the_same_origin() {
        let host = ("host", "everscan.example.org");
        let allowed =
            |pairs: &[_]| check_origin(&Method::POST, &headers(pairs), peer(true)).is_ok();
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
        assert!(!allowed(&[host, ("origin", "http://everscan.example.org")]));
        let twice = [
            ("sec-fetch-site", "same-origin"),
            ("sec-fetch-site", "cross-site"),
        ];
        let mut contradiction = headers(&[host]);
        for (name, value) in twice {
            contradiction.append(name, value.parse().unwrap());
        }
        assert!(check_origin(&Method::POST, &contradiction, peer(true)).is_err());
        assert!(!allowed(&[host]));
        assert!(check_origin(&Method::GET, &headers(&[]), peer(true)).is_ok());
    }

    #[test]
    fn only_its_address_and_localhost_name_this_machine() {
        let named = |host| names_this_machine(&headers(&[("host", host)]));
        for host in [
            "127.0.0.1:7411",
            "[::1]:7411",
            "localhost:7411",
            "LOCALHOST",
        ] {
            assert!(named(host), "{host}");
        }
        for host in ["evil.example:7411", "localhost.evil.example", "", "a b"] {
            assert!(!named(host), "{host}");
        }
        assert!(names_this_machine(&headers(&[])));
    }
}
