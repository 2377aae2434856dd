//! Blobs over HTTP: stored, read, listed, copied, moved and removed.

use chrono::TimeDelta;
use http::Method;
use model::Scope;
use serde_json::{Value, json};

use crate::answers::check;
use crate::client::{Answer, Call, Raw};
use crate::service::{BLOB_QUOTA, Service, text};

pub(crate) fn put(path: &str, content: impl Into<bytes::Bytes>) -> Call {
    Call::new(Method::PUT, format!("/v0/blobs/{path}")).bytes(content)
}

pub(crate) async fn stored(service: &Service, path: &str, content: &'static str) -> String {
    let answer = service.admin(put(path, content)).await;
    text(&answer.expect(201)["sha256"])
}

pub(crate) async fn read(service: &Service, path: &str) -> Answer {
    service.get(&format!("/v0/blobs/{path}")).await
}

async fn sent(service: &Service, method: Method, path: &str, headers: &[(&str, &str)]) -> Answer {
    let mut call = Call::new(method, format!("/v0/blobs/{path}"));
    for (name, value) in headers {
        call = call.header(name, value);
    }
    service.admin(call).await
}

async fn paths(service: &Service, query: &str) -> (Vec<String>, Value) {
    let list = service.get(&format!("/v0/blobs{query}")).await.expect(200);
    let items = list["items"].as_array().unwrap().iter();
    let paths = items.map(|item| text(&item["path"])).collect();
    (paths, list)
}

#[tokio::test]
async fn a_blob_is_returned_as_it_was_stored() {
    let service = Service::start().await;
    let first = service.admin(put("reports/a%20b.txt", "0123456789")).await;
    check(&service, "blobs/blob_stored", &first);
    let sha256 = text(&first.expect(201)["sha256"]);
    let etag = format!("\"{sha256}\"");
    assert_eq!(first.header("etag"), Some(etag.as_str()));
    for method in [Method::GET, Method::HEAD] {
        let answer = sent(&service, method.clone(), "reports/a%20b.txt", &[]).await;
        assert_eq!(answer.status, 200);
        let body = if method == Method::GET {
            "0123456789"
        } else {
            ""
        };
        assert_eq!(answer.text(), body);
        for (name, value) in [
            ("etag", etag.as_str()),
            ("x-content-digest", &format!("sha256:{sha256}")),
            ("content-length", "10"),
            ("content-type", "application/octet-stream"),
            (
                "content-disposition",
                "attachment; filename=\"a b.txt\"; filename*=UTF-8''a%20b.txt",
            ),
            ("last-modified", "Fri, 20 Nov 2026 12:00:00 GMT"),
            ("x-content-type-options", "nosniff"),
            ("content-security-policy", "sandbox"),
            ("accept-ranges", "bytes"),
        ] {
            assert_eq!(answer.header(name), Some(value), "{method} {name}");
        }
        let known = [("if-none-match", etag.as_str())];
        let answer = sent(&service, method, "reports/a%20b.txt", &known).await;
        assert_eq!(answer.status, 304);
    }
    let part = [("range", "bytes=3-5")];
    let answer = sent(&service, Method::GET, "reports/a%20b.txt", &part).await;
    assert_eq!((answer.status, answer.text()), (206, "345"));
    let again = service.admin(put("reports/a%20b.txt", "other")).await;
    again.expect(200);
    assert_eq!(read(&service, "reports/a%20b.txt").await.text(), "other");
    service.admin(put("empty", "")).await.expect(201);
    assert_eq!(read(&service, "empty").await.body.len(), 0);
}

#[tokio::test]
async fn a_path_is_decoded_name_by_name_and_stays_in_its_project() {
    let service = Service::start().await;
    stored(&service, "a/b%2Fc", "one name").await;
    stored(&service, "a/b/c", "two names").await;
    assert_eq!(read(&service, "/a/b%2Fc").await.text(), "one name");
    let (paths, _) = paths(&service, "?prefix=a").await;
    assert_eq!(paths, ["a/b/c", "a/b%2Fc"]);
    let deep = vec!["a"; 33].join("/");
    let long = "a".repeat(1_025);
    for path in [
        "a//b", "a/", "//a", "%2E%2E/a", "a/..", "a/.", "a%0Ab", "a%00", "%7F", &deep, &long,
    ] {
        let answer = service.admin(put(path, "x")).await;
        answer.problem(400, "invalid_request");
    }
    let names = std::fs::read_dir(service.root().join("blobs")).unwrap();
    assert_eq!(
        names.count(),
        1,
        "all blobs are in the folder of the project"
    );
}

#[tokio::test]
async fn a_write_can_require_the_version_that_it_replaces() {
    let service = Service::start().await;
    let absent = [("if-none-match", "*")];
    let with = |headers: &[(&str, &str)], content: &'static str| {
        let mut call = put("a", content);
        for (name, value) in headers {
            call = call.header(name, value);
        }
        call
    };
    let missing = service.admin(with(&[("if-match", "*")], "1")).await;
    missing.problem(412, "precondition_failed");
    let first = service.admin(with(&absent, "1")).await.expect(201);
    let etag = format!("\"{}\"", text(&first["sha256"]));
    let second = service.admin(with(&absent, "2")).await;
    second.problem(412, "precondition_failed");
    let known = [("if-match", etag.as_str())];
    service.admin(with(&known, "2")).await.expect(200);
    let late = service.admin(with(&known, "3")).await;
    late.problem(412, "precondition_failed");
    let late = sent(&service, Method::DELETE, "a", &known).await;
    late.problem(412, "precondition_failed");
    let late = sent(&service, Method::GET, "a", &known).await;
    late.problem(412, "precondition_failed");
    assert_eq!(read(&service, "a").await.text(), "2");
    for headers in [
        &[("if-match", "abc")][..],
        &[("if-none-match", "\"a\"")],
        &[("if-none-match", "*"), ("if-match", "*")],
    ] {
        let answer = service.admin(with(headers, "x")).await;
        answer.problem(400, "invalid_request");
    }
}

#[tokio::test]
async fn a_content_with_another_digest_is_not_stored() {
    let service = Service::start().await;
    let wrong = format!("sha256:{}", "0".repeat(64));
    let answer = service.admin(put("a", "x").header("x-content-digest", &wrong));
    answer.await.problem(400, "digest_mismatch");
    let answer = service.admin(put("a", "x").header("x-content-digest", "md5:0"));
    answer.await.problem(400, "invalid_request");
    read(&service, "a").await.problem(404, "not_found");
    let right = format!("sha256:{}", stored(&service, "b", "x").await);
    let answer = service.admin(put("a", "x").header("x-content-digest", &right));
    answer.await.expect(201);
    service.handle.state().settled().await.unwrap();
    let left = std::fs::read_dir(service.root().join("tmp")).unwrap();
    assert_eq!(left.count(), 0);
}

#[tokio::test]
async fn blobs_are_listed_by_prefix_and_by_folder() {
    let service = Service::start().await;
    for path in ["a", "b/1", "b/2/x", "b/3", "bc"] {
        stored(&service, path, "x").await;
    }
    assert_eq!(
        paths(&service, "").await.0,
        ["a", "b/1", "b/2/x", "b/3", "bc"]
    );
    assert_eq!(
        paths(&service, "?prefix=b").await.0,
        ["b/1", "b/2/x", "b/3", "bc"]
    );
    assert_eq!(
        paths(&service, "?prefix=/b/").await.0,
        ["b/1", "b/2/x", "b/3"]
    );
    let answer = service.get("/v0/blobs?prefix=b/&delimiter=/").await;
    check(&service, "blobs/blobs", &answer);
    let (top, list) = paths(&service, "?delimiter=/&limit=2").await;
    assert_eq!(
        (top, &list["folders"]),
        (vec!["a".to_owned()], &json!(["b/"]))
    );
    let cursor = text(&list["next_cursor"]);
    let rest = paths(&service, &format!("?delimiter=/&limit=2&cursor={cursor}")).await;
    assert_eq!(
        (rest.0, &rest.1["next_cursor"]),
        (vec!["bc".to_owned()], &Value::Null)
    );
    for query in ["?delimiter=x", "?limit=0", "?cursor=//", "?prefix=a//b"] {
        let answer = service.get(&format!("/v0/blobs{query}")).await;
        answer.problem(400, "invalid_request");
    }
}

#[tokio::test]
async fn copies_and_moves_stay_in_the_project_and_report_conflicts() {
    let service = Service::start().await;
    let sha256 = stored(&service, "a/1", "one").await;
    stored(&service, "b", "two").await;
    let copy = |from: &str, to: &str| json!({"from": from, "to": to});
    let made = service.post("/v0/blob-copies", &copy("a/1", "c/1")).await;
    assert_eq!(made.expect(201)["sha256"], json!(sha256));
    let again = service.post("/v0/blob-copies", &copy("a/1", "c/1")).await;
    again.expect(200);
    let moved = service.post("/v0/blob-moves", &copy("c/1", "b")).await;
    check(&service, "blobs/blob_moved", &moved);
    moved.expect(200);
    assert_eq!(paths(&service, "").await.0, ["a/1", "b"]);
    assert_eq!(read(&service, "b").await.text(), "one");
    // The copy does not change with the original.
    service.admin(put("a/1", "new")).await.expect(200);
    assert_eq!(read(&service, "b").await.text(), "one");
    for route in ["/v0/blob-copies", "/v0/blob-moves"] {
        for (from, to, status, code) in [
            ("x", "y", 404, "not_found"),
            ("b", "a", 409, "path_conflict"),
            ("b", "a/1/x", 409, "path_conflict"),
            ("b", "b", 400, "invalid_request"),
            ("b", "", 400, "invalid_request"),
        ] {
            let answer = service.post(route, &copy(from, to)).await;
            answer.problem(status, code);
        }
        let call = Call::post(route).json(&copy("b", "a/1"));
        let answer = service.admin(call.header("if-none-match", "*")).await;
        answer.problem(412, "precondition_failed");
    }
    let answer = service.admin(put("b/c", "x")).await;
    let problem = answer.problem(409, "path_conflict");
    assert_eq!(problem["detail"], "`b` is a blob, so nothing can be in it");
}

#[tokio::test]
async fn removing_a_blob_also_removes_its_empty_folders() {
    let service = Service::start().await;
    stored(&service, "a/b/c", "x").await;
    let gone = sent(&service, Method::DELETE, "a/b/c", &[]).await;
    assert_eq!(gone.status, 204);
    let again = sent(&service, Method::DELETE, "a/b/c", &[]).await;
    again.problem(404, "not_found");
    stored(&service, "a", "now a blob").await;
    read(&service, "a/b/c").await.problem(404, "not_found");
    assert_eq!(paths(&service, "").await.0, ["a"]);
}

#[tokio::test]
async fn a_blob_expires() {
    let service = Service::start().await;
    let made = service.admin(put("a?expires_in=1h", "x")).await.expect(201);
    assert_eq!(text(&made["expires_at"]), "2026-11-20T13:00:00Z");
    service.clock.advance(TimeDelta::minutes(59));
    assert_eq!(read(&service, "a").await.text(), "x");
    service.clock.advance(TimeDelta::minutes(1));
    read(&service, "a").await.problem(404, "not_found");
    assert_eq!(paths(&service, "").await.0, [] as [&str; 0]);
    let absent = put("a", "y").header("if-none-match", "*");
    let answer = service.admin(absent).await;
    assert_eq!(answer.status, 200, "the expired blob is replaced");
    for life in ["1", "soon", "4000d", "-1h"] {
        let answer = service
            .admin(put(&format!("a?expires_in={life}"), "x"))
            .await;
        answer.problem(400, "invalid_request");
    }
}

#[tokio::test]
async fn nothing_is_stored_above_the_quota() {
    let service = Service::start().await;
    let half = vec![b'x'; usize::try_from(BLOB_QUOTA / 2).unwrap()];
    service.admin(put("a", half.clone())).await.expect(201);
    service.admin(put("b", half.clone())).await.expect(201);
    let answer = service.admin(put("c", "x")).await;
    let problem = answer.problem(403, "quota_exceeded");
    assert!(text(&problem["detail"]).contains("4194304 of 4194304 bytes"));
    let copy = json!({"from": "a", "to": "d"});
    let answer = service.post("/v0/blob-copies", &copy).await;
    answer.problem(403, "quota_exceeded");
    service.admin(put("a", half)).await.expect(200);
    service.admin(put("a", "less")).await.expect(200);
    service.admin(put("c", "x")).await.expect(201);
}

#[tokio::test]
async fn an_upload_above_the_quota_is_refused_before_it_is_sent_and_concurrent_uploads_share_the_quota()
 {
    let service = Service::start().await;
    let head = |path: &str, length: u64| {
        format!(
            "PUT /v0/blobs/{path} HTTP/1.1\r\nhost: everscan.test\r\nauthorization: Bearer {}\r\n\
             content-length: {length}\r\nexpect: 100-continue\r\n\r\n",
            service.admin
        )
    };
    let mut refused = Raw::send(service.address, head("a", BLOB_QUOTA + 1)).await;
    let answer = refused.head().await;
    assert!(answer.starts_with("HTTP/1.1 403"), "{answer}");
    let mut first = Raw::send(service.address, head("a", BLOB_QUOTA)).await;
    let answer = first.head().await;
    assert!(answer.starts_with("HTTP/1.1 100"), "{answer}");
    let mut second = Raw::send(service.address, head("b", 1)).await;
    let answer = second.head().await;
    assert!(answer.starts_with("HTTP/1.1 403"), "{answer}");
}

#[tokio::test]
async fn a_token_sees_only_the_blobs_of_its_projects() {
    let service = Service::follow(&["main", "other"]).await;
    let both = [Scope::BlobRead, Scope::BlobWrite];
    let of_main = service.limited(both, &["main"]).await;
    let of_other = service.limited(both, &["other"]).await;
    let all = service.limited(both, &["main", "other"]).await;
    let call = |token: &str, call: Call| call.bearer(token).send(service.address);
    call(&of_main, put("a", "main")).await.expect(201);
    call(&of_other, put("a", "other")).await.expect(201);
    call(&all, put("a", "x"))
        .await
        .problem(400, "invalid_request");
    for (token, project, status) in [
        (&of_main, "main", 200),
        (&of_main, "other", 404),
        (&of_other, "main", 404),
        (&all, "other", 200),
        (&all, "nothing", 404),
    ] {
        for path in ["/v0/blobs/a", "/v0/blobs"] {
            let path = format!("{path}?project={project}");
            let answer = call(token, Call::get(&path)).await;
            assert_eq!(answer.status, status, "{path}");
        }
        let path = format!("a?project={project}&expires_in=1d");
        assert_eq!(
            call(token, put(&path, project.to_owned())).await.status,
            status
        );
    }
    assert_eq!(
        call(&of_main, Call::get("/v0/blobs/a")).await.text(),
        "main"
    );
}

#[tokio::test]
async fn the_alias_blob_gives_both_scopes() {
    let service = Service::start().await;
    let body = json!({"name": "files", "scopes": ["blob"]});
    let made = service.post("/v0/tokens", &body).await.expect(201);
    assert_eq!(made["scopes"], json!(["blob:read", "blob:write"]));
}

#[tokio::test]
async fn a_large_blob_is_sent_completely_and_an_interrupted_upload_leaves_no_file() {
    let service = Service::start().await;
    let bytes: Vec<u8> = (0..3_000_000_u32).map(|n| (n % 251) as u8).collect();
    service.admin(put("large", bytes.clone())).await.expect(201);
    assert!(
        read(&service, "large").await.body == bytes,
        "the downloaded bytes differ"
    );
    let head = format!(
        "PUT /v0/blobs/large HTTP/1.1\r\nhost: everscan.test\r\nauthorization: Bearer {}\r\n\
         content-length: 1000\r\n\r\nonly this",
        service.admin
    );
    let answer = Raw::send(service.address, head).await.leave().await;
    assert!(
        answer.is_empty() || answer.starts_with("HTTP/1.1 400"),
        "{answer}"
    );
    assert!(
        read(&service, "large").await.body == bytes,
        "the blob was replaced"
    );
}
