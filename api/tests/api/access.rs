//! Tests the access to every route of the table with every kind of token.

use api::{Access, PublicRoute, ROUTES, Route, UserRoute};
use chrono::TimeDelta;
use http::Method;
use model::{PlainToken, Scope, Scopes, TokenKind};

use crate::browser::Browser;
use crate::client::{Answer, Call};
use crate::service::{Claimed, Seeded, Service, text};

/// A token that a request presents.
#[derive(Debug, Clone, PartialEq)]
enum Kind {
    /// No token, or a token that no route accepts.
    Bad(&'static str),
    Personal(Scope),
    Runner,
    /// The worker of the job in the path.
    Worker,
}

/// The expected response of a route to a token.
#[derive(Debug, PartialEq)]
enum Verdict {
    Welcome,
    Unauthorized,
    Forbidden,
    /// A redirect to the sign-in.
    SignIn,
}

fn expected(access: Access, kind: &Kind) -> Verdict {
    match (access, kind) {
        // The test runs on the same machine, and a link needs only the secret in its path.
        (Access::Public(_) | Access::Local(..) | Access::Link(_), _) => Verdict::Welcome,
        // Each event needs its own scope.
        (Access::User(UserRoute::Events, _), Kind::Personal(Scope::CallbackRead)) => {
            Verdict::Welcome
        }
        (Access::User(_, scope), Kind::Personal(held)) => {
            if Scopes::from_iter([*held]).allow(scope) {
                Verdict::Welcome
            } else {
                Verdict::Forbidden
            }
        }
        (Access::Session(_), Kind::Personal(_)) => Verdict::Welcome,
        (Access::Runner(_), Kind::Runner) | (Access::Worker(_), Kind::Worker) => Verdict::Welcome,
        // Pages accept no token, only the cookie of a session.
        (Access::Page(route, _), _) if !route.is_data() => Verdict::SignIn,
        (Access::Action(route, _), _) if !route.is_data() => Verdict::SignIn,
        (
            Access::User(..)
            | Access::Session(_)
            | Access::Runner(_)
            | Access::Worker(_)
            | Access::Page(..)
            | Access::Action(..),
            _,
        ) => Verdict::Unauthorized,
    }
}

fn verdict(answer: &Answer) -> Verdict {
    match answer.status {
        303 if is_to_sign_in(answer) => Verdict::SignIn,
        // The answer to a HEAD has no body that names the reason.
        401 if answer.body.is_empty() => Verdict::Unauthorized,
        403 if answer.body.is_empty() => Verdict::Forbidden,
        401 => {
            answer.problem(401, "unauthorized");
            assert_eq!(answer.header("www-authenticate"), Some("Bearer"));
            Verdict::Unauthorized
        }
        403 => {
            answer.problem(403, "forbidden");
            Verdict::Forbidden
        }
        _ => Verdict::Welcome,
    }
}

fn is_to_sign_in(answer: &Answer) -> bool {
    let to = answer.header("location").unwrap_or_default();
    to.starts_with("/login")
}

/// A path of the route with parameters that exist. An accepted call must not remove what later calls need.
fn path(route: &Route, executed: &Claimed, waiting: &str) -> String {
    let job = match route.access {
        Access::Worker(_) => &executed.id,
        Access::Public(_)
        | Access::Local(..)
        | Access::User(..)
        | Access::Session(_)
        | Access::Link(_)
        | Access::Runner(_)
        | Access::Page(..)
        | Access::Action(..) => waiting,
    };
    // Without a project, they belong to the instance.
    let owner = match route.path {
        path if path.starts_with("/v0/rule") || path.starts_with("/v0/channels") => "?project=main",
        _ => "",
    };
    let path = route.path.to_owned() + owner;
    path.replace("{source}", "main")
        .replace("{project}", "main")
        .replace("{var}", "URL")
        .replace("{secret}", "KEY")
        .replace("{workflow}", "pipeline")
        .replace("{scan}", "build")
        .replace("{revision}", "1")
        .replace("{job}", job)
        .replace("{artifact}", "out")
        .replace("{*path}", "a")
        .replace("{link}", "11111111-1111-4111-8111-111111111111")
        .replace("{token}", "11111111-1111-4111-8111-111111111111")
        .replace("{session}", "11111111-1111-4111-8111-111111111111")
        .replace("{runner}", "11111111-1111-4111-8111-111111111111")
        .replace("{rule}", "a")
        .replace("{channel}", "a")
        .replace("{callback}", "aaaaaaaaaaaaaaaa")
        .replace("{tag}", "aaaaaaaaaaaaaaaaaaaa")
        .replace("{group}", "11111111-1111-4111-8111-111111111111")
        .replace("{payload}", "a.svg")
        .replace("{number}", "1")
}

#[tokio::test]
async fn no_route_accepts_a_session_together_with_a_token() {
    let service = Service::start().await;
    let (_, executed) = service.claimed("one").await;
    let browser = Browser::admin(&service).await;
    for route in ROUTES.iter() {
        let token = match route.access {
            Access::Public(_) | Access::Local(..) | Access::Link(_) => continue,
            Access::Worker(_) => &executed.token,
            Access::Runner(_)
            | Access::User(..)
            | Access::Session(_)
            | Access::Page(..)
            | Access::Action(..) => &service.admin,
        };
        let path = path(route, &executed, &executed.id);
        let call = browser.call(route.method.clone(), &path).bearer(token);
        let answer = browser.send(call).await;
        assert_eq!(answer.status, 400, "{} {path}", route.method);
    }
}

#[tokio::test]
async fn every_route_accepts_exactly_the_callers_in_the_table() {
    let service = Service::start().await;
    let expired = service
        .personal([Scope::Admin], Some(TimeDelta::seconds(60)))
        .await;
    service.clock.advance(TimeDelta::seconds(60));
    let (runner, executed) = service.claimed("one").await;
    let (_, other) = service.claimed("two").await;
    let waiting = service.dispatch("large").await;

    let unknown = |kind| {
        PlainToken::random(kind, &mut Seeded(99))
            .reveal()
            .to_owned()
    };
    let revoked = service.personal([Scope::Admin], None).await;
    let list = Call::get("/v0/tokens").bearer(&revoked);
    let list = list.send(service.address).await.expect(200);
    let last = list["items"].as_array().and_then(|items| items.last());
    let id = text(&last.unwrap()["id"]);
    let revoke = Call::new(Method::DELETE, format!("/v0/tokens/{id}"));
    service.admin(revoke).await.expect(204);
    // The token with a different last letter.
    let cut = |token: &str| token[..token.len() - 1].to_owned();
    let altered = |token: &str| {
        let last = if token.ends_with('a') { 'b' } else { 'a' };
        format!("{}{last}", cut(token))
    };

    let mut tokens: Vec<(Kind, Option<String>)> = vec![
        (Kind::Bad("none"), None),
        (Kind::Bad("empty"), Some(String::new())),
        (Kind::Bad("malformed"), Some("evs_short".to_owned())),
        (
            Kind::Bad("unknown personal"),
            Some(unknown(TokenKind::Personal)),
        ),
        (
            Kind::Bad("unknown session"),
            Some(PlainToken::session(&mut Seeded(99)).reveal().to_owned()),
        ),
        (
            Kind::Bad("unknown registration"),
            Some(unknown(TokenKind::Registration)),
        ),
        (Kind::Bad("expired"), Some(expired)),
        (
            Kind::Bad("registration"),
            Some(service.registration().await),
        ),
        (Kind::Bad("another job's worker"), Some(other.token)),
        (Kind::Bad("revoked"), Some(revoked)),
        (Kind::Bad("a prefix"), Some(cut(&service.admin))),
        (Kind::Bad("half"), Some(service.admin[..20].to_owned())),
        (
            Kind::Bad("one letter differs"),
            Some(altered(&service.admin)),
        ),
        (Kind::Bad("longer"), Some(format!("{}a", service.admin))),
        (Kind::Bad("a runner's prefix"), Some(cut(&runner.token))),
        (Kind::Bad("almost a runner's"), Some(altered(&runner.token))),
        (Kind::Bad("a worker's prefix"), Some(cut(&executed.token))),
        (
            Kind::Bad("almost a worker's"),
            Some(altered(&executed.token)),
        ),
        (Kind::Runner, Some(runner.token.clone())),
        (Kind::Worker, Some(executed.token.clone())),
    ];
    for scope in Scope::ALL {
        let token = service.personal([*scope], None).await;
        tokens.push((Kind::Personal(*scope), Some(token)));
    }
    for route in ROUTES.iter() {
        let path = path(route, &executed, &waiting);
        for (kind, token) in &tokens {
            let mut call = Call::new(route.method.clone(), &path);
            if let Some(token) = token {
                call = call.bearer(token);
            }
            check(&service, route, kind, call).await;
        }
        let in_query = |name: &str, token: &str| {
            Call::new(route.method.clone(), format!("{path}?{name}={token}"))
        };
        for (kind, call) in [
            (
                Kind::Bad("in the query"),
                in_query("access_token", &service.admin),
            ),
            (
                Kind::Bad("a parameter that is known"),
                in_query("token", &service.admin),
            ),
            (
                Kind::Bad("a runner's in the query"),
                in_query("authorization", &runner.token),
            ),
            (
                Kind::Bad("a worker's in the query"),
                in_query("token", &executed.token),
            ),
            (
                Kind::Bad("another scheme"),
                Call::new(route.method.clone(), &path)
                    .header("authorization", &format!("Basic {}", service.admin)),
            ),
            (
                Kind::Bad("no scheme"),
                Call::new(route.method.clone(), &path).header("authorization", &service.admin),
            ),
        ] {
            check(&service, route, &kind, call).await;
        }
    }
}

async fn check(service: &Service, route: &Route, kind: &Kind, call: Call) {
    // The sign-in accepts only requests of its own page.
    let call = match route.access {
        Access::Public(PublicRoute::Login) => call.header("sec-fetch-site", "same-origin"),
        _ => call,
    };
    let answer = call.send_to_stream(service.address).await;
    let what = format!("{:?} with {kind:?}: {answer:?}", route.access);
    assert!(answer.status < 500, "{what}");
    assert_eq!(verdict(&answer), expected(route.access, kind), "{what}");
}

#[tokio::test]
async fn every_invalid_token_gets_the_same_answer_on_every_route() {
    let service = Service::start().await;
    let token = service.personal([Scope::Admin], Some(TimeDelta::seconds(1)));
    let expired = token.await;
    service.clock.advance(TimeDelta::seconds(1));
    let unknown = PlainToken::random(TokenKind::Personal, &mut Seeded(99));
    let mut bodies = Vec::new();
    for path in ["/v0/jobs", "/v0/jobs/11111111-1111-7111-8111-111111111111"] {
        for token in ["", "evs_", unknown.reveal(), &expired] {
            let answer = Call::get(path).bearer(token).send(service.address).await;
            let mut body = answer.problem(401, "unauthorized");
            body["request_id"].take();
            bodies.push(body);
        }
    }
    bodies.dedup();
    assert_eq!(bodies.len(), 1, "{bodies:?}");
}

#[tokio::test]
async fn the_scheme_of_the_authorization_ignores_case() {
    let service = Service::start().await;
    for scheme in ["Bearer", "bearer", "BEARER"] {
        let value = format!("{scheme} {}", service.admin);
        let call = Call::get("/v0/jobs").header("authorization", &value);
        call.send(service.address).await.expect(200);
    }
}

#[tokio::test]
async fn a_token_cannot_make_a_token_with_more_rights() {
    let service = Service::start().await;
    let weak = service
        .personal([Scope::TokenWrite, Scope::JobRead], None)
        .await;
    let make = |scopes: &[&str]| {
        Call::post("/v0/tokens")
            .bearer(&weak)
            .json(&serde_json::json!({"name": "new", "scopes": scopes}))
            .send(service.address)
    };
    make(&["job:read"]).await.expect(201);
    make(&["admin"]).await.problem(403, "forbidden");
    make(&["job:read", "dispatch"])
        .await
        .problem(403, "forbidden");
}

#[tokio::test]
async fn an_unknown_route_differs_from_an_unknown_method() {
    let service = Service::start().await;
    for path in [
        "/v0",
        "/v0/",
        "/v1/jobs",
        "/v0/jobs/",
        "/v0//jobs",
        "/V0/jobs",
    ] {
        let answer = Call::get(path).send(service.address).await;
        answer.problem(404, "no_such_route");
    }
    let deep = format!("/{}", "a".repeat(20_000));
    let body = Call::get(deep).send(service.address).await;
    let body = body.problem(404, "no_such_route");
    assert!(body["detail"].to_string().len() < 300, "{body}");
    for (path, allow) in [
        ("/v0/jobs", "GET"),
        ("/v0/jobs/x/logs", "GET, PATCH"),
        ("/v0/jobs/x/artifacts", "GET"),
        ("/v0/tokens", "GET, POST"),
    ] {
        let answer = Call::new(Method::DELETE, path);
        let answer = answer.send(service.address).await;
        answer.problem(405, "method_not_allowed");
        assert_eq!(answer.header("allow"), Some(allow));
    }
}

#[test]
fn only_these_routes_are_open_to_anyone() {
    let open: Vec<PublicRoute> = ROUTES
        .iter()
        .filter_map(|route| match route.access {
            Access::Public(route) => Some(route),
            Access::Local(..)
            | Access::User(..)
            | Access::Session(_)
            | Access::Link(_)
            | Access::Runner(_)
            | Access::Worker(_)
            | Access::Page(..)
            | Access::Action(..) => None,
        })
        .collect();
    assert_eq!(
        open,
        [
            PublicRoute::Healthz,
            PublicRoute::Readyz,
            PublicRoute::WorkflowSchema,
            PublicRoute::OpenApi,
            PublicRoute::Docs,
            PublicRoute::Asset,
            PublicRoute::RegisterRunner,
            PublicRoute::CreateSession,
            PublicRoute::BeginDeviceLogin,
            PublicRoute::LoginPage,
            PublicRoute::LinkPage,
            PublicRoute::WelcomePage,
            PublicRoute::Login,
        ]
    );
}
