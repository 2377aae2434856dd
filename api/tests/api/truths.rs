//! Pages tell the truth: hidden objects are not shown as missing, and pages offer no action that is refused.

use api::Front;
use http::Method;
use model::Scope;
use serde_json::json;

use crate::browser::{Browser, sign_in};
use crate::client::Call;
use crate::service::{PLAIN, Service};

const WORKFLOW: &str = "/workflows/main/pipeline";

#[tokio::test]
async fn hidden_objects_are_not_counted_as_none() {
    let service = Service::start().await;
    let scopes = [Scope::WorkflowRead, Scope::JobRead];
    let token = service.personal(scopes, None).await;
    let page = Browser::with(&service, &token).await.page("/").await;
    for wrong in ["First steps", "<dt>sources</dt>", "<dt>runners</dt>"] {
        assert!(!page.contains(wrong), "{wrong}: {page}");
    }
    assert!(page.contains("<dt>running</dt>"), "{page}");
    let token = service.personal([Scope::ProjectRead], None).await;
    let page = Browser::with(&service, &token).await.page("/").await;
    for wrong in ["First steps", "<dt>running</dt>", "Next slots"] {
        assert!(!page.contains(wrong), "{wrong}: {page}");
    }
    assert!(page.contains("<dt>sources</dt>"), "{page}");
}

#[tokio::test]
async fn a_suspension_is_shown_on_all_affected_pages() {
    let service = Service::start().await;
    let browser = Browser::admin(&service).await;
    let over = service.dispatch("large").await;
    let cancel = Call::post(format!("/v0/jobs/{over}/cancel"));
    service.admin(cancel).await.expect(200);
    let waiting = service.dispatch("large").await;
    let slots = async || {
        let schedule = service.get("/v0/schedule?limit=1").await.expect(200);
        let all = schedule["items"].as_array().unwrap().len();
        let one = service
            .get("/v0/schedule?workflow=main/pipeline&scan=nightly&limit=1")
            .await
            .expect(200);
        (all, one["items"].as_array().unwrap().len())
    };
    let rerun = format!("/jobs/{over}/rerun");
    assert_eq!(slots().await, (1, 1));
    assert!(
        browser
            .page(&format!("/jobs/{over}"))
            .await
            .contains(&rerun)
    );

    let form = [("reason", "it is serviced")];
    browser.done(&format!("{WORKFLOW}/-/suspend"), &form).await;
    assert_eq!(slots().await, (0, 0));
    let form = browser
        .page(&format!("{WORKFLOW}/-/scans/large/dispatch"))
        .await;
    let to_resume = format!("the workflow <a href=\"{WORKFLOW}\">");
    assert!(form.contains("it is serviced"), "{form}");
    assert!(form.contains(&to_resume), "{form}");
    assert!(!form.contains("The job would wait"), "{form}");
    let overview = browser.page("/").await;
    assert!(overview.contains("it is serviced"), "{overview}");
    assert!(!overview.contains(">nightly<"), "{overview}");
    let job = browser.page(&format!("/jobs/{over}")).await;
    assert!(!job.contains(&rerun), "{job}");
    // The page was rendered before the suspension.
    let refused = browser.post(&rerun, &[]).await;
    assert_eq!(refused.status, 409, "{refused:?}");
    let remedy = format!("href=\"{WORKFLOW}/-/scans/large\"");
    assert!(refused.text().contains(&remedy), "{refused:?}");
    // The page of a waiting job gets an event when its workflow is suspended.
    let job = browser.page(&format!("/jobs/{waiting}")).await;
    assert!(
        job.contains(&format!("data-live=\"job/{waiting} scan/")),
        "{job}"
    );
}

#[tokio::test]
async fn a_failed_job_shows_which_artifacts_are_stored_after_a_failure() {
    let service = Service::start().await;
    let browser = Browser::admin(&service).await;
    let file = |upload_on: &str| {
        format!(
            "scans:\n  build:\n    on: {{ dispatch: {{}} }}\n    steps: [ {{ name: pack, run: tar }} ]\n    \
             artifacts: [ {{ name: out, paths: [out], upload_on: {upload_on} }} ]\n"
        )
    };
    for (upload_on, expected) in [
        (
            "success",
            "The scan stores its artifacts only after a success.",
        ),
        ("always", "The job left no artifact."),
        ("failure", "The job left no artifact."),
    ] {
        let text = file(upload_on);
        service.push(&[("workflows/pipeline.yaml", &text)]).await;
        let path = "/v0/workflows/main%2Fpipeline/scans/build/dispatch";
        let made = service.post(path, &json!({})).await.expect(202);
        let id = made["job"]["id"].as_str().unwrap().to_owned();
        let page = browser.page(&format!("/jobs/{id}")).await;
        assert!(
            page.contains("<b>pack</b>"),
            "the step has its name: {page}"
        );
        let runner = service.register(upload_on, &[], 1).await;
        let worker = service.claim(&runner, &[]).await;
        assert_eq!(worker.id, id);
        let step = json!({
            "index": 0, "status": "failed", "outcome": "failed", "exit_code": 1,
            "started_at": "2026-11-20T12:00:00Z", "finished_at": "2026-11-20T12:00:01Z",
        });
        let report = json!({ "log_records": 0, "steps": [step] });
        let call = worker.call(Method::POST, &worker.path("complete"));
        call.json(&report).send(service.address).await.expect(200);
        let page = browser.page(&format!("/jobs/{id}")).await;
        assert!(page.contains(expected), "{upload_on}: {page}");
    }
}

#[tokio::test]
async fn missing_names_are_shown_before_a_job_fails() {
    let service = Service::start().await;
    let browser = Browser::admin(&service).await;
    let text = "scans:\n  build:\n    on: { dispatch: { inputs: { n: { type: number, default: 3 } } } }\n    \
                steps: [ { run: \"echo ${{ vars.MODE }} ${{ secrets.KEY }}\" } ]\n";
    service.push(&[("workflows/pipeline.yaml", text)]).await;
    let form = format!("{WORKFLOW}/-/scans/build/dispatch");
    let parts = ["<code>MODE</code>", "<code>KEY</code>"];
    for path in [form.as_str(), "/"] {
        let page = browser.page(path).await;
        for part in parts {
            assert!(page.contains(part), "{path} has no {part}: {page}");
        }
    }
    let page = browser.page(&form).await;
    assert!(page.contains("The job would fail"), "{page}");
    service.set("vars/MODE", "1").await.expect(200);
    service.set("secrets/KEY", "hunter2").await.expect(200);
    let page = browser.page(&form).await;
    assert!(!page.contains("The job would fail"), "{page}");
    // A number has a default, so it is not required. An empty field means the default.
    assert!(!page.contains("(required)"), "{page}");
    let to = browser.done(&form, &[("inputs.n", "")]).await;
    let job = to.strip_prefix("/jobs/").unwrap();
    let made = service.get(&format!("/v0/jobs/{job}")).await.expect(200);
    assert_eq!(made["inputs"]["n"], 3, "{made}");
}

#[tokio::test]
async fn an_unknown_name_in_a_filter_keeps_the_filters() {
    let service = Service::start().await;
    let browser = Browser::admin(&service).await;
    for (query, field) in [
        ("workflow=none&reason=dispatched", "workflow"),
        ("workflow=main/pipeline&scan=a%20b", "scan"),
        ("reason=no_reason&workflow=main/pipeline", "reason"),
        ("trigger=foo&workflow=main/pipeline", "trigger"),
        ("state=fine&workflow=main/pipeline", "state"),
        ("runner=none&workflow=main/pipeline", "runner"),
    ] {
        let answer = browser.get(&format!("/jobs?{query}")).await;
        assert_eq!(answer.status, 422, "{query}: {answer:?}");
        let page = answer.text();
        let error = format!("id=\"filter-{field}-error\"");
        assert!(page.contains(&error), "{query}: {page}");
        assert!(page.contains("<h1>Jobs</h1>"), "{page}");
        assert!(!page.contains("the request is not valid"), "{page}");
    }
    let page = browser.get("/jobs?workflow=none&runner=north").await;
    assert!(page.text().contains("value=\"north\""), "{page:?}");
    let hint = "<code>everscan workflow list</code> shows the workflows";
    assert!(page.text().contains(hint), "{page:?}");
    let page = browser.get("/jobs?trigger=foo").await;
    let kept = "<option value=\"foo\" selected>foo</option>";
    assert!(page.text().contains(kept), "{page:?}");
    assert!(page.text().contains("No job is listed"), "{page:?}");
}

#[tokio::test]
async fn a_refused_upload_names_its_field() {
    let service = Service::start().await;
    let browser = Browser::admin(&service).await;
    let path = "/blobs/a?project=main&expires_in=2%20weeks";
    let put = browser.call(Method::PUT, path).bytes("x");
    let problem = browser.send(put).await.problem(400, "invalid_request");
    let detail = problem["detail"].as_str().unwrap();
    assert!(detail.starts_with("“Kept for”: `2 weeks`"), "{detail}");
    assert!(detail.contains("2w"), "{detail}");
    let put = browser.call(Method::PUT, "/blobs/a?project=main&expires_in=2w");
    assert_eq!(browser.send(put.bytes("x")).await.status, 201);
}

#[tokio::test]
async fn a_failed_sign_in_shows_one_problem_and_no_name() {
    let service = Service::start().await;
    let page = sign_in(&service, "wrong", "").await;
    assert!(page.text().contains("This token is not valid"), "{page:?}");
    assert!(!page.text().contains("request is not valid"), "{page:?}");
    let browser = Browser::admin(&service).await;
    let used = browser.get("/login/evi_used").await;
    assert_eq!(used.status, 404, "{used:?}");
    let page = used.text();
    assert!(page.contains("This link was used"), "{page}");
    assert!(
        page.contains("<code>everscan session link</code>"),
        "{page}"
    );
    assert!(!page.contains("name=\"token\""), "{page}");
    assert!(page.contains(">Overview</a>"), "{page}");
}

#[tokio::test]
async fn only_admins_see_the_state_folder_on_the_page_about() {
    let front = Front {
        state_folder: Some("/srv/everscan/state".into()),
        ..Front::default()
    };
    let service = Service::fronted(front).await;
    let admin = Browser::admin(&service).await;
    let page = admin.page("/about").await;
    assert!(page.contains("/srv/everscan/state"), "{page}");
    let scopes = Scope::ALL.iter().copied();
    let scopes = scopes.filter(|scope| *scope != Scope::Admin);
    let token = service.personal(scopes, None).await;
    let page = Browser::with(&service, &token).await.page("/about").await;
    assert!(page.contains("About"), "{page}");
    assert!(!page.contains("/srv/everscan/state"), "{page}");
}

#[tokio::test]
async fn files_that_were_never_valid_are_listed_with_the_workflows() {
    let service = Service::start().await;
    let browser = Browser::admin(&service).await;
    let page = browser.page("/workflows").await;
    assert!(page.contains("Never valid"), "{page}");
    assert!(page.contains("workflows/broken.yaml"), "{page}");
    let token = service.personal([Scope::WorkflowRead], None).await;
    let page = Browser::with(&service, &token).await;
    let page = page.page("/workflows").await;
    assert!(!page.contains("broken.yaml"), "{page}");
}

#[tokio::test]
async fn a_job_shows_who_dispatched_it_even_after_its_end() {
    let service = Service::start().await;
    let job = service.dispatch("large").await;
    let cancel = Call::post(format!("/v0/jobs/{job}/cancel"));
    service.admin(cancel).await.expect(200);
    let shown = service.get(&format!("/v0/jobs/{job}")).await.expect(200);
    let who = shown["dispatched_by"].as_str().unwrap();
    let browser = Browser::admin(&service).await;
    let page = browser.page(&format!("/jobs/{job}")).await;
    let said = format!("Dispatched by <b>{who}</b>");
    assert!(page.contains(&said), "{page}");
}

#[tokio::test]
async fn slots_of_a_frequent_scan_do_not_hide_slots_of_other_scans() {
    let service = Service::start().await;
    let often = "scans: { often: { on: { cron: '* * * * *' }, steps: [ { run: echo } ] } }";
    let daily = "scans: { daily: { on: { cron: '0 3 * * *' }, steps: [ { run: echo } ] } }";
    service
        .push(&[
            ("workflows/often.yaml", often),
            ("workflows/daily.yaml", daily),
        ])
        .await;
    let browser = Browser::admin(&service).await;
    let page = browser.page("/").await;
    let (_, next) = page.split_once("id=\"next-title\"").unwrap();
    let (next, _) = next.split_once("</section>").unwrap();
    assert_eq!(next.matches(">often<").count(), 5, "{next}");
    assert_eq!(next.matches(">daily<").count(), 5, "{next}");
}

#[tokio::test]
async fn a_failure_needs_attention_after_its_retry_is_cancelled() {
    let service = Service::start().await;
    let browser = Browser::admin(&service).await;
    let retrying = PLAIN.replace("on:", "retry: { attempts: 1 }, on:");
    service
        .push(&[("workflows/pipeline.yaml", &retrying)])
        .await;
    let failed = service.dispatch("only").await;
    let runner = service.register("one", &["linux"], 1).await;
    let worker = service.claim(&runner, &[]).await;
    let resolve = worker.call(Method::POST, &worker.path("resolve"));
    resolve.send(service.address).await.expect(200);
    let body = json!({
        "steps": [{"index": 0, "status": "failed", "outcome": "failed", "exit_code": 3}],
        "log_records": 0,
    });
    let complete = worker.call(Method::POST, &worker.path("complete"));
    complete.json(&body).send(service.address).await.expect(200);
    let job = service.get(&format!("/v0/jobs/{failed}")).await.expect(200);
    let retry = job["retried_by"].as_str().unwrap().to_owned();

    let path = format!("/jobs/{failed}");
    let rerun = format!("action=\"{path}/rerun\"");
    let failing = "only</a> of main/pipeline: job <a class=\"mono\" href=\"/jobs/";
    let page = browser.page(&path).await;
    assert!(page.contains(" retries it, at <time"), "{page}");
    assert!(!page.contains(&rerun), "{page}");
    let page = browser.page("/").await;
    assert!(!page.contains(&format!("{failing}{failed}")), "{page}");

    let cancel = Call::post(format!("/v0/jobs/{retry}/cancel"));
    service.admin(cancel).await.expect(200);
    let page = browser.page(&path).await;
    let said = " was going to retry it, but was cancelled.";
    assert!(page.contains(said) && page.contains(&rerun), "{page}");
    let page = browser.page("/").await;
    assert!(page.contains(&format!("{failing}{failed}")), "{page}");
}
