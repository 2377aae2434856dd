//! The headers that operations read and set.

use serde_json::{Value, json};

/// A header, for readers of the OpenAPI document.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Header {
    name: &'static str,
    description: &'static str,
    /// None if any text is allowed.
    pattern: Option<&'static str>,
    /// Whether a request without it is refused.
    is_required: bool,
}

macro_rules! headers {
    ($($id:ident $name:expr, $description:literal $(, $pattern:literal)?;)*) => {
        $(pub(crate) const $id: Header = Header {
            name: $name,
            description: $description,
            pattern: headers!(@pattern $($pattern)?),
            is_required: false,
        };)*
    };
    (@pattern) => { None };
    (@pattern $pattern:literal) => { Some($pattern) };
}

headers! {
    IF_MATCH "If-Match", "`*`, or the ETags of the versions that may be changed; otherwise 412.",
        r#"^(\*|(W/)?"[^",]*"( *, *(W/)?"[^",]*")*)$"#;
    IF_ABSENT "If-None-Match",
        "`*`: only if it does not exist yet; otherwise 412. Not together with `If-Match`.", r"^\*$";
    IF_NONE_MATCH "If-None-Match", "The ETags of the versions that the caller has; 304 if one is current.";
    RANGE "Range", "A range of bytes, answered by 206 with `Content-Range`.";
    IF_RANGE "If-Range", "The ETag of the version whose range is requested.";
    CONTENT_DIGEST wire::CONTENT_DIGEST_HEADER,
        "The digest of the content. An upload whose content has another digest is refused.",
        "^sha256:[0-9a-f]{64}$";
    OPTIONAL_ENTRIES_DIGEST wire::CONTENT_DIGEST_HEADER, "The digest over the artifact's entries.", "^sha256:[0-9a-f]{64}$";
    CONTENT_RANGE "Content-Range", "The range and the size; with 416 the size.",
        "^bytes ([0-9]+-[0-9]+|[*])/[0-9]+$";
    IDEMPOTENCY_KEY "Idempotency-Key", "Repeats with the same key have no further effect.",
        "^[!-~]([ -~]{0,198}[!-~])?$";
    LAST_EVENT_ID "Last-Event-ID", "The id of the last received event. The stream continues after it.";
    ETAG "ETag", "The version.", r#"^"[^"]+"$"#;
    ACCEPT_RANGES "Accept-Ranges", "`bytes`.", "^bytes$";
    REFRESH wire::REFRESH_HEADER, "A new session token, which replaces the token of the request.";
    SET_COOKIE "Set-Cookie", "The session of a browser, or its end.";
    REQUEST_ID "X-Request-Id", "Finds the request in the daemon's log.";
    RETRY_AFTER "Retry-After", "With 429 and 503: seconds to wait.", "^[0-9]+$";
    ALLOW "Allow", "With 405: the methods of this path.";
    WWW_AUTHENTICATE "WWW-Authenticate", "With 401: `Bearer`.";
}

pub(super) const ENTRIES_DIGEST: Header = Header {
    is_required: true,
    ..OPTIONAL_ENTRIES_DIGEST
};

impl Header {
    /// As a parameter of a request.
    pub(crate) fn parameter(&self) -> Value {
        json!({
            "name": self.name,
            "in": "header",
            "required": self.is_required,
            "description": self.description,
            "schema": self.schema(),
        })
    }

    /// As a member of an answer's `headers`.
    pub(crate) fn member(&self) -> (String, Value) {
        let header = json!({ "description": self.description, "schema": self.schema() });
        (self.name.to_owned(), header)
    }

    fn schema(&self) -> Value {
        match self.pattern {
            None => json!({ "type": "string" }),
            Some(pattern) => json!({ "type": "string", "minLength": 1, "pattern": pattern }),
        }
    }
}
