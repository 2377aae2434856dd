//! Runners as people see them: their connection, and the jobs that take their slots.

use model::Scope;
use serde_json::{Value, json};

use crate::answers::check;
use crate::client::Call;
use crate::service::{Runner, Service};

/// The only runner, as the list and its own route show it to a token.
async fn shown(service: &Service, runner: &Runner, token: &str) -> (Value, Value) {
    let ask = |path: String| Call::get(path).bearer(token).send(service.address);
    let list = ask("/v0/runners".to_owned()).await.expect(200);
    let by_name = ask("/v0/runners/one".to_owned()).await.expect(200);
    let by_id = ask(format!("/v0/runners/{}", runner.id)).await.expect(200);
    assert_eq!(by_name, by_id);
    (list["items"][0].clone(), by_name)
}

#[tokio::test]
async fn a_runner_shows_the_jobs_that_take_its_slots() {
    let service = Service::follow(&["main", "other"]).await;
    let admin = service.admin.clone();
    let runner = service.register("one", &[], 2).await;
    let (listed, one) = shown(&service, &runner, &admin).await;
    assert_eq!(listed, one);
    assert_eq!(
        (&one["connected"], &one["taken"]),
        (&json!(false), &json!(0))
    );
    assert_eq!(one.get("heard_at"), None);

    service.dispatch("build").await;
    let job = service.claim(&runner, &[]).await;
    let (listed, one) = shown(&service, &runner, &admin).await;
    assert_eq!(listed, one);
    assert_eq!(
        (&one["connected"], &one["taken"]),
        (&json!(true), &json!(1))
    );
    assert_eq!(one["jobs"][0]["id"], json!(job.id));
    assert_eq!(one["jobs"][0]["state"], "running");

    // A viewer of another project learns only that a slot is taken.
    let stranger = service.limited([Scope::RunnerRead], &["other"]).await;
    let (_, one) = shown(&service, &runner, &stranger).await;
    assert_eq!(
        (&one["taken"], &one["jobs"], &one["running"]),
        (&json!(1), &json!([]), &json!([]))
    );

    // A finished job takes its slot until the runner drops it.
    service
        .admin(Call::post(format!("/v0/jobs/{}/cancel", job.id)))
        .await
        .expect(200);
    service.poll(&runner, 2, &[&job.id]).await;
    let (listed, one) = shown(&service, &runner, &admin).await;
    assert_eq!((&listed["taken"], &listed["jobs"]), (&json!(1), &json!([])));
    assert_eq!(one["jobs"][0]["id"], json!(job.id));
    assert_eq!(one["jobs"][0]["state"], "cancelled");
    let (_, one) = shown(&service, &runner, &stranger).await;
    assert_eq!((&one["taken"], &one["jobs"]), (&json!(1), &json!([])));

    service
        .get("/v0/runners/two")
        .await
        .problem(404, "not_found");
}

#[tokio::test]
async fn the_answers_about_runners_are_unchanged() {
    let service = Service::start().await;
    service.claimed("one").await;
    let answer = service.get("/v0/runners/one").await;
    answer.expect(200);
    check(&service, "runners/runner", &answer);
}
