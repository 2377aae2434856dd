//! Who calls and from where: rate limits, and the audit log.

use std::num::NonZeroU32;
use std::time::Duration;

use api::{Front, Rate};
use http::Method;
use model::Scope;
use serde_json::{Value, json};

use crate::client::{Answer, Call};
use crate::service::{Service, text};

const NEAR: &str = "203.0.113.9";
const FAR: &str = "198.51.100.7";

/// A service behind a proxy on this machine, so that a test can call from any address.
async fn behind_proxy(requests: Option<Rate>) -> Service {
    let front = Front {
        trusted_proxies: vec!["127.0.0.1".parse().unwrap()],
        requests,
        ..Front::default()
    };
    Service::fronted(front).await
}

async fn ask(service: &Service, token: &str, from: Option<&str>) -> Answer {
    let mut call = Call::get("/v0/projects").bearer(token);
    if let Some(address) = from {
        call = call.header("x-forwarded-for", address);
    }
    call.send(service.address).await
}

#[tokio::test]
async fn refused_credentials_are_slowed_down_by_address() {
    let service = behind_proxy(None).await;
    let mut refused = 0;
    let slowed = loop {
        let answer = ask(&service, "evs_wrong", Some(NEAR)).await;
        if answer.status != 401 {
            break answer;
        }
        refused += 1;
    };
    assert!(refused >= 100, "{refused}");
    slowed.problem(429, "rate_limited");
    assert_eq!(slowed.header("retry-after"), Some("1"));
    assert_eq!(ask(&service, "evs_wrong", Some(FAR)).await.status, 401);
    // A valid token is not slowed down by invalid tokens from the same network.
    assert_eq!(ask(&service, &service.admin, Some(NEAR)).await.status, 200);
    for _ in 0..200 {
        assert_eq!(ask(&service, "evs_wrong", None).await.status, 401);
    }
}

#[tokio::test]
async fn a_user_has_a_rate_for_calls_from_other_machines() {
    let slow = Rate {
        per_second: NonZeroU32::MIN,
        burst: NonZeroU32::new(60).unwrap(),
    };
    let service = behind_proxy(Some(slow)).await;
    let slowed = loop {
        let answer = ask(&service, &service.admin, Some(NEAR)).await;
        if answer.status != 200 {
            break answer;
        }
    };
    slowed.problem(429, "rate_limited");
    // The rate belongs to the user, not to the address or the token.
    let same = service.personal([Scope::ProjectRead], None).await;
    let other = service.robot("other", &[]).await;
    let other = service.token_of(other, [Scope::ProjectRead], None).await;
    assert_eq!(ask(&service, &same, Some(NEAR)).await.status, 429);
    assert_eq!(ask(&service, &other, Some(NEAR)).await.status, 200);
    for _ in 0..100 {
        assert_eq!(ask(&service, &service.admin, None).await.status, 200);
    }
}

/// The audit log as `METHOD PATH by NAME: KINDS`, newest first.
async fn audited(service: &Service, query: &str) -> Vec<String> {
    let answer = service.get(&format!("/v0/audit{query}")).await.expect(200);
    let items = answer["items"].as_array().unwrap().iter();
    let line = |item: &Value| {
        let (method, path) = (text(&item["method"]), text(&item["path"]));
        let actions = item["actions"].as_array().unwrap().iter();
        let kinds: Vec<String> = actions.map(|action| text(&action["kind"])).collect();
        let name = text(&item["token"]["name"]);
        format!("{method} {path} by {name}: {}", kinds.join(" "))
    };
    items.map(line).collect()
}

#[tokio::test]
async fn every_change_by_a_person_is_in_the_audit_log_once() {
    let service = behind_proxy(None).await;
    let value = json!({"value": "x"});
    let set = Call::new(Method::PUT, "/v0/projects/main/vars/URL").json(&value);
    let set = set.bearer(&service.admin).header("x-forwarded-for", NEAR);
    let answer = set.send(service.address).await;
    let request = answer.header("x-request-id").map(str::to_owned);
    answer.expect(200);
    let job = service.dispatch("large").await;
    service.get("/v0/jobs").await.expect(200);
    // Refused requests change nothing, so they are not in the log.
    service
        .post("/v0/jobs/x/cancel", &json!({}))
        .await
        .problem(404, "not_found");
    let ci = json!({"name": "ci", "scopes": ["job:write"]});
    let created = service.post("/v0/tokens", &ci).await.expect(201);
    let cancel = Call::post(format!("/v0/jobs/{job}/cancel")).bearer(&text(&created["secret"]));
    cancel
        .json(&json!({}))
        .send(service.address)
        .await
        .expect(200);
    service.post("/v0/sources/main/sync", &json!({})).await;

    let all = [
        "POST /v0/sources/main/sync by tester: source_synced".to_owned(),
        format!("POST /v0/jobs/{job}/cancel by ci: job_cancelled"),
        "POST /v0/tokens by tester: token_created".to_owned(),
        "POST /v0/workflows/main%2Fpipeline/scans/large/dispatch by tester: job_dispatched"
            .to_owned(),
        "PUT /v0/projects/main/vars/URL by tester: var_set".to_owned(),
    ];
    assert_eq!(audited(&service, "").await, all);
    let ci = text(&created["id"]);
    for query in [
        "?actor=ci".to_owned(),
        format!("?actor={ci}"),
        "?kind=job_cancelled".to_owned(),
        "?kind=job_cancelled&actor=ci".to_owned(),
    ] {
        assert_eq!(audited(&service, &query).await, all[1..2], "{query}");
    }
    assert!(audited(&service, "?kind=var_set&actor=ci").await.is_empty());
    let problem = service.get("/v0/audit?kind=x").await;
    let problem = problem.problem(400, "invalid_request");
    let message = text(&problem["errors"][0]["message"]);
    assert!(message.contains("var_set, var_deleted"), "{message}");
    let page = service.get("/v0/audit?limit=4").await.expect(200);
    let cursor = text(&page["next_cursor"]);
    let rest = service
        .get(&format!("/v0/audit?cursor={cursor}"))
        .await
        .expect(200);
    let [first] = rest["items"].as_array().unwrap().as_slice() else {
        panic!("{rest}")
    };
    assert_eq!(first["address"], json!(NEAR));
    let set = json!({"kind": "var_set", "project": "main", "name": "URL", "version": 1});
    assert_eq!(first["actions"], json!([set]));
    assert_eq!(first["request_id"], json!(request.unwrap()));
    assert_eq!(first["at"], json!("2026-11-20T12:00:00Z"));
    assert!(
        audited(&service, "?since=2026-11-21T00:00:00Z")
            .await
            .is_empty()
    );
    assert!(
        audited(&service, "?until=2026-11-19T00:00:00Z")
            .await
            .is_empty()
    );
    service
        .get("/v0/audit?cursor=x")
        .await
        .problem(400, "invalid_request");
}

#[tokio::test]
async fn refused_sign_ins_are_one_line_for_each_address_and_user_who_was_tried() {
    let service = behind_proxy(None).await;
    for from in [NEAR, NEAR, FAR] {
        let wrong = Call::post("/v0/sessions").json(&json!({"token": "evs_wrong"}));
        let wrong = wrong
            .header("x-forwarded-for", from)
            .header("x-forwarded-proto", "https");
        wrong
            .send(service.address)
            .await
            .problem(401, "unauthorized");
    }
    // A name that does not exist may be a password in the wrong field.
    for (from, user) in [(FAR, "owner"), (NEAR, "correct.horse")] {
        let wrong = json!({"user": user, "password": "a wrong one, but long"});
        let wrong = Call::post("/v0/sessions").json(&wrong);
        let wrong = wrong
            .header("x-forwarded-for", from)
            .header("x-forwarded-proto", "https");
        wrong
            .send(service.address)
            .await
            .problem(401, "unauthorized");
    }
    ask(&service, "evs_wrong", Some(NEAR))
        .await
        .problem(401, "unauthorized");
    // A request without a credential is not a sign-in.
    let stranger = Call::get("/v0/projects").header("x-forwarded-for", NEAR);
    stranger
        .send(service.address)
        .await
        .problem(401, "unauthorized");
    assert!(
        audited(&service, "").await.is_empty(),
        "the line is written after the minute"
    );

    tokio::time::pause();
    tokio::time::advance(Duration::from_secs(61)).await;
    tokio::time::resume();
    let lines = loop {
        let lines = service.get("/v0/audit?kind=sign_in_refused").await;
        let lines = lines.expect(200)["items"].as_array().unwrap().clone();
        if !lines.is_empty() {
            break lines;
        }
    };
    let lines = lines.iter();
    let said: Vec<Value> = lines
        .map(|line| {
            json!([
                line["address"],
                line["actions"][0]["count"],
                line["actions"][0]["name"],
                line["path"],
                line["token"]
            ])
        })
        .collect();
    assert_eq!(
        said,
        [
            json!([NEAR, 4, null, "/v0/projects", null]),
            json!([FAR, 1, "owner", "/v0/sessions", null]),
            json!([FAR, 1, null, "/v0/sessions", null]),
        ]
    );
}
