//! Sessions of browsers: signing in with a token, the few routes that accept sessions, and signing out.

use chrono::TimeDelta;
use http::Method;
use model::Scope;
use serde_json::{Value, json};

use crate::client::{Answer, Call};
use crate::service::{Service, text};

/// A request as a page of the daemon sends it.
fn from_page(call: Call, cookie: &str) -> Call {
    call.header("cookie", cookie)
        .header("sec-fetch-site", "same-origin")
}

async fn sign_in(service: &Service, token: &str) -> Answer {
    Call::post("/v0/sessions")
        .header("user-agent", "Browser/1")
        .json(&json!({"token": token}))
        .send(service.address)
        .await
}

/// Signs in and returns the cookie as the browser sends it back.
async fn signed_in(service: &Service, token: &str) -> String {
    let answer = sign_in(service, token).await;
    answer.expect(201);
    let cookie = answer.header("set-cookie").unwrap();
    cookie.split(';').next().unwrap().to_owned()
}

async fn list(service: &Service, cookie: &str) -> Answer {
    let call = from_page(Call::get("/v0/sessions"), cookie);
    call.send(service.address).await
}

async fn token(service: &Service) -> (String, String) {
    let asked = json!({"name": "person", "scopes": ["job:read"]});
    let created = service.post("/v0/tokens", &asked).await.expect(201);
    (text(&created["id"]), text(&created["secret"]))
}

fn delete(path: &str) -> Call {
    Call::new(Method::DELETE, path)
}

#[tokio::test]
async fn a_browser_signs_in_and_out() {
    let service = Service::start().await;
    let (_, secret) = token(&service).await;
    let answer = sign_in(&service, &secret).await;
    let made = answer.expect(201);
    let cookie = answer.header("set-cookie").unwrap().to_owned();
    assert!(cookie.starts_with("everscan-80="), "{cookie}");
    assert!(
        cookie.ends_with("; Path=/; Max-Age=2592000; HttpOnly; SameSite=Lax"),
        "{cookie}"
    );
    assert_eq!(made["device"], json!("Browser/1"));
    assert_eq!(made["expires_at"], json!("2026-11-27T12:00:00Z"));
    let cookie = cookie.split(';').next().unwrap().to_owned();
    service.clock.advance(TimeDelta::seconds(1));
    let other = signed_in(&service, &secret).await;

    let all = list(&service, &cookie).await.expect(200);
    let current: Vec<_> = all["items"].as_array().unwrap().iter().collect();
    assert_eq!(current.len(), 2);
    assert_eq!(
        (&current[0]["current"], &current[1]["current"]),
        (&Value::Null, &json!(true))
    );
    // Programs also see the sessions of their token.
    let by_token = Call::get("/v0/sessions")
        .bearer(&secret)
        .send(service.address);
    assert_eq!(
        by_token.await.expect(200)["items"]
            .as_array()
            .unwrap()
            .len(),
        2
    );

    let end = delete(&format!("/v0/sessions/{}", text(&made["id"])));
    let ended = from_page(end.clone(), &cookie).send(service.address).await;
    assert_eq!(ended.status, 204);
    assert!(
        ended
            .header("set-cookie")
            .unwrap()
            .starts_with("everscan-80=; ")
    );
    list(&service, &cookie).await.problem(401, "unauthorized");
    let again = from_page(end, &other).send(service.address).await;
    again.problem(404, "not_found");
    list(&service, &other).await.expect(200);
}

#[tokio::test]
async fn a_cookie_is_accepted_by_few_routes_and_only_from_pages_of_the_daemon() {
    let service = Service::start().await;
    let (_, secret) = token(&service).await;
    let cookie = signed_in(&service, &secret).await;
    let ask = |path: &str| from_page(Call::get(path), &cookie);
    let events = ask("/v0/events").send_to_stream(service.address).await;
    assert_eq!(events.status, 200);
    for path in ["/v0/jobs", "/v0/tokens", "/v0/projects"] {
        let answer = ask(path).send(service.address).await;
        answer.problem(401, "unauthorized");
    }
    let both = ask("/v0/sessions").bearer(&secret).send(service.address);
    both.await.problem(400, "invalid_request");
    // What a browser sends to a proxy counts neither for nor against it.
    let proxied = |call: Call| {
        call.header("authorization", "Basic dTpw")
            .send(service.address)
    };
    proxied(ask("/v0/sessions")).await.expect(200);
    for path in ["/v0/sessions", "/v0/jobs"] {
        proxied(Call::get(path)).await.problem(401, "unauthorized");
    }
    for site in ["cross-site", "same-site", "none"] {
        let call = delete("/v0/sessions").header("cookie", &cookie);
        let answer = call.header("sec-fetch-site", site).send(service.address);
        answer.await.problem(403, "forbidden");
    }
    let elsewhere = Call::post("/v0/sessions").header("origin", "https://evil.example.org");
    let elsewhere = elsewhere
        .json(&json!({"token": secret}))
        .send(service.address);
    elsewhere.await.problem(403, "forbidden");
    // The cookie's name contains the port of the page.
    let (name, value) = cookie.split_once('=').unwrap();
    assert_eq!(name, "everscan-80");
    let other = format!("everscan-7411={value}");
    list(&service, &other).await.problem(401, "unauthorized");
    // Over plain HTTP from another machine, the cookie would be sent unencrypted.
    let far = Call::post("/v0/sessions").header("x-forwarded-for", "203.0.113.9");
    let far = far.json(&json!({"token": secret})).send(service.address);
    far.await.problem(403, "forbidden");
    sign_in(&service, "evs_wrong")
        .await
        .problem(401, "unauthorized");
}

#[tokio::test]
async fn signing_out_everywhere_ends_open_streams_but_keeps_the_token() {
    let service = Service::start().await;
    let (_, secret) = token(&service).await;
    let first = signed_in(&service, &secret).await;
    let second = signed_in(&service, &secret).await;
    let events = from_page(Call::get("/v0/events"), &first);
    let mut events = events.open(service.address).await;
    let out = from_page(delete("/v0/sessions"), &second).send(service.address);
    assert_eq!(out.await.status, 204);
    // The stream has no regular end.
    events.breaks_off().await;
    for cookie in [&first, &second] {
        list(&service, cookie).await.problem(401, "unauthorized");
    }
    let jobs = Call::get("/v0/jobs").bearer(&secret).send(service.address);
    jobs.await.expect(200);

    let third = signed_in(&service, &secret).await;
    let out = delete("/v0/sessions?tokens=true");
    assert_eq!(
        from_page(out, &third).send(service.address).await.status,
        204
    );
    let jobs = Call::get("/v0/jobs").bearer(&secret).send(service.address);
    jobs.await.problem(401, "unauthorized");
}

#[tokio::test]
async fn a_token_ends_no_session_that_may_do_more() {
    let service = Service::start().await;
    let device = service.owners_device().await;
    let weak = [Scope::TokenWrite, Scope::JobRead];
    let other = service.personal([Scope::JobRead], None).await;
    let works = async |secret: &str| {
        let call = Call::get("/v0/me").bearer(secret);
        call.send(service.address).await.status == 200
    };
    for is_session in [false, true] {
        let secret = service.personal(weak, None).await;
        let cookie = signed_in(&service, &secret).await;
        let with = |call: Call| match is_session {
            true => from_page(call, &cookie),
            false => call.bearer(&secret),
        };
        let listed = with(Call::get("/v0/sessions")).send(service.address);
        let listed = listed.await.expect(200);
        assert_eq!(listed["items"].as_array().unwrap().len(), 1, "{listed}");
        let all = with(delete("/v0/sessions?tokens=true"));
        all.send(service.address).await.expect(204);
        assert!(!works(&secret).await);
        assert!(works(&device).await && works(&other).await);
    }
    // A token that may do whatever its owner may ends all of them.
    service.admin(delete("/v0/sessions")).await.expect(204);
    assert!(!works(&device).await && works(&other).await);
}

#[tokio::test]
async fn a_token_that_must_stay_does_not_keep_the_sessions() {
    let service = Service::start().await;
    let device = service.owners_device().await;
    let all = delete("/v0/sessions?tokens=true").bearer(&device);
    all.send(service.address).await.problem(409, "last_admin");
    let me = Call::get("/v0/me").bearer(&device).send(service.address);
    me.await.problem(401, "unauthorized");
}

#[tokio::test]
async fn a_session_ends_with_its_token_or_after_disuse() {
    let service = Service::start().await;
    let (id, secret) = token(&service).await;
    let cookie = signed_in(&service, &secret).await;
    // Each use within a week extends the session, up to a month.
    for day in 0..4 {
        assert_eq!(list(&service, &cookie).await.status, 200, "{day}");
        service.sessions_are_seen(&id).await;
        service.clock.advance(TimeDelta::days(6));
    }
    list(&service, &cookie).await.expect(200);
    service.sessions_are_seen(&id).await;
    service.clock.advance(TimeDelta::days(6));
    list(&service, &cookie).await.problem(401, "unauthorized");

    let unused = signed_in(&service, &secret).await;
    service.clock.advance(TimeDelta::days(7));
    list(&service, &unused).await.problem(401, "unauthorized");

    let cookie = signed_in(&service, &secret).await;
    let path = format!("/v0/tokens/{id}/regenerate");
    let new = service.post(&path, &json!({})).await.expect(200);
    list(&service, &cookie).await.problem(401, "unauthorized");
    let cookie = signed_in(&service, &text(&new["secret"])).await;
    let revoked = service.admin(delete(&format!("/v0/tokens/{id}"))).await;
    assert_eq!(revoked.status, 204);
    list(&service, &cookie).await.problem(401, "unauthorized");
}
