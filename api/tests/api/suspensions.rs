//! Suspending and resuming workflows and scans.

use http::Method;
use model::Scope;
use serde_json::{Value, json};

use crate::browser::Browser;
use crate::client::{Answer, Call};
use crate::service::{PLAIN, Service, text};

const PIPELINE: &str = "/v0/workflows/main%2Fpipeline";

async fn suspend(service: &Service, path: &str) -> Answer {
    let body = json!({"reason": "the machine is serviced"});
    service.post(&format!("{path}/suspend"), &body).await
}

async fn shown(service: &Service, path: &str, member: &str) -> Value {
    service.get(path).await.expect(200)[member].clone()
}

#[tokio::test]
async fn a_suspended_scan_refuses_a_dispatch_and_is_shown_as_suspended() {
    let service = Service::start().await;
    let large = format!("{PIPELINE}/scans/large");
    let waiting = service.dispatch("large").await;
    let answer = suspend(&service, &large).await.expect(200);
    assert_eq!(answer["suspended"]["part"], "scan");
    assert_eq!(answer["suspended"]["by"], "token tester");
    assert_eq!(answer["suspended"]["reason"], "the machine is serviced");
    for path in [large.clone(), format!("{large}/why")] {
        let suspended = shown(&service, &path, "suspended").await;
        assert_eq!(suspended, answer["suspended"], "{path}");
    }
    assert_eq!(
        shown(&service, PIPELINE, "suspended_scans").await,
        json!(["large"])
    );
    assert_eq!(shown(&service, PIPELINE, "suspended").await, Value::Null);
    let refused = service.post(&format!("{large}/dispatch"), &json!({})).await;
    let problem = refused.problem(409, "suspended");
    assert_eq!(
        problem["hint"],
        "`everscan scan resume pipeline large` lets it start jobs again"
    );
    let waits = shown(&service, &format!("/v0/jobs/{waiting}"), "waiting").await;
    assert_eq!(waits["code"], "suspended");
    let message = text(&waits["message"]);
    assert!(
        message.starts_with("suspended since 2026-11-20T12:00:00Z by token tester"),
        "{message}"
    );

    let path = format!("{large}/resume");
    let answer = service.post(&path, &json!({"reason": "it is back"})).await;
    let answer = answer.expect(200);
    assert_eq!(answer["suspended"], Value::Null);
    assert_eq!(answer["resumed"]["reason"], "it is back");
    assert_eq!(shown(&service, &large, "resumed").await, answer["resumed"]);
    let waits = shown(&service, &format!("/v0/jobs/{waiting}"), "waiting").await;
    assert_eq!(waits["code"], "no_runner");
    let over = service.dispatch("large").await;
    let cancel = Call::post(format!("/v0/jobs/{over}/cancel"));
    service.admin(cancel).await.expect(200);
    suspend(&service, &large).await.expect(200);
    for current in [false, true] {
        let path = format!("/v0/jobs/{over}/rerun");
        let refused = service.post(&path, &json!({ "current": current })).await;
        refused.problem(409, "suspended");
    }
}

#[tokio::test]
async fn a_suspended_workflow_suspends_all_its_scans_even_after_a_new_revision() {
    let service = Service::start().await;
    let build = format!("{PIPELINE}/scans/build");
    suspend(&service, PIPELINE).await.expect(200);
    let again = json!({"reason": "another one"});
    let answer = service.post(&format!("{PIPELINE}/suspend"), &again).await;
    let kept = answer.expect(200)["suspended"]["reason"].clone();
    assert_eq!(
        kept, "the machine is serviced",
        "the first suspension stays in force"
    );
    let other = "scans: { build: { on: { dispatch: {} }, steps: [ { run: make } ] } }\n";
    service.push(&[("workflows/pipeline.yaml", other)]).await;
    let suspended = shown(&service, &build, "suspended").await;
    assert_eq!(suspended["part"], "workflow");
    let refused = service.post(&format!("{build}/dispatch"), &json!({})).await;
    let problem = refused.problem(409, "suspended");
    assert_eq!(
        problem["hint"],
        "`everscan workflow resume pipeline` lets it start jobs again"
    );
    // A resumed scan still waits for its suspended workflow.
    let resume = Call::post(format!("{build}/resume"));
    let answer = service.admin(resume).await.expect(200);
    assert_eq!(answer["suspended"]["part"], "workflow");
    // A retired workflow that comes back is still suspended.
    service.push(&[("workflows/deep/plain.yaml", PLAIN)]).await;
    service.push(&[("workflows/pipeline.yaml", other)]).await;
    let refused = service.post(&format!("{build}/dispatch"), &json!({})).await;
    refused.problem(409, "suspended");
    let resume = Call::post(format!("{PIPELINE}/resume"));
    service.admin(resume).await.expect(200);
    let made = service.post(&format!("{build}/dispatch"), &json!({})).await;
    made.expect(202);
}

#[tokio::test]
async fn a_held_job_is_not_offered_and_an_open_offer_becomes_void() {
    let service = Service::start().await;
    let plain = "/v0/workflows/main%2Fdeep%2Fplain";
    let runner = service.register("one", &[], 1).await;
    let dispatch = format!("{plain}/scans/only/dispatch");
    let job = text(&service.post(&dispatch, &json!({})).await.expect(202)["job"]["id"]);
    let answer = runner.poll(1, &[]).send(service.address).await;
    let worker = crate::service::offered(&answer.expect(200)[0]);
    suspend(&service, plain).await.expect(200);
    let resolve = worker.call(Method::POST, &worker.path("resolve"));
    let refused = resolve.send(service.address).await;
    assert!(
        matches!(refused.status, 401 | 409),
        "{refused:?}: as any offer that has lapsed"
    );
    assert_eq!(
        shown(&service, &format!("/v0/jobs/{job}"), "state").await,
        "scheduled"
    );
    let resume = Call::post(format!("{plain}/resume"));
    service.admin(resume).await.expect(200);
    let claimed = service.claim(&runner, &[]).await;
    assert_eq!(claimed.id, job);
}

#[tokio::test]
async fn suspending_needs_the_scope_of_workflows_and_the_reason_is_limited() {
    let service = Service::start().await;
    let token = service
        .personal([Scope::WorkflowRead, Scope::Dispatch], None)
        .await;
    for action in ["suspend", "resume"] {
        let call = Call::post(format!("{PIPELINE}/{action}")).bearer(&token);
        let call = call.json(&json!({"reason": "x"}));
        call.send(service.address).await.problem(403, "forbidden");
    }
    for reason in [String::new(), " ".to_owned(), "x".repeat(501)] {
        let body = json!({ "reason": reason });
        let refused = service.post(&format!("{PIPELINE}/suspend"), &body).await;
        let problem = refused.problem(400, "invalid_request");
        assert_eq!(problem["errors"][0]["field"], "reason");
    }
    let missing = suspend(&service, &format!("{PIPELINE}/scans/larg")).await;
    missing.problem(404, "not_found");
    let missing = suspend(&service, "/v0/workflows/none").await;
    missing.problem(404, "workflow_not_found");
}

#[tokio::test]
async fn pages_suspend_and_resume_and_show_the_suspension() {
    let service = Service::start().await;
    let browser = Browser::admin(&service).await;
    let page = "/workflows/main/pipeline";
    let below = format!("{page}/-");
    let scan = format!("{below}/scans/large");
    for (page, part) in [(page, &below), (&scan, &scan)] {
        let form = [("reason", "<too loud>")];
        let to = browser.done(&format!("{part}/suspend"), &form).await;
        assert_eq!(to, page);
        let shown = browser.page(page).await;
        assert!(shown.contains("&lt;too loud&gt;"), "{shown}");
        assert!(
            shown.contains(&format!("action=\"{part}/resume\"")),
            "{shown}"
        );
        let form = [("reason", "")];
        let to = browser.done(&format!("{part}/resume"), &form).await;
        assert_eq!(to, page);
        let shown = browser.page(page).await;
        assert!(!shown.contains("too loud"), "{shown}");
        assert!(shown.contains("Resumed"), "{shown}");
    }
    for (part, suspended) in [
        ("", "The workflow was suspended by token"),
        ("/scans/large", "<b>large</b> was suspended by token"),
    ] {
        let path = format!("{below}{part}");
        let form = [("reason", "again")];
        browser.done(&format!("{path}/suspend"), &form).await;
        let shown = browser.page(page).await;
        assert!(shown.contains(suspended), "{shown}");
        assert!(shown.contains("class=\"node never suspended\""), "{shown}");
        browser.done(&format!("{path}/resume"), &form).await;
        let resumed = suspended.replace("suspended", "resumed");
        let shown = browser.page(page).await;
        assert!(shown.contains(&resumed), "{shown}");
        assert!(!shown.contains("node never suspended"), "{shown}");
    }
}
