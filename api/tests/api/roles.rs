//! Users, roles in projects, and what one may do in which project.

use http::Method;
use model::Role;
use serde_json::{Value, json};

use crate::client::{Answer, Call};
use crate::service::{Service, text};
use crate::walk::project_scopes;

#[tokio::test]
async fn each_role_does_what_it_may() {
    let service = Service::follow(&["main", "other"]).await;
    let acts = [
        (Role::Viewer, "GET", "/v0/projects/main", json!(null)),
        (
            Role::Operator,
            "POST",
            "/v0/workflows/main%2Fpipeline/scans/large/dispatch",
            json!({}),
        ),
        (
            Role::Operator,
            "POST",
            "/v0/workflows/main%2Fpipeline/suspend",
            json!({"reason": "a test"}),
        ),
        (
            Role::Operator,
            "POST",
            "/v0/workflows/main%2Fpipeline/resume",
            json!({}),
        ),
        (
            Role::Maintainer,
            "PUT",
            "/v0/projects/main/vars/URL",
            json!({"value": "x"}),
        ),
        (
            Role::Maintainer,
            "PUT",
            "/v0/projects/main/members/viewer",
            json!({"role": "viewer"}),
        ),
    ];
    for role in Role::ALL {
        let robot = service.robot(role.name(), &[("main", role)]).await;
        let token = service.token_of(robot, project_scopes(), None).await;
        for (least, method, path, body) in &acts {
            let call = Call::new(method.parse().unwrap(), *path).bearer(&token);
            let call = if body.is_null() {
                call
            } else {
                call.json(body)
            };
            let status = call.send(service.address).await.status;
            let expected = if role >= *least { 200..=202 } else { 403..=403 };
            assert!(
                expected.contains(&status),
                "{role}: {method} {path}: {status}"
            );
        }
    }
    // A viewer who may start something elsewhere hears which role is needed here.
    let robot = service
        .robot("both", &[("main", Role::Viewer), ("other", Role::Operator)])
        .await;
    let token = service.token_of(robot, project_scopes(), None).await;
    let dispatch = Call::post("/v0/workflows/main%2Fpipeline/scans/large/dispatch");
    let answer = dispatch
        .bearer(&token)
        .json(&json!({}))
        .send(service.address)
        .await;
    let problem = answer.problem(403, "forbidden");
    assert!(
        text(&problem["detail"]).contains("role `operator`"),
        "{problem}"
    );
}

async fn member(service: &Service, method: Method, user: &str, body: Option<Value>) -> Answer {
    let call = Call::new(method, format!("/v0/projects/main/members/{user}"));
    let call = match body {
        Some(body) => call.json(&body),
        None => call,
    };
    service.admin(call).await
}

#[tokio::test]
async fn a_removed_role_ends_open_streams_and_uploads() {
    let service = Service::follow(&["main", "other"]).await;
    let robot = service
        .robot(
            "kim",
            &[("main", Role::Operator), ("other", Role::Operator)],
        )
        .await;
    let token = service.token_of(robot, project_scopes(), None).await;
    let job = service.dispatch("large").await;
    let open = |path: String| Call::get(path).bearer(&token).open(service.address);
    let mut log = open(format!("/v0/jobs/{job}/logs?follow=true")).await;
    let mut events = open("/v0/events".to_owned()).await;
    let held = open(format!("/v0/jobs/{job}?wait=true"));
    let removed = member(&service, Method::DELETE, "kim", None);
    let (held, removed) = tokio::join!(held, removed);
    assert_eq!(removed.status, 204);
    assert!([403, 404].contains(&held.status), "{}", held.status);
    assert!(log.breaks_off().await);
    events.rest().await;
    let read = |path: &str| Call::get(path.to_owned()).bearer(&token);
    let job = read(&format!("/v0/jobs/{job}")).send(service.address).await;
    assert_eq!(job.status, 404);
    let listed = read("/v0/projects").send(service.address).await.expect(200);
    assert!(!listed.to_string().contains("\"main\""), "{listed}");
}

#[tokio::test]
async fn a_token_ends_with_the_account_of_its_owner_and_does_not_come_back() {
    let service = Service::start().await;
    let asked = json!({"name": "robot", "service": true, "roles": {"main": "operator"}});
    service.post("/v0/users", &asked).await.expect(201);
    let asked = json!({"name": "ci", "scopes": ["project:read", "job:read"], "user": "robot"});
    let made = service.post("/v0/tokens", &asked).await.expect(201);
    assert_eq!(made["user"], "robot");
    let secret = text(&made["secret"]);
    let me = async || {
        Call::get("/v0/me")
            .bearer(&secret)
            .send(service.address)
            .await
    };
    let shown = me().await.expect(200);
    assert_eq!(shown["user"], "robot");
    assert_eq!(shown["roles"], json!({"main": "operator"}));
    assert_eq!(shown["scopes"], json!(["project:read", "job:read"]));
    for active in [false, true] {
        let call = Call::new(Method::PATCH, "/v0/users/robot").json(&json!({"active": active}));
        service.admin(call).await.expect(200);
        assert_eq!(me().await.status, 401);
    }
    let all = service.get("/v0/tokens?user=all").await.expect(200);
    assert!(!all.to_string().contains("robot"));
    let gone = Call::new(Method::DELETE, "/v0/users/robot");
    assert_eq!(service.admin(gone).await.status, 204);
    let again = json!({"name": "robot", "service": true, "roles": {"main": "viewer"}});
    service
        .post("/v0/users", &again)
        .await
        .problem(409, "name_taken");
}

#[tokio::test]
async fn an_administrator_moves_tokens_and_people_see_only_their_own() {
    let service = Service::start().await;
    let robot = service.robot("robot", &[("main", Role::Maintainer)]).await;
    let token = service.token_of(robot, project_scopes(), None).await;
    let asked = json!({"name": "deploy", "scopes": ["job:read"]});
    let made = service.post("/v0/tokens", &asked).await.expect(201);
    let tokens = async |query: &str| {
        let call = Call::get(format!("/v0/tokens{query}")).bearer(&token);
        call.send(service.address).await.expect(200).to_string()
    };
    for query in ["", "?user=all", "?user=owner"] {
        assert!(!tokens(query).await.contains("deploy"), "{query}");
    }
    let path = format!("/v0/tokens/{}", text(&made["id"]));
    for call in [
        Call::new(Method::DELETE, path.clone()),
        Call::post(format!("{path}/regenerate")).json(&json!({})),
        Call::post(format!("{path}/move")).json(&json!({"user": "robot"})),
        Call::post("/v0/tokens")
            .json(&json!({"name": "x", "scopes": ["job:read"], "user": "owner"})),
    ] {
        let status = call.bearer(&token).send(service.address).await.status;
        assert!([403, 404].contains(&status), "{status}");
    }
    let moved = json!({"user": "robot"});
    let moved = service
        .post(&format!("{path}/move"), &moved)
        .await
        .expect(200);
    assert_eq!(moved["user"], "robot");
    assert!(tokens("").await.contains("deploy"));
}

#[tokio::test]
async fn a_maintainer_invites_to_the_own_projects_only() {
    let service = Service::follow(&["main", "other"]).await;
    let robot = service
        .robot(
            "kim",
            &[("main", Role::Maintainer), ("other", Role::Operator)],
        )
        .await;
    let token = service.token_of(robot, project_scopes(), None).await;
    let invite = async |body: Value| {
        let call = Call::post("/v0/users").bearer(&token).json(&body);
        call.send(service.address).await
    };
    let made = invite(json!({"name": "lee", "roles": {"main": "maintainer"}}))
        .await
        .expect(201);
    assert!(text(&made["link"]["url_path"]).starts_with("/welcome/evu_"));
    assert_eq!(made["user"]["state"], "invited");
    for refused in [
        json!({"name": "a", "administrator": true}),
        json!({"name": "b"}),
        json!({"name": "c", "roles": {"main": "viewer", "other": "viewer"}}),
        json!({"name": "d", "service": true, "roles": {"main": "viewer"}}),
    ] {
        let status = invite(refused.clone()).await.status;
        assert!([403, 404].contains(&status), "{refused}: {status}");
    }
    let looks_alike = invite(json!({"name": "Lee", "roles": {"main": "viewer"}})).await;
    looks_alike.problem(400, "invalid_request");
    let users = service.get("/v0/users").await.expect(200);
    assert_eq!(users["items"].as_array().unwrap().len(), 3, "{users}");
    // The list of all users, and other people, are for administrators.
    for path in ["/v0/users", "/v0/users/lee"] {
        let status = Call::get(path)
            .bearer(&token)
            .send(service.address)
            .await
            .status;
        assert!([403, 404].contains(&status), "{path}: {status}");
    }
    Call::get("/v0/users/kim")
        .bearer(&token)
        .send(service.address)
        .await
        .expect(200);
}

#[tokio::test]
async fn the_last_administrator_stays() {
    let service = Service::start().await;
    for change in [json!({"active": false}), json!({"administrator": false})] {
        let call = Call::new(Method::PATCH, "/v0/users/owner").json(&change);
        service.admin(call).await.problem(409, "last_admin");
    }
    let gone = Call::new(Method::DELETE, "/v0/users/owner");
    service.admin(gone).await.problem(409, "last_admin");
}
