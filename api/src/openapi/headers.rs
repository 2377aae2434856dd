//! The headers that operations read and answer.

use serde_json::{Value, json};

/// A header, for readers of the document.
pub(super) struct Header {
    name: &'static str,
    description: &'static str,
}

macro_rules! headers {
    ($($id:ident $name:expr, $description:literal;)*) => {
        $(pub(super) const $id: Header = Header {
            name: $name,
            description: $description,
        };)*
    };
}

headers! {
    IF_MATCH "If-Match", "`*`, or the ETags of the versions that may be changed; otherwise 412.";
    IF_ABSENT "If-None-Match", "`*` if there must be none yet; otherwise 412.";
    IF_NONE_MATCH "If-None-Match", "The ETags that the caller has; then 304.";
    RANGE "Range", "A range of bytes; then 206 with `Content-Range`.";
    IF_RANGE "If-Range", "The ETag of which the range is wanted.";
    CONTENT_DIGEST wire::CONTENT_DIGEST_HEADER, "`sha256:` and 64 hexadecimal digits. For a blob it is checked; for an \
        artifact it is the digest over its entries, and must be there.";
    IDEMPOTENCY_KEY "Idempotency-Key", "Repeats with the same key have no further effect.";
    LAST_EVENT_ID "Last-Event-ID", "The id of the event after which to go on.";
    ETAG "ETag", "The version.";
    ACCEPT_RANGES "Accept-Ranges", "`bytes`.";
    REQUEST_ID "X-Request-Id", "Finds the request in the daemon's log.";
    RETRY_AFTER "Retry-After", "With 429 and 503: seconds to wait.";
}

impl Header {
    /// As a parameter of a request.
    pub(super) fn parameter(&self) -> Value {
        json!({
            "name": self.name,
            "in": "header",
            "required": false,
            "description": self.description,
            "schema": { "type": "string" },
        })
    }

    /// As a member of an answer's `headers`.
    pub(super) fn member(&self) -> (String, Value) {
        let header = json!({ "description": self.description, "schema": { "type": "string" } });
        (self.name.to_owned(), header)
    }
}
