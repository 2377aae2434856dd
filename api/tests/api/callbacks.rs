//! Callback servers: who sees and changes them, what is refused, and how interactions are listed.

use std::sync::Arc;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use http::Method;
use model::callback::{CallbackId, CallbackTag, Heard, NewInteraction, Planted, Request};
use model::decide::RecordInteractions;
use model::{Role, Scope, World};
use reconciler::{CallbackHit, record_callbacks};
use serde_json::{Value, json};
use tokio::sync::mpsc;

use crate::answers::check;
use crate::client::{Call, Opened, in_time};
use crate::job_tokens::{claim, modern};
use crate::service::{Service, text};

impl Service {
    /// A callback server of a project. Returns its id.
    pub(crate) async fn callback(&self, project: &str) -> String {
        let create = json!({"project": project, "name": "shop"});
        let created = self.post("/v0/callbacks", &create).await;
        text(&created.expect(201)["id"])
    }

    /// A name of a callback server. Returns its tag.
    pub(crate) async fn callback_tag(&self, id: &str) -> String {
        let path = format!("/v0/callbacks/{id}/tokens");
        let created = self.post(&path, &json!({"note": "login form"})).await;
        text(&created.expect(201)["tag"])
    }

    /// Records a look-up as the daemon does.
    pub(crate) async fn record(&self, id: &str, tag: &str) {
        let request = Request::Dns {
            transport: "udp".to_owned(),
            name: format!("{id}-{tag}.oast.example"),
            qtype: "A".to_owned(),
            client_subnet: None,
        };
        let hit = CallbackHit {
            server: id.parse().unwrap(),
            heard: Heard {
                at: self.handle.now(),
                peer: "192.0.2.1:53".parse().unwrap(),
                tag: Some(tag.parse().unwrap()),
                request,
                answer: String::new(),
                rule: None,
            },
            raw: Vec::new(),
        };
        let (sender, hits) = mpsc::channel(1);
        sender.try_send(hit).unwrap();
        drop(sender);
        record_callbacks(self.handle.clone(), hits, Some, Vec::new).await;
    }

    /// What the record of a minted tag says, as recording reads it.
    async fn planted(&self, server: CallbackId, tag: Option<CallbackTag>) -> Planted {
        let minted = |world: &World| world.callback(server)?.minted_tag(tag?);
        let state = self.handle.state();
        let Some((number, _)) = state.read(minted) else {
            return Planted::default();
        };
        let mint = state.mint(server, number).await.unwrap();
        Planted::from(&mint.unwrap())
    }

    /// Records a look-up and a request.
    pub(crate) async fn hear(&self, id: &str, tag: Option<&str>) {
        let head = b"GET /x HTTP/1.1\r\nCookie: a=\x1b[2J\r\n\r\n".to_vec();
        let server = id.parse().unwrap();
        let tag = tag.map(|tag| tag.parse::<CallbackTag>().unwrap());
        let planted = self.planted(server, tag).await;
        let new = |peer: &str, request, raw| NewInteraction {
            heard: Heard {
                at: "2026-11-20T12:00:00Z".parse().unwrap(),
                peer: peer.parse().unwrap(),
                tag,
                request,
                answer: "200".to_owned(),
                rule: Some("page".to_owned()),
            },
            planted: planted.clone(),
            left_out: 0,
            repeats: 0,
            raw,
        };
        let dns = Request::Dns {
            transport: "udp".to_owned(),
            name: format!("{id}.OAST.example"),
            qtype: "A".to_owned(),
            client_subnet: Some("198.51.100.0/24".to_owned()),
        };
        let http = Request::Http {
            method: "GET".to_owned(),
            target: "/x".to_owned(),
            host: format!("{id}.oast.example"),
            head_bytes: head.len() as u64,
            truncated: false,
            malformed: false,
            tls: true,
            sni: Some(format!("{id}.oast.example")),
        };
        let record = RecordInteractions {
            server,
            new: Arc::new(vec![
                new("192.0.2.1:53", dns, vec![0, 1, 255]),
                new("198.51.100.7:4711", http, head),
            ]),
            left_out: 0,
            unknown_tags: 0,
        };
        let state = self.handle.state();
        state.record_interactions(record).await.unwrap();
    }
}

fn numbers(page: &Value) -> Vec<u64> {
    let items = page["items"].as_array().unwrap().iter();
    items.map(|it| it["number"].as_u64().unwrap()).collect()
}

#[tokio::test]
async fn the_answers_about_callbacks_are_unchanged() {
    let service = Service::start().await;
    let create = json!({"project": "main", "name": "shop", "keep_days": 7});
    let created = service.post("/v0/callbacks", &create).await;
    check(&service, "callbacks/created", &created);
    let id = text(&created.expect(201)["id"]);
    let path = format!("/v0/callbacks/{id}");
    let token = json!({"note": "login form", "expires_in_seconds": 3600});
    let token = service.post(&format!("{path}/tokens"), &token).await;
    check(&service, "callbacks/token_created", &token);
    let tag = text(&token.expect(201)["tag"]);
    service.hear(&id, Some(&tag)).await;
    let interaction = format!("{path}/interactions/2");
    for (name, path) in [
        ("check", "/v0/callback-check".to_owned()),
        ("callbacks", "/v0/callbacks".to_owned()),
        ("callback", path.clone()),
        ("tokens", format!("{path}/tokens")),
        ("interactions", format!("{path}/interactions")),
        ("interaction", interaction.clone()),
    ] {
        let answer = service.get(&path).await;
        answer.expect(200);
        check(&service, &format!("callbacks/{name}"), &answer);
    }
    let end = Call::new(Method::DELETE, format!("{path}/tokens/{tag}"));
    service.admin(end).await.expect(204);
    let kept = service.get(&interaction).await.expect(200);
    assert_eq!(kept["note"], "login form", "the name has ended");
}

#[tokio::test]
async fn interactions_are_filtered_and_reading_takes_nothing_away() {
    let service = Service::start().await;
    let id = service.callback("main").await;
    let tag = service.callback_tag(&id).await;
    service.hear(&id, None).await;
    service.hear(&id, Some(&tag)).await;
    let list = async |query: &str| {
        let path = format!("/v0/callbacks/{id}/interactions{query}");
        service.get(&path).await.expect(200)
    };
    for _ in 0..2 {
        assert_eq!(numbers(&list("").await), [4, 3, 2, 1]);
    }
    assert_eq!(numbers(&list(&format!("?tag={tag}")).await), [4, 3]);
    assert_eq!(numbers(&list("?type=dns").await), [3, 1]);
    assert_eq!(numbers(&list("?address=192.0.2.1").await), [3, 1]);
    assert_eq!(numbers(&list("?text=COOKIE").await), [4, 2]);
    assert_eq!(numbers(&list("?after=2").await), [3, 4]);
    let page = list("?limit=3").await;
    let cursor = text(&page["next_cursor"]);
    assert_eq!(numbers(&list(&format!("?cursor={cursor}")).await), [1]);
    let raw = list("?limit=1&raw=true").await;
    let raw = STANDARD.decode(text(&raw["items"][0]["raw"])).unwrap();
    assert!(raw.starts_with(b"GET /x HTTP/1.1\r\n"));
    for (query, field) in [
        ("?tag=x", "tag"),
        ("?type=smtp", "type"),
        ("?job=x", "job"),
        ("?address=a.example", "address"),
        ("?text=", "text"),
        ("?after=x", "after"),
        ("?after=1&cursor=1", "after"),
        ("?cursor=x", "cursor"),
    ] {
        let path = format!("/v0/callbacks/{id}/interactions{query}");
        let problem = service.get(&path).await.problem(400, "invalid_request");
        assert_eq!(problem["errors"][0]["field"], field, "{query}");
    }
    for number in ["0", "5", "x", "99999999999999999999"] {
        let path = format!("/v0/callbacks/{id}/interactions/{number}");
        service.get(&path).await.problem(404, "not_found");
    }
}

#[tokio::test]
async fn a_waiting_list_answers_when_something_is_heard() {
    let service = Service::start().await;
    let id = service.callback("main").await;
    service.hear(&id, None).await;
    let path = format!("/v0/callbacks/{id}/interactions?after=2&wait=true");
    let waiting = service.get(&path);
    let hearing = async {
        tokio::task::yield_now().await;
        service.hear(&id, None).await;
    };
    let (answer, ()) = in_time(async { tokio::join!(waiting, hearing) }).await;
    assert!(numbers(&answer.expect(200)).starts_with(&[3]));
}

#[tokio::test]
async fn the_event_of_an_interaction_has_nothing_raw() {
    let service = Service::start().await;
    let id = service.callback("main").await;
    let tag = service.callback_tag(&id).await;
    let call = Call::get("/v0/events").bearer(&service.admin);
    let mut stream: Opened = call.open(service.address).await;
    service.hear(&id, Some(&tag)).await;
    let read = stream.until("event: interaction").await;
    let read = read + &stream.until("\n\n").await;
    let data = read.split("event: interaction\ndata: ").nth(1).unwrap();
    let data: Value = serde_json::from_str(data.lines().next().unwrap()).unwrap();
    let expected = json!({
        "server": id, "first": 1, "last": 2, "count": 2, "types": ["dns", "http"], "tags": [tag],
    });
    assert_eq!(data, expected);
}

/// The stream opens with one of the two scopes, and sends what each allows.
#[tokio::test]
async fn events_need_the_scope_of_jobs_or_of_callbacks() {
    let service = Service::follow(&["main"]).await;
    let id = service.callback("main").await;
    let robot = service.robot("robot", &[("main", Role::Operator)]).await;
    let reader = service
        .token_of(robot, vec![Scope::CallbackRead], None)
        .await;
    let mut stream = Call::get("/v0/events")
        .bearer(&reader)
        .open(service.address)
        .await;
    service.dispatch("build").await;
    service.hear(&id, None).await;
    let read = stream.until("event: interaction").await;
    assert!(!read.contains("event: job"), "{read}");
    let other = service.token_of(robot, vec![Scope::BlobRead], None).await;
    let refused = Call::get("/v0/events")
        .bearer(&other)
        .send(service.address)
        .await;
    refused.problem(403, "forbidden");
}

#[tokio::test]
async fn a_viewer_sees_counts_and_an_operator_sees_interactions() {
    let service = Service::follow(&["main", "other"]).await;
    let id = service.callback("main").await;
    let tag = service.callback_tag(&id).await;
    service.hear(&id, None).await;
    let scopes = [
        Scope::ProjectRead,
        Scope::CallbackRead,
        Scope::CallbackWrite,
    ];
    let server = format!("/v0/callbacks/{id}");
    let tokens = format!("{server}/tokens");
    let interactions = format!("{server}/interactions");
    let interaction = format!("{interactions}/1");
    let ended = format!("{tokens}/{tag}");
    for (role, project, expected) in [
        (Role::Viewer, "main", [200, 403, 403, 403, 403, 403, 403]),
        (Role::Operator, "main", [200, 200, 200, 200, 403, 403, 403]),
        (Role::Maintainer, "other", [404; 7]),
        (
            Role::Maintainer,
            "main",
            [200, 200, 200, 200, 201, 204, 204],
        ),
    ] {
        let name = format!("{role}-{project}");
        let robot = service.robot(&name, &[(project, role)]).await;
        let bearer = service.token_of(robot, scopes.to_vec(), None).await;
        let calls = [
            Call::get(server.as_str()),
            Call::get(tokens.as_str()),
            Call::get(interactions.as_str()),
            Call::get(interaction.as_str()),
            Call::post(tokens.as_str()).json(&json!({})),
            Call::new(Method::DELETE, ended.as_str()),
            Call::new(Method::DELETE, server.as_str()),
        ];
        let mut found = Vec::new();
        for call in calls {
            found.push(call.bearer(&bearer).send(service.address).await.status);
        }
        assert_eq!(found, expected, "{name}");
        let check = Call::get("/v0/callback-check").bearer(&bearer);
        let status = check.send(service.address).await.status;
        assert_eq!(status == 403, role == Role::Viewer, "{name}: {status}");
        let list = Call::get("/v0/callbacks").bearer(&bearer);
        let list = list.send(service.address).await.expect(200);
        let items = list["items"].as_array().unwrap();
        let is_listed = items.len() == 1;
        if let Some(item) = items.first() {
            let has_names = !item["names"].as_array().unwrap().is_empty();
            assert_eq!(has_names, role != Role::Viewer);
        }
        assert_eq!(is_listed, project == "main" && role != Role::Maintainer);
    }
    service.get(&interactions).await.problem(404, "not_found");
}

#[tokio::test]
async fn rules_are_replaced_as_a_whole_and_refused_in_words() {
    let service = Service::start().await;
    let id = service.callback("main").await;
    let path = format!("/v0/callbacks/{id}/rules");
    let empty = service.get(&path).await.expect(200);
    assert_eq!(empty, json!({"rules": [], "ignore": {}}));
    let rules = json!({
        "rules": [
            {"type": "http", "name": "redirect", "path": "/to/*", "status": 302, "headers": {"Location": "http://169.254.169.254/"}},
            {"type": "dns", "name": "rebind", "label": "r", "record": "A", "values": ["203.0.113.1", "127.0.0.1"], "rotate": true},
        ],
        "ignore": {"addresses": ["192.0.2.0/24"]},
    });
    let put = async |body: &Value| {
        let call = Call::new(Method::PUT, path.as_str()).json(body);
        service.admin(call).await
    };
    let set = put(&rules).await;
    check(&service, "callbacks/rules_set", &set);
    assert_eq!(set.expect(200), rules);
    let shown = service.get(&path).await;
    check(&service, "callbacks/rules", &shown);
    for (rule, expected) in [
        (
            json!({"type": "http", "name": "a", "headers": {"X": "a\r\nb"}}),
            "rule `a`: headers",
        ),
        (
            json!({"type": "http", "name": "a", "status": 99}),
            "rule `a`: status",
        ),
        (
            json!({"type": "dns", "name": "a", "record": "A", "values": ["::1"]}),
            "is no A such as",
        ),
        (json!({"type": "http", "name": "a b"}), "name: "),
        (
            json!({"type": "http", "name": "a", "body": "x".repeat(70_000)}),
            "together",
        ),
    ] {
        let refused = put(&json!({"rules": [rule]}))
            .await
            .problem(400, "invalid_request");
        let message = text(&refused["errors"][0]["message"]);
        assert!(message.contains(expected), "{message}");
    }
    let many: Vec<_> = (0..51)
        .map(|it| json!({"type": "http", "name": format!("r{it}")}))
        .collect();
    put(&json!({ "rules": many }))
        .await
        .problem(400, "invalid_request");
    assert_eq!(service.get(&path).await.expect(200), rules);
}

#[tokio::test]
async fn conflicts_and_limits_are_refused_in_words() {
    let service = Service::start().await;
    service.callback("main").await;
    let create = async |body: Value| service.post("/v0/callbacks", &body).await;
    let same = create(json!({"project": "main", "name": "shop"})).await;
    same.problem(409, "name_taken");
    for (body, field) in [
        (json!({"project": "main", "name": "a b"}), "name"),
        (
            json!({"project": "main", "name": "a", "keep_days": 0}),
            "keep_days",
        ),
        (
            json!({"project": "main", "name": "a", "keep_days": 1, "keep_forever": true}),
            "keep_days",
        ),
    ] {
        let problem = create(body).await.problem(400, "invalid_request");
        assert_eq!(problem["errors"][0]["field"], field);
    }
    let missing = create(json!({"project": "nothing", "name": "a"})).await;
    missing.problem(404, "project_not_found");
    for number in 1..20 {
        create(json!({"project": "main", "name": format!("s{number}"), "keep_forever": true}))
            .await
            .expect(201);
    }
    let more = create(json!({"project": "main", "name": "more"})).await;
    more.problem(403, "quota_exceeded");
}

/// What a person does to callback servers is in the audit log. What strangers do is not.
#[tokio::test]
async fn the_audit_log_has_servers_and_names() {
    let service = Service::start().await;
    let id = service.callback("main").await;
    let tag = service.callback_tag(&id).await;
    service.hear(&id, Some(&tag)).await;
    for path in [format!("{id}/tokens/{tag}"), id] {
        let delete = Call::new(Method::DELETE, format!("/v0/callbacks/{path}"));
        service.admin(delete).await.expect(204);
    }
    let log = service.get("/v0/audit").await.expect(200);
    let lines = log["items"].as_array().unwrap().iter();
    let kinds = lines.flat_map(|line| line["actions"].as_array().unwrap());
    let kinds: Vec<_> = kinds.map(|action| text(&action["kind"])).collect();
    let expected = [
        "callback_deleted",
        "callback_token_ended",
        "callback_token_created",
        "callback_created",
    ];
    assert_eq!(kinds[..4], expected);
}

pub(crate) const PROBE: &str = "scans: { probe: { on: { dispatch: {} }, callback: shop, steps: [ { run: x }, { run: y } ] } }\n";
const LIMITED: &str = "scans: { probe: { on: { dispatch: {} }, permissions: ['job:read'], steps: [ { run: x } ] } }\n";

/// The server and the tag of a name.
pub(crate) fn parts(name: &str) -> (&str, &str) {
    let (label, zone) = name.split_once('.').unwrap();
    assert_eq!(zone, "oast.example");
    label.split_once('-').unwrap()
}

#[tokio::test]
async fn a_job_gets_a_name_and_interactions_of_it_show_the_job() {
    let service = Service::start().await;
    service.push(&[("workflows/probe.yaml", PROBE)]).await;
    let dispatch = async || {
        let path = "/v0/workflows/probe/scans/probe/dispatch";
        let made = service.post(path, &json!({})).await.expect(202);
        text(&made["job"]["id"])
    };
    // A runner of an earlier version could not give the name to the steps.
    let old = service.register("old", &[], 1).await;
    let first = dispatch().await;
    assert_eq!(service.poll(&old, 1, &[]).await.len(), 0);
    let runner = modern(&service).await;
    let (_, without) = claim(&service, &runner, &[]).await;
    assert_eq!(without.get("callback"), None);
    let missing = text(&without["missing"]["callback"]);
    let hint = "everscan callback create shop --project main";
    assert!(missing.contains(hint), "{missing}");
    service.condition("missing_callback").await;

    let id = service.callback("main").await;
    let second = dispatch().await;
    let (_, assignment) = claim(&service, &runner, &[&first]).await;
    let name = text(&assignment["callback"]);
    let (server, tag) = parts(&name);
    assert_eq!(server, id);
    service.hear(&id, None).await;
    service.hear(&id, Some(tag)).await;
    let path = format!("/v0/callbacks/{id}/interactions?job={second}");
    let page = service.get(&path).await.expect(200);
    assert_eq!(numbers(&page), [4, 3]);
    for it in page["items"].as_array().unwrap() {
        assert_eq!(it["job"], json!({"id": second, "scan": "probe"}));
        assert_eq!(it["tag"], tag);
    }
    let path = format!("/v0/callbacks/{id}/interactions?job={first}");
    assert_eq!(numbers(&service.get(&path).await.expect(200)), [0; 0]);
}

#[tokio::test]
async fn a_job_is_told_that_callbacks_are_off() {
    let service = Service::without_key().await;
    service.push(&[("workflows/probe.yaml", PROBE)]).await;
    let path = "/v0/workflows/probe/scans/probe/dispatch";
    service.post(path, &json!({})).await.expect(202);
    let runner = modern(&service).await;
    let (_, assignment) = claim(&service, &runner, &[]).await;
    let missing = text(&assignment["missing"]["callback"]);
    assert!(
        missing.contains("no zone for callback servers"),
        "{missing}"
    );
}

#[tokio::test]
async fn a_job_sees_what_its_own_names_have_heard_and_nothing_else() {
    let service = Service::follow(&["main", "other"]).await;
    let files = [
        ("workflows/probe.yaml", PROBE),
        ("workflows/limited.yaml", LIMITED),
    ];
    service.push(&files).await;
    let elsewhere = service.callback("other").await;
    service.hear(&elsewhere, None).await;
    let id = service.callback("main").await;
    let of_a_person = service.callback_tag(&id).await;
    service.hear(&id, Some(&of_a_person)).await;
    let runner = modern(&service).await;
    let mut held: Vec<String> = Vec::new();
    let mut jobs = Vec::new();
    for workflow in ["main%2Fprobe", "main%2Fprobe", "main%2Flimited"] {
        let path = format!("/v0/workflows/{workflow}/scans/probe/dispatch");
        let made = service.post(&path, &json!({})).await.expect(202);
        let holding: Vec<&str> = held.iter().map(String::as_str).collect();
        jobs.push(claim(&service, &runner, &holding).await);
        held.push(text(&made["job"]["id"]));
    }
    let [first, second, limited] = [0, 1, 2].map(|at: usize| {
        let token = text(&jobs[at].1["job_token"]);
        move |call: Call| call.bearer(&token)
    });
    let send = async |call: Call| call.send(service.address).await;
    let server = format!("/v0/callbacks/{id}");
    let interactions = format!("{server}/interactions");
    let make = |server: &str| Call::post(format!("{server}/tokens")).json(&json!({"note": "form"}));

    // Each of its names counts: that of its claim, and what its steps have made.
    let made = send(first(make(&server))).await.expect(201);
    assert_eq!(made["created_by"], format!("job {}", held[0]));
    let name = text(&jobs[0].1["callback"]);
    service.hear(&id, Some(parts(&name).1)).await;
    service.hear(&id, made["tag"].as_str()).await;
    let list = async |query: &str| {
        let call = first(Call::get(format!("{interactions}{query}")));
        send(call).await.expect(200)
    };
    let page = list("").await;
    assert_eq!(numbers(&page), [6, 5, 4, 3]);
    assert_eq!(page["items"][0]["note"], "form");
    assert_eq!(numbers(&list("?after=0&wait=true").await), [3, 4, 5, 6]);
    assert_eq!(numbers(&list(&format!("?job={}", held[1])).await), [0; 0]);
    assert_eq!(numbers(&list(&format!("?tag={of_a_person}")).await), [0; 0]);
    let other = send(second(Call::get(interactions.as_str()))).await;
    assert_eq!(numbers(&other.expect(200)), [0; 0]);
    let show = |number: u32| Call::get(format!("{interactions}/{number}"));
    send(first(show(3))).await.expect(200);
    send(first(show(1))).await.problem(404, "not_found");
    send(second(show(3))).await.problem(404, "not_found");

    let servers = send(first(Call::get("/v0/callbacks"))).await.expect(200);
    let items = servers["items"].as_array().unwrap();
    assert_eq!(items.len(), 1, "{servers}");
    assert_eq!(
        items[0]["names"],
        json!([]),
        "the name of the server is not of the job"
    );
    let foreign = format!("/v0/callbacks/{elsewhere}");
    for call in [
        Call::get(foreign.as_str()),
        Call::get(format!("{foreign}/interactions")),
        Call::get(format!("{foreign}/interactions/1")),
        make(&foreign),
    ] {
        send(first(call)).await.problem(404, "not_found");
    }
    for call in [
        Call::get(format!("{server}/tokens")),
        Call::get(format!("{server}/rules")),
        Call::new(Method::DELETE, format!("{server}/tokens/{of_a_person}")),
        Call::new(Method::DELETE, server.as_str()),
        Call::post("/v0/callbacks").json(&json!({"project": "main", "name": "more"})),
    ] {
        send(first(call)).await.problem(403, "forbidden");
    }
    for call in [make(&server), Call::get(interactions.as_str())] {
        let problem = send(limited(call)).await.problem(403, "forbidden");
        assert!(problem.to_string().contains("callback:own"), "{problem}");
    }
    // No person has it.
    let token = json!({"name": "own", "scopes": ["callback:own"]});
    service
        .post("/v0/tokens", &token)
        .await
        .problem(400, "invalid_request");

    service.complete(&jobs[0].0, 0).await.expect(200);
    let after = send(first(Call::get(interactions.as_str()))).await;
    after.problem(401, "unauthorized");
}
