//! Deleting jobs and artifacts, and pruning by a policy.

use chrono::TimeDelta;
use http::Method;
use serde_json::json;

use crate::answers::check;
use crate::client::{Answer, Call};
use crate::service::{Claimed, Service, text};

async fn delete(service: &Service, path: &str) -> Answer {
    service.admin(Call::new(Method::DELETE, path)).await
}

/// A successful job with both artifacts.
async fn finished(service: &Service, runner: &str) -> Claimed {
    let (_, worker) = service.claimed(runner).await;
    for name in ["out", "more"] {
        let stored = worker.upload(name, b"0123456789");
        stored.send(service.address).await.expect(200);
    }
    service.complete(&worker, 0).await.expect(200);
    worker
}

#[tokio::test]
async fn a_finished_job_can_be_deleted_once() {
    let service = Service::start().await;
    let job = finished(&service, "one").await;
    let path = format!("/v0/jobs/{}", job.id);
    let answer = delete(&service, &path).await;
    assert_eq!((answer.status, answer.body.len()), (204, 0));
    for path in [path.clone(), job.path("artifacts/out"), job.path("logs")] {
        service.get(&path).await.problem(404, "not_found");
    }
    delete(&service, &path).await.problem(404, "not_found");
    let listed = service.get("/v0/jobs").await.expect(200);
    assert_eq!(listed["items"], json!([]));
    // Its worker gets the same answer as for a job that never existed.
    let answer = service.complete(&job, 0).await;
    answer.problem(401, "unauthorized");
}

#[tokio::test]
async fn unfinished_jobs_cannot_be_deleted() {
    let service = Service::start().await;
    let (_, worker) = service.claimed("one").await;
    let path = format!("/v0/jobs/{}", worker.id);
    let problem = delete(&service, &path).await;
    let problem = problem.problem(409, "illegal_transition");
    assert_eq!(problem["hint"], "`everscan job cancel` ends it");
    let stored = worker.upload("out", b"0123456789");
    stored.send(service.address).await.expect(200);
    let answer = delete(&service, &worker.path("artifacts/out")).await;
    answer.problem(409, "illegal_transition");

    // After a person has cancelled the job, its worker may still append to the log.
    let cancel = service.admin(Call::post(worker.path("cancel"))).await;
    cancel.expect(200);
    let answer = delete(&service, &path).await;
    answer.problem(409, "illegal_transition");
    service.clock.advance(TimeDelta::minutes(2));
    assert_eq!(delete(&service, &path).await.status, 204);
}

#[tokio::test]
async fn a_deleted_artifact_names_who_deleted_it() {
    let service = Service::start().await;
    let job = finished(&service, "one").await;
    let listed = service.get(&job.path("artifacts")).await.expect(200);
    let id = text(&listed["items"][0]["id"]);
    for name in ["out", id.as_str()] {
        let answer = delete(&service, &job.path(&format!("artifacts/{name}"))).await;
        assert_eq!((answer.status, answer.body.len()), (204, 0), "{name}");
        let answer = service.get(&job.path("artifacts/out")).await;
        let problem = answer.problem(410, "gone");
        let detail = text(&problem["detail"]);
        assert!(
            detail.contains("by token tester: deleted by a user"),
            "{detail}"
        );
    }
    let answer = service.get(&job.path("artifacts")).await;
    check(&service, "artifacts/artifacts_deleted", &answer);
    assert_eq!(
        service.get(&job.path("artifacts/more")).await.text(),
        "0123456789"
    );
    let answer = delete(&service, &job.path("artifacts/none")).await;
    answer.problem(404, "not_found");
}

#[tokio::test]
async fn an_artifact_is_gone_at_its_time_of_expiry() {
    let service = Service::start().await;
    let job = finished(&service, "one").await;
    let almost = TimeDelta::weeks(1) - TimeDelta::seconds(1);
    service.clock.advance(almost);
    assert_eq!(service.get(&job.path("artifacts/out")).await.status, 200);
    service.clock.advance(TimeDelta::seconds(1));
    let answer = service.get(&job.path("artifacts/out")).await;
    let problem = answer.problem(410, "gone");
    assert!(text(&problem["detail"]).contains("expired at"));
    assert_eq!(service.get(&job.path("artifacts/more")).await.status, 200);
}

#[tokio::test]
async fn pruning_removes_the_jobs_beyond_the_policy() {
    let service = Service::start().await;
    for runner in ["one", "two", "three"] {
        finished(&service, runner).await;
        service.clock.advance(TimeDelta::seconds(1));
    }
    let path = "/v0/workflows/pipeline/prune";
    for body in [json!({"dry_run": true, "jobs": 0}), json!({"jobs": 0})] {
        let dry = body["dry_run"] == true;
        let name = if dry {
            "jobs/prune_dry_run"
        } else {
            "jobs/pruned"
        };
        let answer = service.post(path, &body).await;
        assert_eq!(answer.status, 200);
        check(&service, name, &answer);
        let listed = service.get("/v0/jobs?state=succeeded").await.expect(200);
        let left = listed["items"].as_array().map(Vec::len);
        assert_eq!(left, Some(if dry { 3 } else { 2 }));
    }
    let answer = service.post(path, &json!({})).await.expect(200);
    assert_eq!(answer["policy"], json!({}), "no policy is configured");
    let answer = service.post(path, &json!({"dryrun": true})).await;
    answer.problem(400, "invalid_request");
    let answer = service.post("/v0/workflows/none/prune", &json!({})).await;
    answer.problem(404, "workflow_not_found");
}
