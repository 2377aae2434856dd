//! A valid request of every route that reads a body, parameters or conditions.

use std::collections::BTreeMap;

use api::{ROUTES, Route};
use http::Method;
use serde_json::{Value, json};

use super::{Sample, is_of, is_read, pairs};
use crate::client::Call;
use crate::entries::packed;
use crate::service::{Claimed, Runner, Service, both_steps, offered, text};

/// A service, and the objects that the sample requests name.
pub(super) struct Fixture {
    pub(super) service: Service,
    finished: String,
    /// A runner that only executes.
    executor: Runner,
    worker: Claimed,
    /// The number of records in the log of the worker's job.
    log_records: Value,
    /// A runner that only polls. It holds a finished job, so every poll is answered at once.
    poller: Runner,
    cancelled: String,
    registration: String,
    link: String,
    /// The secret of a device of the owner.
    device: String,
    condition: String,
    /// A callback server with interactions, and its tag.
    callback: String,
    tag: String,
    /// A payload group with the payload `a.svg`.
    group: String,
    /// The commit of the source's tip.
    tip: String,
    /// The cursor of the second page of a list, by the path of its route.
    cursors: BTreeMap<&'static str, String>,
}

impl Fixture {
    pub(super) async fn new() -> Self {
        let service = Service::start().await;
        let (poller, cancelled) = service.claimed("poller").await;
        let cancel = service.admin(Call::post(cancelled.path("cancel"))).await;
        cancel.expect(200);
        let executor = service.register("executor", &[], 1).await;
        service.dispatch("build").await;
        let finished = service.claim(&executor, &[]).await;
        let said = finished.append(0, &["making all", "done"]);
        said.send(service.address).await.expect(200);
        let zip = packed(&[("one", "1"), ("two", "2")]);
        let stored = finished.upload("out", zip);
        stored.send(service.address).await.expect(200);
        service.complete(&finished, 2).await.expect(200);
        service.dispatch("build").await;
        let worker = service.claim(&executor, &[]).await;
        service.set("vars/URL", "a").await.expect(200);
        service.set("secrets/KEY", "hunter2").await.expect(200);
        service
            .post("/v0/users", &json!({"name": "invited"}))
            .await
            .expect(201);
        let link = json!({"path": "linked", "use_for": "put", "expires_in": "1h"});
        let link = service.post("/v0/blob-links?project=main", &link).await;
        let source = service.get("/v0/sources/main").await.expect(200);
        let callback = service.callback("main").await;
        let tag = service.callback_tag(&callback).await;
        service.hear(&callback, Some(&tag)).await;
        let group = service.payload_group("main").await;
        let mut fixture = Self {
            finished: finished.id,
            executor,
            worker,
            log_records: json!(0),
            poller,
            cancelled: cancelled.id,
            registration: service.registration().await,
            link: text(&link.expect(201)["url_path"]),
            device: service.owners_device().await,
            condition: service.condition("invalid_file").await,
            tip: text(&source["tip"]["commit"]),
            callback,
            tag,
            group,
            cursors: BTreeMap::new(),
            service,
        };
        fixture.store_blob().await;
        fixture.service.waiting_channel().await;
        fixture.service.team("?project=main").await;
        for route in ROUTES.iter().filter(|route| is_read(route)) {
            if route.query.contains(&"cursor") {
                let mut sample = fixture.read(route);
                sample.set_parameter("limit", "1");
                let page = fixture.service.get(&sample.target()).await;
                if page.status == 200
                    && let Some(cursor) = page.json()["next_cursor"].as_str()
                {
                    fixture.cursors.insert(route.path, cursor.to_owned());
                }
            }
        }
        fixture
    }

    pub(super) async fn store_blob(&self) {
        let put = Call::new(Method::PUT, "/v0/blobs/a?project=main").bytes("a blob");
        let stored = self.service.admin(put).await;
        assert!(stored.status < 300, "{stored:?}");
    }

    /// Restores what an accepted mutation has consumed.
    pub(super) async fn restore(&mut self, sample: &Sample) {
        let (complete, logs) = (self.worker.path("complete"), self.worker.path("logs"));
        match sample.path.as_str() {
            "/v0/runners/register" => self.registration = self.service.registration().await,
            "/v0/blob-moves" | "/v0/blob-copies" | "/v0/blobs/a" => self.store_blob().await,
            path if path == complete || path == logs => {
                let job = format!("/v0/jobs/{}", self.worker.id);
                let job = self.service.get(&job).await.expect(200);
                self.log_records = job["log"]["records"].clone();
                if job["state"] != "running" {
                    self.claim_another().await;
                }
            }
            _ => {}
        }
    }

    /// Polls may already have received the offer, so this polls until it gets a job.
    pub(super) async fn claim_another(&mut self) {
        self.service.dispatch("build").await;
        let messages = self.service.poll(&self.executor, 1, &[]).await;
        let worker = offered(&messages[0]);
        let resolve = worker.call(Method::POST, &worker.path("resolve"));
        resolve.send(self.service.address).await.expect(200);
        (self.worker, self.log_records) = (worker, json!(0));
    }

    /// A valid poll, which is answered at once.
    pub(super) fn poll(&self) -> Call {
        self.poller.poll(1, &[&self.cancelled])
    }

    /// Valid requests of every route that reads a body, and of every route with parameters or conditions.
    pub(super) fn samples(&self) -> Vec<Sample> {
        let admin = |method: Method, path: &str| Sample::new(method, path, &self.service.admin);
        let post = |path: &str, body: Value| admin(Method::POST, path).json(&body);
        let runner = |path: &str, body: Value| {
            Sample::new(Method::POST, path, &self.poller.token).json(&body)
        };
        let worker = |method: Method, rest: &str| {
            Sample::new(method, &self.worker.path(rest), &self.worker.token)
        };
        let instance = "10000000-0000-4000-8000-000000000000";
        let steps = both_steps();
        let mut uploaded = worker(Method::PUT, "artifacts/out");
        uploaded.set(
            "x-content-digest",
            format!("sha256:{}", "ab".repeat(32)).into_bytes(),
        );
        uploaded.body = b"a zip".to_vec();
        let mut blob = admin(Method::PUT, "/v0/blobs/a");
        blob.query = pairs(&[("project", "main"), ("expires_in", "1d")]);
        blob.set("if-match", b"*".to_vec());
        blob.body = b"a blob".to_vec();
        let group = format!("/v0/payload-groups/{}", self.group);
        let mut payload = admin(Method::PUT, &format!("{group}/payloads/a.svg"));
        payload.set("if-match", b"*".to_vec());
        payload.body = b"%%TARGET%%".to_vec();
        let mut linked = Sample::new(Method::PUT, &self.link, "");
        linked.body = b"a blob".to_vec();
        let mut log = worker(Method::PATCH, "logs");
        log.query = pairs(&[("from", "0")]);
        let log = log.json(&json!([
            {"at": "2026-11-20T12:00:00Z", "step": 0, "stream": "stdout", "text": "one"},
            {"at": "2026-11-20T12:00:00.5Z", "stream": "runner", "text": "t\u{1b}\"wo"},
        ]));
        let mut of_project = Vec::new();
        for (path, body) in [
            (
                "/v0/blob-copies",
                json!({"from": "a", "to": "b", "expires_in": "1h"}),
            ),
            ("/v0/blob-moves", json!({"from": "a", "to": "c"})),
            (
                "/v0/blob-links",
                json!({"path": "a", "use_for": "get", "expires_in": "1h"}),
            ),
        ] {
            let mut sample = post(path, body);
            sample.query = pairs(&[("project", "main")]);
            of_project.push(sample);
        }
        let mut set_rule = admin(Method::PUT, "/v0/rules/a").json(&json!({
            "channel": "team", "events": ["failing"], "workflows": ["nightly/*"], "scans": ["a"], "after": 3,
            "group": "30s", "repeat": "4h", "quiet": {"from": "22:00", "to": "07:00", "timezone": "UTC"},
            "template": "${{ event.title }}", "content": "none",
        }));
        set_rule.query = pairs(&[("project", "main")]);
        of_project.push(set_rule);
        let mut preview = post("/v0/rule-previews", json!({"channel": "team", "after": 2}));
        preview.query = pairs(&[("project", "main")]);
        of_project.push(preview);
        let mut set_var = admin(Method::PUT, "/v0/projects/main/vars/URL");
        set_var.set("if-match", b"\"1\", \"2\"".to_vec());
        let set_secret = admin(Method::PUT, "/v0/projects/main/secrets/KEY");
        let register = json!({
            "token": self.registration, "name": "new", "labels": ["linux"], "capacity": 1,
            "version": "0.1.0", "replace": true,
        });
        let mut bodies = vec![
            Sample::new(Method::POST, "/v0/runners/register", "").json(&register),
            Sample::new(Method::POST, "/v0/sessions", "")
                .json(&json!({"token": self.service.admin})),
            Sample::new(Method::POST, "/v0/device-logins", "").json(&json!({"device": "laptop"})),
            Sample::new(Method::PUT, "/v0/me/password", &self.device)
                .json(&json!({"password": "correct horse battery"})),
            post("/v0/sources/main/sync", json!({})),
            post("/v0/sources/main/approve", json!({"commit": self.tip})),
            set_var.json(&json!({"value": "b"})),
            set_secret.json(&json!({"value": "hunter3"})),
            post(
                "/v0/validate",
                json!({
                    "file": "new.yaml",
                    "text": "scans: { a: { on: { dispatch: {} }, steps: [ { run: \"${{ inputs.x }}\" } ] } }",
                }),
            ),
            post(
                "/v0/workflows/pipeline/prune",
                json!({"dry_run": false, "jobs": 1000, "age_seconds": 3600, "bytes": 1_000_000}),
            ),
            post(
                "/v0/workflows/pipeline/scans/build/dispatch",
                json!({"inputs": {"target": "all", "fast": true}}),
            ),
            post(
                &format!("/v0/conditions/{}/acknowledge", self.condition),
                json!({"note": "it is being repaired"}),
            ),
            post(
                &format!("/v0/conditions/{}/silence", self.condition),
                json!({"seconds": 3600}),
            ),
            // These objects are not needed by other requests.
            post(
                "/v0/workflows/main%2Fdeep%2Fplain/suspend",
                json!({"reason": "the machine is serviced"}),
            ),
            post(
                "/v0/workflows/main%2Fdeep%2Fplain/resume",
                json!({"reason": "it is back"}),
            ),
            post(
                "/v0/workflows/main%2Fdeep%2Fplain/scans/only/suspend",
                json!({"reason": "too loud"}),
            ),
            post(
                "/v0/workflows/main%2Fdeep%2Fplain/scans/only/resume",
                json!({"reason": "quieter"}),
            ),
            post(
                &format!("/v0/jobs/{}/rerun", self.finished),
                json!({"current": true}),
            ),
            post(&format!("/v0/jobs/{}/cancel", self.cancelled), json!({})),
            post(
                "/v0/tokens",
                json!({"name": "ci", "scopes": ["job:read"], "projects": ["main"], "expires_in_seconds": 3600}),
            ),
            post(
                "/v0/tokens/initial%20admin/regenerate",
                json!({"overlap_seconds": 5, "expires_in_seconds": 3600}),
            ),
            admin(Method::PUT, "/v0/channels/new").json(&json!({
                "target": {"kind": "email", "host": "mail.example", "port": 25, "security": "tls", "from": "a@example.org",
                    "to": ["b@example.org"], "username": "a"},
                "secret": "hunter2", "offered_to": ["main"],
            })),
            post(
                "/v0/callbacks",
                json!({"project": "main", "name": "more", "keep_days": 7}),
            ),
            post(
                &format!("/v0/callbacks/{}/tokens", self.callback),
                json!({"note": "login form", "expires_in_seconds": 3600}),
            ),
            admin(Method::PUT, &format!("/v0/callbacks/{}/rules", self.callback)).json(&json!({
                "rules": [
                    {"type": "http", "name": "a", "label": "l", "method": "GET", "path": "/a", "status": 200,
                        "headers": {"X": "1"}, "body": "b", "delay_ms": 5},
                    {"type": "dns", "name": "b", "record": "A", "values": ["127.0.0.1"], "rotate": true},
                ],
                "ignore": {"addresses": ["192.0.2.1"], "user_agents": ["a"], "types": ["AAAA"]},
            })),
            post(
                "/v0/payload-groups",
                json!({"project": "main", "name": "more", "variables": [{"name": "ID", "placeholder": "{{id}}", "default": "7"}]}),
            ),
            admin(Method::PATCH, &group).json(&json!({"variables": [{"name": "TARGET"}, {"name": "CALLBACK"}]})),
            payload,
            post(
                &format!("{group}/renders"),
                json!({
                    "payload": "a.svg@1", "values": {"TARGET": "b"}, "targets": ["a"],
                    "callback": self.callback, "mint": {"note": "form"},
                }),
            ),
            post("/v0/channels/waiting/test", json!({})),
            post("/v0/channels/waiting/retry", json!({})),
            post(
                "/v0/runner-registrations",
                json!({"projects": ["main"], "labels": ["linux"]}),
            ),
            admin(Method::PATCH, "/v0/runners/executor").json(&json!({"projects": ["main"]})),
            post("/v0/sign-in-links", json!({})),
            post(
                "/v0/tokens/initial%20admin/move",
                json!({"user": "owner"}),
            ),
            post(
                "/v0/users",
                json!({"name": "kim", "service": false, "administrator": false, "roles": {"main": "viewer"}}),
            ),
            admin(Method::PATCH, "/v0/users/owner")
                .json(&json!({"active": true, "administrator": true})),
            post("/v0/users/invited/link", json!({})),
            admin(Method::PUT, "/v0/projects/main/members/owner").json(&json!({"role": "viewer"})),
            runner(
                "/v0/runners/hello",
                json!({"version": "0.1.0", "instance": instance}),
            ),
            runner(
                "/v0/runners/goodbye",
                json!({"version": "0.1.0", "instance": instance}),
            ),
            runner(
                "/v0/messages",
                json!({"instance": instance, "capacity": 1, "holding": [self.cancelled]}),
            ),
            worker(Method::POST, "resolve").json(&json!({})),
            worker(Method::POST, "timeline").json(&json!({"steps": steps})),
            worker(Method::POST, "complete").json(&json!({
                "steps": steps, "log_records": self.log_records,
                "failure": {"code": "env_failed", "message": "no value"},
            })),
            uploaded,
            blob,
            linked,
            log,
        ];
        bodies.append(&mut of_project);
        let of_api = ROUTES
            .iter()
            .filter(|route| !route.access.is_for_browsers());
        for route in of_api.filter(|route| route.body > 0) {
            let has_one = |sample: &Sample| is_of(route, sample);
            assert!(bodies.iter().any(has_one), "{} has no sample", route.path);
        }
        let reads = ROUTES.iter().filter(|route| is_read(route));
        bodies.extend(reads.map(|route| self.read(route)));
        bodies
    }

    /// A request of a route that only reads, with all its parameters.
    pub(super) fn read(&self, route: &Route) -> Sample {
        let path = route
            .path
            .replace("{project}", "main")
            .replace("{source}", "main")
            .replace("{workflow}", "pipeline")
            .replace("{scan}", "build")
            .replace("{revision}", "1")
            .replace("{job}", &self.finished)
            .replace("{artifact}", "out")
            .replace("{channel}", "waiting")
            .replace("{user}", "owner")
            .replace("{callback}", &self.callback)
            .replace("{group}", &self.group)
            .replace("{payload}", "a.svg")
            .replace("{number}", "1")
            .replace("{*path}", "a");
        let mut sample = Sample::new(Method::GET, &path, &self.service.admin);
        let is_log = route.path.ends_with("/logs");
        for name in route.query {
            let value = match *name {
                // `tail` and `from` exclude each other.
                "tail" if is_log => continue,
                "limit" => "2",
                // Many of the lists have only one page.
                "cursor" => match self.cursors.get(route.path) {
                    Some(cursor) => cursor,
                    None => continue,
                },
                // `id` excludes all other filters.
                "id" => continue,
                "lanes" => "week",
                "state" if route.path == "/v0/workflows" => "active",
                "state" => "succeeded",
                "workflow" => "pipeline",
                "scan" => "build",
                "trigger" => "dispatch",
                "runner" => "executor",
                "reason" => "steps_succeeded",
                "since" | "until" | "at" => "2026-11-20T12:00:00Z",
                "from" if route.path.contains("{revision}") => "1",
                "from" | "step" => "0",
                "stream" => "stdout",
                "timestamps" | "follow" | "case" | "wait" | "messages" => "true",
                "q" => "making",
                "against" | "job" => &self.finished,
                // The channel belongs to the instance.
                "project" if route.path.starts_with("/v0/channels/") => continue,
                "project" => "main",
                "channel" => "team",
                "prefix" | "delimiter" => "/",
                "actor" => "tester",
                "tag" => &self.tag,
                "type" => "dns",
                "address" => "192.0.2.1",
                "payload" => "xss/a.svg",
                "text" => "a",
                // A list after a number may wait.
                "after" => continue,
                "raw" => "true",
                "version" => "1",
                "kind" => "job_dispatched",
                "user" => "owner",
                other => panic!("{other} of {} has no value", route.path),
            };
            sample.query.push(((*name).to_owned(), value.to_owned()));
        }
        if route.query.is_empty() || route.path.contains("{*path}") {
            sample.set("range", b"bytes=1-3".to_vec());
            sample.set("if-range", b"\"a\"".to_vec());
        }
        sample
    }
}
