//! What all pages have in common: who looks, and the headers of an answer to a browser.

use std::borrow::Cow;
use std::sync::{Arc, OnceLock};

use http::StatusCode;
use http::header::{
    CACHE_CONTROL, CONTENT_SECURITY_POLICY, CONTENT_TYPE, ETAG, HeaderName, HeaderValue, LOCATION,
    REFERRER_POLICY,
};
use maud::{Markup, html};
use model::{ActiveWorkflow, Scope, Timestamp, Token, WorkflowStatus};
use ui::form::Refused;
use ui::links;
use ui::shell::{Counts, Theme, Viewer, Visit};
use uuid::Uuid;
use warp::Reply;
use warp::reply::Response;

use super::typed::Typed;
use crate::convert::Convert;
use crate::failure::Failure;
use crate::reply;
use crate::request::Request;
use crate::service::Service;
use crate::visible::Visible;

/// Nothing from elsewhere, no inline script and no inline style: a name that is taken for markup could do nothing.
const POLICY: &str = "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; img-src 'self'; \
                      form-action 'self'; base-uri 'none'; frame-ancestors 'none'";

/// A request of a browser that is signed in, and what its page says about it.
pub(super) struct Frame<'a> {
    pub(super) service: &'a Service,
    pub(super) me: &'a Visible,
    pub(super) request: &'a Request,
    pub(super) visit: Visit,
    /// What stands on the page in place of the reader's name, if it is for many.
    anybody: Option<String>,
    /// The page for many, once it is made.
    made: OnceLock<Made>,
}

/// A page that was made, before it is the page of one reader.
#[derive(Debug, Clone)]
pub(super) struct Made {
    page: Arc<str>,
    form_key: Uuid,
    /// What stands where the name of the reader belongs, if it was made for any with the same rights.
    anybody: Option<String>,
}

#[cfg(test)]
impl Made {
    pub(super) fn of(page: &str) -> Self {
        Self {
            page: Arc::from(page),
            form_key: Uuid::nil(),
            anybody: None,
        }
    }

    pub(super) fn text(&self) -> &str {
        &self.page
    }
}

impl Made {
    /// The page as one reader gets it, or that the browser has it already.
    pub(super) fn answer(&self, me: &Visible, request: &Request) -> Response {
        let name = || html! { (me.token().name) }.into_string();
        let page = match &self.anybody {
            Some(anybody) => Cow::Owned(self.page.replace(anybody, &name())),
            None => Cow::Borrowed(&*self.page),
        };
        // The keys of forms differ each time, and two pages that differ in nothing else are the same.
        let key = self.form_key.simple().to_string();
        let etag = format!(
            "\"{}\"",
            workflow::sha256(page.replace(&key, "").as_bytes())
        );
        if request.has_already(&etag) {
            return reply::not_modified(&etag);
        }
        let page = match self.anybody {
            // No two forms have the same key.
            Some(_) => page.replace(&key, &Uuid::new_v4().simple().to_string()),
            None => page.into_owned(),
        };
        let mut response = html(StatusCode::OK, page);
        reply::set(&mut response, ETAG, &etag);
        response
    }
}

impl<'a> Frame<'a> {
    pub(super) fn new(service: &'a Service, me: &'a Visible, request: &'a Request) -> Self {
        let mut visit = visit(Some(me.token()), me.now());
        visit.counts = counts(me);
        Self {
            service,
            me,
            request,
            visit,
            anybody: None,
            made: OnceLock::new(),
        }
    }

    /// The same for a page that is the same for all readers with the rights of this one.
    pub(super) fn for_many(service: &'a Service, me: &'a Visible, request: &'a Request) -> Self {
        let mut frame = Self::new(service, me, request);
        let anybody = format!("reader-{}", Uuid::new_v4().simple());
        if let Some(viewer) = &mut frame.visit.viewer {
            viewer.name.clone_from(&anybody);
        }
        frame.anybody = Some(anybody);
        frame
    }

    /// The page that was made, if any was.
    pub(super) fn into_made(self) -> Option<Made> {
        self.made.into_inner()
    }

    /// Whether the reader may see or do what asks for this scope. A page may hold more than its own scope allows.
    pub(super) fn may(&self, scope: Scope) -> bool {
        self.me.token().scopes.allow(scope)
    }

    /// Refuses what asks for another scope than its route does.
    pub(super) fn need(&self, scope: Scope) -> Result<(), Failure> {
        if self.may(scope) {
            return Ok(());
        }
        Err(Failure::without_scope(scope))
    }

    /// Sends the browser to a page after a form was taken, or to the overview if the page asks for more than the reader has.
    pub(super) fn done(&self, scope: Scope, address: &str) -> Response {
        see_other(match self.may(scope) {
            true => address,
            false => links::OVERVIEW,
        })
    }

    /// The n-th parameter of the path.
    pub(super) fn parameter(&self, n: usize) -> &str {
        self.request.parameter(n)
    }

    /// A parameter of the query; empty if it is not given.
    pub(super) fn query(&self, name: &str) -> &str {
        self.request.query.get(name).unwrap_or("")
    }

    /// The page, or that the browser has it already.
    pub(super) fn page(&self, page: Markup) -> Response {
        let made = Made {
            page: Arc::from(page.into_string()),
            form_key: self.visit.form_key,
            anybody: self.anybody.clone(),
        };
        if self.anybody.is_none() {
            return made.answer(self.me, self.request);
        }
        // Each of its readers gets an answer of his own.
        drop(self.made.set(made));
        reply::empty()
    }

    /// What the form of a page is shown again with. A failure that no other input would mend is returned.
    pub(super) fn refused(
        &self,
        failure: Failure,
        typed: &Typed,
        fields: &[&str],
    ) -> Result<(StatusCode, Refused), Failure> {
        let status = match failure.status() {
            StatusCode::BAD_REQUEST => StatusCode::UNPROCESSABLE_ENTITY,
            StatusCode::UNAUTHORIZED | StatusCode::NOT_FOUND => return Err(failure),
            status if status.is_client_error() => status,
            StatusCode::INSUFFICIENT_STORAGE => StatusCode::INSUFFICIENT_STORAGE,
            _ => return Err(failure),
        };
        let (problem, _) = failure.problem(&self.request.arrival.id.to_string());
        let kept = fields.iter().filter_map(|field| {
            let value = typed.all(field).collect::<Vec<_>>().join(" ");
            typed.get(field).map(|_| ((*field).to_owned(), value))
        });
        let refused = Refused {
            typed: kept.collect(),
            problem: Some(problem),
        };
        Ok((status, refused))
    }
}

/// What the menu counts, of what the reader may see.
fn counts(me: &Visible) -> Counts {
    let may = |scope| me.token().scopes.allow(scope);
    let is_active = |it: &ActiveWorkflow| it.record.status == WorkflowStatus::Active;
    me.read(|seen| Counts {
        workflows: match may(Scope::WorkflowRead) {
            true => seen.workflows().filter(is_active).count(),
            false => 0,
        },
        jobs: match may(Scope::JobRead) {
            true => seen.jobs().count(),
            false => 0,
        },
        runners: match may(Scope::RunnerRead) {
            true => seen.runners().filter(|it| me.is_connected(it)).count(),
            false => 0,
        },
    })
}

/// How a page sees its reader.
pub(super) fn visit(token: Option<&Token>, now: Timestamp) -> Visit {
    Visit {
        viewer: token.map(|token| Viewer {
            name: token.name.clone(),
            scopes: token.scopes.iter().map(Convert::converted).collect(),
        }),
        version: env!("CARGO_PKG_VERSION").to_owned(),
        theme: Theme::System,
        now,
        counts: Counts::default(),
        form_key: Uuid::new_v4(),
    }
}

/// A page with a status of its own. No browser and no proxy keeps it.
pub(super) fn html(status: StatusCode, page: String) -> Response {
    let mut response = page.into_response();
    *response.status_mut() = status;
    reply::set_static(&mut response, CONTENT_TYPE, "text/html; charset=utf-8");
    response
}

/// Sends the browser to a page after a form was taken, so that a reload does not send it again.
pub(super) fn see_other(address: &str) -> Response {
    let mut response = StatusCode::SEE_OTHER.into_response();
    reply::set(&mut response, LOCATION, address);
    response
}

/// The headers of every answer to a browser that does not have stricter ones.
pub(crate) fn protect(response: &mut Response) {
    let headers = response.headers_mut();
    let mut default = |name: HeaderName, value: &'static str| {
        let value = HeaderValue::from_static(value);
        headers.entry(name).or_insert(value);
    };
    default(CONTENT_SECURITY_POLICY, POLICY);
    default(CACHE_CONTROL, "no-store");
    default(REFERRER_POLICY, "same-origin");
}
