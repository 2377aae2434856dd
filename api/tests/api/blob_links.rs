//! Links to blobs.

use chrono::TimeDelta;
use http::Method;
use model::Scope;
use serde_json::{Value, json};

use crate::blobs::{self, put, stored};
use crate::client::Call;
use crate::service::{Service, text};

/// Makes a link, and returns its id and its path.
async fn linked(service: &Service, token: &str, body: &Value) -> (String, String) {
    let call = Call::post("/v0/blob-links").json(body).bearer(token);
    let made = call.send(service.address).await.expect(201);
    (text(&made["id"]), text(&made["url_path"]))
}

#[tokio::test]
async fn anybody_can_read_or_store_one_blob_with_a_link_until_it_expires() {
    let service = Service::start().await;
    stored(&service, "a/b", "content").await;
    let get = json!({"path": "a/b", "use_for": "get", "expires_in": "1h"});
    let answer = service.post("/v0/blob-links", &get).await;
    let id = text(&answer.expect(201)["id"]);
    let url = text(&answer.json()["url_path"]);
    let anybody = |method: Method, url: &str| Call::new(method, url).send(service.address);
    let read = anybody(Method::GET, &url).await;
    assert_eq!((read.status, read.text()), (200, "content"));
    let disposition = read.header("content-disposition");
    assert_eq!(
        disposition,
        Some("attachment; filename=\"b\"; filename*=UTF-8''b")
    );
    assert_eq!(read.header("cache-control"), Some("private, no-store"));
    let part = Call::get(&url).header("range", "bytes=0-2");
    assert_eq!(part.send(service.address).await.text(), "con");
    assert_eq!(anybody(Method::HEAD, &url).await.status, 200);
    anybody(Method::PUT, &url).await.problem(404, "not_found");
    anybody(Method::DELETE, &url)
        .await
        .problem(405, "method_not_allowed");

    let put = json!({"path": "in/box", "use_for": "put", "expires_in": "7d"});
    let (_, to_store) = linked(&service, &service.admin, &put).await;
    let store = Call::new(Method::PUT, &to_store).bytes("sent");
    let stored = store.send(service.address).await.expect(201);
    assert_eq!(stored["modified_by"], "a link", "{stored}");
    assert_eq!(blobs::read(&service, "in/box").await.text(), "sent");
    // Who may only write does not learn the digest of what is there.
    let replace = Call::new(Method::PUT, &to_store).header("if-none-match", "*");
    let refused = replace.bytes("x").send(service.address).await;
    assert_eq!(refused.status, 412);
    let refused = refused.text();
    assert!(
        refused.contains("is not what the request expects"),
        "{refused}"
    );
    assert!(!refused.contains("SHA-256"), "{refused}");
    anybody(Method::GET, &to_store)
        .await
        .problem(404, "not_found");

    let list = service.get("/v0/blob-links").await;
    let paths: Vec<String> = list.expect(200)["items"]
        .as_array()
        .unwrap()
        .iter()
        .map(|link| text(&link["path"]))
        .collect();
    assert_eq!(paths.len(), 2);
    let revoke = Call::new(Method::DELETE, format!("/v0/blob-links/{id}"));
    assert_eq!(service.admin(revoke.clone()).await.status, 204);
    service.admin(revoke).await.problem(404, "not_found");
    anybody(Method::GET, &url).await.problem(404, "not_found");
    service.clock.advance(TimeDelta::days(7));
    anybody(Method::PUT, &to_store)
        .await
        .problem(404, "not_found");
    for (path, use_for, life) in [
        ("a/b", "get", "8d"),
        ("a/b", "get", "soon"),
        ("a//b", "get", "1h"),
        ("a/b", "delete", "1h"),
    ] {
        let body = json!({"path": path, "use_for": use_for, "expires_in": life});
        let answer = service.post("/v0/blob-links", &body).await;
        answer.problem(400, "invalid_request");
    }
    let body = json!({"path": "nothing", "use_for": "get", "expires_in": "1h"});
    let answer = service.post("/v0/blob-links", &body).await;
    answer.problem(404, "not_found");
}

#[tokio::test]
async fn a_link_has_no_more_rights_than_its_token() {
    let service = Service::follow(&["main", "other"]).await;
    let reader = service.limited([Scope::BlobRead], &["main"]).await;
    let both = service
        .limited([Scope::BlobRead, Scope::BlobWrite], &["main"])
        .await;
    put("a", "x")
        .bearer(&both)
        .send(service.address)
        .await
        .expect(201);
    let get = json!({"path": "a", "use_for": "get", "expires_in": "1h"});
    let store = json!({"path": "a", "use_for": "put", "expires_in": "1h"});
    let call = Call::post("/v0/blob-links").json(&store).bearer(&reader);
    let refused = call.send(service.address).await;
    refused.problem(403, "forbidden");
    let (id, url) = linked(&service, &reader, &get).await;
    let path = format!("/v0/blob-links/{id}");
    let revoke = Call::new(Method::DELETE, &path).bearer(&reader);
    revoke.send(service.address).await.problem(403, "forbidden");
    // Storing, also by a link, and removing need only the right to write.
    let writer = service.limited([Scope::BlobWrite], &["main"]).await;
    let call = Call::post("/v0/blob-links").json(&get).bearer(&writer);
    let refused = call.send(service.address).await;
    refused.problem(403, "forbidden");
    let (_, url_of_writer) = linked(&service, &writer, &store).await;
    let upload = Call::new(Method::PUT, &url_of_writer).bytes("y");
    assert_eq!(upload.send(service.address).await.status, 200);
    let delete = put("c", "x").bearer(&writer).send(service.address);
    delete.await.expect(201);
    let delete = Call::new(Method::DELETE, "/v0/blobs/c").bearer(&writer);
    assert_eq!(delete.send(service.address).await.status, 204);
    // For a token of another project, the link does not exist.
    let other = service.limited([Scope::BlobWrite], &["other"]).await;
    let revoke = Call::new(Method::DELETE, &path).bearer(&other);
    revoke.send(service.address).await.problem(404, "not_found");
    assert_eq!(Call::get(&url).send(service.address).await.status, 200);
    for token in service.get("/v0/tokens").await.expect(200)["items"]
        .as_array()
        .unwrap()
        .iter()
        .filter(|token| token["name"] == "limited")
    {
        let path = format!("/v0/tokens/{}", text(&token["id"]));
        service
            .admin(Call::new(Method::DELETE, path))
            .await
            .expect(204);
    }
    let ended = Call::get(&url).send(service.address).await;
    ended.problem(404, "not_found");
}
