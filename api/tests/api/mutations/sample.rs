//! Requests that can be mutated, and the choices of a mutation.

use http::{HeaderValue, Method, Uri};
use model::Entropy;
use serde_json::{Value, json};

use crate::service::Seeded;

/// Values that replace values of a request. Some are valid in some places.
const WORDS: &[&str] = &[
    "",
    "0",
    "-1",
    "00",
    "18446744073709551615",
    "18446744073709551616",
    "9999999999999999999999999999999999",
    "1e400",
    "NaN",
    "*",
    "\"",
    "\"\"",
    "W/\"1\"",
    "\"1\", \"2\",",
    "bytes=",
    "bytes=-",
    "bytes=0-0",
    "bytes=-1",
    "bytes=18446744073709551615-18446744073709551615",
    "bytes=1-0",
    "bytes=0-1,3-4",
    "sha256:",
    "sha256:\u{fc}",
    "chunked",
    "application/json",
    "application/x-ndjson",
    "text/event-stream",
    "2026-11-20T12:00:00Z",
    "+262142-12-31T23:59:60Z",
    "-262143-01-01T00:00:00+23:59",
    "2026-11-20T24:00:00.999999999999+00:00",
    "11111111-1111-4111-8111-111111111111",
    "00000000-0000-0000-0000-000000000000",
    "ffffffff-ffff-7fff-bfff-ffffffffffff",
    "..",
    "/",
    "a/../b",
    "true",
    "1h",
    "99999999999999999999d",
    "\u{0}",
    "\u{7f}",
    "a\tb",
    "\u{202e}\u{fe0f}\u{1f980}",
    "%",
    "%00",
    "%ff%fe",
    "%2F%2e%2e",
];

/// Headers that some route reads.
const HEADERS: &[&str] = &[
    "accept",
    "authorization",
    "content-length",
    "content-type",
    "cookie",
    "expect",
    "idempotency-key",
    "if-match",
    "if-none-match",
    "if-range",
    "last-event-id",
    "origin",
    "range",
    "transfer-encoding",
    "x-content-digest",
    "x-forwarded-for",
];

/// Repeatable choices.
pub(super) struct Choices(pub(super) Seeded);

impl Choices {
    pub(super) fn below(&mut self, end: usize) -> usize {
        let mut bytes = [0; 8];
        self.0.fill(&mut bytes);
        usize::try_from(u64::from_le_bytes(bytes) >> 1).unwrap() % end.max(1)
    }

    pub(super) fn one_of<T: Clone>(&mut self, all: &[T]) -> T {
        all[self.below(all.len())].clone()
    }

    pub(super) fn word(&mut self) -> String {
        match self.below(12) {
            0 => "x".repeat(10_000),
            1 => "é".repeat(3_000),
            _ => self.one_of(WORDS).to_owned(),
        }
    }

    /// A random JSON value.
    pub(super) fn json(&mut self) -> Value {
        match self.below(9) {
            0 => Value::Null,
            1 => json!(true),
            2 => json!(-1),
            3 => json!(u64::MAX),
            4 => json!(1.5e300),
            5 => json!([]),
            6 => json!({"": {}}),
            7 => json!(vec![0; 3_000]),
            _ => json!(self.word()),
        }
    }
}

/// A request that can be mutated.
#[derive(Debug, Clone)]
pub(super) struct Sample {
    pub(super) method: Method,
    pub(super) path: String,
    pub(super) query: Vec<(String, String)>,
    pub(super) headers: Vec<(String, Vec<u8>)>,
    pub(super) body: Vec<u8>,
}

impl Sample {
    pub(super) fn new(method: Method, path: &str, token: &str) -> Self {
        let mut sample = Self {
            method,
            path: path.to_owned(),
            query: Vec::new(),
            headers: Vec::new(),
            body: Vec::new(),
        };
        if !token.is_empty() {
            sample.set("authorization", format!("Bearer {token}").into_bytes());
        }
        sample
    }

    pub(super) fn json(mut self, body: &Value) -> Self {
        self.set("content-type", b"application/json".to_vec());
        self.body = body.to_string().into_bytes();
        self
    }

    pub(super) fn set(&mut self, name: &str, value: Vec<u8>) {
        self.headers.retain(|(known, _)| known != name);
        self.headers.push((name.to_owned(), value));
    }

    pub(super) fn set_parameter(&mut self, name: &str, value: &str) {
        self.query.retain(|(known, _)| known != name);
        self.query.push((name.to_owned(), value.to_owned()));
    }

    pub(super) fn mutate(&mut self, choices: &mut Choices) {
        match choices.below(8) {
            0 | 1 => self.mutate_header(choices),
            2 => self.mutate_query(choices),
            3 => self.mutate_path(choices),
            4 => mutate_bytes(&mut self.body, choices),
            _ => match serde_json::from_slice::<Value>(&self.body) {
                Ok(mut body) => {
                    mutate_json(&mut body, choices);
                    self.body = body.to_string().into_bytes();
                }
                Err(_) if self.query.is_empty() => mutate_bytes(&mut self.body, choices),
                Err(_) => self.mutate_query(choices),
            },
        }
    }

    pub(super) fn mutate_header(&mut self, choices: &mut Choices) {
        let name = choices.one_of(HEADERS);
        let known = self.headers.iter().find(|(known, _)| known == name);
        let value = match known {
            Some((_, value)) if choices.below(2) == 0 => {
                let mut value = value.clone();
                mutate_bytes(&mut value, choices);
                value
            }
            Some(_) | None => choices.word().into_bytes(),
        };
        if choices.below(8) == 0 {
            // Adds the same header a second time.
            self.headers.push((name.to_owned(), value));
        } else {
            self.set(name, value);
        }
    }

    pub(super) fn mutate_query(&mut self, choices: &mut Choices) {
        let word = choices.word();
        let count = self.query.len();
        if count == 0 || choices.below(8) == 0 {
            self.query.push((word, choices.word()));
            return;
        }
        let place = choices.below(count);
        match choices.below(4) {
            0 => {
                let mut value = self.query[place].1.clone().into_bytes();
                mutate_bytes(&mut value, choices);
                self.query[place].1 = String::from_utf8_lossy(&value).into_owned();
            }
            _ => self.query[place].1 = word,
        }
    }

    pub(super) fn mutate_path(&mut self, choices: &mut Choices) {
        let mut segments: Vec<String> = self.path.split('/').map(str::to_owned).collect();
        let place = choices.below(segments.len());
        segments[place] = choices.word();
        self.path = segments.join("/");
    }

    /// The target of the request. Characters that are invalid in a URI are escaped.
    pub(super) fn target(&self) -> String {
        let escape = |text: &str| {
            let mut escaped = String::new();
            for byte in text.bytes() {
                match byte {
                    b'&' | b'#' | b'?' | b'"' | b'<' | b'>' | b'\\' | b'^' | b'`' | b'{' | b'|'
                    | b'}' => escaped.push_str(&format!("%{byte:02x}")),
                    0x21..0x7f => escaped.push(char::from(byte)),
                    _ => escaped.push_str(&format!("%{byte:02x}")),
                }
            }
            escaped
        };
        let pairs: Vec<String> = self
            .query
            .iter()
            .map(|(name, value)| format!("{}={}", escape(name), escape(value)))
            .collect();
        let path = escape(&self.path);
        match pairs.is_empty() {
            true => path,
            false => format!("{path}?{}", pairs.join("&")),
        }
    }

    /// Whether the request is valid HTTP with the correct length. If not, the HTTP library may answer or close.
    pub(super) fn is_http(&self) -> bool {
        let is_framed = |(name, _): &(String, Vec<u8>)| {
            name != "content-length" && name != "transfer-encoding" && name != "expect"
        };
        self.headers.iter().all(is_framed)
            && self
                .headers
                .iter()
                .all(|(_, value)| HeaderValue::from_bytes(value).is_ok())
            && self.path.starts_with('/')
            && Uri::try_from(self.target()).is_ok()
    }

    pub(super) fn bytes(&self) -> Vec<u8> {
        let mut bytes = format!(
            "{} {} HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\n",
            self.method,
            self.target()
        )
        .into_bytes();
        for (name, value) in &self.headers {
            bytes.extend_from_slice(name.as_bytes());
            bytes.extend_from_slice(b": ");
            bytes.extend_from_slice(value);
            bytes.extend_from_slice(b"\r\n");
        }
        let is_framed = self
            .headers
            .iter()
            .any(|(name, _)| name == "content-length" || name == "transfer-encoding");
        if !is_framed {
            let length = format!("content-length: {}\r\n", self.body.len());
            bytes.extend_from_slice(length.as_bytes());
        }
        bytes.extend_from_slice(b"\r\n");
        bytes.extend_from_slice(&self.body);
        bytes
    }
}

/// Changes some bytes.
pub(super) fn mutate_bytes(bytes: &mut Vec<u8>, choices: &mut Choices) {
    for _ in 0..=choices.below(3) {
        let place = choices.below(bytes.len());
        let end = place + choices.below(bytes.len() - place);
        match choices.below(5) {
            0 if !bytes.is_empty() => bytes[place] ^= 1 << choices.below(8),
            1 => bytes.truncate(place),
            2 => drop(bytes.drain(place..end)),
            3 => {
                let copied = bytes[place..end].to_vec();
                bytes.splice(place..place, copied);
            }
            _ => drop(bytes.splice(place..place, choices.word().into_bytes())),
        }
    }
}

/// Changes one value, or adds or removes a member.
pub(super) fn mutate_json(value: &mut Value, choices: &mut Choices) {
    let goes_deeper = choices.below(3) > 0;
    match value {
        Value::Object(members) if goes_deeper && !members.is_empty() => {
            let names: Vec<String> = members.keys().cloned().collect();
            let name = choices.one_of(&names);
            match choices.below(6) {
                0 => drop(members.remove(&name)),
                1 => drop(members.insert(choices.word(), choices.json())),
                _ => mutate_json(&mut members[&name], choices),
            }
        }
        Value::Array(items) if goes_deeper && !items.is_empty() => {
            let place = choices.below(items.len());
            match choices.below(6) {
                0 => drop(items.remove(place)),
                1 => items.push(items[place].clone()),
                2 => items.reverse(),
                _ => mutate_json(&mut items[place], choices),
            }
        }
        other => *other = choices.json(),
    }
}
