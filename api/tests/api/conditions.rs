//! Open conditions.

use http::Method;
use model::condition::{Problem, Subject};
use model::decide::Measure;
use model::{JobId, Reason, Scope};
use serde_json::json;

use crate::browser::Browser;
use crate::client::Call;
use crate::service::{Service, text};

async fn measure(service: &Service, subject: Subject, problems: Vec<Problem>) {
    let report = Measure { subject, problems };
    service.handle.state().submit(report).await.unwrap();
}

/// A job that waits, and its scan.
async fn waiting(service: &Service) -> (JobId, Subject) {
    let job: JobId = service.dispatch("large").await.parse().unwrap();
    let scan = |world: &model::World| world.job(job).unwrap().scan_key();
    let scan = service.handle.state().read(scan);
    (job, Subject::from(&scan))
}

/// The codes of the conditions that the holder of a token sees.
async fn seen(service: &Service, token: &str) -> String {
    let list = Call::get("/v0/conditions").bearer(token);
    let list = list.send(service.address).await.expect(200);
    let items = list["items"].as_array().unwrap().iter();
    let mut codes: Vec<String> = items.map(|open| text(&open["code"])).collect();
    codes.sort_unstable();
    codes.join(" ")
}

/// A service with a condition of each kind of subject. They are named by their codes.
async fn troubled() -> Service {
    let service = Service::follow(&["main", "other"]).await;
    let (job, scan) = waiting(&service).await;
    let reason = Reason::NoRunner;
    measure(&service, scan, vec![Problem::Stuck { job, reason }]).await;
    let runner = service.register("box", &[], 1).await.id;
    let runner = Subject::Runner {
        runner: runner.parse().unwrap(),
    };
    measure(&service, runner, vec![Problem::RunnerLost]).await;
    measure(&service, Subject::Instance, vec![Problem::DiskLow]).await;
    let suspend = "/v0/workflows/main%2Fpipeline/suspend";
    let why = json!({"reason": "holidays"});
    service.post(suspend, &why).await.expect(200);
    service
}

#[tokio::test]
async fn a_condition_is_read_with_the_scope_of_its_subject() {
    use Scope::{Admin, JobRead, ProjectRead, RunnerRead, WorkflowRead};

    let service = troubled().await;
    for (scopes, expected) in [
        (vec![WorkflowRead], "suspended"),
        (vec![WorkflowRead, JobRead], "stuck suspended"),
        (
            vec![WorkflowRead, ProjectRead],
            "invalid_file invalid_file suspended",
        ),
        (vec![WorkflowRead, RunnerRead], "runner_lost suspended"),
        (
            vec![Admin],
            "disk_low invalid_file invalid_file runner_lost stuck suspended",
        ),
    ] {
        let token = service.personal(scopes.clone(), None).await;
        assert_eq!(seen(&service, &token).await, expected, "{scopes:?}");
    }
    let all = [WorkflowRead, JobRead, ProjectRead];
    let token = service.limited(all, &["other"]).await;
    assert_eq!(seen(&service, &token).await, "invalid_file");
    let token = service.personal([ProjectRead, JobRead], None).await;
    let list = Call::get("/v0/conditions").bearer(&token);
    list.send(service.address).await.problem(403, "forbidden");
}

#[tokio::test]
async fn a_condition_is_changed_with_workflow_write_and_one_of_the_instance_by_an_admin() {
    use Scope::{Admin, RunnerRead, WorkflowRead, WorkflowWrite};

    let service = troubled().await;
    let write = vec![WorkflowRead, RunnerRead, WorkflowWrite];
    for (scopes, code, status) in [
        (write.clone(), "suspended", 200),
        (vec![WorkflowRead], "suspended", 403),
        (write.clone(), "invalid_file", 404),
        (write.clone(), "runner_lost", 403),
        (write.clone(), "disk_low", 404),
        (vec![Admin], "runner_lost", 200),
        (vec![Admin], "disk_low", 200),
    ] {
        let token = service.personal(scopes.clone(), None).await;
        let condition = service.condition(code).await;
        for word in ["acknowledge", "silence"] {
            let path = format!("/v0/conditions/{condition}/{word}");
            let call = Call::new(Method::POST, path).bearer(&token);
            let answer = call.send(service.address).await;
            assert_eq!(answer.status, status, "{scopes:?} {code}: {answer:?}");
        }
    }
    let elsewhere = service.limited(write, &["other"]).await;
    let condition = service.condition("suspended").await;
    let path = format!("/v0/conditions/{condition}/acknowledge");
    let call = Call::new(Method::POST, path).bearer(&elsewhere);
    call.send(service.address).await.problem(404, "not_found");
}

#[tokio::test]
async fn the_overview_lists_what_the_daemon_measures() {
    let service = Service::start().await;
    let browser = Browser::admin(&service).await;
    let (job, subject) = waiting(&service).await;
    let reason = Reason::NoRunner;
    let problems = vec![Problem::Stuck { job, reason }, Problem::HistoryDamaged];
    measure(&service, subject, problems).await;
    let page = browser.page("/").await;
    let (_, needs) = page.split_once("id=\"needs-title\"").unwrap();
    let (needs, _) = needs.split_once("</section>").unwrap();
    for part in [
        "of main/pipeline",
        &job.to_string(),
        "waits: no runner of this project is registered",
        "lines of its history cannot be read",
    ] {
        assert!(needs.contains(part), "{part}: {needs}");
    }
}

#[tokio::test]
async fn an_acknowledged_condition_is_folded_away_with_its_note() {
    let service = Service::start().await;
    let browser = Browser::admin(&service).await;
    let condition = service.condition("invalid_file").await;
    let count = |page: &str| {
        let (_, rest) = page.split_once("id=\"needs-title\"").unwrap();
        let (_, side) = rest.split_once("<div class=\"side\">").unwrap();
        side.split('<').next().unwrap().parse::<u32>().unwrap()
    };
    let before = count(&browser.page("/").await);
    let path = format!("/conditions/{condition}/acknowledge");
    assert_eq!(browser.done(&path, &[("note", "Monday")]).await, "/");
    let page = browser.page("/").await;
    assert_eq!(count(&page), before - 1);
    assert!(page.contains("1 acknowledged or silenced"), "{page}");
    assert!(page.contains(": Monday<"), "{page}");
    let path = format!("/conditions/{condition}/silence");
    assert_eq!(browser.done(&path, &[("seconds", "3600")]).await, "/");
    let listed = service.get("/v0/conditions").await.expect(200);
    let open = listed["items"].as_array().unwrap();
    let silenced = open
        .iter()
        .find(|it| it["id"] == condition.as_str())
        .unwrap();
    assert!(silenced["silenced_until"].is_string(), "{silenced}");
    let (id, short) = (condition.as_str(), &condition[..8]);
    for (path, status) in [(short, 200), (&id[..3], 404), ("ffffffff", 404)] {
        let path = format!("/v0/conditions/{path}/acknowledge");
        service.post(&path, &json!({})).await.expect(status);
    }
}
