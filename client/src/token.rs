//! Personal access tokens.

use http::Method;
use wire::{CreateToken, CreatedToken, Token};

use crate::route::Route;
use crate::{Client, Error};

impl Client {
    /// All tokens of this user, without their secrets: `GET /tokens`.
    pub async fn tokens(&self) -> Result<Vec<Token>, Error> {
        self.all(&Route::v0("tokens")).await
    }

    /// Makes a token: `POST /tokens`. Only this answer has its secret.
    pub async fn create_token(&self, token: &CreateToken) -> Result<CreatedToken, Error> {
        self.call(Method::POST, &Route::v0("tokens"))
            .json(token)?
            .answer()
            .await
    }
}
