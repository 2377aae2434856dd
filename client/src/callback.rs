//! Callback servers, their names, and interactions.

use http::Method;
use wire::{
    Callback, CallbackCheck, CallbackRules, CallbackToken, CreateCallback, CreateCallbackToken,
    Interaction, Page,
};

use crate::route::Route;
use crate::{Client, Error};

/// Which interactions to list.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct InteractionFilter {
    pub tag: Option<String>,
    /// `dns` or `http`.
    pub kind: Option<String>,
    pub address: Option<String>,
    /// `GROUP` or `GROUP/NAME`.
    pub payload: Option<String>,
    pub text: Option<String>,
    /// The job that has made the name.
    pub job: Option<String>,
    /// With the raw requests.
    pub has_raw: bool,
}

impl InteractionFilter {
    fn of(&self, callback: &str) -> Result<Route, Error> {
        let route = Route::v0("callbacks").name(callback)?.then("interactions");
        Ok(route
            .with_some("tag", self.tag.as_ref())
            .with_some("job", self.job.as_ref())
            .with_some("type", self.kind.as_ref())
            .with_some("address", self.address.as_ref())
            .with_some("payload", self.payload.as_ref())
            .with_some("text", self.text.as_ref())
            .with_some("raw", self.has_raw.then_some(true)))
    }
}

impl Client {
    pub async fn callbacks(&self, project: Option<&str>) -> Result<Vec<Callback>, Error> {
        let route = Route::v0("callbacks").with_some("project", project);
        self.all(&route).await
    }

    pub async fn create_callback(&self, request: &CreateCallback) -> Result<Callback, Error> {
        let call = self.call(Method::POST, &Route::v0("callbacks"));
        call.json(request)?.answer().await
    }

    /// Checks the zones of callback servers.
    pub async fn check_callbacks(&self) -> Result<CallbackCheck, Error> {
        let route = Route::v0("callback-check");
        self.get(&route).held().answer().await
    }

    pub async fn delete_callback(&self, id: &str) -> Result<(), Error> {
        let route = Route::v0("callbacks").name(id)?;
        self.call(Method::DELETE, &route).done().await
    }

    pub async fn callback_rules(&self, id: &str) -> Result<CallbackRules, Error> {
        let route = Route::v0("callbacks").name(id)?.then("rules");
        self.get(&route).answer().await
    }

    pub async fn set_callback_rules(
        &self,
        id: &str,
        rules: &CallbackRules,
    ) -> Result<CallbackRules, Error> {
        let route = Route::v0("callbacks").name(id)?.then("rules");
        self.call(Method::PUT, &route).json(rules)?.answer().await
    }

    pub async fn callback_tokens(&self, id: &str) -> Result<Vec<CallbackToken>, Error> {
        self.all(&Route::v0("callbacks").name(id)?.then("tokens"))
            .await
    }

    pub async fn create_callback_token(
        &self,
        id: &str,
        request: &CreateCallbackToken,
    ) -> Result<CallbackToken, Error> {
        let route = Route::v0("callbacks").name(id)?.then("tokens");
        let call = self.call(Method::POST, &route);
        call.json(request)?.answer().await
    }

    pub async fn end_callback_token(&self, id: &str, tag: &str) -> Result<(), Error> {
        let route = Route::v0("callbacks").name(id)?.then("tokens").name(tag)?;
        self.call(Method::DELETE, &route).done().await
    }

    /// One page of interactions, newest first.
    pub async fn interactions(
        &self,
        callback: &str,
        filter: &InteractionFilter,
        limit: Option<u32>,
        cursor: Option<&str>,
    ) -> Result<Page<Interaction>, Error> {
        let route = filter.of(callback)?.with_some("limit", limit);
        let route = route.with_some("cursor", cursor);
        self.get(&route).answer().await
    }

    /// Interactions after a number, oldest first. Waits for the first one for a while. The cursor of the answer is a number to go
    /// on after, if there was nothing or there is more.
    pub async fn next_interactions(
        &self,
        callback: &str,
        filter: &InteractionFilter,
        after: u64,
    ) -> Result<Page<Interaction>, Error> {
        let route = filter.of(callback)?.with("after", after).with("wait", true);
        self.get(&route).held().answer().await
    }

    /// An interaction with its raw request.
    pub async fn interaction(&self, callback: &str, number: u64) -> Result<Interaction, Error> {
        let route = Route::v0("callbacks").name(callback)?.then("interactions");
        let route = route.name(&number.to_string())?;
        self.get(&route).answer().await
    }
}
