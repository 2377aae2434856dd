//! Logs, read and written.

use bytes::Bytes;
use chrono::{DateTime, TimeDelta};
use client::{Error, LogFilter, LogQuery};
use uuid::Uuid;
use wire::{ErrorCode, NewLogRecord, Stream};

use crate::server::{Reply, Server};

fn line(n: u64) -> String {
    format!(
        "{{\"n\":{n},\"at\":\"2026-11-20T10:00:00Z\",\"stream\":\"stdout\",\"text\":\"line {n}\"}}\n"
    )
}

async fn read(server: &Server, from: u64, follow: bool) -> Result<Vec<u64>, Error> {
    let query = LogQuery {
        from,
        follow,
        ..LogQuery::default()
    };
    read_query(server, query).await
}

async fn read_query(server: &Server, query: LogQuery) -> Result<Vec<u64>, Error> {
    let mut log = server.client().logs(Uuid::nil(), query);
    let mut read = Vec::new();
    while let Some(record) = log.next_record().await? {
        read.push(record.n);
    }
    Ok(read)
}

#[tokio::test]
async fn all_records_of_a_finished_log_are_read() {
    let text = format!("{}\n{}", line(3), line(4).trim_end());
    let server = Server::start([Reply::new(200, &[], text)]).await;
    assert_eq!(read(&server, 3, false).await.unwrap(), [3, 4]);
    let expected = format!("GET /v0/jobs/{}/logs?from=3", Uuid::nil());
    assert_eq!(server.lines(), [expected]);
    let accept = server.seen()[0].header("accept").map(str::to_owned);
    assert_eq!(accept.as_deref(), Some("application/x-ndjson"));
}

#[tokio::test]
async fn a_log_continues_after_the_last_record_when_the_connection_was_lost() {
    let half = &line(2)[..20];
    let server = Server::start([
        Reply::chunked(&[&line(0), &line(1), half], false),
        Reply::problem(503, "unavailable"),
        Reply::nothing(),
        // A daemon may begin a little earlier than requested.
        Reply::chunked(&[&line(1), &line(2)], false),
        Reply::chunked(&[&line(3)], true),
    ])
    .await;
    assert_eq!(read(&server, 0, true).await.unwrap(), [0, 1, 2, 3]);
    let from = |n: u64| format!("GET /v0/jobs/{}/logs?from={n}&follow=true", Uuid::nil());
    assert_eq!(
        server.lines(),
        [from(0), from(2), from(2), from(2), from(3)]
    );
}

#[tokio::test]
async fn a_filtered_log_continues_with_its_filter_and_without_its_tail() {
    let server = Server::start([
        Reply::nothing(),
        Reply::chunked(&[&line(7)], false),
        Reply::chunked(&[&line(9)], true),
    ])
    .await;
    let query = LogQuery {
        tail: Some(2),
        follow: true,
        filter: LogFilter {
            step: Some(1),
            stream: Some(Stream::Stderr),
            since: Some(DateTime::UNIX_EPOCH + TimeDelta::milliseconds(1_500)),
        },
        ..LogQuery::default()
    };
    assert_eq!(read_query(&server, query).await.unwrap(), [7, 9]);
    let ask = |begin: &str| {
        format!(
            "GET /v0/jobs/{}/logs?{begin}&follow=true&step=1&stream=stderr&since=1970-01-01T00%3A00%3A01.500Z",
            Uuid::nil()
        )
    };
    assert_eq!(
        server.lines(),
        [ask("tail=2"), ask("tail=2"), ask("from=8")]
    );
}

#[tokio::test]
async fn a_log_is_searched() {
    let page = format!(
        r#"{{"total":9,"matches":[{}],"next_cursor":"4","records":12}}"#,
        line(3).trim_end()
    );
    let server = Server::start([Reply::json(&page)]).await;
    let client = server.client();
    let filter = LogFilter {
        step: Some(0),
        ..LogFilter::default()
    };
    let found = client.search_log(Uuid::nil(), "a&b ü", &filter, Some(1), Some("2"));
    let found = found.await.unwrap();
    assert_eq!((found.total, found.records), (9, 12));
    assert_eq!(found.matches[0].n, 3);
    assert_eq!(found.next_cursor.as_deref(), Some("4"));
    let expected = format!(
        "GET /v0/jobs/{}/logs/search?q=a%26b%20%C3%BC&step=0&limit=1&cursor=2",
        Uuid::nil()
    );
    assert_eq!(server.lines(), [expected]);
}

#[tokio::test]
async fn a_refusal_ends_the_log() {
    let server = Server::start([
        Reply::chunked(&[&line(0)], false),
        Reply::problem(404, "not_found"),
    ])
    .await;
    let error = read(&server, 0, true).await.unwrap_err();
    assert_eq!(error.code(), Some(ErrorCode::NotFound));
}

#[tokio::test]
async fn a_line_that_is_not_a_record_is_reported() {
    let server = Server::start([Reply::chunked(&["{}\n"], true)]).await;
    let error = read(&server, 0, true).await.unwrap_err();
    assert!(matches!(error, Error::Protocol { .. }), "{error:?}");
}

#[tokio::test]
async fn appended_records_are_sent_as_a_list_with_the_first_number() {
    let server = Server::start([
        Reply::json(r#"{"received":6,"durable":4}"#),
        Reply::problem(409, "log_mismatch"),
    ])
    .await;
    let record = NewLogRecord {
        at: DateTime::UNIX_EPOCH,
        step: Some(0),
        stream: Stream::Stderr,
        text: "oh".to_owned(),
    };
    let client = server.client();
    let records = [record];
    let json = Bytes::from(serde_json::to_vec(&records).unwrap());
    let receipt = client.append_logs(Uuid::nil(), 5, json.clone()).await;
    let receipt = receipt.unwrap();
    assert_eq!((receipt.received, receipt.durable), (6, 4));
    let request = &server.seen()[0];
    assert_eq!(
        request.line,
        format!("PATCH /v0/jobs/{}/logs?from=5", Uuid::nil())
    );
    let sent: Vec<NewLogRecord> = serde_json::from_slice(&request.body).unwrap();
    assert_eq!(sent, records);
    let error = client.append_logs(Uuid::nil(), 9, json).await;
    let error = error.unwrap_err();
    assert_eq!(error.code(), Some(ErrorCode::LogMismatch));
    assert_eq!(error.problem().unwrap().next, Some(7));
}
