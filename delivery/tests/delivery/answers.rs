//! What the answers of a server mean.

use super::sink::{sink, status, tls_sink};
use super::*;

async fn outcome_of(answer: impl Into<String>, endless: &'static str) -> Outcome {
    let (url, taken) = sink(answer, endless).await;
    let outcome = send(&webhook(&url), KEY, &message()).await;
    taken.abort();
    outcome
}

fn retry(reason: &str, seconds: Option<u64>) -> Outcome {
    Outcome::Retry {
        reason: reason.to_owned(),
        after: seconds.map(Duration::from_secs),
    }
}

#[tokio::test]
async fn a_status_decides_whether_the_message_is_sent_again() {
    for (line, expected) in [
        ("204 No Content", delivered("204")),
        (
            "500 Internal Server Error",
            retry("500 Internal Server Error", None),
        ),
        (
            "503 Service Unavailable\r\nretry-after: 120",
            retry("503 Service Unavailable", Some(120)),
        ),
        (
            "429 Too Many Requests\r\nretry-after: 7",
            retry("429 Too Many Requests", Some(7)),
        ),
        (
            "429 Too Many Requests\r\nretry-after: 999999",
            retry("429 Too Many Requests", Some(3600)),
        ),
        ("408 Request Timeout", retry("408 Request Timeout", None)),
        (
            "410 Gone",
            Outcome::Gone {
                reason: "410 Gone".to_owned(),
            },
        ),
    ] {
        assert_eq!(outcome_of(status(line), "").await, expected, "{line}");
    }
    let reason = refused(outcome_of(status("404 Not Found"), "").await);
    assert_eq!(reason, "404 Not Found");
}

#[tokio::test]
async fn a_redirect_is_not_followed() {
    for line in [
        "301 Moved Permanently",
        "302 Found",
        "307 Temporary Redirect",
        "308 Permanent Redirect",
    ] {
        let (elsewhere, other) = sink(status("200 OK"), "").await;
        let answer = status(&format!("{line}\r\nlocation: {elsewhere}"));
        let reason = refused(outcome_of(answer, "").await);
        assert_eq!(reason, format!("{line}: redirects are not followed"));
        assert!(!other.is_finished(), "the redirect was followed");
        other.abort();
    }
}

#[tokio::test]
async fn the_body_of_an_answer_is_neither_awaited_nor_shown() {
    let head = "HTTP/1.1 400 Bad Request\r\n\r\nhush";
    let reason = refused(outcome_of(head, "hush hush ").await);
    assert_eq!(reason, "400 Bad Request");
    let head = "HTTP/1.1 200 OK\r\ncontent-length: 5\r\n\r\n";
    assert_eq!(outcome_of(head, "silence").await, delivered("200"));
}

#[tokio::test]
async fn an_endless_head_ends_at_the_bound_of_a_connection() {
    for endless in ["x-filler: 0123456789\r\n", "aaaaaaaaaaaaaaaa"] {
        let reason = to_repeat(outcome_of("HTTP/1.1 200 OK\r\n", endless).await);
        assert!(
            reason.contains("127.0.0.1 does not answer as an HTTP server"),
            "{reason}"
        );
    }
    // Not even hyper's own bounds end answers before the answer.
    let reason = to_repeat(outcome_of("", "HTTP/1.1 102 Processing\r\n\r\n").await);
    assert!(
        reason.contains("more than 64 KiB were received"),
        "{reason}"
    );
}

#[tokio::test]
async fn a_server_that_says_nothing_is_given_up() {
    let (url, taken) = sink("", "silence").await;
    let hasty = settings(&["127.0.0.1"], Duration::from_millis(100));
    let outcome = send_with(&hasty, &webhook(&url), KEY, &message()).await;
    assert_eq!(to_repeat(outcome), "no answer within 0.1 s");
    // The connection is closed: the sink ends.
    taken.await.unwrap();
}

#[tokio::test]
async fn an_unreachable_server_is_tried_again() {
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    drop(listener);
    let reason =
        to_repeat(send(&webhook(&format!("http://{address}/hush")), KEY, &message()).await);
    assert!(
        reason.starts_with("cannot connect to 127.0.0.1, port "),
        "{reason}"
    );
    assert!(!reason.contains("hush"), "{reason}");
}

#[tokio::test]
async fn tls_trusts_an_own_authority_and_nothing_else_then() {
    let (url, ca, taken) = tls_sink().await;
    let target = |ca: Option<String>| Target::Webhook {
        url: url.clone(),
        ca,
    };
    let allowed = settings(&["127.0.0.1", "::1"], PATIENCE);
    let send = async |ca| send_with(&allowed, &target(ca), KEY, &message()).await;
    let reason = to_repeat(send(None).await);
    assert!(reason.starts_with("no TLS with localhost: "), "{reason}");
    let other = sink::certificate().ca;
    let reason = to_repeat(send(Some(other)).await);
    assert!(reason.starts_with("no TLS with localhost: "), "{reason}");
    let reason = refused(send(Some("no certificate".to_owned())).await);
    assert!(
        reason.starts_with("the certificate authority is unusable: "),
        "{reason}"
    );
    assert_eq!(send(Some(ca)).await, delivered("204"));
    assert_eq!(taken.await.unwrap().line, "POST / HTTP/1.1");
}

#[tokio::test]
async fn a_monitor_is_asked_with_get() {
    let (url, taken) = sink(status("200 OK"), "").await;
    let answer = settings(&["127.0.0.1"], PATIENCE)
        .outbound
        .get(&url, Utc::now())
        .await;
    assert!(answer.unwrap().status.is_success());
    assert_eq!(taken.await.unwrap().line, "GET /hook HTTP/1.1");
}
