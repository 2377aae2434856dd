use std::collections::BTreeMap;
use std::fs;

use chrono::TimeDelta;
use model::{
    Actor, ProjectId, Reason, Source, SourceCondition, SourceConditionKind, Status, WorkflowId,
    WorkflowStatus, World,
};
use tempfile::TempDir;
use workflow::Code;
use workflow::notify::Rule;

use super::*;
use crate::git::CommitId;
use crate::git::testing::{Entry, FILE, Fixture};
use crate::testing::{TestDaemon, at, in_time, source_name};

mod interrupted;
mod outdated;
mod removal;
mod stopped;

/// A repository, and a state folder that can be opened repeatedly.
struct Scene {
    fixture: Fixture,
    folder: TempDir,
}

impl Scene {
    fn new() -> Self {
        Self {
            fixture: Fixture::bare(),
            folder: TempDir::new().unwrap(),
        }
    }

    fn config(&self) -> SourceConfig {
        SourceConfig {
            name: source_name(),
            location: self.fixture.location(),
            access: Access::default(),
            reference: None,
            folder: "workflows".to_owned(),
            interval: Duration::from_secs(3600),
        }
    }

    /// Commits exactly these files.
    fn push(&self, files: &[(&str, &str)]) -> CommitId {
        let entries: Vec<Entry<'_>> = files
            .iter()
            .map(|(path, text)| (*path, FILE, text.as_bytes()))
            .collect();
        self.fixture.push(&entries)
    }

    async fn open(&self, seconds: i64) -> TestDaemon {
        TestDaemon::open(&self.folder, seconds, vec![self.config()]).await
    }

    /// Opens the daemon and waits for a poll.
    async fn open_and_poll(&self, seconds: i64) -> TestDaemon {
        let daemon = self.open(seconds).await;
        sync(&daemon).await;
        daemon
    }
}

async fn sync(daemon: &TestDaemon) {
    let name = source_name();
    let synced = in_time("a poll", daemon.handle.sources().sync(&name, true));
    synced.await.unwrap();
}

/// A valid workflow whose text contains this word.
fn text(word: &str) -> String {
    format!("scans:\n  probe:\n    on: {{dispatch: {{}}}}\n    steps: [{{run: \"{word}\"}}]\n")
}

/// The state, revision number and file of each workflow.
fn runs(daemon: &TestDaemon) -> BTreeMap<String, (&'static str, u64, String)> {
    daemon.handle.state().read(|world| {
        world
            .workflows()
            .map(|workflow| {
                let record = &workflow.record;
                let status = match record.status {
                    WorkflowStatus::Active => "active",
                    WorkflowStatus::Retired { .. } => "retired",
                };
                let what = (status, record.revision.number, record.file.clone());
                (record.name.clone(), what)
            })
            .collect()
    })
}

fn run(status: &'static str, number: u64, file: &str) -> (&'static str, u64, String) {
    (status, number, file.to_owned())
}

fn source(daemon: &TestDaemon) -> Arc<Source> {
    let state = daemon.handle.state();
    state.read(|world| world.source(&source_name()).cloned().unwrap())
}

fn condition(daemon: &TestDaemon, kind: SourceConditionKind) -> SourceCondition {
    let source = source(daemon);
    let mut conditions = source.conditions.iter();
    conditions
        .find(|condition| condition.kind == kind)
        .unwrap()
        .clone()
}

#[tokio::test]
async fn a_push_activates_workflows_and_only_changed_files_make_revisions() {
    let scene = Scene::new();
    let first = scene.push(&[
        ("workflows/a.yaml", &text("1")),
        ("workflows/deep/b.yml", &text("1")),
        ("README.md", "no workflow"),
    ]);
    let daemon = scene.open_and_poll(0).await;
    assert_eq!(runs(&daemon)["a"], run("active", 1, "workflows/a.yaml"));
    assert_eq!(
        runs(&daemon)["deep/b"],
        run("active", 1, "workflows/deep/b.yml")
    );
    assert_eq!(
        source(&daemon).tip.clone().unwrap().commit,
        first.to_string()
    );
    for (kind, reason) in [
        (SourceConditionKind::Fetched, Reason::Fetched),
        (SourceConditionKind::Valid, Reason::FilesValid),
        (SourceConditionKind::Active, Reason::TipActive),
    ] {
        let condition = condition(&daemon, kind);
        assert_eq!((condition.status, condition.reason), (Status::True, reason));
    }

    // No request is needed for this poll.
    scene.push(&[
        ("workflows/a.yaml", &text("2")),
        ("workflows/deep/b.yml", &text("1")),
    ]);
    daemon
        .until("the second tip", |world| {
            let source = world.source(&source_name());
            source
                .and_then(|source| source.tip.as_ref())
                .map(|tip| tip.number)
                == Some(2)
        })
        .await;
    assert_eq!(runs(&daemon)["a"].1, 2);
    assert_eq!(runs(&daemon)["deep/b"].1, 1);
    daemon.close().await;
}

#[tokio::test]
async fn the_rules_of_the_file_of_a_repository_follow_its_tip() {
    let scene = Scene::new();
    let a = text("1");
    let push =
        |settings: &str| scene.push(&[("workflows/a.yaml", &a), ("everscan.yaml", settings)]);
    push("notify: [{ channel: ops }]");
    let daemon = scene.open_and_poll(0).await;
    let channels = |daemon: &TestDaemon| -> Vec<String> {
        let project = Some(ProjectId::of_source(&source_name()));
        let channel = |rule: &Rule| rule.channel.to_string();
        daemon
            .handle
            .state()
            .read(|world| world.rules_of(project).map(channel).collect())
    };
    assert_eq!(channels(&daemon), ["ops"]);
    let expected = BTreeMap::from([("a".to_owned(), run("active", 1, "workflows/a.yaml"))]);
    assert_eq!(runs(&daemon), expected);
    push("notify: [{ chanel: team }]");
    sync(&daemon).await;
    assert_eq!(channels(&daemon), ["ops"]);
    let stale = source(&daemon).stale_files.clone();
    let [stale] = stale.as_slice() else {
        panic!("{stale:?}")
    };
    assert_eq!(stale.file, "everscan.yaml");
    assert_eq!(stale.diagnostics[0].code, Code::UnknownKey);
    assert!(stale.excerpt.is_some());
    let invalid = Reason::FilesInvalid {
        invalid: 1,
        files: 2,
        without_good: 0,
    };
    assert_eq!(
        condition(&daemon, SourceConditionKind::Valid).reason,
        invalid
    );
    let open = |world: &World| {
        world
            .conditions()
            .map(|open| open.problem.code())
            .collect::<Vec<_>>()
    };
    assert!(daemon.handle.state().read(open).contains(&"invalid_file"));
    push("notify: [{ channel: team }]");
    sync(&daemon).await;
    assert_eq!(channels(&daemon), ["team"]);
    assert_eq!(source(&daemon).stale_files, []);
    scene.push(&[("workflows/a.yaml", &a)]);
    sync(&daemon).await;
    assert_eq!(channels(&daemon), [""; 0]);
    daemon.close().await;
}

#[tokio::test]
async fn an_invalid_file_keeps_its_last_good_version_and_does_not_affect_others() {
    let scene = Scene::new();
    scene.push(&[
        ("workflows/a.yaml", &text("1")),
        ("workflows/b.yaml", &text("1")),
    ]);
    let daemon = scene.open_and_poll(0).await;
    daemon.clock.set_forward(TimeDelta::seconds(10));
    scene.push(&[
        ("workflows/a.yaml", "scans: 1"),
        ("workflows/b.yaml", &text("2")),
    ]);
    sync(&daemon).await;
    assert_eq!(runs(&daemon)["a"], run("active", 1, "workflows/a.yaml"));
    assert_eq!(runs(&daemon)["b"].1, 2);
    let stale = source(&daemon).stale_files.clone();
    assert_eq!(stale.len(), 1);
    assert_eq!(
        (stale[0].file.as_str(), stale[0].since),
        ("workflows/a.yaml", at(10))
    );
    assert!(!stale[0].diagnostics.is_empty());
    let excerpt = stale[0].excerpt.as_ref().unwrap();
    assert_eq!(
        (excerpt.first, &excerpt.lines[..]),
        (1, &["scans: 1".to_owned()][..])
    );
    let valid = condition(&daemon, SourceConditionKind::Valid);
    assert_eq!(
        valid.reason,
        Reason::FilesInvalid {
            invalid: 1,
            files: 2,
            without_good: 0
        }
    );

    // Still invalid, in another way, and after a restart: the start of the problem does not change.
    daemon.close().await;
    scene.push(&[("workflows/a.yaml", ""), ("workflows/b.yaml", &text("2"))]);
    let daemon = scene.open_and_poll(20).await;
    assert_eq!(source(&daemon).stale_files[0].since, at(10));
    let given = BTreeMap::new();
    let a = WorkflowId::derive(&source_name(), "a");
    let dispatched = daemon
        .handle
        .dispatch(a, "probe", &given, Actor::Daemon, None);
    assert_eq!(dispatched.await.unwrap().revision.number, 1);

    scene.push(&[
        ("workflows/a.yaml", &text("3")),
        ("workflows/b.yaml", &text("2")),
    ]);
    sync(&daemon).await;
    assert_eq!(source(&daemon).stale_files, []);
    assert_eq!(runs(&daemon)["a"].1, 2);
    assert_eq!(
        condition(&daemon, SourceConditionKind::Valid).status,
        Status::True
    );
    daemon.close().await;
}

/// Writes the log of this thread to a file until the guard is dropped.
fn log_to(path: &Path) -> tracing::subscriber::DefaultGuard {
    let file = Arc::new(fs::File::create(path).unwrap());
    let log = tracing_subscriber::fmt().with_ansi(false).with_writer(file);
    tracing::subscriber::set_default(log.finish())
}

#[tokio::test]
async fn a_retired_workflow_is_logged() {
    let scene = Scene::new();
    let text = text("1");
    let both = [("workflows/a.yaml", &*text), ("workflows/b.yaml", &*text)];
    scene.push(&both);
    let daemon = scene.open_and_poll(0).await;
    let path = scene.folder.path().join("log");
    let log = log_to(&path);
    scene.push(&both[..1]);
    sync(&daemon).await;
    drop(log);
    let log = fs::read_to_string(path).unwrap();
    let line = log
        .lines()
        .find(|line| line.contains("a workflow is retired"));
    assert!(line.unwrap().contains("workflow=\"b\""), "{log}");
    daemon.close().await;
}

#[tokio::test]
async fn a_force_push_is_applied_and_marked_and_logged() {
    let scene = Scene::new();
    let path = scene.folder.path().join("log");
    let log = log_to(&path);
    scene.push(&[("workflows/a.yaml", &text("1"))]);
    let daemon = scene.open_and_poll(0).await;
    assert!(!source(&daemon).tip.clone().unwrap().history_rewritten);
    let tree = &[("workflows/a.yaml", FILE, text("other").into_bytes())];
    let entries: Vec<Entry<'_>> = tree
        .iter()
        .map(|(path, mode, bytes)| (*path, *mode, &bytes[..]))
        .collect();
    let rewritten = scene.fixture.commit("refs/heads/main", &[], &entries);
    sync(&daemon).await;
    let tip = source(&daemon).tip.clone().unwrap();
    assert_eq!((tip.commit, tip.number), (rewritten.to_string(), 2));
    assert!(tip.history_rewritten);
    drop(log);
    let log = fs::read_to_string(path).unwrap();
    let message = "the history of the repository was rewritten";
    assert_eq!(log.matches(message).count(), 1, "{log}");
    assert_eq!(runs(&daemon)["a"].1, 2);
    scene.push(&[("workflows/a.yaml", &text("on"))]);
    sync(&daemon).await;
    assert!(!source(&daemon).tip.clone().unwrap().history_rewritten);
    daemon.close().await;
}

#[tokio::test]
async fn a_renamed_default_branch_is_recorded_without_a_push() {
    let scene = Scene::new();
    scene.push(&[("workflows/a.yaml", &text("1"))]);
    let daemon = scene.open_and_poll(0).await;
    let default = |daemon: &TestDaemon| source(daemon).default_reference.clone();
    assert_eq!(default(&daemon).as_deref(), Some("refs/heads/main"));
    scene.fixture.git(&["branch", "--move", "main", "trunk"]);
    sync(&daemon).await;
    assert_eq!(default(&daemon).as_deref(), Some("refs/heads/trunk"));
    assert_eq!(runs(&daemon)["a"], run("active", 1, "workflows/a.yaml"));
    daemon.close().await;
}

#[tokio::test]
async fn an_empty_repository_is_healthy_and_waits_for_its_first_commit() {
    let scene = Scene::new();
    let daemon = scene.open_and_poll(5).await;
    let fetched = condition(&daemon, SourceConditionKind::Fetched);
    assert_eq!(
        (fetched.status, fetched.reason),
        (Status::True, Reason::EmptyRepository)
    );
    assert_eq!(
        daemon.handle.sources().checked_at(&source_name()),
        Some(at(5))
    );
    scene.push(&[("workflows/a.yaml", &text("1"))]);
    sync(&daemon).await;
    assert_eq!(runs(&daemon)["a"].0, "active");
    daemon.close().await;
}

#[tokio::test]
async fn two_files_that_differ_only_in_extension_are_an_error() {
    let scene = Scene::new();
    scene.push(&[("workflows/a.yaml", &text("1"))]);
    let daemon = scene.open_and_poll(0).await;
    scene.push(&[
        ("workflows/a.yaml", &text("1")),
        ("workflows/a.yml", &text("1")),
    ]);
    sync(&daemon).await;
    assert_eq!(runs(&daemon)["a"], run("active", 1, "workflows/a.yaml"));
    let source_now = source(&daemon);
    let stale: Vec<&str> = source_now
        .stale_files
        .iter()
        .map(|stale| stale.file.as_str())
        .collect();
    assert_eq!(stale, ["workflows/a.yaml", "workflows/a.yml"]);

    // The same text in the renamed file: no new revision, and the record has the new file name.
    scene.push(&[("workflows/a.yml", &text("1"))]);
    sync(&daemon).await;
    assert_eq!(runs(&daemon)["a"], run("active", 1, "workflows/a.yml"));
    assert_eq!(source(&daemon).stale_files, []);
    daemon.close().await;
}

#[tokio::test]
async fn a_file_that_cannot_be_stored_is_reported_and_stored_later() {
    let scene = Scene::new();
    scene.push(&[("workflows/small.yaml", &text("1"))]);
    let daemon = scene.open_and_poll(0).await;
    // A text of this size is first written as an object, but the folder for that is missing.
    let tmp = scene.folder.path().join("state/tmp");
    fs::remove_dir(&tmp).unwrap();
    let large = format!("# {}\n{}", "x".repeat(70 * 1024), text("large"));
    scene.push(&[
        ("workflows/large.yaml", &large),
        ("workflows/small.yaml", &text("2")),
    ]);

    sync(&daemon).await;
    let small = BTreeMap::from([("small".to_owned(), run("active", 2, "workflows/small.yaml"))]);
    assert_eq!(runs(&daemon), small);
    let active = condition(&daemon, SourceConditionKind::Active);
    assert_eq!(active.status, Status::False);
    let Reason::ApplyFailed { file, files: 1, .. } = &active.reason else {
        panic!("{:?}", active.reason);
    };
    assert_eq!(file, "workflows/large.yaml");

    fs::create_dir(&tmp).unwrap();
    sync(&daemon).await;
    assert_eq!(runs(&daemon).len(), 2);
    assert_eq!(
        condition(&daemon, SourceConditionKind::Active).status,
        Status::True
    );
    daemon.close().await;
}

#[tokio::test]
async fn workflows_of_a_dropped_source_are_retired_until_it_is_configured_again() {
    let scene = Scene::new();
    scene.push(&[("workflows/a.yaml", &text("1"))]);
    scene.open_and_poll(0).await.close().await;

    let daemon = TestDaemon::open(&scene.folder, 10, Vec::new()).await;
    assert_eq!(runs(&daemon)["a"], run("retired", 1, "workflows/a.yaml"));
    assert!(!source(&daemon).configured);
    daemon.close().await;

    let daemon = scene.open_and_poll(20).await;
    assert_eq!(runs(&daemon)["a"], run("active", 1, "workflows/a.yaml"));
    assert!(source(&daemon).configured);
    assert_eq!(
        source(&daemon).tip.clone().unwrap().number,
        1,
        "the tip has not changed"
    );
    daemon.close().await;
}

#[test]
fn failures_are_retried_with_growing_pauses_up_to_the_interval() {
    let interval = Duration::from_secs(60);
    for (failures, seconds) in [(0, 60), (1, 1), (2, 2), (4, 8), (7, 60), (u32::MAX, 60)] {
        let base = Duration::from_secs(seconds);
        for _ in 0..50 {
            let pause = pause(interval, failures);
            assert!(
                pause >= base && pause <= base + base / 10,
                "{failures}: {pause:?}"
            );
        }
    }
}
