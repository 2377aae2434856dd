//! Lists of jobs, one job, waiting for a job, cancelling a job.

use chrono::TimeDelta;
use futures_util::future::join_all;
use http::Method;
use serde_json::{Value, json};

use crate::client::Call;
use crate::service::{Service, text};

fn ids(page: &Value) -> Vec<String> {
    let items = page["items"].as_array().unwrap();
    items.iter().map(|job| text(&job["id"])).collect()
}

#[tokio::test]
async fn pages_list_all_jobs_newest_first_without_gap_or_repeat() {
    let service = Service::start().await;
    let (_, worker) = service.claimed("one").await;
    let mut all = vec![worker.id.clone()];
    service.complete(&worker, 0).await.expect(200);
    for scan in ["large", "build", "large", "large"] {
        all.push(service.dispatch(scan).await);
    }
    all.reverse();
    for limit in 1..=6 {
        let (mut found, mut cursor) = (Vec::new(), String::new());
        loop {
            let path = format!("/v0/jobs?limit={limit}{cursor}");
            let page = service.get(&path).await.expect(200);
            found.extend(ids(&page));
            match page.get("next_cursor") {
                Some(next) => cursor = format!("&cursor={}", text(next)),
                None => break,
            }
        }
        assert_eq!(found, all, "{limit} at once");
    }
    // New jobs do not disturb a reader between two pages.
    let page = service.get("/v0/jobs?limit=2").await.expect(200);
    service.dispatch("large").await;
    let next = format!("/v0/jobs?limit=2&cursor={}", text(&page["next_cursor"]));
    assert_eq!(ids(&service.get(&next).await.expect(200)), all[2..4]);
}

#[tokio::test]
async fn filters_select_the_matching_jobs() {
    let service = Service::start().await;
    let (_, worker) = service.claimed("one").await;
    let large = service.dispatch("large").await;
    let build = service.dispatch("build").await;
    service.complete(&worker, 0).await.expect(200);
    let found = async |query: &str| {
        let page = service.get(&format!("/v0/jobs?{query}")).await;
        ids(&page.expect(200))
    };
    assert_eq!(found("state=succeeded").await, [worker.id.as_str()]);
    assert_eq!(found("state=scheduled").await, [&*build, &*large]);
    assert_eq!(found("scan=build").await, [&*build, &*worker.id]);
    assert_eq!(found("scan=build&state=scheduled").await, [&*build]);
    assert_eq!(
        found("workflow=main%2Fpipeline&scan=large").await,
        [&*large]
    );
    assert!(found("workflow=deep/plain").await.is_empty());
    for wrong in [
        "state=done",
        "limit=0",
        "limit=201",
        "limit=x",
        "limit=-1",
        "limit=99999999999999999999",
        "cursor=x",
        "cursor=",
        "scan=a-b",
        "scan=",
        "scan=%00",
    ] {
        let answer = service.get(&format!("/v0/jobs?{wrong}")).await;
        let problem = answer.problem(400, "invalid_request");
        let field = wrong.split('=').next();
        assert_eq!(problem["errors"][0]["field"].as_str(), field, "{problem}");
    }
    let answer = service.get("/v0/jobs?workflow=nothing").await;
    answer.problem(404, "workflow_not_found");
}

#[tokio::test]
async fn unknown_scans_idle_scans_and_removed_scans_get_different_answers() {
    let service = Service::start().await;
    let none = service.get("/v0/jobs?scan=nightly").await.expect(200);
    assert!(ids(&none).is_empty());
    let typo = service.get("/v0/jobs?scan=nightli").await;
    typo.problem(404, "not_found");
    let other = service
        .get("/v0/jobs?workflow=deep%2Fplain&scan=nightly")
        .await;
    let hint = text(&other.problem(404, "not_found")["hint"]);
    assert_eq!(hint, "the workflow has: only");

    let (_, worker) = service.claimed("one").await;
    service.complete(&worker, 0).await.expect(200);
    let waiting = service.dispatch("large").await;
    let why = async |scan: &str| {
        let path = format!("/v0/workflows/pipeline/scans/{scan}/why");
        service.get(&path).await
    };
    why("gone").await.problem(404, "not_found");
    service
        .push(&[("workflows/pipeline.yaml", crate::service::PLAIN)])
        .await;
    service
        .push(&[(
            "workflows/pipeline.yaml",
            &format!("# again\n{}", crate::service::PLAIN),
        )])
        .await;
    let page = service.get("/v0/jobs?scan=build").await.expect(200);
    assert_eq!(ids(&page), [worker.id]);
    let build = why("build").await.expect(200);
    assert_eq!(
        (&build["state"], &build["removed_by"]["number"]),
        (&json!("removed"), &json!(2))
    );
    let large = why("large").await.expect(200);
    assert_eq!(large["state"], "removed");
    assert!(large["records"].as_array().unwrap().is_empty());
    assert_eq!(
        large["unfinished"],
        json!([]),
        "a job that waited is cancelled"
    );
    let cancelled = service
        .get(&format!("/v0/jobs/{waiting}"))
        .await
        .expect(200);
    assert_eq!(cancelled["state"], "cancelled");
    // The scan never had a job, so nothing of it remains.
    why("nightly").await.problem(404, "not_found");
}

#[tokio::test]
async fn why_names_the_reason_that_a_job_waits_for() {
    let service = Service::start().await;
    let id = service.dispatch("large").await;
    let job = service.get(&format!("/v0/jobs/{id}")).await.expect(200);
    assert_eq!(job["waiting"]["code"], "no_runner");
    let path = "/v0/workflows/pipeline/scans/large/why";
    let why = service.get(path).await.expect(200);
    assert_eq!(why["unfinished"][0]["waiting"], job["waiting"]);
}

/// The runner learns that the job may be retried, and people learn which job retries which, and when.
#[tokio::test]
async fn a_failed_job_names_its_retry_and_the_retry_when_it_is_due() {
    let service = Service::start().await;
    let text = crate::service::PLAIN.replace("on:", "retry: { attempts: 1 }, on:");
    service.push(&[("workflows/pipeline.yaml", &text)]).await;
    let shown = service.get("/v0/workflows/pipeline").await.expect(200);
    assert!(shown["warnings"].is_null(), "{shown}");
    service.dispatch("only").await;
    let runner = service.register("one", &["linux"], 1).await;
    let worker = service.claim(&runner, &[]).await;
    let resolved = worker.call(Method::POST, &worker.path("resolve"));
    let assignment = resolved.send(service.address).await.expect(200);
    assert_eq!(assignment["retries"], true);
    let body = json!({
        "steps": [{"index": 0, "status": "failed", "outcome": "failed", "exit_code": 3}],
        "log_records": 0,
    });
    let complete = worker.call(Method::POST, &worker.path("complete"));
    let ended = complete.json(&body).send(service.address).await;
    assert_eq!(ended.expect(200)["state"], "failed");

    let failed = service.get(&format!("/v0/jobs/{}", worker.id)).await;
    let failed = failed.expect(200);
    let id = failed["retried_by"].as_str().unwrap();
    let path = format!("/v0/jobs/{id}");
    let answer = service.get(&path).await;
    crate::answers::check(&service, "jobs/retry", &answer);
    let retry = answer.expect(200);
    assert_eq!(retry["retry_of"], worker.id);
    assert_eq!(retry["waiting"]["code"], "retry_due");

    service.clock.advance(TimeDelta::seconds(10));
    let retry = service.get(&path).await.expect(200);
    assert_eq!(retry["waiting"]["code"], "not_fetched");
    let worker = service.claim(&runner, &[]).await;
    assert_eq!(worker.id, id);
    let resolved = worker.call(Method::POST, &worker.path("resolve"));
    let assignment = resolved.send(service.address).await.expect(200);
    assert_eq!(assignment["retries"], false, "it is the last attempt");
}

#[tokio::test]
async fn unknown_jobs_are_not_found_in_any_spelling() {
    let service = Service::start().await;
    let job = service.dispatch("large").await;
    for path in [
        "x",
        "%00",
        "%2e%2e",
        "..%2f..%2fjobs",
        "00000000-0000-0000-0000-000000000000",
        "ffffffff-ffff-ffff-ffff-ffffffffffff",
        "ffffffff-ffff-7fff-bfff-ffffffffffff",
        "11111111-1111-4111-8111-111111111111",
    ] {
        for rest in ["", "/logs", "/artifacts", "/artifacts/out"] {
            let answer = service.get(&format!("/v0/jobs/{path}{rest}")).await;
            answer.problem(404, "not_found");
        }
        let cancel = Call::post(format!("/v0/jobs/{path}/cancel"));
        service.admin(cancel).await.problem(404, "not_found");
    }
    service
        .get("/v0/jobs/%ff")
        .await
        .problem(404, "no_such_route");
    // A UUID may also be in upper case and with percent-encoded hyphens.
    let job = job.to_uppercase().replace('-', "%2D");
    service.get(&format!("/v0/jobs/{job}")).await.expect(200);
}

#[tokio::test]
async fn waiting_ends_with_the_job() {
    let service = Service::start().await;
    let (_, worker) = service.claimed("one").await;
    let path = format!("/v0/jobs/{}?wait=true", worker.id);
    let call = Call::get(&path).bearer(&service.admin);
    let waiting = tokio::spawn(call.send(service.address));
    // A step or a log line must not end the wait. They are sent after the request.
    let steps = json!({"steps": [{
        "index": 0, "status": "running", "started_at": "2026-11-20T12:00:00Z",
    }]});
    let report = worker.call(Method::POST, &worker.path("timeline"));
    let report = report.json(&steps).send(service.address).await;
    assert_eq!(report.status, 204);
    worker
        .append(0, &["a line"])
        .send(service.address)
        .await
        .expect(200);
    service.complete(&worker, 1).await.expect(200);
    let job = waiting.await.unwrap().expect(200);
    assert_eq!(job["state"], "succeeded");
    // A request for a finished job is answered at once.
    assert_eq!(service.get(&path).await.expect(200), job);
    let path = format!("/v0/jobs/{}?wait=soon", worker.id);
    service.get(&path).await.problem(400, "invalid_request");
}

#[tokio::test]
async fn a_running_job_shows_the_artifact_that_is_stored() {
    let service = Service::start().await;
    let (_, worker) = service.claimed("one").await;
    let path = format!("/v0/jobs/{}", worker.id);
    let report = async |artifact: &str| {
        let artifact = json!({"name": artifact, "phase": "packing", "bytes": 3, "of": 9});
        let report = worker.call(Method::POST, &worker.path("timeline"));
        let report = report.json(&json!({"steps": [], "artifact": artifact}));
        assert_eq!(report.send(service.address).await.status, 204);
        service.get(&path).await.expect(200)["storing"].clone()
    };
    // Artifacts that the scan does not declare are ignored.
    assert_eq!(report("made-up").await, json!(null));
    let storing = json!({"name": "out", "phase": "packing", "bytes": 3, "of": 9});
    assert_eq!(report("out").await, storing);
    service.complete(&worker, 0).await.expect(200);
    assert_eq!(service.get(&path).await.expect(200)["storing"], json!(null));
}

#[tokio::test]
async fn waiting_ends_when_the_daemon_stops() {
    let service = Service::start().await;
    let job = service.dispatch("large").await;
    let call = Call::get(format!("/v0/jobs/{job}?wait=true")).bearer(&service.admin);
    let waiting = tokio::spawn(call.send(service.address));
    // A later request, answered at once.
    service.get("/v0/jobs").await.expect(200);
    assert!(!waiting.is_finished());
    service.handle.drain();
    let job = waiting.await.unwrap().expect(200);
    assert_eq!(job["state"], "scheduled");
}

#[tokio::test]
async fn cancelling_again_is_harmless_and_cancelling_a_finished_job_is_refused() {
    let service = Service::start().await;
    let waiting = service.dispatch("large").await;
    let cancel = |job: &str| service.admin(Call::post(format!("/v0/jobs/{job}/cancel")));
    let first = cancel(&waiting).await.expect(200);
    assert_eq!(first["state"], "cancelled");
    assert_eq!(first["reason"]["actor"], "token tester");
    assert_eq!(cancel(&waiting).await.expect(200), first);
    let (_, worker) = service.claimed("one").await;
    service.complete(&worker, 0).await.expect(200);
    cancel(&worker.id).await.problem(409, "illegal_transition");
}

#[tokio::test]
async fn a_waiting_job_names_its_reason() {
    let service = Service::start().await;
    let job = service.dispatch("large").await;
    let waiting = async || {
        let shown = service.get(&format!("/v0/jobs/{job}")).await.expect(200);
        shown["waiting"]["code"].as_str().map(str::to_owned)
    };
    assert_eq!(waiting().await.as_deref(), Some("no_runner"));
    let plain = service.register("plain", &[], 1).await;
    assert_eq!(waiting().await.as_deref(), Some("no_runner_connected"));
    let hello = Call::post("/v0/runners/hello").bearer(&plain.token);
    let hello = hello.json(&json!({"version": "0.1.0"}));
    assert_eq!(hello.send(service.address).await.status, 204);
    assert_eq!(waiting().await.as_deref(), Some("no_runner_fits"));
    service.clock.advance(TimeDelta::days(400));
    assert_eq!(waiting().await.as_deref(), Some("no_runner_fits"));
    tokio::time::pause();
    tokio::time::advance(std::time::Duration::from_secs(120)).await;
    tokio::time::resume();
    assert_eq!(waiting().await.as_deref(), Some("no_runner_connected"));
    let large = service.register("large", &["large"], 1).await;
    service.claim(&large, &[]).await;
    assert_eq!(waiting().await, None);
}

#[tokio::test]
async fn jobs_are_filtered_by_their_properties() {
    let service = Service::start().await;
    let (runner, first) = service.claimed("one").await;
    service.complete(&first, 0).await.expect(200);
    service.clock.advance(TimeDelta::seconds(60));
    let second = service.dispatch("build").await;
    let claimed = service.claim(&runner, &[]).await;
    assert_eq!(claimed.id, second);
    let cancel = service.admin(Call::post(claimed.path("cancel")));
    cancel.await.expect(200);
    service.clock.advance(TimeDelta::seconds(60));
    let third = service.dispatch("large").await;
    let listed = async |query: &str| {
        let body = service.get(&format!("/v0/jobs?{query}")).await.expect(200);
        let items = body["items"].as_array().unwrap().iter();
        items.map(|job| text(&job["id"])).collect::<Vec<_>>()
    };
    let (a, b, c) = (first.id.as_str(), second.as_str(), third.as_str());
    for (query, wanted) in [
        ("trigger=dispatch", vec![c, b, a]),
        ("trigger=cron", vec![]),
        ("runner=one", vec![b, a]),
        ("reason=steps_succeeded", vec![a]),
        ("reason=cancelled_by_user&runner=one", vec![b]),
        ("reason=dispatched", vec![c]),
        ("since=2026-11-20T12:01:00Z", vec![c, b]),
        ("until=2026-11-20T12:01:00Z", vec![a]),
        (
            "since=2026-11-20T12:01:00Z&until=2026-11-20T12:02:00Z",
            vec![b],
        ),
        ("since=2026-11-20T12:03:00Z", vec![]),
        ("since=2026-11-20T12:01:00Z&limit=1", vec![c]),
        ("runner=one&state=cancelled", vec![b]),
    ] {
        assert_eq!(listed(query).await, wanted, "{query}");
    }
    for (query, status, field) in [
        ("trigger=push", 400, "trigger"),
        ("reason=because", 400, "reason"),
        ("since=yesterday", 400, "since"),
        ("runner=nobody", 404, ""),
    ] {
        let answer = service.get(&format!("/v0/jobs?{query}")).await;
        assert_eq!(answer.status, status, "{query}");
        let errors = &answer.json()["errors"];
        assert!(
            field.is_empty() || errors[0]["field"] == field,
            "{query}: {errors}"
        );
    }
}

#[tokio::test]
async fn a_job_is_found_by_its_digits_even_while_it_ends() {
    let service = Service::start().await;
    for round in 0..5 {
        let (_, worker) = service.claimed(&format!("runner {round}")).await;
        let digits = &worker.id[worker.id.len() - 8..];
        let path = format!("/v0/jobs/{digits}");
        let shown = join_all((0..40).map(|_| service.get(&path)));
        let (completed, shown) = tokio::join!(service.complete(&worker, 0), shown);
        completed.expect(200);
        for answer in shown {
            answer.expect(200);
        }
    }
}
