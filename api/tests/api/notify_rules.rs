//! Rules of notifications: who may see and change them, and what is refused.

use http::Method;
use model::Scope;
use serde_json::{Value, json};

use crate::client::{Answer, Call};
use crate::service::Service;

fn put(path: &str, body: &Value) -> Call {
    Call::new(Method::PUT, format!("/v0/rules/{path}")).json(body)
}

async fn names(service: &Service, token: &str, query: &str) -> Vec<(Value, Value)> {
    let call = Call::get(format!("/v0/rules{query}")).bearer(token);
    let page = call.send(service.address).await.expect(200);
    let rule = |rule: &Value| (rule["project"].clone(), rule["name"].clone());
    page["items"].as_array().unwrap().iter().map(rule).collect()
}

#[tokio::test]
async fn a_rule_is_set_shown_and_deleted() {
    let service = Service::start().await;
    service.team("?project=main").await;
    let definition = json!({
        "channel": "team", "events": ["failing", "artifact"], "workflows": ["nightly/*"], "after": 3, "group": "0s",
        "quiet": { "from": "22:00", "to": "07:00" }, "template": "${{ event.title }}",
    });
    let set = service
        .admin(put("nightly?project=main", &definition))
        .await
        .expect(200);
    let mut shown = definition.clone();
    shown["quiet"]["timezone"] = json!("UTC");
    shown["content"] = json!("lines");
    let expected = json!({
        "name": "nightly", "project": "main", "origin": "api", "definition": shown,
    });
    assert_eq!(set, expected);
    let listed = service.get("/v0/rules?project=main").await.expect(200);
    assert_eq!(listed["items"], json!([expected]));
    let again = service
        .admin(put("nightly?project=main", &shown))
        .await
        .expect(200);
    assert_eq!(again, expected);
    let delete = || Call::new(Method::DELETE, "/v0/rules/nightly?project=main");
    assert_eq!(service.admin(delete()).await.status, 204);
    service.admin(delete()).await.problem(404, "not_found");
}

#[tokio::test]
async fn a_wrong_rule_is_refused_as_in_a_file() {
    let service = Service::start().await;
    let message = |answer: &Answer| {
        let problem = answer.problem(400, "invalid_request");
        (
            problem["errors"][0]["message"].clone(),
            problem["hint"].clone(),
        )
    };
    let wrong = json!({ "channel": "team", "events": ["fail"] });
    let answer = service.admin(put("a?project=main", &wrong)).await;
    assert_eq!(
        message(&answer),
        (
            json!("there is no such event"),
            json!("did you mean `failing`?")
        )
    );
    let disk = json!({ "channel": "team", "events": ["disk_low"] });
    let answer = service.admin(put("a?project=main", &disk)).await;
    let (text, _) = message(&answer);
    assert_eq!(text, "rules about `disk_low` belong to the instance");
    for (path, body) in [
        ("a%20b?project=main", json!({ "channel": "team" })),
        ("a?project=main", json!({ "channel": "" })),
        (
            "a?project=main",
            json!({ "channel": "team", "chanel": "x" }),
        ),
        (
            "a?project=main",
            json!({ "channel": "team", "template": "${{ secrets.KEY }}" }),
        ),
    ] {
        service
            .admin(put(path, &body))
            .await
            .problem(400, "invalid_request");
    }
    let none = service
        .admin(put("a?project=nothing", &json!({ "channel": "team" })))
        .await;
    none.problem(404, "project_not_found");
}

#[tokio::test]
async fn a_rule_for_a_channel_that_does_not_exist_is_refused_with_those_that_do() {
    let service = Service::follow(&["main", "other"]).await;
    let refused = async |path: &str| {
        let answer = service
            .admin(put(path, &json!({ "channel": "taem" })))
            .await;
        let problem = answer.problem(400, "invalid_request");
        assert_eq!(
            problem["errors"][0],
            json!({ "field": "channel", "message": "there is no channel `taem`" })
        );
        problem["hint"].clone()
    };
    service.team("?project=main").await;
    assert_eq!(refused("a?project=main").await, "the channels are: team");
    let hint = "`everscan notify channel add` adds one";
    assert_eq!(refused("a?project=other").await, hint);
    assert_eq!(refused("a").await, hint);
    assert_eq!(names(&service, &service.admin, "").await, []);
}

#[tokio::test]
async fn a_token_changes_the_rules_of_its_projects_and_an_administrator_those_of_the_instance() {
    let service = Service::follow(&["main", "other"]).await;
    for owner in ["?project=main", "?project=other", ""] {
        service.team(owner).await;
    }
    let rule = json!({ "channel": "team" });
    for path in ["a?project=main", "b?project=other"] {
        service.admin(put(path, &rule)).await.expect(200);
    }
    let disk = json!({ "channel": "team", "events": ["disk_low"] });
    service.admin(put("c", &disk)).await.expect(200);
    let all = json!([[null, "c"], ["main", "a"], ["other", "b"]]);
    assert_eq!(json!(names(&service, &service.admin, "").await), all);

    let token = service
        .limited([Scope::NotifyRead, Scope::NotifyWrite], &["main"])
        .await;
    assert_eq!(
        json!(names(&service, &token, "").await),
        json!([["main", "a"]])
    );
    let send = |call: Call| call.bearer(&token).send(service.address);
    send(put("d?project=main", &rule)).await.expect(200);
    send(put("d?project=other", &rule))
        .await
        .problem(404, "project_not_found");
    send(put("d", &disk)).await.problem(403, "forbidden");
    let delete = |path: &str| Call::new(Method::DELETE, format!("/v0/rules/{path}"));
    send(delete("c")).await.problem(403, "forbidden");
    send(delete("b?project=other"))
        .await
        .problem(404, "project_not_found");

    let reader = service.limited([Scope::NotifyRead], &["main"]).await;
    let refused = put("d?project=main", &rule)
        .bearer(&reader)
        .send(service.address)
        .await;
    refused.problem(403, "forbidden");
    let blind = service.limited([Scope::ProjectRead], &["main"]).await;
    let refused = Call::get("/v0/rules")
        .bearer(&blind)
        .send(service.address)
        .await;
    refused.problem(403, "forbidden");
}

#[tokio::test]
async fn a_preview_shows_what_rules_would_have_sent() {
    let service = Service::follow(&["main", "other"]).await;
    service.condition("invalid_file").await;
    let preview = async |query: &str, body: &Value| {
        let call = Call::post(format!("/v0/rule-previews{query}"));
        let call = match body {
            Value::Null => call,
            body => call.json(body),
        };
        let page = service.admin(call).await.expect(200);
        page["items"].as_array().unwrap().clone()
    };
    let rule = json!({ "channel": "team", "events": ["invalid_file"] });
    let shown = preview("?project=main", &rule).await;
    assert_eq!(
        (
            &shown[0]["event"],
            &shown[0]["is_over"],
            &shown[0]["channel"]
        ),
        (&json!("invalid_file"), &json!(false), &json!("team"))
    );
    let of_other = preview("?project=other", &rule).await;
    assert!(of_other.iter().all(|it| it["about"] != shown[0]["about"]));
    let other = json!({ "channel": "team", "events": ["slot_missed"] });
    assert!(preview("?project=main", &other).await.is_empty());
    service.team("?project=main").await;
    let in_force = async || {
        let shown = preview("?project=main", &Value::Null).await.into_iter();
        let broken = shown.filter(|it| it["event"] == "invalid_file");
        let channel = |it: Value| (it["rule"].clone(), it["channel"].clone());
        broken.map(channel).collect::<Vec<_>>()
    };
    let usual = (Value::Null, json!("team"));
    assert_eq!(in_force().await, [usual], "a channel without rules");
    for name in ["a", "b"] {
        let path = format!("{name}?project=main");
        service.admin(put(&path, &rule)).await.expect(200);
    }
    let by_rule = (json!("a"), json!("team"));
    assert_eq!(in_force().await, [by_rule], "once for the channel");
    let delete = Call::new(Method::DELETE, "/v0/channels/team?project=main");
    assert_eq!(service.admin(delete).await.status, 204);
    assert_eq!(in_force().await, [], "rules without a channel");
}
