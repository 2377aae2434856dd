//! Links that sign browsers in.

use http::Method;
use wire::SignInLink;

use crate::route::Route;
use crate::{Client, Error};

impl Client {
    pub async fn create_sign_in_link(&self) -> Result<SignInLink, Error> {
        self.call(Method::POST, &Route::v0("sign-in-links"))
            .answer()
            .await
    }
}
