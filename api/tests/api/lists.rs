//! Every list has pages.

use std::collections::BTreeSet;

use api::{Access, ROUTES};
use http::Method;
use serde_json::{Value, json};

use crate::client::Call;
use crate::entries::{packed, with_artifacts};
use crate::service::{Service, text};

/// Lists without a cursor, and why.
const WHOLE: &[(&str, &str)] = &[
    (
        "/v0/schedule",
        "the slots of schedules have no end: `limit` says how far to look",
    ),
    (
        "/v0/sessions",
        "a token has at most 50 sessions, which is one page",
    ),
];

/// A path of the route for an object of the service, with the required parameters.
fn example(route: &str, job: &str, callback: &str, group: &str) -> String {
    let mut path = route.to_owned();
    for (name, value) in [
        ("{source}", "main"),
        ("{project}", "main"),
        ("{workflow}", "main%2Fpipeline"),
        ("{scan}", "build"),
        ("{revision}", "1"),
        ("{job}", job),
        ("{callback}", callback),
        ("{number}", "1"),
        ("{group}", group),
        ("{payload}", "a.svg"),
        ("{artifact}", "out"),
        ("{runner}", "one"),
        ("{var}", "URL"),
        ("{secret}", "KEY"),
        ("{*path}", "a"),
        ("{user}", "owner"),
        ("{channel}", "a?project=main"),
    ] {
        path = path.replace(name, value);
    }
    if route.ends_with("/search") {
        path.push_str("?q=a");
    } else if route.starts_with("/v0/blob") {
        path.push_str("?project=main");
    } else if route.ends_with("{revision}/diff") {
        path.push_str("?from=1");
    } else if route.ends_with("{artifact}/diff") {
        path.push_str(&format!("?against={job}"));
    }
    path
}

/// The items of a list, one at a time.
async fn one_by_one(service: &Service, path: &str) -> Vec<Value> {
    let and = if path.contains('?') { '&' } else { '?' };
    let (mut items, mut cursor) = (Vec::new(), String::new());
    loop {
        let page = format!("{path}{and}limit=1{cursor}");
        let page = service.get(&page).await.expect(200);
        let found = page["items"].as_array().unwrap();
        assert!(found.len() <= 1, "{path}: {page}");
        items.extend(found.iter().cloned());
        match page.get("next_cursor") {
            Some(next) => cursor = format!("&cursor={}", encoded(&text(next))),
            None => return items,
        }
    }
}

fn encoded(cursor: &str) -> String {
    cursor.bytes().map(|byte| format!("%{byte:02x}")).collect()
}

#[tokio::test]
async fn every_list_takes_a_limit_and_a_cursor() {
    let zips = [
        packed(&[("a", "1"), ("b", "2")]),
        packed(&[("a", "1"), ("c", "2")]),
    ];
    let (service, jobs) = with_artifacts(&zips).await;
    for name in ["vars/URL", "vars/DEPTH", "secrets/KEY", "secrets/OTHER"] {
        service.set(name, "hunter2").await.expect(200);
    }
    service.register("two", &[], 1).await;
    for name in ["kim", "lee"] {
        service.robot(name, &[("main", model::Role::Viewer)]).await;
    }
    for path in ["a", "b/c"] {
        let upload = Call::new(Method::PUT, format!("/v0/blobs/{path}?project=main"));
        service.admin(upload.bytes("x")).await.expect(201);
        let link = json!({"path": path, "use_for": "get", "expires_in": "1h"});
        let made = service.post("/v0/blob-links?project=main", &link).await;
        made.expect(201);
    }
    for path in ["channels/a", "channels/b", "rules/a", "rules/b"] {
        let body = match path.starts_with("rules") {
            true => json!({"channel": "a"}),
            false => json!({"target": {"kind": "command", "command": "page"}}),
        };
        let set = Call::new(Method::PUT, format!("/v0/{path}?project=main"));
        service.admin(set.json(&body)).await.expect(200);
    }
    let callback = service.callback("main").await;
    for _ in 0..2 {
        let tag = service.callback_tag(&callback).await;
        service.hear(&callback, Some(&tag)).await;
    }
    let group = service.payload_group("main").await;
    let create = json!({"project": "main", "name": "other"});
    service
        .post("/v0/payload-groups", &create)
        .await
        .expect(201);
    let (mut lists, mut whole) = (0, BTreeSet::new());
    for route in ROUTES.iter().filter(|route| route.method == Method::GET) {
        if matches!(
            route.access,
            Access::Public(_)
                | Access::Local(..)
                | Access::Link(_)
                | Access::Worker(_)
                | Access::Page(..)
        ) {
            continue;
        }
        let path = example(route.path, &jobs[0], &callback, &group);
        assert!(!path.contains('{'), "{path} has no example");
        let call = Call::get(&path).bearer(&service.admin);
        let answer = call.send_to_stream(service.address).await;
        assert_eq!(answer.status, 200, "{path}: {}", answer.text());
        let Some(all) = serde_json::from_slice::<Value>(&answer.body)
            .ok()
            .and_then(|body| body.get("items").cloned())
        else {
            continue;
        };
        lists += 1;
        if !["limit", "cursor"]
            .iter()
            .all(|it| route.query.contains(it))
        {
            whole.insert(route.path);
            continue;
        }
        let pages = one_by_one(&service, &path).await;
        assert_eq!(Value::from(pages), all, "{path}");
    }
    assert!(lists > 15, "{lists}");
    assert_eq!(whole, WHOLE.iter().map(|(path, _)| *path).collect());
}
