//! Channels of notifications, and the delivery log. Without a project, a channel belongs to the instance.

use http::Method;
use uuid::Uuid;
use wire::{Channel, Delivery, Page, RetryChannel, SendResult, SetChannel};

use crate::project::Expected;
use crate::route::Route;
use crate::{Client, Error};

/// Selects lines of the delivery log. A field that is `None` does not restrict.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct DeliveryFilter {
    pub project: Option<String>,
    /// The name of a channel.
    pub channel: Option<String>,
    /// Messages about this job.
    pub job: Option<Uuid>,
}

fn route(project: Option<&str>, name: &str) -> Result<Route, Error> {
    Ok(Route::v0("channels")
        .name(name)?
        .with_some("project", project))
}

impl Client {
    /// The channels of a project, or of all projects and the instance: `GET /channels`.
    pub async fn channels(&self, project: Option<&str>) -> Result<Vec<Channel>, Error> {
        self.all(&Route::v0("channels").with_some("project", project))
            .await
    }

    pub async fn channel(&self, project: Option<&str>, name: &str) -> Result<Channel, Error> {
        self.call(Method::GET, &route(project, name)?)
            .answer()
            .await
    }

    /// Adds or changes a channel: `PUT /channels/{channel}`.
    pub async fn set_channel(
        &self,
        project: Option<&str>,
        name: &str,
        channel: &SetChannel,
        expected: Expected,
    ) -> Result<Channel, Error> {
        let call = expected.header(self.call(Method::PUT, &route(project, name)?))?;
        call.json(channel)?.answer().await
    }

    pub async fn delete_channel(&self, project: Option<&str>, name: &str) -> Result<(), Error> {
        self.call(Method::DELETE, &route(project, name)?)
            .done()
            .await
    }

    /// Sends a test message and waits for its result: `POST /channels/{channel}/test`.
    pub async fn test_channel(
        &self,
        project: Option<&str>,
        name: &str,
    ) -> Result<SendResult, Error> {
        let route = Route::v0("channels").name(name)?.then("test");
        let route = route.with_some("project", project);
        self.call(Method::POST, &route).held().answer().await
    }

    /// Sends a message again: `POST /channels/{channel}/retry`.
    pub async fn retry_channel(
        &self,
        project: Option<&str>,
        name: &str,
        request: &RetryChannel,
    ) -> Result<(), Error> {
        let route = Route::v0("channels").name(name)?.then("retry");
        let route = route.with_some("project", project);
        self.call(Method::POST, &route).json(request)?.done().await
    }

    /// One page of the attempts to send messages, newest first: `GET /deliveries`.
    pub async fn deliveries(
        &self,
        filter: &DeliveryFilter,
        limit: Option<u32>,
        cursor: Option<&str>,
    ) -> Result<Page<Delivery>, Error> {
        let route = Route::v0("deliveries")
            .with_some("project", filter.project.as_ref())
            .with_some("channel", filter.channel.as_ref())
            .with_some("job", filter.job)
            .with_some("limit", limit)
            .with_some("cursor", cursor);
        self.get(&route).answer().await
    }
}
