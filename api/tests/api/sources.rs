//! The tips of a source; a tip that would retire many workflows at once, and its approval.

use http::Method;
use model::Scope;
use serde_json::{Value, json};

use crate::browser::Browser;
use crate::client::Call;
use crate::service::{Service, text};

const APPROVE: &str = "/v0/sources/main/approve?wait=true";

/// Pushes a commit without workflows. Returns its id.
async fn without_workflows(service: &Service) -> String {
    service.push_unapproved(&[&[("readme", "")]]).await;
    let source = service.get("/v0/sources/main").await.expect(200);
    text(&source["tip"]["commit"])
}

fn reason_of<'s>(source: &'s Value, kind: &str) -> (&'s Value, &'s Value) {
    let mut conditions = source["conditions"].as_array().unwrap().iter();
    let found = conditions.find(|one| one["type"] == kind).unwrap();
    (&found["status"], &found["reason"])
}

#[tokio::test]
async fn a_held_tip_is_shown_everywhere_and_approved_by_its_commit() {
    let service = Service::start().await;
    let before = service.get("/v0/sources/main").await.expect(200);
    let commit = without_workflows(&service).await;
    let held = service.get("/v0/sources/main").await.expect(200);
    let (status, reason) = reason_of(&held, "Active");
    assert_eq!((status, reason), (&json!("false"), &json!("removal_held")));
    assert_eq!(held["active_workflows"], before["active_workflows"]);
    let metrics = Call::get("/metrics").send(service.address).await;
    let metrics = metrics.text();
    let figure =
        "everscan_source_condition{source=\"main\",condition=\"Active\",status=\"false\"} 1";
    assert!(metrics.contains(figure), "{metrics}");

    let approve = async |token: &str, commit: &str| {
        let call = Call::new(Method::POST, APPROVE).bearer(token);
        let call = call.json(&json!({ "commit": commit }));
        call.send(service.address).await
    };
    let reader = service.personal([Scope::ProjectRead], None).await;
    approve(&reader, &commit).await.problem(403, "forbidden");
    let other = text(&before["tip"]["commit"]);
    let refused = approve(&service.admin, &other).await;
    refused.problem(409, "not_the_tip");
    let stays = service.get("/v0/sources/main").await.expect(200);
    assert_eq!(stays["active_workflows"], before["active_workflows"]);

    let approved = approve(&service.admin, &commit).await.expect(200);
    let (status, reason) = reason_of(&approved, "Active");
    assert_eq!((status, reason), (&json!("true"), &json!("folder_missing")));
    assert_eq!(approved["active_workflows"], 0);
    // A repeat is harmless.
    approve(&service.admin, &commit).await.expect(200);
    let audit = service.get("/v0/audit?kind=source_approved").await;
    let audit = audit.expect(200);
    assert_eq!(audit["items"].as_array().unwrap().len(), 1);
    let action = json!({"kind": "source_approved", "name": "main", "reason": commit});
    assert_eq!(audit["items"][0]["actions"], json!([action]));
}

#[tokio::test]
async fn the_page_of_a_held_source_has_the_button() {
    let service = Service::start().await;
    let browser = Browser::admin(&service).await;
    let button = "/sources/main/approve";
    let page = browser.page("/sources/main").await;
    assert!(!page.contains(button), "nothing is held");
    let commit = without_workflows(&service).await;
    let page = browser.page("/sources/main").await;
    assert!(page.contains(button) && page.contains(&format!("value=\"{commit}\"")));
    assert!(page.contains("would retire"), "{page}");
    let overview = browser.page("/").await;
    assert!(overview.contains("would retire"), "{overview}");

    let form = [("commit", commit.as_str())];
    assert_eq!(browser.done(button, &form).await, "/sources/main");
    // The form does not wait for the poll.
    let synced = service.admin(Call::post("/v0/sources/main/sync?wait=true"));
    assert_eq!(synced.await.expect(200)["active_workflows"], 0);
}

#[tokio::test]
async fn the_tips_of_a_source_are_listed_newest_first() {
    let service = Service::start().await;
    let scans = "scans: {a: {on: {dispatch: {}}, steps: [{run: echo}]}}";
    let commit = |text| [("workflows/pipeline.yaml", scans), ("readme", text)];
    service.push_all(&[&commit("1")]).await;
    service.push_all(&[&commit("2"), &commit("3")]).await;
    let newest = service.get("/v0/sources/main").await.expect(200)["tip"].clone();
    assert_eq!(newest["passed_over"].as_array().unwrap().len(), 1);

    let page = service
        .get("/v0/sources/main/tips?limit=1")
        .await
        .expect(200);
    assert_eq!(page["items"], json!([newest]));
    let mut cursor = text(&page["next_cursor"]);
    let mut number = newest["number"].as_u64().unwrap();
    while number > 1 {
        let path = format!("/v0/sources/main/tips?limit=1&cursor={cursor}");
        let page = service.get(&path).await.expect(200);
        number -= 1;
        assert_eq!(page["items"][0]["number"], number);
        match page["next_cursor"].as_str() {
            Some(next) => next.clone_into(&mut cursor),
            None => assert_eq!(number, 1),
        }
    }
    let all = service
        .get("/v0/sources/main/tips?cursor=18446744073709551615")
        .await
        .expect(200);
    assert_eq!(
        all["items"].as_array().unwrap().len() as u64,
        newest["number"]
    );
    service
        .get("/v0/sources/none/tips")
        .await
        .problem(404, "source_not_found");
}
