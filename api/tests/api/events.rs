//! Live events.

use http::Method;
use model::Scope;
use serde_json::{Value, json};

use crate::answers::compare;
use crate::client::{Call, Opened};
use crate::service::Service;

struct Stream {
    opened: Opened,
    unread: String,
}

/// A message of the stream: its event, its data and its id.
#[derive(Debug, Default)]
struct Message {
    event: String,
    data: Value,
    id: Option<u64>,
}

impl Stream {
    async fn open(service: &Service, call: Call) -> Self {
        let opened = call.open(service.address).await;
        assert_eq!(opened.status, 200);
        Self {
            opened,
            unread: String::new(),
        }
    }

    /// The next message; none at the end.
    async fn next(&mut self) -> Option<Message> {
        while !self.unread.contains("\n\n") {
            self.unread.push_str(&self.opened.piece().await?);
        }
        let (message, rest) = self.unread.split_once("\n\n").unwrap();
        let mut read = Message::default();
        for line in message.lines() {
            match line.split_once(": ").unwrap() {
                ("event", event) => read.event = event.to_owned(),
                ("data", data) => read.data = serde_json::from_str(data).unwrap(),
                ("id", id) => read.id = Some(id.parse().unwrap()),
                ("", "alive") => {}
                other => panic!("{other:?}"),
            }
        }
        self.unread = rest.to_owned();
        Some(read)
    }

    /// The next event. Skips ids between events.
    async fn event(&mut self) -> (String, Value) {
        loop {
            let message = self.next().await.unwrap();
            if !message.event.is_empty() {
                return (message.event, message.data);
            }
        }
    }

    /// The next id.
    async fn id(&mut self) -> u64 {
        loop {
            if let Some(id) = self.next().await.unwrap().id {
                return id;
            }
        }
    }
}

fn listen(service: &Service, query: &str) -> Call {
    Call::get(format!("/v0/events{query}")).bearer(&service.admin)
}

#[tokio::test]
async fn changes_are_sent_in_order() {
    let service = Service::start().await;
    let mut stream = Stream::open(&service, listen(&service, "")).await;
    assert_eq!(stream.opened.headers["x-accel-buffering"], "no");
    assert_eq!(stream.opened.headers["content-type"], "text/event-stream");
    stream.id().await;

    let (_, claimed) = service.claimed("one").await;
    let steps = json!({"steps": [{
        "index": 0, "status": "running", "started_at": "2026-11-20T12:00:00Z",
    }]});
    let report = claimed.call(Method::POST, &claimed.path("timeline"));
    report.json(&steps).send(service.address).await.expect(204);
    service.complete(&claimed, 0).await.expect(200);
    let job = format!("/v0/jobs/{}", claimed.id);
    service
        .admin(Call::new(Method::DELETE, &job))
        .await
        .expect(204);
    service
        .push(&[
            ("workflows/new.yaml", crate::service::PLAIN),
            ("workflows/deep/plain.yaml", crate::service::PLAIN),
        ])
        .await;
    let runner = Call::new(Method::DELETE, "/v0/runners/one");
    service.admin(runner).await.expect(204);

    let mut sent = String::new();
    loop {
        let (event, mut data) = stream.event().await;
        for (path, text) in [("/tip/commit", "c"), ("/revision/commit", "c")] {
            if let Some(commit) = data.pointer_mut(path) {
                *commit = text.into();
            }
        }
        let is_last = event == "runner" && data["removed"] == true;
        let shown = serde_json::to_string(&data).unwrap();
        sent.push_str(&format!("{event} {shown}\n"));
        if is_last {
            break;
        }
    }
    compare("events.txt", &sent);
}

#[tokio::test]
async fn a_listener_gets_only_requested_and_visible_events() {
    let service = Service::follow(&["main", "other"]).await;
    let (first, second) = (
        service.dispatch("large").await,
        service.dispatch("large").await,
    );
    let of_other = service.limited([Scope::JobRead], &["other"]).await;
    let mut streams = Vec::new();
    for query in [
        "",
        "?project=main",
        "?workflow=main%2Fpipeline",
        &format!("?job={first}"),
        &format!("?job={first}&project=main"),
    ] {
        let mut stream = Stream::open(&service, listen(&service, query)).await;
        stream.id().await;
        streams.push((query.to_owned(), stream));
    }
    let foreign = ["?project=other", "?workflow=other%2Fpipeline"];
    let others = foreign.map(|query| listen(&service, query));
    let blind = Call::get("/v0/events").bearer(&of_other);
    let mut silent = Vec::new();
    for call in others.into_iter().chain([blind]) {
        let mut stream = Stream::open(&service, call).await;
        stream.id().await;
        silent.push(stream);
    }
    for job in [&second, &first] {
        let cancel = service.admin(Call::post(format!("/v0/jobs/{job}/cancel")));
        cancel.await.expect(200);
    }
    for (query, stream) in &mut streams {
        if !query.contains("job=") {
            assert_eq!(stream.event().await.1["id"], json!(second), "{query}");
        }
        let (event, data) = stream.event().await;
        assert_eq!(
            (event.as_str(), &data["id"]),
            ("job", &json!(first)),
            "{query}"
        );
        assert_eq!(data["state"], "cancelled");
    }
    // The silent streams received no earlier event: their first event is about a job that they may see.
    let path = "/v0/workflows/other%2Fpipeline/scans/large/dispatch";
    let answer = service.post(path, &json!({})).await.expect(202);
    for stream in &mut silent {
        assert_eq!(stream.event().await.1["id"], answer["job"]["id"]);
    }
    for (query, token) in [
        ("?project=nobody", &service.admin),
        ("?workflow=nobody", &service.admin),
        ("?job=01939c5e-0000-7000-8000-000000000000", &service.admin),
        ("?project=main", &of_other),
        ("?workflow=main%2Fpipeline", &of_other),
        (&format!("?job={first}"), &of_other),
    ] {
        let call = Call::get(format!("/v0/events{query}")).bearer(token);
        let code = match query.split('=').next() {
            Some("?project") => "project_not_found",
            Some("?workflow") => "workflow_not_found",
            _ => "not_found",
        };
        call.send(service.address).await.problem(404, code);
    }
}

#[tokio::test]
async fn a_listener_continues_after_its_last_event_or_must_resync() {
    let service = Service::start().await;
    let mut stream = Stream::open(&service, listen(&service, "")).await;
    let place = stream.id().await;
    drop(stream);
    let (first, second) = (
        service.dispatch("large").await,
        service.dispatch("large").await,
    );
    let resume = |id: &str| listen(&service, "").header("last-event-id", id);
    let mut stream = Stream::open(&service, resume(&place.to_string())).await;
    for job in [first, second] {
        assert_eq!(stream.event().await.1["id"], json!(job));
    }
    for id in [u64::MAX.to_string(), "x".to_owned(), "-1".to_owned()] {
        let mut stream = Stream::open(&service, resume(&id)).await;
        let message = stream.next().await.unwrap();
        assert_eq!(message.event, "resync", "{id}");
        assert!(message.id.unwrap() > place);
        let job = service.dispatch("large").await;
        assert_eq!(stream.event().await.1["id"], json!(job));
    }
}

#[tokio::test]
async fn a_stream_ends_with_its_token_and_with_the_daemon() {
    let service = Service::start().await;
    let asked = json!({"name": "ci", "scopes": ["job:read"]});
    let created = service.post("/v0/tokens", &asked).await.expect(201);
    let secret = created["secret"].as_str().unwrap();
    let call = Call::get("/v0/events").bearer(secret);
    let mut stream = Stream::open(&service, call).await;
    stream.id().await;
    let revoke = Call::new(Method::DELETE, "/v0/tokens/ci");
    service.admin(revoke).await.expect(204);
    while stream.next().await.is_some() {}

    let mut stream = Stream::open(&service, listen(&service, "")).await;
    stream.id().await;
    service.handle.drain();
    while stream.next().await.is_some() {}
}

#[tokio::test]
async fn the_begin_and_the_end_of_a_condition_are_events_of_its_workflow() {
    let service = Service::start().await;
    let of_workflow = listen(&service, "?workflow=main/pipeline");
    let mut stream = Stream::open(&service, of_workflow).await;
    let why = json!({"reason": "holidays"});
    for workflow in ["deep%2Fplain", "pipeline"] {
        let path = format!("/v0/workflows/main%2F{workflow}/suspend");
        service.post(&path, &why).await.expect(200);
    }
    let resume = Call::post("/v0/workflows/main%2Fpipeline/resume");
    service.admin(resume).await.expect(200);
    let mut heard = Vec::new();
    while heard.len() < 2 {
        let (event, data) = stream.event().await;
        if event == "condition" {
            assert_eq!(data["code"], "suspended", "{data}");
            heard.push(data);
        }
    }
    assert_eq!(heard[0]["id"], heard[1]["id"]);
    assert_eq!(
        (&heard[0]["closed"], &heard[1]["closed"]),
        (&json!(null), &json!(true))
    );
}
