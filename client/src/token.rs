//! Personal access tokens, and links that sign browsers in.

use http::Method;
use wire::{CreateToken, CreatedToken, RegenerateToken, SignInLink, Token};

use crate::route::Route;
use crate::{Client, Error};

impl Client {
    pub async fn tokens(&self) -> Result<Vec<Token>, Error> {
        self.all(&Route::v0("tokens")).await
    }

    /// Makes a token: `POST /tokens`. Only this answer has its secret.
    pub async fn create_token(&self, token: &CreateToken) -> Result<CreatedToken, Error> {
        self.call(Method::POST, &Route::v0("tokens"))
            .once()?
            .json(token)?
            .answer()
            .await
    }

    pub async fn regenerate_token(
        &self,
        token: &str,
        request: &RegenerateToken,
    ) -> Result<CreatedToken, Error> {
        let route = Route::v0("tokens").name(token)?.then("regenerate");
        self.call(Method::POST, &route)
            .once()?
            .json(request)?
            .answer()
            .await
    }

    pub async fn revoke_token(&self, token: &str) -> Result<(), Error> {
        let route = Route::v0("tokens").name(token)?;
        self.call(Method::DELETE, &route).done().await
    }

    pub async fn create_sign_in_link(&self) -> Result<SignInLink, Error> {
        self.call(Method::POST, &Route::v0("sign-in-links"))
            .answer()
            .await
    }
}
