//! The requests and responses of a route, for readers of the OpenAPI document.

use schemars::{JsonSchema, Schema, SchemaGenerator};

use super::headers::{self, Header};

type SchemaOf = fn(&mut SchemaGenerator) -> Schema;

#[derive(Debug, Clone, Copy)]
pub(crate) struct Operation {
    pub(crate) summary: &'static str,
    pub(crate) body: RequestBody,
    /// Request headers, except the common headers.
    pub(crate) reads: &'static [Header],
    /// The statuses of a successful response.
    pub(crate) statuses: &'static [u16],
    pub(crate) answer: Answer,
    /// Headers of a successful response, except the common headers.
    pub(crate) sets: &'static [Header],
    /// Whether it may answer 206 with the requested part.
    pub(crate) has_parts: bool,
    /// Whether it may answer 304, because the caller has the current version.
    pub(crate) is_cached: bool,
}

#[derive(Debug, Clone, Copy)]
pub(crate) enum RequestBody {
    None,
    Json(SchemaOf),
    /// JSON that may be omitted.
    Optional(SchemaOf),
    Bytes,
}

#[derive(Debug, Clone, Copy)]
pub(crate) enum Answer {
    Nothing,
    Json(SchemaOf),
    /// Text of one of these media types.
    Text(&'static [&'static str]),
    /// Bytes of this media type.
    Bytes(&'static str),
}

/// Answers nothing, with 204.
pub(super) const fn does(summary: &'static str) -> Operation {
    Operation {
        summary,
        body: RequestBody::None,
        reads: &[],
        statuses: &[204],
        answer: Answer::Nothing,
        sets: &[],
        has_parts: false,
        is_cached: false,
    }
}

const fn answers_with(summary: &'static str, answer: Answer) -> Operation {
    Operation {
        statuses: &[200],
        answer,
        ..does(summary)
    }
}

pub(super) const fn answers<T: JsonSchema>(summary: &'static str) -> Operation {
    answers_with(summary, Answer::Json(SchemaGenerator::subschema_for::<T>))
}

/// Answers a page of a list.
pub(super) const fn lists<T: JsonSchema>(summary: &'static str) -> Operation {
    answers::<wire::Page<T>>(summary)
}

pub(super) const fn takes<B: JsonSchema, T: JsonSchema>(summary: &'static str) -> Operation {
    Operation {
        body: RequestBody::Json(SchemaGenerator::subschema_for::<B>),
        ..answers::<T>(summary)
    }
}

/// Takes an optional body.
pub(super) const fn may_take<B: JsonSchema, T: JsonSchema>(summary: &'static str) -> Operation {
    Operation {
        body: RequestBody::Optional(SchemaGenerator::subschema_for::<B>),
        ..answers::<T>(summary)
    }
}

/// Takes a body and answers nothing.
pub(super) const fn takes_only<B: JsonSchema>(summary: &'static str) -> Operation {
    Operation {
        body: RequestBody::Json(SchemaGenerator::subschema_for::<B>),
        ..does(summary)
    }
}

pub(super) const fn text(summary: &'static str, kinds: &'static [&'static str]) -> Operation {
    answers_with(summary, Answer::Text(kinds))
}

/// Takes a body and answers JSON lines.
pub(super) const fn renders<B: JsonSchema>(summary: &'static str) -> Operation {
    Operation {
        body: RequestBody::Json(SchemaGenerator::subschema_for::<B>),
        ..text(summary, &[wire::NDJSON_MEDIA_TYPE])
    }
}

/// Answers all bytes, never a part.
pub(super) const fn sends(summary: &'static str, kind: &'static str) -> Operation {
    answers_with(summary, Answer::Bytes(kind))
}

/// Answers all bytes, a part of them, or that the caller has the current version.
pub(super) const fn downloads(summary: &'static str, kind: &'static str) -> Operation {
    Operation {
        has_parts: true,
        is_cached: true,
        ..sends(summary, kind)
            .reads(&[headers::RANGE, headers::IF_RANGE, headers::IF_NONE_MATCH])
            .sets(&[headers::ETAG, headers::ACCEPT_RANGES])
    }
}

/// Answers the bytes of a blob. A request may name the version that it expects.
pub(super) const fn downloads_blob(summary: &'static str) -> Operation {
    downloads(summary, "application/octet-stream")
        .reads(&[
            headers::RANGE,
            headers::IF_RANGE,
            headers::IF_MATCH,
            headers::IF_NONE_MATCH,
        ])
        .sets(&[
            headers::ETAG,
            headers::ACCEPT_RANGES,
            headers::CONTENT_DIGEST,
        ])
}

/// Answers the headers for a whole blob.
pub(super) const fn inspects_blob(summary: &'static str) -> Operation {
    Operation {
        answer: Answer::Nothing,
        has_parts: false,
        ..downloads_blob(summary).reads(&[headers::IF_MATCH, headers::IF_NONE_MATCH])
    }
}

pub(super) const fn uploads_blob(summary: &'static str) -> Operation {
    answers::<wire::Blob>(summary)
        .stores()
        .takes_bytes()
        .reads(&[
            headers::IF_MATCH,
            headers::IF_ABSENT,
            headers::CONTENT_DIGEST,
        ])
}

impl Operation {
    pub(super) const fn statuses(self, statuses: &'static [u16]) -> Self {
        Self { statuses, ..self }
    }

    pub(super) const fn reads(self, reads: &'static [Header]) -> Self {
        Self { reads, ..self }
    }

    pub(super) const fn sets(self, sets: &'static [Header]) -> Self {
        Self { sets, ..self }
    }

    pub(super) const fn takes_bytes(self) -> Self {
        Self {
            body: RequestBody::Bytes,
            ..self
        }
    }

    /// Makes a blob with 201, or replaces one with 200.
    pub(super) const fn stores(self) -> Self {
        self.statuses(&[200, 201])
            .reads(&[headers::IF_MATCH, headers::IF_ABSENT])
            .sets(&[headers::ETAG])
    }

    /// Answers 304 if the caller has the current version.
    pub(super) const fn cached(self) -> Self {
        Self {
            is_cached: true,
            ..self.reads(&[headers::IF_NONE_MATCH]).sets(&[headers::ETAG])
        }
    }
}
