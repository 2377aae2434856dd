//! Runners as users see them.

use http::Method;
use wire::{Registration, Runner};

use crate::route::Route;
use crate::{Client, Error};

impl Client {
    /// All registered runners: `GET /runners`.
    ///
    /// # Errors
    /// See [`Error`].
    pub async fn runners(&self) -> Result<Vec<Runner>, Error> {
        self.all(&Route::v0("runners")).await
    }

    /// Forgets a runner, given by id or name, whose jobs fail: `DELETE /runners/{runner}`.
    ///
    /// # Errors
    /// See [`Error`].
    pub async fn delete_runner(&self, runner: &str) -> Result<(), Error> {
        self.call(Method::DELETE, &Route::v0("runners").name(runner)?)
            .done()
            .await
    }

    /// A token for the registration of one runner: `POST /runner-registrations`.
    ///
    /// # Errors
    /// See [`Error`].
    pub async fn create_registration(&self) -> Result<Registration, Error> {
        self.call(Method::POST, &Route::v0("runner-registrations"))
            .answer()
            .await
    }
}
