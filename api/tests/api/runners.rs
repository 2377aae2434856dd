//! Runners as people see them: their connection, and the jobs that take their slots.

use http::Method;
use model::Scope;
use serde_json::{Value, json};

use crate::answers::check;
use crate::client::{Answer, Call};
use crate::service::{Runner, Service, text};

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

/// Makes a registration token with this body, and registers a runner with it.
async fn registered(service: &Service, name: &str, registration: Value) -> Value {
    let call = Call::post("/v0/runner-registrations").json(&registration);
    let made = service.admin(call).await.expect(201);
    join(service, &made, json!({"name": name}))
        .await
        .expect(201)
}

async fn join(service: &Service, registration: &Value, more: Value) -> Answer {
    let mut body = json!({"token": registration["token"], "capacity": 1, "version": "0.1.0"});
    let members = more.as_object().unwrap().clone();
    body.as_object_mut().unwrap().extend(members);
    let call = Call::post("/v0/runners/register").json(&body);
    call.send(service.address).await
}

#[tokio::test]
async fn a_runner_of_other_projects_does_not_exist() {
    let service = Service::follow(&["main", "other"]).await;
    let own = registered(
        &service,
        "own",
        json!({"projects": ["main"], "labels": ["vault"]}),
    )
    .await;
    assert_eq!(
        (&own["projects"], &own["labels"]),
        (&json!(["main"]), &json!(["vault"]))
    );
    registered(&service, "shared", json!({"projects": ["main", "other"]})).await;
    let all = registered(&service, "all", json!({})).await;
    assert_eq!(all.get("projects"), None);

    let scopes = [Scope::RunnerRead, Scope::RunnerWrite, Scope::JobRead];
    let stranger = service.limited(scopes, &["other"]).await;
    let send = async |call: Call| call.bearer(&stranger).send(service.address).await;
    let listed = send(Call::get("/v0/runners")).await.expect(200);
    let runners = listed["items"].as_array().unwrap();
    let names: Vec<_> = runners.iter().map(|runner| &runner["name"]).collect();
    assert_eq!(names, ["all", "shared"]);
    assert_eq!(runners[1]["projects"], json!(["other"]));
    assert_eq!(runners[1]["has_other_projects"], true);
    let limit = |path: &str| {
        let call = Call::new(Method::PATCH, path.to_owned());
        call.json(&json!({"projects": ["other"]}))
    };
    let id = text(&own["id"]);
    for path in ["/v0/runners/own".to_owned(), format!("/v0/runners/{id}")] {
        let get = send(Call::get(path.clone())).await;
        get.problem(404, "not_found");
        send(limit(&path)).await.problem(404, "not_found");
        let delete = Call::new(Method::DELETE, path);
        send(delete).await.problem(404, "not_found");
    }
    let jobs = send(Call::get("/v0/jobs?runner=own")).await;
    let unknown = send(Call::get("/v0/jobs?runner=nobody")).await;
    assert_eq!(jobs.status, unknown.status);

    // What others also use is seen, but not changed.
    for name in ["shared", "all"] {
        let path = format!("/v0/runners/{name}");
        send(Call::get(path.clone())).await.expect(200);
        send(limit(&path)).await.problem(403, "forbidden");
        let delete = Call::new(Method::DELETE, path);
        send(delete).await.problem(403, "forbidden");
    }
    let make = |body: Value| Call::post("/v0/runner-registrations").json(&body);
    let others = send(make(json!({"projects": ["main"]}))).await;
    others.problem(404, "project_not_found");
    let made = send(make(json!({}))).await.expect(201);
    assert_eq!(made["projects"], json!(["other"]));
    let taken = join(&service, &made, json!({"name": "own", "replace": true})).await;
    let taken = taken.problem(409, "name_taken");
    assert_eq!(taken["detail"], "the runner name `own` is taken");
    assert!(!taken.to_string().contains("main"), "{taken}");

    // The owner of both gives it another project.
    let limited = service.admin(limit("/v0/runners/own")).await.expect(200);
    assert_eq!(limited["projects"], json!(["other"]));
    send(Call::get("/v0/runners/own")).await.expect(200);
}

/// Requests as a runner and a command sent them before runners had projects.
#[tokio::test]
async fn recorded_requests_from_before_projects_get_their_answers() {
    let service = Service::start().await;
    let job = service.dispatch("build").await;
    let made = service.admin(Call::post("/v0/runner-registrations")).await;
    let token = text(&made.expect(201)["token"]);
    let send = async |path: &str, token: Option<&str>, body: String| {
        let call = Call::post(path).header("content-type", "application/json");
        let call = match token {
            Some(token) => call.bearer(token),
            None => call,
        };
        let answer = call.bytes(body).send(service.address).await;
        assert!((200..300).contains(&answer.status), "{}", answer.text());
        answer
    };
    let register = format!(
        r#"{{"token":"{token}","name":"box","labels":[],"exclusive":false,"capacity":2,"version":"0.1.0","replace":false}}"#
    );
    let registered = send("/v0/runners/register", None, register).await.json();
    let session = text(&registered["token"]);
    let instance = "10000000-0000-4000-8000-000000000000";
    let hello =
        format!(r#"{{"version":"0.1.0","instance":"{instance}","capabilities":["checkout"]}}"#);
    send("/v0/runners/hello", Some(&session), hello).await;
    let poll = format!(r#"{{"instance":"{instance}","number":1,"capacity":2,"holding":[]}}"#);
    let messages = send("/v0/messages", Some(&session), poll).await.json();
    let offer = &messages[0]["job_assigned"];
    assert_eq!(offer["id"], json!(job));
    let path = format!("/v0/jobs/{job}/resolve");
    send(&path, Some(&text(&offer["token"])), String::new()).await;
}

#[tokio::test]
async fn the_answers_about_runners_are_unchanged() {
    let service = Service::start().await;
    service.claimed("one").await;
    let answer = service.get("/v0/runners/one").await;
    answer.expect(200);
    check(&service, "runners/runner", &answer);
}
