//! Personal access tokens.

use http::Method;
use wire::{CreateToken, CreatedToken, MoveToken, RegenerateToken, Token};

use crate::route::Route;
use crate::{Client, Error};

impl Client {
    /// The tokens of a user, of all users (`all`), or of the caller.
    pub async fn tokens(&self, user: Option<&str>) -> Result<Vec<Token>, Error> {
        self.all(&Route::v0("tokens").with_some("user", user)).await
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

    /// Gives a token to another user: `POST /tokens/{token}/move`.
    pub async fn move_token(&self, token: &str, user: &str) -> Result<Token, Error> {
        let route = Route::v0("tokens").name(token)?.then("move");
        let request = MoveToken {
            user: user.to_owned(),
        };
        let call = self.call(Method::POST, &route);
        call.json(&request)?.answer().await
    }
}
