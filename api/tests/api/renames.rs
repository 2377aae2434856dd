//! A renamed scan: references to the old name lead to the new name.

use serde_json::json;

use crate::browser::Browser;
use crate::service::Service;

const OLD: &str = "scans: { old: { on: { dispatch: {} }, steps: [ { run: x }, { run: y } ] } }";
const FRESH: &str = "scans: { fresh: { renamed_from: old, on: { dispatch: {} }, steps: [ { run: x }, { run: y } ] } }";

#[tokio::test]
async fn the_old_name_leads_to_the_renamed_scan() {
    let service = Service::start().await;
    service.push(&[("workflows/w.yaml", OLD)]).await;
    let runner = service.register("one", &[], 1).await;
    let dispatch = "/v0/workflows/w/scans/old/dispatch";
    service.post(dispatch, &json!({})).await.expect(202);
    let claimed = service.claim(&runner, &[]).await;
    service.complete(&claimed, 0).await.expect(200);
    service.push(&[("workflows/w.yaml", FRESH)]).await;

    let why = service.get("/v0/workflows/w/scans/old/why").await;
    assert_eq!(why.expect(200)["renamed_to"], "fresh");
    let why = service.get("/v0/workflows/w/scans/fresh/why").await;
    assert_eq!(why.expect(200)["renamed_from"], "old");
    let browser = Browser::admin(&service).await;
    let moved = browser.get("/workflows/main/w/-/scans/old").await;
    assert_eq!(moved.status, 303);
    assert_eq!(
        moved.header("location"),
        Some("/workflows/main/w/-/scans/fresh")
    );
    let rerun = format!("/v0/jobs/{}/rerun", claimed.id);
    let refused = service.post(&rerun, &json!({ "current": true })).await;
    let refused = refused.problem(409, "retired");
    assert_eq!(
        refused["hint"],
        "its name is `fresh` now; `everscan scan dispatch` starts a job of it"
    );
}
