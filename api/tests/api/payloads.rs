//! Payload groups: who sees and changes them, bodies that come back byte for byte, and rendering.

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use bytes::Bytes;
use http::Method;
use model::{Role, Scope};
use serde_json::{Value, json};

use crate::answers::check;
use crate::browser::Browser;
use crate::client::{Answer, Call};
use crate::service::{Service, text};

const SCOPES: [Scope; 2] = [Scope::PayloadRead, Scope::PayloadWrite];

impl Service {
    /// A payload group with two versions of the payload `a.svg`. Returns its id.
    pub(crate) async fn payload_group(&self, project: &str) -> String {
        let variables = json!([
            {"name": "CALLBACK"}, {"name": "TARGET", "default": "nobody"}, {"name": "ID", "placeholder": "{{id}}"},
        ]);
        let create = json!({"project": project, "name": "xss", "variables": variables});
        let created = self.post("/v0/payload-groups", &create).await;
        let id = text(&created.expect(201)["id"]);
        for body in ["one", "<%%TARGET|html%%>"] {
            self.put_payload(&id, "a.svg", body).await.expect(201);
        }
        id
    }

    async fn put_payload(&self, group: &str, name: &str, body: impl Into<Bytes>) -> Answer {
        let path = format!("/v0/payload-groups/{group}/payloads/{name}");
        self.admin(Call::new(Method::PUT, path).bytes(body)).await
    }

    async fn render(&self, group: &str, asked: &Value) -> Answer {
        let path = format!("/v0/payload-groups/{group}/renders");
        self.post(&path, asked).await
    }
}

fn lines(answer: &Answer) -> Vec<Value> {
    assert_eq!(answer.status, 200, "{}", answer.text());
    let lines = answer.text().lines();
    lines
        .map(|line| serde_json::from_str(line).unwrap())
        .collect()
}

fn rendered(answer: &Answer) -> Vec<String> {
    lines(answer)
        .iter()
        .map(|line| text(&line["text"]))
        .collect()
}

#[tokio::test]
async fn the_answers_about_payloads_are_unchanged() {
    let service = Service::start().await;
    let group = service.payload_group("main").await;
    let path = format!("/v0/payload-groups/{group}");
    let create = json!({"project": "main", "name": "plain"});
    let created = service.post("/v0/payload-groups", &create).await;
    check(&service, "payloads/created", &created);
    let stored = service.put_payload(&group, "b", "x").await;
    stored.expect(201);
    check(&service, "payloads/stored", &stored);
    let change = json!({"variables": [{"name": "A", "default": "b"}]});
    let change = Call::new(Method::PATCH, &path).json(&change);
    check(&service, "payloads/changed", &service.admin(change).await);
    for (name, path) in [
        ("groups", "/v0/payload-groups".to_owned()),
        ("group", path.clone()),
    ] {
        let answer = service.get(&path).await;
        assert_eq!(answer.status, 200);
        check(&service, &format!("payloads/{name}"), &answer);
    }
}

#[tokio::test]
async fn every_body_comes_back_byte_for_byte_and_no_browser_runs_it() {
    let service = Service::start().await;
    let group = service.payload_group("main").await;
    let large: Vec<u8> = (0..10 * 1024 * 1024_u32)
        .map(|at| (at * 31) as u8)
        .collect();
    for (name, body) in [
        ("braces", b"{{ ${{ ${ }} $ %% %%X%%".to_vec()),
        ("nul", b"a\0b".to_vec()),
        ("crlf", b"a\r\nb\rc\n\n".to_vec()),
        ("bytes", (0..=255).collect()),
        ("empty", Vec::new()),
        ("large", large),
    ] {
        let stored = service.put_payload(&group, name, body.clone()).await;
        assert_eq!(stored.expect(201)["size"], body.len());
        let read = service
            .get(&format!("/v0/payload-groups/{group}/payloads/{name}"))
            .await;
        assert_eq!(read.status, 200);
        assert!(read.body == body, "{name}");
        for (header, value) in [
            ("content-type", "text/plain; charset=utf-8"),
            ("content-security-policy", "default-src 'none'; sandbox"),
            ("x-content-type-options", "nosniff"),
            (
                "content-disposition",
                &format!("attachment; filename=\"{name}\""),
            ),
        ] {
            assert_eq!(read.header(header), Some(value), "{name}");
        }
        // Rendered without a placeholder it is the same.
        let line = &lines(&service.render(&group, &json!({"payload": name})).await)[0];
        let again = match line.get("text") {
            Some(again) => text(again).into_bytes(),
            None => STANDARD.decode(text(&line["base64"])).unwrap(),
        };
        assert!(again == body, "{name} rendered");
    }
    let more = vec![0; 10 * 1024 * 1024 + 1];
    assert_eq!(service.put_payload(&group, "more", more).await.status, 413);
}

#[tokio::test]
async fn versions_do_not_change_and_an_edit_replaces_only_what_it_has_read() {
    let service = Service::start().await;
    let group = service.payload_group("main").await;
    let path = format!("/v0/payload-groups/{group}/payloads/a.svg");
    let put = |header: &str, value: &str, body: &str| {
        let call = Call::new(Method::PUT, &path).header(header, value);
        service.admin(call.bytes(body.to_owned()))
    };
    assert_eq!(put("if-match", "\"1\"", "three").await.status, 412);
    assert_eq!(put("if-none-match", "*", "three").await.status, 412);
    let third = put("if-match", "\"2\"", "three").await;
    assert_eq!((third.status, third.header("etag")), (201, Some("\"3\"")));
    let same = put("if-match", "*", "three").await;
    assert_eq!((same.status, same.header("etag")), (200, Some("\"3\"")));
    for (version, body) in [("1", "one"), ("2", "<%%TARGET|html%%>"), ("3", "three")] {
        let read = service.get(&format!("{path}?version={version}")).await;
        assert_eq!(read.text(), body);
    }
    assert_eq!(service.get(&format!("{path}?version=4")).await.status, 404);
    let delete = Call::new(Method::DELETE, &path);
    assert_eq!(service.admin(delete).await.status, 204);
    assert_eq!(service.get(&path).await.status, 404);
    let kinds = service
        .get("/v0/audit?kind=payload_stored")
        .await
        .expect(200);
    assert_eq!(kinds["items"][0]["actions"][0]["name"], "xss/a.svg");
    assert_eq!(kinds["items"][0]["actions"][0]["version"], 3);
}

#[tokio::test]
async fn payloads_are_rendered_for_each_target_with_the_name_of_a_server() {
    let service = Service::start().await;
    let group = service.payload_group("main").await;
    let server = service.callback("main").await;
    service
        .put_payload(&group, "b", "//%%CALLBACK%%/{{id}}?%%TARGET|url%% {{ id }}")
        .await;
    let asked = json!({"targets": ["a&b", "c/d"], "values": {"ID": "<1>"}, "callback": server});
    let answer = service.render(&group, &asked).await;
    let zone = "oast.example";
    assert_eq!(
        rendered(&answer),
        [
            "<a&amp;b>".to_owned(),
            "<c/d>".to_owned(),
            format!("//{server}.{zone}/<1>?a%26b {{{{ id }}}}"),
            format!("//{server}.{zone}/<1>?c%2Fd {{{{ id }}}}"),
        ]
    );
    let first = &lines(&answer)[0];
    assert_eq!(
        (&first["payload"], &first["version"], &first["target"]),
        (&json!("a.svg"), &json!(2), &json!("a&b"))
    );
    // One version, without a target.
    let one = service.render(&group, &json!({"payload": "a.svg@1"})).await;
    assert_eq!(rendered(&one), ["one"]);
    let default = service.render(&group, &json!({"payload": "a.svg"})).await;
    assert_eq!(rendered(&default), ["<nobody>"]);
    // A missing value, an unknown variable, another project's server, an unknown payload, and too many lines.
    let missing = service
        .render(&group, &json!({"payload": "b", "callback": server}))
        .await;
    assert_eq!(missing.status, 422, "{}", missing.text());
    assert_eq!(missing.json()["errors"][0]["field"], "values.ID");
    let unknown = json!({"values": {"OTHER": "x"}});
    assert_eq!(service.render(&group, &unknown).await.status, 422);
    let strange = json!({"callback": "aaaaaaaaaaaaaaaa"});
    assert_eq!(service.render(&group, &strange).await.status, 404);
    for payload in ["c", "a.svg@9", "a.svg@0", "@"] {
        let answer = service.render(&group, &json!({"payload": payload})).await;
        assert_eq!(answer.status, 404, "{payload}");
    }
    let many = json!({"payload": "a.svg", "targets": vec!["t"; 100_000]});
    assert_eq!(lines(&service.render(&group, &many).await).len(), 100_000);
    let more = json!({"payload": "a.svg", "targets": vec!["t"; 100_001]});
    assert_eq!(service.render(&group, &more).await.status, 400);
}

#[tokio::test]
async fn a_render_whose_result_would_be_too_large_is_refused() {
    let service = Service::start().await;
    let group = service.payload_group("main").await;
    service.put_payload(&group, "b", "{{id}}".repeat(20)).await;
    let refused = async |values: Value, targets: Value, field: &str| {
        let asked = json!({"payload": "b", "values": values, "targets": targets});
        let answer = service.render(&group, &asked).await;
        assert_eq!(answer.status, 400, "{}", answer.text());
        assert_eq!(answer.json()["errors"][0]["field"], field);
    };
    let megabyte = "v".repeat(1024 * 1024);
    refused(json!({"ID": megabyte}), json!([]), "values").await;
    let values = json!({"ID": "v".repeat(10_000)});
    refused(values, json!(vec!["t"; 10_000]), "targets").await;
}

#[tokio::test]
async fn a_hit_of_a_minted_name_tells_payload_and_target() {
    let service = Service::follow(&["main", "harbor"]).await;
    let group = service.payload_group("main").await;
    let server = service.callback("main").await;
    service.put_payload(&group, "b", "%%CALLBACK%%").await;
    let mint = |server: &str, mint: Value| json!({"payload": "b", "targets": ["x", "y\u{1b}"], "callback": server, "mint": mint});
    let answer = service
        .render(&group, &mint(&server, json!({"note": "form"})))
        .await;
    let lines = lines(&answer);
    let tags: Vec<String> = lines.iter().map(|line| text(&line["tag"])).collect();
    for (line, tag) in lines.iter().zip(&tags) {
        assert_eq!(text(&line["text"]), format!("{server}-{tag}.oast.example"));
    }
    assert_ne!(tags[0], tags[1]);
    // Without minting there is no tag.
    let plain = json!({"payload": "b", "callback": server});
    let plain = service.render(&group, &plain).await;
    assert_eq!(rendered(&plain), [format!("{server}.oast.example")]);
    // Later the payload changes, and the group is deleted.
    service.put_payload(&group, "b", "other").await.expect(201);
    let delete = Call::new(Method::DELETE, format!("/v0/payload-groups/{group}"));
    service.admin(delete).await.expect(204);
    service.record(&server, &tags[1]).await;
    service.hear(&server, None).await;
    let list = async |query: &str| {
        let path = format!("/v0/callbacks/{server}/interactions?{query}");
        service.get(&path).await.expect(200)["items"].clone()
    };
    let found = list("payload=xss/b").await;
    assert_eq!(found.as_array().unwrap().len(), 1);
    assert_eq!(found[0]["note"], "form");
    let payload = json!({"group": "xss", "name": "b", "version": 1, "target": "y\u{fffd}"});
    assert_eq!(found[0]["payload"], payload);
    assert_eq!(list("payload=xss").await, found);
    for other in ["xss/a.svg", "xs", "xss/", "/b"] {
        assert_eq!(
            list(&format!("payload={other}")).await,
            json!([]),
            "{other}"
        );
    }
    assert_eq!(list("type=dns").await.as_array().unwrap().len(), 2);
}

#[tokio::test]
async fn names_are_minted_by_whoever_may_make_them() {
    let service = Service::follow(&["main", "harbor"]).await;
    let group = service.payload_group("main").await;
    let server = service.callback("main").await;
    let other = service.callback("harbor").await;
    service.put_payload(&group, "b", "%%CALLBACK%%").await;
    let asked = |server: &str| json!({"payload": "b", "callback": server, "mint": {}});
    let both = vec![Scope::PayloadRead, Scope::CallbackWrite];
    for (role, scopes, status) in [
        (Role::Operator, both.clone(), 403),
        (Role::Maintainer, vec![Scope::PayloadRead], 403),
        (Role::Maintainer, both, 200),
    ] {
        let name = format!("r-{role}-{}", scopes.len());
        let robot = service.robot(&name, &[("main", role)]).await;
        let token = service.token_of(robot, scopes, None).await;
        let render = Call::post(format!("/v0/payload-groups/{group}/renders"));
        let render = render.json(&asked(&server)).bearer(&token);
        assert_eq!(render.send(service.address).await.status, status, "{name}");
    }
    let refused = service.render(&group, &asked(&other)).await;
    let refused = refused.problem(400, "invalid_request");
    assert_eq!(refused["errors"][0]["field"], "callback");
    let without = json!({"payload": "b", "mint": {}, "values": {"CALLBACK": "x"}});
    let without = service.render(&group, &without).await;
    let without = without.problem(400, "invalid_request");
    assert_eq!(without["errors"][0]["field"], "callback");
    let audit = service.get("/v0/audit?kind=callback_token_created").await;
    assert_eq!(audit.expect(200)["items"].as_array().unwrap().len(), 1);
}

#[tokio::test]
async fn operators_render_maintainers_write_and_others_see_nothing() {
    let service = Service::follow(&["main", "harbor"]).await;
    let group = service.payload_group("main").await;
    let path = format!("/v0/payload-groups/{group}");
    for (role, read, write) in [
        (Role::Viewer, 403, 403),
        (Role::Operator, 200, 403),
        (Role::Maintainer, 200, 200),
    ] {
        let name = format!("r-{role}");
        let robot = service.robot(&name, &[("main", role)]).await;
        let token = service.token_of(robot, SCOPES.to_vec(), None).await;
        let send = async |call: Call| call.bearer(&token).send(service.address).await.status;
        assert_eq!(send(Call::get(&path)).await, read, "{role}");
        let render = Call::post(format!("{path}/renders")).json(&json!({"payload": "a.svg"}));
        assert_eq!(send(render).await, read, "{role}");
        let change = Call::new(Method::PATCH, &path).json(&json!({"variables": []}));
        assert_eq!(send(change).await, write, "{role}");
    }
    let stranger = service
        .robot("stranger", &[("harbor", Role::Maintainer)])
        .await;
    let stranger = service.token_of(stranger, SCOPES.to_vec(), None).await;
    let seen = Call::get(&path)
        .bearer(&stranger)
        .send(service.address)
        .await;
    assert_eq!(seen.status, 404);
    let list = Call::get("/v0/payload-groups").bearer(&stranger);
    let list = list.send(service.address).await.expect(200);
    assert_eq!(list["items"], json!([]));
}

#[tokio::test]
async fn the_editor_previews_and_saves_what_was_typed() {
    let service = Service::start().await;
    let group = service.payload_group("main").await;
    let browser = Browser::admin(&service).await;
    let path = format!("/payload-groups/{group}");
    let page = browser.get(&format!("{path}/a.svg")).await;
    assert!(
        page.text().contains("&lt;%%TARGET|html%%&gt;"),
        "{}",
        page.text()
    );
    let typed = async |more: &[(&str, &str)]| {
        let text = "x\r\n%%CALLBACK%%%%ID%%{{id}}";
        let fields = [("payload", "a.svg"), ("version", "2"), ("text", text)];
        browser.post(&path, &[&fields, more].concat()).await
    };
    let preview = typed(&[("preview", "true")]).await;
    assert_eq!(preview.status, 200);
    assert!(
        preview.text().contains(
            "<mark>name.callback.example</mark>%%ID%%<mark title=\"no value\"><b>{{id}}</b></mark>"
        ),
        "{}",
        preview.text()
    );
    let body = format!("/v0/payload-groups/{group}/payloads/a.svg");
    assert_eq!(service.get(&body).await.header("etag"), Some("\"2\""));
    assert_eq!(typed(&[]).await.status, 303);
    let saved = service.get(&body).await;
    assert_eq!(saved.header("etag"), Some("\"3\""));
    assert_eq!(saved.text(), "x\n%%CALLBACK%%%%ID%%{{id}}");
    // Somebody else has saved in the meantime.
    let refused = typed(&[("text", "other")]).await;
    assert_eq!(refused.status, 412);
    assert!(
        refused.text().contains("has version 3"),
        "{}",
        refused.text()
    );
}
