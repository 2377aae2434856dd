//! Running finished jobs again.

use chrono::TimeDelta;
use http::Method;
use model::Scope;
use serde_json::json;

use crate::browser::Browser;
use crate::client::{Answer, Call};
use crate::service::{PLAIN, Service, text};

/// A dispatched job that was cancelled, so that it has ended.
async fn over(service: &Service, scan: &str, body: &serde_json::Value) -> String {
    let path = format!("/v0/workflows/main%2Fpipeline/scans/{scan}/dispatch");
    let made = service.post(&path, body).await.expect(202);
    let job = text(&made["job"]["id"]);
    let cancel = Call::post(format!("/v0/jobs/{job}/cancel"));
    service.admin(cancel).await.expect(200);
    job
}

async fn rerun(service: &Service, job: &str, body: &serde_json::Value) -> Answer {
    service.post(&format!("/v0/jobs/{job}/rerun"), body).await
}

#[tokio::test]
async fn a_rerun_has_the_inputs_and_the_revision_of_the_job_or_the_active_one() {
    let service = Service::start().await;
    let inputs = json!({"target": "all", "fast": true});
    let job = over(&service, "build", &json!({ "inputs": inputs })).await;
    let before = service.get(&format!("/v0/jobs/{job}")).await.expect(200);

    let other = "
scans:
  build:
    on: { dispatch: { inputs: { target: { required: true } } } }
    steps: [ { run: make } ]
";
    service.push(&[("workflows/pipeline.yaml", other)]).await;
    let call = Call::post(format!("/v0/jobs/{job}/rerun"));
    let made = service.admin(call).await.expect(202)["job"].clone();
    assert_eq!(made["rerun_of"], json!(job));
    assert_eq!(made["inputs"], inputs);
    assert_eq!(made["revision"], before["revision"]);
    assert_eq!(made["trigger"], "dispatch");
    assert_eq!(made["reason"]["code"], "rerun");
    assert_eq!(made["reason"]["actor"], "token tester");

    // The active revision has no such input.
    let current = json!({"current": true});
    let refused = rerun(&service, &job, &current).await;
    let problem = refused.problem(422, "invalid_inputs");
    assert_eq!(problem["errors"][0]["field"], "inputs.fast", "{problem}");
    let other = format!("{other}# changed\n")
        .replace("required: true }", "required: true }, fast: { type: bool }");
    service.push(&[("workflows/pipeline.yaml", &other)]).await;
    let made = rerun(&service, &job, &current).await.expect(202)["job"].clone();
    assert_eq!(made["revision"]["number"], 3);
    assert_eq!(made["inputs"], inputs);
    assert_eq!(made["rerun_of"], json!(job));
}

/// The inputs of the job may be what the token must not read.
#[tokio::test]
async fn a_token_without_job_read_learns_only_the_id_and_the_state_of_a_job() {
    let service = Service::start().await;
    let starter = service.personal([Scope::Dispatch], None).await;
    let writer = service.personal([Scope::JobWrite], None).await;
    let post = async |path: String, token: &str, body: serde_json::Value| {
        let call = Call::post(path).bearer(token).json(&body);
        call.send(service.address).await
    };
    let short = |job: &serde_json::Value, state: &str| {
        let id = text(&job["id"]);
        assert_eq!(*job, json!({"id": id, "state": state}));
        id
    };
    let path = "/v0/workflows/main%2Fpipeline/scans/build/dispatch".to_owned();
    let inputs = json!({"inputs": {"target": "all"}});
    let made = post(path, &starter, inputs).await.expect(202);
    let job = short(&made["job"], "scheduled");
    let cancel = format!("/v0/jobs/{job}/cancel");
    let cancelled = post(cancel.clone(), &writer, json!({})).await.expect(200);
    assert_eq!(short(&cancelled, "cancelled"), job);
    let again = post(cancel, &writer, json!({})).await.expect(200);
    assert_eq!(again, cancelled);
    let rerun = format!("/v0/jobs/{job}/rerun");
    let made = post(rerun.clone(), &starter, json!({})).await.expect(202);
    assert_ne!(short(&made["job"], "scheduled"), job);

    let flag = "
scans:
  build:
    on: { dispatch: { inputs: { target: { type: bool } } } }
    steps: [ { run: make } ]
";
    service.push(&[("workflows/pipeline.yaml", flag)]).await;
    let refused = post(rerun, &starter, json!({"current": true})).await;
    let problem = refused.problem(422, "invalid_inputs");
    assert!(problem.get("errors").is_none(), "{problem}");
}

#[tokio::test]
async fn a_rerun_has_all_of_its_large_inputs() {
    let service = Service::start().await;
    let target = "x".repeat(65_535);
    let inputs = json!({"target": target, "fast": false});
    let job = over(&service, "build", &json!({ "inputs": inputs })).await;
    let made = rerun(&service, &job, &json!({})).await.expect(202)["job"].clone();
    let call = Call::new(Method::DELETE, format!("/v0/jobs/{job}"));
    service.admin(call).await.expect(204);
    let path = format!("/v0/jobs/{}", text(&made["id"]));
    assert_eq!(service.get(&path).await.expect(200)["inputs"], inputs);
}

#[tokio::test]
async fn a_repeat_with_the_same_key_makes_no_second_job() {
    let service = Service::start().await;
    let job = over(&service, "large", &json!({})).await;
    let keyed = |body: serde_json::Value| {
        let call = Call::post(format!("/v0/jobs/{job}/rerun")).header("idempotency-key", "k");
        service.admin(call.json(&body))
    };
    let first = keyed(json!({})).await.expect(202)["job"]["id"].clone();
    assert_eq!(keyed(json!({})).await.expect(202)["job"]["id"], first);
    let other = keyed(json!({"current": true})).await;
    other.problem(422, "idempotency_mismatch");
}

#[tokio::test]
async fn unfinished_and_removed_jobs_cannot_be_run_again() {
    let service = Service::start().await;
    let waiting = service.dispatch("large").await;
    let refused = rerun(&service, &waiting, &json!({})).await;
    let problem = refused.problem(409, "illegal_transition");
    assert!(
        text(&problem["detail"]).contains("is scheduled"),
        "{problem}"
    );

    let token = service.personal([Scope::JobWrite], None).await;
    let job = over(&service, "large", &json!({})).await;
    let call = Call::post(format!("/v0/jobs/{job}/rerun")).bearer(&token);
    call.send(service.address).await.problem(403, "forbidden");

    let without = "scans: { build: { on: { dispatch: {} }, steps: [ { run: make } ] } }\n";
    service.push(&[("workflows/pipeline.yaml", without)]).await;
    let refused = rerun(&service, &job, &json!({})).await;
    refused.problem(409, "retired");
    service.push(&[("workflows/deep/plain.yaml", PLAIN)]).await;
    for current in [false, true] {
        let refused = rerun(&service, &job, &json!({ "current": current })).await;
        refused.problem(409, "retired");
    }
}

#[tokio::test]
async fn a_job_is_not_run_again_while_one_of_its_retries_is_unfinished() {
    let service = Service::start().await;
    let retrying = PLAIN.replace("on:", "retry: { attempts: 2 }, on:");
    service
        .push(&[("workflows/pipeline.yaml", &retrying)])
        .await;
    let first = service.dispatch("only").await;
    let browser = Browser::admin(&service).await;
    let again = format!("action=\"/jobs/{first}/rerun\"");
    let is_offered = async || {
        let page = browser.page(&format!("/jobs/{first}")).await;
        page.contains(&again)
    };
    let runner = service.register("one", &["linux"], 1).await;
    let mut retry = first.clone();
    for _ in 0..2 {
        service.clock.advance(TimeDelta::minutes(1));
        let worker = service.claim(&runner, &[]).await;
        assert_eq!(worker.id, retry);
        let resolve = worker.call(Method::POST, &worker.path("resolve"));
        resolve.send(service.address).await.expect(200);
        let body = json!({
            "steps": [{"index": 0, "status": "failed", "outcome": "failed", "exit_code": 3}],
            "log_records": 0,
        });
        let complete = worker.call(Method::POST, &worker.path("complete"));
        complete.json(&body).send(service.address).await.expect(200);
        let ended = service.get(&format!("/v0/jobs/{}", worker.id)).await;
        retry = text(&ended.expect(200)["retried_by"]);
        for current in [false, true] {
            let refused = rerun(&service, &first, &json!({ "current": current })).await;
            let problem = refused.problem(409, "illegal_transition");
            let detail = format!("job {first} is retried as {retry}, which is not finished");
            assert!(text(&problem["detail"]).starts_with(&detail), "{problem}");
            let hint = text(&problem["hint"]);
            assert!(
                hint.contains(&format!("everscan job cancel {retry}")),
                "{problem}"
            );
        }
        assert!(!is_offered().await, "{retry} is not over");
    }
    let cancel = Call::post(format!("/v0/jobs/{retry}/cancel"));
    service.admin(cancel).await.expect(200);
    assert!(is_offered().await);
    rerun(&service, &first, &json!({})).await.expect(202);
}

#[tokio::test]
async fn the_button_of_the_page_runs_the_job_again_once() {
    let service = Service::start().await;
    let browser = Browser::admin(&service).await;
    let job = over(&service, "large", &json!({})).await;
    let page = browser.page(&format!("/jobs/{job}")).await;
    let action = format!("action=\"/jobs/{job}/rerun\"");
    let (_, form) = page.split_once(&action).expect("a form");
    let (_, rest) = form.split_once("value=\"").unwrap();
    let form = [("idempotency_key", rest.split_once('"').unwrap().0)];
    let path = format!("/jobs/{job}/rerun");
    let to = browser.done(&path, &form).await;
    assert_eq!(browser.done(&path, &form).await, to);
    let page = browser.page(&to).await;
    assert!(page.contains(&format!("href=\"/jobs/{job}\"")), "{page}");
}
