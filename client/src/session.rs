//! Sessions of browsers and devices.

use http::Method;
use uuid::Uuid;
use wire::{CreateDeviceLogin, CreateSession, CreatedSession, DeviceLogin, Session, SignInLink};

use crate::repetition::Patience;
use crate::route::Route;
use crate::{Client, Error, Secret};

impl Client {
    /// Begins the sign-in of a device: `POST /device-logins`. It needs no token.
    pub async fn create_device_login(&self, device: &str) -> Result<DeviceLogin, Error> {
        let request = CreateDeviceLogin {
            device: device.to_owned(),
        };
        let call = self.call(Method::POST, &Route::v0("device-logins"));
        call.json(&request)?.answer().await
    }

    /// Waits for a person to confirm the sign-in of a device: `POST /sessions`. The daemon answers
    /// [`wire::ErrorCode::LoginPending`] after a while, and wants to be asked again. A repeat is harmless: it gets no second session.
    pub async fn await_device_login(&self, device_code: &str) -> Result<(Session, Secret), Error> {
        let request = CreateSession::Device {
            device_code: device_code.to_owned(),
        };
        let call = self.call(Method::POST, &Route::v0("sessions"));
        let call = call.held().patience(Patience::Wait).json(&request)?;
        let without_secret = Error::Protocol {
            operation: call.operation(),
            reason: "it has no secret".to_owned(),
        };
        let CreatedSession { session, secret } = call.answer().await?;
        let secret = secret.ok_or(without_secret)?;
        Ok((session, Secret::new(secret)))
    }

    pub async fn sessions(&self) -> Result<Vec<Session>, Error> {
        self.all(&Route::v0("sessions")).await
    }

    pub async fn delete_session(&self, session: Uuid) -> Result<(), Error> {
        let route = Route::v0("sessions").id(session);
        self.call(Method::DELETE, &route).done().await
    }

    /// Ends all sessions of the user: `DELETE /sessions`. With `tokens`, also revokes the user's tokens.
    pub async fn delete_sessions(&self, tokens: bool) -> Result<(), Error> {
        let tokens = tokens.then_some(true);
        let route = Route::v0("sessions").with_some("tokens", tokens);
        self.call(Method::DELETE, &route).done().await
    }

    pub async fn create_sign_in_link(&self) -> Result<SignInLink, Error> {
        self.call(Method::POST, &Route::v0("sign-in-links"))
            .answer()
            .await
    }
}
