//! A browser that signs in with the form, keeps its cookie, and sends the forms of pages.

use http::Method;
use percent_encoding::{NON_ALPHANUMERIC, utf8_percent_encode};

use crate::client::{Answer, Call};
use crate::service::Service;

/// A browser that is signed in.
pub(crate) struct Browser<'a> {
    service: &'a Service,
    pub(crate) cookie: String,
}

/// Sends the form of the sign-in.
pub(crate) async fn sign_in(service: &Service, token: &str, next: &str) -> Answer {
    let form = [("token", token), ("next", next)];
    let call = Call::post("/login").header("sec-fetch-site", "same-origin");
    typed(call, &form).send(service.address).await
}

/// A call with a form.
pub(crate) fn typed(call: Call, fields: &[(&str, &str)]) -> Call {
    let coded = |text: &str| utf8_percent_encode(text, NON_ALPHANUMERIC).to_string();
    let pairs = fields.iter();
    let pairs: Vec<String> = pairs
        .map(|(name, value)| format!("{}={}", coded(name), coded(value)))
        .collect();
    call.header("content-type", "application/x-www-form-urlencoded")
        .bytes(pairs.join("&"))
}

impl<'a> Browser<'a> {
    pub(crate) async fn with(service: &'a Service, token: &str) -> Self {
        Self::signed_in_by(service, &sign_in(service, token, "").await)
    }

    /// The browser that received this answer.
    pub(crate) fn signed_in_by(service: &'a Service, answer: &Answer) -> Self {
        assert_eq!(answer.status, 303, "{answer:?}");
        assert_eq!(answer.header("location"), Some("/"));
        let cookie = answer.header("set-cookie").unwrap();
        let cookie = cookie.split(';').next().unwrap().to_owned();
        Self { service, cookie }
    }

    pub(crate) fn with_cookie(service: &'a Service, cookie: String) -> Self {
        Self { service, cookie }
    }

    pub(crate) async fn admin(service: &'a Service) -> Self {
        Self::with(service, &service.admin).await
    }

    pub(crate) fn call(&self, method: Method, path: &str) -> Call {
        Call::new(method, path)
            .header("cookie", &self.cookie)
            .header("sec-fetch-site", "same-origin")
            .header("accept", "text/html")
    }

    pub(crate) async fn send(&self, call: Call) -> Answer {
        call.send_to_stream(self.service.address).await
    }

    pub(crate) async fn get(&self, path: &str) -> Answer {
        self.send(self.call(Method::GET, path)).await
    }

    /// A page, which must exist.
    pub(crate) async fn page(&self, path: &str) -> String {
        let answer = self.get(path).await;
        assert_eq!(answer.status, 200, "{path}: {answer:?}");
        answer.text().to_owned()
    }

    pub(crate) async fn post(&self, path: &str, fields: &[(&str, &str)]) -> Answer {
        let call = self.call(Method::POST, path);
        self.send(typed(call, fields)).await
    }

    /// Sends a form, which must be accepted. Returns the target of the redirect.
    pub(crate) async fn done(&self, path: &str, fields: &[(&str, &str)]) -> String {
        let answer = self.post(path, fields).await;
        assert_eq!(answer.status, 303, "{path}: {answer:?}");
        answer.header("location").unwrap().to_owned()
    }
}
