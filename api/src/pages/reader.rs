//! Problems for browsers: a page instead of a problem document, or a redirect to the sign-in.

use http::Method;
use http::header::{ACCEPT, COOKIE, HOST, REFERER};
use ui::links;
use ui::shell::{Crumb, Visit, problem_page};
use warp::reply::Response;
use wire::ErrorCode;

use super::frame::visit;
use super::html::{html, see_other};
use crate::access::signed_in;
use crate::base::BasePath;
use crate::failure::Failure;
use crate::reply;
use crate::routes::{Access, Matched, find};
use crate::service::{Head, Service};

/// Paths for programs. The `Accept` header does not matter there.
const OF_PROGRAMS: [&str; 4] = ["/v0/", "/healthz", "/readyz", "/metrics"];

/// A browser that gets a page if its request fails.
pub(crate) struct Reader {
    /// True if the browser sent no cookie at all.
    pub(crate) is_stranger: bool,
    is_data: bool,
    visit: Visit,
    base: BasePath,
    /// The page to return to after a sign-in.
    here: Option<String>,
    /// The other page of this daemon that the request came from.
    back: Option<String>,
}

impl Reader {
    pub(crate) fn of(service: &Service, head: &Head) -> Option<Self> {
        let (arrival, headers) = (&head.arrival, &head.headers);
        let path = arrival.path.as_str();
        if OF_PROGRAMS.iter().any(|known| path.starts_with(known)) {
            return None;
        }
        let accepts_pages = || {
            let accept = headers.get(ACCEPT).and_then(|accept| accept.to_str().ok());
            accept.is_some_and(|accept| accept.contains("text/html"))
        };
        let is_data = match find(&arrival.method, path) {
            Matched::Route(route, _) => match route.access {
                Access::Page(route, _) => route.is_data(),
                Access::Action(route, _) => route.is_data(),
                access if access.is_for_browsers() => false,
                _ => return None,
            },
            Matched::OtherMethods(_) | Matched::Nothing if accepts_pages() => false,
            Matched::OtherMethods(_) | Matched::Nothing => return None,
        };
        let asked = match head.query.as_str() {
            "" => path.to_owned(),
            query => format!("{path}?{query}"),
        };
        let came_from = came_from(head);
        // The reader may also come from the form of the sign-in.
        let is_other = |back: &String| *back != asked && !back.starts_with(links::LOGIN);
        let (here, back) = match arrival.method {
            Method::GET => (Some(asked.clone()), came_from.filter(is_other)),
            _ => (came_from.clone(), came_from),
        };
        let reader = signed_in(&service.handle, headers, arrival);
        let mut visit = visit(reader.as_ref(), service.handle.now());
        visit.answers_form = arrival.method == Method::POST;
        Some(Self {
            is_stranger: !headers.contains_key(COOKIE),
            is_data,
            visit,
            base: arrival.base.clone(),
            here: here.filter(|here| links::local(here).is_some()),
            back,
        })
    }

    pub(crate) fn problem(&self, failure: Failure, request_id: &str) -> Response {
        if self.is_data {
            return reply::problem(failure, request_id);
        }
        if failure.code == ErrorCode::Unauthorized {
            let here = self.here.as_deref().filter(|here| *here != links::OVERVIEW);
            let next = [("next", here.unwrap_or_default())];
            return see_other(&links::with_query(links::LOGIN, &next));
        }
        if let Some(inward) = failure.inward() {
            tracing::error!(request_id, error = inward, "a page failed");
        }
        let (status, code) = (failure.status(), failure.code);
        let (problem, headers) = failure.problem(request_id);
        let again = (code == ErrorCode::SignInAgain).then(|| {
            let next = [("next", self.here.as_deref().unwrap_or_default())];
            Crumb::new("Sign in again", links::with_query(links::LOGIN, &next))
        });
        let page = problem_page(&self.visit, &problem, self.back.as_deref(), again.as_ref());
        let mut response = html(&self.base, status, page.into_string());
        for (name, value) in headers {
            reply::set(&mut response, name, &value);
        }
        response
    }
}

/// The page of this daemon that contains the link or form.
fn came_from(head: &Head) -> Option<String> {
    let text = |name| head.headers.get(name)?.to_str().ok();
    let referer = text(REFERER)?;
    let after_scheme = referer
        .strip_prefix("https://")
        .or_else(|| referer.strip_prefix("http://"))?;
    let path = after_scheme.strip_prefix(text(HOST)?)?;
    Some(head.arrival.base.strip(path).to_owned())
}
