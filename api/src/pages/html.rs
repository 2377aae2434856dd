//! Pages as answers to browsers, with their headers.

use std::borrow::Cow;
use std::sync::Arc;

use http::header::{
    CACHE_CONTROL, CONTENT_SECURITY_POLICY, CONTENT_TYPE, ETAG, HeaderName, HeaderValue, LOCATION,
    REFERRER_POLICY,
};
use http::{Method, StatusCode};
use ui::links;
use uuid::Uuid;
use warp::Reply;
use warp::reply::Response;

use crate::base::BasePath;
use crate::reply;
use crate::request::Request;
use crate::service::Head;
use crate::visible::Visible;

/// Allows nothing from other hosts, no inline script and no inline style, so markup in a name has no effect.
const POLICY: &str = "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; img-src 'self'; \
                      form-action 'self'; base-uri 'none'; frame-ancestors 'none'";

/// A rendered page, before the name of one reader is filled in.
#[derive(Debug, Clone)]
pub(super) struct Made {
    pub(super) page: Arc<str>,
    pub(super) form_key: Uuid,
    /// The placeholder for the reader's name, if the page is for all readers with the same rights.
    pub(super) anybody: Option<String>,
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
    /// The page for one reader, or 304.
    pub(super) fn answer(&self, user: &Visible, request: &Request) -> Response {
        let page = match &self.anybody {
            Some(anybody) => {
                let name = maud::html! { (user.name()) }.into_string();
                Cow::Owned(self.page.replace(anybody, &name))
            }
            None => Cow::Borrowed(&*self.page),
        };
        // The keys of forms always differ. Pages count as equal if they differ only in these keys.
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
        let mut response = html(&request.arrival.base, StatusCode::OK, page);
        reply::set(&mut response, ETAG, &etag);
        response
    }
}

/// A page that no browser and no proxy stores.
pub(super) fn html(base: &BasePath, status: StatusCode, page: String) -> Response {
    let mut response = links::below(base.as_str(), page).into_response();
    *response.status_mut() = status;
    reply::set_static(&mut response, CONTENT_TYPE, "text/html; charset=utf-8");
    response
}

/// Sends the browser to a page after a form was accepted, so that a reload does not send the form again. An address that is not
/// one of this daemon leads to the overview.
pub(super) fn see_other(address: &str) -> Response {
    let mut response = StatusCode::SEE_OTHER.into_response();
    let address = links::local(address).unwrap_or(links::OVERVIEW);
    reply::set(&mut response, LOCATION, address);
    response
}

/// Redirects a request for a former address of a page. A form would be sent a second time, so forms are not redirected.
pub(crate) fn moved(head: &Head) -> Option<Response> {
    if !matches!(head.arrival.method, Method::GET | Method::HEAD) {
        return None;
    }
    let present = links::present(&head.arrival.path);
    let mut address = present.filter(|present| links::local(present).is_some())?;
    if !head.query.is_empty() {
        address = format!("{address}?{}", head.query);
    }
    let mut response = see_other(&address);
    *response.status_mut() = StatusCode::PERMANENT_REDIRECT;
    Some(response)
}

/// The default headers of answers to browsers. A stricter value stays. The page that a browser is sent to gets its whole path.
pub(crate) fn protect(response: &mut Response, base: &BasePath) {
    let headers = response.headers_mut();
    if let Some(address) = headers.get_mut(LOCATION)
        && let Ok(path) = address.to_str()
        && let Ok(whole) = HeaderValue::from_str(&format!("{base}{path}"))
    {
        *address = whole;
    }
    let mut default = |name: HeaderName, value: &'static str| {
        let value = HeaderValue::from_static(value);
        headers.entry(name).or_insert(value);
    };
    default(CONTENT_SECURITY_POLICY, POLICY);
    default(CACHE_CONTROL, "no-store");
    default(REFERRER_POLICY, "same-origin");
}
