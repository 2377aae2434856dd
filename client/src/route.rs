//! Paths and queries of requests.

use std::{fmt, iter};

use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, utf8_percent_encode};
use uuid::Uuid;

use crate::Error;

/// All characters except those that are plain anywhere in a URL.
const ESCAPED: &AsciiSet = &NON_ALPHANUMERIC
    .remove(b'-')
    .remove(b'.')
    .remove(b'_')
    .remove(b'~');

/// A path below the base URL, with its query. A name from a user is always exactly one segment.
#[derive(Debug, Clone)]
pub(crate) struct Route {
    path: String,
    query: Vec<(&'static str, String)>,
}

impl Route {
    pub(crate) fn v0(fixed: &str) -> Self {
        Self::outside(&format!("{}/{fixed}", wire::VERSION_PREFIX))
    }

    /// A path outside of the versioned contract.
    pub(crate) fn outside(path: &str) -> Self {
        Self {
            path: path.to_owned(),
            query: Vec::new(),
        }
    }

    pub(crate) fn then(mut self, fixed: &str) -> Self {
        self.path.push('/');
        self.path.push_str(fixed);
        self
    }

    pub(crate) fn id(self, id: Uuid) -> Self {
        self.then(&id.to_string())
    }

    pub(crate) fn name(self, name: &str) -> Result<Self, Error> {
        if matches!(name, "" | "." | "..") {
            // URL parsers resolve `.` and `..` even if they are escaped, which would change the route.
            return Err(Error::Name {
                name: name.to_owned(),
            });
        }
        Ok(self.then(&utf8_percent_encode(name, ESCAPED).to_string()))
    }

    pub(crate) fn with(mut self, key: &'static str, value: impl fmt::Display) -> Self {
        self.query.push((key, value.to_string()));
        self
    }

    pub(crate) fn with_some(self, key: &'static str, value: Option<impl fmt::Display>) -> Self {
        match value {
            Some(value) => self.with(key, value),
            None => self,
        }
    }

    pub(crate) fn path_and_query(&self) -> String {
        let mut text = self.path.clone();
        let separators = iter::once('?').chain(iter::repeat('&'));
        for (separator, (key, value)) in separators.zip(&self.query) {
            text.push(separator);
            text.push_str(key);
            text.push('=');
            text.extend(utf8_percent_encode(value, ESCAPED));
        }
        text
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn refuses_names_that_would_change_the_path() {
        for name in ["", ".", ".."] {
            assert!(Route::v0("sources").name(name).is_err(), "{name:?}");
        }
        assert!(Route::v0("sources").name("...").is_ok());
    }
}
