//! Refusals, repetitions, tokens and lists.

use std::collections::BTreeMap;

use client::{Client, Error, JobFilter, Secret};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use uuid::Uuid;
use wire::{ChangedJob, DispatchRequest, ErrorCode, Hello, JobState, Poll};

use crate::server::{Reply, Server};

const JOB: &str = r#"{
    "id": "0192f0c1-2d3e-7a4b-8c5d-6e7f8091a2b3",
    "workflow": {"id": "0192f0c1-2d3e-7a4b-8c5d-6e7f8091a2b4", "source": "main", "name": "a/b"},
    "revision": {"id": "0192f0c1-2d3e-7a4b-8c5d-6e7f8091a2b5", "number": 3, "commit": "abc"},
    "scan": "s", "state": "scheduled", "trigger": "dispatch",
    "reason": {"code": "dispatched", "message": "asked for", "actor": "ann"},
    "inputs": {"deep": true, "domain": "example.org"},
    "created_at": "2026-11-20T10:00:00Z", "steps": [], "artifacts": [], "log": {"records": 0}
}"#;

#[tokio::test]
async fn a_refusal_carries_the_problem() {
    let server = Server::start([Reply::problem(409, "illegal_transition")]).await;
    let error = server.client().cancel_job("1234").await.unwrap_err();
    assert_eq!(error.code(), Some(ErrorCode::IllegalTransition));
    assert_eq!(error.status(), Some(409));
    assert_eq!(error.hint(), Some("H"));
    assert!(!error.is_transient());
    let expected = format!("D (POST {}/v0/jobs/1234/cancel, status 409)", server.url);
    assert_eq!(error.to_string(), expected);
}

/// The message after somebody writes https:// in front of a plain HTTP address.
#[tokio::test]
async fn https_to_a_plain_port_is_reported_as_such() {
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("https://{}", listener.local_addr().unwrap());
    let answer = tokio::spawn(async move {
        let (mut stream, _) = listener.accept().await.unwrap();
        let _hello = stream.read_u8().await.unwrap();
        stream
            .write_all(b"HTTP/1.1 400 Bad Request\r\ncontent-length: 0\r\n\r\n")
            .await
            .unwrap();
        // Waits until the client has read the response.
        let _rest = stream.read_to_end(&mut Vec::new()).await;
    });
    let client = Client::new(&url, None).unwrap();
    let error = client.health().await.unwrap_err();
    assert!(error.hint().unwrap().contains("http://"), "{error}");
    let cause = std::error::Error::source(&error).unwrap().to_string();
    assert!(cause.contains("plain HTTP"), "{cause}");
    answer.await.unwrap();
}

#[tokio::test]
async fn a_response_of_a_proxy_is_a_refusal_too() {
    let page = Reply::new(404, &[("content-type", "text/html")], "<h1>nginx</h1>");
    let redirect = Reply::new(307, &[("location", "https://elsewhere.example")], "");
    let server = Server::start([page, redirect]).await;
    let error = server.client().health().await.unwrap_err();
    assert_eq!(
        (error.status(), error.code()),
        (Some(404), Some(ErrorCode::Unknown))
    );
    let error = server.client().health().await.unwrap_err();
    assert!(error.to_string().contains("elsewhere.example"), "{error}");
}

#[tokio::test]
async fn an_error_code_of_a_newer_daemon_is_unknown() {
    let server = Server::start([Reply::problem(418, "teapot")]).await;
    let error = server.client().health().await.unwrap_err();
    assert_eq!(error.code(), Some(ErrorCode::Unknown));
    assert_eq!(error.hint(), Some("H"));
}

#[tokio::test]
async fn reads_are_repeated_until_the_daemon_is_back() {
    let server = Server::start([
        Reply::problem(503, "unavailable"),
        Reply::nothing(),
        Reply::json(JOB).torn(5),
        Reply::json(JOB),
    ])
    .await;
    let job = server.client().job(Uuid::nil()).await.unwrap();
    assert_eq!(job.state, JobState::Scheduled);
    assert_eq!(server.seen().len(), 4);
}

#[tokio::test]
async fn permanent_errors_are_not_retried() {
    for status in [400, 401, 404, 409, 500, 507] {
        let server = Server::start([Reply::problem(status, "internal")]).await;
        server.client().job(Uuid::nil()).await.unwrap_err();
        assert_eq!(server.seen().len(), 1, "{status}");
    }
}

#[tokio::test]
async fn a_dispatch_is_repeated_with_its_key() {
    let answer = format!(r#"{{"job":{JOB}}}"#);
    let server = Server::start([Reply::nothing(), Reply::json(&answer)]).await;
    let request = DispatchRequest {
        inputs: BTreeMap::from([("domain".to_owned(), "example.org".into())]),
    };
    let job = server
        .client()
        .dispatch("main/a/b", "s", &request, "key-1")
        .await
        .unwrap();
    assert!(matches!(job, ChangedJob::Whole(job) if job.workflow.name == "a/b"));
    for request in server.seen() {
        assert_eq!(
            request.line,
            "POST /v0/workflows/main%2Fa%2Fb/scans/s/dispatch"
        );
        assert_eq!(request.header("idempotency-key"), Some("key-1"));
        assert_eq!(request.body, br#"{"inputs":{"domain":"example.org"}}"#);
    }
    assert_eq!(server.seen().len(), 2);
}

#[tokio::test]
async fn a_request_for_a_secret_is_repeated_with_its_key() {
    let made = "00000000-0000-4000-8000-000000000007";
    let body = format!(
        r#"{{"title":"Conflict","status":409,"code":"already_done","detail":"done","made":"{made}"}}"#
    );
    let kind = [("content-type", wire::PROBLEM_MEDIA_TYPE)];
    let refusal = || Reply::new(409, &kind, &body);
    let replies = [Reply::nothing(), refusal(), Reply::nothing(), refusal()];
    let server = Server::start(replies).await;
    let asked = wire::CreateToken {
        name: "ci".to_owned(),
        scopes: vec!["job:read".to_owned()],
        projects: None,
        expires_in_seconds: None,
        never_expires: false,
        user: None,
    };
    let error = server.client().create_token(&asked).await.unwrap_err();
    let problem = error.problem().unwrap();
    assert_eq!(problem.code, ErrorCode::AlreadyDone);
    assert_eq!(problem.made.unwrap().to_string(), made);
    server
        .client()
        .create_registration(&wire::CreateRegistration::default())
        .await
        .unwrap_err();
    let seen = server.seen();
    let keys: Vec<_> = seen.iter().map(|it| it.header("idempotency-key")).collect();
    assert_eq!(keys.len(), 4);
    assert!(keys[0].is_some() && keys[0] == keys[1] && keys[2] == keys[3]);
    assert_ne!(keys[1], keys[2]);
}

#[tokio::test]
async fn other_changes_are_sent_once() {
    let server = Server::start([]).await;
    let error = server.client().cancel_job("1234").await.unwrap_err();
    assert!(matches!(error, Error::Interrupted { .. }), "{error:?}");
    assert!(error.is_transient());
    let hello = Hello {
        instance: Uuid::nil(),
        version: "0".to_owned(),
        capabilities: Vec::new(),
    };
    server.client().hello(&hello).await.unwrap_err();
    assert_eq!(server.seen().len(), 2);
}

#[tokio::test]
async fn an_unreachable_daemon_is_named() {
    // Nothing listens on this port.
    let url = "http://127.0.0.1:1";
    let client = Client::new(url, None).unwrap();
    let error = client.health().await.unwrap_err();
    assert!(matches!(error, Error::Unreachable { .. }), "{error:?}");
    assert!(error.to_string().contains(url), "{error}");
    assert!(
        error
            .hint()
            .is_some_and(|hint| hint.contains("SERVICE_URL"))
    );
}

#[tokio::test]
async fn the_token_is_sent_and_never_printed() {
    let server = Server::start([Reply::json("{}"), Reply::json("{}")]).await;
    let client = server.client();
    client.health().await.unwrap();
    client
        .with_token(Secret::new("other"))
        .health()
        .await
        .unwrap();
    let tokens: Vec<_> = server
        .seen()
        .iter()
        .map(|request| request.header("authorization").map(str::to_owned))
        .collect();
    assert_eq!(
        tokens,
        [
            Some("Bearer hush".to_owned()),
            Some("Bearer other".to_owned())
        ]
    );
    assert!(!format!("{client:?}").contains("hush"));
}

#[tokio::test]
async fn a_token_that_no_header_can_hold_is_an_error() {
    let client = Client::new("http://127.0.0.1:9", Some(Secret::new("a\nb"))).unwrap();
    let error = client.health().await.unwrap_err();
    assert!(matches!(error, Error::Unsendable { .. }), "{error:?}");
}

#[tokio::test]
async fn a_response_of_another_shape_is_reported() {
    let server = Server::start([Reply::json("{}")]).await;
    let error = server.client().job(Uuid::nil()).await.unwrap_err();
    assert!(matches!(error, Error::Protocol { .. }), "{error:?}");
    assert!(error.to_string().contains("missing field"), "{error}");
}

#[tokio::test]
async fn lists_are_read_page_by_page() {
    let token = |name: &str| {
        format!(
            r#"{{"id":"{}","name":"{name}","scopes":[],"created_at":"2026-11-20T10:00:00Z"}}"#,
            Uuid::nil()
        )
    };
    let server = Server::start([
        Reply::json(&format!(
            r#"{{"items":[{}],"next_cursor":"c 1"}}"#,
            token("a")
        )),
        Reply::json(&format!(r#"{{"items":[{}]}}"#, token("b"))),
    ])
    .await;
    let tokens = server.client().tokens(None).await.unwrap();
    let names: Vec<_> = tokens.iter().map(|token| token.name.as_str()).collect();
    assert_eq!(names, ["a", "b"]);
    assert_eq!(
        server.lines(),
        ["GET /v0/tokens", "GET /v0/tokens?cursor=c%201"]
    );
}

#[tokio::test]
async fn filters_become_queries() {
    let server = Server::start([Reply::json(r#"{"items":[]}"#), Reply::json(JOB)]).await;
    let filter = JobFilter {
        workflow: Some("a/b".to_owned()),
        state: Some(JobState::Running),
        since: Some("2026-11-20T12:00:00Z".parse().unwrap()),
        ..JobFilter::default()
    };
    let client = server.client();
    client.jobs(&filter, Some(5), Some("x")).await.unwrap();
    client.await_job(Uuid::nil()).await.unwrap();
    assert_eq!(
        server.lines(),
        [
            "GET /v0/jobs?workflow=a%2Fb&state=running&since=2026-11-20T12%3A00%3A00.000Z&limit=5&cursor=x".to_owned(),
            format!("GET /v0/jobs/{}?wait=true", Uuid::nil()),
        ]
    );
}

#[tokio::test]
async fn a_poll_brings_messages_and_a_renewed_token() {
    let messages = format!(r#"[{{"job_cancelled":{{"id":"{}"}}}}]"#, Uuid::nil());
    let server = Server::start([
        Reply::new(200, &[("X-Authorization-Refresh", "fresh")], messages),
        Reply::json("[]"),
    ])
    .await;
    let poll = Poll {
        instance: Uuid::nil(),
        number: None,
        capacity: 2,
        holding: vec![Uuid::nil()],
    };
    let answer = server.client().poll(&poll).await.unwrap();
    assert_eq!(answer.messages.len(), 1);
    assert_eq!(answer.renewed_token, Some(Secret::new("fresh")));
    let answer = server.client().poll(&poll).await.unwrap();
    assert_eq!((answer.messages.len(), answer.renewed_token), (0, None));
}

#[tokio::test]
async fn https_is_set_up_or_refused_but_never_panics() {
    match Client::new("https://everscan.example.org", None) {
        Ok(_) | Err(Error::Connector { .. }) => {}
        Err(error) => panic!("{error:?}"),
    }
}
