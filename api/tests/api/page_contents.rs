//! The contents of pages: jobs, graphs, totals, and the links of refused pages.

use chrono::TimeDelta;
use http::Method;

use crate::browser::Browser;
use crate::pages::World;
use crate::service::{PLAIN, Service};

#[tokio::test]
async fn pages_show_what_happened_and_which_runner_would_take_a_job() {
    let world = World::new().await;
    let browser = Browser::admin(&world.service).await;
    let (job, workflow) = (&world.jobs[1], "/workflows/main/pipeline");
    let has = async |path: &str, parts: &[&str]| {
        let page = browser.page(path).await;
        for part in parts {
            assert!(page.contains(part), "{path} has no {part}: {page}");
        }
    };
    has(
        workflow,
        &[
            "What happened, and what did not",
            "<b>build</b> succeeded",
            "Last 24 hours",
        ],
    )
    .await;
    has(&format!("{workflow}?lanes=week"), &["Last 7 days"]).await;
    has(workflow, &["4 scans and 1 edge"]).await;
    let around_build = format!("{workflow}?focus=build");
    let around_build = [
        &*around_build,
        "around build",
        "2 scans and 1 edge",
        "all scans",
    ];
    has(around_build[0], &around_build[1..]).await;
    has(&format!("{workflow}?focus=gone"), &["4 scans and 1 edge"]).await;
    has(
        &format!("{workflow}/-/scans/announce"),
        &["?focus=announce#graph"],
    )
    .await;
    let lonely = browser.page(&format!("{workflow}/-/scans/nightly")).await;
    assert!(!lonely.contains("?focus="), "{lonely}");
    let short = &job[job.len() - 8..];
    has(
        &format!("/jobs?id={short}"),
        &["data-find=\"job\"", short, "begins or ends with"],
    )
    .await;
    has(
        &format!("/jobs/{job}"),
        &["class=\"script\"", "The same as in job"],
    )
    .await;
    let form = format!("{workflow}/-/scans/build/dispatch");
    has(&form, &["would take the job", "one"]).await;
    world
        .service
        .push_all(&[
            &[("workflows/passed.yaml", "scans: {}\n")],
            &[("workflows/last.yaml", "scans: {}\n")],
        ])
        .await;
    has("/sources/main", &["1 commit skipped"]).await;
}

#[tokio::test]
async fn a_refused_page_links_back_to_the_page_of_its_link() {
    let service = Service::start().await;
    let browser = Browser::admin(&service).await;
    let unknown = "/jobs/zzzzzzzz";
    let from = async |path: &str| {
        let call = browser.call(Method::GET, unknown);
        let call = call.header("host", "everscan.test");
        let referer = format!("http://everscan.test{path}");
        let answer = browser.send(call.header("referer", &referer)).await;
        assert_eq!(answer.status, 404, "{answer:?}");
        answer.text().to_owned()
    };
    let has_back = |page: &str| page.contains("\">Back</a>");
    assert!(
        from("/jobs?state=failed")
            .await
            .contains("href=\"/jobs?state=failed\">Back</a>")
    );
    for path in [unknown, "/login?next=%2Fjobs%2Fzzzzzzzz"] {
        assert!(!has_back(&from(path).await));
    }
    assert!(!has_back(browser.get(unknown).await.text()));
}

#[tokio::test]
async fn the_list_of_workflows_includes_retired_workflows_on_request() {
    let service = Service::start().await;
    let browser = Browser::admin(&service).await;
    service.push(&[("workflows/deep/plain.yaml", PLAIN)]).await;
    let [active, all] = ["/workflows", "/workflows?state=all"].map(|path| browser.page(path));
    let (active, all) = (active.await, all.await);
    assert!(!active.contains("/workflows/main/pipeline"), "{active}");
    for part in [
        "/workflows/main/pipeline",
        "retired<",
        "/workflows/main/deep/plain",
    ] {
        assert!(all.contains(part), "{all}");
    }
}

#[tokio::test]
async fn a_form_can_be_filled_with_the_inputs_of_a_job_of_the_same_scan() {
    let world = World::new().await;
    let browser = Browser::admin(&world.service).await;
    let job = &world.jobs[1];
    let form = |scan: &str| format!("/workflows/main/pipeline/-/scans/{scan}/dispatch?job={job}");
    assert!(
        browser
            .page(&form("build"))
            .await
            .contains("The inputs are those of")
    );
    let refused = browser.get(&form("large")).await;
    assert_eq!(refused.status, 400, "{refused:?}");
}

#[tokio::test]
async fn pages_show_how_many_jobs_and_workflows_they_cover() {
    let service = Service::start().await;
    let browser = Browser::admin(&service).await;
    service.dispatch("large").await;
    service.clock.advance(TimeDelta::hours(1));
    for _ in 0..200 {
        service.dispatch("large").await;
    }
    service.clock.advance(TimeDelta::hours(2));
    let page = browser.page("/workflows/main/pipeline").await;
    assert!(page.contains("scheduled for 2 h"), "{page}");
    let page = browser.page("/").await;
    for part in [
        "<a href=\"/jobs?state=scheduled\">201</a>",
        ">3 h</time>",
        "Of the newest 200 jobs.",
    ] {
        assert!(page.contains(part), "no {part}: {page}");
    }

    let names = (0..200).map(|number| format!("workflows/deep/{number:03}.yaml"));
    let names: Vec<String> = names
        .chain(["workflows/pipeline.yaml".to_owned()])
        .collect();
    let files: Vec<(&str, &str)> = names.iter().map(|name| (&**name, PLAIN)).collect();
    service.push(&files).await;
    let page = browser.page("/workflows").await;
    let (_, next) = page.split_once("rel=\"next\" href=\"").unwrap();
    let next = next.split_once('"').unwrap().0;
    assert!(!page.contains(">pipeline<"), "{page}");
    let page = browser.page(next).await;
    assert!(page.contains(">pipeline<") && !page.contains("rel=\"next\""));
}
