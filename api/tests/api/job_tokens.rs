//! The token of a job: what its steps may do, and every attempt to do more.

use std::num::NonZeroU32;

use api::{Access, Front, ROUTES, Rate, SessionRoute};
use chrono::TimeDelta;
use http::Method;
use model::Scope;
use serde_json::{Value, json};

use crate::blobs::stored;
use crate::client::{Answer, Call};
use crate::service::{Claimed, Runner, Service, offered, text};

const LIMITED: &str = "
scans:
  reads: { on: { dispatch: {} }, permissions: [job:read], steps: [ { run: one }, { run: two } ] }
  secret: { on: { dispatch: {} }, steps: [ { run: '${{ secrets.KEY }}' }, { run: two } ] }
";

/// A job that is running, and the token of its steps.
pub(crate) struct Running {
    worker: Claimed,
    pub(crate) token: String,
}

impl Running {
    async fn call(&self, service: &Service, call: Call) -> Answer {
        call.bearer(&self.token).send(service.address).await
    }

    async fn get(&self, service: &Service, path: &str) -> Answer {
        self.call(service, Call::get(path)).await
    }

    async fn post(&self, service: &Service, path: &str, body: &Value) -> Answer {
        self.call(service, Call::post(path).json(body)).await
    }

    /// Starts a scan of `main`.
    async fn start(&self, service: &Service, scan: &str) -> Answer {
        let path = format!("/v0/workflows/main%2Fpipeline/scans/{scan}/dispatch");
        self.post(service, &path, &json!({"inputs": {"target": "all"}}))
            .await
    }
}

/// Registers a runner whose program announces what the present one announces.
pub(crate) async fn modern(service: &Service) -> Runner {
    let runner = service.register("modern", &[], 10).await;
    let hello = runner.says("hello").json(&json!({
        "version": "0.1.0", "instance": runner.instance(), "capabilities": ["callback", "checkout", "job_token"],
    }));
    assert_eq!(hello.send(service.address).await.status, 204);
    runner
}

/// Claims the next job of a runner. Returns the answer to the claim.
pub(crate) async fn claim(
    service: &Service,
    runner: &Runner,
    holding: &[&str],
) -> (Claimed, Value) {
    let messages = service.poll(runner, holding.len() + 1, holding).await;
    let worker = offered(&messages[0]);
    let resolve = worker.call(Method::POST, &worker.path("resolve"));
    let first = resolve.clone().send(service.address).await.expect(200);
    let again = resolve.send(service.address).await.expect(200);
    assert_eq!(first["job_token"], again["job_token"], "a repeat");
    assert_eq!(first["callback"], again["callback"], "a repeat");
    (worker, first)
}

pub(crate) async fn running(service: &Service, runner: &Runner, holding: &[&str]) -> Running {
    let (worker, assignment) = claim(service, runner, holding).await;
    let token = text(&assignment["job_token"]);
    assert!(token.starts_with("evj_"), "{token}");
    Running { worker, token }
}

#[tokio::test]
async fn steps_read_jobs_use_blobs_and_dispatch_in_their_project_only() {
    let service = Service::follow(&["main", "other"]).await;
    let elsewhere = "/v0/workflows/other%2Fpipeline/scans/build/dispatch";
    let all = json!({"inputs": {"target": "all"}});
    let runner = modern(&service).await;
    let foreign = service.post(elsewhere, &all).await.expect(202);
    let foreign = text(&foreign["job"]["id"]);
    let other = running(&service, &runner, &[]).await;
    let upload = other.worker.upload("out", b"zip");
    upload.send(service.address).await;
    let put = Call::new(Method::PUT, "/v0/blobs/a?project=other").bytes("theirs");
    service.admin(put).await.expect(201);

    service.dispatch("build").await;
    let job = running(&service, &runner, &[&foreign]).await;
    let jobs = job.get(&service, "/v0/jobs").await.expect(200);
    let [own] = jobs["items"].as_array().unwrap().as_slice() else {
        panic!("{jobs}");
    };
    assert_eq!(own["id"], job.worker.id.as_str());
    let put = |path: &str| Call::new(Method::PUT, path).bytes("ours");
    let stored = job.call(&service, put("/v0/blobs/a?project=main")).await;
    let by = format!("job {}", job.worker.id);
    assert_eq!(stored.expect(201)["modified_by"], by.as_str());
    let read = job.get(&service, "/v0/blobs/a").await;
    assert_eq!(read.text(), "ours", "the only project that it sees");
    let made = job.start(&service, "build").await.expect(202);
    assert_eq!(made["job"]["dispatched_by"], by.as_str());
    assert_eq!(made["job"]["hops"], 1);

    // Nothing of another project exists for it.
    for path in [
        format!("/v0/jobs/{foreign}"),
        format!("/v0/jobs/{foreign}/logs"),
        format!("/v0/jobs/{foreign}/artifacts/out"),
        "/v0/blobs/a?project=other".to_owned(),
        "/v0/blobs?project=other".to_owned(),
        "/v0/events?workflow=other%2Fpipeline".to_owned(),
    ] {
        job.get(&service, &path).await.expect(404);
    }
    let put = put("/v0/blobs/a?project=other");
    job.call(&service, put).await.expect(404);
    let refused = job.post(&service, elsewhere, &all).await;
    refused.expect(404);
    let rerun = format!("/v0/jobs/{foreign}/rerun");
    let refused = job.post(&service, &rerun, &json!({})).await;
    refused.expect(404);
}

#[tokio::test]
async fn every_route_refuses_the_token_of_a_job_that_lacks_its_scope() {
    let service = Service::start().await;
    service.push(&[("workflows/limited.yaml", LIMITED)]).await;
    let runner = modern(&service).await;
    let path = "/v0/workflows/limited/scans/reads/dispatch";
    service.post(path, &json!({})).await.expect(202);
    let limited = running(&service, &runner, &[]).await;
    let mut refused = 0;
    for route in ROUTES.iter() {
        let path = route.path.replace(['{', '}', '*'], "");
        let call = Call::new(route.method.clone(), path.clone()).bearer(&limited.token);
        let answer = call.send_to_stream(service.address).await;
        let status = answer.status;
        match route.access {
            Access::User(_, scope) if scope.name() == "job:read" => {
                assert_ne!(status, 401, "{path}");
                assert_ne!(status, 403, "{path}");
                continue;
            }
            Access::User(..) if route.method == Method::HEAD => assert_eq!(status, 403, "{path}"),
            Access::User(of, scope) => {
                let problem = answer.problem(403, "forbidden").to_string();
                let scopes = of.scopes(&scope).iter();
                let is_named = |scope: &Scope| problem.contains(scope.name());
                assert!(scopes.into_iter().any(is_named), "{problem}");
            }
            // Every program of this machine may read the metrics.
            Access::Local(..) => {}
            Access::Session(SessionRoute::ShowMe) => assert_eq!(status, 200, "{path}"),
            // A link for reading needs `blob:read`.
            Access::Session(_) => assert!([403, 415].contains(&status), "{path}: {status}"),
            // The credential of these routes is in the path, in the body, or of another kind.
            Access::Link(_) => assert_eq!(status, 404, "{path}"),
            Access::Runner(_) | Access::Worker(_) => assert_eq!(status, 401, "{path}"),
            Access::Page(..) | Access::Action(..) => {
                assert!([303, 401, 403].contains(&status), "{path}: {status}");
            }
            Access::Public(_) => {}
        }
        refused += 1;
    }
    assert!(refused > 100, "{refused}");

    // It signs no browser in, and makes nothing that outlives it.
    let sign_in = json!({"token": limited.token});
    let answer = Call::post("/v0/sessions")
        .json(&sign_in)
        .send(service.address)
        .await;
    answer.problem(401, "unauthorized");
    for (method, path) in [
        (Method::GET, "/v0/sessions"),
        (Method::DELETE, "/v0/sessions?tokens=true"),
        (Method::POST, "/v0/sign-in-links"),
    ] {
        let call = Call::new(method, path).json(&json!({}));
        limited.call(&service, call).await.problem(403, "forbidden");
    }
    let problem = limited.start(&service, "build").await;
    let problem = problem.problem(403, "forbidden").to_string();
    assert!(problem.contains("`permissions`"), "{problem}");
}

#[tokio::test]
async fn the_token_of_a_job_ends_with_it_and_is_not_the_token_of_its_worker() {
    let service = Service::start().await;
    let runner = modern(&service).await;
    service.dispatch("build").await;
    let job = running(&service, &runner, &[]).await;
    let held = service.dispatch("build").await;
    // A worker is no user, and steps are no worker.
    for rest in ["resolve", "complete", "timeline"] {
        let call = Call::post(job.worker.path(rest)).json(&json!({"steps": []}));
        job.call(&service, call).await.problem(401, "unauthorized");
    }
    let by_worker = job.worker.call(Method::GET, "/v0/jobs");
    by_worker
        .send(service.address)
        .await
        .problem(401, "unauthorized");

    let open = |path: &str| Call::get(path).bearer(&job.token).open(service.address);
    let mut events = open("/v0/events").await;
    let mut log = open(&format!("/v0/jobs/{held}/logs?follow=true")).await;
    let follow = Call::get(format!("/v0/jobs/{held}?wait=true")).bearer(&job.token);
    let follow = follow.open(service.address);
    let complete = service.complete(&job.worker, 0);
    let (followed, completed) = tokio::join!(follow, complete);
    completed.expect(200);
    assert_eq!(followed.status, 401, "a wait ends with the job");
    events.rest().await;
    assert!(log.breaks_off().await, "and so does a stream");
    for path in ["/v0/jobs", "/v0/events", "/v0/blobs"] {
        let problem = job.get(&service, path).await;
        problem.problem(401, "unauthorized");
    }
    job.start(&service, "build")
        .await
        .problem(401, "unauthorized");

    // After a cancel, steps have two minutes to clean up.
    let cancelled = running(&service, &runner, &[]).await;
    assert_eq!(cancelled.worker.id, held);
    let cancel = format!("/v0/jobs/{held}/cancel");
    service.post(&cancel, &json!({})).await.expect(200);
    service.clock.advance(TimeDelta::seconds(119));
    cancelled.get(&service, "/v0/jobs").await.expect(200);
    service.clock.advance(TimeDelta::seconds(1));
    let over = cancelled.get(&service, "/v0/jobs").await;
    over.problem(401, "unauthorized");
}

#[tokio::test]
async fn links_of_a_job_only_read_and_belong_to_its_project() {
    let service = Service::start().await;
    stored(&service, "report", "content").await;
    let runner = modern(&service).await;
    service.dispatch("build").await;
    let job = running(&service, &runner, &[]).await;
    let link = |use_for: &str| json!({"path": "report", "use_for": use_for, "expires_in": "1h"});
    let refused = job.post(&service, "/v0/blob-links", &link("put")).await;
    refused.problem(403, "forbidden");
    let made = job.post(&service, "/v0/blob-links", &link("get")).await;
    let path = text(&made.expect(201)["url_path"]);
    service.complete(&job.worker, 0).await.expect(200);
    let anybody = |method| Call::new(method, &path).send(service.address);
    assert_eq!(anybody(Method::GET).await.text(), "content");
    anybody(Method::PUT).await.problem(404, "not_found");
    service.clock.advance(TimeDelta::hours(1));
    anybody(Method::GET).await.problem(404, "not_found");
}

#[tokio::test]
async fn a_step_that_starts_its_own_scan_waits_from_the_tenth_job_on() {
    let service = Service::start().await;
    let runner = modern(&service).await;
    service.dispatch("build").await;
    for hops in 0..12 {
        if hops >= 10 {
            service.clock.advance(TimeDelta::seconds(1));
        }
        let job = running(&service, &runner, &[]).await;
        let next = job.start(&service, "build").await.expect(202);
        assert_eq!(next["job"]["hops"], hops + 1);
        service.complete(&job.worker, 0).await.expect(200);
        let next = format!("/v0/jobs/{}", text(&next["job"]["id"]));
        let waiting = service.get(&next).await.expect(200);
        let is_paused = waiting["waiting"]["code"] == "cycle_pause";
        assert_eq!(is_paused, hops + 1 >= 10, "{waiting}");
    }
}

#[tokio::test]
async fn all_jobs_of_a_project_share_a_rate() {
    let service = Service::fronted(Front {
        trusted_proxies: vec!["127.0.0.1".parse().unwrap()],
        requests: Some(Rate {
            per_second: NonZeroU32::MIN,
            burst: NonZeroU32::new(60).unwrap(),
        }),
        ..Front::default()
    })
    .await;
    let runner = modern(&service).await;
    service.dispatch("build").await;
    let one = running(&service, &runner, &[]).await;
    service.dispatch("build").await;
    let other = running(&service, &runner, &[&one.worker.id]).await;
    let far = Call::get("/v0/jobs").header("x-forwarded-for", "203.0.113.9");
    while one.call(&service, far.clone()).await.status == 200 {}
    let slowed = other.call(&service, far.clone()).await;
    slowed.problem(429, "rate_limited");
    let person = far.bearer(&service.admin).send(service.address).await;
    assert_eq!(person.status, 200);
}

/// The requests of a runner from before tokens of jobs have no `capabilities`, or do not name this one.
#[tokio::test]
async fn an_older_runner_gets_no_token_and_its_page_says_so() {
    let service = Service::start().await;
    let runner = service.register("old", &[], 1).await;
    assert_eq!(runner.says("hello").send(service.address).await.status, 204);
    service.dispatch("build").await;
    let (worker, assignment) = claim(&service, &runner, &[]).await;
    assert_eq!(assignment.get("job_token"), None, "{assignment}");
    service.complete(&worker, 0).await.expect(200);
    let browser = crate::browser::Browser::admin(&service).await;
    let page = browser.page(&format!("/runners/{}", runner.id)).await;
    let note = "of its own environment";
    assert!(page.contains(note), "{page}");
    let modern = modern(&service).await;
    let page = browser.page(&format!("/runners/{}", modern.id)).await;
    assert!(!page.contains(note), "{page}");
}

#[tokio::test]
async fn the_audit_log_names_jobs_and_the_secrets_that_a_claim_got() {
    let service = Service::start().await;
    service.push(&[("workflows/limited.yaml", LIMITED)]).await;
    service.set("secrets/KEY", "hidden-value").await.expect(200);
    let runner = modern(&service).await;
    let path = "/v0/workflows/limited/scans/secret/dispatch";
    service.post(path, &json!({})).await.expect(202);
    let job = running(&service, &runner, &[]).await;
    let put = Call::new(Method::PUT, "/v0/blobs/a").bytes("x");
    job.call(&service, put).await.expect(201);
    service.complete(&job.worker, 0).await.expect(200);

    let audited = async |query: String| {
        let lines = service.get(&format!("/v0/audit{query}")).await.expect(200);
        lines["items"].as_array().unwrap().clone()
    };
    let [read] = &audited("?kind=secret_read".to_owned()).await[..] else {
        panic!("one line for each claim");
    };
    assert_eq!(read["runner"]["name"], "modern");
    assert_eq!(read["actions"][0]["name"], "KEY");
    assert_eq!(read["actions"][0]["job"], job.worker.id.as_str());
    assert!(!read.to_string().contains("hidden"), "{read}");
    let [blob] = &audited(format!("?actor={}", job.worker.id)).await[..] else {
        panic!("one line of the job");
    };
    assert_eq!(blob["job"], job.worker.id.as_str());
    assert_eq!(blob["actions"][0]["kind"], "blob_stored");
}
