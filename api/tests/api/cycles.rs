//! Scans that wake each other: their jobs name their causes, even old ones, and people see the circle.

use chrono::TimeDelta;
use serde_json::{Value, json};

use crate::browser::Browser;
use crate::client::Call;
use crate::service::{Runner, Service, text};

const RING: &str = "
scans:
  a:
    on: { dispatch: {}, expr: scans.b.is_available() }
    steps: [ { run: one }, { run: two } ]
  b:
    on: { expr: scans.a.is_available() }
    steps: [ { run: one }, { run: two } ]
";

/// Waits for the pause of the next job and lets the job succeed.
async fn next(service: &Service, runner: &Runner) -> String {
    service.clock.advance(TimeDelta::seconds(1));
    let claimed = service.claim(runner, &[]).await;
    service.complete(&claimed, 0).await.expect(200);
    claimed.id
}

async fn why(service: &Service, scan: &str) -> Value {
    let path = format!("/v0/workflows/ring/scans/{scan}/why");
    service.get(&path).await.expect(200)
}

/// The number of groups that wake each other, as the metrics report it.
async fn circles(service: &Service) -> String {
    let answer = Call::get("/metrics").send(service.address).await;
    let mut lines = answer.text().lines();
    let circles = lines.find_map(|line| line.strip_prefix("everscan_circles "));
    circles.unwrap().to_owned()
}

#[tokio::test]
async fn jobs_name_even_old_causes_and_a_circle_is_reported() {
    let service = Service::start().await;
    service.push(&[("workflows/ring.yaml", RING)]).await;
    let runner = service.register("one", &[], 1).await;
    let path = "/v0/workflows/ring/scans/a/dispatch";
    service.post(path, &json!({})).await.expect(202);
    let browser = Browser::admin(&service).await;
    let mut jobs = Vec::new();
    for _ in 0..200 {
        jobs.push(next(&service, &runner).await);
    }
    // A circle is reported after more than a hundred laps.
    assert_eq!(why(&service, "b").await.get("circle"), None);
    assert_eq!(circles(&service).await, "0");
    let in_a_circle = "start each other in a circle";
    assert!(!browser.page("/").await.contains(in_a_circle));
    for _ in 0..2 {
        jobs.push(next(&service, &runner).await);
    }
    let told = why(&service, "b").await;
    let waiting = text(&why(&service, "a").await["unfinished"][0]["id"]);
    let circle = json!({"scans": ["a", "b"], "laps": 101, "job": waiting});
    assert_eq!(told["circle"], circle, "{told}");
    assert_eq!(circles(&service).await, "1");
    for (page, part) in [
        ("/", in_a_circle),
        (
            "/workflows/main/ring/-/scans/b",
            "101 laps of under a minute",
        ),
    ] {
        let page = browser.page(page).await;
        assert!(page.contains(part), "{page}");
    }
    // The job waits for the pause, and shows its place in the circle.
    let shown = service.get(&format!("/v0/jobs/{waiting}")).await;
    let shown = shown.expect(200);
    assert_eq!(shown["hops"], 202);
    assert_eq!(shown["waiting"]["code"], "cycle_pause");
    assert_eq!(told["newest"]["causes"], json!([jobs[200]]), "{told}");

    for _ in 0..204 {
        jobs.push(next(&service, &runner).await);
    }
    let first = service.get(&format!("/v0/jobs/{}", jobs[1])).await;
    let first = first.expect(200);
    assert_eq!(first["causes"], json!([jobs[0]]), "{first}");
    assert_eq!(first["hops"], 1);
    let ledger = "/v0/workflows/ring/scans/b/ledger?limit=200";
    let ledger = service.get(ledger).await.expect(200);
    assert!(
        !ledger.to_string().contains(&jobs[1]),
        "200 records are newer"
    );
    let page = browser.page(&format!("/jobs/{}", jobs[1])).await;
    let link = format!("href=\"/jobs/{}\"", jobs[0]);
    let because = page.split("Started because of ").nth(1).unwrap();
    assert!(because[..200].contains(&link), "{because}");
    let line = "/v0/workflows/ring/scans/b/history?limit=1";
    let line = service.get(line).await.expect(200);
    assert_eq!(line["items"][0]["causes"], json!([jobs[404]]), "{line}");

    // After the loop is stopped, the circle is no longer reported.
    let waiting = text(&why(&service, "a").await["unfinished"][0]["id"]);
    let cancel = Call::post(format!("/v0/jobs/{waiting}/cancel"));
    service.admin(cancel).await.expect(200);
    assert_eq!(why(&service, "b").await.get("circle"), None);
    assert_eq!(circles(&service).await, "0");
}
