//! Runners as users see them.

use http::Method;
use wire::{Registration, Runner};

use crate::route::Route;
use crate::{Client, Error};

impl Client {
    /// All registered runners: `GET /runners`.
    pub async fn runners(&self) -> Result<Vec<Runner>, Error> {
        self.all(&Route::v0("runners")).await
    }

    /// One runner with the jobs that take its slots, by id or name: `GET /runners/{runner}`.
    pub async fn runner(&self, runner: &str) -> Result<Runner, Error> {
        self.get(&Route::v0("runners").name(runner)?).answer().await
    }

    /// Removes a runner, by id or name: `DELETE /runners/{runner}`. Its jobs fail.
    pub async fn delete_runner(&self, runner: &str) -> Result<(), Error> {
        self.call(Method::DELETE, &Route::v0("runners").name(runner)?)
            .done()
            .await
    }

    /// Makes a token for the registration of one runner: `POST /runner-registrations`.
    pub async fn create_registration(&self) -> Result<Registration, Error> {
        self.call(Method::POST, &Route::v0("runner-registrations"))
            .once()?
            .answer()
            .await
    }
}
