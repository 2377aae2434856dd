//! A request as handlers see it: matched and authenticated, with its body unread.

use std::sync::Arc;

use http::header::{HeaderName, IF_NONE_MATCH};
use http::{HeaderMap, Method};
use model::Timestamp;
use uuid::Uuid;

use crate::base::BasePath;
use crate::body::Body;
use crate::failure::{Failure, shorten};
use crate::limits::{DEFAULT_PAGE, PAGE};
use crate::peer::Peer;

#[derive(Debug, Clone)]
pub(crate) struct Arrival {
    /// The id of the request in the log.
    pub(crate) id: Uuid,
    pub(crate) method: Method,
    /// The path without `base`.
    pub(crate) path: String,
    /// What the addresses of pages begin with.
    pub(crate) base: BasePath,
    pub(crate) peer: Peer,
}

pub(crate) struct Request {
    pub(crate) arrival: Arc<Arrival>,
    pub(crate) parameters: Vec<String>,
    pub(crate) query: Query,
    pub(crate) headers: HeaderMap,
    pub(crate) body: Body,
}

impl Request {
    /// The n-th parameter of the path. The route table fixes how many there are.
    pub(crate) fn parameter(&self, n: usize) -> &str {
        self.parameters.get(n).map_or("", String::as_str)
    }

    /// The value of a header, if it is ASCII.
    pub(crate) fn header(&self, name: HeaderName) -> Option<&str> {
        self.headers.get(name)?.to_str().ok()
    }

    /// Whether the caller already has the version with this tag (`If-None-Match`).
    pub(crate) fn has_already(&self, etag: &str) -> bool {
        let is_this = |tag: &str| tag == "*" || tag.strip_prefix("W/").unwrap_or(tag) == etag;
        self.header(IF_NONE_MATCH)
            .is_some_and(|tags| tags.split(',').map(str::trim).any(is_this))
    }
}

pub(crate) struct Query {
    pairs: Vec<(String, String)>,
    /// The parameters of the route. None on pages, because their handlers also ask for parameters that only `/v0` takes.
    known: Option<&'static [&'static str]>,
}

impl Query {
    /// Reads the parameters of a route that takes `known`.
    ///
    /// # Errors
    /// If there is an unknown parameter, or the same one twice.
    pub(crate) fn parse(raw: &str, known: &'static [&'static str]) -> Result<Self, Failure> {
        let mut query = Self {
            pairs: Vec::new(),
            known: Some(known),
        };
        for (name, value) in form_urlencoded::parse(raw.as_bytes()) {
            let (name, value) = (name.into_owned(), value.into_owned());
            if !known.contains(&name.as_str()) {
                let takes = match known {
                    [] => "this route takes none".to_owned(),
                    known => format!("this route takes {}", known.join(", ")),
                };
                let problem = format!("is not a parameter; {takes}");
                return Err(Failure::invalid(&shorten(&name), problem));
            }
            if query.get(&name).is_some() {
                return Err(Failure::invalid(&name, "stands more than once"));
            }
            query.pairs.push((name, value));
        }
        Ok(query)
    }

    /// Reads the parameters of a page. Forms also send empty fields; those do not count.
    pub(crate) fn of_page(raw: &str, known: &'static [&'static str]) -> Result<Self, Failure> {
        let mut query = Self::parse(raw, known)?;
        query.pairs.retain(|(_, value)| !value.is_empty());
        query.known = None;
        Ok(query)
    }

    /// The same query without spaces around values that people type.
    pub(crate) fn trimmed(&self) -> Self {
        let pairs = self.pairs.iter();
        let pairs = pairs.map(|(name, value)| (name.clone(), value.trim().to_owned()));
        Self {
            pairs: pairs.filter(|(_, value)| !value.is_empty()).collect(),
            known: self.known,
        }
    }

    pub(crate) fn pairs(&self) -> &[(String, String)] {
        &self.pairs
    }

    pub(crate) fn get(&self, name: &str) -> Option<&str> {
        debug_assert!(
            self.known.is_none_or(|known| known.contains(&name)),
            "{name} is not in the table of routes"
        );
        self.pairs
            .iter()
            .find(|(found, _)| found == name)
            .map(|(_, value)| value.as_str())
    }

    pub(crate) fn owned(&self, name: &str) -> Option<String> {
        self.get(name).map(str::to_owned)
    }

    pub(crate) fn flag(&self, name: &str) -> Result<bool, Failure> {
        match self.get(name) {
            None | Some("false") => Ok(false),
            Some("true" | "") => Ok(true),
            Some(_) => Err(Failure::invalid(name, "must be `true` or `false`")),
        }
    }

    pub(crate) fn number(&self, name: &str) -> Result<Option<u64>, Failure> {
        self.get(name)
            .map(|value| {
                value
                    .parse()
                    .map_err(|_| Failure::invalid(name, "must be a whole number"))
            })
            .transpose()
    }

    pub(crate) fn count(&self, name: &str) -> Result<Option<u64>, Failure> {
        match self.number(name)? {
            Some(0) => Err(Failure::invalid(name, "must be 1 or more")),
            count => Ok(count),
        }
    }

    pub(crate) fn time(&self, name: &str) -> Result<Option<Timestamp>, Failure> {
        let parsed = self.get(name).map(str::parse).transpose();
        parsed.map_err(|_| Failure::invalid(name, "must be a time such as 2026-11-21T10:00:00Z"))
    }

    pub(crate) fn limit(&self) -> Result<usize, Failure> {
        self.limit_of(PAGE)
    }

    /// The number of items of a page, at most `most`.
    pub(crate) fn limit_of(&self, most: usize) -> Result<usize, Failure> {
        let limit = self.number("limit")?.map_or(DEFAULT_PAGE, |limit| {
            usize::try_from(limit).unwrap_or(usize::MAX)
        });
        if (1..=most).contains(&limit) {
            Ok(limit)
        } else {
            Err(Failure::invalid(
                "limit",
                format!("must be from 1 to {most}"),
            ))
        }
    }
}
