//! Fixed answers of a server, and what of it is not reported.

use std::net::IpAddr;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use bytes::Bytes;
use hickory_proto::rr::rdata::{A, AAAA, CAA, MX, TXT};
use hickory_proto::rr::{Name, RData, RecordType};
use http_body_util::Full;
use hyper::header::{HeaderName, HeaderValue};
use hyper::{Response, StatusCode};
use listen::Cidr;

use crate::hit::{Hit, Kind};
use crate::http::head;
use crate::ids::ServerId;

/// The longest text of a TXT record. A longer value has several.
const TEXT: usize = 255;

/// The fixed answers of a server: the first that fits is given.
#[derive(Debug, Default)]
pub struct Rules {
    http: Vec<HttpRule>,
    dns: Vec<DnsRule>,
    pub ignore: Noise,
}

/// What is answered and not reported.
#[derive(Debug, Default)]
pub struct Noise {
    pub addresses: Vec<Cidr>,
    /// Parts of the header `User-Agent`.
    pub user_agents: Vec<String>,
    /// `dns`, `http`, or types of DNS.
    pub types: Vec<String>,
}

/// Which requests get an answer, and its name.
#[derive(Debug)]
pub struct Match {
    pub name: String,
    /// In front of the label with the id.
    pub label: Option<String>,
    pub method: Option<String>,
    /// Without the query. `*` at the end stands for anything.
    pub path: Option<String>,
}

#[derive(Debug)]
pub(crate) struct HttpRule {
    of: Match,
    status: StatusCode,
    headers: Vec<(HeaderName, HeaderValue)>,
    body: Bytes,
    pub(crate) delay: Duration,
}

#[derive(Debug)]
struct DnsRule {
    of: Match,
    record: RecordType,
    data: Vec<RData>,
    /// The next value, if each answer has one.
    turn: Option<AtomicUsize>,
}

impl Rules {
    /// Adds an answer to requests. Headers that HTTP does not know are left out.
    pub fn add_http<'h>(
        &mut self,
        of: Match,
        status: u16,
        headers: impl Iterator<Item = (&'h str, &'h str)>,
        body: Bytes,
        delay: Duration,
    ) {
        let header = |(name, value): (&str, &str)| {
            let name = HeaderName::from_bytes(name.as_bytes()).ok()?;
            Some((name, HeaderValue::from_str(value).ok()?))
        };
        self.http.push(HttpRule {
            of,
            status: StatusCode::from_u16(status).unwrap_or_default(),
            headers: headers.filter_map(header).collect(),
            body,
            delay,
        });
    }

    /// Adds records. Values that are none of the type are left out.
    pub fn add_dns(&mut self, of: Match, record: &str, values: &[String], rotates: bool) {
        let data: Vec<RData> = values.iter().filter_map(|it| data(record, it)).collect();
        if let Some(first) = data.first() {
            self.dns.push(DnsRule {
                of,
                record: first.record_type(),
                data,
                turn: rotates.then(AtomicUsize::default),
            });
        }
    }

    /// The answer to a request, if a rule fits.
    pub(crate) fn http(&self, server: &ServerId, head: &head::Head<'_>) -> Option<&HttpRule> {
        let host = String::from_utf8_lossy(head.host);
        let path = head.target.split(|byte| matches!(byte, b'?' | b'#')).next();
        let path = path.unwrap_or_default();
        self.http.iter().find(|rule| {
            let method = rule.of.method.as_ref();
            method.is_none_or(|it| it.as_bytes() == head.method)
                && rule.of.path.as_ref().is_none_or(|it| fits(it, path))
                && rule.of.is_below(server, &host)
        })
    }

    /// The records of a name, with the name of the rule. `name` is called if there is a rule.
    pub(crate) fn dns(
        &self,
        server: &ServerId,
        record: RecordType,
        name: impl FnOnce() -> String,
    ) -> Option<(&str, Vec<RData>)> {
        let mut of_type = self
            .dns
            .iter()
            .filter(|rule| rule.record == record)
            .peekable();
        of_type.peek()?;
        let name = name();
        let rule = of_type.find(|rule| rule.of.is_below(server, &name))?;
        let data = match &rule.turn {
            None => rule.data.clone(),
            Some(turn) => {
                let turn = turn.fetch_add(1, Ordering::Relaxed) % rule.data.len();
                vec![rule.data[turn].clone()]
            }
        };
        Some((&rule.of.name, data))
    }
}

impl HttpRule {
    pub(crate) fn name(&self) -> &str {
        &self.of.name
    }

    pub(crate) fn response(&self) -> Response<Full<Bytes>> {
        let mut response = Response::new(Full::from(self.body.clone()));
        *response.status_mut() = self.status;
        for (name, value) in &self.headers {
            response.headers_mut().append(name, value.clone());
        }
        response
    }
}

impl Match {
    /// Whether the name has the label in front of the one with the id.
    fn is_below(&self, server: &ServerId, name: &str) -> bool {
        let Some(label) = &self.label else {
            return true;
        };
        let server = server.to_string();
        let has_id = |it: &str| it.to_ascii_lowercase().contains(&server);
        let mut before = name.split('.').take_while(|it| !has_id(it));
        before.any(|it| it.eq_ignore_ascii_case(label))
    }
}

/// Whether a path is `wanted`, or begins with what is before its `*`.
fn fits(wanted: &str, path: &[u8]) -> bool {
    match wanted.strip_suffix('*') {
        Some(begin) => path.starts_with(begin.as_bytes()),
        None => path == wanted.as_bytes(),
    }
}

/// A value as in a zone file.
fn data(record: &str, value: &str) -> Option<RData> {
    let mut words = value.splitn(3, ' ');
    match record {
        "A" => Some(RData::A(A(value.parse().ok()?))),
        "AAAA" => Some(RData::AAAA(AAAA(value.parse().ok()?))),
        "TXT" => {
            let texts = value.as_bytes().chunks(TEXT).collect();
            Some(RData::TXT(TXT::from_bytes(texts)))
        }
        "MX" => {
            let preference = words.next()?.parse().ok()?;
            let mut exchange = Name::from_ascii(words.next()?).ok()?;
            exchange.set_fqdn(true);
            Some(RData::MX(MX::new(preference, exchange)))
        }
        "CAA" => Some(caa(
            words.next()?.parse().ok()?,
            words.next()?,
            words.next()?,
        )),
        _ => None,
    }
}

impl Noise {
    pub(crate) fn has(&self, hit: &Hit) -> bool {
        let address: IpAddr = hit.peer.ip();
        if self.addresses.iter().any(|range| range.contains(address)) {
            return true;
        }
        let is_ignored = |name: &str| self.types.iter().any(|it| it.eq_ignore_ascii_case(name));
        match &hit.kind {
            Kind::Dns(dns) => is_ignored("dns") || is_ignored(&dns.record_type),
            Kind::Http(http) => {
                is_ignored("http")
                    || !self.user_agents.is_empty() && {
                        let agent = head::value(&http.head, b"user-agent").to_ascii_lowercase();
                        let agent = String::from_utf8_lossy(&agent);
                        let mut texts = self.user_agents.iter();
                        texts.any(|text| agent.contains(&text.to_ascii_lowercase()))
                    }
            }
        }
    }
}

fn caa(flags: u8, tag: &str, value: &str) -> RData {
    let mut data = CAA::new_issue(flags & 128 != 0, None, Vec::new());
    data.reserved_flags = flags & 127;
    data.tag = tag.to_owned();
    data.value = value.trim_matches('"').as_bytes().to_vec();
    RData::CAA(data)
}
