//! Following a log in every form and from every start, until the job has finished.

use http::Method;
use serde_json::json;

use crate::client::{Call, Opened};
use crate::logs::{append, varied};
use crate::service::{Claimed, Service};

/// Follows the log from its first record, in this media type.
async fn follow(service: &Service, worker: &Claimed, kind: &str) -> Opened {
    let opened = Call::get(worker.path("logs?follow=true"))
        .header("accept", kind)
        .bearer(&service.admin)
        .open(service.address)
        .await;
    assert_eq!(opened.status, 200);
    let given = opened.headers["content-type"].to_str().unwrap();
    assert!(given.starts_with(kind), "{given}");
    opened
}

#[tokio::test]
async fn a_follower_reads_new_records_in_every_form_until_the_job_ends() {
    let service = Service::start().await;
    let (_, worker) = service.claimed("one").await;
    let mut plain = follow(&service, &worker, "text/plain").await;
    append(&service, &worker, 0, &["first"]).await;
    let mut lines = follow(&service, &worker, "application/x-ndjson").await;
    let mut events = follow(&service, &worker, "text/event-stream").await;
    assert_eq!(plain.until("first\n").await, "first\n");
    lines.until("\"n\":0").await;
    events.until("id: 0\n").await;
    append(&service, &worker, 1, &["second"]).await;
    assert_eq!(plain.until("second\n").await, "second\n");
    append(&service, &worker, 2, &["last"]).await;
    service.complete(&worker, 3).await.expect(200);
    assert_eq!(plain.rest().await, "last\n");
    let rest = lines.rest().await;
    assert!(
        rest.contains("\"n\":1") && rest.ends_with("\"text\":\"last\"}\n"),
        "{rest}"
    );
    let rest = events.rest().await;
    assert!(
        rest.contains("id: 1\ndata: {") && rest.ends_with("\"text\":\"last\"}\n\n"),
        "{rest}"
    );
    // Following a finished log ends at once.
    let mut after = follow(&service, &worker, "text/plain").await;
    assert_eq!(after.rest().await, "first\nsecond\nlast\n");
}

#[tokio::test]
async fn a_follower_waits_for_a_scheduled_job() {
    let service = Service::start().await;
    let job = service.dispatch("build").await;
    let call = Call::get(format!("/v0/jobs/{job}/logs?follow=true")).bearer(&service.admin);
    let mut follower = call.open(service.address).await;
    let runner = service.register("one", &[], 1).await;
    let worker = service.claim(&runner, &[]).await;
    append(&service, &worker, 0, &["first"]).await;
    follower.until("first\n").await;
    service.complete(&worker, 1).await.expect(200);
    assert_eq!(follower.rest().await, "");
}

#[tokio::test]
async fn an_event_stream_continues_after_the_last_event() {
    let service = Service::start().await;
    let (_, worker) = service.claimed("one").await;
    append(&service, &worker, 0, &["a", "b", "c"]).await;
    let events = async |id: &str, query: &str| {
        let call = Call::get(worker.path(&format!("logs{query}")))
            .header("accept", "text/event-stream")
            .header("last-event-id", id);
        let answer = service.admin(call).await;
        let ids = answer
            .text()
            .lines()
            .filter_map(|line| line.strip_prefix("id: "));
        ids.collect::<Vec<_>>().join(" ")
    };
    assert_eq!(events("0", "").await, "1 2");
    assert_eq!(events("2", "").await, "");
    assert_eq!(events("nonsense", "").await, "0 1 2");
    assert_eq!(events(&u64::MAX.to_string(), "").await, "");
    // The query wins over the header that browsers add.
    assert_eq!(events("0", "?from=0").await, "0 1 2");
}

#[tokio::test]
async fn a_follower_that_leaves_does_not_affect_others() {
    let service = Service::start().await;
    let (_, worker) = service.claimed("one").await;
    let gone = follow(&service, &worker, "text/plain").await;
    let mut stays = follow(&service, &worker, "text/plain").await;
    drop(gone);
    append(&service, &worker, 0, &["a line"]).await;
    stays.until("a line\n").await;
    service.complete(&worker, 1).await.expect(200);
    assert_eq!(stays.rest().await, "");
}

#[tokio::test]
async fn a_follower_ends_when_the_daemon_stops() {
    let service = Service::start().await;
    let (_, worker) = service.claimed("one").await;
    append(&service, &worker, 0, &["a line"]).await;
    let mut follower = follow(&service, &worker, "text/plain").await;
    follower.until("a line\n").await;
    service.handle.drain();
    assert_eq!(follower.rest().await, "");
}

#[tokio::test]
async fn a_follower_gets_only_the_requested_records() {
    let service = Service::start().await;
    let (_, worker) = service.claimed("one").await;
    varied(&service, &worker).await;
    let open = async |query: &str, kind: &str| {
        let call = Call::get(worker.path(&format!("logs?follow=true{query}")));
        let call = call.header("accept", kind).bearer(&service.admin);
        call.open(service.address).await
    };
    let mut tail = open("&tail=1", "text/plain").await;
    let mut stdout = open("&stream=stdout&tail=1", "text/plain").await;
    let mut stderr = open("&stream=stderr&limit=3", "application/x-ndjson").await;
    let mut later = open("&since=2026-11-20T12:00:10Z", "text/event-stream").await;
    let mut timed = open("&timestamps=true&tail=2", "text/plain").await;
    assert_eq!(tail.until("ends\n").await, "ends\n");
    assert_eq!(stdout.until("four\n").await, "four\n");
    stderr.until("another error").await;
    timed.until("ends\n").await;
    let record = |second: u64, stream: &str, text: &str| {
        let at = format!("2026-11-20T12:00:{second}Z");
        json!({"at": at, "step": 2, "stream": stream, "text": text})
    };
    let records = json!([
        record(10, "stdout", "more"),
        record(11, "stderr", "oh"),
        record(12, "stderr", "no"),
    ]);
    let call = worker.call(Method::PATCH, &worker.path("logs?from=10"));
    call.json(&records).send(service.address).await.expect(200);
    let rest = stderr.rest().await;
    assert!(rest.contains("\"n\":11,"), "{rest}");
    assert_eq!(rest.lines().count(), 1, "the limit ends it: {rest}");
    service.complete(&worker, 13).await.expect(200);
    assert_eq!(tail.rest().await, "more\noh\nno\n");
    assert_eq!(stdout.rest().await, "more\n");
    let later = later.rest().await;
    let ids = later.lines().filter_map(|line| line.strip_prefix("id: "));
    assert_eq!(ids.collect::<Vec<_>>(), ["10", "11", "12"]);
    assert_eq!(
        timed.rest().await,
        "2026-11-20T12:00:10.000Z more\n2026-11-20T12:00:11.000Z [stderr] oh\n\
         2026-11-20T12:00:12.000Z [stderr] no\n"
    );
}

#[tokio::test]
async fn an_event_stream_does_not_repeat_its_tail_after_a_reconnection() {
    let service = Service::start().await;
    let (_, worker) = service.claimed("one").await;
    varied(&service, &worker).await;
    let call = Call::get(worker.path("logs?tail=2&step=1"))
        .header("accept", "text/event-stream")
        .header("last-event-id", "3");
    let answer = service.admin(call).await;
    let ids = answer
        .text()
        .lines()
        .filter_map(|line| line.strip_prefix("id: "));
    assert_eq!(ids.collect::<Vec<_>>(), ["4", "5", "6"]);
}
