//! Sources, and whether the daemon is there at all.

use http::Method;
use wire::Source;

use crate::route::Route;
use crate::{Client, Error};

impl Client {
    /// Whether the daemon is up: `GET /healthz`.
    ///
    /// # Errors
    /// Any [`Error`] when it is not.
    pub async fn health(&self) -> Result<(), Error> {
        self.get(&Route::outside("/healthz")).done().await
    }

    /// All sources: `GET /sources`.
    ///
    /// # Errors
    /// See [`Error`].
    pub async fn sources(&self) -> Result<Vec<Source>, Error> {
        self.all(&Route::v0("sources")).await
    }

    /// One source: `GET /sources/{name}`.
    ///
    /// # Errors
    /// See [`Error`].
    pub async fn source(&self, name: &str) -> Result<Source, Error> {
        self.get(&Route::v0("sources").name(name)?).answer().await
    }

    /// Makes the daemon look at the repository now: `POST /sources/{name}/sync`. With `wait` the answer is the source
    /// after this look, without it the source as it is now.
    ///
    /// # Errors
    /// See [`Error`].
    pub async fn sync_source(&self, name: &str, wait: bool) -> Result<Source, Error> {
        let route = Route::v0("sources").name(name)?.then("sync");
        let call = if wait {
            self.call(Method::POST, &route.with("wait", true)).held()
        } else {
            self.call(Method::POST, &route)
        };
        call.answer().await
    }
}
