//! `Idempotency-Key` on requests that make a secret: the secret is made once, and a repeat names the object that was made.

use api::{Access, OPENAPI, ROUTES, SessionRoute, UserRoute};
use http::Method;
use model::Scope;
use serde_json::{Value, json};

use crate::client::{Answer, Call};
use crate::service::{Service, text};

async fn keyed(service: &Service, token: &str, path: &str, body: &Value) -> Answer {
    let call = Call::post(path)
        .bearer(token)
        .header("idempotency-key", "k");
    call.json(body).send(service.address).await
}

async fn tokens(service: &Service) -> usize {
    let listed = service.get("/v0/tokens").await.expect(200);
    listed["items"].as_array().unwrap().len()
}

async fn is_accepted(service: &Service, secret: &str) -> bool {
    let call = Call::get("/v0/jobs").bearer(secret);
    call.send(service.address).await.status == 200
}

#[tokio::test]
async fn a_repeat_makes_no_second_token_and_names_the_first() {
    let service = Service::start().await;
    let body = json!({"name": "ci", "scopes": ["job:read"]});
    let ask = || keyed(&service, &service.admin, "/v0/tokens", &body);
    // The same applies to two concurrent requests.
    let (one, other) = tokio::join!(ask(), ask());
    let (made, refused) = if one.status == 201 {
        (one, other)
    } else {
        (other, one)
    };
    let made = made.expect(201);
    let problem = refused.problem(409, "already_done");
    assert_eq!(problem["made"], made["id"]);
    assert!(!refused.text().contains(&text(&made["secret"])));
    assert!(
        text(&problem["hint"]).contains(&text(&made["id"])),
        "{problem}"
    );
    let there = tokens(&service).await;
    ask().await.problem(409, "already_done");
    let changed = json!({"name": "ci2", "scopes": ["job:read"]});
    let mismatch = keyed(&service, &service.admin, "/v0/tokens", &changed).await;
    mismatch.problem(422, "idempotency_mismatch");
    assert_eq!(tokens(&service).await, there);
    // The same key of another caller is a different key.
    let caller = service.personal([Scope::Admin], None).await;
    let own = keyed(&service, &caller, "/v0/tokens", &body).await;
    assert_ne!(own.expect(201)["id"], made["id"]);
}

#[tokio::test]
async fn a_repeated_regeneration_leaves_both_secrets_as_they_are() {
    let service = Service::start().await;
    let body = json!({"name": "ci", "scopes": ["job:read"]});
    let made = keyed(&service, &service.admin, "/v0/tokens", &body).await;
    let made = made.expect(201);
    let body = json!({"overlap_seconds": 60});
    // The route is the same for every name of the token, and differs from the route of the creation.
    let path = format!("/v0/tokens/{}/regenerate", text(&made["id"]));
    let first = keyed(&service, &service.admin, &path, &body).await;
    let first = first.expect(200);
    let again = keyed(&service, &service.admin, "/v0/tokens/ci/regenerate", &body).await;
    assert_eq!(again.problem(409, "already_done")["made"], made["id"]);
    for secret in [&made["secret"], &first["secret"]] {
        assert!(is_accepted(&service, &text(secret)).await);
    }
}

#[tokio::test]
async fn a_repeat_makes_no_second_registration() {
    let service = Service::start().await;
    let ask = || {
        let call = Call::post("/v0/runner-registrations").header("idempotency-key", "k");
        service.admin(call)
    };
    ask().await.expect(201);
    let problem = ask().await.problem(409, "already_done");
    assert!(problem["made"].is_string(), "{problem}");
}

#[tokio::test]
async fn a_repeat_makes_no_second_link() {
    let service = Service::start().await;
    let blob = Call::new(Method::PUT, "/v0/blobs/a").bytes("x");
    service.admin(blob).await.expect(201);
    let body = json!({"path": "a", "use_for": "get", "expires_in": "1h"});
    let ask = || keyed(&service, &service.admin, "/v0/blob-links", &body);
    let made = ask().await.expect(201);
    let problem = ask().await.problem(409, "already_done");
    assert_eq!(problem["made"], made["id"]);
    let listed = service.get("/v0/blob-links").await.expect(200);
    assert_eq!(listed["items"].as_array().unwrap().len(), 1);
}

/// The `POST` routes of users that take no key, with the reason.
const KEYLESS: &[(UserRoute, &str)] = &[
    (
        UserRoute::SyncSource,
        "asks for a poll, and another poll is harmless",
    ),
    (
        UserRoute::ApproveSource,
        "approving a tip again changes nothing",
    ),
    (UserRoute::Validate, "makes nothing"),
    (
        UserRoute::PruneWorkflow,
        "only removes, and a repeat removes nothing more",
    ),
    (
        UserRoute::SuspendWorkflow,
        "suspending again changes nothing",
    ),
    (UserRoute::ResumeWorkflow, "it is resumed once"),
    (UserRoute::SuspendScan, "what is suspended stays as it is"),
    (UserRoute::ResumeScan, "it is resumed once"),
    (UserRoute::CancelJob, "a job is cancelled once"),
    (
        UserRoute::AcknowledgeCondition,
        "the newest note of a condition counts",
    ),
    (UserRoute::SilenceCondition, "the newest silence counts"),
    (UserRoute::PreviewRule, "makes nothing"),
    (UserRoute::TestChannel, "a second test is a second message"),
    (UserRoute::RetryChannel, "a second retry is another attempt"),
    (UserRoute::CopyBlob, "a copy that is made again is the same"),
    (UserRoute::MoveBlob, "a blob is moved once"),
    (UserRoute::MoveToken, "moving a token again changes nothing"),
    (UserRoute::CreateUser, "a name is given once"),
    (UserRoute::CreateCallback, "a name is given once"),
    (
        UserRoute::CreateCallbackToken,
        "one more name does no harm, and expires",
    ),
    (UserRoute::CreatePayloadGroup, "a name is given once"),
    (
        UserRoute::RenderPayloads,
        "names for the lines once more do no harm, and expire",
    ),
    (
        UserRoute::CreateUserLink,
        "a new link takes the place of the former one",
    ),
];

#[tokio::test]
async fn every_post_route_of_users_that_makes_an_object_takes_a_key() {
    let service = Service::start().await;
    let job = service.dispatch("large").await;
    let source = service.get("/v0/sources/main").await.expect(200);
    let tip = &source["tip"]["commit"];
    service
        .post("/v0/tokens", &json!({"name": "ci", "scopes": ["job:read"]}))
        .await
        .expect(201);
    let blob = Call::new(Method::PUT, "/v0/blobs/a").bytes("x");
    service.admin(blob).await.expect(201);
    let condition = service.condition("invalid_file").await;
    service.waiting_channel().await;
    let callback = service.callback("main").await;
    let group = service.payload_group("main").await;
    for route in ROUTES.iter().filter(|route| route.method == Method::POST) {
        let id = match route.access {
            Access::User(id, _) => Some(id),
            Access::Session(SessionRoute::CreateBlobLink) => None,
            _ => continue,
        };
        let path = route
            .path
            .replace("{source}", "main")
            .replace("{token}", "ci");
        let path = path
            .replace("{workflow}", "pipeline")
            .replace("{scan}", "large");
        let path = path
            .replace("{job}", &job)
            .replace("{condition}", &condition)
            .replace("{channel}", "waiting")
            .replace("{callback}", &callback)
            .replace("{group}", &group)
            .replace("{user}", "owner");
        let body = match id {
            None => json!({"path": "a", "use_for": "get", "expires_in": "1h"}),
            Some(UserRoute::CreateToken) => json!({"name": "two", "scopes": ["job:read"]}),
            Some(UserRoute::CopyBlob) => json!({"from": "a", "to": "b"}),
            Some(UserRoute::MoveBlob) => json!({"from": "b", "to": "c"}),
            Some(UserRoute::MoveToken) => json!({"user": "owner"}),
            Some(UserRoute::CreateCallback) => json!({"project": "main", "name": "two"}),
            Some(UserRoute::CreatePayloadGroup) => json!({"project": "main", "name": "two"}),
            Some(UserRoute::CreateUser) => json!({"name": "kim"}),
            Some(UserRoute::SuspendWorkflow | UserRoute::SuspendScan) => json!({"reason": "loud"}),
            Some(UserRoute::ApproveSource) => json!({"commit": tip}),
            Some(UserRoute::PreviewRule) => json!({"channel": "team"}),
            Some(UserRoute::Validate) => json!({"text": "", "file": "a.yaml"}),
            Some(_) => json!({}),
        };
        // Only routes that read the key notice that it is too long.
        let call = Call::post(&path).header("idempotency-key", &"k".repeat(201));
        let answer = service.admin(call.json(&body)).await;
        let is_keyless = KEYLESS.iter().any(|(keyless, _)| Some(*keyless) == id);
        assert_eq!(answer.status < 300, is_keyless, "{path}: {}", answer.text());
        let parameters = OPENAPI["paths"][route.path]["post"]["parameters"]
            .as_array()
            .unwrap();
        let is_named = parameters.iter().any(|it| it["name"] == "Idempotency-Key");
        assert_eq!(is_named, !is_keyless, "{path} in the document");
    }
}

#[tokio::test]
async fn unprintable_keys_are_refused() {
    let service = Service::start().await;
    for (key, status) in [("a b", 201), ("a\tb", 400), ("é", 400)] {
        let call = Call::post("/v0/runner-registrations").header("idempotency-key", key);
        let answer = service.admin(call).await;
        assert_eq!(answer.status, status, "{key:?}");
    }
}
