//! Scans: their status, their history page by page, and the slots of their schedules.

use chrono::TimeDelta;
use model::Scope;
use serde_json::{Value, json};

use crate::answers::check;
use crate::client::Call;
use crate::service::{Service, text};

const PIPELINE: &str = "/v0/workflows/main%2Fpipeline";

/// The items of all pages of a list, with this many on each page.
async fn all(service: &Service, path: &str, limit: usize) -> Vec<Value> {
    let (mut items, mut cursor) = (Vec::new(), String::new());
    loop {
        let page = service.get(&format!("{path}?limit={limit}{cursor}")).await;
        let page = page.expect(200);
        let found = page["items"].as_array().unwrap();
        assert!(found.len() <= limit);
        items.extend(found.iter().cloned());
        match page.get("next_cursor") {
            Some(next) => cursor = format!("&cursor={}", text(next)),
            None => return items,
        }
    }
}

fn names(items: &[Value], member: &str) -> Vec<String> {
    items.iter().map(|item| text(&item[member])).collect()
}

#[tokio::test]
async fn scans_show_their_triggers_and_their_newest_job() {
    let service = Service::start().await;
    let (runner, worker) = service.claimed("one").await;
    service.complete(&worker, 0).await.expect(200);
    service.dispatch("build").await;
    service.claim(&runner, &[]).await;
    let large = service.dispatch("large").await;
    service
        .admin(Call::post(format!("/v0/jobs/{large}/cancel")))
        .await
        .expect(200);

    let scans = all(&service, "/v0/scans", 2).await;
    let found = names(&scans, "name");
    assert_eq!(found, ["only", "announce", "build", "large", "nightly"]);
    let scan = |name: &str| scans.iter().find(|scan| scan["name"] == name).unwrap();
    assert_eq!(
        scan("announce")["reads"],
        json!([{"scan": "build", "how": "starts"}])
    );
    let build = scan("build");
    assert_eq!(
        (&build["unfinished"], &build["finished"]["succeeded"]),
        (&json!(1), &json!(1))
    );
    assert_eq!(build["last_job"]["state"], "running");
    assert_eq!(build["last_job"]["runner"], "one");
    let last = &scan("large")["last_job"];
    assert_eq!(
        (&last["id"], &last["state"]),
        (&json!(large), &json!("cancelled"))
    );
    assert_eq!(last["reason"], "cancelled_by_user");
    assert_eq!(scan("nightly")["next_slot"], "2026-11-21T03:00:00Z");
    assert_eq!(scan("nightly").get("last_job"), None);

    let one = service
        .get(&format!("{PIPELINE}/scans/build"))
        .await
        .expect(200);
    assert_eq!(one, *build);
    let of_one = service
        .get("/v0/scans?workflow=deep/plain")
        .await
        .expect(200);
    assert_eq!(names(of_one["items"].as_array().unwrap(), "name"), ["only"]);
    service
        .get(&format!("{PIPELINE}/scans/nothing"))
        .await
        .problem(404, "not_found");
    service
        .get("/v0/scans?workflow=nothing")
        .await
        .problem(404, "workflow_not_found");
}

#[tokio::test]
async fn the_lines_of_finished_jobs_have_pages() {
    let service = Service::start().await;
    let mut ended = Vec::new();
    let history = format!("{PIPELINE}/scans/large/history");
    assert_eq!(all(&service, &history, 1).await, Vec::<Value>::new());
    for _ in 0..5 {
        let job = service.dispatch("large").await;
        let cancel = Call::post(format!("/v0/jobs/{job}/cancel"));
        service.admin(cancel).await.expect(200);
        ended.insert(0, job);
    }
    service.dispatch("large").await;
    for limit in [1, 2, 5, 1_000] {
        let lines = all(&service, &history, limit).await;
        assert_eq!(names(&lines, "id"), ended, "{limit}");
    }
    // The line of a removed job is hidden, even while it is still in the file.
    let removed = Call::new(
        http::Method::DELETE,
        format!("/v0/jobs/{}", ended.remove(2)),
    );
    service.clock.advance(TimeDelta::minutes(3));
    assert_eq!(service.admin(removed).await.status, 204);
    assert_eq!(names(&all(&service, &history, 2).await, "id"), ended);

    for cursor in ["x", "1", "-1-0"] {
        let answer = service.get(&format!("{history}?cursor={cursor}")).await;
        answer.problem(400, "invalid_request");
    }
    // Invented cursors are harmless.
    for cursor in ["0-7", "18446744073709551615-18446744073709551615"] {
        let page = service.get(&format!("{history}?cursor={cursor}")).await;
        assert_eq!(page.expect(200).get("damaged"), None);
    }
}

#[tokio::test]
async fn the_ledger_has_pages() {
    let service = Service::start().await;
    let (runner, mut worker) = service.claimed("one").await;
    for _ in 0..3 {
        service.complete(&worker, 0).await.expect(200);
        service.dispatch("build").await;
        worker = service.claim(&runner, &[]).await;
    }
    let ledger = format!("{PIPELINE}/scans/announce/ledger");
    let whole = service.get(&ledger).await.expect(200);
    let whole = whole["items"].as_array().unwrap();
    let why = service.get(&format!("{PIPELINE}/scans/announce/why")).await;
    assert_eq!(why.expect(200)["records"].as_array().unwrap(), whole);
    assert!(whole.len() > 1, "{whole:?}");
    for limit in 1..=whole.len() {
        assert_eq!(all(&service, &ledger, limit).await, *whole, "{limit}");
    }
    let page = service
        .get(&format!("{ledger}?cursor=0-5"))
        .await
        .expect(200);
    assert_eq!((&page["items"], page.get("damaged")), (&json!([]), None));
}

#[tokio::test]
async fn next_slots_are_listed_for_all_schedules_or_one_scan() {
    let service = Service::start().await;
    let often = "scans: { tick: { on: { cron: '0 */8 * * *', timezone: Europe/Oslo }, steps: [ { run: x } ] } }\n";
    let files = [
        ("workflows/often.yaml", often),
        (
            "workflows/daily.yaml",
            "scans: { nightly: { on: { cron: '0 3 * * *' }, steps: [ { run: x } ] } }\n",
        ),
    ];
    service.push(&files).await;
    let slots = |query: &'static str| {
        let service = &service;
        async move {
            let page = service
                .get(&format!("/v0/schedule{query}"))
                .await
                .expect(200);
            let items = page["items"].as_array().unwrap().clone();
            items
                .iter()
                .map(|slot| format!("{} {}", text(&slot["scan"]), text(&slot["at"])))
                .collect::<Vec<_>>()
        }
    };
    assert_eq!(
        slots("?limit=4").await,
        [
            "tick 2026-11-20T15:00:00Z",
            "tick 2026-11-20T23:00:00Z",
            "nightly 2026-11-21T03:00:00Z",
            "tick 2026-11-21T07:00:00Z",
        ]
    );
    let daily = slots("?workflow=daily&scan=nightly&limit=10").await;
    assert_eq!(daily.len(), 10);
    assert_eq!(daily[9], "nightly 2026-11-30T03:00:00Z");
    assert_eq!(slots("?limit=1").await, ["tick 2026-11-20T15:00:00Z"]);
    let unknown = service.get("/v0/schedule?scan=nothing").await;
    unknown.problem(404, "not_found");
    service
        .get("/v0/schedule?cursor=x")
        .await
        .problem(400, "invalid_request");
}

#[tokio::test]
async fn a_slot_names_the_first_of_several_schedules_that_is_due() {
    let service = Service::start().await;
    let several =
        "scans: { tick: { on: { cron: ['0 3 * * *', '0 0,3 * * *'] }, steps: [ { run: x } ] } }\n";
    service.push(&[("workflows/several.yaml", several)]).await;
    let page = service.get("/v0/schedule?workflow=several&limit=2").await;
    let page = page.expect(200);
    let slots = page["items"].as_array().unwrap().iter();
    let slots: Vec<_> = slots
        .map(|slot| format!("{} by {}", text(&slot["at"]), text(&slot["schedule"])))
        .collect();
    assert_eq!(
        slots,
        [
            "2026-11-21T00:00:00Z by 0 0,3 * * *",
            "2026-11-21T03:00:00Z by 0 3 * * *",
        ]
    );
    let why = service.get("/v0/workflows/several/scans/tick/why").await;
    let cron = &why.expect(200)["cron"];
    assert_eq!(cron["schedule"], "0 3 * * *; 0 0,3 * * *");
    assert_eq!(cron["description"], "at 03:00; at 00:00 and 03:00");
    assert_eq!(cron["next_schedule"], "0 0,3 * * *");
}

#[tokio::test]
async fn scans_of_another_project_do_not_exist_for_a_reader() {
    let service = Service::follow(&["main", "other"]).await;
    let scopes = [Scope::WorkflowRead, Scope::JobRead];
    let stranger = service.limited(scopes, &["other"]).await;
    let ask = |path: String| Call::get(path).bearer(&stranger).send(service.address);
    for path in ["", "/history", "/ledger"] {
        let answer = ask(format!("{PIPELINE}/scans/build{path}")).await;
        answer.problem(404, "workflow_not_found");
    }
    for (path, count) in [("scans", 5), ("schedule?limit=2", 2)] {
        let page = ask(format!("/v0/{path}")).await.expect(200);
        let items = page["items"].as_array().unwrap();
        assert_eq!(items.len(), count, "{page}");
        for item in items {
            assert_eq!(item["workflow"]["source"], "other");
        }
    }
}

#[tokio::test]
async fn the_answers_about_scans_are_unchanged() {
    let service = Service::start().await;
    let (_, worker) = service.claimed("one").await;
    worker
        .upload("out", b"a zip")
        .send(service.address)
        .await
        .expect(200);
    service.complete(&worker, 0).await.expect(200);
    for (name, path) in [
        ("scans/scans", "/v0/scans".to_owned()),
        ("scans/scan", format!("{PIPELINE}/scans/build")),
        (
            "scans/scan_history",
            format!("{PIPELINE}/scans/build/history"),
        ),
        (
            "scans/scan_ledger",
            format!("{PIPELINE}/scans/announce/ledger"),
        ),
        ("scans/schedule", "/v0/schedule?limit=2".to_owned()),
    ] {
        let answer = service.get(&path).await;
        answer.expect(200);
        check(&service, name, &answer);
    }
}
