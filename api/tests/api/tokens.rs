//! Tokens: regenerated, revoked, limited to projects.

use api::{Access, ROUTES};
use chrono::TimeDelta;
use http::Method;
use model::Scope;
use serde_json::{Value, json};

use crate::client::{Answer, Call, Raw};
use crate::service::{Service, text};

const NOBODYS_JOB: &str = "01939c5e-0000-7000-8000-000000000000";

async fn create(service: &Service, body: Value) -> (String, String) {
    let created = service.post("/v0/tokens", &body).await.expect(201);
    (text(&created["id"]), text(&created["secret"]))
}

async fn regenerate(service: &Service, token: &str, body: Value) -> Answer {
    let path = format!("/v0/tokens/{token}/regenerate");
    service.post(&path, &body).await
}

async fn lists_jobs(service: &Service, secret: &str) -> bool {
    let answer = Call::get("/v0/jobs").bearer(secret).send(service.address);
    match answer.await.status {
        200 => true,
        401 => false,
        status => panic!("{status}"),
    }
}

#[tokio::test]
async fn a_regenerated_token_has_a_new_secret_of_the_same_form() {
    let service = Service::start().await;
    let asked = json!({"name": "ci", "scopes": ["job:read"]});
    let (id, first) = create(&service, asked).await;
    let answer = regenerate(&service, &id, json!({})).await.expect(200);
    let second = text(&answer["secret"]);
    assert_eq!((second.len(), &second[..4]), (first.len(), "evs_"));
    assert_eq!(answer["id"], json!(id));
    assert!(!lists_jobs(&service, &first).await && lists_jobs(&service, &second).await);

    // During the overlap both secrets are accepted.
    let overlap = json!({"overlap_seconds": 60});
    let answer = regenerate(&service, "ci", overlap).await.expect(200);
    let third = text(&answer["secret"]);
    assert!(lists_jobs(&service, &second).await && lists_jobs(&service, &third).await);
    service.clock.advance(TimeDelta::seconds(60));
    assert!(!lists_jobs(&service, &second).await && lists_jobs(&service, &third).await);
    for overlap in [json!(86_401), json!(u64::MAX)] {
        let refused = regenerate(&service, &id, json!({"overlap_seconds": overlap})).await;
        let body = refused.problem(400, "invalid_request");
        assert_eq!(body["errors"][0]["field"], "overlap_seconds");
    }
}

#[tokio::test]
async fn a_revoked_token_is_refused_and_its_open_streams_end() {
    let service = Service::start().await;
    let job = service.dispatch("large").await;
    let asked = json!({"name": "ci", "scopes": ["job:read"]});
    let (id, secret) = create(&service, asked.clone()).await;
    let open = |path: String| Call::get(path).bearer(&secret).open(service.address);
    let mut followed = open(format!("/v0/jobs/{job}/logs?follow=true")).await;
    let held = open(format!("/v0/jobs/{job}?wait=true"));
    let revoke = async {
        let revoked = service.admin(Call::new(Method::DELETE, format!("/v0/tokens/{id}")));
        assert_eq!(revoked.await.status, 204);
    };
    let (held, ()) = tokio::join!(held, revoke);
    assert_eq!(held.status, 401);
    assert!(followed.breaks_off().await);
    assert!(!lists_jobs(&service, &secret).await);

    let again = service.admin(Call::new(Method::DELETE, format!("/v0/tokens/{id}")));
    again.await.problem(404, "not_found");
    // Two tokens with the same name have different ids.
    create(&service, asked.clone()).await;
    create(&service, asked).await;
    let named = service.admin(Call::new(Method::DELETE, "/v0/tokens/ci"));
    named.await.problem(409, "ambiguous_name");
}

#[tokio::test]
async fn a_token_cannot_manage_a_token_with_more_rights() {
    let service = Service::follow(&["main", "other"]).await;
    let weak = [Scope::TokenWrite, Scope::JobRead];
    let weak = service.limited(weak, &["main"]).await;
    let (strong, _) = create(&service, json!({"name": "strong", "scopes": ["job:read"]})).await;
    let asked = json!({"name": "weak", "scopes": ["job:read"], "projects": ["main"]});
    let (managed, _) = create(&service, asked).await;
    let call = |method, path: String| Call::new(method, path).bearer(&weak);
    let listed = call(Method::GET, "/v0/tokens".to_owned());
    let listed = listed.send(service.address).await.expect(200);
    let names: Vec<_> = listed["items"]
        .as_array()
        .unwrap()
        .iter()
        .map(|it| text(&it["name"]))
        .collect();
    assert_eq!(names, ["limited", "weak"]);
    for (token, revoked, regenerated) in [(&strong, 404, 404), (&managed, 204, 200)] {
        let path = format!("/v0/tokens/{token}/regenerate");
        let answer = call(Method::POST, path)
            .json(&json!({}))
            .send(service.address);
        assert_eq!(answer.await.status, regenerated);
        let answer = call(Method::DELETE, format!("/v0/tokens/{token}")).send(service.address);
        assert_eq!(answer.await.status, revoked);
    }
    // A token that it makes is limited to its own projects.
    for (asked, status) in [
        (json!({"name": "a", "scopes": ["job:read"]}), 201),
        (
            json!({"name": "b", "scopes": ["job:read"], "projects": ["other"]}),
            404,
        ),
        (
            json!({"name": "c", "scopes": ["dispatch"], "projects": ["main"]}),
            403,
        ),
    ] {
        let made = call(Method::POST, "/v0/tokens".to_owned()).json(&asked);
        let made = made.send(service.address).await;
        assert_eq!(made.status, status, "{asked}");
        if status == 201 {
            assert_eq!(made.json()["projects"], json!(["main"]));
        }
    }
    let admin = json!({"name": "d", "scopes": ["admin"], "projects": ["main"]});
    let refused = service.post("/v0/tokens", &admin).await;
    assert_eq!(
        refused.problem(400, "invalid_request")["errors"][0]["field"],
        "projects"
    );
}

#[tokio::test]
async fn the_file_of_the_first_token_is_removed_when_its_secret_ends() {
    let service = Service::start().await;
    service.handle.state().settled().await.unwrap();
    let file = service.root().join("initial-admin-token");
    let first = std::fs::read_to_string(&file).unwrap();
    assert!(lists_jobs(&service, first.trim()).await);
    // The file belongs to no other token.
    create(&service, json!({"name": "ci", "scopes": ["admin"]})).await;
    regenerate(&service, "ci", json!({})).await.expect(200);
    service.handle.state().settled().await.unwrap();
    assert!(file.exists());
    regenerate(&service, "initial%20admin", json!({}))
        .await
        .expect(200);
    service.handle.state().settled().await.unwrap();
    assert!(!file.exists() && !lists_jobs(&service, first.trim()).await);
}

#[tokio::test]
async fn the_last_admin_token_cannot_be_revoked() {
    let service = Service::start().await;
    let revoke = |name| service.admin(Call::new(Method::DELETE, format!("/v0/tokens/{name}")));
    revoke("initial%20admin").await.expect(204);
    revoke("tester").await.problem(409, "last_admin");
    create(&service, json!({"name": "another", "scopes": ["admin"]})).await;
    revoke("tester").await.expect(204);
}

#[tokio::test]
async fn the_day_of_the_last_use_and_a_near_expiry_are_shown() {
    let service = Service::start().await;
    let asked = json!({"name": "ci", "scopes": ["job:read"], "expires_in_seconds": 8 * 86_400});
    let (_, secret) = create(&service, asked).await;
    let shown = async || {
        let listed = service.get("/v0/tokens").await.expect(200);
        let mut tokens = listed["items"].as_array().unwrap().iter();
        tokens.find(|token| token["name"] == "ci").unwrap().clone()
    };
    let token = shown().await;
    assert_eq!(
        (token.get("last_used"), token.get("expires_soon")),
        (None, None)
    );
    assert!(lists_jobs(&service, &secret).await);
    service.use_is_noted("ci").await;
    assert_eq!(shown().await["last_used"], "2026-11-20");
    service.clock.advance(TimeDelta::days(2));
    assert_eq!(shown().await["expires_soon"], true);
}

#[tokio::test]
async fn a_token_expires_after_a_quarter_by_default() {
    let service = Service::start().await;
    let asked = json!({"name": "ci", "scopes": ["job:read"]});
    let (_, secret) = create(&service, asked).await;
    let asked = json!({"name": "forever", "scopes": ["job:read"], "never_expires": true});
    let (_, endless) = create(&service, asked).await;
    service
        .clock
        .advance(TimeDelta::days(90) - TimeDelta::seconds(1));
    assert!(lists_jobs(&service, &secret).await);
    service.clock.advance(TimeDelta::seconds(1));
    assert!(!lists_jobs(&service, &secret).await);
    assert!(lists_jobs(&service, &endless).await);
    let both = json!({
        "name": "a", "scopes": ["job:read"], "never_expires": true, "expires_in_seconds": 60
    });
    let call = Call::post("/v0/tokens").bearer(&endless).json(&both);
    call.send(service.address).await.problem(403, "forbidden");
    let refused = service.admin(Call::post("/v0/tokens").json(&both)).await;
    let problem = refused.problem(400, "invalid_request");
    assert_eq!(problem["errors"][0]["field"], "never_expires");
}

#[tokio::test]
async fn what_a_token_makes_ends_no_later_than_the_token() {
    let service = Service::start().await;
    let asked = json!({
        "name": "maker", "scopes": ["token:write", "job:read"], "expires_in_seconds": 86_400
    });
    let maker = service.post("/v0/tokens", &asked).await.expect(201);
    let (end, secret) = (&maker["expires_at"], text(&maker["secret"]));
    let post = |path: &str, body: Value| {
        let call = Call::post(path).bearer(&secret).json(&body);
        call.send(service.address)
    };
    for (name, asked) in [
        ("expires_in_seconds", json!(90 * 86_400)),
        ("never_expires", json!(true)),
        ("projects", json!(null)),
    ] {
        let body = json!({"name": name, "scopes": ["job:read"], name: asked});
        let made = post("/v0/tokens", body).await.expect(201);
        assert_eq!(&made["expires_at"], end, "{name}");
    }
    let asked = json!({"name": "brief", "scopes": ["job:read"], "expires_in_seconds": 60});
    let made = post("/v0/tokens", asked).await.expect(201);
    assert!(text(&made["expires_at"]) < text(end), "{made}");
    let longer = json!({"expires_in_seconds": 90 * 86_400});
    for token in ["brief", "maker"] {
        let path = format!("/v0/tokens/{token}/regenerate");
        let renewed = post(&path, longer.clone()).await.expect(200);
        assert_eq!(&renewed["expires_at"], end, "{token}");
    }
}

/// Objects of another project get the same answers as missing objects.
#[tokio::test]
async fn objects_of_another_project_do_not_exist_for_a_token() {
    let service = Service::follow(&["main", "other"]).await;
    service.callback("main").await;
    service.payload_group("main").await;
    let (_, claimed) = service.claimed("one").await;
    claimed
        .upload("out", b"zip")
        .send(service.address)
        .await
        .expect(200);
    service.complete(&claimed, 0).await.expect(200);
    service.set("vars/URL", "1").await.expect(200);
    service.set("secrets/KEY", "hunter2").await.expect(200);
    for (path, body) in [
        (
            "channels/a",
            json!({"target": {"kind": "command", "command": "page"}}),
        ),
        ("rules/a", json!({"channel": "a"})),
    ] {
        let set = Call::new(Method::PUT, format!("/v0/{path}?project=main"));
        service.admin(set.json(&body)).await.expect(200);
    }
    let scopes: Vec<Scope> = Scope::ALL
        .iter()
        .copied()
        .filter(|scope| !scope.is_of_installation())
        .collect();
    let (of_main, of_other) = (
        service.limited(scopes.clone(), &["main"]).await,
        service.limited(scopes, &["other"]).await,
    );
    let mut walked = 0;
    for route in ROUTES.iter() {
        let Access::User(_, scope) = route.access else {
            continue;
        };
        // The answer to a HEAD has no body to compare.
        let is_compared = route.method != Method::HEAD;
        if scope.is_of_installation() || route.path.contains("{token}") || !is_compared {
            continue;
        }
        let path = |job: &str, project: &str, workflow: &str| {
            let path = route
                .path
                .replace("{job}", job)
                .replace("{workflow}", workflow);
            let path = path
                .replace("{source}", project)
                .replace("{project}", project);
            let path = path.replace("{scan}", "build").replace("{artifact}", "out");
            let path = path.replace("{var}", "URL").replace("{secret}", "KEY");
            let owner = format!("?project={project}");
            let path = match path.contains("{rule}") || path.contains("{channel}") {
                true => path.replace("{rule}", "a").replace("{channel}", "a") + &owner,
                false => path,
            };
            path.replace("{*path}", &format!("a{owner}"))
        };
        let real = path(&claimed.id, "main", "main%2Fpipeline");
        let made_up = path(NOBODYS_JOB, "nobody", "nobody%2Fpipeline");
        let send = async |path: &str, token: &str| {
            let mut call = Call::new(route.method.clone(), path).bearer(token);
            if route.method == Method::PUT {
                call = call.json(&json!({"value": "x"}));
            } else if route.method == Method::PATCH {
                call = call.json(&json!({"projects": ["other"]}));
            } else if route.path.ends_with("/prune") {
                call = call.json(&json!({"dry_run": true}));
            }
            call.send(service.address).await
        };
        if !route.path.contains('{') {
            if route.method == Method::GET
                && !matches!(
                    route.path,
                    "/v0/runners"
                        | "/v0/tokens"
                        | "/v0/events"
                        | "/v0/blobs"
                        | "/v0/blob-links"
                        | "/v0/deliveries"
                        | "/v0/callback-check"
                )
            {
                let own = send(&real, &of_main).await.expect(200).to_string();
                let others = send(&real, &of_other).await.expect(200).to_string();
                assert!(
                    own.contains("main") && !others.contains("\"main"),
                    "{real}: {others}"
                );
                walked += 1;
            }
            continue;
        }
        let (hidden, missing) = (
            send(&real, &of_other).await,
            send(&made_up, &of_other).await,
        );
        let shape = |answer: &Answer| {
            let code = text(&answer.json()["code"]);
            assert!(code.ends_with("not_found"), "{code}");
            let mut body = answer.problem(404, &code);
            body["request_id"].take();
            let body = body.to_string();
            let body = body.replace(&claimed.id, "ID").replace(NOBODYS_JOB, "ID");
            body.replace("nobody", "main")
        };
        assert_eq!(shape(&hidden), shape(&missing), "{} {real}", route.method);
        walked += 1;
    }
    assert!(walked > 20, "{walked}");
    // The objects are unchanged, and a token of their project still sees them.
    let own = Call::get(format!("/v0/jobs/{}", claimed.id)).bearer(&of_main);
    own.send(service.address).await.expect(200);
}

#[tokio::test]
async fn a_body_that_arrives_after_the_end_of_its_token_has_no_effect() {
    let service = Service::start().await;
    let asked = json!({"name": "ci", "scopes": ["token:write", "project:write", "blob"]});
    let (_, secret) = create(&service, asked).await;
    let mut waiting = Vec::new();
    for (method, path, body) in [
        (
            "POST",
            "/v0/tokens",
            r#"{"name":"late","scopes":["token:write"]}"#,
        ),
        ("PUT", "/v0/projects/main/vars/URL", r#"{"value":"late"}"#),
        ("PUT", "/v0/blobs/late", "late"),
    ] {
        let length = body.len();
        let head = format!(
            "{method} {path} HTTP/1.1\r\nhost: x\r\nauthorization: Bearer {secret}\r\n\
             content-type: application/json\r\ncontent-length: {length}\r\nexpect: 100-continue\r\n\r\n"
        );
        let mut raw = Raw::send(service.address, head).await;
        // The token is accepted, and the daemon asks for the body.
        assert!(raw.head().await.starts_with("HTTP/1.1 100"));
        waiting.push((raw, body));
    }
    let revoke = service.admin(Call::new(Method::DELETE, "/v0/tokens/ci"));
    revoke.await.expect(204);
    for (mut raw, body) in waiting {
        raw.write(body).await;
        let head = raw.head().await;
        assert!(head.starts_with("HTTP/1.1 401"), "{head}");
    }
    let listed = service.get("/v0/tokens").await.expect(200).to_string();
    assert!(!listed.contains("late"), "{listed}");
    service
        .get("/v0/projects/main/vars/URL")
        .await
        .problem(404, "not_found");
}

#[tokio::test]
async fn a_replaced_secret_cannot_manage_tokens() {
    let service = Service::start().await;
    let asked = json!({"name": "ci", "scopes": ["token:write"], "expires_in_seconds": 60});
    let (_, former) = create(&service, asked).await;
    let overlap = json!({"overlap_seconds": 60});
    regenerate(&service, "ci", overlap).await.expect(200);
    let list = Call::get("/v0/tokens").bearer(&former);
    list.send(service.address).await.expect(200);
    let again = Call::post("/v0/tokens/ci/regenerate")
        .bearer(&former)
        .json(&json!({}));
    again.send(service.address).await.problem(403, "forbidden");
    // An expired token can only get a new secret together with a new lifetime.
    service.clock.advance(TimeDelta::seconds(60));
    let refused = regenerate(&service, "ci", json!({})).await;
    let body = refused.problem(400, "invalid_request");
    assert_eq!(body["errors"][0]["field"], "expires_in_seconds");
    let longer = json!({"expires_in_seconds": 60});
    regenerate(&service, "ci", longer).await.expect(200);
}

#[tokio::test]
async fn the_reason_that_a_job_waits_for_names_no_jobs_of_other_projects() {
    let service = Service::follow(&["main", "other"]).await;
    let (_, busy) = service.claimed("one").await;
    let of_other = service.limited([Scope::JobRead], &["other"]).await;
    let path = "/v0/workflows/other%2Fpipeline/scans/build/dispatch";
    let inputs = json!({"inputs": {"target": "all"}});
    let answer = service.post(path, &inputs).await.expect(202);
    let job = text(&answer["job"]["id"]);
    let shown = service.get(&format!("/v0/jobs/{job}")).await.expect(200);
    assert!(shown["waiting"].to_string().contains(&busy.id), "{shown}");
    let shown = Call::get(format!("/v0/jobs/{job}")).bearer(&of_other);
    let shown = shown.send(service.address).await.expect(200);
    assert_eq!(
        shown["waiting"]["message"],
        "the only runner that can take it is busy with another job"
    );
}
