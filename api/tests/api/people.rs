//! People who sign in: tools for the tests about passwords and devices.

use api::Front;
use http::Method;
use model::decide::{CreateUser, Giver, MakeUserLink, NewUser, SignIn, SignedInBy, UpdateUser};
use model::{Rights, UserId};
use serde_json::{Value, json};

use crate::client::{Answer, Call};
use crate::service::{Service, front};

pub(crate) const PASSWORD: &str = "correct horse battery";

impl Service {
    /// A service behind a proxy on this machine, so that each test chooses the addresses of its callers.
    pub(crate) async fn behind_a_proxy() -> Self {
        Self::fronted(Front {
            trusted_proxies: vec!["127.0.0.1".parse().unwrap()],
            ..front()
        })
        .await
    }

    /// Invites a person, and returns the secret of the link.
    pub(crate) async fn invite(&self, name: &str, by: UserId) -> String {
        let create = CreateUser {
            name: name.parse().unwrap(),
            is_service: false,
            is_administrator: true,
            roles: [].into(),
            by: giver(by),
        };
        secret(self.handle.state().submit(create).await.unwrap())
    }

    /// A link for a new password.
    pub(crate) async fn reset(&self, user: UserId, by: UserId) -> String {
        let by = Some(giver(by));
        let make = MakeUserLink { user, by };
        secret(self.handle.state().submit(make).await.unwrap())
    }

    /// A person with the usual password.
    pub(crate) async fn person(&self, name: &str) -> (UserId, Person) {
        let link = self.invite(name, UserId::OWNER).await;
        let answer = use_link(&link, PASSWORD).send(self.address).await;
        answer.expect(201);
        (self.user(name), Person::of(&answer))
    }

    /// The secret of a device of the owner.
    pub(crate) async fn owners_device(&self) -> String {
        self.device_of(UserId::OWNER).await
    }

    /// The secret of a device of a person.
    pub(crate) async fn device_of(&self, user: UserId) -> String {
        let state = self.handle.state();
        let sign_in = SignIn {
            by: SignedInBy::Person {
                user,
                epoch: state.read(|world| world.user(user).unwrap().epoch),
                signed_in_at: None,
            },
            is_device: true,
            device: "laptop".to_owned(),
            address: [127, 0, 0, 1].into(),
        };
        let made = state.submit(sign_in).await.unwrap();
        made.cookie.secret.reveal().to_owned()
    }

    pub(crate) fn user(&self, name: &str) -> UserId {
        let name = name.parse().unwrap();
        let state = self.handle.state();
        state.read(|world| world.user_named(&name).unwrap().id)
    }

    pub(crate) async fn deactivate(&self, user: UserId) {
        let update = UpdateUser {
            user,
            active: Some(false),
            administrator: None,
        };
        self.handle.state().submit(update).await.unwrap();
    }
}

fn giver(user: UserId) -> Giver {
    Giver {
        user,
        rights: Rights::admin(),
        token: None,
    }
}

fn secret(made: NewUser) -> String {
    made.secret.unwrap().reveal().to_owned()
}

/// Signs in with an invitation or a reset.
pub(crate) fn use_link(link: &str, password: &str) -> Call {
    Call::post("/v0/sessions").json(&json!({"link": link, "password": password}))
}

pub(crate) fn use_password(user: &str, password: &str) -> Call {
    Call::post("/v0/sessions").json(&json!({"user": user, "password": password}))
}

/// A call from another machine, which comes through the proxy.
pub(crate) fn from(call: Call, address: &str) -> Call {
    call.header("x-forwarded-for", address)
        .header("x-forwarded-proto", "https")
}

/// The cookies of a signed-in person.
#[derive(Debug, Clone)]
pub(crate) struct Person {
    pub(crate) session: String,
    pub(crate) browser: String,
}

impl Person {
    pub(crate) fn of(answer: &Answer) -> Self {
        let set = answer.headers.get_all("set-cookie").iter();
        let pairs = set.map(|line| line.to_str().unwrap().split(';').next().unwrap());
        let (mut browser, mut session) = (None, None);
        for pair in pairs {
            match pair.contains("browser") {
                true => browser = Some(pair.to_owned()),
                false => session = Some(pair.to_owned()),
            }
        }
        Self {
            session: session.unwrap(),
            browser: browser.unwrap(),
        }
    }

    pub(crate) fn call(&self, method: Method, path: &str) -> Call {
        Call::new(method, path)
            .header("cookie", &self.session)
            .header("sec-fetch-site", "same-origin")
    }

    pub(crate) async fn is_signed_in(&self, service: &Service) -> bool {
        let call = self.call(Method::GET, "/v0/sessions");
        call.send(service.address).await.status == 200
    }
}

/// The body of a problem without what differs between requests.
pub(crate) fn same(answer: &Answer) -> Value {
    let mut body = answer.json();
    body.as_object_mut().unwrap().remove("request_id");
    body
}
