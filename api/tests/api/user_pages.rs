//! The pages of people: invitations, passwords, devices, users and members.

use http::Method;
use percent_encoding::{NON_ALPHANUMERIC, utf8_percent_encode};
use serde_json::json;

use crate::browser::{Browser, sign_in, typed};
use crate::client::{Answer, Call};
use crate::pages::check_markup;
use crate::service::{Service, text};

const PASSWORD: &str = "five words that nobody guesses";

async fn login(service: &Service, fields: &[(&str, &str)]) -> Answer {
    let call = Call::post("/login").header("sec-fetch-site", "same-origin");
    typed(call, fields).send(service.address).await
}

/// Makes a user on the page of users, and returns the path of the invitation.
async fn invited(browser: &Browser<'_>, name: &str, roles: &str) -> String {
    let form = [("name", name), ("kind", "person"), ("roles", roles)];
    let page = browser.post("/users", &form).await;
    assert_eq!(page.status, 200, "{page:?}");
    link_in(&page)
}

fn link_in(page: &Answer) -> String {
    check_markup("/users", page.text());
    let (_, after) = page.text().split_once("/welcome/").unwrap();
    format!("/welcome/{}", after.split('<').next().unwrap())
}

async fn accept(service: &Service, path: &str, password: &str, again: &str) -> Answer {
    let link = path.strip_prefix("/welcome/").unwrap();
    let form = [("link", link), ("password", password), ("again", again)];
    login(service, &form).await
}

/// The browser of a new person with these roles.
pub(crate) async fn person<'a>(service: &'a Service, name: &str, roles: &str) -> Browser<'a> {
    let admin = Browser::admin(service).await;
    let path = invited(&admin, name, roles).await;
    Browser::signed_in_by(service, &accept(service, &path, PASSWORD, PASSWORD).await)
}

#[tokio::test]
async fn an_invitation_sets_a_password_once_and_looking_at_it_does_not_use_it() {
    let service = Service::start().await;
    let admin = Browser::admin(&service).await;
    let path = invited(&admin, "kim", "main=operator").await;
    for method in [Method::GET, Method::HEAD, Method::GET] {
        let page = Call::new(method, &path).send(service.address).await;
        assert_eq!((page.status, page.header("set-cookie")), (200, None));
    }
    let page = Call::get(&path).send(service.address).await;
    assert!(page.text().contains("You are <b>kim</b>"), "{page:?}");
    for (password, again, problem) in [
        (PASSWORD, "other", "must be the same password"),
        ("short", "short", "15 to 256"),
    ] {
        let page = accept(&service, &path, password, again).await;
        assert_eq!((page.status, page.header("set-cookie")), (422, None));
        assert!(page.text().contains("You are <b>kim</b>"), "{page:?}");
        assert!(page.text().contains(problem), "{page:?}");
        assert!(!page.text().contains(&format!("value=\"{password}\"")));
    }
    let answer = accept(&service, &path, PASSWORD, PASSWORD).await;
    let kim = Browser::signed_in_by(&service, &answer);
    assert!(kim.page("/settings").await.contains("main: operator"));
    for page in [
        accept(&service, &path, PASSWORD, PASSWORD).await,
        Call::get(&path).send(service.address).await,
    ] {
        assert_eq!((page.status, page.header("set-cookie")), (404, None));
        assert!(page.text().contains("it was used, has expired"), "{page:?}");
    }
}

#[tokio::test]
async fn a_sign_in_with_a_password_keeps_the_name_and_tells_nothing() {
    let service = Service::start().await;
    let first = Call::get("/login").send(service.address).await;
    assert!(
        !first.text().contains("name=\"password\""),
        "nobody has one"
    );
    drop(person(&service, "kim", "main=viewer").await);
    let mut problems = Vec::new();
    for name in ["kim", "nobody"] {
        let form = [
            ("user", name),
            ("password", "wrong and too long"),
            ("next", "/jobs"),
        ];
        let page = login(&service, &form).await;
        assert_eq!((page.status, page.header("set-cookie")), (401, None));
        let page = page.text();
        check_markup("/login", page);
        assert!(page.contains(&format!("value=\"{name}\"")), "{page}");
        assert!(page.contains("value=\"/jobs\"") && !page.contains("wrong and too long"));
        let (_, problem) = page.split_once("role=\"alert\"").unwrap();
        problems.push(problem.split("</div>").next().unwrap().to_owned());
    }
    assert_eq!(problems[0], problems[1]);
    service.clock.advance(chrono::TimeDelta::hours(1));
    let form = [("user", "kim"), ("password", PASSWORD), ("next", "/jobs")];
    let answer = login(&service, &form).await;
    assert_eq!(
        (answer.status, answer.header("location")),
        (303, Some("/jobs"))
    );
}

#[tokio::test]
async fn a_new_password_needs_a_recent_sign_in_of_the_person() {
    let service = Service::start().await;
    let kim = person(&service, "kim", "main=viewer").await;
    let other = "another five words, not guessed";
    let wrong = [("password", other), ("again", PASSWORD)];
    let page = kim.post("/settings/password", &wrong).await;
    assert_eq!(page.status, 422, "{page:?}");
    assert!(page.text().contains("must be the same password"));
    let form = [("password", other), ("again", other)];
    let answer = kim.post("/settings/password", &form).await;
    assert_eq!(answer.header("location"), Some("/settings"), "{answer:?}");
    assert_eq!(kim.get("/jobs").await.status, 303, "the former cookie");
    let cookie = answer.header("set-cookie").unwrap();
    let cookie = cookie.split(';').next().unwrap().to_owned();
    let kim = Browser::with_cookie(&service, cookie);
    let old = [("user", "kim"), ("password", PASSWORD)];
    assert_eq!(login(&service, &old).await.status, 401);
    service.clock.advance(chrono::TimeDelta::minutes(11));
    let page = kim.page("/settings").await;
    assert!(
        page.contains("Sign in again") && !page.contains("/settings/password"),
        "{page}"
    );
    assert_ne!(kim.post("/settings/password", &form).await.status, 303);
    // A token is not the person. The owner has no password yet, and gets a link.
    let admin = Browser::admin(&service).await;
    let to = admin.done("/users/owner/link", &[]).await;
    assert!(to.starts_with("/welcome/"), "{to}");
}

#[tokio::test]
async fn a_service_has_no_password() {
    let service = Service::start().await;
    let robot = service.robot("deploy", &[]).await;
    let token = service.token_of(robot, [model::Scope::Admin], None).await;
    let page = Browser::with(&service, &token).await;
    let page = page.page("/settings").await;
    assert!(page.contains("deploy") && !page.to_lowercase().contains("password"));
}

#[tokio::test]
async fn a_device_is_signed_in_by_the_person_who_confirms_its_code() {
    let service = Service::start().await;
    let kim = person(&service, "kim", "main=viewer").await;
    let begin = Call::post("/v0/device-logins").json(&json!({ "device": "<laptop>" }));
    let begun = begin.send(service.address).await.expect(201);
    let page = kim.page(&text(&begun["url_path"])).await;
    check_markup("/device", &page);
    let code = text(&begun["user_code"]);
    assert!(
        page.contains(&code) && page.contains("<bdi>&lt;laptop&gt;</bdi>"),
        "{page}"
    );
    let stranger = Call::get(text(&begun["url_path"]))
        .send(service.address)
        .await;
    assert!(
        stranger
            .header("location")
            .unwrap()
            .starts_with("/login?next=%2Fdevice%3Fcode")
    );
    let done = kim.post("/device", &[("code", &code)]).await;
    assert_eq!(done.status, 200, "{done:?}");
    assert!(done.text().contains("is signed in"));
    assert_eq!(kim.post("/device", &[("code", &code)]).await.status, 422);
    let ask = Call::post("/v0/sessions").json(&json!({ "device_code": begun["device_code"] }));
    let made = ask.send(service.address).await.expect(201);
    let me = Call::get("/v0/me").bearer(&text(&made["secret"]));
    assert_eq!(me.send(service.address).await.expect(200)["user"], "kim");
    assert!(kim.page("/settings").await.contains("&lt;laptop&gt;"));
    assert!(
        kim.page("/device?code=WRONG")
            .await
            .contains("No device waits")
    );
}

#[tokio::test]
async fn a_page_that_gives_rights_sends_to_the_sign_in_and_back() {
    let service = Service::start().await;
    let admin = Browser::admin(&service).await;
    drop(invited(&admin, "kim", "main=viewer").await);
    service.clock.advance(chrono::TimeDelta::minutes(10));
    let begun = Call::post("/v0/device-logins").json(&json!({ "device": "laptop" }));
    let begun = begun.send(service.address).await.expect(201);
    let code = text(&begun["user_code"]);
    let members = "/projects/main/members";
    let runner = service.register("one", &[], 1).await;
    let runner = &format!("/runners/{}", runner.id);
    let limit = &format!("{runner}/limit");
    for (page, path, form) in [
        (
            "/users",
            "/users",
            vec![("name", "lee"), ("kind", "service")],
        ),
        ("/users/kim", "/users/kim/link", vec![]),
        ("/users/kim", "/users/kim", vec![("administrator", "true")]),
        (
            members,
            members,
            vec![("name", "kim"), ("role", "operator")],
        ),
        (members, members, vec![("name", "kim"), ("invite", "again")]),
        (
            "/tokens",
            "/tokens",
            vec![("name", "ci"), ("scopes", "job:read")],
        ),
        ("/device", "/device", vec![("code", code.as_str())]),
        ("/runners", "/runners/registrations", vec![]),
        (runner, limit, vec![("projects", "main")]),
    ] {
        let call = admin.call(Method::POST, path);
        let call = call.header("referer", &format!("http://localhost{page}"));
        let answer = admin.send(typed(call, &form)).await;
        assert_eq!(answer.status, 403, "{path}: {answer:?}");
        check_markup(path, answer.text());
        let next = utf8_percent_encode(page, NON_ALPHANUMERIC).to_string();
        let next = next.replace("%2D", "-");
        let link = format!("href=\"/login?next={next}\">Sign in again</a>");
        assert!(answer.text().contains(&link), "{answer:?}");
        let without_password = "everscan session link";
        assert!(answer.text().contains(without_password), "{answer:?}");
    }
    let devices = service.handle.sign_ins();
    assert!(devices.waiting_device(&code).is_some(), "not confirmed");
}

#[tokio::test]
async fn an_administrator_changes_users_on_their_pages() {
    let service = Service::start().await;
    let kim = person(&service, "kim", "main=viewer").await;
    let admin = Browser::admin(&service).await;
    for (roles, problem) in [("main", "is not a role"), ("main=admin", "is not a role")] {
        let page = admin
            .post("/users", &[("name", "lee"), ("roles", roles)])
            .await;
        assert_eq!(page.status, 422, "{page:?}");
        assert!(page.text().contains(problem) && page.text().contains("value=\"lee\""));
    }
    let list = admin.page("/users").await;
    assert!(
        list.contains("href=\"/users/kim\"") && list.contains("main: viewer"),
        "{list}"
    );
    let reset = link_in(&admin.post("/users/kim/link", &[]).await);
    let to = admin.done("/users/kim", &[("active", "false")]).await;
    assert_eq!(to, "/users/kim");
    assert!(admin.page("/users/kim").await.contains("deactivated"));
    assert_eq!(kim.get("/jobs").await.status, 303);
    assert_eq!(Call::get(&reset).send(service.address).await.status, 404);
    admin.done("/users/kim", &[("active", "true")]).await;
    admin.done("/users/kim", &[("administrator", "true")]).await;
    assert!(admin.page("/users/kim").await.contains("administrator"));
    // Nobody else could sign in as an administrator then.
    assert_eq!(admin.post("/users/kim/delete", &[]).await.status, 409);
    drop(invited(&admin, "lee", "").await);
    assert_eq!(admin.done("/users/lee/delete", &[]).await, "/users");
    assert_eq!(admin.get("/users/lee").await.status, 404);
    // A service has tokens of its own.
    let form = [
        ("name", "deploy"),
        ("kind", "service"),
        ("roles", "main=operator"),
    ];
    assert_eq!(admin.post("/users", &form).await.status, 200);
    let form = [
        ("name", "ci"),
        ("scopes", "dispatch"),
        ("expires_in_seconds", "604800"),
        ("user", "deploy"),
    ];
    assert_eq!(admin.post("/tokens", &form).await.status, 200);
    let tokens = admin.page("/tokens?user=deploy").await;
    assert!(tokens.contains("<td>ci</td><td>deploy</td>"), "{tokens}");
    assert!(!admin.page("/tokens").await.contains("<td>ci</td>"));
}

#[tokio::test]
async fn a_maintainer_invites_and_removes_and_others_only_look() {
    let service = Service::follow(&["main", "other"]).await;
    let kim = person(&service, "kim", "main=maintainer other=viewer").await;
    let form = [("name", "lee"), ("role", "operator"), ("invite", "true")];
    let page = kim.post("/projects/main/members", &form).await;
    assert_eq!(page.status, 200, "{page:?}");
    let answer = accept(&service, &link_in(&page), PASSWORD, PASSWORD).await;
    let lee = Browser::signed_in_by(&service, &answer);

    let page = lee.page("/projects/main/members").await;
    assert!(
        page.contains("lee") && !page.contains("/projects/main/members\" "),
        "{page}"
    );
    let form = [("name", "lee"), ("role", "maintainer")];
    assert_eq!(lee.post("/projects/main/members", &form).await.status, 403);
    assert_eq!(lee.get("/projects/other/members").await.status, 404);
    // An invitation that has ended is made again.
    let form = [("name", "max"), ("role", "viewer"), ("invite", "true")];
    let former = link_in(&kim.post("/projects/main/members", &form).await);
    let page = kim.page("/projects/main/members").await;
    assert!(page.contains("Invite max again") && !page.contains("Invite lee again"));
    let form = [("name", "max"), ("invite", "again")];
    let page = kim.post("/projects/main/members", &form).await;
    assert_eq!(page.status, 200, "{page:?}");
    let link = link_in(&page);
    assert_ne!(link, former);
    assert_eq!(Call::get(&link).send(service.address).await.status, 200);
    assert_eq!(Call::get(&former).send(service.address).await.status, 404);
    // A maintainer of one project is none of the other.
    let page = kim.page("/projects/other/members").await;
    assert!(!page.contains("action=\"/projects/"), "{page}");
    let refused = kim.post("/projects/other/members", &form).await;
    assert!(
        refused.status == 403 || refused.status == 422,
        "{refused:?}"
    );
    let unknown = [("name", "nobody"), ("role", "viewer")];
    let page = kim.post("/projects/main/members", &unknown).await;
    assert_eq!(page.status, 422, "{page:?}");
    let form = [("name", "lee"), ("role", "viewer")];
    assert_eq!(
        kim.done("/projects/main/members", &form).await,
        "/projects/main/members"
    );
    kim.done("/projects/main/members/lee/remove", &[]).await;
    assert_eq!(lee.get("/projects/main").await.status, 403);
}

/// Both have the same scopes somewhere, but not in the same project.
#[tokio::test]
async fn pages_are_shared_between_equal_roles_only() {
    let service = Service::follow(&["main", "other"]).await;
    let kim = person(&service, "kim", "main=viewer other=operator").await;
    let lee = person(&service, "lee", "main=operator other=viewer").await;
    let scan = "/workflows/main/pipeline/-/scans/build";
    let renewed = async |browser: &Browser<'_>| {
        let call = browser.call(Method::GET, scan).header("prefer", "wait=1");
        browser.send(call).await.text().to_owned()
    };
    let (first, of_kim, of_lee) = tokio::join!(renewed(&lee), renewed(&kim), renewed(&lee));
    let may_dispatch = |page: &str| page.contains(&format!("href=\"{scan}/dispatch\""));
    assert!(may_dispatch(&first) && may_dispatch(&of_lee) && !may_dispatch(&of_kim));
    assert!(of_kim.contains(">kim<") && of_lee.contains(">lee<"));
    assert_eq!(kim.post(&format!("{scan}/dispatch"), &[]).await.status, 403);
}

#[tokio::test]
async fn only_the_own_projects_are_listed() {
    let service = Service::follow(&["main", "secret-plans"]).await;
    let kim = person(&service, "kim", "main=maintainer").await;
    for path in [
        "/",
        "/projects",
        "/sources",
        "/workflows",
        "/blobs",
        "/notifications",
        "/settings",
    ] {
        let page = kim.page(path).await;
        assert!(!page.contains("secret-plans"), "{path}: {page}");
    }
    for path in [
        "/projects/secret-plans",
        "/sources/secret-plans",
        "/workflows/secret-plans/pipeline",
    ] {
        assert_eq!(kim.get(path).await.status, 404, "{path}");
    }
    let page = sign_in(&service, "wrong", "").await;
    assert!(!page.text().contains("secret-plans"));
}
