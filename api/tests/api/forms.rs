//! Forms: their effects, and the messages at their fields.

use http::Method;
use model::Scope;

use crate::browser::Browser;
use crate::client::Call;
use crate::service::Service;

const DISPATCH: &str = "/workflows/main/pipeline/-/scans/build/dispatch";

/// The key of the first form of a page.
fn key(page: &str) -> String {
    let (_, rest) = page.split_once("action=\"/workflows").unwrap();
    let (_, rest) = rest
        .split_once("name=\"idempotency_key\" value=\"")
        .unwrap();
    rest.split_once('"').unwrap().0.to_owned()
}

#[tokio::test]
async fn a_form_that_is_sent_repeatedly_starts_one_job() {
    let service = Service::start().await;
    let browser = Browser::admin(&service).await;
    let key = key(&browser.page(DISPATCH).await);
    let form = [
        ("idempotency_key", key.as_str()),
        ("inputs.target", "one\r\ntwo"),
        ("inputs.fast", "false"),
        ("inputs.fast", "true"),
    ];
    let to = browser.done(DISPATCH, &form).await;
    assert_eq!(browser.done(DISPATCH, &form).await, to);
    let job = to.strip_prefix("/jobs/").unwrap();
    let made = service.get(&format!("/v0/jobs/{job}")).await.expect(200);
    assert_eq!(made["inputs"]["target"], "one\ntwo", "lines end with LF");
    assert_eq!(made["inputs"]["fast"], true);
    let page = browser.page(&to).await;
    assert!(page.contains("build"));
    let again = browser.page(&format!("{DISPATCH}?job={job}")).await;
    assert!(again.contains("one\ntwo"), "{again}");

    assert_eq!(browser.done(&format!("{to}/cancel"), &[]).await, to);
    let made = service.get(&format!("/v0/jobs/{job}")).await.expect(200);
    assert_eq!(made["state"], "cancelled");
    assert_eq!(browser.done(&format!("{to}/delete"), &[]).await, "/jobs");
    assert_eq!(browser.get(&to).await.status, 404);
}

#[tokio::test]
async fn a_refused_form_keeps_its_input() {
    let service = Service::start().await;
    let browser = Browser::admin(&service).await;
    let form = [
        ("inputs.fast", "perhaps"),
        ("inputs.gone", "x"),
        ("inputs.target", "<typed>"),
    ];
    let answer = browser.post(DISPATCH, &form).await;
    assert_eq!(answer.status, 422, "{answer:?}");
    let page = answer.text();
    assert!(page.contains("&lt;typed&gt;"), "{page}");
    assert!(page.contains("aria-invalid=\"true\""), "{page}");
    assert!(page.contains("inputs.gone"), "{page}");

    let form = [("name", "not a name"), ("value", "kept value")];
    let answer = browser.post("/projects/main/vars", &form).await;
    assert_eq!(answer.status, 422, "{answer:?}");
    assert!(answer.text().contains("not a name") && answer.text().contains("kept value"));
    let answer = browser.post("/projects/main/secrets", &form).await;
    assert_eq!(answer.status, 422, "{answer:?}");
    assert!(answer.text().contains("not a name"));
    assert!(
        !answer.text().contains("kept value"),
        "a secret is never sent back"
    );

    let form = [
        ("name", "ci"),
        ("scopes", "job:read"),
        ("expires_in_seconds", "soon"),
    ];
    let answer = browser.post("/tokens", &form).await;
    assert_eq!(answer.status, 422, "{answer:?}");
    assert!(answer.text().contains("value=\"ci\""));

    let json = browser
        .call(Method::POST, "/tokens")
        .header("content-type", "application/json");
    assert_eq!(browser.send(json.bytes("{}")).await.status, 415);
    let large = "x".repeat(100_000);
    let answer = browser.post("/tokens", &[("name", &large)]).await;
    assert_eq!(answer.status, 413);
}

#[tokio::test]
async fn vars_secrets_tokens_and_runners_are_managed_by_forms() {
    let service = Service::start().await;
    let browser = Browser::admin(&service).await;
    let project = "/projects/main";
    let var = [("name", "URL"), ("value", "a\r\nb")];
    assert_eq!(browser.done("/projects/main/vars", &var).await, project);
    let secret = [("name", "KEY"), ("value", "hunter2")];
    assert_eq!(
        browser.done("/projects/main/secrets", &secret).await,
        project
    );
    let page = browser.page(project).await;
    assert!(page.contains("a\nb") && page.contains("KEY") && !page.contains("hunter2"));
    browser.done("/projects/main/vars/URL/delete", &[]).await;
    browser.done("/projects/main/secrets/KEY/delete", &[]).await;
    let page = browser.page(project).await;
    assert!(!page.contains("/vars/URL/delete") && !page.contains("/secrets/KEY/delete"));

    let form = [
        ("name", "ci"),
        ("scopes", "job:read"),
        ("scopes", "dispatch"),
        ("expires_in_seconds", "3600"),
    ];
    let answer = browser.post("/tokens", &form).await;
    assert_eq!(answer.status, 200, "{answer:?}");
    let page = answer.text();
    let (_, rest) = page.split_once("<pre class=\"once\"><code>").unwrap();
    let secret = rest.split_once('<').unwrap().0;
    let jobs = Call::get("/v0/jobs").bearer(secret);
    jobs.send(service.address).await.expect(200);
    assert!(
        !browser.page("/tokens").await.contains(secret),
        "the secret is shown only once"
    );

    let answer = browser.post("/runners/registrations", &[]).await;
    assert_eq!(answer.status, 200, "{answer:?}");
    assert!(answer.text().contains("everscan-runner configure --url"));
    assert_eq!(
        browser.done("/sources/main/sync", &[]).await,
        "/sources/main"
    );
}

#[tokio::test]
async fn blobs_are_sent_by_a_script_and_deleted_by_a_form() {
    let service = Service::start().await;
    let browser = Browser::admin(&service).await;
    let put = browser.call(Method::PUT, "/blobs/lists/a%20b?project=main&expires_in=1h");
    assert_eq!(browser.send(put.bytes("content")).await.status, 201);
    let bad = browser.call(Method::PUT, "/blobs/a?project=main&expires_in=soon");
    browser
        .send(bad.bytes("x"))
        .await
        .problem(400, "invalid_request");
    let page = browser.page("/blobs?project=main&prefix=lists%2F").await;
    assert!(page.contains("a b"), "{page}");
    let (_, rest) = page.split_once("action=\"/blob-deletions").unwrap();
    let query = rest.split_once('"').unwrap().0.replace("&amp;", "&");
    let to = browser.done(&format!("/blob-deletions{query}"), &[]).await;
    assert_eq!(to, "/blobs?project=main&prefix=lists%2F");
    let page = browser.page("/blobs").await;
    assert!(!page.contains("lists"), "{page}");
}

#[tokio::test]
async fn forms_of_a_runner_are_for_those_who_manage_all_of_its_projects() {
    let service = Service::follow(&["main", "other"]).await;
    let runner = service.register("one", &[], 1).await;
    let scopes = [Scope::RunnerRead, Scope::RunnerWrite];
    let guest = service.limited(scopes, &["other"]).await;
    let guest = Browser::with(&service, &guest).await;
    let page = format!("/runners/{}", runner.id);
    let limit = format!("{page}/limit");
    let shown = guest.page(&page).await;
    assert!(shown.contains("It serves all projects"), "{shown}");
    assert!(
        !shown.contains(&limit) && !shown.contains("/remove"),
        "{shown}"
    );
    let made = guest
        .post("/runners/registrations", &[("labels", "a b")])
        .await;
    assert!(
        made.text()
            .contains("one runner of the project <b>other</b>"),
        "{made:?}"
    );
    let refused = guest.post(&limit, &[("projects", "other")]).await;
    assert_eq!(refused.status, 403);

    let admin = Browser::admin(&service).await;
    assert!(admin.page(&page).await.contains(&limit));
    assert_eq!(admin.done(&limit, &[("projects", "main")]).await, page);
    assert_eq!(guest.get(&page).await.status, 404);
    assert!(!guest.page("/runners").await.contains(&page));
    assert!(admin.page("/runners").await.contains("<td>main</td>"));
}

#[tokio::test]
async fn a_form_without_its_scope_does_nothing() {
    let service = Service::start().await;
    let token = service.personal([Scope::JobRead], None).await;
    let browser = Browser::with(&service, &token).await;
    let answer = browser.post(DISPATCH, &[("inputs.target", "all")]).await;
    assert_eq!(answer.status, 403);
    let jobs = service.get("/v0/jobs").await.expect(200);
    assert_eq!(jobs["items"].as_array().unwrap().len(), 0);

    // The answer would be the page of the runners, which this token may not see.
    let token = service.personal([Scope::RunnerWrite], None).await;
    let browser = Browser::with(&service, &token).await;
    let answer = browser.post("/runners/registrations", &[]).await;
    assert_eq!(answer.status, 403);
    assert!(answer.text().contains("runner:read"), "{answer:?}");
    let changes = service.get("/v0/audit").await.expect(200);
    let mut changes = changes["items"].as_array().unwrap().iter();
    let of_browser = changes.find(|line| !line["session"].is_null());
    assert_eq!(of_browser, None, "no job was started");
}

#[tokio::test]
async fn a_reader_without_job_read_is_redirected_to_a_visible_page() {
    let service = Service::start().await;
    let token = service
        .personal([Scope::Dispatch, Scope::JobWrite], None)
        .await;
    let browser = Browser::with(&service, &token).await;
    let job = service.dispatch("large").await;
    for action in ["cancel", "rerun", "delete"] {
        let to = browser.done(&format!("/jobs/{job}/{action}"), &[]).await;
        assert_eq!(to, "/", "{action}");
    }
}
