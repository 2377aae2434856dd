//! Passwords: invitations, signing in, guessing, and a new password.

use chrono::TimeDelta;
use futures_util::future::join_all;
use http::Method;
use model::{Role, Scope, UserId};
use serde_json::json;

use crate::client::{Answer, Call};
use crate::people::{PASSWORD, Person, from, same, use_link, use_password};
use crate::service::{Service, text};

#[tokio::test]
async fn an_invited_person_chooses_a_password_once_and_signs_in_with_it() {
    let service = Service::start().await;
    let link = service.invite("anna", UserId::OWNER).await;
    let early = use_password("anna", PASSWORD).send(service.address).await;
    early.problem(401, "unauthorized");
    let short = use_link(&link, "too short").send(service.address).await;
    let problem = short.problem(400, "invalid_request");
    assert_eq!(problem["errors"][0]["field"], "password");
    let answers = join_all((0..3).map(|_| use_link(&link, PASSWORD).send(service.address))).await;
    let mut statuses: Vec<u16> = answers.iter().map(|answer| answer.status).collect();
    statuses.sort_unstable();
    assert_eq!(statuses[0], 201, "{statuses:?}");
    assert!(
        statuses[1..]
            .iter()
            .all(|status| [404, 429].contains(status))
    );
    let again = use_link(&link, PASSWORD).send(service.address).await;
    again.problem(404, "not_found");

    let answer = use_password("anna", PASSWORD).send(service.address).await;
    let shown = answer.expect(201);
    assert_eq!(
        (&shown["token"], &shown["secret"]),
        (&json!(null), &json!(null))
    );
    let anna = Person::of(&answer);
    assert!(anna.is_signed_in(&service).await);
    for cookie in answer.headers.get_all("set-cookie") {
        assert!(cookie.to_str().unwrap().contains("HttpOnly; SameSite=Lax"));
    }
    let wrong = use_password("anna", "wrong horse battery").send(service.address);
    wrong.await.problem(401, "unauthorized");
}

#[tokio::test]
async fn an_invitation_ends_after_three_days_and_with_the_right_of_its_maker() {
    let service = Service::start().await;
    service.person("boss").await;
    let (maker, _) = service.person("maker").await;
    let late = service.invite("late", UserId::OWNER).await;
    let orphan = service.invite("orphan", maker).await;
    service.deactivate(maker).await;
    let answer = use_link(&orphan, PASSWORD).send(service.address).await;
    answer.problem(404, "not_found");
    service.clock.advance(TimeDelta::hours(72));
    let answer = use_link(&late, PASSWORD).send(service.address).await;
    answer.problem(404, "not_found");
    let again = service.invite("later", UserId::OWNER).await;
    let answer = use_link(&again, PASSWORD).send(service.address).await;
    answer.expect(201);
}

#[tokio::test]
async fn a_reset_ends_all_sessions_and_the_former_password() {
    let service = Service::start().await;
    let (id, anna) = service.person("anna").await;
    let link = service.reset(id, UserId::OWNER).await;
    assert!(anna.is_signed_in(&service).await, "only using it ends them");
    let new = "another horse battery";
    let answer = use_link(&link, new).send(service.address).await;
    answer.expect(201);
    assert!(!anna.is_signed_in(&service).await);
    assert!(Person::of(&answer).is_signed_in(&service).await);
    let former = use_password("anna", PASSWORD).send(service.address).await;
    former.problem(401, "unauthorized");
    let answer = use_password("anna", new).send(service.address).await;
    answer.expect(201);
}

/// The hash of unknown names is tested in `identity`.
#[tokio::test]
async fn known_and_unknown_names_get_the_same_answers_and_growing_delays() {
    let mut seen = Vec::new();
    // The owner has no password, and the last is no name.
    for name in ["anna", "nobody", "owner", "Not a name"] {
        let service = Service::start().await;
        service.person("anna").await;
        let wrong = use_password(name, "wrong horse battery");
        let answers = until_delayed(&service, &wrong).await;
        let answers = answers.iter().map(|answer| {
            let wait = answer.header("retry-after").map(str::to_owned);
            (answer.status, wait.is_some(), same(answer)["code"].clone())
        });
        let answers: Vec<_> = answers.collect();
        let (delayed, before) = answers.split_last().unwrap();
        assert!(before.len() >= 6, "{answers:?}");
        seen.push((delayed.clone(), before[..6].to_vec()));
    }
    for other in &seen[1..] {
        assert_eq!(other, &seen[0]);
    }
    let (delayed, before) = &seen[0];
    assert_eq!(delayed.0, 429);
    assert!(before.iter().all(|(status, ..)| *status == 401));
}

/// The answers up to the first that must wait. The delay grows until a busy machine is faster than it, too.
async fn until_delayed(service: &Service, call: &Call) -> Vec<Answer> {
    let mut answers = Vec::new();
    while answers.last().is_none_or(|it: &Answer| it.status != 429) {
        assert!(answers.len() < 20, "no delay");
        answers.push(call.clone().send(service.address).await);
    }
    answers
}

/// 300 wrong sign-ins from 100 addresses are on their way. The bench `sign_ins` measures the time.
#[tokio::test]
async fn guesses_from_everywhere_do_not_keep_a_person_out_of_a_known_browser() {
    let service = Service::behind_a_proxy().await;
    let link = service.invite("anna", UserId::OWNER).await;
    let answer = from(use_link(&link, PASSWORD), "203.0.113.9");
    let anna = Person::of(&answer.send(service.address).await);
    let guesses = (0..300).map(|n| {
        let name = if n % 2 == 0 { "anna" } else { "nobody" };
        let call = use_password(name, "wrong horse battery");
        let call = from(call, &format!("198.51.100.{}", n % 100));
        tokio::spawn(call.send(service.address))
    });
    let guesses: Vec<_> = guesses.collect();
    let again = from(use_password("anna", PASSWORD), "203.0.113.9");
    let answer = again.clone().header("cookie", &anna.browser);
    let answer = answer.send(service.address).await;
    answer.expect(201);
    for guess in guesses {
        let status = guess.await.unwrap().status;
        assert!([401, 429].contains(&status), "{status}");
    }
    // Another browser waits for the account's delay, from each address.
    let wrong = use_password("anna", "wrong horse battery");
    until_delayed(&service, &from(wrong, "192.0.2.1")).await;
    let known = again.header("cookie", &anna.browser);
    known.send(service.address).await.expect(201);
}

#[tokio::test]
async fn a_sign_in_makes_a_new_session_and_ends_the_one_that_the_browser_had() {
    let service = Service::start().await;
    let (_, anna) = service.person("anna").await;
    let (_, mallory) = service.person("mallory").await;
    // Somebody gave Anna's browser a session of their own, or knows its former one.
    for planted in [&mallory, &anna] {
        let call = use_password("anna", PASSWORD).header("cookie", &planted.session);
        let call = call.header("sec-fetch-site", "same-origin");
        let answer = call.send(service.address).await;
        answer.expect(201);
        let new = Person::of(&answer);
        assert_ne!(new.session, planted.session);
        assert!(new.is_signed_in(&service).await);
        assert!(!planted.is_signed_in(&service).await);
    }
    // The audit log has both ends, so that no restore brings the sessions back.
    let ended = service.get("/v0/audit?kind=signed_out").await.expect(200);
    assert_eq!(ended["items"].as_array().unwrap().len(), 2, "{ended}");
}

#[tokio::test]
async fn a_sign_in_needs_https_and_its_own_origin() {
    let service = Service::behind_a_proxy().await;
    let link = service.invite("anna", UserId::OWNER).await;
    for call in [use_link(&link, PASSWORD), use_password("anna", PASSWORD)] {
        let far = call.clone().header("x-forwarded-for", "203.0.113.9");
        far.send(service.address).await.problem(403, "forbidden");
        for site in ["cross-site", "same-site", "none"] {
            let call = from(call.clone(), "203.0.113.9").header("sec-fetch-site", site);
            call.send(service.address).await.problem(403, "forbidden");
        }
        let evil = from(call, "203.0.113.9").header("origin", "https://evil.example.org");
        evil.send(service.address).await.problem(403, "forbidden");
    }
    let answer =
        from(use_link(&link, PASSWORD), "203.0.113.9").header("sec-fetch-site", "same-origin");
    answer.send(service.address).await.expect(201);
}

fn change(password: &str) -> (Method, &'static str, serde_json::Value) {
    (
        Method::PUT,
        "/v0/me/password",
        json!({"password": password}),
    )
}

#[tokio::test]
async fn a_new_password_needs_a_recent_sign_in_and_ends_all_sessions() {
    let service = Service::start().await;
    let (_, anna) = service.person("anna").await;
    let other = use_password("anna", PASSWORD).send(service.address).await;
    let other = Person::of(&other);
    let (method, path, body) = change("another horse battery");
    let call = |person: &Person| person.call(method.clone(), path).json(&body);
    service.clock.advance(TimeDelta::minutes(10));
    let problem = call(&anna).send(service.address).await;
    problem.problem(403, "sign_in_again");

    let again = use_password("anna", PASSWORD).send(service.address).await;
    let again = Person::of(&again);
    let without_origin = Call::new(method.clone(), path).json(&body);
    let without_origin = without_origin.header("cookie", &again.session);
    without_origin
        .send(service.address)
        .await
        .problem(403, "forbidden");
    let short = again
        .call(method.clone(), path)
        .json(&json!({"password": "short"}));
    short
        .send(service.address)
        .await
        .problem(400, "invalid_request");
    let answer = call(&again).send(service.address).await;
    answer.expect(204);
    for former in [&again, &other, &anna] {
        assert!(!former.is_signed_in(&service).await);
    }
    // Only the browser that sent the password has a new session.
    assert!(Person::of(&answer).is_signed_in(&service).await);
    let former = use_password("anna", PASSWORD).send(service.address).await;
    former.problem(401, "unauthorized");
    let new = use_password("anna", "another horse battery").send(service.address);
    new.await.expect(201);
}

#[tokio::test]
async fn only_the_whole_person_sets_a_password() {
    let service = Service::start().await;
    let (method, path, body) = change("another horse battery");
    let call = Call::new(method.clone(), path).json(&body);
    service.admin(call).await.problem(403, "forbidden");
    let with_token = Call::post("/v0/sessions").json(&json!({"token": service.admin}));
    let answer = with_token.send(service.address).await;
    let cookie = answer
        .header("set-cookie")
        .unwrap()
        .split(';')
        .next()
        .unwrap();
    let call = Call::new(method, path).json(&body).header("cookie", cookie);
    let call = call.header("sec-fetch-site", "same-origin");
    call.send(service.address).await.problem(403, "forbidden");
}

#[tokio::test]
async fn making_tokens_in_a_session_needs_a_recent_sign_in() {
    let service = Service::start().await;
    let (_, anna) = service.person("anna").await;
    let create = |person: &Person| {
        let call = person.call(Method::POST, "/tokens");
        crate::browser::typed(call, &[("name", "mine"), ("scopes", "job:read")])
    };
    service.clock.advance(TimeDelta::minutes(10));
    let answer = create(&anna).send(service.address).await;
    assert_eq!(answer.status, 403, "{answer:?}");
    let answer = use_password("anna", PASSWORD).send(service.address).await;
    let anna = Person::of(&answer);
    service.clock.advance(TimeDelta::minutes(9));
    let answer = create(&anna).send(service.address).await;
    assert_eq!(answer.status, 200, "{answer:?}");
}

#[tokio::test]
async fn acts_that_give_rights_need_a_recent_sign_in() {
    let service = Service::start().await;
    let robot = service.robot("deploy", &[("main", Role::Operator)]).await;
    service.person("anna").await;
    service.token_of(robot, [Scope::JobRead], None).await;
    service.register("one", &[], 1).await;
    let listed = Call::get("/v0/tokens").bearer(&service.admin);
    let listed = listed.send(service.address).await.expect(200);
    let own = text(&listed["items"][0]["id"]);
    let device = service.owners_device().await;
    service.clock.advance(TimeDelta::minutes(10));
    let members = "/v0/projects/main/members";
    let gives = [
        (Method::POST, "/v0/users".to_owned(), json!({"name": "lee"})),
        (Method::POST, "/v0/users/anna/link".to_owned(), json!({})),
        (
            Method::PATCH,
            "/v0/users/deploy".to_owned(),
            json!({"administrator": true}),
        ),
        (
            Method::PATCH,
            "/v0/users/deploy".to_owned(),
            json!({"active": true}),
        ),
        (
            Method::PUT,
            format!("{members}/deploy"),
            json!({"role": "maintainer"}),
        ),
        (
            Method::PUT,
            format!("{members}/anna"),
            json!({"role": "viewer"}),
        ),
        (
            Method::POST,
            "/v0/tokens".to_owned(),
            json!({"name": "ci", "scopes": ["job:read"], "user": "deploy"}),
        ),
        (
            Method::POST,
            format!("/v0/tokens/{own}/move"),
            json!({"user": "deploy"}),
        ),
        (
            Method::POST,
            "/v0/runner-registrations".to_owned(),
            json!({"projects": ["main"]}),
        ),
        (
            Method::PATCH,
            "/v0/runners/one".to_owned(),
            json!({"projects": ["main"]}),
        ),
    ];
    for (method, path, body) in &gives {
        let call = Call::new(method.clone(), path).json(body).bearer(&device);
        let answer = call.send(service.address).await;
        answer.problem(403, "sign_in_again");
    }
    // What takes rights needs none.
    for (method, path, body) in [
        (
            Method::PUT,
            format!("{members}/deploy"),
            json!({"role": "operator"}),
        ),
        (
            Method::PUT,
            format!("{members}/deploy"),
            json!({"role": "viewer"}),
        ),
        (Method::DELETE, format!("{members}/deploy"), json!(null)),
        (
            Method::PATCH,
            "/v0/users/deploy".to_owned(),
            json!({"administrator": false}),
        ),
    ] {
        let call = Call::new(method, path).bearer(&device);
        let call = if body.is_null() {
            call
        } else {
            call.json(&body)
        };
        let answer = call.send(service.address).await;
        assert!(answer.status < 300, "{answer:?}");
    }
    // A token proves itself with each request.
    for (method, path, body) in &gives {
        let call = Call::new(method.clone(), path).json(body);
        let answer = service.admin(call).await;
        assert!(answer.status < 300, "{path}: {answer:?}");
    }
}

#[tokio::test]
async fn a_stolen_cookie_does_nothing_under_v0_but_manage_sessions() {
    let service = Service::start().await;
    let (_, anna) = service.person("anna").await;
    for (method, path) in [
        (Method::GET, "/v0/jobs"),
        (Method::GET, "/v0/projects"),
        (Method::POST, "/v0/tokens"),
        (Method::POST, "/v0/sign-in-links"),
    ] {
        let call = anna.call(method, path).json(&json!({}));
        call.send(service.address)
            .await
            .problem(401, "unauthorized");
    }
}

#[tokio::test]
async fn signing_out_everywhere_ends_sessions_and_open_streams() {
    let service = Service::start().await;
    let (_, anna) = service.person("anna").await;
    let answer = use_password("anna", PASSWORD).send(service.address).await;
    let other = Person::of(&answer);
    let mut stream = other
        .call(Method::GET, "/v0/events")
        .open(service.address)
        .await;
    assert_eq!(stream.status, 200);
    stream.until("alive").await;
    let out = anna.call(Method::DELETE, "/v0/sessions");
    out.send(service.address).await.expect(204);
    stream.rest().await;
    assert!(!other.is_signed_in(&service).await && !anna.is_signed_in(&service).await);
    let answer = use_password("anna", PASSWORD).send(service.address).await;
    answer.expect(201);
}
