//! Tests that states of earlier programs can still be opened. `tests/format-<n>/state` is a state of format `n` after a
//! crash, with changes that only its journal has. `expected.json` beside it is the content before the crash.
//!
//! `UPDATE_STATE_FIXTURE=1` writes the fixture of the current format again. Use it only before the format is released:
//! the fixture of a released format never changes. Then run the tests once more.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

use bytes::Bytes;
use model::WorkflowId;
use serde_json::{Value, json};

use super::everything::make_every_kind_of_record;
use super::fixture::{Fleet, Folder, Opened, artifact, completion, copy, line};
use super::fsck::findings;
use super::interactions::heard_job;
use super::picture::picture;
use crate::JobFilter;
use crate::envelope::{self, VERSION};
use crate::fsck::Severity;
use crate::state::runners_before_users;

const FIRST_WITH_USERS: u64 = 6;

const PAGE: &str = include_str!("../../../state-layout.md");

/// The format of the current program: a new format of the store or of the records is a new format of the state.
fn newest() -> u64 {
    store::FORMAT.max(u64::from(VERSION))
}

fn fixture(format: u64) -> PathBuf {
    let tests = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests");
    tests.join(format!("format-{format}"))
}

#[tokio::test]
async fn states_of_all_formats_open_with_their_content() {
    if std::env::var_os("UPDATE_STATE_FIXTURE").is_some() {
        renew(&fixture(newest())).await;
    }
    for format in 1..=newest() {
        let expected = std::fs::read(fixture(format).join("expected.json")).unwrap();
        let expected: Value = serde_json::from_slice(&expected).unwrap();
        for has_index in [true, false] {
            let mut folder = Folder::holding(&fixture(format).join("state"));
            if !has_index {
                folder.remove_index();
            }
            assert_ne!(
                json!(files(&folder)),
                expected["files"],
                "the journal of format {format} has no changes to apply"
            );
            let opened = folder.open().await;
            // The first start of an older state tells what has changed.
            let is_older = opened.state.read(runners_before_users).is_some();
            assert_eq!(is_older, format < FIRST_WITH_USERS, "format {format}");
            let found = seen(&folder, &opened).await;
            let mut differences = Vec::new();
            compare("", &found, &expected, &mut differences);
            assert_eq!(differences, [""; 0], "format {format}, index: {has_index}");
            run_another_job(&opened).await;
            opened.close();
            let severe = findings(&folder).into_iter();
            let severe = severe.filter(|finding| finding.severity < Severity::Note);
            assert_eq!(severe.collect::<Vec<_>>(), [], "format {format}");
        }
    }
}

#[test]
fn every_format_has_its_fixture() {
    for format in 1..=newest() {
        let path = fixture(format);
        assert!(path.is_dir(), "{} is missing", path.display());
    }
    let state = fixture(newest()).join("state");
    let format = std::fs::read(state.join("FORMAT")).unwrap();
    let format: Value = serde_json::from_slice(&format).unwrap();
    assert_eq!(format["format"], store::FORMAT);
    let folder = Folder::holding(&state);
    let mut kinds = BTreeSet::new();
    for path in files(&folder) {
        if path.ends_with(".json") && !path.starts_with("blobs/") {
            let bytes = std::fs::read(folder.root().join(&path)).unwrap();
            envelope::read(&bytes).unwrap();
            let record: Value = serde_json::from_slice(&bytes).unwrap();
            assert_eq!(record["version"], VERSION, "{path}");
            kinds.insert(record["kind"].as_str().unwrap().to_owned());
        }
    }
    let (_, list) = PAGE.split_once("- `kind`: what the record is: ").unwrap();
    let (list, _) = list.split_once('.').unwrap();
    let known = list.split(',').map(|kind| kind.trim().to_owned());
    let known: BTreeSet<String> = known.collect();
    assert_eq!(kinds, known, "the fixture lacks a kind of record");
}

/// Writes the fixture of the current format. Ids and times are the same at each run, except the store's own id.
async fn renew(fixture: &Path) {
    let (mut folder, opened, fleet) = Folder::prepared().await;
    make_every_kind_of_record(&opened, fleet).await;
    opened.new_job(fleet, "check").await;
    opened.close();
    let opened = folder.open().await;
    let state = &opened.state;
    let job = opened.running_job(fleet, "build").await;
    opened.running_job(fleet, "check").await;
    let (heard, of_heard) = heard_job(&opened, fleet).await;
    opened.claim(heard, of_heard).await;
    let logs = state.logs();
    logs.append(job, 0, vec![line("last words")]).await.unwrap();
    let upload = state.begin_upload().await.unwrap();
    let upload = upload.write(Bytes::from_static(b"zip")).await.unwrap();
    let received = upload.finish().await.unwrap();
    state.settled().await.unwrap();
    let crashed = folder.crashed();
    let store = artifact(job, "report", &received);
    state.store_artifact(store, received).await.unwrap();
    state.complete(completion(job, 1)).await.unwrap();
    // Of the changes after the copy, the crash keeps only the journal.
    copy(
        &folder.root().join("journal"),
        &crashed.root().join("journal"),
    );
    state.settled().await.unwrap();
    let expected = seen(&folder, &opened).await;
    opened.close();

    let state = fixture.join("state");
    if state.exists() {
        std::fs::remove_dir_all(&state).unwrap();
    }
    copy(crashed.root(), &state);
    // This file names the machine, and every start writes it again.
    std::fs::remove_file(state.join("LOCK")).unwrap();
    trim_journal(&state.join("journal"));
    let expected = serde_json::to_string_pretty(&expected).unwrap() + "\n";
    std::fs::write(fixture.join("expected.json"), expected).unwrap();
}

/// Removes the zeros of the reserved space of segments, except in the last used block.
fn trim_journal(journal: &Path) {
    const BLOCK: usize = 4096;
    for entry in std::fs::read_dir(journal).unwrap() {
        let path = entry.unwrap().path();
        if path.extension().is_some_and(|extension| extension == "jnl") {
            let mut bytes = std::fs::read(&path).unwrap();
            let last = bytes.iter().rposition(|byte| *byte != 0).unwrap();
            // The last record itself may end with a zero.
            bytes.truncate((last / BLOCK + 2) * BLOCK);
            std::fs::write(path, bytes).unwrap();
        }
    }
}

/// The content of an open state: live records, settled records, ledgers and logs.
async fn seen(folder: &Folder, opened: &Opened) -> Value {
    let state = &opened.state;
    let page = state.jobs(&JobFilter::default(), None, 100).await.unwrap();
    assert_eq!(page.next, None);
    let mut logs = BTreeMap::new();
    for job in &page.jobs {
        let (_, log) = state.logs().stream(job.id, 0).next().await;
        let log = log.unwrap().unwrap_or_default();
        logs.insert(job.id, String::from_utf8(log.to_vec()).unwrap());
    }
    let scans: Vec<_> = state.read(|world| world.heads().map(|head| head.key()).collect());
    let mut ledgers = BTreeMap::new();
    for scan in scans {
        let ledger = state.ledger(&scan, None, None, 100).await.unwrap().records;
        ledgers.insert(format!("{}/{}", scan.workflow, scan.scan), ledger);
    }
    let jobs: Vec<_> = page.jobs.iter().map(|job| json!(**job)).collect();
    json!({
        "live": state.read(picture),
        "jobs": jobs,
        "logs": logs,
        "ledgers": ledgers,
        "files": files(folder),
    })
}

/// All files except the store's own. Damaged files appear in `quarantine/`.
fn files(folder: &Folder) -> BTreeSet<String> {
    let is_of_store = |path: &str| {
        let first = path.split('/').next();
        matches!(first, Some("FORMAT" | "LOCK" | "index" | "journal" | "tmp"))
    };
    let paths = folder.files().into_iter();
    paths.filter(|path| !is_of_store(path)).collect()
}

/// Collects differences from the expected content. Additional fields of newer programs are no difference.
fn compare(place: &str, found: &Value, expected: &Value, differences: &mut Vec<String>) {
    match (found, expected) {
        (Value::Object(found), Value::Object(expected)) => {
            for (name, expected) in expected {
                let found = found.get(name).unwrap_or(&Value::Null);
                compare(&format!("{place}/{name}"), found, expected, differences);
            }
        }
        (Value::Array(found), Value::Array(expected)) if found.len() == expected.len() => {
            for (index, (found, expected)) in found.iter().zip(expected).enumerate() {
                compare(&format!("{place}/{index}"), found, expected, differences);
            }
        }
        (found, expected) if found == expected => {}
        (found, expected) => {
            differences.push(format!("{place} is {found}, expected {expected}"));
        }
    }
}

/// Runs another job in the opened state.
async fn run_another_job(opened: &Opened) {
    let runner = opened
        .state
        .read(|world| world.runners().next().unwrap().id);
    let fleet = Fleet {
        workflow: WorkflowId::derive(&"recon".parse().unwrap(), "main"),
        runner,
    };
    let before = opened.head(fleet, "build").totals.succeeded;
    let job = opened.running_job(fleet, "build").await;
    opened.complete(job).await;
    assert_eq!(opened.head(fleet, "build").totals.succeeded, before + 1);
}
