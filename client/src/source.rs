//! Sources, and the daemon's health.

use http::Method;
use wire::{ApproveSource, Page, Source, Tip};

use crate::route::Route;
use crate::{Client, Error};

impl Client {
    pub async fn health(&self) -> Result<(), Error> {
        self.get(&Route::outside("/healthz")).open().await.map(drop)
    }

    pub async fn sources(&self) -> Result<Vec<Source>, Error> {
        self.all(&Route::v0("sources")).await
    }

    pub async fn source(&self, name: &str) -> Result<Source, Error> {
        self.get(&Route::v0("sources").name(name)?).answer().await
    }

    pub async fn tips(
        &self,
        source: &str,
        limit: u32,
        cursor: Option<&str>,
    ) -> Result<Page<Tip>, Error> {
        let route = Route::v0("sources").name(source)?.then("tips");
        let route = route.with("limit", limit).with_some("cursor", cursor);
        self.get(&route).answer().await
    }

    /// Makes the daemon poll the repository now: `POST /sources/{name}/sync`. Returns the source at once, or after the poll with
    /// `wait`.
    pub async fn sync_source(&self, name: &str, wait: bool) -> Result<Source, Error> {
        let route = Route::v0("sources").name(name)?.then("sync");
        let call = if wait {
            self.call(Method::POST, &route.with("wait", true)).held()
        } else {
            self.call(Method::POST, &route)
        };
        call.answer().await
    }

    /// Approves a held tip: `POST /sources/{name}/approve`. Returns the source after the tip is applied.
    pub async fn approve_source(
        &self,
        name: &str,
        request: &ApproveSource,
    ) -> Result<Source, Error> {
        let route = Route::v0("sources").name(name)?.then("approve");
        self.call(Method::POST, &route.with("wait", true))
            .held()
            .json(request)?
            .answer()
            .await
    }
}
