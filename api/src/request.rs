//! A request as handlers see it: matched and authenticated, with its body unread.

use std::sync::Arc;

use bytes::Bytes;
use http::header::{CONTENT_TYPE, HeaderName, HeaderValue, IF_NONE_MATCH};
use http::{HeaderMap, Method};
use model::Timestamp;
use serde::Serialize;
use uuid::Uuid;

use crate::body::Body;
use crate::failure::{Failure, shorten};
use crate::limits::{DEFAULT_PAGE, PAGE};
use crate::peer::Peer;

/// What is known of a request as it arrives.
#[derive(Debug, Clone)]
pub(crate) struct Arrival {
    /// The id under which the log has the request.
    pub(crate) id: Uuid,
    pub(crate) method: Method,
    pub(crate) path: String,
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
    /// What `/v0` would be asked for a part of a page: the same caller, other parameters and no conditions. Empty values of
    /// the query are those of fields that were left empty, and do not count.
    pub(crate) fn asking(&self, parameters: &[&str], query: &[(&str, &str)]) -> Self {
        let given = query.iter().filter(|(_, value)| !value.is_empty());
        let pairs = given.map(|(name, value)| ((*name).to_owned(), (*value).to_owned()));
        Self {
            arrival: self.arrival.clone(),
            parameters: parameters.iter().map(|it| (*it).to_owned()).collect(),
            query: Query {
                pairs: pairs.collect(),
                known: None,
            },
            headers: HeaderMap::new(),
            body: Body::of(Bytes::new()),
        }
    }

    /// The same with a body, and with the idempotency key of the form that was sent.
    pub(crate) fn telling<T: Serialize>(
        &self,
        parameters: &[&str],
        body: &T,
        key: Option<&str>,
    ) -> Result<Self, Failure> {
        let bytes = serde_json::to_vec(body).map_err(|error| Failure::internal(&error))?;
        let mut request = self.asking(parameters, &[]);
        request.body = Body::of(Bytes::from(bytes));
        let headers = &mut request.headers;
        headers.insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
        if let Some(key) = key {
            let key = HeaderValue::from_str(key)
                .map_err(|_| Failure::invalid("idempotency_key", "is not the key of a form"))?;
            headers.insert("idempotency-key", key);
        }
        Ok(request)
    }

    /// The n-th parameter of the path. The route table fixes how many there are.
    pub(crate) fn parameter(&self, n: usize) -> &str {
        self.parameters.get(n).map_or("", String::as_str)
    }

    /// The value of a header, if it is text.
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

/// The query parameters.
pub(crate) struct Query {
    pairs: Vec<(String, String)>,
    /// Those that the route takes; none for a question of our own.
    known: Option<&'static [&'static str]>,
}

impl Query {
    /// Reads the parameters of a route that takes these.
    ///
    /// # Errors
    /// If there is another one, which would have no effect, or one of them stands twice.
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

    /// All of them, in the order in which they stand.
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

    /// A count from 1 up.
    pub(crate) fn count(&self, name: &str) -> Result<Option<u64>, Failure> {
        match self.number(name)? {
            Some(0) => Err(Failure::invalid(name, "must be 1 or more")),
            count => Ok(count),
        }
    }

    /// A time with its zone.
    pub(crate) fn time(&self, name: &str) -> Result<Option<Timestamp>, Failure> {
        let parsed = self.get(name).map(str::parse).transpose();
        parsed.map_err(|_| Failure::invalid(name, "must be a time such as 2026-11-21T10:00:00Z"))
    }

    /// How many items a page of a list has.
    pub(crate) fn limit(&self) -> Result<usize, Failure> {
        self.limit_of(PAGE)
    }

    /// How many items a page has that may have at most `most`.
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
