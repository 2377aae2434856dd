//! Calls every operation successfully once.

use api::ROUTES;
use http::Method;
use model::UserId;
use serde_json::{Value, json};

use crate::answers::fits;
use crate::client::{Answer, Call};
use crate::entries::packed;
use crate::people::{PASSWORD, Person};
use crate::service::{Runner, Service, both_steps, offered, text};

/// The calls that have succeeded.
struct Tour {
    service: Service,
    done: Vec<(Method, String)>,
}

impl Tour {
    /// Makes a call, which must succeed.
    async fn call(
        &mut self,
        method: Method,
        path: &str,
        prepare: impl FnOnce(Call) -> Call,
    ) -> Answer {
        let call = prepare(Call::new(method.clone(), path));
        let answer = match path {
            "/v0/events" => call.send_to_stream(self.service.address).await,
            _ => call.send(self.service.address).await,
        };
        assert!(
            (200..300).contains(&answer.status),
            "{method} {path}: {} {:?}",
            answer.status,
            answer.body
        );
        self.done.push((method, path.to_owned()));
        answer
    }

    /// Makes a call as the administrator.
    async fn admin(&mut self, method: Method, path: &str) -> Answer {
        let token = self.service.admin.clone();
        self.call(method, path, |call| call.bearer(&token)).await
    }

    async fn send(&mut self, method: Method, path: &str, body: &Value) -> Answer {
        let token = self.service.admin.clone();
        self.call(method, path, |call| call.bearer(&token).json(body))
            .await
    }

    /// Plays a runner until its job has ended. Returns the job.
    async fn run(&mut self) -> String {
        let registration = self.admin(Method::POST, "/v0/runner-registrations").await;
        let asked = json!({
            "token": registration.json()["token"], "name": "one", "capacity": 1, "version": "0.1.0",
        });
        let registered = self
            .call(Method::POST, "/v0/runners/register", |call| {
                call.json(&asked)
            })
            .await;
        let runner = Runner::registered(&registered.json());
        self.call(Method::POST, "/v0/runners/hello", |_| runner.says("hello"))
            .await;
        let dispatched = self
            .send(
                Method::POST,
                "/v0/workflows/pipeline/scans/build/dispatch",
                &json!({"inputs": {"target": "all"}}),
            )
            .await;
        let job = text(&dispatched.json()["job"]["id"]);
        let polled = self
            .call(Method::POST, "/v0/messages", |_| runner.poll(1, &[]))
            .await;
        let worker = offered(&polled.json()[0]);
        let of_worker = |rest: &str| {
            (
                worker.path(rest),
                worker.call(Method::POST, &worker.path(rest)),
            )
        };
        let (path, call) = of_worker("resolve");
        self.call(Method::POST, &path, |_| call).await;
        let (path, call) = of_worker("timeline");
        let steps = json!({ "steps": both_steps() });
        self.call(Method::POST, &path, |_| call.json(&steps)).await;
        let append = worker.append(0, &["making all"]);
        self.call(Method::PATCH, &format!("/v0/jobs/{job}/logs"), |_| append)
            .await;
        let upload = worker.upload("out", packed(&[("a", "text")]));
        self.call(
            Method::PUT,
            &format!("/v0/jobs/{job}/artifacts/out"),
            |_| upload,
        )
        .await;
        let (path, call) = of_worker("complete");
        let end = json!({ "steps": both_steps(), "log_records": 1 });
        self.call(Method::POST, &path, |_| call.json(&end)).await;
        self.call(Method::POST, "/v0/runners/goodbye", |_| {
            runner.says("goodbye")
        })
        .await;
        job
    }

    /// A worker gets files of the repository.
    async fn files(&mut self) {
        let text =
            "scans: { get: { on: { dispatch: {} }, checkout: true, steps: [ { run: ls } ] } }\n";
        self.service.push(&[("workflows/files.yaml", text)]).await;
        let runner = self.service.register("two", &[], 1).await;
        let hello = runner.says("hello").json(&json!({
            "version": "0.1.0", "instance": runner.instance(), "capabilities": ["checkout"],
        }));
        self.call(Method::POST, "/v0/runners/hello", |_| hello)
            .await;
        let path = "/v0/workflows/files/scans/get/dispatch";
        self.send(Method::POST, path, &json!({})).await;
        let worker = self.service.claim(&runner, &[]).await;
        let path = worker.path("source");
        let source = worker.call(Method::GET, &path);
        let answer = self.call(Method::GET, &path, |_| source).await;
        assert_eq!(answer.header("content-type"), Some("application/x-tar"));
        let bytes = answer.body;
        assert!(
            bytes
                .windows(text.len())
                .any(|found| found == text.as_bytes())
        );
        assert!(bytes.ends_with(&[0; 1024]));
    }

    async fn read(&mut self, job: &str) {
        for path in [
            "/healthz",
            "/readyz",
            "/metrics",
            "/v0/schema/workflow.json",
            "/v0/openapi.json",
            "/v0/docs",
            "/v0/sources",
            "/v0/sources/main",
            "/v0/sources/main/tips",
            "/v0/projects",
            "/v0/projects/main",
            "/v0/workflows",
            "/v0/workflows/pipeline",
            "/v0/workflows/pipeline/revisions",
            "/v0/workflows/pipeline/revisions/1",
            "/v0/workflows/pipeline/revisions/1/diff?from=1",
            "/v0/scans",
            "/v0/workflows/pipeline/scans/build",
            "/v0/workflows/pipeline/scans/build/history",
            "/v0/workflows/pipeline/scans/build/ledger",
            "/v0/workflows/pipeline/scans/build/why",
            "/v0/schedule",
            "/v0/jobs",
            "/v0/events",
            "/v0/audit",
            "/v0/runners",
            "/v0/runners/one",
        ] {
            self.admin(Method::GET, path).await;
        }
        for rest in [
            "",
            "/context",
            "/logs",
            "/logs/search?q=all",
            "/artifacts",
            "/artifacts/out",
            "/artifacts/out/entries",
        ] {
            self.admin(Method::GET, &format!("/v0/jobs/{job}{rest}"))
                .await;
        }
        let diff = format!("/v0/jobs/{job}/artifacts/out/diff?against={job}");
        self.admin(Method::GET, &diff).await;
    }

    async fn values(&mut self) {
        let value = json!({ "value": "hunter2-hunter2" });
        for kind in ["vars/URL", "secrets/KEY"] {
            self.send(Method::PUT, &format!("/v0/projects/main/{kind}"), &value)
                .await;
        }
        for rest in ["vars", "vars/URL", "secrets", "secrets/KEY/masking"] {
            self.admin(Method::GET, &format!("/v0/projects/main/{rest}"))
                .await;
        }
        for rest in ["vars/URL", "secrets/KEY"] {
            self.admin(Method::DELETE, &format!("/v0/projects/main/{rest}"))
                .await;
        }
    }

    async fn blobs(&mut self) {
        let token = self.service.admin.clone();
        self.call(Method::PUT, "/v0/blobs/a", |call| {
            call.bearer(&token).bytes("content")
        })
        .await;
        self.admin(Method::GET, "/v0/blobs").await;
        self.admin(Method::GET, "/v0/blobs/a").await;
        self.admin(Method::HEAD, "/v0/blobs/a").await;
        let copied = json!({ "from": "a", "to": "b" });
        self.send(Method::POST, "/v0/blob-copies", &copied).await;
        let moved = json!({ "from": "b", "to": "c" });
        self.send(Method::POST, "/v0/blob-moves", &moved).await;
        let mut id = String::new();
        for (use_for, methods) in [
            ("get", &[Method::GET, Method::HEAD][..]),
            ("put", &[Method::PUT]),
        ] {
            let asked = json!({ "path": "a", "use_for": use_for, "expires_in": "1h" });
            let link = self
                .send(Method::POST, "/v0/blob-links", &asked)
                .await
                .json();
            for method in methods {
                self.call(method.clone(), &text(&link["url_path"]), |call| call)
                    .await;
            }
            id = text(&link["id"]);
        }
        self.admin(Method::GET, "/v0/blob-links").await;
        self.admin(Method::DELETE, &format!("/v0/blob-links/{id}"))
            .await;
        self.admin(Method::DELETE, "/v0/blobs/c").await;
    }

    async fn users(&mut self) {
        let ann = json!({ "name": "ann" });
        self.send(Method::POST, "/v0/users", &ann).await;
        for path in ["/v0/users", "/v0/users/ann", "/v0/me"] {
            self.admin(Method::GET, path).await;
        }
        self.admin(Method::POST, "/v0/users/ann/link").await;
        let member = "/v0/projects/main/members/ann";
        self.send(Method::PUT, member, &json!({ "role": "viewer" }))
            .await;
        self.admin(Method::GET, "/v0/projects/main/members").await;
        self.admin(Method::DELETE, member).await;
        self.send(Method::PATCH, "/v0/users/ann", &json!({ "active": false }))
            .await;
        self.admin(Method::DELETE, "/v0/users/ann").await;
    }

    async fn tokens_and_sessions(&mut self) {
        let asked = json!({ "name": "ci", "scopes": ["job:read"] });
        self.send(Method::POST, "/v0/tokens", &asked).await;
        self.admin(Method::GET, "/v0/tokens").await;
        self.send(Method::POST, "/v0/tokens/ci/regenerate", &json!({}))
            .await;
        let to = json!({ "user": "owner" });
        self.send(Method::POST, "/v0/tokens/ci/move", &to).await;
        self.admin(Method::DELETE, "/v0/tokens/ci").await;
        let asked = json!({ "token": self.service.admin });
        let session = self
            .call(Method::POST, "/v0/sessions", |call| call.json(&asked))
            .await;
        self.admin(Method::GET, "/v0/sessions").await;
        let path = format!("/v0/sessions/{}", text(&session.json()["id"]));
        self.admin(Method::DELETE, &path).await;
        self.admin(Method::POST, "/v0/sign-in-links").await;
        self.admin(Method::DELETE, "/v0/sessions").await;
        let link = self.service.invite("anna", UserId::OWNER).await;
        let asked = json!({ "link": link, "password": PASSWORD });
        let signed_in = self
            .call(Method::POST, "/v0/sessions", |call| call.json(&asked))
            .await;
        let anna = Person::of(&signed_in);
        let asked = json!({ "password": "another horse battery" });
        self.call(Method::PUT, "/v0/me/password", |call| {
            let call = call.header("cookie", &anna.session).json(&asked);
            call.header("sec-fetch-site", "same-origin")
        })
        .await;
        let asked = json!({ "device": "laptop" });
        self.call(Method::POST, "/v0/device-logins", |call| call.json(&asked))
            .await;
    }

    /// Commands that check, poll, cancel and remove.
    async fn commands(&mut self, job: &str) {
        let checked = json!({ "text": "scans: {}" });
        self.send(Method::POST, "/v0/validate", &checked).await;
        let synced = self
            .admin(Method::POST, "/v0/sources/main/sync?wait=true")
            .await;
        let tip = json!({ "commit": synced.json()["tip"]["commit"] });
        self.send(Method::POST, "/v0/sources/main/approve?wait=true", &tip)
            .await;
        let dry = json!({ "dry_run": true });
        self.send(Method::POST, "/v0/workflows/pipeline/prune", &dry)
            .await;
        for part in ["pipeline", "pipeline/scans/large"] {
            let path = format!("/v0/workflows/{part}");
            let suspended = json!({ "reason": "the machine is serviced" });
            self.send(Method::POST, &format!("{path}/suspend"), &suspended)
                .await;
            self.admin(Method::POST, &format!("{path}/resume")).await;
        }
        self.admin(Method::GET, "/v0/conditions").await;
        let condition = self.service.condition("invalid_file").await;
        let path = format!("/v0/conditions/{condition}");
        let note = json!({ "note": "it is being repaired" });
        self.send(Method::POST, &format!("{path}/acknowledge"), &note)
            .await;
        let hour = json!({ "seconds": 3600 });
        self.send(Method::POST, &format!("{path}/silence"), &hour)
            .await;
        self.service.team("?project=main").await;
        let rule = json!({ "channel": "team", "events": ["failing"] });
        self.send(Method::PUT, "/v0/rules/a?project=main", &rule)
            .await;
        self.admin(Method::GET, "/v0/rules").await;
        self.send(Method::POST, "/v0/rule-previews?project=main", &rule)
            .await;
        self.admin(Method::DELETE, "/v0/rules/a?project=main").await;
        self.service.waiting_channel().await;
        let channel = json!({ "target": { "kind": "command", "command": "page" } });
        let path = "/v0/channels/waiting";
        self.send(Method::PUT, path, &channel).await;
        for path in ["/v0/channels", path, "/v0/deliveries"] {
            self.admin(Method::GET, path).await;
        }
        for rest in ["test", "retry"] {
            self.send(Method::POST, &format!("{path}/{rest}"), &json!({}))
                .await;
        }
        self.admin(Method::DELETE, path).await;
        let create = json!({ "project": "main", "name": "shop" });
        let created = self.send(Method::POST, "/v0/callbacks", &create).await;
        let id = text(&created.json()["id"]);
        let path = format!("/v0/callbacks/{id}");
        let rules = json!({"rules": [{"type": "http", "name": "a"}]});
        self.send(Method::PUT, &format!("{path}/rules"), &rules)
            .await;
        let tokens = format!("{path}/tokens");
        let token = self.send(Method::POST, &tokens, &json!({})).await;
        let tag = text(&token.json()["tag"]);
        self.service.hear(&id, Some(&tag)).await;
        for path in [
            "/v0/callbacks",
            "/v0/callback-check",
            &path,
            &tokens,
            &format!("{path}/rules"),
            &format!("{path}/interactions"),
            &format!("{path}/interactions/1"),
        ] {
            self.admin(Method::GET, path).await;
        }
        self.admin(Method::DELETE, &format!("{tokens}/{tag}")).await;
        self.admin(Method::DELETE, &path).await;
        let create = json!({ "project": "main", "name": "xss" });
        let path = "/v0/payload-groups";
        let created = self.send(Method::POST, path, &create).await;
        let group = format!("{path}/{}", text(&created.json()["id"]));
        self.send(Method::PATCH, &group, &json!({ "variables": [] }))
            .await;
        let payload = format!("{group}/payloads/a.svg");
        let token = self.service.admin.clone();
        self.call(Method::PUT, &payload, |call| {
            call.bearer(&token).bytes("<svg>")
        })
        .await;
        for path in [path, &group, &payload] {
            self.admin(Method::GET, path).await;
        }
        self.send(Method::POST, &format!("{group}/renders"), &json!({}))
            .await;
        self.admin(Method::DELETE, &payload).await;
        self.admin(Method::DELETE, &group).await;
        let waiting = self.service.dispatch("large").await;
        self.send(
            Method::POST,
            &format!("/v0/jobs/{waiting}/cancel"),
            &json!({}),
        )
        .await;
        self.send(
            Method::POST,
            &format!("/v0/jobs/{waiting}/rerun"),
            &json!({ "current": true }),
        )
        .await;
        let artifact = format!("/v0/jobs/{job}/artifacts/out");
        self.admin(Method::DELETE, &artifact).await;
        self.admin(Method::DELETE, &format!("/v0/jobs/{job}")).await;
        let projects = json!({"projects": ["main"]});
        self.send(Method::PATCH, "/v0/runners/one", &projects).await;
        self.admin(Method::DELETE, "/v0/runners/one").await;
    }
}

#[tokio::test]
async fn every_operation_succeeds_as_the_document_says() {
    let mut tour = Tour {
        service: Service::start().await,
        done: Vec::new(),
    };
    let job = tour.run().await;
    tour.read(&job).await;
    tour.values().await;
    tour.blobs().await;
    tour.users().await;
    tour.tokens_and_sessions().await;
    tour.commands(&job).await;
    tour.files().await;
    // Pages have a separate tour.
    for route in ROUTES
        .iter()
        .filter(|route| !route.access.is_for_browsers())
    {
        let is_done = tour
            .done
            .iter()
            .any(|(method, path)| *method == route.method && fits(route.path, path));
        assert!(is_done, "{} {} is not called", route.method, route.path);
    }
}
