//! Pages that scripts fetch again: rendered once for all readers with the same rights, but with each reader's own name and keys.

use http::Method;
use serde_json::json;

use crate::browser::Browser;
use crate::client::{Answer, Call};
use crate::service::Service;
use crate::user_pages::person;

fn again(browser: &Browser<'_>, path: &str) -> Call {
    browser.call(Method::GET, path).header("prefer", "wait=1")
}

async fn renewed(browser: &Browser<'_>, path: &str) -> Answer {
    browser.send(again(browser, path)).await
}

/// The secret of a new token.
async fn token(service: &Service, name: &str, scope: &str) -> String {
    let asked = json!({ "name": name, "scopes": [scope] });
    let made = service.post("/v0/tokens", &asked).await.expect(201);
    made["secret"].as_str().unwrap().to_owned()
}

/// The first key of a form.
fn key(page: &str) -> &str {
    let (_, after) = page
        .split_once("name=\"idempotency_key\" value=\"")
        .unwrap();
    after.split_once('-').unwrap().0
}

#[tokio::test]
async fn each_reader_of_a_shared_page_sees_the_own_name_and_own_form_keys() {
    let service = Service::start().await;
    let one = person(&service, "one", "main=operator").await;
    let two = person(&service, "two", "main=operator").await;
    // One request is being rendered, so the others wait for the next rendering and share it.
    let asked = ["/jobs"; 3].map(|path| renewed(&one, path));
    let [first, second, third] = asked;
    let (_, first, second, third) = tokio::join!(first, renewed(&two, "/jobs"), second, third);
    let pages = [first, second, third];
    let names = [">two<", ">one<", ">one<"];
    for (answer, name) in pages.iter().zip(names) {
        assert_eq!(answer.status, 200, "{answer:?}");
        assert!(answer.text().contains(name), "{name}: {}", answer.text());
        assert!(!answer.text().contains("reader-"), "{}", answer.text());
    }
    assert_ne!(key(pages[0].text()), key(pages[1].text()));
    assert_ne!(key(pages[1].text()), key(pages[2].text()));
    assert_ne!(pages[0].header("etag"), pages[1].header("etag"));

    let tag = pages[1].header("etag").unwrap();
    let same = one
        .send(again(&one, "/jobs").header("if-none-match", tag))
        .await;
    assert_eq!(same.status, 304);
    service.dispatch("large").await;
    let changed = one
        .send(again(&one, "/jobs").header("if-none-match", tag))
        .await;
    assert_eq!(changed.status, 200);
}

#[tokio::test]
async fn a_page_is_never_shared_with_readers_of_fewer_rights() {
    let service = Service::start().await;
    let reader = token(&service, "reader", "job:read").await;
    let (admin, reader) = (
        Browser::admin(&service).await,
        Browser::with(&service, &reader).await,
    );
    service.dispatch("large").await;
    for path in ["/", "/jobs"] {
        let (admin, reader) = tokio::join!(renewed(&admin, path), renewed(&reader, path));
        assert!(admin.text().contains("href=\"/tokens\""), "{path}");
        assert!(!reader.text().contains("href=\"/tokens\""), "{path}");
    }
    assert_eq!(renewed(&reader, "/runners").await.status, 403);
}

#[tokio::test]
async fn a_reader_who_loses_the_rights_while_waiting_gets_no_page() {
    let service = Service::start().await;
    let asked = json!({ "name": "reader", "scopes": ["job:read"] });
    let made = service.post("/v0/tokens", &asked).await.expect(201);
    let reader = Browser::with(&service, made["secret"].as_str().unwrap()).await;
    assert_eq!(renewed(&reader, "/jobs").await.status, 200);
    // The next rendering does not begin at once.
    let path = format!("/v0/tokens/{}", made["id"].as_str().unwrap());
    let (answer, revoked) = tokio::join!(
        renewed(&reader, "/jobs"),
        service.admin(Call::new(Method::DELETE, path))
    );
    revoked.expect(204);
    assert_ne!(answer.status, 200, "{}", answer.text());
}
