//! What arrives: the texts of templates, and what follows a defect of the sender.

use std::thread;

use delivery::send_all;
use http::Method;
use serde_json::{Value, json};
use tokio::runtime::Builder;
use tokio::sync::oneshot;

use crate::channels::{allowing, attempts, put, sink, webhook};
use crate::client::Call;
use crate::service::{Claimed, Service, text};

pub(crate) async fn fail(service: &Service, worker: &Claimed) {
    let end = json!({
        "steps": [], "log_records": 0, "failure": { "code": "env_failed", "message": "no value" },
    });
    let call = worker.call(Method::POST, &worker.path("complete"));
    let answer = call.json(&end).send(service.address).await;
    answer.expect(200);
}

pub(crate) fn data(request: &str) -> Value {
    let (_, body) = request.split_once("\r\n\r\n").unwrap();
    serde_json::from_str::<Value>(body).unwrap()["data"].take()
}

#[tokio::test]
async fn a_template_makes_the_text_of_each_event_and_a_failing_one_says_so() {
    let service = Service::start().await;
    let mut received = Vec::new();
    for (name, template) in [
        ("good", "${{ event.scan }} is ${{ event.state }}"),
        ("bad", "${{ int(event.scan) }}"),
    ] {
        let (address, requests) = sink(&[204]).await;
        let path = format!("{name}?project=main");
        let hook = webhook(&format!("http://{address}/x"));
        service.admin(put(&path, &hook)).await.expect(200);
        let rule = json!({ "channel": name, "template": template });
        let set = Call::new(Method::PUT, format!("/v0/rules/{path}")).json(&rule);
        service.admin(set).await.expect(200);
        received.push(requests);
    }
    let (runner, worker) = service.claimed("one").await;
    fail(&service, &worker).await;
    service.dispatch("build").await;
    let worker = service.claim(&runner, &[]).await;
    service.complete(&worker, 0).await.expect(200);

    tokio::spawn(send_all(service.handle.clone(), allowing()));
    let good = data(&received[0].recv().await.unwrap());
    assert_eq!(
        (text(&good["title"]), text(&good["text"])),
        (
            "Recovered: main/pipeline build".to_owned(),
            "build is closed".to_owned()
        )
    );
    let bad = text(&data(&received[1].recv().await.unwrap())["text"]);
    let note = "\n\n(The template of the rule bad failed: ";
    assert_eq!(bad.matches(note).count(), 1, "{bad}");
    assert!(bad.contains("It works again after"), "{bad}");
}

#[tokio::test]
async fn a_panic_while_a_message_is_sent_is_a_failed_attempt_and_the_channel_goes_on() {
    let service = Service::start().await;
    let (address, mut requests) = sink(&[204]).await;
    let hook = webhook(&format!("http://{address}/x"));
    let set = put("hook?project=main", &hook);
    service.admin(set).await.expect(200);
    let (_, worker) = service.claimed("one").await;
    fail(&service, &worker).await;

    // In a runtime without sockets, making a connection panics.
    let (stop, stopped) = oneshot::channel::<()>();
    let handle = service.handle.clone();
    let defective = thread::spawn(move || {
        let runtime = Builder::new_current_thread().enable_time().build();
        runtime.unwrap().block_on(async {
            tokio::select! {
                () = send_all(handle, allowing()) => {}
                _ = stopped => {}
            }
        });
    });
    let retry = || {
        let call = Call::post("/v0/channels/hook/retry?project=main").json(&json!({}));
        service.admin(call)
    };
    for number in 1..=2 {
        let attempt = attempts(&service, "", number).await.remove(0);
        assert_eq!(
            (&attempt["result"], &attempt["attempt"]),
            (&json!("retry"), &json!(number))
        );
        assert!(text(&attempt["reply"]).starts_with("a defect of Everscan"));
        if number == 1 {
            assert_eq!(retry().await.status, 204);
        }
    }
    stop.send(()).unwrap();
    defective.join().unwrap();
    tokio::spawn(send_all(service.handle.clone(), allowing()));
    assert_eq!(retry().await.status, 204);
    let delivered = attempts(&service, "", 3).await.remove(0);
    assert_eq!(delivered["result"], "delivered");
    assert!(requests.recv().await.unwrap().contains("POST /x"));
}
