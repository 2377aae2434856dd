//! A daemon behind a proxy: below a path, with the proxy's own authentication, and with names in addresses that proxies let
//! through.

use api::Front;
use http::Method;
use serde_json::json;

use crate::browser::{Browser, typed};
use crate::client::Call;
use crate::service::{PLAIN, Service};

/// The addresses in a page.
fn addresses(page: &str) -> impl Iterator<Item = &str> {
    let after = ui_attributes().flat_map(move |attribute| page.split(attribute).skip(1));
    after.map(|rest| rest.split('"').next().unwrap())
}

fn ui_attributes() -> impl Iterator<Item = &'static str> {
    [" href=\"", " action=\"", " src=\"", " data-stream=\""].into_iter()
}

fn check_below(base: &str, page: &str) {
    assert!(addresses(page).count() > 5, "{page}");
    for address in addresses(page).filter(|address| !address.starts_with('#')) {
        assert!(address.starts_with(base), "{base}: {address}");
    }
}

#[tokio::test]
async fn below_a_path_everything_leads_back_below_it() {
    let front = Front {
        base_path: "/everscan".parse().unwrap(),
        ..Front::default()
    };
    let service = Service::fronted(front).await;
    let root = Call::get("/everscan").send(service.address).await;
    assert_eq!(root.header("location"), Some("/everscan/login"));
    // A proxy may pass the path on, or remove it.
    for prefix in ["/everscan", ""] {
        let get = |path: &str| Call::get(format!("{prefix}{path}"));
        let stranger = get("/jobs?state=failed").send(service.address).await;
        let to = "/everscan/login?next=%2Fjobs%3Fstate%3Dfailed";
        assert_eq!(
            (stranger.status, stranger.header("location")),
            (303, Some(to))
        );
        let login = get("/login?next=%2Fjobs").send(service.address).await;
        check_below("/everscan/", login.text());
        assert!(login.text().contains("name=\"next\" value=\"/jobs\""));

        let form = [("token", service.admin.as_str()), ("next", "/jobs")];
        let sign_in = Call::post(format!("{prefix}/login")).header("sec-fetch-site", "same-origin");
        let signed_in = typed(sign_in, &form).send(service.address).await;
        assert_eq!(signed_in.header("location"), Some("/everscan/jobs"));
        let outwards =
            Call::post(format!("{prefix}/login")).header("sec-fetch-site", "same-origin");
        let form = [("token", service.admin.as_str()), ("next", "/../jobs")];
        let inwards = typed(outwards, &form).send(service.address).await;
        assert_eq!(inwards.header("location"), Some("/everscan/"));
        let cookie = signed_in.header("set-cookie").unwrap();
        assert!(cookie.contains("; Path=/everscan;"), "{cookie}");
        let cookie = cookie.split(';').next().unwrap();
        let get = |path: &str| {
            get(path)
                .header("cookie", cookie)
                .header("accept", "text/html")
        };
        for path in [
            "/",
            "/jobs",
            "/workflows/main/pipeline",
            "/settings",
            "/nothing",
        ] {
            let page = get(path).send(service.address).await;
            check_below("/everscan/", page.text());
        }
        let register = Call::post(format!("{prefix}/runners/registrations"))
            .header("cookie", cookie)
            .header("sec-fetch-site", "same-origin");
        let page = typed(register, &[]).send(service.address).await;
        assert!(page.text().contains("--url http://localhost/everscan "));
        let shared = get("/jobs")
            .header("prefer", "wait=1")
            .send(service.address)
            .await;
        check_below("/everscan/", shared.text());
        let script = addresses(shared.text()).find(|it| it.ends_with("/main.js"));
        assert_eq!(
            Call::get(script.unwrap())
                .send(service.address)
                .await
                .status,
            200
        );
        let live = get("/live").send_to_stream(service.address).await;
        assert_eq!(live.status, 200);
        let from = "http://localhost/everscan/workflows?state=all";
        let back = get("/nothing")
            .header("host", "localhost")
            .header("referer", from);
        let page = back.send(service.address).await;
        assert!(
            page.text()
                .contains("href=\"/everscan/workflows?state=all\""),
            "{page:?}"
        );
        let jobs = Call::get(format!("{prefix}/v0/jobs")).bearer(&service.admin);
        jobs.send(service.address).await.expect(200);
    }
    assert_eq!(
        Call::get("/everscan/everscan/jobs")
            .send(service.address)
            .await
            .status,
        404
    );
}

#[tokio::test]
async fn a_trusted_proxy_names_the_path() {
    let page = async |trusted: &[&str]| {
        let front = Front {
            trusted_proxies: trusted.iter().map(|it| it.parse().unwrap()).collect(),
            ..Front::default()
        };
        let service = Service::fronted(front).await;
        let call = Call::get("/login").header("x-forwarded-prefix", "/scans/here/");
        let page = call.header("x-forwarded-for", "203.0.113.9");
        page.send(service.address).await.text().to_owned()
    };
    check_below("/scans/here/", &page(&["127.0.0.0/8"]).await);
    assert!(!page(&["192.0.2.1"]).await.contains("/scans/here/"));
}

#[tokio::test]
async fn pages_ignore_what_a_browser_sends_to_the_proxy() {
    let service = Service::start().await;
    let browser = Browser::admin(&service).await;
    let basic = |call: Call| call.header("authorization", "Basic dTpw");
    let page = browser
        .send(basic(browser.call(Method::GET, "/jobs")))
        .await;
    assert_eq!(page.status, 200, "{page:?}");
    let form = browser.call(Method::POST, "/sources/main/sync");
    let form = browser.send(typed(basic(form), &[])).await;
    assert_eq!(form.status, 303, "{form:?}");
    let stranger = basic(Call::get("/jobs")).send(service.address).await;
    assert_eq!(stranger.header("location"), Some("/login?next=%2Fjobs"));
    let token = browser.call(Method::GET, "/jobs").bearer(&service.admin);
    assert_eq!(browser.send(token).await.status, 400);
}

#[tokio::test]
async fn names_are_plain_in_addresses_and_former_ones_lead_to_them() {
    let service = Service::start().await;
    let files = [
        ("workflows/a/-/scans.yaml", PLAIN),
        ("workflows/a b.yaml", PLAIN),
    ];
    service.push(&files).await;
    let browser = Browser::admin(&service).await;
    for name in ["main/a/-/scans/-/", "main/a%20b"] {
        let page = browser.page(&format!("/workflows/{name}")).await;
        let scan = format!("/workflows/{}/-/scans/only", name.trim_end_matches("/-/"));
        assert!(page.contains(&format!("href=\"{scan}\"")), "{name}: {page}");
        let dispatched = browser.done(&format!("{scan}/dispatch"), &[]).await;
        assert!(dispatched.starts_with("/jobs/"), "{dispatched}");
        let page = browser.page(&scan).await;
        assert!(
            page.contains(&format!("href=\"/workflows/{name}\"")),
            "{name}: {page}"
        );
    }

    let blob = Call::new(Method::PUT, "/v0/blobs/a%2Fb/100%252F?project=main").bytes("x");
    service.admin(blob).await.expect(201);
    let page = browser.page("/blobs?project=main&prefix=a%252Fb/").await;
    let address = "/blobs/a%252Fb/100%25252F?project=main";
    assert!(page.contains(&format!("href=\"{address}\"")), "{page}");
    assert_eq!(browser.page(address).await, "x");
    let upload = browser.call(Method::PUT, "/blobs/a%252Fb/c?project=main");
    assert_eq!(browser.send(upload.bytes("y")).await.status, 201);
    let uploaded = service.get("/v0/blobs/a%2Fb/c?project=main").await;
    assert_eq!(uploaded.text(), "y");

    for (former, present) in [
        ("/workflows/main%2Fpipeline", "/workflows/main/pipeline"),
        (
            "/workflows/main%2fa%20b/scans/only?cursor=1",
            "/workflows/main/a%20b/-/scans/only?cursor=1",
        ),
        (
            "/blobs/a%2Fb/c?project=main",
            "/blobs/a%252Fb/c?project=main",
        ),
    ] {
        let moved = browser.get(former).await;
        assert_eq!(
            (moved.status, moved.header("location")),
            (308, Some(present))
        );
        assert_eq!(moved.header("cache-control"), Some("no-store"));
    }
    for (beyond, status) in [
        ("/workflows/..%2F..%2Fx", 404),
        ("/workflows/a%2f%2E%2e/.%2e/x", 404),
        ("/blobs/../..%2Fx", 400),
    ] {
        let answer = browser.get(beyond).await;
        let seen = (answer.status, answer.header("location"));
        assert_eq!(seen, (status, None), "{beyond}");
    }
    let scan = browser.get("/workflows/main%2Fa%2F-%2Fscans").await;
    let page = scan.header("location").unwrap();
    assert_eq!(page, "/workflows/main/a/-/scans/-/");
    browser.page(page).await;
    // A form is not sent to a second address.
    let form = browser.call(Method::POST, "/workflows/main%2Fpipeline/suspend");
    assert_eq!(browser.send(form).await.status, 405);
    let stays = "/v0/workflows/main%2Fpipeline/scans/build";
    assert_eq!(service.get(stays).await.expect(200)["name"], json!("build"));
}
