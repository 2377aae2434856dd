//! A service in this process, with its users, runners and workers.

mod direct;
mod workers;

use std::cell::RefCell;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::pin::Pin;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use api::Front;
use chrono::{TimeDelta, TimeZone, Utc};
use delivery::{Program, Settings};
use http::Method;
use model::limits::CYCLE_PAUSE;
use model::retention::RetentionSettings;
use model::{
    Clock, Entropy, ProjectId, Role, Scope, Scopes, SealingKey, SourceName, Timestamp, TipRef,
    UserId, World,
};
use reconciler::{
    Access, BlobSettings, CallbackSettings, Handle, LOG_LIMIT, Location, Reconciler, SourceConfig,
    Start, Upkeep,
};
use serde_json::{Value, json};
use state::{Closing, Options, State};
use tempfile::TempDir;
use tokio::net::TcpListener;
use tokio::sync::watch;

use crate::client::{Answer, Call};
use crate::repository::push;

pub(crate) use self::workers::{Claimed, Runner, both_steps, offered};

/// Valid workflow files of the only source.
const PIPELINE: &str = r#"
name: Pipeline
description: Builds things.
scans:
  build:
    on:
      dispatch:
        inputs:
          target: { required: true, description: What to build }
          fast: { type: bool, default: "false" }
    env: { TARGET: "${{ inputs.target }}" }
    steps:
      - run: make "$TARGET"
      - run: make check
        if: inputs.fast
    artifacts:
      - { name: out, paths: [out], expires_in: 1w }
      - { name: more, paths: [more] }
  large:
    on: { dispatch: {} }
    runs_on: [large]
    log_limit: 1000
    steps: [ { run: make all } ]
  nightly:
    on: { cron: "0 3 * * *" }
    steps: [ { run: make clean } ]
  announce:
    on: { expr: "scans.build.has_diff('out') && size(scans.build) > 5" }
    steps: [ { run: make announcement } ]
"#;
pub(crate) const PLAIN: &str =
    "scans: { only: { on: { dispatch: {} }, steps: [ { run: echo } ] } }\n";

/// The end of the listener's certificate.
pub(crate) const CERTIFICATE_EXPIRES: i64 = 4_000_000_000;

/// The size that the blobs of a project may have together.
pub(crate) const BLOB_QUOTA: u64 = 4 * 1024 * 1024;

/// The clock of a test. It stands still unless the test moves it.
pub(crate) struct TestClock(Mutex<Timestamp>);

impl TestClock {
    pub(crate) fn advance(&self, by: TimeDelta) {
        *self.0.lock().unwrap() += by;
    }
}

impl Clock for TestClock {
    fn now(&self) -> Timestamp {
        *self.0.lock().unwrap()
    }

    fn steady(&self) -> Timestamp {
        self.now()
    }
}

/// Repeatable randomness: SplitMix64.
pub(crate) struct Seeded(pub(crate) u64);

impl Entropy for Seeded {
    fn fill(&mut self, bytes: &mut [u8]) {
        for byte in bytes {
            self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
            let mut mixed = self.0;
            mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
            mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
            *byte = mixed.to_le_bytes()[0];
        }
    }
}

/// The daemon has the program `page` for channels.
pub(crate) fn front() -> Front {
    let page = Program {
        program: "/bin/false".into(),
        args: Vec::new(),
        timeout: Duration::from_secs(60),
    };
    let delivery = Settings {
        commands: [("page".to_owned(), page)].into(),
        ..Settings::default()
    };
    Front {
        delivery: Arc::new(delivery),
        ..Front::default()
    }
}

/// A running service.
pub(crate) struct Service {
    pub(crate) address: SocketAddr,
    pub(crate) handle: Handle,
    pub(crate) clock: Arc<TestClock>,
    /// A token with all scopes.
    pub(crate) admin: String,
    folder: PathBuf,
    /// Dropping it ends its tasks.
    _reconciler: Reconciler,
}

/// The folder of a service. It is removed after the state is closed and no task writes to it.
struct Remains {
    closing: Option<Closing>,
    _folder: TempDir,
}

impl Drop for Remains {
    fn drop(&mut self) {
        if let Some(closing) = self.closing.take() {
            drop(closing.join());
        }
    }
}

thread_local! {
    /// Tasks that hold a state end with the runtime of their test. The runtime is dropped after the variables of the test, but
    /// before those of its thread.
    static REMAINS: RefCell<Vec<Remains>> = const { RefCell::new(Vec::new()) };
}

impl Service {
    /// A service with one source, `main`.
    pub(crate) async fn start() -> Self {
        Self::follow(&["main"]).await
    }

    /// A service with these sources. Each has the same files.
    pub(crate) async fn follow(names: &[&str]) -> Self {
        Self::open(names, true, front()).await
    }

    /// A service with these settings.
    pub(crate) async fn fronted(front: Front) -> Self {
        Self::open(&["main"], true, front).await
    }

    /// A service without a key for secrets.
    pub(crate) async fn without_key() -> Self {
        Self::open(&["main"], false, front()).await
    }

    async fn open(names: &[&str], keyed: bool, front: Front) -> Self {
        let kept = TempDir::new().unwrap();
        let folder = kept.path().to_owned();
        let noon = Utc.with_ymd_and_hms(2026, 11, 20, 12, 0, 0).unwrap();
        let clock = Arc::new(TestClock(Mutex::new(noon)));
        let root = folder.join("state");
        let mirrors = state::mirrors_folder(&root);
        let options = Options {
            root,
            clock: clock.clone(),
            entropy: Box::new(Seeded(1)),
            cycle_pause: CYCLE_PAUSE,
            allow_network: false,
        };
        let (state, closing) = State::open(options).await.unwrap();
        REMAINS.with_borrow_mut(|remains| {
            remains.push(Remains {
                closing: Some(closing),
                _folder: kept,
            });
        });
        let mut sources = Vec::new();
        for name in names {
            let path = folder.join(name);
            push(&path, &[&files()]);
            sources.push(SourceConfig {
                name: name.parse().unwrap(),
                location: Location::Local(path),
                access: Access::default(),
                reference: None,
                folder: "workflows".to_owned(),
                interval: Duration::from_secs(3_600),
            });
        }
        let expires = Timestamp::from_timestamp(CERTIFICATE_EXPIRES, 0);
        let reconciler = Reconciler::start(Start {
            state,
            mirrors,
            sources,
            clock: clock.clone(),
            entropy: Box::new(Seeded(2)),
            retention: RetentionSettings::default(),
            log_limit: LOG_LIMIT,
            blobs: BlobSettings {
                quota: Some(BLOB_QUOTA),
                ..BlobSettings::default()
            },
            upkeep: Upkeep {
                certificate: Some(watch::channel(expires).1),
                callback_certificate: None,
                backup_within: None,
            },
            callbacks: keyed.then(|| CallbackSettings {
                zones: vec!["oast.example".to_owned()],
                authority: None,
            }),
            secret_keys: keyed.then(|| SealingKey::random(&mut Seeded(3)).into()),
        })
        .await
        .unwrap();
        let handle = reconciler.handle();
        for name in names {
            let name = name.parse().unwrap();
            handle.sources().sync(&name, true).await.unwrap();
        }
        let listener = TcpListener::bind(("127.0.0.1", 0)).await.unwrap();
        let address = listener.local_addr().unwrap();
        let front = Front {
            callback_check: keyed.then(|| Arc::new(GoodZones) as _),
            ..front
        };
        tokio::spawn(api::serve(
            listener,
            handle.clone(),
            front,
            Box::pin(std::future::pending()),
        ));
        let mut service = Self {
            address,
            handle,
            clock,
            admin: String::new(),
            folder,
            _reconciler: reconciler,
        };
        service.admin = service.personal([Scope::Admin], None).await;
        service
    }

    pub(crate) fn root(&self) -> PathBuf {
        self.folder.join("state")
    }

    /// The folder of this test. It differs between runs.
    pub(crate) fn folder(&self) -> &Path {
        &self.folder
    }

    /// Commits these files to `main`, and makes the daemon poll.
    pub(crate) async fn push(&self, files: &[(&str, &str)]) {
        self.push_all(&[files]).await;
    }

    /// Commits each of these to `main` and pushes them together. Approves any retirement.
    pub(crate) async fn push_all(&self, commits: &[&[(&str, &str)]]) {
        self.push_unapproved(commits).await;
        let name: SourceName = "main".parse().unwrap();
        let tip = self.handle.state().read(|world| {
            let source = world.source(&name)?;
            source.tip.clone().filter(|_| source.removal.is_some())
        });
        if let Some(TipRef { commit, .. }) = tip {
            let approve = model::decide::ApproveRemoval {
                name: name.clone(),
                commit,
            };
            self.handle.state().submit(approve).await.unwrap();
            self.handle.sources().sync(&name, true).await.unwrap();
        }
    }

    /// The same without an approval.
    pub(crate) async fn push_unapproved(&self, commits: &[&[(&str, &str)]]) {
        push(&self.folder.join("main"), commits);
        let name = "main".parse().unwrap();
        self.handle.sources().sync(&name, true).await.unwrap();
    }

    /// Makes a service user with these roles.
    pub(crate) async fn robot(&self, name: &str, roles: &[(&str, Role)]) -> UserId {
        let of = |name: &str| ProjectId::of_source(&name.parse().unwrap());
        let create = model::decide::CreateUser {
            name: name.parse().unwrap(),
            is_service: true,
            is_administrator: roles.is_empty(),
            roles: roles.iter().map(|(name, role)| (of(name), *role)).collect(),
            by: model::decide::Giver {
                user: UserId::OWNER,
                rights: model::Rights::admin(),
                token: None,
            },
        };
        self.handle.state().submit(create).await.unwrap().user.id
    }

    /// Makes a personal access token.
    pub(crate) async fn personal(
        &self,
        scopes: impl IntoIterator<Item = Scope>,
        life: Option<TimeDelta>,
    ) -> String {
        self.token_of(UserId::OWNER, scopes, life).await
    }

    /// Makes an access token of a user.
    pub(crate) async fn token_of(
        &self,
        owner: UserId,
        scopes: impl IntoIterator<Item = Scope>,
        life: Option<TimeDelta>,
    ) -> String {
        let create = model::decide::CreateToken {
            name: "tester".to_owned(),
            scopes: Scopes::from_iter(scopes),
            life,
            projects: model::Projects::All,
            owner,
            by: owner,
            granted_by: model::Rights::admin(),
            ends_by: None,
        };
        let created = self.handle.state().submit(create).await.unwrap();
        created.secret.reveal().to_owned()
    }

    /// A token limited to these projects.
    pub(crate) async fn limited(
        &self,
        scopes: impl IntoIterator<Item = Scope>,
        projects: &[&str],
    ) -> String {
        let names = projects.iter().map(|name| name.parse().unwrap());
        let create = model::decide::CreateToken {
            name: "limited".to_owned(),
            scopes: Scopes::from_iter(scopes),
            projects: model::Projects::Only(
                names.map(|name| ProjectId::of_source(&name)).collect(),
            ),
            life: None,
            owner: UserId::OWNER,
            by: UserId::OWNER,
            granted_by: model::Rights::admin(),
            ends_by: None,
        };
        let created = self.handle.state().submit(create).await.unwrap();
        created.secret.reveal().to_owned()
    }

    /// Waits until the use of every token with this name is recorded.
    pub(crate) async fn use_is_noted(&self, name: &str) {
        let mut changed = self.handle.state().changed();
        let is_noted = |world: &World| {
            let mut tokens = world.tokens().filter(|token| token.name == name);
            tokens.all(|token| token.last_used.is_some())
        };
        while !self.handle.state().read(is_noted) {
            changed.changed().await.unwrap();
        }
    }

    /// Waits until the use of a token's sessions is recorded, which happens concurrently with their request.
    pub(crate) async fn sessions_are_seen(&self, token: &str) {
        let mut changed = self.handle.state().changed();
        let id: model::TokenId = token.parse().unwrap();
        let is_seen = |world: &World| {
            let now = self.handle.time(world);
            let mut sessions = world.sessions();
            let is_its = |it: &model::BrowserSession| it.with.is_some_and(|with| with.token == id);
            sessions.all(|session| !is_its(session) || session.seen_at == now)
        };
        while !self.handle.state().read(is_seen) {
            changed.changed().await.unwrap();
        }
    }

    /// Sends a call as the admin.
    pub(crate) async fn admin(&self, call: Call) -> Answer {
        call.bearer(&self.admin).send(self.address).await
    }

    pub(crate) async fn get(&self, path: &str) -> Answer {
        self.admin(Call::get(path)).await
    }

    /// Sets a var or secret of `main`.
    pub(crate) async fn set(&self, path: &str, value: &str) -> Answer {
        let call = Call::new(Method::PUT, format!("/v0/projects/main/{path}"));
        self.admin(call.json(&json!({"value": value}))).await
    }

    pub(crate) async fn post(&self, path: &str, body: &Value) -> Answer {
        self.admin(Call::post(path).json(body)).await
    }

    /// Dispatches a scan of `pipeline` and returns the job's id.
    pub(crate) async fn dispatch(&self, scan: &str) -> String {
        let inputs = match scan {
            "build" => json!({"target": "all"}),
            _ => json!({}),
        };
        let path = format!("/v0/workflows/main%2Fpipeline/scans/{scan}/dispatch");
        let answer = self.post(&path, &json!({"inputs": inputs})).await;
        text(&answer.expect(202)["job"]["id"])
    }

    /// The id of the open condition with this code.
    pub(crate) async fn condition(&self, code: &str) -> String {
        let listed = self.get("/v0/conditions").await.expect(200);
        let mut open = listed["items"].as_array().unwrap().iter();
        let found = open.find(|open| open["code"] == code);
        text(&found.unwrap_or_else(|| panic!("{code} is not open: {listed}"))["id"])
    }

    pub(crate) async fn registration(&self) -> String {
        let answer = self.admin(Call::post("/v0/runner-registrations")).await;
        text(&answer.expect(201)["token"])
    }

    pub(crate) async fn register(&self, name: &str, labels: &[&str], capacity: u32) -> Runner {
        let body = json!({
            "token": self.registration().await,
            "name": name,
            "labels": labels,
            "capacity": capacity,
            "version": "0.1.0",
        });
        let call = Call::post("/v0/runners/register").json(&body);
        let answer = call.send(self.address).await.expect(201);
        Runner::registered(&answer)
    }

    /// Dispatches `build`, and lets a new runner claim it.
    pub(crate) async fn claimed(&self, runner: &str) -> (Runner, Claimed) {
        let job = self.dispatch("build").await;
        let runner = self.register(runner, &[], 1).await;
        let claimed = self.claim(&runner, &[]).await;
        assert_eq!(claimed.id, job);
        (runner, claimed)
    }

    /// Polls once and claims the one offered job.
    pub(crate) async fn claim(&self, runner: &Runner, holding: &[&str]) -> Claimed {
        let capacity = holding.len() + 1;
        let messages = self.poll(runner, capacity, holding).await;
        let claimed = match messages.as_slice() {
            [message] => offered(message),
            _ => panic!("{messages:?}"),
        };
        let path = format!("/v0/jobs/{}/resolve", claimed.id);
        let answer = claimed.call(Method::POST, &path).send(self.address).await;
        answer.expect(200);
        claimed
    }

    pub(crate) async fn poll(
        &self,
        runner: &Runner,
        capacity: usize,
        holding: &[&str],
    ) -> Vec<Value> {
        let answer = runner.poll(capacity, holding).send(self.address).await;
        answer.expect(200).as_array().unwrap().clone()
    }

    /// Completes the job with both steps finished.
    pub(crate) async fn complete(&self, worker: &Claimed, log_records: u64) -> Answer {
        let body = json!({"steps": both_steps(), "log_records": log_records});
        let path = worker.path("complete");
        worker
            .call(Method::POST, &path)
            .json(&body)
            .send(self.address)
            .await
    }
}

pub(crate) fn text(value: &Value) -> String {
    match value.as_str() {
        Some(text) => text.to_owned(),
        None => panic!("{value} is no text"),
    }
}

fn files() -> Vec<(&'static str, &'static str)> {
    vec![
        ("workflows/pipeline.yaml", PIPELINE),
        ("workflows/deep/plain.yaml", PLAIN),
        ("workflows/broken.yaml", "scans: {}\n"),
    ]
}

/// A check that finds nothing wrong.
#[derive(Debug)]
struct GoodZones;

impl api::CallbackChecker for GoodZones {
    fn check(&self) -> Pin<Box<dyn Future<Output = wire::CallbackCheck> + Send + '_>> {
        let good = wire::CallbackFinding {
            zone: Some("oast.example".to_owned()),
            outcome: wire::CallbackOutcome::Good,
            text: "example delegates the zone to ns1.oast.example".to_owned(),
        };
        Box::pin(std::future::ready(wire::CallbackCheck {
            findings: vec![good],
        }))
    }
}
