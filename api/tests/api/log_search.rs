//! Searches in job logs.

use serde_json::json;

use crate::client::Call;
use crate::logs::{append, varied};
use crate::service::Service;

#[tokio::test]
async fn a_log_is_searched_while_the_job_runs_and_afterwards() {
    let service = Service::start().await;
    let (_, worker) = service.claimed("one").await;
    let search = async |query: &str| {
        let answer = service
            .get(&worker.path(&format!("logs/search?{query}")))
            .await;
        answer.expect(200)
    };
    let nothing = json!({"total": 0, "matches": [], "records": 0});
    assert_eq!(search("q=one").await, nothing);
    varied(&service, &worker).await;
    for is_over in [false, true] {
        for (query, expected) in [
            ("q=one", &[1, 4][..]),
            ("q=error", &[2, 5]),
            ("q=Error", &[2]),
            ("q=error&case=true", &[5]),
            ("q=ERROR&case=false", &[2, 5]),
            ("q=one&step=1", &[4]),
            ("q=e&stream=runner", &[0, 9]),
            ("q=e&since=2026-11-20T12:00:07Z", &[7, 9]),
            ("q=%22Gr%C3%BC%C3%9Fe%22%09", &[6]),
            ("q=gr%C3%BC", &[6]),
            ("q=a+y", &[]),
            ("q=stdout", &[]),
            ("q=%5Ct", &[]),
            ("q=12:00", &[]),
        ] {
            let found = search(query).await;
            let matches = found["matches"].as_array().unwrap();
            let numbers: Vec<u64> = matches.iter().map(|it| it["n"].as_u64().unwrap()).collect();
            assert_eq!(numbers, expected, "{query}, over: {is_over}");
            assert_eq!(found["total"], expected.len(), "{query}");
            assert_eq!(found["records"], 10);
            assert_eq!(found.get("next_cursor"), None);
        }
        if !is_over {
            service.complete(&worker, 10).await.expect(200);
        }
    }
    let found = search("q=an+error").await;
    let expected = json!({
        "n": 2, "at": "2026-11-20T12:00:02Z", "step": 0, "stream": "stderr", "text": "an Error",
    });
    assert_eq!(found["matches"], json!([expected]));
}

#[tokio::test]
async fn a_search_counts_all_matches_and_has_pages() {
    let service = Service::start().await;
    let (_, worker) = service.claimed("one").await;
    let lines: Vec<String> = (0..130).map(|n| format!("line {n}")).collect();
    let lines: Vec<&str> = lines.iter().map(String::as_str).collect();
    append(&service, &worker, 0, &lines).await;
    let path = worker.path("logs/search?q=line");
    let (mut cursor, mut sizes, mut numbers) = (String::new(), Vec::new(), Vec::new());
    loop {
        let page = service.get(&format!("{path}{cursor}")).await.expect(200);
        assert_eq!(
            (&page["total"], &page["records"]),
            (&json!(130), &json!(130))
        );
        let matches = page["matches"].as_array().unwrap();
        sizes.push(matches.len());
        numbers.extend(matches.iter().map(|it| it["n"].as_u64().unwrap()));
        match page.get("next_cursor") {
            Some(next) => {
                assert_eq!(*next, (numbers.last().unwrap() + 1).to_string());
                cursor = format!("&cursor={}", next.as_str().unwrap());
            }
            None => break,
        }
    }
    assert_eq!(sizes, [50, 50, 30]);
    assert!(numbers.into_iter().eq(0..130));
    let all = service.get(&format!("{path}&limit=200")).await.expect(200);
    assert_eq!(all["matches"].as_array().map(Vec::len), Some(130));
}

#[tokio::test]
async fn only_readers_of_a_projects_jobs_can_search_their_logs() {
    let service = Service::follow(&["main", "other"]).await;
    let (_, worker) = service.claimed("one").await;
    varied(&service, &worker).await;
    let scopes = [model::Scope::JobRead];
    let viewer = service.limited(scopes, &["main"]).await;
    let stranger = service.limited(scopes, &["other"]).await;
    let weak = service.personal([model::Scope::WorkflowRead], None).await;
    let missing = "01990000-0000-7000-8000-000000000000";
    for rest in ["logs", "logs?tail=1&step=0", "logs/search?q=one"] {
        let call = |token: &str, path: String| Call::get(path).bearer(token).send(service.address);
        let own = call(&viewer, worker.path(rest)).await;
        assert_eq!(own.status, 200, "{rest}");
        let answer = call(&weak, worker.path(rest)).await;
        answer.problem(403, "forbidden");
        // The answer does not reveal whether a job of another project exists.
        let others = call(&stranger, worker.path(rest)).await;
        let others = others.problem(404, "not_found");
        let none = call(&viewer, format!("/v0/jobs/{missing}/{rest}")).await;
        let none = none.problem(404, "not_found");
        assert_eq!(others["hint"], none["hint"], "{rest}");
        let hint = none["hint"].as_str().unwrap();
        assert!(hint.contains("retention"), "{hint}");
        let said = none["detail"]
            .as_str()
            .unwrap()
            .replace(missing, &worker.id);
        assert_eq!(others["detail"], said);
    }
}
