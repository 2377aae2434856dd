//! Documents that change only with a release of the daemon: the JSON Schema of workflow files, for editors, and the API document,
//! for programs and people.

use std::sync::LazyLock;

use http::header::{CACHE_CONTROL, CONTENT_SECURITY_POLICY, CONTENT_TYPE, ETAG};
use warp::Reply;
use warp::reply::Response;

use crate::openapi::{DOCUMENT, page};
use crate::reply;
use crate::request::Request;

/// Editors request the schema whenever they start.
const LIFE: &str = "public, max-age=3600";

/// The page has a style and no script.
const POLICY: &str =
    "default-src 'none'; style-src 'unsafe-inline'; base-uri 'none'; frame-ancestors 'none'";

struct Document {
    text: String,
    etag: String,
}

impl Document {
    fn new(text: String) -> Self {
        let etag = format!("\"{}\"", workflow::sha256(text.as_bytes()));
        Self { text, etag }
    }

    fn answer(&self, request: &Request, kind: &str) -> Response {
        let mut response = if request.has_already(&self.etag) {
            reply::not_modified(&self.etag)
        } else {
            let mut response = self.text.clone().into_response();
            reply::set(&mut response, CONTENT_TYPE, kind);
            reply::set(&mut response, ETAG, &self.etag);
            response
        };
        reply::set(&mut response, CACHE_CONTROL, LIFE);
        response
    }
}

static WORKFLOW: LazyLock<Document> =
    LazyLock::new(|| Document::new(workflow::json_schema().to_string()));
static OPENAPI: LazyLock<Document> = LazyLock::new(|| Document::new(DOCUMENT.to_string()));
static DOCS: LazyLock<Document> = LazyLock::new(|| Document::new(page(&DOCUMENT)));

pub(crate) fn workflow(request: &Request) -> Response {
    WORKFLOW.answer(request, "application/json")
}

pub(crate) fn openapi(request: &Request) -> Response {
    OPENAPI.answer(request, "application/json")
}

pub(crate) fn docs(request: &Request) -> Response {
    let mut response = DOCS.answer(request, "text/html; charset=utf-8");
    reply::set(&mut response, CONTENT_SECURITY_POLICY, POLICY);
    response
}
