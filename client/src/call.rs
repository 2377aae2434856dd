//! One request and its answer. A call is limited in time and size, and repeated if that is harmless.

use std::time::Duration;

use bytes::{Bytes, BytesMut};
use futures_util::future::BoxFuture;
use http::header::{
    ACCEPT, AUTHORIZATION, CONTENT_TYPE, HeaderName, HeaderValue, LOCATION, RETRY_AFTER, SERVER,
    USER_AGENT,
};
use http::{HeaderMap, Method, Request, StatusCode, Uri, response};
use http_body_util::{BodyExt, Full};
use hyper::body::{Body, Incoming};
use serde::Serialize;
use serde::de::DeserializeOwned;
use tokio::time::timeout;
use uuid::Uuid;
use wire::{ErrorCode, Page, Problem};

use crate::connector::RequestBody;
use crate::error::{NoHttp, Operation};
use crate::repetition::{Patience, Repetition};
use crate::route::Route;
use crate::{Client, Error, limits};

const JSON: HeaderValue = HeaderValue::from_static("application/json");
const PROGRAM: HeaderValue =
    HeaderValue::from_static(concat!("everscan/", env!("CARGO_PKG_VERSION")));

/// Calls that make an object may be repeated with this header.
const IDEMPOTENCY_KEY: HeaderName = HeaderName::from_static("idempotency-key");

/// A request that can be sent any number of times.
pub(crate) struct Call<'a> {
    client: &'a Client,
    operation: Operation,
    method: Method,
    url: String,
    headers: HeaderMap,
    body: Bytes,
    limit: Duration,
    patience: Patience,
}

impl Client {
    /// A request that only reads, so repeating it is harmless.
    pub(crate) fn get(&self, route: &Route) -> Call<'_> {
        self.call(Method::GET, route).patience(Patience::Call)
    }

    /// A request that is sent once, unless `patience` says otherwise.
    pub(crate) fn call(&self, method: Method, route: &Route) -> Call<'_> {
        let url = self.base.join(route);
        Call {
            client: self,
            operation: Operation::new(&method, &url),
            method,
            url,
            headers: HeaderMap::new(),
            body: Bytes::new(),
            limit: limits::ANSWER,
            patience: Patience::Once,
        }
    }

    pub(crate) async fn all<T: DeserializeOwned>(&self, route: &Route) -> Result<Vec<T>, Error> {
        let mut items = Vec::new();
        let mut next = route.clone();
        for _ in 0..limits::PAGES {
            let page: Page<T> = self.get(&next).answer().await?;
            items.extend(page.items);
            match page.next_cursor {
                Some(cursor) => next = route.clone().with("cursor", cursor),
                None => return Ok(items),
            }
        }
        Err(Error::Protocol {
            operation: self.get(route).operation,
            reason: format!("a list of more than {} pages", limits::PAGES),
        })
    }
}

impl Call<'_> {
    pub(crate) fn patience(mut self, patience: Patience) -> Self {
        self.patience = patience;
        self
    }

    pub(crate) fn operation(&self) -> Operation {
        self.operation.clone()
    }

    /// The time limit of requests that the daemon holds until something happens.
    pub(crate) fn held(mut self) -> Self {
        self.limit = limits::HELD_ANSWER;
        self
    }

    pub(crate) fn limit(mut self, limit: Duration) -> Self {
        self.limit = limit;
        self
    }

    pub(crate) fn accept(mut self, media_type: &'static str) -> Self {
        self.headers
            .insert(ACCEPT, HeaderValue::from_static(media_type));
        self
    }

    pub(crate) fn header(mut self, name: HeaderName, value: &str) -> Result<Self, Error> {
        let value = HeaderValue::from_str(value).map_err(|source| self.unsendable(source))?;
        self.headers.insert(name, value);
        Ok(self)
    }

    /// Makes the call repeatable with a new key. If the call made a secret, its repeat is refused, and the refusal names the
    /// object that was made.
    pub(crate) fn once(self) -> Result<Self, Error> {
        self.idempotent(&Uuid::new_v4().to_string())
    }

    /// Makes the call repeatable: the daemon executes the same key only once.
    pub(crate) fn idempotent(self, key: &str) -> Result<Self, Error> {
        Ok(self.header(IDEMPOTENCY_KEY, key)?.patience(Patience::Call))
    }

    pub(crate) fn json(self, body: &(impl Serialize + ?Sized)) -> Result<Self, Error> {
        let body = serde_json::to_vec(body).map_err(|source| self.unsendable(source))?;
        Ok(self.json_bytes(body.into()))
    }

    /// Sets a body that is already JSON.
    pub(crate) fn json_bytes(mut self, body: Bytes) -> Self {
        self.body = body;
        self.headers.insert(CONTENT_TYPE, JSON);
        self
    }

    /// Sends the request and reads the answer as JSON.
    pub(crate) async fn answer<T: DeserializeOwned>(self) -> Result<T, Error> {
        Ok(self.answer_with_headers().await?.1)
    }

    /// Sends the request and reads the answer as JSON, with its headers.
    pub(crate) async fn answer_with_headers<T: DeserializeOwned>(
        self,
    ) -> Result<(HeaderMap, T), Error> {
        let (head, body) = self.send().await?;
        let answer = self.parse(&head, &body)?;
        Ok((head.headers, answer))
    }

    fn parse<T: DeserializeOwned>(&self, head: &response::Parts, body: &[u8]) -> Result<T, Error> {
        serde_json::from_slice(body).map_err(|error| match head.headers.get(CONTENT_TYPE) {
            Some(kind) if kind != JSON => foreign(&self.operation, head),
            Some(_) | None => Error::Protocol {
                operation: self.operation.clone(),
                reason: error.to_string(),
            },
        })
    }

    /// Sends the request to a route that answers without a body. A page of a proxy is an error.
    pub(crate) async fn done(self) -> Result<(), Error> {
        match self.send().await? {
            (head, _) if head.status == StatusCode::NO_CONTENT => Ok(()),
            (head, _) => Err(foreign(&self.operation, &head)),
        }
    }

    async fn send(&self) -> Result<(response::Parts, Bytes), Error> {
        let mut repetition = Repetition::new(self.patience);
        loop {
            let attempt = timeout(self.limit, async {
                self.open_once(None).await?.whole().await
            });
            match attempt.await.unwrap_or_else(|_| Err(self.timed_out())) {
                Ok(answer) => return Ok(answer),
                Err(error) => repetition.pause_after(error).await?,
            }
        }
    }

    /// Sends the request and leaves the body to the caller. The time limit ends with the headers.
    pub(crate) async fn open(&self) -> Result<Answer, Error> {
        let mut repetition = Repetition::new(self.patience);
        loop {
            let attempt = timeout(self.limit, self.open_once(None));
            match attempt.await.unwrap_or_else(|_| Err(self.timed_out())) {
                Ok(answer) => return Ok(answer),
                Err(error) => repetition.pause_after(error).await?,
            }
        }
    }

    /// Sends the request once, with a body that is produced meanwhile, and ignores the answer's body.
    pub(crate) async fn send_streamed(self, body: RequestBody) -> Result<(), Error> {
        self.stream(body).await.map(drop)
    }

    /// The same, but reads the answer as JSON.
    pub(crate) async fn answer_to_streamed<T: DeserializeOwned>(
        self,
        body: RequestBody,
    ) -> Result<T, Error> {
        let (head, body) = self.stream(body).await?;
        self.parse(&head, &body)
    }

    async fn stream(&self, body: RequestBody) -> Result<(response::Parts, Bytes), Error> {
        let attempt = timeout(self.limit, async {
            self.open_once(Some(body)).await?.whole().await
        });
        attempt.await.unwrap_or_else(|_| Err(self.timed_out()))
    }

    /// Boxed, so that the pool is compiled only here, and not in every package that awaits an answer.
    fn open_once(&self, streamed: Option<RequestBody>) -> BoxFuture<'_, Result<Answer, Error>> {
        Box::pin(self.open_directly(streamed))
    }

    async fn open_directly(&self, streamed: Option<RequestBody>) -> Result<Answer, Error> {
        let url = Uri::try_from(&self.url).map_err(|source| self.unsendable(source))?;
        let mut request = Request::new(match streamed {
            Some(body) => body,
            None => Full::from(self.body.clone())
                .map_err(|never| match never {})
                .boxed_unsync(),
        });
        *request.method_mut() = self.method.clone();
        *request.uri_mut() = url;
        *request.headers_mut() = self.headers.clone();
        request.headers_mut().insert(USER_AGENT, PROGRAM);
        if let Some(token) = &self.client.token {
            let mut value = HeaderValue::from_str(&format!("Bearer {}", token.expose()))
                .map_err(|source| self.unsendable(source))?;
            value.set_sensitive(true);
            request.headers_mut().insert(AUTHORIZATION, value);
        }
        let response = self.client.pool.request(request).await;
        let response = response.map_err(|error| Error::unanswered(&self.operation, error))?;
        let (head, body) = response.into_parts();
        let answer = Answer {
            operation: self.operation.clone(),
            head,
            body,
        };
        if answer.head.status.is_success() {
            Ok(answer)
        } else {
            Err(answer.refusal().await)
        }
    }

    fn timed_out(&self) -> Error {
        Error::TimedOut {
            operation: self.operation.clone(),
        }
    }

    fn unsendable(&self, source: impl std::error::Error + Send + Sync + 'static) -> Error {
        Error::Unsendable {
            operation: self.operation.clone(),
            source: Box::new(source),
        }
    }
}

/// An answer with an unread body.
pub(crate) struct Answer {
    operation: Operation,
    head: response::Parts,
    body: Incoming,
}

impl Answer {
    pub(crate) fn headers(&self) -> &HeaderMap {
        &self.head.headers
    }

    pub(crate) fn content_length(&self) -> Option<u64> {
        self.body.size_hint().exact()
    }

    pub(crate) fn operation(&self) -> &Operation {
        &self.operation
    }

    pub(crate) fn foreign(&self) -> Error {
        foreign(&self.operation, &self.head)
    }

    /// The next piece of the body; `None` at its regular end.
    pub(crate) async fn piece(&mut self) -> Result<Option<Bytes>, Error> {
        while let Some(frame) = self.body.frame().await {
            let frame = frame.map_err(|error| Error::broken_off(&self.operation, error))?;
            // The contract has no trailers.
            if let Ok(piece) = frame.into_data() {
                return Ok(Some(piece));
            }
        }
        Ok(None)
    }

    /// All bytes of the body.
    pub(crate) async fn body(self) -> Result<Bytes, Error> {
        Ok(self.whole().await?.1)
    }

    async fn whole(mut self) -> Result<(response::Parts, Bytes), Error> {
        let mut body = BytesMut::new();
        while let Some(piece) = self.piece().await? {
            if body.len() + piece.len() > limits::ANSWER_BYTES {
                return Err(Error::Protocol {
                    operation: self.operation,
                    reason: format!("more than {} bytes", limits::ANSWER_BYTES),
                });
            }
            body.extend_from_slice(&piece);
        }
        Ok((self.head, body.freeze()))
    }

    /// Reads the reason of a refusal. The answer may come from a proxy instead of the daemon.
    async fn refusal(self) -> Error {
        let operation = self.operation.clone();
        let status = self.head.status;
        let location = self.head.headers.get(LOCATION).cloned();
        let retry_after = self.head.headers.get(RETRY_AFTER);
        let retry_after = retry_after
            .and_then(|value| value.to_str().ok()?.parse().ok())
            .map(Duration::from_secs);
        let body = self.whole().await.map(|(_, body)| body);
        let body = body.unwrap_or_default();
        let problem = serde_json::from_slice::<Problem>(&body).ok();
        // Caddy, nginx and Apache answer plain HTTP at a port for HTTPS in this way.
        let wants_https = || body.windows(5).any(|word| word == b"HTTPS");
        if problem.is_none() && status == 400 && operation.is_plain_http() && wants_https() {
            return Error::Unreachable {
                operation,
                source: NoHttp.into(),
            };
        }
        let problem = problem.unwrap_or_else(|| Problem {
            title: status.canonical_reason().unwrap_or("error").to_owned(),
            status: status.as_u16(),
            code: ErrorCode::Unknown,
            detail: match location {
                Some(location) => format!("it redirects to {location:?}"),
                None => "the answer does not say why".to_owned(),
            },
            hint: Some("did everscand answer, or something in front of it?".to_owned()),
            request_id: None,
            errors: Vec::new(),
            diagnostics: Vec::new(),
            next: None,
            made: None,
        });
        Error::Refused {
            operation,
            status: status.as_u16(),
            retry_after,
            problem: Box::new(problem),
        }
    }
}

/// The error for an answer that `everscand` does not give, such as a page of a proxy or the sign-in page of a network.
fn foreign(operation: &Operation, head: &response::Parts) -> Error {
    let shown = |name| head.headers.get(name).and_then(|it| it.to_str().ok());
    let kind = shown(CONTENT_TYPE).unwrap_or("no content type");
    let server = shown(SERVER).map_or(String::new(), |it| format!(", server {it}"));
    Error::Protocol {
        operation: operation.clone(),
        reason: format!(
            "it is not from everscand: status {}, {kind}{server}",
            head.status.as_u16()
        ),
    }
}
