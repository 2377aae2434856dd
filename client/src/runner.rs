//! Runners: listing, showing, limiting and removing them.

use http::Method;
use wire::{CreateRegistration, LimitRunner, Registration, Runner};

use crate::route::Route;
use crate::{Client, Error};

impl Client {
    pub async fn runners(&self) -> Result<Vec<Runner>, Error> {
        self.all(&Route::v0("runners")).await
    }

    pub async fn runner(&self, runner: &str) -> Result<Runner, Error> {
        self.get(&Route::v0("runners").name(runner)?).answer().await
    }

    /// Removes a runner, by id or name: `DELETE /runners/{runner}`. Its jobs fail.
    pub async fn delete_runner(&self, runner: &str) -> Result<(), Error> {
        self.call(Method::DELETE, &Route::v0("runners").name(runner)?)
            .done()
            .await
    }

    pub async fn limit_runner(&self, runner: &str, limit: &LimitRunner) -> Result<Runner, Error> {
        self.call(Method::PATCH, &Route::v0("runners").name(runner)?)
            .json(limit)?
            .answer()
            .await
    }

    pub async fn create_registration(
        &self,
        registration: &CreateRegistration,
    ) -> Result<Registration, Error> {
        self.call(Method::POST, &Route::v0("runner-registrations"))
            .once()?
            .json(registration)?
            .answer()
            .await
    }
}
