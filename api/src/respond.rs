//! From a request to its handler: match, authenticate, bound, handle, answer.

use std::panic::AssertUnwindSafe;
use std::sync::{Arc, LazyLock};
use std::time::Instant;

use bytes::Buf;
use futures_util::{FutureExt, Stream};
use http::header::{
    ALLOW, AUTHORIZATION, HOST, HeaderName, IF_MATCH, IF_NONE_MATCH, IF_RANGE, ORIGIN, RANGE,
    X_CONTENT_TYPE_OPTIONS,
};
use http::{HeaderMap, StatusCode};
use listen::Connection;
use model::Seen;
use reconciler::Handle;
use uuid::Uuid;
use warp::filters::path::FullPath;
use warp::reply::Response;
use warp::{Filter, Rejection};
use wire::ErrorCode;

use crate::access::{Caller, LINKED_BLOBS, SIGN_IN_LINKS, authenticate};
use crate::body::Body;
use crate::failure::{Failure, shorten};
use crate::handlers::{self, Answering, blob_links, health, runners, schema, sign_in};
use crate::metrics::NO_ROUTE;
use crate::pages::{self, Reader};
use crate::peer::{Peer, is_among};
use crate::reply;
use crate::request::{Arrival, Query, Request};
use crate::routes::{LocalRoute, Matched, PublicRoute, find};
use crate::service::{Front, Head, Service};
use crate::visible::Visible;

static REQUEST_ID: HeaderName = HeaderName::from_static("x-request-id");

/// All routes as one filter. It never rejects: a request without a route gets an answer, too.
pub(crate) fn routes(
    handle: Handle,
    front: Front,
) -> impl Filter<Extract = (Response,), Error = Rejection> + Clone + Send + Sync + 'static {
    let service = Arc::new(Service::new(handle, front));
    let query = warp::query::raw().or(warp::any().map(String::new)).unify();
    warp::method()
        .and(warp::path::full())
        .and(query)
        .and(warp::header::headers_cloned())
        .and(warp::ext::get())
        .and(warp::body::stream())
        .then(
            move |method, path: FullPath, query, headers, connection: Connection, body| {
                let service = service.clone();
                let (trusted, local) = (&service.trusted_proxies, &service.local_from);
                let is_trusted = is_among(trusted, connection.address);
                let arrival = Arc::new(Arrival {
                    id: Uuid::new_v4(),
                    method,
                    path: service.base_path.strip(path.as_str()).to_owned(),
                    base: service.base_path.seen(&headers, is_trusted),
                    peer: Peer::of(connection, &headers, trusted, local),
                });
                let head = Head {
                    arrival,
                    query,
                    headers,
                };
                answer(service, head, body)
            },
        )
}

async fn answer<B: Buf>(
    service: Arc<Service>,
    head: Head,
    body: impl Stream<Item = Result<B, warp::Error>> + Send + 'static,
) -> Response {
    let arrival = head.arrival.clone();
    let (request_id, begun) = (arrival.id.to_string(), Instant::now());
    let mut route = NO_ROUTE;
    let reader = Reader::of(&service, &head);
    let moved = pages::moved(&head);
    let is_for_browsers = reader.is_some() || moved.is_some();
    // On the heap, to keep the futures around it small.
    let work = Box::pin(async {
        let answered = match moved {
            Some(moved) => Ok(moved),
            None => respond(&service, head, body, &mut route).await,
        };
        answered.map_err(|failure| match &reader {
            // A browser without a cookie sent no credentials, so no credentials were refused.
            Some(reader) if reader.is_stranger => failure,
            Some(_) | None => service.slow_down(arrival.peer, failure),
        })
    });
    let problem = |failure| match &reader {
        Some(reader) => reader.problem(failure, &request_id),
        None => reply::problem(failure, &request_id),
    };
    let mut response = settle(work, &request_id, problem).await;
    if is_for_browsers {
        pages::protect(&mut response, &arrival.base);
    }
    let status = response.status();
    service
        .metrics
        .answered(&arrival.method, route, status, begun.elapsed());
    let (method, path) = (&arrival.method, logged(&arrival.path));
    tracing::debug!(request_id, %method, path, peer = %arrival.peer.address, status = status.as_u16(), "answered");
    reply::set(&mut response, REQUEST_ID.clone(), &request_id);
    // Logs and artifacts contain any text. A browser must not show it as a page.
    reply::set_static(&mut response, X_CONTENT_TYPE_OPTIONS, "nosniff");
    response
}

/// The path for the log. The secret of a link is left out.
fn logged(path: &str) -> &str {
    let secret = [LINKED_BLOBS, SIGN_IN_LINKS, sign_in::USER_LINKS];
    let known = secret.into_iter().find(|known| path.starts_with(known));
    known.unwrap_or(path)
}

/// Answers a request, even if its handler fails or panics.
async fn settle(
    work: impl Future<Output = Result<Response, Failure>>,
    request_id: &str,
    problem: impl Fn(Failure) -> Response,
) -> Response {
    match AssertUnwindSafe(work).catch_unwind().await {
        Ok(Ok(response)) => response,
        Ok(Err(failure)) => problem(failure),
        Err(_) => {
            tracing::error!(request_id, "a handler panicked");
            problem(Failure::defect())
        }
    }
}

async fn respond<B: Buf>(
    service: &Service,
    head: Head,
    body: impl Stream<Item = Result<B, warp::Error>> + Send + 'static,
    pattern: &mut &'static str,
) -> Result<Response, Failure> {
    let (route, parameters) = match find(&head.arrival.method, &head.arrival.path) {
        Matched::Route(route, parameters) => (route, parameters),
        Matched::OtherMethods(methods) => {
            let allow: Vec<&str> = methods.iter().map(|method| method.as_str()).collect();
            let text = format!(
                "{} is not a method of {}",
                shorten(head.arrival.method.as_str()),
                shorten(&head.arrival.path)
            );
            return Err(
                Failure::new(ErrorCode::MethodNotAllowed, text).header(ALLOW, allow.join(", "))
            );
        }
        Matched::Nothing => {
            return Err(Failure::new(
                ErrorCode::NoSuchRoute,
                format!("there is no route {}", shorten(&head.arrival.path)),
            ));
        }
    };
    *pattern = route.path;
    check_headers(&head.headers)?;
    let caller = authenticate(service, route, &parameters, &head).await?;
    let body = Body::new(body, &head.headers, route.body)?;
    let query = match route.access.is_for_browsers() {
        true => Query::of_page(&head.query, route.query)?,
        false => Query::parse(&head.query, route.query)?,
    };
    let request = Request {
        arrival: head.arrival,
        parameters,
        query,
        headers: head.headers,
        body,
    };
    handle(service, caller, route.path, request).await
}

async fn handle(
    service: &Service,
    caller: Caller,
    pattern: &'static str,
    request: Request,
) -> Result<Response, Failure> {
    let handle = &service.handle;
    match caller {
        Caller::Local(LocalRoute::Metrics) => Box::pin(health::metrics(service)).await,
        Caller::Public(route) => public(service, route, request).await,
        Caller::Page(route, user) => {
            let shown = pages::show(service, &user, route, &request).await;
            shown.map_err(|failure| failure.seen_with(&user.rights().scopes))
        }
        Caller::Action(route, user) => {
            let named = Named::of(pattern, &request);
            let done = pages::act(service, &user, route, request).await;
            done.map_err(|failure| named.explain(failure, &user))
        }
        Caller::Session(route, user) => handlers::session(service, &user, route, request).await,
        Caller::User(route, user) => {
            let named = Named::of(pattern, &request);
            let answer = handlers::user(&user, route, request).await;
            answer.map_err(|failure| named.explain(failure, &user))
        }
        Caller::Link(route, linked) => Box::pin(blob_links::follow(&linked, route, request)).await,
        Caller::Runner(route, runner) => handlers::of_runner(handle, route, runner, request).await,
        Caller::Worker(route, worker) => handlers::of_worker(handle, route, &worker, request).await,
    }
}

/// What a request names: a project, or a workflow in one.
struct Named {
    project: Option<String>,
    workflow: Option<String>,
}

impl Named {
    fn of(pattern: &str, request: &Request) -> Self {
        let first = |name: &str| {
            let has = pattern.split('/').find(|it| it.starts_with('{')) == Some(name);
            has.then(|| request.parameter(0).to_owned())
        };
        let in_path = first("{project}").or_else(|| first("{source}"));
        Self {
            project: in_path.or_else(|| {
                let mut pairs = request.query.pairs().iter();
                let found = pairs.find(|(name, _)| name == "project");
                found.map(|(_, project)| project.clone())
            }),
            workflow: first("{workflow}"),
        }
    }

    /// Nothing is found where the caller has too weak a role. If the caller sees it, the answer says which role is needed.
    fn explain(&self, failure: Failure, user: &Visible) -> Failure {
        let is_missing = failure.status() == StatusCode::NOT_FOUND;
        let look = |seen: Seen<'_>| match (&self.project, &self.workflow) {
            (Some(named), _) => Some(handlers::projects::find(seen, named).ok()?.project),
            (None, Some(named)) => Some(handlers::workflows::find(seen, named).ok()?.project),
            (None, None) => None,
        };
        let without_role = is_missing.then(|| user.without_role(look)).flatten();
        without_role.unwrap_or_else(|| failure.seen_with(&user.rights().scopes))
    }
}

async fn public(
    service: &Service,
    route: PublicRoute,
    request: Request,
) -> Result<Response, Failure> {
    let handle = &service.handle;
    let answer: Answering<'_> = match route {
        PublicRoute::LoginPage => return Ok(pages::login_page(service, &request)),
        PublicRoute::LinkPage => return Ok(pages::link_page(service, &request)),
        PublicRoute::WelcomePage => return Ok(pages::welcome_page(service, &request)),
        PublicRoute::Login => Box::pin(pages::login(service, request)),
        PublicRoute::Asset => return pages::asset(&request),
        PublicRoute::Healthz => Box::pin(health::alive(handle)),
        PublicRoute::Readyz => Box::pin(health::ready(handle)),
        PublicRoute::WorkflowSchema => return Ok(schema::workflow(&request)),
        PublicRoute::OpenApi => return Ok(schema::openapi(&request)),
        PublicRoute::Docs => return Ok(schema::docs(&request)),
        PublicRoute::CreateSession => Box::pin(sign_in::create(service, request)),
        PublicRoute::BeginDeviceLogin => Box::pin(sign_in::begin_device(handle, request)),
        PublicRoute::RegisterRunner => Box::pin(runners::register(handle, request)),
    };
    answer.await
}

/// Headers that change what a request does. An unreadable header must not count as absent.
static MEANINGFUL: LazyLock<[HeaderName; 7]> = LazyLock::new(|| {
    [
        IF_MATCH,
        IF_NONE_MATCH,
        IF_RANGE,
        RANGE,
        HeaderName::from_static("last-event-id"),
        HeaderName::from_static("idempotency-key"),
        HeaderName::from_static(wire::CONTENT_DIGEST_HEADER),
    ]
});

fn check_headers(headers: &HeaderMap) -> Result<(), Failure> {
    let once = [
        (HOST, "Host"),
        (ORIGIN, "Origin"),
        (AUTHORIZATION, "Authorization"),
    ];
    for (name, shown) in once {
        if headers.get_all(name).iter().count() > 1 {
            return Err(Failure::invalid(shown, "stands more than once"));
        }
    }
    let mut unreadable = headers.iter().filter(|(_, value)| value.to_str().is_err());
    match unreadable.find(|(name, _)| MEANINGFUL.contains(name)) {
        None => Ok(()),
        Some((name, _)) => {
            let problem = "has characters other than printable ones of ASCII";
            Err(Failure::invalid(name.as_str(), problem))
        }
    }
}

#[cfg(test)]
mod tests {
    use http::StatusCode;

    use super::*;

    #[test]
    fn the_log_has_no_secret_of_a_path() {
        assert_eq!(logged("/v0/linked-blobs/evl_x"), "/v0/linked-blobs/");
        assert_eq!(logged("/login/evi_x"), "/login/");
        assert_eq!(logged("/welcome/evu_x"), "/welcome/");
        assert_eq!(logged("/jobs/x"), "/jobs/x");
    }

    #[tokio::test]
    async fn a_panic_is_answered_as_a_defect() {
        let response = settle(async { panic!("on purpose") }, "its id", |failure| {
            reply::problem(failure, "its id")
        })
        .await;
        assert_eq!(response.status(), StatusCode::INTERNAL_SERVER_ERROR);
        let body = http_body_util::BodyExt::collect(response.into_body()).await;
        let problem: wire::Problem = serde_json::from_slice(&body.unwrap().to_bytes()).unwrap();
        assert_eq!(problem.code, ErrorCode::Internal);
        assert_eq!(problem.request_id.as_deref(), Some("its id"));
        assert!(!problem.detail.contains("on purpose"));
    }
}
