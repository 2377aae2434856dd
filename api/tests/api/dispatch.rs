//! Starting jobs, exactly once.

use chrono::TimeDelta;
use model::Scope;
use serde_json::{Value, json};

use crate::client::{Answer, Call};
use crate::service::{PLAIN, Service, text};

const BUILD: &str = "/v0/workflows/pipeline/scans/build/dispatch";

async fn keyed(service: &Service, token: &str, path: &str, key: &str, body: &Value) -> Answer {
    Call::post(path)
        .bearer(token)
        .header("idempotency-key", key)
        .json(body)
        .send(service.address)
        .await
}

#[tokio::test]
async fn a_repeat_with_the_same_key_gets_the_same_job() {
    let service = Service::start().await;
    let body = json!({"inputs": {"target": "a"}});
    let job = async |key: &str| {
        let answer = keyed(&service, &service.admin, BUILD, key, &body).await;
        text(&answer.expect(202)["job"]["id"])
    };
    let first = job("k").await;
    assert_eq!(job("k").await, first);
    assert_ne!(job("other").await, first);
    // The same applies to two concurrent requests, and after the end of the job.
    let (a, b) = tokio::join!(job("twice"), job("twice"));
    assert_eq!(a, b);
    let cancel = Call::post(format!("/v0/jobs/{first}/cancel"));
    service.admin(cancel).await.expect(200);
    assert_eq!(job("k").await, first);
    // A day later the key is free.
    service.clock.advance(TimeDelta::hours(24));
    assert_ne!(job("k").await, first);
}

#[tokio::test]
async fn a_repeat_gets_the_same_job_even_if_its_revision_has_become_unreadable() {
    let service = Service::start().await;
    let body = json!({"inputs": {"target": "a"}});
    let dispatch = async |key: &str| keyed(&service, &service.admin, BUILD, key, &body).await;
    let first = dispatch("k").await.expect(202)["job"]["id"].clone();
    service.lose_revision("main/pipeline").await;
    assert_eq!(dispatch("k").await.expect(202)["job"]["id"], first);
    let other = dispatch("other").await;
    other.problem(409, "workflow_unreadable");
}

#[tokio::test]
async fn a_key_belongs_to_its_token_and_its_route() {
    let service = Service::start().await;
    let body = json!({"inputs": {"target": "a"}});
    let first = keyed(&service, &service.admin, BUILD, "k", &body).await;
    let first = first.expect(202)["job"]["id"].clone();
    let other = service.personal([Scope::Dispatch], None).await;
    let second = keyed(&service, &other, BUILD, "k", &body).await;
    assert_ne!(second.expect(202)["job"]["id"], first);
    let large = "/v0/workflows/pipeline/scans/large/dispatch";
    let third = keyed(&service, &service.admin, large, "k", &json!({})).await;
    assert_ne!(third.expect(202)["job"]["id"], first);
    // The route is the same for every name of the workflow.
    let named = "/v0/workflows/main%2Fpipeline/scans/build/dispatch";
    let fourth = keyed(&service, &service.admin, named, "k", &body).await;
    assert_eq!(fourth.expect(202)["job"]["id"], first);
    let body = json!({"inputs": {"target": "b"}});
    let fifth = keyed(&service, &service.admin, BUILD, "k", &body).await;
    fifth.problem(422, "idempotency_mismatch");
}

#[tokio::test]
async fn the_length_of_a_key_is_limited() {
    let service = Service::start().await;
    let body = json!({"inputs": {"target": "a"}});
    for key in ["", &"k".repeat(201)] {
        let answer = keyed(&service, &service.admin, BUILD, key, &body).await;
        answer.problem(400, "invalid_request");
    }
    let key = "k".repeat(200);
    let answer = keyed(&service, &service.admin, BUILD, &key, &body).await;
    answer.expect(202);
}

#[tokio::test]
async fn inputs_are_checked_and_completed() {
    let service = Service::start().await;
    let dispatch = async |inputs: Value| service.post(BUILD, &json!({"inputs": inputs})).await;
    let job = dispatch(json!({"target": "a"})).await.expect(202);
    assert_eq!(job["job"]["inputs"], json!({"fast": false, "target": "a"}));
    let job = dispatch(json!({"target": "", "fast": "true"}))
        .await
        .expect(202);
    assert_eq!(job["job"]["inputs"], json!({"fast": true, "target": ""}));
    for (wrong, fields) in [
        (json!({}), vec!["inputs.target"]),
        (json!({"target": null}), vec!["inputs.target"]),
        (json!({"target": ["a"]}), vec!["inputs.target"]),
        (
            json!({"fast": 1, "more": "x"}),
            vec!["inputs.fast", "inputs.more", "inputs.target"],
        ),
    ] {
        let problem = dispatch(wrong).await.problem(422, "invalid_inputs");
        let errors = problem["errors"].as_array().unwrap();
        let mut found: Vec<String> = errors.iter().map(|error| text(&error["field"])).collect();
        found.sort();
        assert_eq!(found, fields);
    }
    // A scan without inputs needs no body.
    let only = "/v0/workflows/deep%2Fplain/scans/only/dispatch";
    service.admin(Call::post(only)).await.expect(202);
}

#[tokio::test]
async fn large_inputs_are_stored_completely() {
    let service = Service::start().await;
    let large = "ü".repeat(60_000);
    let body = json!({"inputs": {"target": large}});
    let job = service.post(BUILD, &body).await.expect(202);
    let path = format!("/v0/jobs/{}", text(&job["job"]["id"]));
    let job = service.get(&path).await.expect(200);
    assert_eq!(job["inputs"]["target"], large);
}

#[tokio::test]
async fn a_dispatch_of_an_unknown_scan_is_refused() {
    let service = Service::follow(&["main", "other"]).await;
    let dispatch = |workflow: &str, scan: &str| {
        let path = format!("/v0/workflows/{workflow}/scans/{scan}/dispatch");
        service.admin(Call::post(path))
    };
    let missing = dispatch("nothing", "build").await;
    missing.problem(404, "workflow_not_found");
    for broken in ["broken", "other%2Fbroken"] {
        let problem = dispatch(broken, "build").await;
        let problem = problem.problem(404, "workflow_not_found");
        assert!(
            text(&problem["hint"]).contains("`everscan source show "),
            "{problem}"
        );
    }
    let problem = dispatch("main%2Fpipeline", "nothing").await;
    let problem = problem.problem(404, "not_found");
    assert!(text(&problem["hint"]).contains("build, large, nightly"));
    let problem = dispatch("pipeline", "build").await;
    let problem = problem.problem(409, "ambiguous_name");
    assert!(text(&problem["hint"]).contains("main/pipeline, other/pipeline"));
}

#[tokio::test]
async fn a_retired_workflow_is_refused_and_its_jobs_stay_visible() {
    let service = Service::start().await;
    let job = service.dispatch("large").await;
    service.push(&[("workflows/deep/plain.yaml", PLAIN)]).await;
    let body = json!({"inputs": {"target": "a"}});
    service.post(BUILD, &body).await.problem(409, "retired");
    let waited = service.get(&format!("/v0/jobs/{job}?wait=true")).await;
    assert_eq!(waited.expect(200)["state"], "cancelled");
    let list = async |query: &str| {
        let page = service.get(&format!("/v0/workflows{query}")).await;
        page.expect(200)["items"].as_array().unwrap().len()
    };
    assert_eq!((list("").await, list("?state=all").await), (1, 2));
    let workflow = service.get("/v0/workflows/pipeline").await.expect(200);
    assert_eq!(workflow["retired"]["code"], "retired");
    let answer = service.get("/v0/workflows?state=some").await;
    answer.problem(400, "invalid_request");
}

const TYPED: &str = "\
scans:
  probe:
    on:
      dispatch:
        inputs:
          rate: { type: number, default: 2.5 }
          size: { type: choice, options: [small, large] }
    steps:
      - run: probe ${{ inputs.rate }} ${{ inputs.size }}
";

#[tokio::test]
async fn problems_of_numbers_and_choices_are_shown_at_their_fields() {
    let service = Service::start().await;
    service.push(&[("workflows/typed.yaml", TYPED)]).await;
    let scan = service
        .get("/v0/workflows/typed/scans/probe")
        .await
        .expect(200);
    assert_eq!(
        scan["inputs"],
        json!([
            {"key": "rate", "type": "number", "required": false, "default": "2.5"},
            {"key": "size", "type": "choice", "options": ["small", "large"], "required": false, "default": "small"},
        ]),
        "{scan}"
    );
    let path = "/v0/workflows/typed/scans/probe/dispatch";
    for (given, expected) in [
        (json!({}), json!({"rate": 2.5, "size": "small"})),
        (
            json!({"rate": 3.0, "size": "large"}),
            json!({"rate": 3, "size": "large"}),
        ),
        (
            json!({"rate": "-0.50"}),
            json!({"rate": -0.5, "size": "small"}),
        ),
    ] {
        let answer = service.post(path, &json!({"inputs": given})).await;
        assert_eq!(answer.expect(202)["job"]["inputs"], expected);
    }
    let answer = service
        .post(path, &json!({"inputs": {"rate": "", "size": "huge"}}))
        .await;
    let problem = answer.expect(422);
    assert_eq!(
        problem["errors"],
        json!([
            {
                "field": "inputs.rate",
                "message": "expected a number of at most 15 digits such as `3` or `-0.5`, found the string \"\"",
            },
            {
                "field": "inputs.size",
                "message": "expected one of `small`, `large`, found the string \"huge\"",
            },
        ]),
        "{problem}"
    );
}

#[tokio::test]
async fn names_are_only_for_callers_that_may_read_them() {
    let service = Service::follow(&["main", "other"]).await;
    let job = service.dispatch("large").await;
    let cancel = Call::post(format!("/v0/jobs/{job}/cancel"));
    service.admin(cancel).await.expect(200);
    let scan = |scan: &str| format!("/v0/workflows/main%2Fpipeline/scans/{scan}/dispatch");
    let no_input = json!({"inputs": {"target": "a", "fats": true}});
    let dispatch = |path: &str| Call::post(path).json(&no_input);
    let jobs = "/v0/jobs?workflow=main%2Fpipeline&scan=nothing";
    for (call, scope, names) in [
        (
            dispatch(&scan("nothing")),
            Scope::Dispatch,
            "build, large, nightly",
        ),
        (
            dispatch(&scan("build")),
            Scope::Dispatch,
            "did you mean `fast`?",
        ),
        (
            dispatch(BUILD),
            Scope::Dispatch,
            "main/pipeline, other/pipeline",
        ),
        (Call::get(jobs), Scope::JobRead, "build, large, nightly"),
    ] {
        for (scopes, may_read) in [
            (vec![scope], false),
            (vec![scope, Scope::WorkflowRead], true),
        ] {
            let token = service.personal(scopes, None).await;
            let answer = call.clone().bearer(&token).send(service.address).await;
            assert!((400..500).contains(&answer.status), "{answer:?}");
            let hint = answer.json()["hint"].to_string();
            assert_eq!(hint.contains(names), may_read, "{}", answer.text());
            assert!(may_read || !answer.text().contains("nightly"), "{answer:?}");
        }
    }
}
