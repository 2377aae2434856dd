//! Job logs: appended by workers, read and followed by users.

use chrono::TimeDelta;
use http::Method;
use serde_json::{Value, json};

use crate::client::Call;
use crate::service::{Claimed, Service};

pub(crate) async fn append(
    service: &Service,
    worker: &Claimed,
    from: u64,
    lines: &[&str],
) -> Value {
    let answer = worker.append(from, lines).send(service.address).await;
    answer.expect(200)
}

async fn read(service: &Service, worker: &Claimed, query: &str) -> String {
    let answer = service.get(&worker.path(&format!("logs{query}"))).await;
    assert_eq!(answer.status, 200);
    answer.text().to_owned()
}

#[tokio::test]
async fn equal_repeats_are_accepted_and_gaps_and_differences_are_refused() {
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
async fn invalid_log_records_are_refused() {
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
async fn any_text_is_returned_unchanged() {
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
async fn a_cancelled_worker_can_append_for_two_minutes() {
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
async fn a_log_is_cut_at_the_limit_of_its_scan_and_the_job_has_the_position() {
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
    // The worker counts the records that it sent.
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
        "also after the end of the job"
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
async fn a_cut_of_the_log_after_a_cancellation_is_reported() {
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
    let expected = json!({"id": worker.id, "log_cut": cut});
    assert_eq!(why.expect(200)["cut_job"], expected);
    append(&service, &worker, 3, &["more"]).await;
    assert_eq!(job().await["log"]["cut"], cut);
}

/// Ten records of three steps, one per second from 12:00:00 on.
pub(crate) async fn varied(service: &Service, worker: &Claimed) {
    let record = |n: u64, step: Option<u64>, stream: &str, text: &str| {
        let at = format!("2026-11-20T12:00:{n:02}Z");
        match step {
            Some(step) => json!({"at": at, "step": step, "stream": stream, "text": text}),
            None => json!({"at": at, "stream": stream, "text": text}),
        }
    };
    let records = json!([
        record(0, None, "runner", "begins"),
        record(1, Some(0), "stdout", "one"),
        record(2, Some(0), "stderr", "an Error"),
        record(3, Some(0), "stdout", "two"),
        record(4, Some(1), "stdout", "one"),
        record(5, Some(1), "stderr", "another error"),
        record(6, Some(1), "stdout", "say \"Grüße\"\t!"),
        record(7, Some(2), "stdout", "three"),
        record(8, Some(2), "stdout", "four"),
        record(9, None, "runner", "ends"),
    ]);
    let call = worker.call(Method::PATCH, &worker.path("logs?from=0"));
    call.json(&records).send(service.address).await.expect(200);
}

/// The numbers of the records in each of the three forms, which must agree.
async fn numbers(service: &Service, worker: &Claimed, query: &str) -> Vec<u64> {
    let read = async |kind: &str| {
        let call = Call::get(worker.path(&format!("logs{query}"))).header("accept", kind);
        let answer = service.admin(call).await;
        assert_eq!(answer.status, 200, "{query} {:?}", answer.body);
        answer.text().to_owned()
    };
    let records: Vec<Value> = read("application/x-ndjson")
        .await
        .lines()
        .map(|line| serde_json::from_str(line).unwrap())
        .collect();
    let numbers: Vec<u64> = records.iter().map(|it| it["n"].as_u64().unwrap()).collect();
    let ids = read("text/event-stream").await;
    let ids = ids.lines().filter_map(|line| line.strip_prefix("id: "));
    assert!(ids.eq(numbers.iter().map(u64::to_string)), "{query}");
    let texts = records.iter().map(|it| it["text"].as_str().unwrap());
    assert!(read("text/plain").await.lines().eq(texts), "{query}");
    numbers
}

#[tokio::test]
async fn a_reader_can_filter_records_while_the_job_runs_and_afterwards() {
    let service = Service::start().await;
    let (_, worker) = service.claimed("one").await;
    for query in ["?tail=3", "?tail=3&step=1"] {
        assert!(numbers(&service, &worker, query).await.is_empty());
    }
    varied(&service, &worker).await;
    for is_over in [false, true] {
        for (query, expected) in [
            ("?limit=3", &[0, 1, 2][..]),
            ("?limit=99", &[0, 1, 2, 3, 4, 5, 6, 7, 8, 9]),
            ("?from=4&limit=2", &[4, 5]),
            ("?tail=2", &[8, 9]),
            ("?tail=10", &[0, 1, 2, 3, 4, 5, 6, 7, 8, 9]),
            ("?tail=99", &[0, 1, 2, 3, 4, 5, 6, 7, 8, 9]),
            ("?tail=4&limit=2", &[6, 7]),
            ("?step=0", &[1, 2, 3]),
            ("?step=1", &[4, 5, 6]),
            ("?step=7", &[]),
            ("?stream=stderr", &[2, 5]),
            ("?stream=runner", &[0, 9]),
            ("?step=1&stream=stdout", &[4, 6]),
            ("?stream=stdout&limit=2", &[1, 3]),
            ("?stream=stdout&from=4&limit=2", &[4, 6]),
            ("?stream=stdout&tail=3", &[6, 7, 8]),
            ("?stream=stdout&tail=3&limit=1", &[6]),
            ("?stream=stderr&tail=9", &[2, 5]),
            ("?step=7&tail=1", &[]),
            ("?since=2026-11-20T12:00:07Z", &[7, 8, 9]),
            ("?since=2026-11-20T14:00:08%2B02:00", &[8, 9]),
            ("?since=2026-11-20T12:00:05Z&step=1", &[5, 6]),
            ("?since=2027-01-01T00:00:00Z", &[]),
            ("?follow=true&limit=2", &[0, 1]),
        ] {
            let found = numbers(&service, &worker, query).await;
            assert_eq!(found, expected, "{query}, over: {is_over}");
        }
        if !is_over {
            service.complete(&worker, 10).await.expect(200);
        }
    }
    assert_eq!(
        numbers(&service, &worker, "?follow=true&step=2").await,
        [7, 8]
    );
}

#[tokio::test]
async fn a_log_has_a_form_with_times_for_people() {
    let service = Service::start().await;
    let (_, worker) = service.claimed("one").await;
    varied(&service, &worker).await;
    assert_eq!(
        read(&service, &worker, "?timestamps=true&limit=6").await,
        "2026-11-20T12:00:00.000Z [runner] begins\n\
         --- step 1 ---\n\
         2026-11-20T12:00:01.000Z one\n\
         2026-11-20T12:00:02.000Z [stderr] an Error\n\
         2026-11-20T12:00:03.000Z two\n\
         --- step 2 ---\n\
         2026-11-20T12:00:04.000Z one\n\
         2026-11-20T12:00:05.000Z [stderr] another error\n"
    );
    assert_eq!(
        read(&service, &worker, "?timestamps=true&step=2&tail=1").await,
        "--- step 3 ---\n2026-11-20T12:00:08.000Z four\n"
    );
    assert_eq!(
        read(&service, &worker, "?timestamps=false&limit=2").await,
        "begins\none\n"
    );
}

#[tokio::test]
async fn invalid_filters_are_refused() {
    let service = Service::start().await;
    let (_, worker) = service.claimed("one").await;
    let long = "x".repeat(1_001);
    for (path, field, says) in [
        ("logs?limit=0", "limit", "1 or more"),
        ("logs?limit=x", "limit", "whole number"),
        ("logs?tail=0", "tail", "1 or more"),
        ("logs?tail=-1", "tail", "whole number"),
        ("logs?tail=1&from=0", "tail", "give one of them"),
        ("logs?step=x", "step", "whole number"),
        ("logs?step=4294967296", "step", "from 0"),
        ("logs?stream=out", "stream", "`stderr`"),
        ("logs?since=10m", "since", "2026-11-21T10:00:00Z"),
        ("logs?timestamps=yes", "timestamps", "`true` or `false`"),
        ("logs?q=x", "q", "timestamps"),
        ("logs/search", "q", "1 to 1000 characters"),
        ("logs/search?q=", "q", "1 to 1000 characters"),
        (
            &format!("logs/search?q={long}"),
            "q",
            "1 to 1000 characters",
        ),
        ("logs/search?q=x&case=maybe", "case", "`true` or `false`"),
        ("logs/search?q=x&limit=0", "limit", "from 1 to 10000"),
        ("logs/search?q=x&limit=10001", "limit", "from 1 to 10000"),
        ("logs/search?q=x&cursor=x", "cursor", "whole number"),
        ("logs/search?q=x&step=x", "step", "whole number"),
        ("logs/search?q=x&tail=1", "tail", "cursor"),
    ] {
        let problem = service.get(&worker.path(path)).await;
        let problem = problem.problem(400, "invalid_request");
        assert_eq!(problem["errors"][0]["field"], field, "{path}");
        let message = problem["errors"][0]["message"].as_str().unwrap();
        assert!(message.contains(says), "{path}: {message}");
    }
    for kind in ["application/x-ndjson", "text/event-stream"] {
        let call = Call::get(worker.path("logs?timestamps=true")).header("accept", kind);
        let problem = service.admin(call).await;
        let problem = problem.problem(400, "invalid_request");
        assert_eq!(problem["errors"][0]["field"], "timestamps");
    }
}
