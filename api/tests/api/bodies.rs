//! Requests with bodies or heads that are too large, too slow, cut off or malformed.

use http::Method;
use serde_json::json;

use crate::client::{Call, Raw};
use crate::service::Service;

const DISPATCH: &str = "/v0/workflows/pipeline/scans/build/dispatch";

/// The head of a request that announces a body. No body follows.
fn head(method: &str, path: &str, token: &str, more: &str) -> String {
    format!(
        "{method} {path} HTTP/1.1\r\nhost: x\r\nauthorization: Bearer {token}\r\n{more}\r\n\r\n"
    )
}

#[tokio::test]
async fn a_body_whose_declared_length_is_too_large_is_refused_before_it_is_sent() {
    let service = Service::start().await;
    for (path, length) in [
        ("/v0/tokens", 64 * 1024 + 1_u64),
        (DISPATCH, 16 * 1024 * 1024 + 1),
        ("/v0/runners/register", 10 << 30),
    ] {
        let length = format!("content-length: {length}\r\nexpect: 100-continue");
        let head = head("POST", path, &service.admin, &length);
        let mut raw = Raw::send(service.address, head).await;
        let answer = raw.head().await;
        assert!(answer.starts_with("HTTP/1.1 413"), "{path}: {answer}");
        assert!(raw.until_closed().await.contains("body_too_large"));
    }
    // A route without a body.
    let head = head("GET", "/v0/jobs", &service.admin, "content-length: 1");
    let answer = Raw::send(service.address, head).await.head().await;
    assert!(answer.starts_with("HTTP/1.1 413"), "{answer}");
}

#[tokio::test]
async fn the_token_is_checked_before_the_body_is_read() {
    let service = Service::start().await;
    for length in [
        "content-length: 10",
        "content-length: 10737418240",
        "transfer-encoding: chunked",
    ] {
        for (token, status) in [("evs_wrong", "401"), ("", "401")] {
            let head = head("POST", "/v0/tokens", token, length);
            let answer = Raw::send(service.address, head).await.head().await;
            assert!(
                answer.starts_with(&format!("HTTP/1.1 {status}")),
                "{answer}"
            );
            assert!(!answer.contains("100 Continue"), "{answer}");
        }
    }
}

#[tokio::test]
async fn a_body_without_a_length_is_counted() {
    let service = Service::start().await;
    let more = "content-type: application/json\r\ntransfer-encoding: chunked";
    let head = head("POST", "/v0/tokens", &service.admin, more);
    let mut raw = Raw::send(service.address, head).await;
    for _ in 0..9 {
        raw.write(format!("2000\r\n{}\r\n", " ".repeat(0x2000)))
            .await;
    }
    let answer = raw.head().await;
    assert!(answer.starts_with("HTTP/1.1 413"), "{answer}");
}

#[tokio::test]
async fn a_chunked_body_is_joined() {
    let service = Service::start().await;
    let more = "content-type: application/json; charset=utf-8\r\ntransfer-encoding: chunked\r\nconnection: close";
    let mut raw = Raw::send(
        service.address,
        head("POST", DISPATCH, &service.admin, more),
    )
    .await;
    for piece in ["{\"inp", "uts\":{\"tar", "get\":\"ü\"}}"] {
        raw.write(format!("{:x}\r\n{piece}\r\n", piece.len())).await;
    }
    raw.write("0\r\n\r\n").await;
    let answer = raw.until_closed().await;
    assert!(answer.starts_with("HTTP/1.1 202"), "{answer}");
}

#[tokio::test]
async fn malformed_requests_are_refused_and_their_connections_closed() {
    let service = Service::start().await;
    for bytes in [
        &b"\x00\x01\x02\x03\r\n\r\n"[..],
        b"GET / HTTP/9.9\r\n\r\n",
        b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03",
        b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n",
        b"POST /v0/tokens HTTP/1.1\r\nhost: x\r\ncontent-length: -1\r\n\r\n",
        b"POST /v0/tokens HTTP/1.1\r\nhost: x\r\ncontent-length: 1\r\ncontent-length: 2\r\n\r\n",
        b"GET /v0/jobs\x00 HTTP/1.1\r\nhost: x\r\n\r\n",
        b"GET /v0/jobs HTTP/1.1\r\nhost: x\r\nauthorization: Bearer a\x00b\r\n\r\n",
    ] {
        let answer = Raw::send(service.address, bytes).await.until_closed().await;
        let is_refused = answer.is_empty() || answer.starts_with("HTTP/1.1 400");
        assert!(is_refused, "{bytes:?}: {answer}");
    }
    service.get("/v0/jobs").await.expect(200);
}

#[tokio::test]
async fn an_unreadable_request_is_answered_with_a_problem() {
    let service = Service::start().await;
    let deep = format!("{{\"inputs\":{}", "[".repeat(100_000));
    for (body, status) in [
        (&b"{"[..], 400),
        (b"", 202),
        (b"\xff\xfe", 400),
        (b"{\"inputs\":{\"target\":\"\xff\"}}", 400),
        (b"3", 400),
        (b"null", 400),
        (b"{\"inputs\":{},\"more\":1}", 400),
        (b"{\"inputs\":{\"target\":\"a\"}} {}", 400),
        (b"{\"inputs\":{\"target\":\"\\u0000\"}}", 202),
        (b"{\"inputs\":{\"target\":\"\\ud800\"}}", 400),
        (deep.as_bytes(), 400),
    ] {
        let path = if body.is_empty() {
            "/v0/workflows/deep%2Fplain/scans/only/dispatch"
        } else {
            DISPATCH
        };
        let call = Call::post(path).header("content-type", "application/json");
        let answer = service.admin(call.bytes(body.to_vec())).await;
        let shown = String::from_utf8_lossy(body);
        assert_eq!(answer.status, status, "{shown:.60}: {answer:?}");
        if status == 400 {
            answer.problem(400, "invalid_request");
        }
    }
}

#[tokio::test]
async fn only_the_json_media_type_is_accepted() {
    let service = Service::start().await;
    for (kind, status) in [
        ("application/json", 400),
        ("Application/JSON;charset=utf-8", 400),
        ("application/jsonx", 415),
        ("application/json, text/plain", 415),
        ("text/plain", 415),
        ("application/x-www-form-urlencoded", 415),
        ("", 415),
    ] {
        let call = Call::post("/v0/tokens").header("content-type", kind);
        let answer = service.admin(call.bytes("{}")).await;
        assert_eq!(answer.status, status, "{kind}");
    }
    let answer = service.admin(Call::post("/v0/tokens").bytes("{}")).await;
    answer.problem(415, "unsupported_media_type");
}

#[tokio::test]
async fn a_list_in_place_of_an_object_is_refused() {
    let service = Service::start().await;
    let job = service.dispatch("build").await;
    for (method, path, body) in [
        (
            Method::POST,
            "/v0/validate".to_owned(),
            json!(["scans: {}"]),
        ),
        (Method::POST, format!("/v0/jobs/{job}/cancel"), json!([])),
        (
            Method::PUT,
            "/v0/projects/main/vars/A".to_owned(),
            json!(["a"]),
        ),
    ] {
        let answer = service.admin(Call::new(method, &path).json(&body)).await;
        answer.problem(400, "invalid_request");
    }
}

#[tokio::test]
async fn huge_or_malformed_queries_are_refused() {
    let service = Service::start().await;
    let huge = format!("/v0/jobs?{}", "a=b&".repeat(5_000));
    service.get(&huge).await.problem(400, "invalid_request");
    for query in [
        "&&&=&=",
        "%",
        "%zz=%",
        "%ff=%ff",
        "limit",
        "a=%00",
        "Limit=1",
        "limit=1&limit=1",
    ] {
        let answer = service.get(&format!("/v0/jobs?{query}")).await;
        answer.problem(400, "invalid_request");
    }
    let longest = format!("/v0/jobs?a={}", "b".repeat(80_000));
    let call = head("GET", &longest, &service.admin, "accept: */*");
    let answer = Raw::send(service.address, call).await.until_closed().await;
    let is_refused = answer.is_empty() || answer.starts_with("HTTP/1.1 4");
    assert!(is_refused, "{answer}");
}

#[tokio::test]
async fn the_fields_of_tokens_and_runners_are_limited() {
    let service = Service::start().await;
    let year = 365 * 24 * 3600;
    for (body, field) in [
        (json!({"name": "", "scopes": ["job:read"]}), "name"),
        (json!({"name": "a\nb", "scopes": ["job:read"]}), "name"),
        (json!({"name": "a", "scopes": []}), "scopes"),
        (json!({"name": "a", "scopes": ["job"]}), "scopes"),
        (
            json!({"name": "a", "scopes": ["job:read"], "expires_in_seconds": 0}),
            "expires_in_seconds",
        ),
        (
            json!({"name": "a", "scopes": ["job:read"], "expires_in_seconds": u64::MAX}),
            "expires_in_seconds",
        ),
        (
            json!({"name": "a", "scopes": ["job:read"], "expires_in_seconds": year * 1_000_000_u64}),
            "expires_in_seconds",
        ),
    ] {
        let problem = service.post("/v0/tokens", &body).await;
        let problem = problem.problem(400, "invalid_request");
        assert_eq!(problem["errors"][0]["field"], field, "{body}");
    }
    let token = service.registration().await;
    for (name, capacity, labels, field) in [
        ("", 1, vec!["a"], "name"),
        ("one", 0, vec!["a"], "capacity"),
        ("one", 100_000, vec!["a"], "capacity"),
        ("one", 1, vec![""], "labels"),
        ("one", 1, vec!["a"; 51], "labels"),
    ] {
        let body = json!({
            "token": token, "name": name, "capacity": capacity, "labels": labels, "version": "0.1.0",
        });
        let call = Call::post("/v0/runners/register").json(&body);
        let problem = call.send(service.address).await;
        let problem = problem.problem(400, "invalid_request");
        assert_eq!(problem["errors"][0]["field"], field, "{body}");
    }
    // A refused registration does not consume its token; an accepted registration does.
    let body = json!({"token": token, "name": "one", "capacity": 1, "version": "0.1.0"});
    let register = |body| Call::post("/v0/runners/register").json(body);
    register(&body).send(service.address).await.expect(201);
    let answer = register(&body).send(service.address).await;
    answer.problem(401, "unauthorized");
}

#[tokio::test]
async fn an_unknown_runner_cannot_be_removed() {
    let service = Service::start().await;
    for id in ["x", "11111111-1111-4111-8111-111111111111"] {
        let call = Call::new(Method::DELETE, format!("/v0/runners/{id}"));
        service.admin(call).await.problem(404, "not_found");
    }
}

#[tokio::test]
async fn a_runner_is_removed_by_name_or_id() {
    let service = Service::start().await;
    let one = service.register("one", &[], 1).await;
    service.register("two", &[], 1).await;
    for runner in [one.id.to_string(), "two".to_owned()] {
        let call = Call::new(Method::DELETE, format!("/v0/runners/{runner}"));
        assert_eq!(service.admin(call).await.status, 204, "{runner}");
    }
    let page = service.get("/v0/runners").await.expect(200);
    assert_eq!(page["items"], json!([]));
}
