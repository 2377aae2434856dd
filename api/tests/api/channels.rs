//! Channels of notifications: who may see and change them, what is refused, what is sent, and what never comes back.

mod sink;

use std::sync::Arc;

use api::Front;
use delivery::{Settings, send_all};
use http::Method;
use model::Scope;
use outbound::{Limits, Outbound};
use serde_json::{Value, json};

pub(crate) use self::sink::sink;
use crate::browser::Browser;
use crate::client::{Answer, Call};
use crate::service::{Service, text};

/// Also base64, as a signing key must be.
const SECRET: &str = "hunter2hunter2hu";

pub(crate) fn put(path: &str, body: &Value) -> Call {
    Call::new(Method::PUT, format!("/v0/channels/{path}")).json(body)
}

fn delete(path: &str) -> Call {
    Call::new(Method::DELETE, format!("/v0/channels/{path}"))
}

fn command() -> Value {
    json!({ "target": { "kind": "command", "command": "page" } })
}

pub(crate) fn webhook(url: &str) -> Value {
    json!({ "target": { "kind": "webhook", "url": url } })
}

/// The field that was refused, and the message.
fn error(answer: &Answer) -> (String, String) {
    let problem = answer.problem(400, "invalid_request");
    let error = &problem["errors"][0];
    (text(&error["field"]), text(&error["message"]))
}

/// What the daemon needs to send to this machine.
pub(crate) fn allowing() -> Arc<Settings> {
    let allow = vec!["127.0.0.1".parse().unwrap()];
    let outbound = Outbound::new(allow, "everscand.yaml", Limits::default());
    Arc::new(Settings {
        outbound,
        ..Settings::default()
    })
}

/// The attempts, once there are so many.
pub(crate) async fn attempts(service: &Service, query: &str, count: usize) -> Vec<Value> {
    let mut changed = service.handle.state().changed();
    loop {
        let page = service.get(&format!("/v0/deliveries{query}")).await;
        let items = page.expect(200)["items"].as_array().unwrap().clone();
        if items.len() >= count {
            return items;
        }
        changed.changed().await.unwrap();
    }
}

#[tokio::test]
async fn a_secret_never_comes_back() {
    let service = Service::start().await;
    let mail = json!({
        "kind": "email", "host": "127.0.0.1", "from": "a@example.org", "to": ["b@example.org"], "username": "a",
    });
    let mut answers = Vec::new();
    for (name, target, secret) in [
        ("mail", mail, SECRET.to_owned()),
        (
            "hook",
            json!({ "kind": "webhook", "url": "https://127.0.0.1/x" }),
            format!("whsec_{SECRET}"),
        ),
        (
            "slack",
            json!({ "kind": "slack" }),
            format!("https://127.0.0.1/{SECRET}"),
        ),
        (
            "discord",
            json!({ "kind": "discord" }),
            format!("https://127.0.0.1/{SECRET}"),
        ),
        (
            "ntfy",
            json!({ "kind": "ntfy", "server": "https://127.0.0.1", "topic": "t" }),
            SECRET.to_owned(),
        ),
    ] {
        let body = json!({ "target": target, "secret": secret });
        let set = service.admin(put(name, &body)).await;
        assert_eq!(set.expect(200)["has_secret"], true);
        assert_eq!(set.json().get("new_key"), None);
        answers.push(set);
        answers.push(service.get(&format!("/v0/channels/{name}")).await);
        let test = Call::post(format!("/v0/channels/{name}/test"));
        let test = service.admin(test).await;
        assert_eq!(test.expect(200)["result"], "failed");
        answers.push(test);
    }
    let refused = [
        json!({ "target": { "kind": "slack" }, "secret": [SECRET] }),
        json!({ "target": { "kind": SECRET }, "secret": SECRET }),
        json!({ "target": { "kind": "command", "command": "page" }, "secret": SECRET }),
        json!({ "target": { "kind": "slack" }, "secret": format!("{SECRET}\n{SECRET}") }),
        json!({ "target": { "kind": "discord" }, "secret": format!("no address {SECRET}") }),
    ];
    for body in refused {
        let refused = service.admin(put("new", &body)).await;
        assert_eq!(refused.status, 400, "{}", refused.text());
        answers.push(refused);
    }
    for path in ["/v0/channels", "/v0/audit", "/v0/deliveries"] {
        answers.push(service.get(path).await);
    }
    answers.push(service.admin(delete("mail")).await);
    for answer in answers {
        assert!(!answer.text().contains(SECRET), "{}", answer.text());
    }
}

#[tokio::test]
async fn a_webhook_gets_a_key_once_and_another_address_needs_a_secret_again() {
    let service = Service::start().await;
    let one = webhook("https://one.example/x");
    let made = service.admin(put("hook", &one)).await.expect(200);
    let key = text(&made["new_key"]);
    assert!(key.starts_with("whsec_"), "{key}");
    let shown = service.get("/v0/channels/hook").await.expect(200);
    assert_eq!(
        (shown.get("new_key"), &shown["has_secret"]),
        (None, &json!(true))
    );
    let same = service.admin(put("hook", &one)).await.expect(200);
    assert_eq!(
        (same.get("new_key"), &same["has_secret"]),
        (None, &json!(true))
    );

    let mut other = webhook("https://other.example/x");
    let refused = service.admin(put("hook", &other)).await;
    let (field, message) = error(&refused);
    assert_eq!(field, "secret");
    assert!(message.contains("a signing key again"), "{message}");
    for malformed in ["hunter2", "whsec_hunter2"] {
        other["secret"] = json!(malformed);
        let (field, message) = error(&service.admin(put("hook", &other)).await);
        assert_eq!(field, "secret");
        let form = "must be a signing key, `whsec_` and base64";
        assert!(
            message.starts_with(form) && !message.contains("hunter2"),
            "{message}"
        );
    }
    other["secret"] = json!("whsec_YWJj");
    let set = service.admin(put("hook", &other)).await.expect(200);
    assert_eq!(set["target"]["url"], "https://other.example/x");
}

#[tokio::test]
async fn without_a_key_for_secrets_a_channel_that_has_none_is_accepted() {
    let service = Service::without_key().await;
    let mail = json!({
        "kind": "email", "host": "mail.example", "from": "a@example.org", "to": ["b@example.org"],
    });
    let ntfy = json!({ "kind": "ntfy", "server": "https://ntfy.example", "topic": "t" });
    for target in [command()["target"].take(), mail, ntfy.clone()] {
        let body = json!({ "target": target });
        let set = service.admin(put("open", &body)).await;
        assert_eq!(set.expect(200)["has_secret"], false);
    }
    for body in [
        webhook("https://hook.example/"),
        json!({ "target": { "kind": "slack" }, "secret": "https://hooks.example/x" }),
        json!({ "target": ntfy, "secret": SECRET }),
    ] {
        let refused = service.admin(put("sealed", &body)).await;
        let problem = refused.problem(409, "no_secret_key");
        assert!(text(&problem["hint"]).contains("everscand secret-key make"));
    }
}

#[tokio::test]
async fn an_edit_meets_its_condition() {
    let service = Service::start().await;
    let set = async |name: &str, value: &str| {
        let call = put("a", &command()).header(name, value);
        service.admin(call).await
    };
    let made = set("if-none-match", "*").await;
    made.expect(200);
    assert_eq!(made.header("etag"), Some("\"1\""));
    let exists = set("if-none-match", "*").await;
    let exists = exists.problem(412, "precondition_failed");
    assert_eq!(exists["detail"], "channel `a` exists already");
    assert!(text(&exists["hint"]).contains("--replace"), "{exists}");
    set("if-match", "\"1\"").await.expect(200);
    set("if-match", "\"1\"")
        .await
        .problem(412, "precondition_failed");
    let old = delete("a").header("if-match", "\"1\"");
    service.admin(old).await.problem(412, "precondition_failed");
    let new = delete("a").header("if-match", "\"2\"");
    assert_eq!(service.admin(new).await.status, 204);
    let none = service.get("/v0/channels/a").await;
    none.problem(404, "not_found");
}

#[tokio::test]
async fn an_owner_has_at_most_a_hundred_channels() {
    let service = Service::start().await;
    for number in 0..100 {
        let path = format!("c{number}?project=main");
        service.admin(put(&path, &command())).await.expect(200);
    }
    let (_, message) = error(&service.admin(put("one?project=main", &command())).await);
    assert!(message.contains("100 channels"), "{message}");
    service
        .admin(put("c0?project=main", &command()))
        .await
        .expect(200);
    service.admin(put("one", &command())).await.expect(200);
}

#[tokio::test]
async fn channels_of_another_project_and_of_the_instance_do_not_exist_for_a_token() {
    let service = Service::follow(&["main", "other"]).await;
    let mut of_instance = command();
    of_instance["offered_to"] = json!(["other"]);
    let set = service.admin(put("ops", &of_instance)).await.expect(200);
    assert_eq!(set["offered_to"], json!(["other"]));
    let refused = service.admin(put("a?project=main", &of_instance)).await;
    assert_eq!(error(&refused).0, "offered_to");
    for path in ["a?project=main", "b?project=other"] {
        service.admin(put(path, &command())).await.expect(200);
    }

    let token = service
        .limited([Scope::NotifyRead, Scope::NotifyWrite], &["main"])
        .await;
    let send = async |call: Call| call.bearer(&token).send(service.address).await;
    let page = send(Call::get("/v0/channels")).await.expect(200);
    let items = page["items"].as_array().unwrap();
    assert_eq!((items.len(), &items[0]["name"]), (1, &json!("a")));
    for (path, suffix) in [("ops", ""), ("b", "?project=other")] {
        let read = Call::get(format!("/v0/channels/{path}{suffix}"));
        assert_eq!(send(read).await.status, 404);
        let calls = [
            put(&format!("{path}{suffix}"), &command()),
            delete(&format!("{path}{suffix}")),
            Call::post(format!("/v0/channels/{path}/test{suffix}")),
            Call::post(format!("/v0/channels/{path}/retry{suffix}")),
        ];
        for call in calls {
            let refused = send(call).await;
            match suffix {
                "" => refused.problem(403, "forbidden"),
                _ => refused.problem(404, "project_not_found"),
            };
            // Errors do not say what there is.
            assert!(!refused.text().contains("offered"), "{}", refused.text());
        }
    }
    let other = json!({
        "target": { "kind": "command", "command": "page" }, "offered_to": ["other"],
    });
    let hidden = send(put("a?project=main", &other)).await;
    hidden.problem(404, "project_not_found");
    let own = send(put("c?project=main", &command())).await;
    own.expect(200);

    let reader = service.limited([Scope::NotifyRead], &["main"]).await;
    let read = Call::get("/v0/channels/a?project=main").bearer(&reader);
    read.send(service.address).await.expect(200);
    let write = put("a?project=main", &command()).bearer(&reader);
    write.send(service.address).await.problem(403, "forbidden");
}

#[tokio::test]
async fn bad_addresses_are_refused() {
    let service = Service::start().await;
    let ntfy =
        |server: &str, topic: &str| json!({ "kind": "ntfy", "server": server, "topic": topic });
    let mail = |from: &str, to: &[&str]| json!({ "kind": "email", "host": "mail.example", "from": from, "to": to });
    for (target, field) in [
        (
            webhook("https://user:word@host.example/")["target"].take(),
            "url",
        ),
        (webhook("https://host.example/\nx")["target"].take(), "url"),
        (webhook("https:///x")["target"].take(), "url"),
        (webhook("ftp://host.example/")["target"].take(), "url"),
        (webhook("https://h:99999/")["target"].take(), "url"),
        (
            json!({ "kind": "command", "command": "unknown" }),
            "command",
        ),
        (ntfy("https://", "topic"), "server"),
        (ntfy("https://ntfy.example", "a/b"), "topic"),
        (mail("nobody", &["b@example.org"]), "from"),
        (
            mail("a@example.org", &["b@example.org\r\nBcc: c@example.org"]),
            "to",
        ),
        (mail("a@example.org", &[]), "to"),
        (mail("a@example.org", &["b@example.org"; 21]), "to"),
    ] {
        let body = json!({ "target": target });
        let refused = service.admin(put("a", &body)).await;
        assert_eq!(error(&refused).0, field, "{body}");
    }
    let twenty = json!({ "target": mail("a@example.org", &["b@example.org"; 20]) });
    service.admin(put("a", &twenty)).await.expect(200);
    let nameless = service.admin(put("a%20b", &command())).await;
    assert_eq!(error(&nameless).0, "channel");
}

#[tokio::test]
async fn a_test_waits_for_its_result() {
    let (address, mut requests) = sink(&[204, 403]).await;
    let front = Front {
        delivery: allowing(),
        ..Front::default()
    };
    let service = Service::fronted(front).await;
    let hook = webhook(&format!("http://{address}/x"));
    service.admin(put("hook", &hook)).await.expect(200);
    let test = || service.admin(Call::post("/v0/channels/hook/test"));
    let delivered = json!({ "result": "delivered", "reply": "204" });
    assert_eq!(test().await.expect(200), delivered);
    let request = requests.recv().await.unwrap();
    assert!(request.contains("webhook-signature: v1,"), "{request}");
    let refused = test().await.expect(200);
    assert_eq!(refused["result"], "failed");
    assert!(text(&refused["reply"]).starts_with("403"), "{refused}");

    // Without an entry in the configuration, nothing is sent to this machine.
    let service = Service::start().await;
    service.admin(put("hook", &hook)).await.expect(200);
    let test = Call::post("/v0/channels/hook/test");
    let refused = service.admin(test).await.expect(200);
    assert_eq!(refused["result"], "failed");
    for part in ["outbound.allow", "the daemon's configuration", "127.0.0.1"] {
        assert!(text(&refused["reply"]).contains(part), "{refused}");
    }
}

#[tokio::test]
async fn messages_are_sent_again_on_request_and_the_log_has_each_attempt() {
    let (address, mut requests) = sink(&[403, 503, 204]).await;
    let service = Service::follow(&["main", "other"]).await;
    let hook = webhook(&format!("http://{address}/x"));
    service
        .admin(put("hook?project=main", &hook))
        .await
        .expect(200);
    tokio::spawn(send_all(service.handle.clone(), allowing()));
    let browser = Browser::admin(&service).await;
    let live = browser.call(Method::GET, "/live");
    let mut live = live.open(service.address).await;
    live.until(": alive").await;
    let retry = async |body: &Value| {
        let call = Call::post("/v0/channels/hook/retry?project=main").json(body);
        service.admin(call).await
    };
    let (field, message) = error(&retry(&json!({})).await);
    assert_eq!(field, "channel");
    assert!(message.contains("nothing that waits"), "{message}");
    let nosuch = Call::post("/v0/channels/nosuch/retry?project=main");
    let nosuch = service.admin(nosuch).await;
    let nosuch = nosuch.problem(404, "not_found");
    assert!(text(&nosuch["detail"]).contains("nosuch"), "{nosuch}");

    let (_, worker) = service.claimed("one").await;
    let end = json!({
        "steps": [], "log_records": 0, "failure": { "code": "env_failed", "message": "no value" },
    });
    let complete = worker
        .call(Method::POST, &worker.path("complete"))
        .json(&end);
    complete.send(service.address).await.expect(200);
    let [failed] = &attempts(&service, "", 1).await[..] else {
        panic!("one attempt");
    };
    live.until("\"delivery\"").await;
    let metrics = Call::get("/metrics").send(service.address).await;
    let failing = "everscan_channels_failing 1\n";
    assert!(metrics.text().contains(failing), "{}", metrics.text());
    assert_eq!(
        (&failed["result"], &failed["attempt"], &failed["jobs"]),
        (&json!("failed"), &json!(1), &json!([worker.id]))
    );

    // A failed message is sent again by its channel alone, with its id, and waits after an error of the receiver.
    let unknown = json!({ "message": "11111111-1111-4111-8111-111111111111" });
    retry(&unknown).await.problem(404, "not_found");
    let message = json!({ "message": failed["message"] });
    service
        .admin(put("else?project=main", &hook))
        .await
        .expect(200);
    let stranger = Call::post("/v0/channels/else/retry?project=main").json(&message);
    service.admin(stranger).await.problem(404, "not_found");
    assert_eq!(retry(&message).await.status, 204);
    let waiting = attempts(&service, "", 2).await.remove(0);
    assert_eq!(waiting["result"], "retry");
    assert!(waiting["retry_at"].is_string(), "{waiting}");
    assert_eq!(
        (&waiting["message"], &waiting["repeated"]),
        (&failed["message"], &json!(true))
    );
    let channel = service
        .get("/v0/channels/hook?project=main")
        .await
        .expect(200);
    let shown = json!({ "events": 1, "until": waiting["retry_at"], "reason": "retry" });
    assert_eq!(
        (&channel["waiting"], channel.get("sent_at")),
        (&shown, None)
    );
    assert_eq!(error(&retry(&message).await).0, "message");
    assert_eq!(retry(&json!({})).await.status, 204);
    let delivered = attempts(&service, "", 3).await.remove(0);
    assert_eq!(
        (
            &delivered["result"],
            &delivered["attempt"],
            &delivered["message"]
        ),
        (&json!("delivered"), &json!(3), &waiting["message"])
    );
    for _ in 0..3 {
        assert!(requests.recv().await.unwrap().contains("POST /x"));
    }

    let (_, problem) = error(&retry(&message).await);
    assert!(problem.starts_with("has arrived"), "{problem}");
    let channel = service
        .get("/v0/channels/hook?project=main")
        .await
        .expect(200);
    assert_eq!(
        (channel.get("waiting"), channel["sent_at"].is_string()),
        (None, true)
    );

    // The log is read by project, channel and job, and in pages.
    for (query, count) in [
        ("?project=main", 3),
        ("?project=other", 0),
        ("?channel=hook", 3),
        ("?channel=else", 0),
        (&format!("?job={}", worker.id), 3),
        ("?job=01a1f8d3-ea00-7063-9a79-31145c52c3ed", 0),
    ] {
        let page = service.get(&format!("/v0/deliveries{query}")).await;
        let items = page.expect(200)["items"].as_array().unwrap().len();
        assert_eq!(items, count, "{query}");
    }
    let first = service.get("/v0/deliveries?limit=2").await.expect(200);
    assert_eq!(first["items"][0], delivered);
    let rest = format!("/v0/deliveries?cursor={}", text(&first["next_cursor"]));
    let rest = service.get(&rest).await.expect(200);
    assert_eq!(rest["items"], json!([failed]));

    let token = service.limited([Scope::NotifyRead], &["other"]).await;
    let hidden = Call::get("/v0/deliveries").bearer(&token);
    let hidden = hidden.send(service.address).await.expect(200);
    assert_eq!(hidden["items"], json!([]));
}
