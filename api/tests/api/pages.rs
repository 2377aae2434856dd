//! Pages: who may see them, their headers, and how they show hostile names.

use std::collections::BTreeSet;

use api::{Access, ROUTES, Route};
use http::Method;
use model::{Scope, Scopes};
use serde_json::json;

use crate::browser::Browser;
use crate::client::{Answer, Call};
use crate::entries::packed;
use crate::service::Service;

/// Two finished jobs of `build` with an artifact, vars, a secret, a blob and a callback server with interactions.
pub(crate) struct World {
    pub(crate) service: Service,
    pub(crate) jobs: Vec<String>,
    callback: String,
    group: String,
}

impl World {
    pub(crate) async fn new() -> Self {
        let service = Service::start().await;
        let mut jobs = Vec::new();
        for runner in ["one", "two"] {
            let (_, worker) = service.claimed(runner).await;
            worker
                .append(0, &["<b>making</b>", "done & gone"])
                .send(service.address)
                .await
                .expect(200);
            let upload = worker.upload("out", packed(&[("a", "1")]));
            upload.send(service.address).await.expect(200);
            service.complete(&worker, 2).await.expect(200);
            jobs.push(worker.id);
        }
        service.set("vars/URL", "1").await.expect(200);
        service.set("secrets/KEY", "hunter2").await.expect(200);
        let blob = Call::new(Method::PUT, "/v0/blobs/a?project=main").bytes("x");
        service.admin(blob).await.expect(201);
        let callback = service.callback("main").await;
        service.hear(&callback, None).await;
        Self {
            group: service.payload_group("main").await,
            service,
            jobs,
            callback,
        }
    }

    /// A path of a route with parameters that exist.
    async fn path(&self, route: &Route) -> String {
        let runners = self.service.get("/v0/runners").await.expect(200);
        let runner = runners["items"][0]["id"].as_str().unwrap().to_owned();
        let condition = self.service.condition("invalid_file").await;
        let path = route
            .path
            .replace("{condition}", &condition)
            .replace("{job}", &self.jobs[1])
            .replace("{artifact}", "out")
            .replace("{workflow}", "main/pipeline")
            .replace("{scan}", "build")
            .replace("{revision}", "1")
            .replace("{runner}", &runner)
            .replace("{source}", "main")
            .replace("{project}", "main")
            .replace("{*path}", "a")
            .replace("{session}", "11111111-1111-4111-8111-111111111111")
            .replace("{token}", "11111111-1111-4111-8111-111111111111")
            .replace("{var}", "URL")
            .replace("{channel}", "team")
            .replace("{rule}", "team")
            .replace("{user}", "owner")
            .replace("{callback}", &self.callback)
            .replace("{number}", "2")
            .replace("{tag}", "aaaaaaaaaaaaaaaaaaaa")
            .replace("{group}", &self.group)
            .replace("{payload}", "a.svg")
            .replace("{secret}", "KEY");
        assert!(!path.contains('{'), "{path} has no example");
        let query = match route.path {
            "/jobs/{job}/log/search" => "?q=making".to_owned(),
            "/jobs/{job}/artifacts/{artifact}/diff" => format!("?against={}", self.jobs[0]),
            "/blobs/{*path}" => "?project=main".to_owned(),
            _ => String::new(),
        };
        path + &query
    }
}

fn of_browsers() -> impl Iterator<Item = &'static Route> {
    let is_it = |route: &&Route| matches!(route.access, Access::Page(..) | Access::Action(..));
    ROUTES.iter().filter(is_it)
}

fn scope_of(route: &Route) -> Option<Scope> {
    match route.access {
        Access::Page(_, scope) | Access::Action(_, scope) => scope,
        _ => panic!("{} is not of browsers", route.path),
    }
}

fn is_data(route: &Route) -> bool {
    match route.access {
        Access::Page(route, _) => route.is_data(),
        Access::Action(route, _) => route.is_data(),
        _ => false,
    }
}

fn check_headers(route: &str, answer: &Answer) {
    let policy = answer.header("content-security-policy").unwrap_or_default();
    assert!(
        policy == "sandbox"
            || policy.starts_with("default-src 'none'; script-src 'self'; style-src 'self'"),
        "{route}: {policy}"
    );
    assert_eq!(answer.header("x-content-type-options"), Some("nosniff"));
    assert_eq!(answer.header("referrer-policy"), Some("same-origin"));
    assert_eq!(answer.header("cache-control"), Some("no-store"), "{route}");
}

/// Checks that a page contains no inline script and no inline style.
pub(crate) fn check_markup(route: &str, page: &str) {
    assert!(page.starts_with("<!DOCTYPE html>"), "{route}: {page}");
    for wrong in ["<style", " style=", "javascript:", " onclick=", "<script>"] {
        assert!(!page.contains(wrong), "{route} has {wrong}");
    }
    for script in page.split("<script ").skip(1) {
        let tag = script.split_once("></script>").unwrap().0;
        assert!(tag.contains("src=\"/assets/"), "{route}: {tag}");
    }
}

#[tokio::test]
async fn the_admin_sees_every_page_and_others_are_asked_to_sign_in() {
    let world = World::new().await;
    let admin = Browser::admin(&world.service).await;
    for route in of_browsers().filter(|route| route.method == Method::GET) {
        let path = world.path(route).await;
        let answer = admin.get(&path).await;
        assert_eq!(answer.status, 200, "{path}: {answer:?}");
        check_headers(route.path, &answer);
        let kind = answer.header("content-type").unwrap();
        if kind.starts_with("text/html") {
            check_markup(route.path, answer.text());
            let tag = answer.header("etag").unwrap();
            let again = admin.call(Method::GET, &path).header("if-none-match", tag);
            assert_eq!(admin.send(again).await.status, 304, "{path}");
        }
        for stranger in [
            Call::get(&path),
            Call::get(&path).header("cookie", "everscan-80=wrong"),
            Call::get(&path).bearer(&world.service.admin),
        ] {
            let answer = stranger.send(world.service.address).await;
            if is_data(route) {
                answer.problem(401, "unauthorized");
                continue;
            }
            assert_eq!(answer.status, 303, "{path}: {answer:?}");
            let to = answer.header("location").unwrap();
            assert!(to.starts_with("/login"), "{path}: {to}");
            check_headers(route.path, &answer);
        }
        let both = admin.call(Method::GET, &path).bearer(&world.service.admin);
        assert_eq!(admin.send(both).await.status, 400, "{path}");
    }
}

#[tokio::test]
async fn every_page_and_action_needs_only_its_scope() {
    let world = World::new().await;
    for scope in Scope::ALL.iter().copied() {
        let others = Scope::ALL.iter().copied();
        let others = others.filter(|it| !Scopes::from_iter([*it]).allow(scope));
        let without = world.service.personal(others, None).await;
        let without = Browser::with(&world.service, &without).await;
        let alone = world.service.personal([scope], None).await;
        let alone = Browser::with(&world.service, &alone).await;
        for route in of_browsers().filter(|route| scope_of(route) == Some(scope)) {
            needs_only(&world, route, &without, &alone).await;
        }
    }
}

/// Calls a route with all scopes except its own, and with its own alone.
async fn needs_only(world: &World, route: &Route, without: &Browser<'_>, alone: &Browser<'_>) {
    let scope = scope_of(route).unwrap();
    let path = world.path(route).await;
    let call = without.call(route.method.clone(), &path);
    let answer = without.send(call).await;
    assert_eq!(answer.status, 403, "{path}: {answer:?}");
    if !is_data(route) {
        let page = answer.text();
        check_markup(route.path, page);
        assert!(page.contains(scope.name()), "{path}: {page}");
        assert!(page.contains(answer.header("x-request-id").unwrap()));
    }
    if route.method == Method::GET {
        // The form shows the inputs of a scan, which need the scope of workflows.
        let expected = match route.path.ends_with("/dispatch") {
            true => 403,
            false => 200,
        };
        let answer = alone.get(&path).await;
        assert_eq!(answer.status, expected, "{path}: {answer:?}");
    }
}

#[tokio::test]
async fn a_change_must_come_from_a_page_of_this_daemon() {
    let world = World::new().await;
    let admin = Browser::admin(&world.service).await;
    for route in of_browsers().filter(|route| route.method != Method::GET) {
        let path = world.path(route).await;
        let call = || Call::new(route.method.clone(), &path).header("cookie", &admin.cookie);
        for call in [
            call(),
            call().header("sec-fetch-site", "cross-site"),
            call().header("sec-fetch-site", "same-site"),
            call().header("sec-fetch-site", "none"),
            call().header("origin", "https://evil.example.org"),
            call().header("origin", "null"),
        ] {
            let answer = call.send(world.service.address).await;
            assert_eq!(answer.status, 403, "{path}: {answer:?}");
        }
        let stranger = Call::new(route.method.clone(), &path).bearer(&world.service.admin);
        let answer = stranger.send(world.service.address).await;
        let expected = if is_data(route) { 401 } else { 303 };
        assert_eq!(answer.status, expected, "{path}: {answer:?}");
    }
    let audit = world.service.get("/v0/audit").await.expect(200);
    let changes = audit["items"].as_array().unwrap().iter();
    let mut of_browsers = changes.filter(|line| !line["session"].is_null());
    assert_eq!(of_browsers.next(), None, "nothing was changed");
    // Under /v0 the cookie is accepted only by the routes of sessions.
    let jobs = admin.get("/v0/jobs").await;
    jobs.problem(401, "unauthorized");
}

#[tokio::test]
async fn browsers_get_a_page_for_missing_objects() {
    let service = Service::start().await;
    let browser = Browser::admin(&service).await;
    for path in [
        "/nothing",
        "/jobs/x/y",
        "/workflows/none",
        "/jobs/ffffffff",
        "/v1",
    ] {
        let answer = browser.get(path).await;
        assert_eq!(answer.status, 404, "{path}: {answer:?}");
        check_markup(path, answer.text());
        check_headers(path, &answer);
        let program = Call::get(path).send(service.address).await;
        let is_page = path.starts_with("/workflows") || path == "/jobs/ffffffff";
        assert_eq!(program.status, if is_page { 303 } else { 404 }, "{path}");
    }
    let method = browser.call(Method::DELETE, "/jobs");
    let answer = browser.send(method).await;
    assert_eq!((answer.status, answer.header("allow")), (405, Some("GET")));
    check_markup("/jobs", answer.text());
    let unknown = browser.get("/jobs?nothing=1").await;
    assert_eq!(unknown.status, 400);
    check_markup("/jobs", unknown.text());
}

#[tokio::test]
async fn markup_in_names_and_logs_is_shown_as_text() {
    const HOSTILE: &str = "<script>alert(1)</script>\"'<img src=x onerror=alert(1)>";
    let world = World::new().await;
    let service = &world.service;
    service.set("vars/URL", HOSTILE).await.expect(200);
    let made = service
        .post("/v0/tokens", &json!({"name": HOSTILE, "scopes": ["admin"]}))
        .await
        .expect(201);
    let browser = Browser::with(service, made["secret"].as_str().unwrap()).await;
    let coded = "%3Cscript%3Ealert(1)%3C%2Fscript%3E%22%27";
    let job = &world.jobs[0];
    for path in [
        "/projects/main".to_owned(),
        "/tokens".to_owned(),
        "/settings".to_owned(),
        format!("/jobs/{job}/log"),
        format!("/jobs/{job}/log?q={coded}"),
        format!("/jobs?scan={coded}"),
        format!("/workflows/{coded}"),
        format!("/audit?actor={coded}"),
        format!("/login?next=/{coded}"),
        format!("/{coded}"),
    ] {
        let answer = browser.get(&path).await;
        let page = answer.text();
        for wrong in ["<script>", "<img", "<b>making"] {
            assert!(!page.contains(wrong), "{path} has {wrong}");
        }
    }
    // A log is plain text, even if it looks like HTML.
    let raw = browser.get(&format!("/jobs/{job}/log/raw")).await;
    assert_eq!(raw.text(), "<b>making</b>\ndone & gone\n");
    assert_eq!(
        raw.header("content-type"),
        Some("text/plain; charset=utf-8")
    );
    assert_eq!(raw.header("content-security-policy"), Some("sandbox"));
    assert_eq!(raw.header("x-content-type-options"), Some("nosniff"));
    for path in [
        format!("/jobs/{job}/artifacts/out"),
        "/blobs/a?project=main".to_owned(),
    ] {
        let answer = browser.get(&path).await;
        let kept = answer.header("content-disposition").unwrap();
        assert!(kept.starts_with("attachment"), "{path}: {kept}");
    }
}

#[tokio::test]
async fn a_page_shows_nothing_of_projects_outside_its_token() {
    let service = Service::follow(&["main", "other"]).await;
    service.dispatch("large").await;
    let scopes = Scope::ALL.iter().copied();
    let scopes: Vec<Scope> = scopes.filter(|scope| !scope.is_of_installation()).collect();
    let token = service.limited(scopes, &["other"]).await;
    let browser = Browser::with(&service, &token).await;
    for path in [
        "/",
        "/jobs",
        "/workflows",
        "/sources",
        "/projects",
        "/artifacts",
        "/blobs",
    ] {
        let page = browser.page(path).await;
        assert!(!page.contains("main/"), "{path}: {page}");
        assert!(!page.contains(">main<"), "{path}: {page}");
    }
    for path in [
        "/workflows/main/pipeline",
        "/sources/main",
        "/projects/main",
    ] {
        assert_eq!(browser.get(path).await.status, 404, "{path}");
    }
    let least = service.personal([Scope::BlobRead], None).await;
    let browser = Browser::with(&service, &least).await;
    let page = browser.page("/").await;
    for hidden in ["pipeline", "large", "href=\"/tokens\""] {
        assert!(!page.contains(hidden), "{hidden}: {page}");
    }
}

#[tokio::test]
async fn assets_are_immutable_and_compressed() {
    let service = Service::start().await;
    let page = Call::get("/login").send(service.address).await;
    let mut found = BTreeSet::new();
    for part in page.text().split('"') {
        if part.starts_with("/assets/") {
            found.insert(part.to_owned());
        }
    }
    assert_eq!(found.len(), 4, "{found:?}");
    for path in found {
        let plain = Call::get(&path).send(service.address).await;
        assert_eq!(plain.status, 200);
        assert_eq!(plain.header("content-encoding"), None);
        let kept = "public, max-age=31536000, immutable";
        assert_eq!(plain.header("cache-control"), Some(kept));
        let packed = Call::get(&path).header("accept-encoding", "br, gzip");
        let packed = packed.send(service.address).await;
        assert!(packed.body.len() <= plain.body.len(), "{path}");
        let tag = packed.header("etag").unwrap();
        let again = Call::get(&path).header("accept-encoding", "gzip");
        let again = again.header("if-none-match", tag);
        assert_eq!(again.send(service.address).await.status, 304);
    }
    let other = Call::get("/assets/0000000000000000/main.js");
    assert_eq!(other.send(service.address).await.status, 404);
}

/// The values of an attribute, decoded.
fn values(page: &str, attribute: &str) -> BTreeSet<String> {
    let begin = format!(" {attribute}=\"");
    let parts = page.split(&begin).skip(1);
    let values = parts.filter_map(|part| part.split('"').next());
    values.map(|value| value.replace("&amp;", "&")).collect()
}

#[tokio::test]
async fn every_link_of_every_page_leads_to_a_page_and_every_form_to_a_route() {
    let world = World::new().await;
    let admin = Browser::admin(&world.service).await;
    let (mut links, mut forms) = (BTreeSet::new(), BTreeSet::new());
    for route in of_browsers().filter(|route| route.method == Method::GET && !is_data(route)) {
        let answer = admin.get(&world.path(route).await).await;
        let kind = answer.header("content-type").unwrap();
        if kind.starts_with("text/html") {
            links.extend(values(answer.text(), "href"));
            forms.extend(values(answer.text(), "action"));
        }
    }
    links.retain(|link| link.starts_with('/'));
    assert!(links.len() > 40, "{links:?}");
    for link in &links {
        let answer = admin.get(link).await;
        assert_eq!(answer.status, 200, "{link}: {answer:?}");
    }
    assert!(forms.len() > 15, "{forms:?}");
    for form in &forms {
        let asked = admin.send(admin.call(Method::OPTIONS, form)).await;
        let allowed = asked.header("allow").unwrap_or_default();
        let is_search = ["/jobs", "/audit", "/callbacks/"]
            .iter()
            .any(|path| form.starts_with(path));
        assert!(allowed.contains("POST") || is_search, "{form}: {asked:?}");
    }
}
