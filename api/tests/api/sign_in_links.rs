//! Links that sign a browser in: once, within a short time, and with the rights of their token.

use std::path::Path;

use chrono::TimeDelta;
use futures_util::future::join_all;
use http::Method;
use model::{PlainToken, Scope, TokenKind};
use serde_json::json;

use crate::browser::{Browser, typed};
use crate::client::{Answer, Call};
use crate::service::{Seeded, Service, text};

/// Makes a link, and returns its path and its secret.
async fn make(service: &Service, token: &str) -> (String, String) {
    let call = Call::post("/v0/sign-in-links").bearer(token);
    let made = call.send(service.address).await.expect(201);
    let path = text(&made["url_path"]);
    let secret = path.strip_prefix("/login/").unwrap().to_owned();
    (path, secret)
}

/// Sends the form of the link's page.
async fn follow(service: &Service, secret: &str) -> Answer {
    let call = Call::post("/login").header("sec-fetch-site", "same-origin");
    typed(call, &[("link", secret)]).send(service.address).await
}

/// Checks that the link signs nobody in, and that the answer has the reason and does not repeat the link.
async fn is_over(service: &Service, secret: &str) {
    let looked = Call::get(format!("/login/{secret}")).send(service.address);
    for answer in [looked.await, follow(service, secret).await] {
        assert_eq!(answer.status, 404, "{answer:?}");
        assert_eq!(answer.header("set-cookie"), None);
        let page = answer.text();
        assert!(
            page.contains("This link was used or has expired."),
            "{page}"
        );
        assert!(page.contains("name=\"token\""), "{page}");
        assert!(!page.contains(secret) || secret.is_empty(), "{page}");
    }
}

#[tokio::test]
async fn a_link_signs_one_browser_in_and_viewing_it_does_not_consume_it() {
    let service = Service::start().await;
    let token = service.personal([Scope::JobRead], None).await;
    let call = Call::post("/v0/sign-in-links").bearer(&token);
    let made = call.send(service.address).await.expect(201);
    assert_eq!(made["expires_at"], json!("2026-11-20T12:15:00Z"));
    let path = text(&made["url_path"]);
    assert!(path.starts_with("/login/evi_"), "{path}");
    let secret = path.strip_prefix("/login/").unwrap();

    for method in [Method::GET, Method::HEAD, Method::GET] {
        let answer = Call::new(method, &path).send(service.address).await;
        assert_eq!(answer.status, 200, "{answer:?}");
        assert_eq!(answer.header("cache-control"), Some("no-store"));
        assert_eq!(answer.header("referrer-policy"), Some("same-origin"));
        assert_eq!(answer.header("set-cookie"), None);
    }
    let page = Call::get(&path).send(service.address).await;
    let text_of = "as <b>owner</b>, with the rights of the access token <b>tester</b>.";
    assert!(page.text().contains(text_of), "{page:?}");
    let (whole, _) = make(&service, &service.owners_device().await).await;
    let whole = Call::get(&whole).send(service.address).await;
    assert!(whole.text().contains("as <b>owner</b>."), "{whole:?}");
    let field = format!("name=\"link\" value=\"{secret}\"");
    assert!(page.text().contains(&field), "{page:?}");

    let answer = follow(&service, secret).await;
    let browser = Browser::signed_in_by(&service, &answer);
    browser.page("/jobs").await;
    assert_eq!(
        browser.get("/tokens").await.status,
        403,
        "the session has its token's scopes"
    );
    assert!(browser.page("/settings").await.contains("this one"));
    is_over(&service, secret).await;
    browser.page("/jobs").await;
}

#[tokio::test]
async fn only_one_of_many_concurrent_users_of_a_link_is_signed_in() {
    let service = Service::start().await;
    let (_, secret) = make(&service, &service.admin).await;
    let answers = join_all((0..16).map(|_| follow(&service, &secret))).await;
    let mut statuses: Vec<u16> = answers.iter().map(|answer| answer.status).collect();
    statuses.sort_unstable();
    let mut expected = vec![404; 16];
    expected[0] = 303;
    assert_eq!(statuses, expected);
}

#[tokio::test]
async fn a_link_is_valid_for_fifteen_minutes() {
    let service = Service::start().await;
    let (_, first) = make(&service, &service.admin).await;
    let (_, second) = make(&service, &service.admin).await;
    service.clock.advance(TimeDelta::seconds(15 * 60 - 1));
    assert_eq!(follow(&service, &first).await.status, 303);
    service.clock.advance(TimeDelta::seconds(1));
    is_over(&service, &second).await;
    let unknown = PlainToken::random(TokenKind::SignInLink, &mut Seeded(99));
    let personal = service.admin.clone();
    for wrong in [unknown.reveal(), "wrong", &personal] {
        is_over(&service, wrong).await;
    }
    assert_eq!(follow(&service, "").await.status, 404);
}

#[tokio::test]
async fn a_link_ends_when_its_token_or_all_sessions_end() {
    let service = Service::start().await;
    let asked = json!({"name": "person", "scopes": ["job:read"]});
    let created = service.post("/v0/tokens", &asked).await.expect(201);
    let (id, token) = (text(&created["id"]), text(&created["secret"]));

    let (_, secret) = make(&service, &token).await;
    let out = Call::new(Method::DELETE, "/v0/sessions").bearer(&token);
    assert_eq!(out.send(service.address).await.status, 204);
    is_over(&service, &secret).await;

    // The session of a link is bound to the secret that made the link, like a session of the secret itself.
    let (_, used) = make(&service, &token).await;
    let answer = follow(&service, &used).await;
    let browser = Browser::signed_in_by(&service, &answer);
    browser.page("/jobs").await;
    let (_, secret) = make(&service, &token).await;
    let path = format!("/v0/tokens/{id}/regenerate");
    let new = service.post(&path, &json!({})).await.expect(200);
    is_over(&service, &secret).await;
    assert_eq!(browser.get("/jobs").await.status, 303);

    let (_, secret) = make(&service, &text(&new["secret"])).await;
    let revoke = Call::new(Method::DELETE, format!("/v0/tokens/{id}"));
    service.admin(revoke).await.expect(204);
    is_over(&service, &secret).await;
}

#[tokio::test]
async fn a_session_cannot_make_a_link() {
    let service = Service::start().await;
    let browser = Browser::admin(&service).await;
    let call = browser.call(Method::POST, "/v0/sign-in-links");
    let answer = browser.send(call).await;
    answer.problem(401, "unauthorized");
}

#[tokio::test]
async fn the_audit_log_has_links_but_no_file_has_their_secrets() {
    let service = Service::start().await;
    let (_, secret) = make(&service, &service.admin).await;
    assert_eq!(follow(&service, &secret).await.status, 303);
    let listed = service.get("/v0/audit").await.expect(200);
    let lines = listed["items"].as_array().unwrap();
    let has = |path: &str| {
        let made = lines.iter().filter(|line| line["path"] == path);
        made.filter(|line| line["method"] == "POST").count()
    };
    assert_eq!(
        (has("/v0/sign-in-links"), has("/login")),
        (1, 1),
        "{listed}"
    );
    let mut read = 0;
    no_file_has(&service.root(), secret.as_bytes(), &mut read);
    assert!(read > 5, "{read}");
}

/// The journal and the audit log are among the files.
fn no_file_has(folder: &Path, secret: &[u8], read: &mut usize) {
    for entry in std::fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            no_file_has(&path, secret, read);
        } else if let Ok(content) = std::fs::read(&path) {
            let found = content.windows(secret.len()).any(|part| part == secret);
            assert!(!found, "{}", path.display());
            *read += 1;
        }
    }
}

#[tokio::test]
async fn a_sign_in_must_name_its_origin() {
    let service = Service::start().await;
    let (_, secret) = make(&service, &service.admin).await;
    let own = format!("http://{}", service.address);
    let host = service.address.to_string();
    let send = async |headers: &[(&str, &str)], field: (&str, &str)| {
        let mut call = Call::post("/login").header("host", &host);
        for (name, value) in headers {
            call = call.header(name, value);
        }
        typed(call, &[field]).send(service.address).await.status
    };
    for field in [("token", service.admin.as_str()), ("link", &secret)] {
        for wrong in [
            &[][..],
            &[("origin", "https://evil.example.org")],
            &[("origin", "null")],
            &[("sec-fetch-site", "none")],
            &[("sec-fetch-site", "cross-site"), ("origin", &own)],
        ] {
            assert_eq!(send(wrong, field).await, 403, "{wrong:?}");
        }
        let twice = [
            ("origin", own.as_str()),
            ("origin", "https://evil.example.org"),
        ];
        assert_eq!(send(&twice, field).await, 400);
        // The refused attempts did not consume the link.
        assert_eq!(send(&[("origin", &own)], field).await, 303);
    }
}
