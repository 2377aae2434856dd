//! Revisions of a workflow: lists, texts, and differences.

use http::Method;
use model::Scope;
use serde_json::{Value, json};

use crate::answers::check;
use crate::client::Call;
use crate::service::{PLAIN, Service, text};

const PLAIN_LATER: &str = "scans: { only: { on: { dispatch: {} }, steps: [ { run: echo later } ] }, two: { on: { dispatch: {} }, steps: [ { run: x } ] } }\n";

const REVISIONS: &str = "/v0/workflows/main%2Fdeep%2Fplain/revisions";

/// A service in which a workflow has three revisions: plain, later, and plain again.
async fn with_revisions() -> Service {
    let service = Service::start().await;
    for text in [PLAIN_LATER, PLAIN] {
        service.push(&[("workflows/deep/plain.yaml", text)]).await;
    }
    service
}

#[tokio::test]
async fn the_answers_about_revisions_are_unchanged() {
    let service = with_revisions().await;
    for (name, path) in [
        ("workflows/revisions", ""),
        ("workflows/revision", "/2"),
        ("workflows/revision_diff", "/2/diff"),
    ] {
        let answer = service.get(&format!("{REVISIONS}{path}")).await;
        answer.expect(200);
        check(&service, name, &answer);
    }
}

fn numbers(page: &Value) -> Vec<u64> {
    let items = page["items"].as_array().unwrap().iter();
    items.map(|item| item["number"].as_u64().unwrap()).collect()
}

#[tokio::test]
async fn revisions_are_listed_newest_first_page_by_page() {
    let service = with_revisions().await;
    let whole = service.get(REVISIONS).await.expect(200);
    assert_eq!(numbers(&whole), [3, 2, 1]);
    assert_eq!(whole.get("next_cursor"), None);
    let first = service
        .get(&format!("{REVISIONS}?limit=2"))
        .await
        .expect(200);
    assert_eq!(numbers(&first), [3, 2]);
    let cursor = text(&first["next_cursor"]);
    let rest = format!("{REVISIONS}?limit=2&cursor={cursor}");
    let rest = service.get(&rest).await.expect(200);
    assert_eq!(numbers(&rest), [1]);
    assert_eq!(rest.get("next_cursor"), None);
    for query in ["limit=0", "cursor=x", "order=up"] {
        let answer = service.get(&format!("{REVISIONS}?{query}")).await;
        answer.problem(400, "invalid_request");
    }
}

#[tokio::test]
async fn a_revision_is_found_by_number_or_id_or_as_newest() {
    let service = with_revisions().await;
    let two = service.get(&format!("{REVISIONS}/2")).await.expect(200);
    assert_eq!(two["text"], PLAIN_LATER);
    assert_eq!(two["valid"], true);
    assert_eq!(two["commit"].as_str().map(str::len), Some(40));
    let by_id = format!("{REVISIONS}/{}", text(&two["id"]));
    assert_eq!(service.get(&by_id).await.expect(200), two);
    let newest = service.get(&format!("{REVISIONS}/newest")).await;
    assert_eq!(newest.expect(200)["number"], 3);
    for unknown in ["0", "4", "x", "11111111-1111-4111-8111-111111111111"] {
        let answer = service.get(&format!("{REVISIONS}/{unknown}")).await;
        answer.problem(404, "not_found");
    }
}

#[tokio::test]
async fn a_revision_is_compared_with_the_previous_revision_by_default() {
    let service = with_revisions().await;
    let newest = service
        .get(&format!("{REVISIONS}/3/diff"))
        .await
        .expect(200);
    assert_eq!(
        (&newest["from"]["number"], &newest["to"]["number"]),
        (&json!(2), &json!(3))
    );
    let scans = newest["difference"]["scans"].as_array().unwrap();
    let fates: Vec<&Value> = scans.iter().map(|scan| &scan["fate"]).collect();
    assert_eq!(fates, ["changed", "removed"]);
    let text = &newest["text"];
    let hunk = &text["hunks"][0];
    assert_eq!(
        (&hunk["from_line"], &text["cut"]),
        (&json!(1), &json!(false))
    );
    let lines: Vec<&str> = hunk["lines"]
        .as_array()
        .unwrap()
        .iter()
        .map(|line| line.as_str().unwrap())
        .collect();
    for text in [PLAIN_LATER, PLAIN] {
        let mark = if text == PLAIN { '+' } else { '-' };
        for line in text.lines() {
            assert!(lines.contains(&&*format!("{mark}{line}")), "{lines:?}");
        }
    }
    let same = service
        .get(&format!("{REVISIONS}/3/diff?from=1"))
        .await
        .expect(200);
    assert_eq!(
        (&same["difference"]["scans"], &same["lines"]),
        (&json!([]), &json!([]))
    );
    assert_eq!(
        (&same["untouched"], &same["text"]["hunks"]),
        (&json!(["only"]), &json!([]))
    );
    let first = service.get(&format!("{REVISIONS}/1/diff")).await;
    first.problem(404, "not_found");
    let unknown = service.get(&format!("{REVISIONS}/1/diff?from=9")).await;
    unknown.problem(404, "not_found");
}

#[tokio::test]
async fn a_difference_lists_changed_slots_of_schedules() {
    let service = Service::start().await;
    let at_three = "on: { cron: '0 3 * * *', timezone: Europe/Berlin }, steps: [ { run: x } ]";
    let at_four = at_three.replace('3', "4");
    let file = |scans: &[(&str, &str)]| {
        let scans = scans
            .iter()
            .map(|(name, scan)| format!("{name}: {{ {scan} }}"));
        format!("scans: {{ {} }}\n", scans.collect::<Vec<_>>().join(", "))
    };
    for text in [
        file(&[("same", at_three), ("later", at_three), ("gone", at_three)]),
        file(&[("same", at_three), ("later", &at_four)]),
    ] {
        service.push(&[("workflows/deep/plain.yaml", &text)]).await;
    }
    let diff = service.get(&format!("{REVISIONS}/3/diff")).await;
    let slots = |hour: u32| -> Vec<String> {
        let days = 21..26;
        days.map(|day| format!("2026-11-{day}T{hour:02}:00:00+01:00"))
            .collect()
    };
    assert_eq!(
        diff.expect(200)["next_slots"],
        json!([
            {"scan": "later", "from": slots(3), "to": slots(4)},
            {"scan": "gone", "from": slots(3), "to": []},
        ])
    );
}

#[tokio::test]
async fn a_damaged_text_hides_no_other_revision() {
    let service = with_revisions().await;
    service.handle.state().settled().await.unwrap();
    let workflow = service
        .get("/v0/workflows/main%2Fdeep%2Fplain")
        .await
        .expect(200);
    let folder = format!("workflows/{}/revisions", text(&workflow["id"]));
    let folders = std::fs::read_dir(service.root().join(folder)).unwrap();
    let two = folders
        .map(|entry| entry.unwrap())
        .find(|entry| entry.file_name().to_str().unwrap().starts_with("2-"))
        .unwrap();
    std::fs::write(two.path().join("workflow.yaml"), "other").unwrap();
    for path in ["2", "2/diff", "3/diff"] {
        let answer = service.get(&format!("{REVISIONS}/{path}")).await;
        let problem = answer.problem(409, "workflow_unreadable");
        assert!(text(&problem["detail"]).contains("revision 2"), "{problem}");
    }
    service
        .get(&format!("{REVISIONS}/3/diff?from=1"))
        .await
        .expect(200);
    std::fs::write(two.path().join("revision.json"), "other").unwrap();
    let listed = service.get(REVISIONS).await.expect(200);
    assert_eq!(numbers(&listed), [3, 2, 1]);
    assert_eq!(listed["items"][1].get("activated_at"), None);
}

#[tokio::test]
async fn revisions_of_another_project_do_not_exist_for_a_reader() {
    let service = Service::follow(&["main", "other"]).await;
    let stranger = service.limited([Scope::WorkflowRead], &["other"]).await;
    for path in ["", "/1", "/1/diff"] {
        let call = Call::new(Method::GET, format!("{REVISIONS}{path}")).bearer(&stranger);
        let answer = call.send(service.address).await;
        answer.problem(404, "workflow_not_found");
    }
}
