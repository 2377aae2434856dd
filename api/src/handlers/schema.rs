//! `/v0/schema/workflow.json`: the JSON Schema of workflow files, for editors.

use std::sync::LazyLock;

use http::header::{CACHE_CONTROL, CONTENT_TYPE, ETAG};
use warp::Reply;
use warp::reply::Response;

use crate::reply;
use crate::request::Request;

/// Editors ask at every start, but the schema changes only with a release of the daemon.
const LIFE: &str = "public, max-age=3600";

/// The schema as text, with its tag.
struct Document {
    text: String,
    etag: String,
}

static DOCUMENT: LazyLock<Document> = LazyLock::new(|| {
    let text = workflow::json_schema().to_string();
    let etag = format!("\"{}\"", workflow::sha256(text.as_bytes()));
    Document { text, etag }
});

/// The schema of workflow files.
pub(super) fn workflow(request: &Request) -> Response {
    let Document { text, etag } = &*DOCUMENT;
    let mut response = if request.has_already(etag) {
        reply::not_modified(etag)
    } else {
        let mut response = text.clone().into_response();
        reply::set(&mut response, CONTENT_TYPE, "application/json");
        reply::set(&mut response, ETAG, etag);
        response
    };
    reply::set(&mut response, CACHE_CONTROL, LIFE);
    response
}
