//! Produces every error code and compares its problem with a file.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

use http::Method;
use model::Scope;
use serde_json::json;
use wire::ErrorCode;

use crate::answers::check;
use crate::client::{Answer, Call};
use crate::service::{BLOB_QUOTA, PLAIN, Service};

/// Codes that no request of this test can produce, with the reason.
const UNREACHABLE: &[(ErrorCode, &str)] = &[
    (
        ErrorCode::RequestTimeout,
        "takes 30 s of real time; the body's own tests hold it with a clock that is moved",
    ),
    (
        ErrorCode::OfferLapsed,
        "needs two claims between a read and its decision; the model's tests check the decision",
    ),
    (
        ErrorCode::TooManyTokens,
        "needs ten thousand tokens; the model's tests check the limit",
    ),
    (
        ErrorCode::SignInAgain,
        "needs the session of a person; see `passwords`",
    ),
    (
        ErrorCode::LoginPending,
        "takes 30 s of real time; see the sign-in of devices",
    ),
    (
        ErrorCode::TooManyJobs,
        "needs ten thousand jobs; the model's tests check the limit",
    ),
    (
        ErrorCode::RateLimited,
        "needs calls from another machine; see `callers`",
    ),
    (
        ErrorCode::FolderFull,
        "needs ten thousand blobs; the state's tests check the limit",
    ),
    (
        ErrorCode::DiskFull,
        "needs a full disk; the state's tests check it",
    ),
    (
        ErrorCode::Unavailable,
        "needs a state that is closing or a push between a read and its decision",
    ),
    (
        ErrorCode::Internal,
        "a defect or a damaged file; see `artifacts`",
    ),
    (
        ErrorCode::Defect,
        "needs a defect; the state's tests contain a defect",
    ),
    (
        ErrorCode::Unknown,
        "never sent: what a client makes of a newer daemon's code",
    ),
];

/// Every code by its name on the wire. A new code must be added to this match.
fn all() -> BTreeMap<String, ErrorCode> {
    let successor = |code| match code {
        ErrorCode::Unauthorized => Some(ErrorCode::Forbidden),
        ErrorCode::Forbidden => Some(ErrorCode::SignInAgain),
        ErrorCode::SignInAgain => Some(ErrorCode::NoSuchRoute),
        ErrorCode::NoSuchRoute => Some(ErrorCode::NotFound),
        ErrorCode::NotFound => Some(ErrorCode::ProjectNotFound),
        ErrorCode::ProjectNotFound => Some(ErrorCode::WorkflowNotFound),
        ErrorCode::WorkflowNotFound => Some(ErrorCode::SourceNotFound),
        ErrorCode::SourceNotFound => Some(ErrorCode::MethodNotAllowed),
        ErrorCode::MethodNotAllowed => Some(ErrorCode::InvalidRequest),
        ErrorCode::InvalidRequest => Some(ErrorCode::RequestTimeout),
        ErrorCode::RequestTimeout => Some(ErrorCode::BodyTooLarge),
        ErrorCode::BodyTooLarge => Some(ErrorCode::UnsupportedMediaType),
        ErrorCode::UnsupportedMediaType => Some(ErrorCode::InvalidInputs),
        ErrorCode::InvalidInputs => Some(ErrorCode::IdempotencyMismatch),
        ErrorCode::IdempotencyMismatch => Some(ErrorCode::AlreadyDone),
        ErrorCode::AlreadyDone => Some(ErrorCode::AmbiguousName),
        ErrorCode::AmbiguousName => Some(ErrorCode::Retired),
        ErrorCode::Retired => Some(ErrorCode::Suspended),
        ErrorCode::Suspended => Some(ErrorCode::WorkflowUnreadable),
        ErrorCode::WorkflowUnreadable => Some(ErrorCode::IllegalTransition),
        ErrorCode::IllegalTransition => Some(ErrorCode::JobOver),
        ErrorCode::JobOver => Some(ErrorCode::OfferLapsed),
        ErrorCode::OfferLapsed => Some(ErrorCode::LogMismatch),
        ErrorCode::LogMismatch => Some(ErrorCode::ArtifactMismatch),
        ErrorCode::ArtifactMismatch => Some(ErrorCode::ArtifactUnreadable),
        ErrorCode::ArtifactUnreadable => Some(ErrorCode::CheckoutFailed),
        ErrorCode::CheckoutFailed => Some(ErrorCode::NameTaken),
        ErrorCode::NameTaken => Some(ErrorCode::RunnerInUse),
        ErrorCode::RunnerInUse => Some(ErrorCode::PollReplaced),
        ErrorCode::PollReplaced => Some(ErrorCode::TooManyTokens),
        ErrorCode::TooManyTokens => Some(ErrorCode::LastAdmin),
        ErrorCode::LastAdmin => Some(ErrorCode::CallbacksOff),
        ErrorCode::CallbacksOff => Some(ErrorCode::LoginPending),
        ErrorCode::LoginPending => Some(ErrorCode::TooManyJobs),
        ErrorCode::TooManyJobs => Some(ErrorCode::RateLimited),
        ErrorCode::RateLimited => Some(ErrorCode::NoSecretKey),
        ErrorCode::NoSecretKey => Some(ErrorCode::PreconditionFailed),
        ErrorCode::PreconditionFailed => Some(ErrorCode::PathConflict),
        ErrorCode::PathConflict => Some(ErrorCode::FolderFull),
        ErrorCode::FolderFull => Some(ErrorCode::NotTheTip),
        ErrorCode::NotTheTip => Some(ErrorCode::QuotaExceeded),
        ErrorCode::QuotaExceeded => Some(ErrorCode::DigestMismatch),
        ErrorCode::DigestMismatch => Some(ErrorCode::Gone),
        ErrorCode::Gone => Some(ErrorCode::RangeNotSatisfiable),
        ErrorCode::RangeNotSatisfiable => Some(ErrorCode::DiskFull),
        ErrorCode::DiskFull => Some(ErrorCode::Unavailable),
        ErrorCode::Unavailable => Some(ErrorCode::Internal),
        ErrorCode::Internal => Some(ErrorCode::Defect),
        ErrorCode::Defect => Some(ErrorCode::Unknown),
        ErrorCode::Unknown => None,
    };
    std::iter::successors(Some(ErrorCode::Unauthorized), |code| successor(*code))
        .map(|code| (name(code), code))
        .collect()
}

fn name(code: ErrorCode) -> String {
    serde_json::to_value(code)
        .unwrap()
        .as_str()
        .unwrap()
        .to_owned()
}

/// The problems seen so far.
struct Seen<'a> {
    service: &'a Service,
    missing: BTreeMap<String, ErrorCode>,
}

impl Seen<'_> {
    /// Compares the problem with the file of its code.
    fn take(&mut self, status: u16, code: ErrorCode, answer: &Answer) {
        let name = name(code);
        answer.problem(status, &name);
        check(self.service, &format!("problems/{name}"), answer);
        self.missing.remove(&name);
    }
}

#[tokio::test]
async fn the_problems_of_all_error_codes_are_unchanged() {
    let service = Service::follow(&["main", "other"]).await;
    let service = &service;
    let address = service.address;
    let mut seen = Seen {
        service,
        missing: all(),
    };

    let answer = Call::get("/v0/jobs").send(address).await;
    seen.take(401, ErrorCode::Unauthorized, &answer);
    let weak = service.personal([Scope::WorkflowRead], None).await;
    let answer = Call::get("/v0/jobs").bearer(&weak).send(address).await;
    seen.take(403, ErrorCode::Forbidden, &answer);
    let answer = service.get("/v0/nothing").await;
    seen.take(404, ErrorCode::NoSuchRoute, &answer);
    let answer = service
        .get("/v0/jobs/01990000-0000-7000-8000-000000000000")
        .await;
    seen.take(404, ErrorCode::NotFound, &answer);
    let answer = service.get("/v0/projects/nothing/vars/URL").await;
    seen.take(404, ErrorCode::ProjectNotFound, &answer);
    let answer = service.get("/v0/workflows/nothing").await;
    seen.take(404, ErrorCode::WorkflowNotFound, &answer);
    let answer = service.get("/v0/sources/nothing").await;
    seen.take(404, ErrorCode::SourceNotFound, &answer);
    let answer = service.admin(Call::new(Method::PUT, "/v0/jobs")).await;
    seen.take(405, ErrorCode::MethodNotAllowed, &answer);
    let answer = service.get("/v0/jobs?limit=1000").await;
    seen.take(400, ErrorCode::InvalidRequest, &answer);

    let dispatch = "/v0/workflows/main%2Fpipeline/scans/build/dispatch";
    let long = "x".repeat(65 * 1024);
    let answer = service.post("/v0/tokens", &json!({"name": long})).await;
    seen.take(413, ErrorCode::BodyTooLarge, &answer);
    let call = Call::post(dispatch).header("content-type", "text/yaml");
    let answer = service.admin(call.bytes("inputs: {}")).await;
    seen.take(415, ErrorCode::UnsupportedMediaType, &answer);
    let inputs = json!({"inputs": {"fast": 3, "unknown": "x"}});
    let answer = service.post(dispatch, &inputs).await;
    seen.take(422, ErrorCode::InvalidInputs, &answer);
    let keyed = |target: &str| {
        let call = Call::post(dispatch).header("idempotency-key", "k");
        service.admin(call.json(&json!({"inputs": {"target": target}})))
    };
    keyed("a").await.expect(202);
    let answer = keyed("b").await;
    seen.take(422, ErrorCode::IdempotencyMismatch, &answer);
    let registration = || Call::post("/v0/runner-registrations").header("idempotency-key", "k");
    service.admin(registration()).await.expect(201);
    let answer = service.admin(registration()).await;
    seen.take(409, ErrorCode::AlreadyDone, &answer);
    let answer = service.get("/v0/workflows/pipeline").await;
    seen.take(409, ErrorCode::AmbiguousName, &answer);

    let blob = |path: &str| {
        let call = Call::new(Method::PUT, format!("/v0/blobs/{path}?project=main"));
        call.bytes("a blob")
    };
    service.admin(blob("a")).await.expect(201);
    let answer = service.admin(blob("a/b")).await;
    seen.take(409, ErrorCode::PathConflict, &answer);
    let digest = format!("sha256:{}", "0".repeat(64));
    let answer = service.admin(blob("b").header("x-content-digest", &digest));
    seen.take(400, ErrorCode::DigestMismatch, &answer.await);
    let large = vec![b'x'; usize::try_from(BLOB_QUOTA).unwrap()];
    let answer = service.admin(blob("b").bytes(large)).await;
    seen.take(403, ErrorCode::QuotaExceeded, &answer);

    let runner = service.register("one", &[], 1).await;
    let body = json!({
        "token": service.registration().await, "name": "one", "capacity": 1, "version": "0.1.0",
    });
    let answer = Call::post("/v0/runners/register").json(&body);
    let answer = answer.send(address).await;
    seen.take(409, ErrorCode::NameTaken, &answer);

    service.set("vars/URL", "1").await.expect(200);
    let call = Call::new(Method::DELETE, "/v0/projects/main/vars/URL");
    let answer = service.admin(call.header("if-match", "\"7\"")).await;
    seen.take(412, ErrorCode::PreconditionFailed, &answer);

    let body = json!({"commit": "0123456789abcdef0123456789abcdef01234567"});
    let answer = service.post("/v0/sources/main/approve", &body).await;
    seen.take(409, ErrorCode::NotTheTip, &answer);

    let keyless = Service::without_key().await;
    let answer = keyless.set("secrets/KEY", "hunter2").await;
    seen.take(409, ErrorCode::NoSecretKey, &answer);
    let body = json!({"project": "main", "name": "shop"});
    let answer = keyless.post("/v0/callbacks", &body).await;
    seen.take(409, ErrorCode::CallbacksOff, &answer);
    let first = Call::new(Method::DELETE, "/v0/tokens/initial%20admin");
    keyless.admin(first).await.expect(204);
    let last = Call::new(Method::DELETE, "/v0/tokens/tester");
    seen.take(409, ErrorCode::LastAdmin, &keyless.admin(last).await);

    let worker = service.claim(&runner, &[]).await;
    let copy = runner.copied();
    let answer = copy.says("hello").send(address).await;
    seen.take(409, ErrorCode::RunnerInUse, &answer);
    let answer = copy.poll(1, &[]).send(address).await;
    seen.take(409, ErrorCode::PollReplaced, &answer);
    let answer = worker.append(7, &["late"]).send(address).await;
    seen.take(409, ErrorCode::LogMismatch, &answer);
    worker
        .upload("out", b"a zip")
        .send(address)
        .await
        .expect(200);
    let answer = worker.upload("out", b"another").send(address).await;
    seen.take(409, ErrorCode::ArtifactMismatch, &answer);
    let artifact = worker.path("artifacts/out");
    let call = Call::get(&artifact).header("range", "bytes=5-");
    let answer = service.admin(call).await;
    assert_eq!(answer.header("content-range"), Some("bytes */5"));
    seen.take(416, ErrorCode::RangeNotSatisfiable, &answer);
    let answer = service.get(&worker.path("artifacts/out/entries")).await;
    seen.take(409, ErrorCode::ArtifactUnreadable, &answer);
    let source = worker.call(Method::GET, &worker.path("source"));
    seen.take(409, ErrorCode::CheckoutFailed, &source.send(address).await);
    service.complete(&worker, 0).await.expect(200);
    let answer = worker.append(0, &["late"]).send(address).await;
    seen.take(409, ErrorCode::JobOver, &answer);
    let answer = service.admin(Call::post(worker.path("cancel"))).await;
    seen.take(409, ErrorCode::IllegalTransition, &answer);
    service.handle.state().settled().await.unwrap();
    remove_file_named("out.zip", &service.root().join("jobs"));
    let answer = service.get(&artifact).await;
    seen.take(410, ErrorCode::Gone, &answer);

    let build = "/v0/workflows/main%2Fpipeline/scans/build";
    let body = json!({"reason": "the machine is serviced"});
    service
        .post(&format!("{build}/suspend"), &body)
        .await
        .expect(200);
    let answer = service
        .post(dispatch, &json!({"inputs": {"target": "a"}}))
        .await;
    seen.take(409, ErrorCode::Suspended, &answer);
    let resume = Call::post(format!("{build}/resume"));
    service.admin(resume).await.expect(200);
    service.push(&[("workflows/deep/plain.yaml", PLAIN)]).await;
    let answer = service
        .post(dispatch, &json!({"inputs": {"target": "a"}}))
        .await;
    seen.take(409, ErrorCode::Retired, &answer);
    service.lose_revision("other/pipeline").await;
    let answer = service
        .get("/v0/workflows/other%2Fpipeline/scans/build/why")
        .await;
    seen.take(409, ErrorCode::WorkflowUnreadable, &answer);

    let unreachable: Vec<String> = UNREACHABLE.iter().map(|(code, _)| name(*code)).collect();
    let (known, missing): (Vec<&String>, Vec<&String>) = seen
        .missing
        .keys()
        .partition(|name| unreachable.contains(name));
    assert!(missing.is_empty(), "nothing produces {missing:?}");
    assert_eq!(
        known.len(),
        unreachable.len(),
        "more is reachable: only {known:?} was not seen"
    );
}

/// Removes every file with this name below the folder.
fn remove_file_named(name: &str, folder: &Path) {
    for entry in fs::read_dir(folder).unwrap() {
        let entry = entry.unwrap();
        let path = entry.path();
        if entry.file_type().unwrap().is_dir() {
            remove_file_named(name, &path);
        } else if path.ends_with(name) {
            fs::remove_file(path).unwrap();
        }
    }
}

#[tokio::test]
async fn an_unknown_thing_is_reported_before_a_wrong_value_of_the_query() {
    let service = Service::start().await;
    let job = "/v0/jobs/01939c5e-0000-7000-8000-000000000000";
    for path in [
        "/v0/workflows/none/scans/build/why?at=x".to_owned(),
        "/v0/workflows/main%2Fpipeline/scans/none/why?at=x".to_owned(),
        "/v0/workflows/main%2Fpipeline/scans/none/history?limit=x".to_owned(),
        "/v0/workflows/main%2Fpipeline/scans/none/ledger?limit=x".to_owned(),
        "/v0/workflows/none/revisions?limit=x".to_owned(),
        "/v0/sources/none/tips?limit=x".to_owned(),
        "/v0/projects/none/vars?limit=x".to_owned(),
        "/v0/projects/none/secrets?limit=x".to_owned(),
        format!("{job}/logs?from=x"),
        format!("{job}/logs/search?q="),
        format!("{job}/artifacts?limit=x"),
        format!("{job}/artifacts/out/entries?limit=x"),
        format!("{job}/artifacts/out/diff?limit=x"),
    ] {
        let code = match path.split_once("/none/") {
            Some(("/v0/workflows", _)) => "workflow_not_found",
            Some(("/v0/projects", _)) => "project_not_found",
            Some(("/v0/sources", _)) => "source_not_found",
            _ => "not_found",
        };
        service.get(&path).await.problem(404, code);
    }
    let body = json!({});
    let sync = service.post("/v0/sources/none/sync?wait=x", &body);
    sync.await.problem(404, "source_not_found");
}
