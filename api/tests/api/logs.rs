//! Job logs: appended by workers, read and followed by users.

use chrono::TimeDelta;
use http::Method;
use serde_json::{Value, json};

use crate::client::{Call, Opened};
use crate::service::{Claimed, Service};

async fn append(service: &Service, worker: &Claimed, from: u64, lines: &[&str]) -> Value {
    let answer = worker.append(from, lines).send(service.address).await;
    answer.expect(200)
}

async fn read(service: &Service, worker: &Claimed, query: &str) -> String {
    let answer = service.get(&worker.path(&format!("logs{query}"))).await;
    assert_eq!(answer.status, 200);
    answer.text().to_owned()
}

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
async fn equal_repeats_are_taken_and_gaps_and_differences_are_not() {
    let service = Service::start().await;
    let (_, worker) = service.claimed("one").await;
    assert_eq!(
        append(&service, &worker, 0, &["a", "b"]).await["received"],
        2
    );
    assert_eq!(
        append(&service, &worker, 0, &["a", "b"]).await["received"],
        2
    );
    assert_eq!(
        append(&service, &worker, 1, &["b", "c"]).await["received"],
        3
    );
    assert_eq!(append(&service, &worker, 3, &[]).await["received"], 3);
    for (from, lines) in [(4, ["e"]), (1, ["x"]), (2, ["x"]), (u64::MAX, ["x"])] {
        let answer = worker.append(from, &lines).send(service.address).await;
        let problem = answer.problem(409, "log_mismatch");
        assert_eq!(problem["next"], 3, "from {from}");
    }
    // One record differs, so the new records of the same request are refused, too.
    let answer = worker.append(2, &["x", "d"]).send(service.address).await;
    answer.problem(409, "log_mismatch");
    assert_eq!(read(&service, &worker, "").await, "a\nb\nc\n");
    assert_eq!(read(&service, &worker, "?from=2").await, "c\n");
    assert_eq!(read(&service, &worker, "?from=99").await, "");
    let job = service.get(&format!("/v0/jobs/{}", worker.id)).await;
    assert_eq!(job.expect(200)["log"]["records"], 3);
}

#[tokio::test]
async fn what_is_no_log_record_is_refused() {
    let service = Service::start().await;
    let (_, worker) = service.claimed("one").await;
    let send = async |query: &str, body: Value| {
        let call = worker.call(Method::PATCH, &worker.path(&format!("logs{query}")));
        call.json(&body).send(service.address).await
    };
    let record = json!({"at": "2026-11-20T12:00:00Z", "stream": "stdout", "text": "a"});
    for query in ["", "?from=", "?from=-1", "?from=x"] {
        let answer = send(query, json!([record])).await;
        let problem = answer.problem(400, "invalid_request");
        assert_eq!(problem["errors"][0]["field"], "from");
    }
    for body in [
        json!({}),
        json!([{}]),
        json!([{"at": "now", "stream": "stdout", "text": "a"}]),
        json!([{"at": "2026-11-20T12:00:00Z", "stream": "out", "text": "a"}]),
        json!([{"at": "2026-11-20T12:00:00Z", "stream": "stdout", "text": "a".repeat(1 << 20)}]),
    ] {
        let answer = send("?from=0", body).await;
        answer.problem(400, "invalid_request");
    }
    assert_eq!(read(&service, &worker, "").await, "");
}

#[tokio::test]
async fn any_text_comes_back_as_it_was() {
    let service = Service::start().await;
    let (_, worker) = service.claimed("one").await;
    let lines = [
        "",
        "a\nb",
        "\r\n",
        "\u{0}\u{1b}[31m",
        "ü \u{2028}",
        "data: x",
        "\"\\",
    ];
    append(&service, &worker, 0, &lines).await;
    let call = Call::get(worker.path("logs")).header("accept", "application/x-ndjson");
    let answer = service.admin(call).await;
    let found: Vec<Value> = answer
        .text()
        .lines()
        .map(|line| serde_json::from_str(line).unwrap())
        .collect();
    assert_eq!(found.len(), lines.len());
    for (n, (record, line)) in found.iter().zip(lines).enumerate() {
        assert_eq!((&record["n"], &record["text"]), (&json!(n), &json!(line)));
    }
    // Each event is one record, whatever the record contains.
    let call = Call::get(worker.path("logs")).header("accept", "text/event-stream");
    let answer = service.admin(call).await;
    assert_eq!(answer.text().matches("\n\n").count(), lines.len());
    assert_eq!(answer.text().matches("data: {").count(), lines.len());
}

#[tokio::test]
async fn a_follower_reads_what_comes_until_the_job_is_over_in_every_form() {
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
async fn a_follower_waits_for_a_job_that_has_not_begun() {
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
async fn an_event_stream_goes_on_after_the_last_event() {
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
    // The query wins over the header that a browser adds by itself.
    assert_eq!(events("0", "?from=0").await, "0 1 2");
}

#[tokio::test]
async fn a_follower_that_goes_away_disturbs_nobody() {
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
async fn a_cancelled_worker_has_two_minutes_for_its_last_words() {
    let service = Service::start().await;
    let (_, worker) = service.claimed("one").await;
    append(&service, &worker, 0, &["at work"]).await;
    let cancel = Call::post(worker.path("cancel"));
    service.admin(cancel).await.expect(200);
    assert_eq!(
        append(&service, &worker, 1, &["killed"]).await["received"],
        2
    );
    assert_eq!(read(&service, &worker, "").await, "at work\nkilled\n");
    // A finished job refuses everything but logs and the completion.
    let timeline = worker.call(Method::POST, &worker.path("timeline"));
    let answer = timeline.json(&json!({"steps": []})).send(service.address);
    answer.await.problem(409, "job_over");
    let answer = worker.upload("out", b"late").send(service.address).await;
    answer.problem(409, "job_over");
    let answer = worker.call(Method::POST, &worker.path("resolve"));
    answer.send(service.address).await.problem(409, "job_over");
    // The completion waits until the log has every record that the worker has sent.
    let answer = service.complete(&worker, 3).await;
    assert_eq!(answer.problem(409, "log_mismatch")["next"], 2);
    let completed = service.complete(&worker, 2).await.expect(200);
    assert_eq!(completed["state"], "cancelled");
    service.clock.advance(TimeDelta::minutes(2));
    let answer = worker.append(2, &["too late"]).send(service.address).await;
    answer.problem(409, "job_over");
    assert_eq!(read(&service, &worker, "").await, "at work\nkilled\n");
}

#[tokio::test]
async fn a_log_is_cut_at_the_limit_of_its_scan_and_the_job_says_where() {
    let service = Service::start().await;
    service.dispatch("large").await;
    let runner = service.register("one", &["large"], 1).await;
    let worker = service.claim(&runner, &[]).await;
    let lines: Vec<String> = (0..20).map(|n| format!("line {n}")).collect();
    let lines: Vec<&str> = lines.iter().map(String::as_str).collect();
    let receipt = append(&service, &worker, 0, &lines[..3]).await;
    assert_eq!(
        (&receipt["received"], &receipt["full"]),
        (&json!(3), &Value::Null)
    );
    let receipt = append(&service, &worker, 3, &lines[3..]).await;
    assert_eq!(
        (&receipt["received"], &receipt["full"]),
        (&json!(20), &json!(true))
    );
    assert_eq!(
        append(&service, &worker, 20, &["more"]).await["durable"],
        21
    );

    let log = read(&service, &worker, "").await;
    let stored = log.lines().count() as u64;
    assert!(log.starts_with("line 0\nline 1\n"), "{log}");
    assert!(
        log.lines()
            .last()
            .unwrap()
            .starts_with("the log is cut here: "),
        "{log}"
    );
    let job = service
        .get(&format!("/v0/jobs/{}", worker.id))
        .await
        .expect(200);
    let cut = json!({"record": stored - 1, "limit": 1_000});
    assert_eq!(job["log"], json!({"records": stored, "cut": cut}));
    let why = service
        .get("/v0/workflows/main%2Fpipeline/scans/large/why")
        .await
        .expect(200);
    assert_eq!(why["unfinished"][0]["log_cut"], cut);
    // The worker counts what it has sent.
    let step = json!({
        "index": 0, "status": "succeeded", "outcome": "succeeded", "exit_code": 0, "started_at": "2026-11-20T12:00:00Z",
        "finished_at": "2026-11-20T12:00:00Z",
    });
    let complete = worker.call(Method::POST, &worker.path("complete"));
    let complete = complete.json(&json!({"steps": [step], "log_records": 21}));
    complete.send(service.address).await.expect(200);
    let job = service
        .get(&format!("/v0/jobs/{}", worker.id))
        .await
        .expect(200);
    assert_eq!(job["log"], json!({"records": stored, "cut": cut}));
    let why = service
        .get("/v0/workflows/main%2Fpipeline/scans/large/why")
        .await
        .expect(200);
    assert_eq!(
        why["cut_job"],
        json!({"id": worker.id, "log_cut": cut}),
        "also once it is over"
    );
    assert_eq!(
        read(&service, &worker, &format!("?from={}", stored - 1))
            .await
            .lines()
            .count(),
        1
    );
}

#[tokio::test]
async fn a_log_that_is_cut_after_its_job_was_cancelled_is_told_as_well() {
    let service = Service::start().await;
    service.dispatch("large").await;
    let runner = service.register("one", &["large"], 1).await;
    let worker = service.claim(&runner, &[]).await;
    service
        .admin(Call::post(worker.path("cancel")))
        .await
        .expect(200);
    let line = "x".repeat(500);
    append(&service, &worker, 0, &[&line, &line, &line]).await;
    let job = async || {
        let job = service.get(&format!("/v0/jobs/{}", worker.id)).await;
        job.expect(200)
    };
    let cut = json!({"record": 1, "limit": 1_000});
    assert_eq!(job().await["log"], json!({"records": 2, "cut": cut}));
    assert_eq!(job().await["state"], "cancelled");
    let why = service
        .get("/v0/workflows/main%2Fpipeline/scans/large/why")
        .await;
    let told = json!({"id": worker.id, "log_cut": cut});
    assert_eq!(why.expect(200)["cut_job"], told);
    append(&service, &worker, 3, &["more"]).await;
    assert_eq!(job().await["log"]["cut"], cut);
}
