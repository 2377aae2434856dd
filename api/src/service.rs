//! From a request to its handler: match, authenticate, bound, handle, answer.

use std::panic::AssertUnwindSafe;
use std::sync::Arc;

use bytes::Buf;
use futures_util::{FutureExt, Stream};
use http::header::{ALLOW, HeaderName, X_CONTENT_TYPE_OPTIONS};
use http::{HeaderMap, Method};
use reconciler::Handle;
use uuid::Uuid;
use warp::filters::path::FullPath;
use warp::reply::Response;
use warp::{Filter, Rejection};
use wire::ErrorCode;

use crate::access::authenticate;
use crate::body::Body;
use crate::events::Hub;
use crate::failure::{Failure, shorten};
use crate::handlers::{self, LINKED_BLOBS};
use crate::reply;
use crate::request::{Query, Request};
use crate::routes::{Matched, find};

static REQUEST_ID: HeaderName = HeaderName::from_static("x-request-id");

/// All routes as one filter. It never rejects: an unknown route gets an answer, too.
pub(crate) fn service(
    handle: Handle,
) -> impl Filter<Extract = (Response,), Error = Rejection> + Clone + Send + Sync + 'static {
    let events = Arc::new(Hub::default());
    let query = warp::query::raw().or(warp::any().map(String::new)).unify();
    warp::method()
        .and(warp::path::full())
        .and(query)
        .and(warp::header::headers_cloned())
        .and(warp::body::stream())
        .then(move |method, path, query: String, headers, body| {
            let shared = (handle.clone(), events.clone());
            answer(shared, method, path, query, headers, body)
        })
}

async fn answer<B: Buf>(
    shared: (Handle, Arc<Hub>),
    method: Method,
    path: FullPath,
    query: String,
    headers: HeaderMap,
    body: impl Stream<Item = Result<B, warp::Error>> + Send + 'static,
) -> Response {
    let request_id = Uuid::new_v4().to_string();
    let work = respond(shared, &method, path.as_str(), &query, headers, body);
    let mut response = settle(work, &request_id).await;
    let path = logged(path.as_str());
    tracing::debug!(request_id, %method, path, status = response.status().as_u16(), "answered");
    reply::set(&mut response, REQUEST_ID.clone(), &request_id);
    // Logs and artifacts hold whatever a job wrote. A browser must not take them for a page.
    reply::set(&mut response, X_CONTENT_TYPE_OPTIONS, "nosniff");
    response
}

/// A path as the log has it: without the secret of a link.
fn logged(path: &str) -> &str {
    match path.starts_with(LINKED_BLOBS) {
        true => LINKED_BLOBS,
        false => path,
    }
}

/// Answers a request, even if its handler fails or panics. Other requests are not affected.
async fn settle(
    work: impl Future<Output = Result<Response, Failure>>,
    request_id: &str,
) -> Response {
    match AssertUnwindSafe(work).catch_unwind().await {
        Ok(Ok(response)) => response,
        Ok(Err(failure)) => reply::problem(failure, request_id),
        Err(_) => {
            tracing::error!(request_id, "a handler panicked");
            reply::problem(Failure::defect(), request_id)
        }
    }
}

async fn respond<B: Buf>(
    (handle, events): (Handle, Arc<Hub>),
    method: &Method,
    path: &str,
    query: &str,
    headers: HeaderMap,
    body: impl Stream<Item = Result<B, warp::Error>> + Send + 'static,
) -> Result<Response, Failure> {
    let (route, parameters) = match find(method, path) {
        Matched::Route(route, parameters) => (route, parameters),
        Matched::OtherMethods(methods) => {
            let allow: Vec<&str> = methods.iter().map(|method| method.as_str()).collect();
            let text = format!(
                "{} is not a method of {}",
                shorten(method.as_str()),
                shorten(path)
            );
            return Err(
                Failure::new(ErrorCode::MethodNotAllowed, text).header(ALLOW, allow.join(", "))
            );
        }
        Matched::Nothing => {
            return Err(Failure::new(
                ErrorCode::NoSuchRoute,
                format!("there is no route {}", shorten(path)),
            ));
        }
    };
    let caller = authenticate(&handle, &events, route, &parameters, &headers).await?;
    let body = Body::new(body, &headers, route.body)?;
    let request = Request {
        parameters,
        query: Query::parse(query, route.query)?,
        headers,
        body,
    };
    handlers::handle(&handle, caller, request).await
}

#[cfg(test)]
mod tests {
    use http::StatusCode;

    use super::*;

    #[tokio::test]
    async fn a_panic_is_answered_as_a_defect() {
        let response = settle(async { panic!("on purpose") }, "its id").await;
        assert_eq!(response.status(), StatusCode::INTERNAL_SERVER_ERROR);
        let body = http_body_util::BodyExt::collect(response.into_body()).await;
        let problem: wire::Problem = serde_json::from_slice(&body.unwrap().to_bytes()).unwrap();
        assert_eq!(problem.code, ErrorCode::Internal);
        assert_eq!(problem.request_id.as_deref(), Some("its id"));
        assert!(!problem.detail.contains("on purpose"));
    }
}
