//! Jobs that are named by a part of their id, and the values that their expressions read.

use chrono::TimeDelta;
use model::Scope;
use serde_json::json;

use crate::answers::check;
use crate::client::Call;
use crate::service::{Service, text};

#[tokio::test]
async fn a_job_is_found_by_the_first_or_last_digits_of_its_id() {
    let service = Service::follow(&["main", "other"]).await;
    let (_, worker) = service.claimed("one").await;
    service.complete(&worker, 0).await.expect(200);
    // Ids of one millisecond may differ only in their last digit.
    service.clock.advance(TimeDelta::milliseconds(1));
    let waiting = service.dispatch("large").await;
    for id in [&worker.id, &waiting] {
        let digits = id.replace('-', "");
        for part in [&id[id.len() - 8..], &id[..30], &digits[28..], &digits[..30]] {
            let found = service.get(&format!("/v0/jobs/{part}")).await;
            assert_eq!(found.expect(200)["id"], json!(id), "{part}");
        }
    }
    let end = &waiting[waiting.len() - 8..];
    // Every route of users accepts a part of an id.
    service
        .get(&format!("/v0/jobs/{end}/artifacts"))
        .await
        .expect(200);
    let log = service.get(&format!("/v0/jobs/{end}/logs")).await;
    assert_eq!(log.status, 200);
    let cancel = Call::post(format!("/v0/jobs/{end}/cancel"));
    let cancelled = service.admin(cancel).await.expect(200);
    assert_eq!(cancelled["id"], json!(waiting));

    let stranger = service.limited([Scope::JobRead], &["other"]).await;
    let call = Call::get(format!("/v0/jobs/{end}")).bearer(&stranger);
    call.send(service.address).await.problem(404, "not_found");
}

#[tokio::test]
async fn an_ambiguous_part_lists_its_jobs_and_an_unknown_part_says_which_jobs_were_searched() {
    let service = Service::follow(&["main", "other"]).await;
    let first = service.dispatch("large").await;
    service
        .admin(Call::post(format!("/v0/jobs/{first}/cancel")))
        .await
        .expect(200);
    let second = service.dispatch("build").await;
    // The first digits encode the time, and the clock of the test stands still.
    let shared = &first[..9];
    let answer = service.get(&format!("/v0/jobs/{shared}")).await;
    check(&service, "jobs/ambiguous_job", &answer);
    let hint = text(&answer.problem(409, "ambiguous_name")["hint"]);
    assert!(hint.contains(&first) && hint.contains(&second), "{hint}");

    // Without `job:read` no job is named.
    let writer = service.limited([Scope::JobWrite], &["main"]).await;
    let call = Call::post(format!("/v0/jobs/{shared}/cancel")).bearer(&writer);
    let problem = call.send(service.address).await;
    let hint = text(&problem.problem(409, "ambiguous_name")["hint"]);
    assert_eq!(hint, "give more of it, or the whole id");

    // Jobs of other projects are no candidates.
    let stranger = service.limited([Scope::JobRead], &["other"]).await;
    let call = Call::get(format!("/v0/jobs/{shared}")).bearer(&stranger);
    call.send(service.address).await.problem(404, "not_found");

    for (part, hint) in [
        ("ffffffff", "the newest 1000 finished ones"),
        ("123", "at least 4"),
    ] {
        let problem = service.get(&format!("/v0/jobs/{part}")).await;
        let problem = problem.problem(404, "not_found");
        assert!(text(&problem["hint"]).contains(hint), "{problem}");
    }
    service
        .get("/v0/jobs/no-id")
        .await
        .problem(404, "not_found");
}

#[tokio::test]
async fn jobs_are_listed_by_a_part_of_their_ids_page_by_page() {
    let service = Service::follow(&["main", "other"]).await;
    let first = service.dispatch("large").await;
    service
        .admin(Call::post(format!("/v0/jobs/{first}/cancel")))
        .await
        .expect(200);
    let second = service.dispatch("build").await;
    let list = async |query: &str| {
        let page = service.get(&format!("/v0/jobs?{query}")).await.expect(200);
        let items = page["items"].as_array().unwrap().iter();
        let ids: Vec<String> = items.map(|job| text(&job["id"])).collect();
        (ids, page["next_cursor"].clone())
    };
    let (shared, end) = (&first[..9], &first[first.len() - 8..]);
    for query in [format!("id={end}"), format!("id={first}")] {
        assert_eq!(list(&query).await.0, [&*first], "{query}");
    }
    let (newest, next) = list(&format!("id={shared}&limit=1")).await;
    assert_eq!(newest, [second]);
    let rest = format!("id={shared}&limit=1&cursor={}", text(&next));
    assert_eq!(list(&rest).await, ([first.clone()].into(), json!(null)));
    let unknown = "11111111-1111-4111-8111-111111111111";
    for nobody in ["id=ffffffff".to_owned(), format!("id={unknown}")] {
        assert_eq!(list(&nobody).await.0.len(), 0, "{nobody}");
    }
    for (query, field) in [
        ("id=123", "id"),
        ("id=large", "id"),
        ("id=ffffffff&state=failed", "state"),
        ("id=ffffffff&cursor=x", "cursor"),
    ] {
        let problem = service.get(&format!("/v0/jobs?{query}")).await;
        let problem = problem.problem(400, "invalid_request");
        assert_eq!(problem["errors"][0]["field"], field, "{problem}");
    }
    let stranger = service.limited([Scope::JobRead], &["other"]).await;
    let call = Call::get(format!("/v0/jobs?id={shared}")).bearer(&stranger);
    let seen = call.send(service.address).await.expect(200);
    assert_eq!(seen["items"], json!([]));
}

#[tokio::test]
async fn the_list_of_candidates_is_limited() {
    let service = Service::start().await;
    for _ in 0..12 {
        service.dispatch("large").await;
    }
    let id = service.dispatch("large").await;
    let answer = service.get(&format!("/v0/jobs/{}", &id[..8])).await;
    let hint = text(&answer.problem(409, "ambiguous_name")["hint"]);
    assert_eq!(hint.matches("large").count(), 10, "{hint}");
    assert!(hint.ends_with("and more"), "{hint}");
}

#[tokio::test]
async fn a_context_has_the_values_frozen_at_the_claim_and_no_secret() {
    let service = Service::start().await;
    let file = "
scans:
  base: { on: { dispatch: {} }, steps: [ { run: x } ] }
  use:
    on: { dispatch: { inputs: { target: { required: true } } } }
    env: { URL: '${{ vars.URL }}', TARGET: '${{ inputs.target }}' }
    steps: [ { run: 'echo ${{ secrets.KEY }} ${{ scans.base.size() }}' } ]
";
    service.push(&[("workflows/use.yaml", file)]).await;
    service
        .set("vars/URL", "https://localhost")
        .await
        .expect(200);
    service.set("vars/UNUSED", "x").await.expect(200);
    service.set("secrets/KEY", "hunter2").await.expect(200);
    let dispatch = json!({"inputs": {"target": "all"}});
    let job = service
        .post("/v0/workflows/use/scans/use/dispatch", &dispatch)
        .await;
    let job = text(&job.expect(202)["job"]["id"]);
    let path = format!("/v0/jobs/{job}/context");
    let early = service.get(&path).await;
    early.problem(409, "illegal_transition");

    let runner = service.register("one", &[], 1).await;
    service.claim(&runner, &[]).await;
    service.set("vars/URL", "https://changed").await.expect(200);
    let answer = service.get(&path).await;
    answer.expect(200);
    check(&service, "jobs/job_context", &answer);
    let shown = answer.json();
    assert_eq!(
        shown["context"]["vars"],
        json!({"URL": "https://localhost"})
    );
    assert_eq!(shown["context"]["inputs"], json!({"target": "all"}));
    assert_eq!(shown["context"]["scans"]["base"]["size"], 0);
    assert_eq!(shown["secrets"], json!({"KEY": 1}));
    assert!(!answer.text().contains("hunter2"));
}
