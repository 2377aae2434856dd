//! What messages say of several events, of what is still wrong, and of what a person has settled.

use std::sync::Arc;

use chrono::TimeDelta;
use delivery::send_all;
use http::Method;
use model::condition::{Problem, Subject};
use model::decide::Measure;
use model::{ScanKey, WorkflowId};
use serde_json::{Value, json};
use tokio::sync::mpsc::UnboundedReceiver;

use crate::channels::{allowing, attempts, put, sink, webhook};
use crate::client::Call;
use crate::messages::{data, fail};
use crate::service::{PLAIN, Service, text};

/// A service with a channel whose rule has these members.
async fn notifying(rule: Value) -> (Service, UnboundedReceiver<String>) {
    let service = Service::start().await;
    let (address, requests) = sink(&[204; 9]).await;
    let hook = webhook(&format!("http://{address}/x"));
    service
        .admin(put("hook?project=main", &hook))
        .await
        .expect(200);
    let set = Call::new(Method::PUT, "/v0/rules/hook?project=main").json(&rule);
    service.admin(set).await.expect(200);
    (service, requests)
}

/// Opens ten conditions.
async fn trouble(service: &Service, scan: &str) {
    let name = "main".parse().unwrap();
    let workflow = WorkflowId::derive(&name, "pipeline");
    let report = Measure {
        subject: Subject::from(&ScanKey::new(workflow, &scan.parse().unwrap())),
        problems: vec![Problem::HistoryDamaged; 10],
    };
    service.handle.state().submit(report).await.unwrap();
}

#[tokio::test]
async fn a_message_about_many_events_begins_with_the_newest_and_counts_what_it_does_not_list() {
    let rule = json!({ "channel": "hook", "events": ["history_damaged"] });
    let (service, mut requests) = notifying(rule).await;
    for number in 0..11 {
        trouble(&service, &format!("s{number:02}")).await;
    }
    let mut settings = Arc::into_inner(allowing()).unwrap();
    settings.url = Some("https://ci.localhost".to_owned());
    tokio::spawn(send_all(service.handle.clone(), Arc::new(settings)));
    let data = data(&requests.recv().await.unwrap());
    assert_eq!(
        text(&data["title"]),
        "Damaged: main/pipeline s10, and 109 others"
    );
    let shown = text(&data["text"]);
    let paragraphs: Vec<&str> = shown.split("\n\n").collect();
    assert_eq!(paragraphs.len(), 12, "{shown}");
    let mut first = paragraphs[0].lines();
    assert_eq!(first.next(), Some("Damaged: main/pipeline s10"));
    assert!(first.next().is_some_and(|time| time.ends_with(" UTC")));
    let titles: Vec<&str> = paragraphs[10].lines().collect();
    assert_eq!(
        (titles.len(), titles[0]),
        (20, "Damaged: main/pipeline s09")
    );
    assert_eq!(paragraphs[11], "and 80 more");
    let listed = data["event"]["events"].as_array().unwrap();
    assert_eq!((listed.len(), &data["event"]["count"]), (100, &json!(110)));
    assert_eq!(listed[0]["scan"], "s01", "in their order");
    let link = "https://ci.localhost/workflows/main/pipeline/-/scans/s";
    assert_eq!(listed[0]["link"], format!("{link}01"));
    assert_eq!(paragraphs[0].lines().last(), Some(&*format!("{link}10")));
    assert_eq!(data["link"], "https://ci.localhost/");
}

#[tokio::test]
async fn a_message_that_comes_late_says_when_it_happened() {
    let (service, mut requests) = notifying(json!({ "channel": "hook" })).await;
    let (_, worker) = service.claimed("one").await;
    fail(&service, &worker).await;
    let happened = service
        .handle
        .now()
        .format("%Y-%m-%d %H:%M:%S UTC")
        .to_string();
    service.clock.advance(TimeDelta::minutes(6));
    tokio::spawn(send_all(service.handle.clone(), allowing()));
    let data = data(&requests.recv().await.unwrap());
    let shown = text(&data["text"]);
    assert!(
        shown.ends_with(&format!("\nThis was at {happened}.")),
        "{shown}"
    );
}

#[tokio::test]
async fn a_failed_message_is_sent_again_as_it_was_also_after_a_push() {
    let service = Service::start().await;
    let (address, mut requests) = sink(&[400, 204]).await;
    let hook = webhook(&format!("http://{address}/x"));
    let set = put("hook?project=main", &hook);
    service.admin(set).await.expect(200);
    let (runner, worker) = service.claimed("one").await;
    fail(&service, &worker).await;
    service.dispatch("build").await;
    let worker = service.claim(&runner, &[]).await;
    service.complete(&worker, 0).await.expect(200);
    tokio::spawn(send_all(service.handle.clone(), allowing()));
    let first = data(&requests.recv().await.unwrap());
    let failed = attempts(&service, "", 1).await.remove(0);

    // The jobs have another revision now, which nothing holds any more.
    service.push(&[("workflows/pipeline.yaml", PLAIN)]).await;
    let retry = Call::post("/v0/channels/hook/retry?project=main")
        .json(&json!({ "message": failed["message"] }));
    assert_eq!(service.admin(retry).await.status, 204);
    let again = data(&requests.recv().await.unwrap());
    assert_eq!(text(&again["title"]), "Recovered: main/pipeline build");
    for member in ["title", "text"] {
        assert_eq!(again[member], first[member]);
    }
}

#[tokio::test]
async fn a_repeat_says_that_it_still_fails_and_an_acknowledgement_is_no_recovery() {
    let rule = json!({ "channel": "hook", "group": "0s", "repeat": "5m", "events": ["failing"] });
    let (service, mut requests) = notifying(rule).await;
    tokio::spawn(send_all(service.handle.clone(), allowing()));
    let (runner, worker) = service.claimed("one").await;
    fail(&service, &worker).await;
    let first = data(&requests.recv().await.unwrap());
    assert_eq!(text(&first["title"]), "Failed: main/pipeline build");
    service.dispatch("build").await;
    let worker = service.claim(&runner, &[]).await;
    fail(&service, &worker).await;

    // The result of the first message is recorded, and then the time of the repeat comes.
    attempts(&service, "", 1).await;
    let mut changed = service.handle.state().changed();
    let is_planned = |world: &model::World| {
        world
            .outbox()
            .any(|it| it.deliveries.iter().flatten().any(|it| it.due.is_repeat()))
    };
    while !service.handle.state().read(is_planned) {
        changed.changed().await.unwrap();
    }
    service.clock.advance(TimeDelta::minutes(6));
    trouble(&service, "build").await;
    let repeat = data(&requests.recv().await.unwrap());
    assert_eq!(text(&repeat["title"]), "Still failing: main/pipeline build");
    let shown = text(&repeat["text"]);
    assert!(shown.starts_with("For 6m, 2 failures.\n"), "{shown}");
    assert_ne!(
        repeat["event"]["events"][0]["job"],
        first["event"]["events"][0]["job"]
    );

    let open = service.get("/v0/conditions").await.expect(200);
    let open = open["items"].as_array().unwrap().iter();
    let failing = open.clone().find(|it| it["code"] == "failing").unwrap();
    let path = format!("/v0/conditions/{}/acknowledge", text(&failing["id"]));
    service
        .post(&path, &json!({ "note": "known" }))
        .await
        .expect(200);
    let request = requests.recv().await.unwrap();
    let (_, body) = request.split_once("\r\n\r\n").unwrap();
    let body: Value = serde_json::from_str(body).unwrap();
    assert_eq!(
        [&body["type"], &body["data"]["title"], &body["data"]["text"]],
        [
            "information",
            "Acknowledged: main/pipeline build",
            "By token tester: known."
        ]
    );
}
