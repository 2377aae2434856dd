//! Sessions of browsers and devices.

use std::net::IpAddr;

use chrono::{DateTime, Utc};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use uuid::Uuid;

/// The body of a sign-in: exactly one of its forms.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(
    untagged,
    deny_unknown_fields,
    expecting = "must have exactly the members `token`, `user` and `password`, `link` and `password`, or `device_code`, as texts"
)]
pub enum CreateSession {
    /// The session may do what the token may, and ends with it.
    Token {
        /// The secret of an access token.
        token: String,
    },
    Password {
        user: String,
        password: String,
    },
    /// An invitation or a reset.
    Link {
        /// The last part of the link's address.
        link: String,
        /// The new password, of 15 to 256 characters.
        password: String,
    },
    /// Waits up to 30 seconds for a confirmation in a signed-in browser.
    Device {
        /// From the answer of `POST /v0/device-logins`.
        device_code: String,
    },
}

/// A new session.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct CreatedSession {
    #[serde(flatten)]
    pub session: Session,
    /// For a device: the bearer token of its requests, which only this answer has. A browser gets a cookie.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub secret: Option<String>,
}

/// The body of a device that wants to sign in.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct CreateDeviceLogin {
    /// A name for the person who confirms, such as the name of the machine.
    pub device: String,
}

/// A sign-in of a device, which waits for a person.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct DeviceLogin {
    /// For the sign-in of the device. It is shown once.
    pub device_code: String,
    /// For the person, as in `ABCD-EFGH`. The page that confirms shows the same.
    pub user_code: String,
    /// The part after the daemon's address, which a signed-in browser opens.
    pub url_path: String,
    pub expires_in_seconds: u64,
}

/// The empty body of a request for a sign-in link.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct CreateSignInLink {}

/// A new link that signs in one browser.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct SignInLink {
    /// The part after the daemon's address. It is shown once, and works once for anyone who has it.
    pub url_path: String,
    pub expires_at: DateTime<Utc>,
}

/// A signed-in browser or device.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Session {
    pub id: Uuid,
    /// As the browser describes itself, or the name that the device gave.
    pub device: String,
    /// The name of the token that made it: it may do what the token may, and ends with it. Absent: what the user may.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub token: Option<String>,
    /// The address at sign-in.
    pub address: IpAddr,
    pub created_at: DateTime<Utc>,
    /// The last use, rounded to the hour.
    pub seen_at: DateTime<Utc>,
    /// When it ends, unless it is used before.
    pub expires_at: DateTime<Utc>,
    /// True for the session of this request.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub current: bool,
}

redacted!(
    CreateSession {},
    CreatedSession { session },
    DeviceLogin {
        url_path,
        expires_in_seconds
    },
    SignInLink { expires_at }
);

#[cfg(test)]
mod tests {
    use serde_json::{from_value, json};

    use super::*;

    #[test]
    fn a_sign_in_has_exactly_one_form() {
        for form in [
            json!({"token": "t"}),
            json!({"user": "ann", "password": "p"}),
            json!({"link": "evu_x", "password": "p"}),
            json!({"device_code": "d"}),
        ] {
            let read: CreateSession = from_value(form.clone()).unwrap();
            assert_eq!(serde_json::to_value(&read).unwrap(), form);
            assert!(!format!("{read:?}").contains('"'), "{read:?}");
        }
        for wrong in [
            json!({}),
            json!({"token": "t", "user": "ann"}),
            json!({"user": "ann"}),
            json!({"user": "ann", "password": "p", "link": "evu_x"}),
            json!({"device_code": 1}),
        ] {
            let error = from_value::<CreateSession>(wrong).unwrap_err();
            assert!(error.to_string().contains("`user` and `password`"));
        }
    }
}
