//! Signing in with a token, and signing out.

use chrono::TimeDelta;
use model::Scope;

use crate::browser::{Browser, sign_in, typed};
use crate::client::Call;
use crate::pages::check_markup;
use crate::service::Service;

#[tokio::test]
async fn a_sign_in_needs_a_valid_token_and_redirects_only_within_this_daemon() {
    let service = Service::start().await;
    let short = service
        .personal([Scope::JobRead], Some(TimeDelta::seconds(5)))
        .await;
    service.clock.advance(TimeDelta::seconds(5));
    for token in ["", "wrong", "evs_wrong", short.as_str()] {
        let answer = sign_in(&service, token, "/jobs").await;
        assert_eq!(answer.status, 422, "{answer:?}");
        assert_eq!(answer.header("set-cookie"), None);
        let page = answer.text();
        check_markup("/login", page);
        assert!(page.contains("This token is not valid"), "{page}");
        assert!(page.contains("aria-invalid=\"true\""), "{page}");
        assert!(page.contains("value=\"/jobs\""), "{page}");
        assert!(!page.contains(&format!("value=\"{token}\"")) || token.is_empty());
    }
    for (next, to) in [
        ("/jobs?state=failed", "/jobs?state=failed"),
        ("", "/"),
        ("//evil.example.org", "/"),
        ("https://evil.example.org/", "/"),
        ("/\\evil.example.org", "/"),
        ("/\tx", "/"),
        ("javascript:alert(1)", "/"),
        ("/x\r\nset-cookie: a=b", "/"),
        ("/../x", "/"),
        ("/jobs/%2e%2E/..", "/"),
    ] {
        let answer = sign_in(&service, &service.admin, next).await;
        assert_eq!(answer.status, 303, "{next}");
        assert_eq!(answer.header("location"), Some(to), "{next}");
        assert!(answer.header("set-cookie").unwrap().contains("HttpOnly"));
    }
    let form = [("token", service.admin.as_str())];
    let elsewhere = Call::post("/login").header("sec-fetch-site", "cross-site");
    let answer = typed(elsewhere, &form).send(service.address).await;
    assert_eq!((answer.status, answer.header("set-cookie")), (403, None));
    // The page to return to is kept.
    let answer = Call::get("/jobs?state=failed").send(service.address).await;
    let to = "/login?next=%2Fjobs%3Fstate%3Dfailed";
    assert_eq!(answer.header("location"), Some(to));
    let page = Call::get(to).send(service.address).await;
    assert_eq!(page.status, 200);
    assert!(page.text().contains("value=\"/jobs?state=failed\""));
}

#[tokio::test]
async fn a_sign_out_ends_the_session() {
    let service = Service::start().await;
    let browser = Browser::admin(&service).await;
    let other = Browser::admin(&service).await;
    let page = browser.page("/settings").await;
    assert!(page.contains("this one"), "{page}");
    let answer = browser.post("/logout", &[]).await;
    assert_eq!(answer.header("location"), Some("/login"));
    assert!(answer.header("set-cookie").unwrap().contains("Max-Age=0"));
    assert_eq!(browser.get("/jobs").await.status, 303);
    assert_eq!(other.get("/jobs").await.status, 200);
    assert_eq!(other.done("/settings/sessions/end", &[]).await, "/login");
    assert_eq!(other.get("/jobs").await.status, 303);
}

#[tokio::test]
async fn the_first_sign_in_says_where_its_token_is() {
    let service = Service::start().await;
    let login = async || {
        let page = Call::get("/login").send(service.address).await;
        page.text().to_owned()
    };
    assert!(login().await.contains("initial-admin-token"));
    drop(Browser::admin(&service).await);
    assert!(!login().await.contains("initial-admin-token"));
}
