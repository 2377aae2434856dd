//! Fixed answers of a callback server, and what it does not record.
//!
//! An answer is fixed bytes, without anything of the request: whoever asks can neither choose it nor see it change. Private
//! addresses are allowed, since people test with them what a target does.

use std::collections::{BTreeMap, BTreeSet};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use serde::{Deserialize, Serialize};
use workflow::notify::NotifyName;

use crate::limits::{
    CALLBACK_IGNORED, CALLBACK_RECORDS, CALLBACK_RULE_BYTES, CALLBACK_RULE_DELAY_MS,
    CALLBACK_RULE_HEADERS, CALLBACK_RULES,
};

/// The fixed answers of a callback server, in their order: the first that fits is given.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct CallbackRules {
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub rules: Vec<CallbackRule>,
    #[serde(default, skip_serializing_if = "Ignored::is_empty")]
    pub ignore: Ignored,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct CallbackRule {
    /// Each interaction has the name of the rule that answered.
    pub name: NotifyName,
    /// Only names with this label in front of the server's.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub label: Option<String>,
    #[serde(flatten)]
    pub answer: RuleAnswer,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "type", rename_all = "snake_case")]
pub enum RuleAnswer {
    Http {
        #[serde(default, skip_serializing_if = "Option::is_none")]
        method: Option<String>,
        /// Of requests without their query. At the end, `*` stands for anything.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        path: Option<String>,
        status: u16,
        #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
        headers: BTreeMap<String, String>,
        #[serde(default, skip_serializing_if = "String::is_empty")]
        body: String,
        #[serde(default, skip_serializing_if = "crate::is_zero")]
        delay_ms: u64,
    },
    Dns {
        /// `A`, `AAAA`, `TXT`, `MX` or `CAA`.
        record: String,
        values: Vec<String>,
        /// Each answer has one value, the next one each time.
        #[serde(default, skip_serializing_if = "std::ops::Not::not")]
        rotate: bool,
    },
}

/// What is answered and not recorded.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Ignored {
    /// Addresses and ranges of senders.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub addresses: Vec<String>,
    /// Texts in the header `User-Agent`, in any case.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub user_agents: Vec<String>,
    /// `dns` or `http`, or a type of DNS such as `AAAA`.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub types: Vec<String>,
}

impl Ignored {
    fn is_empty(&self) -> bool {
        *self == Self::default()
    }
}

/// Headers that are about the connection, or that a browser keeps for the whole domain.
const REFUSED_HEADERS: [&str; 7] = [
    "connection",
    "content-length",
    "keep-alive",
    "strict-transport-security",
    "trailer",
    "transfer-encoding",
    "upgrade",
];

impl CallbackRules {
    pub(crate) fn is_empty(&self) -> bool {
        *self == Self::default()
    }

    /// What is wrong with them, in words.
    pub(crate) fn check(&self) -> Result<(), String> {
        if self.rules.len() > CALLBACK_RULES {
            return Err(format!("there are more than {CALLBACK_RULES} rules"));
        }
        let mut names = BTreeSet::new();
        for rule in &self.rules {
            if !names.insert(&rule.name) {
                return Err(format!("two rules have the name `{}`", rule.name));
            }
            let checked = rule.check();
            checked.map_err(|problem| format!("rule `{}`: {problem}", rule.name))?;
        }
        self.ignore.check()?;
        let bytes = serde_json::to_string(self).map_or(usize::MAX, |text| text.len());
        if bytes > CALLBACK_RULE_BYTES {
            return Err(format!(
                "all rules together have {bytes} bytes; at most {CALLBACK_RULE_BYTES} are kept"
            ));
        }
        Ok(())
    }
}

impl CallbackRule {
    fn check(&self) -> Result<(), String> {
        let is_label = |label: &String| {
            let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_');
            (1..=63).contains(&label.len()) && label.bytes().all(is_plain)
        };
        if self.label.as_ref().is_some_and(|label| !is_label(label)) {
            return Err("label: must have 1 to 63 of a-z, 0-9, - and _".to_owned());
        }
        match &self.answer {
            RuleAnswer::Http {
                method,
                path,
                status,
                headers,
                body: _,
                delay_ms,
            } => {
                if method.as_ref().is_some_and(|it| !is_token(it, 32)) {
                    return Err("method: must be a method such as POST".to_owned());
                }
                check_path(path.as_deref())?;
                if !(200..=599).contains(status) {
                    return Err("status: must be 200 to 599".to_owned());
                }
                if headers.len() > CALLBACK_RULE_HEADERS {
                    return Err(format!("headers: at most {CALLBACK_RULE_HEADERS}"));
                }
                for (name, value) in headers {
                    check_header(name, value)
                        .map_err(|problem| format!("headers: {name:?} {problem}"))?;
                }
                if *delay_ms > CALLBACK_RULE_DELAY_MS {
                    return Err(format!("delay_ms: at most {CALLBACK_RULE_DELAY_MS}"));
                }
                Ok(())
            }
            RuleAnswer::Dns { record, values, .. } => {
                if !(1..=CALLBACK_RECORDS).contains(&values.len()) {
                    return Err(format!("values: 1 to {CALLBACK_RECORDS}"));
                }
                for value in values {
                    check_record(record, value)?;
                }
                Ok(())
            }
        }
    }
}

fn is_token(text: &str, longest: usize) -> bool {
    let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || b"!#$%&'*+-.^_`|~".contains(&byte);
    (1..=longest).contains(&text.len()) && text.bytes().all(is_plain)
}

fn check_path(path: Option<&str>) -> Result<(), String> {
    let Some(path) = path else { return Ok(()) };
    let exact = path.strip_suffix('*').unwrap_or(path);
    let is_plain = |byte: u8| byte.is_ascii_graphic() && !b"?#*".contains(&byte);
    match path.len() <= 1_000 && path.starts_with('/') && exact.bytes().all(is_plain) {
        true => Ok(()),
        false => Err("path: must begin with /, without a query; * only at its end".to_owned()),
    }
}

fn check_header(name: &str, value: &str) -> Result<(), &'static str> {
    if !is_token(name, 100) {
        return Err("is no name of a header");
    }
    if value.len() > 4_000 || !value.bytes().all(|it| matches!(it, b' '..=b'~')) {
        return Err("must have a value of printable ASCII, without line breaks");
    }
    let name = name.to_ascii_lowercase();
    if REFUSED_HEADERS.contains(&&*name) {
        return Err("cannot be set");
    }
    let mut attributes = value.split(';').skip(1);
    let is_domain = |attribute: &str| {
        let name = attribute.split('=').next().unwrap_or_default();
        name.trim().eq_ignore_ascii_case("domain")
    };
    if name == "set-cookie" && attributes.any(is_domain) {
        return Err("must not have a `Domain`: other names would get the cookie");
    }
    Ok(())
}

/// A value as in a zone file.
fn check_record(record: &str, value: &str) -> Result<(), String> {
    let mut words = value.split(' ');
    let is_number = |word: Option<&str>, most: u16| {
        word.and_then(|word| word.parse::<u16>().ok())
            .is_some_and(|number| number <= most)
    };
    let (is_right, example) = match record {
        "A" => (value.parse::<Ipv4Addr>().is_ok(), "127.0.0.1"),
        "AAAA" => (value.parse::<Ipv6Addr>().is_ok(), "::1"),
        "TXT" => (
            (1..=2_000).contains(&value.len()) && !value.contains(char::is_control),
            "a text of at most 2000 bytes",
        ),
        "MX" => {
            let is_right = is_number(words.next(), u16::MAX)
                && words.next().is_some_and(is_domain)
                && words.next().is_none();
            (is_right, "10 mail.example.com")
        }
        "CAA" => {
            let is_right = is_number(words.next(), 255)
                && words.next().is_some_and(|tag| {
                    tag.len() <= 15 && tag.bytes().all(|it| it.is_ascii_alphanumeric())
                })
                && words.next().is_some()
                && value.len() <= 500
                && value.bytes().all(|it| matches!(it, b' '..=b'~'));
            (is_right, "0 issue authority.example")
        }
        other => {
            return Err(format!(
                "record: `{other}` is none of A, AAAA, TXT, MX, CAA"
            ));
        }
    };
    match is_right {
        true => Ok(()),
        false => Err(format!(
            "values: {value:?} is no {record} such as {example}"
        )),
    }
}

fn is_domain(text: &str) -> bool {
    let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_');
    let is_label = |label: &str| (1..=63).contains(&label.len()) && label.bytes().all(is_plain);
    let text = text.strip_suffix('.').unwrap_or(text);
    text.len() <= 253 && text.split('.').all(is_label)
}

impl Ignored {
    fn check(&self) -> Result<(), String> {
        for list in [&self.addresses, &self.user_agents, &self.types] {
            if list.len() > CALLBACK_IGNORED {
                return Err(format!("ignore: at most {CALLBACK_IGNORED} of each"));
            }
        }
        let is_range = |text: &str| {
            let (address, length) = match text.split_once('/') {
                Some((address, length)) => (address, length.parse::<u8>().ok()),
                None => (text, Some(0)),
            };
            match (address.parse(), length) {
                (Ok(IpAddr::V4(_)), Some(length)) => length <= 32,
                (Ok(IpAddr::V6(_)), Some(length)) => length <= 128,
                (_, None) | (Err(_), _) => false,
            }
        };
        if let Some(wrong) = self.addresses.iter().find(|it| !is_range(it)) {
            return Err(format!(
                "ignore: {wrong:?} is no address such as 192.0.2.7, and no range such as 192.0.2.0/24"
            ));
        }
        let is_agent = |text: &str| (1..=200).contains(&text.len());
        if !self.user_agents.iter().all(|it| is_agent(it)) {
            return Err("ignore: a user agent has 1 to 200 bytes".to_owned());
        }
        let is_type = |text: &str| is_token(text, 16);
        match self.types.iter().find(|it| !is_type(it)) {
            Some(wrong) => Err(format!(
                "ignore: {wrong:?} is neither dns nor http, and no type such as AAAA"
            )),
            None => Ok(()),
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    fn check(rules: Value) -> Result<(), String> {
        let rules: CallbackRules = serde_json::from_value(rules).unwrap();
        rules.check()
    }

    fn http(member: &str, value: Value) -> Result<(), String> {
        let mut rule = json!({"name": "r", "type": "http", "status": 200});
        rule[member] = value;
        check(json!({ "rules": [rule] }))
    }

    #[test]
    fn answers_cannot_break_out_of_their_place() {
        for (member, value) in [
            ("method", json!("POST")),
            ("path", json!("/a/*")),
            ("label", json!("re_bind-1")),
            ("status", json!(302)),
            ("headers", json!({"Location": "http://169.254.169.254/"})),
            ("headers", json!({"Set-Cookie": "domain=1; Path=/"})),
            ("delay_ms", json!(30_000)),
        ] {
            assert_eq!(http(member, value.clone()), Ok(()), "{member} {value}");
        }
        for (member, value) in [
            ("method", json!("GET /")),
            ("path", json!("a")),
            ("path", json!("/a?b")),
            ("path", json!("/*/b")),
            ("label", json!("a.b")),
            ("label", json!("")),
            ("status", json!(101)),
            ("status", json!(999)),
            ("headers", json!({"X": "a\r\nSet-Cookie: b"})),
            ("headers", json!({"X": "a\nb"})),
            ("headers", json!({"X": "\u{0}"})),
            ("headers", json!({"X\r\nY": "a"})),
            ("headers", json!({"": "a"})),
            ("headers", json!({"Strict-Transport-Security": "max-age=1"})),
            ("headers", json!({"content-Length": "1"})),
            ("headers", json!({"set-cookie": "a=b; DOMAIN =example.com"})),
            ("delay_ms", json!(30_001)),
            ("body", json!("a".repeat(CALLBACK_RULE_BYTES))),
        ] {
            assert!(http(member, value.clone()).is_err(), "{member} {value}");
        }
        let refused = http("headers", json!({"X": "a\r\nb"})).unwrap_err();
        assert!(refused.starts_with("rule `r`: headers: \"X\""), "{refused}");
    }

    #[test]
    fn records_are_of_their_type() {
        let dns = |record: &str, value: &str| {
            let rule = json!({"name": "r", "type": "dns", "record": record, "values": [value]});
            check(json!({ "rules": [rule] }))
        };
        for (record, value) in [
            ("A", "169.254.169.254"),
            ("AAAA", "::1"),
            ("TXT", "v=spf1 -all"),
            ("MX", "10 mail.example.com."),
            ("CAA", "0 issue authority.example"),
        ] {
            assert_eq!(dns(record, value), Ok(()), "{record} {value}");
        }
        for (record, value) in [
            ("A", "::1"),
            ("AAAA", "127.0.0.1"),
            ("TXT", "a\u{0}"),
            ("MX", "mail.example.com"),
            ("MX", "10 a..b"),
            ("MX", "70000 a"),
            ("CAA", "256 issue a"),
            ("CAA", "0 issue"),
            ("CNAME", "a.example"),
        ] {
            assert!(dns(record, value).is_err(), "{record} {value}");
        }
        let none = json!({"name": "r", "type": "dns", "record": "A", "values": []});
        assert!(check(json!({ "rules": [none] })).is_err());
    }

    #[test]
    fn rules_and_ignored_senders_are_limited() {
        let rule =
            |number: usize| json!({"name": format!("r{number}"), "type": "http", "status": 200});
        let rules = |count: usize| json!({ "rules": (0..count).map(rule).collect::<Vec<_>>() });
        assert_eq!(check(rules(50)), Ok(()));
        assert!(check(rules(51)).unwrap_err().contains("more than 50"));
        let twice = json!({ "rules": [rule(1), rule(1)] });
        assert!(check(twice).unwrap_err().contains("two rules"));
        let ignore = |member: &str, value: &str| check(json!({ "ignore": { member: [value] } }));
        for (member, value) in [
            ("addresses", "192.0.2.0/24"),
            ("addresses", "2001:db8::1"),
            ("user_agents", "Mozilla"),
            ("types", "AAAA"),
        ] {
            assert_eq!(ignore(member, value), Ok(()));
        }
        for (member, value) in [
            ("addresses", "192.0.2.0/33"),
            ("addresses", "example.com"),
            ("user_agents", ""),
            ("types", "a b"),
        ] {
            assert!(ignore(member, value).is_err(), "{value}");
        }
    }
}
