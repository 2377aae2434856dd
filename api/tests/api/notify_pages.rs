//! The page of notifications, its forms, and the bell.

use model::Scope;
use serde_json::json;

use crate::browser::Browser;
use crate::service::Service;

const CHANNELS: &str = "/notifications/channels";
const PAGE: &str = "/notifications";

#[tokio::test]
async fn channels_are_added_tested_and_deleted_by_forms() {
    let service = Service::start().await;
    let browser = Browser::admin(&service).await;
    let form = [
        ("kind", "webhook"),
        ("name", "hook"),
        ("project", "main"),
        ("url", "http://127.0.0.1:9/x"),
    ];
    let added = browser.post(CHANNELS, &form).await;
    assert_eq!(added.status, 200, "{added:?}");
    let marks_answers = |page: &str| page.contains("data-answer");
    assert!(marks_answers(added.text()), "{added:?}");
    let (_, rest) = added.text().split_once("<code>whsec_").unwrap();
    let key = rest.split_once('<').unwrap().0;
    let slack = [
        ("kind", "slack"),
        ("name", "team"),
        ("project", ""),
        ("offered_to_all", "true"),
        ("secret", "https://hooks.example.org/hunter2"),
    ];
    assert_eq!(browser.done(CHANNELS, &slack).await, PAGE);
    let page = browser.page(PAGE).await;
    assert!(!page.contains(key) && !page.contains("hunter2"), "{page}");
    assert!(page.contains("for all projects"), "{page}");
    assert!(!marks_answers(&page), "{page}");

    let test = browser
        .post(&format!("{CHANNELS}/hook/test?project=main"), &[])
        .await;
    assert_eq!(test.status, 200, "{test:?}");
    let shown = test.text();
    let (_, result) = shown.split_once("Test of <b>hook</b>").unwrap();
    assert!(result.contains("127.0.0.1"), "{result}");
    let retry = browser
        .post(&format!("{CHANNELS}/hook/retry?project=main"), &[])
        .await;
    assert_eq!(retry.status, 400, "nothing waits: {retry:?}");

    for path in ["hook/delete?project=main", "team/delete"] {
        assert_eq!(browser.done(&format!("{CHANNELS}/{path}"), &[]).await, PAGE);
    }
    let listed = service.get("/v0/channels").await.expect(200);
    assert_eq!(listed["items"], json!([]));
}

#[tokio::test]
async fn a_refused_channel_keeps_its_fields_but_no_secret() {
    let service = Service::start().await;
    let browser = Browser::admin(&service).await;
    for (form, message) in [
        (
            vec![
                ("kind", "ntfy"),
                ("topic", "<a b>"),
                ("server", "https://x.example"),
            ],
            "must be 1 to 64 letters",
        ),
        (
            vec![("kind", "email"), ("port", "<a b>")],
            "is not a number in range",
        ),
    ] {
        let form = [&form[..], &[("name", "a"), ("secret", "hunter2")]].concat();
        let answer = browser.post(CHANNELS, &form).await;
        assert_eq!(answer.status, 422, "{answer:?}");
        let page = answer.text();
        assert!(
            page.contains(message) && page.contains("&lt;a b&gt;"),
            "{page}"
        );
        assert!(!page.contains("hunter2") && !page.contains("<a b>"));
    }
}

#[tokio::test]
async fn rules_are_previewed_added_and_deleted_by_forms() {
    let service = Service::start().await;
    service.team("?project=main").await;
    let browser = Browser::admin(&service).await;
    service.condition("invalid_file").await;
    let rule = [
        ("name", "nightly"),
        ("project", "main"),
        ("channel", "team"),
        ("events", "invalid_file"),
        ("events", "failing"),
        ("after", "3"),
        ("quiet_from", "22:00"),
        ("quiet_to", "07:00"),
        ("content", "lines"),
    ];
    let preview = [&rule[..], &[("preview", "true")]].concat();
    let answer = browser.post("/notifications/rules", &preview).await;
    assert_eq!(answer.status, 200, "{answer:?}");
    let page = answer.text();
    assert!(
        page.contains("would have sent") && !page.contains("Nothing.</p>"),
        "{page}"
    );
    assert!(
        page.contains("value=\"22:00\""),
        "the form keeps its fields"
    );
    let listed = service.get("/v0/rules").await.expect(200);
    assert_eq!(listed["items"], json!([]), "a preview adds nothing");

    assert_eq!(browser.done("/notifications/rules", &rule).await, PAGE);
    let page = browser.page("/notifications?rule=main/nightly").await;
    for part in [
        "failing, invalid_file",
        "after failures: 3",
        "the API",
        "would have sent",
    ] {
        assert!(page.contains(part), "{part}: {page}");
    }
    let unknown = browser.get("/notifications?rule=main/none").await;
    assert_eq!(unknown.status, 404);
    let wrong = [("name", "b"), ("project", "main"), ("channel", "<x>")];
    let answer = browser.post("/notifications/rules", &wrong).await;
    assert_eq!(answer.status, 422, "{answer:?}");
    assert!(answer.text().contains("&lt;x&gt;"));
    let delete = "/notifications/rules/nightly/delete?project=main";
    assert_eq!(browser.done(delete, &[]).await, PAGE);
    let listed = service.get("/v0/rules").await.expect(200);
    assert_eq!(listed["items"], json!([]));
}

#[tokio::test]
async fn a_reader_is_offered_only_what_the_token_may_do() {
    let service = Service::follow(&["main", "other"]).await;
    let admin = Browser::admin(&service).await;
    for (name, project) in [("of-main", "main"), ("of-other", "other"), ("of-all", "")] {
        let form = [
            ("kind", "ntfy"),
            ("name", name),
            ("project", project),
            ("server", "https://ntfy.sh"),
            ("topic", "scans"),
        ];
        admin.done(CHANNELS, &form).await;
    }
    let reader = service.limited([Scope::NotifyRead], &["main"]).await;
    let page = Browser::with(&service, &reader).await.page(PAGE).await;
    assert!(page.contains("of-main"), "{page}");
    for hidden in ["of-other", "of-all", "/test", "/delete", "Add a"] {
        assert!(!page.contains(hidden), "{hidden}: {page}");
    }
    let both = [Scope::NotifyRead, Scope::NotifyWrite];
    let writer = service.limited(both, &["main"]).await;
    let writer = Browser::with(&service, &writer).await;
    let page = writer.page(PAGE).await;
    assert!(
        page.contains("of-main/test") && page.contains("Add a rule"),
        "{page}"
    );
    assert!(!page.contains("All projects may use it") && !page.contains("disk_low"));
    for path in [
        "of-all/delete",
        "of-other/delete?project=other",
        "of-all/test",
    ] {
        let status = writer.post(&format!("{CHANNELS}/{path}"), &[]).await.status;
        assert!([403, 404].contains(&status), "{path}: {status}");
    }
    let listed = service.get("/v0/channels").await.expect(200);
    assert_eq!(listed["items"].as_array().unwrap().len(), 3);
}

#[tokio::test]
async fn the_bell_counts_what_nobody_has_acknowledged() {
    let service = Service::start().await;
    let admin = Browser::admin(&service).await;
    let count = |page: &str| {
        let (_, rest) = page.split_once("id=\"bell\"").unwrap();
        let (_, rest) = rest.split_once("</svg>").unwrap();
        rest.split('<').next().unwrap().trim().to_owned()
    };
    let condition = service.condition("invalid_file").await;
    let before: usize = count(&admin.page("/about").await).parse().unwrap();
    let path = format!("/conditions/{condition}/acknowledge");
    admin.done(&path, &[]).await;
    let after = count(&admin.page("/about").await);
    assert_eq!(after.parse().unwrap_or(0), before - 1);
    // The count has only what the reader may see.
    let token = service.personal([Scope::WorkflowRead], None).await;
    let reader = Browser::with(&service, &token).await;
    assert_eq!(count(&reader.page("/").await), "");
    let blind = service.personal([Scope::JobRead], None).await;
    let page = Browser::with(&service, &blind).await.page("/").await;
    assert!(!page.contains("id=\"bell\""), "{page}");
}
