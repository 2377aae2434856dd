//! Devices that a person signs in with a signed-in browser.

use chrono::TimeDelta;
use http::Method;
use serde_json::{Value, json};

use crate::client::{Answer, Call};
use crate::people::{PASSWORD, Person, use_password};
use crate::service::{Service, text};

async fn begin(service: &Service) -> Value {
    let call = Call::post("/v0/device-logins").json(&json!({"device": "laptop"}));
    call.send(service.address).await.expect(201)
}

async fn ask(service: &Service, begun: &Value) -> Answer {
    let body = json!({"device_code": begun["device_code"]});
    let call = Call::post("/v0/sessions").json(&body);
    call.send(service.address).await
}

fn session_of(service: &Service, person: &Person) -> model::SessionId {
    let (_, cookie) = person.session.split_once('=').unwrap();
    let session = model::SessionCookie::parse(cookie).unwrap().session;
    assert!(
        service
            .handle
            .state()
            .read(|world| world.session(session).is_some())
    );
    session
}

/// The person confirms the code that the device shows.
fn confirm(service: &Service, begun: &Value, person: &Person) -> bool {
    let session = session_of(service, person);
    let code = text(&begun["user_code"]);
    service.handle.sign_ins().confirm_device(&code, session)
}

async fn signed_in(service: &Service, person: &Person) -> String {
    let begun = begin(service).await;
    assert!(confirm(service, &begun, person));
    let answer = ask(service, &begun).await;
    assert_eq!(answer.header("set-cookie"), None);
    let shown = answer.expect(201);
    assert_eq!(shown["device"], "laptop");
    text(&shown["secret"])
}

#[tokio::test]
async fn a_confirmed_device_gets_a_secret_for_all_of_v0() {
    let service = Service::start().await;
    let (_, anna) = service.person("anna").await;
    let begun = begin(&service).await;
    assert_eq!(begun["expires_in_seconds"], 600);
    let code = text(&begun["user_code"]);
    assert_eq!(begun["url_path"], format!("/device?code={code}"));
    let shown = service.handle.sign_ins().waiting_device(&code).unwrap();
    assert_eq!(shown.device, "laptop");
    // The device asks before and after the confirmation.
    let (answer, is_confirmed) = tokio::join!(ask(&service, &begun), async {
        tokio::task::yield_now().await;
        confirm(&service, &begun, &anna)
    });
    assert!(is_confirmed);
    let secret = text(&answer.expect(201)["secret"]);
    assert!(secret.starts_with("evd_"), "{secret}");
    for path in ["/v0/jobs", "/v0/sessions", "/v0/tokens"] {
        let call = Call::get(path).bearer(&secret);
        call.send(service.address).await.expect(200);
    }
    ask(&service, &begun).await.problem(404, "not_found");
    assert!(!confirm(&service, &begun, &anna), "once");
    // A bearer is no cookie, and needs no origin.
    let token = Call::post("/v0/tokens").bearer(&secret);
    let token = token.json(&json!({"name": "mine", "scopes": ["job:read"]}));
    token.send(service.address).await.expect(201);
    let listed = anna.call(Method::GET, "/v0/sessions").send(service.address);
    let listed = listed.await.expect(200);
    assert_eq!(listed["items"].as_array().unwrap().len(), 2, "{listed}");
}

#[tokio::test]
async fn a_device_is_told_to_ask_again_and_its_code_ends() {
    let service = Service::start().await;
    let begun = begin(&service).await;
    let unknown = json!({"device_code": "0".repeat(64)});
    for wrong in [unknown, json!({"device_code": begun["user_code"]})] {
        ask(&service, &wrong).await.problem(404, "not_found");
    }
    tokio::time::pause();
    ask(&service, &begun).await.problem(409, "login_pending");
    service.clock.advance(TimeDelta::minutes(10));
    ask(&service, &begun).await.problem(404, "not_found");
}

#[tokio::test]
async fn a_device_is_not_younger_than_the_sign_in_that_confirmed_it() {
    let service = Service::start().await;
    let (_, anna) = service.person("anna").await;
    service.clock.advance(TimeDelta::minutes(10));
    let secret = signed_in(&service, &anna).await;
    let call = Call::post("/v0/tokens").bearer(&secret);
    let call = call.json(&json!({"name": "mine", "scopes": ["job:read"]}));
    let answer = call.send(service.address).await;
    answer.problem(403, "sign_in_again");
}

#[tokio::test]
async fn a_device_ends_with_its_person_and_a_session_that_ended_confirms_nothing() {
    let service = Service::start().await;
    service.person("boss").await;
    let (id, anna) = service.person("anna").await;
    let secret = signed_in(&service, &anna).await;
    let begun = begin(&service).await;
    assert!(confirm(&service, &begun, &anna));
    let out = Call::new(Method::DELETE, "/v0/sessions").bearer(&secret);
    out.send(service.address).await.expect(204);
    let call = Call::get("/v0/jobs").bearer(&secret);
    call.send(service.address)
        .await
        .problem(401, "unauthorized");
    ask(&service, &begun).await.problem(404, "not_found");

    let answer = use_password("anna", PASSWORD).send(service.address).await;
    let secret = signed_in(&service, &Person::of(&answer)).await;
    service.deactivate(id).await;
    let call = Call::get("/v0/jobs").bearer(&secret);
    call.send(service.address)
        .await
        .problem(401, "unauthorized");
}

#[tokio::test]
async fn a_new_password_ends_devices_and_those_that_are_confirmed() {
    let service = Service::start().await;
    let (_, anna) = service.person("anna").await;
    let device = signed_in(&service, &anna).await;
    let begun = begin(&service).await;
    assert!(confirm(&service, &begun, &anna));
    let call = anna.call(Method::PUT, "/v0/me/password");
    let call = call.json(&json!({"password": "another horse battery"}));
    call.send(service.address).await.expect(204);
    ask(&service, &begun).await.problem(404, "not_found");
    // A device that sets a password signs in again, too.
    let again = use_password("anna", "another horse battery");
    let again = Person::of(&again.send(service.address).await);
    let other = signed_in(&service, &again).await;
    let call = Call::new(Method::PUT, "/v0/me/password").bearer(&other);
    let call = call.json(&json!({"password": PASSWORD}));
    let answer = call.send(service.address).await;
    answer.expect(204);
    assert_eq!(answer.header("set-cookie"), None);
    for secret in [device, other] {
        let call = Call::get("/v0/me").bearer(&secret);
        let answer = call.send(service.address).await;
        answer.problem(401, "unauthorized");
    }
}

#[tokio::test]
async fn the_name_of_a_device_has_no_invisible_characters() {
    let service = Service::start().await;
    let name = " lap\u{200b}top\u{202e} of\u{2066} anna\u{feff} ";
    let call = Call::post("/v0/device-logins").json(&json!({"device": name}));
    let begun = call.send(service.address).await.expect(201);
    let waiting = service.handle.sign_ins();
    let waiting = waiting.waiting_device(&text(&begun["user_code"])).unwrap();
    assert_eq!(waiting.device, "laptop of anna");
    let call = Call::post("/v0/device-logins").json(&json!({"device": "\u{202e}"}));
    call.send(service.address)
        .await
        .problem(400, "invalid_request");
}

#[tokio::test]
async fn a_device_that_a_token_session_confirms_may_do_what_the_token_may() {
    let service = Service::start().await;
    let token = service.personal([model::Scope::JobRead], None).await;
    let call = Call::post("/v0/sessions").json(&json!({"token": token}));
    let answer = call.send(service.address).await;
    let cookie = answer
        .header("set-cookie")
        .unwrap()
        .split(';')
        .next()
        .unwrap();
    let person = Person {
        session: cookie.to_owned(),
        browser: String::new(),
    };
    let secret = signed_in(&service, &person).await;
    let allowed = Call::get("/v0/jobs").bearer(&secret);
    allowed.send(service.address).await.expect(200);
    let refused = Call::get("/v0/tokens").bearer(&secret);
    refused
        .send(service.address)
        .await
        .problem(403, "forbidden");
}

#[tokio::test]
async fn devices_that_wait_are_bounded_for_each_network() {
    let service = Service::start().await;
    let call = Call::post("/v0/device-logins").json(&json!({"device": "laptop"}));
    for _ in 0..5 {
        call.clone().send(service.address).await.expect(201);
    }
    let refused = call.send(service.address).await;
    refused.problem(429, "rate_limited");
    assert!(refused.header("retry-after").is_some());
    for device in ["", " ", "a\nb", &"x".repeat(1_000)] {
        let call = Call::post("/v0/device-logins").json(&json!({"device": device}));
        call.send(service.address)
            .await
            .problem(400, "invalid_request");
    }
}

#[tokio::test]
async fn a_link_ends_with_the_device_that_made_it() {
    let service = Service::start().await;
    let (_, anna) = service.person("anna").await;
    let secret = signed_in(&service, &anna).await;
    let call = Call::post("/v0/sign-in-links").bearer(&secret);
    let made = call.send(service.address).await.expect(201);
    let link = text(&made["url_path"]);
    let shown = Call::get(&link).send(service.address).await;
    assert_eq!(shown.status, 200, "{shown:?}");
    let listed = Call::get("/v0/sessions").bearer(&secret);
    let listed = listed.send(service.address).await.expect(200);
    let mut sessions = listed["items"].as_array().unwrap().iter();
    let device = sessions.find(|it| it["device"] == "laptop").unwrap();
    let end = format!("/v0/sessions/{}", text(&device["id"]));
    let end = Call::new(Method::DELETE, end).bearer(&secret);
    end.send(service.address).await.expect(204);
    let shown = Call::get(&link).send(service.address).await;
    assert_eq!(shown.status, 404, "{shown:?}");
    let call = Call::post("/login").header("sec-fetch-site", "same-origin");
    let (_, secret) = link.rsplit_once('/').unwrap();
    let call = crate::browser::typed(call, &[("link", secret)]);
    let answer = call.send(service.address).await;
    assert_eq!(answer.header("set-cookie"), None, "{answer:?}");
}
