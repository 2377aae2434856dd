//! Tests checks of clean and of damaged states.

mod removed;

use std::path::Path;

use store::OpenError;
use store::look::Look;

use super::everything::make_every_kind_of_record;
use super::fixture::Folder;
use crate::fsck::{Code, Event, Finding, Severity, fsck};
use crate::layout::Layout;

/// The findings of a check of the folder.
pub(crate) fn findings(folder: &Folder) -> Vec<Finding> {
    findings_at(folder.root()).unwrap()
}

pub(crate) fn findings_at(root: &Path) -> Result<Vec<Finding>, OpenError> {
    let mut found = Vec::new();
    let report = &mut |event| {
        if let Event::Found(finding) = event {
            found.push(finding);
        }
    };
    fsck(root, report)?;
    Ok(found)
}

#[test]
fn the_page_explains_exactly_the_codes_of_the_program() {
    let page = include_str!("../../../docs/fsck.md");
    let (_, table) = page.split_once("## Codes").unwrap();
    let rows = table.lines().filter_map(|line| line.strip_prefix("| `"));
    // Name, severity, and whether a repair does anything about it.
    let explained: Vec<(&str, &str, bool)> = rows
        .map(|row| {
            let cells: Vec<_> = row.split('|').map(str::trim).collect();
            (cells[0].trim_matches('`'), cells[1], cells[3] != "nothing")
        })
        .collect();
    let codes = Code::ALL.iter();
    let codes: Vec<(&str, &str, bool)> = codes
        .map(|code| {
            let hint_names_repair = code.hint().contains("fsck --repair");
            (code.name(), code.severity().name(), hint_names_repair)
        })
        .collect();
    assert_eq!(explained, codes);
}

#[tokio::test]
async fn a_state_with_every_kind_of_record_is_clean_while_running_crashed_or_stopped() {
    let (mut folder, opened, fleet) = Folder::prepared().await;
    make_every_kind_of_record(&opened, fleet).await;
    let severe = |folder: &Folder, but: Option<Code>| {
        let found = findings(folder).into_iter();
        let severe = found.filter(|finding| finding.severity < Severity::Note);
        severe
            .filter(|finding| Some(finding.code) != but)
            .collect::<Vec<_>>()
    };
    assert_eq!(severe(&folder, None), []);
    // An object that is moved to its place during the copy may be missing in the copy.
    opened.state.settled().await.unwrap();
    // The copy has different modes.
    assert_eq!(severe(&folder.crashed(), Some(Code::Mode)), []);
    opened.close();
    assert_eq!(severe(&folder, None), []);
    for (path, found) in &folder.walk() {
        assert!(found.is_private(), "{path}: mode {:o}", found.mode);
    }
    folder.open().await.close();
    assert_eq!(severe(&folder, None), []);
}

#[tokio::test]
async fn damaged_lines_in_the_files_of_days_are_found() {
    let (folder, opened, fleet) = Folder::prepared().await;
    make_every_kind_of_record(&opened, fleet).await;
    opened.state.settled().await.unwrap();
    opened.close();
    for top in ["audit/", "events/", "deliveries/"] {
        let files = folder.files();
        let path = files.iter().find(|path| path.starts_with(top)).unwrap();
        let file = folder.root().join(path);
        let whole = std::fs::read(&file).unwrap();
        let mut wrong = whole.clone();
        wrong[0] = 0xff;
        for damaged in [&whole[..whole.len() / 2], &whole[..whole.len() - 1], &wrong] {
            std::fs::write(&file, damaged).unwrap();
            let found = findings(&folder);
            let found: Vec<_> = found.iter().map(|it| (it.code, &it.path)).collect();
            assert_eq!(found, [(Code::LedgerLine, path)]);
        }
        std::fs::write(&file, &whole).unwrap();
    }
    assert_eq!(findings(&folder), []);
}

/// Opening a pipe for reading would wait for a writer.
#[tokio::test]
async fn a_pipe_in_place_of_a_record_is_reported_without_waiting() {
    let (mut folder, opened, fleet) = Folder::prepared().await;
    let job = opened.running_job(fleet, "build").await;
    opened.complete(job).await;
    opened.close();
    let path = folder.path(&Layout::job(job));
    std::fs::remove_file(&path).unwrap();
    // Do not start a process here: a new process briefly holds the locks of all open states.
    let (cwd, mode) = (rustix::fs::CWD, rustix::fs::Mode::from_raw_mode(0o600));
    rustix::fs::mknodat(cwd, &path, rustix::fs::FileType::Fifo, mode, 0).unwrap();
    assert_ne!(findings(&folder), []);
    let opened = folder.open().await;
    assert!(opened.state.job(job).await.is_err() || opened.state.job(job).await.unwrap().is_none());
    opened.close();
}

#[tokio::test]
async fn files_of_a_backup_and_of_the_file_system_are_not_findings() {
    let (folder, opened, fleet) = Folder::prepared().await;
    std::fs::create_dir(folder.root().join("lost+found")).unwrap();
    // A dead process left this file.
    std::fs::write(folder.root().join("journal/HOLD"), "").unwrap();
    let job = opened.running_job(fleet, "build").await;
    opened.store_artifact(job, "report", "zip").await;
    opened.state.settled().await.unwrap();
    assert_eq!(findings(&folder), []);
    let artifact = folder.path(&Layout::artifact(job, "report"));
    std::fs::hard_link(&artifact, folder.root().with_file_name("other")).unwrap();
    let codes: Vec<Code> = findings(&folder).iter().map(|it| it.code).collect();
    assert_eq!(codes, [Code::Links]);
    opened.close();
}

#[tokio::test]
async fn an_index_that_is_empty_after_a_crash_is_only_a_note() {
    let (folder, opened, fleet) = Folder::prepared().await;
    make_every_kind_of_record(&opened, fleet).await;
    let mut crashed = folder.crashed();
    let last = Look::at(crashed.root()).unwrap().position().last;
    let index = format!("index/live-{:020}", last.0);
    std::fs::write(crashed.root().join(&index), "").unwrap();
    let of_index = |folder: &Folder| {
        let found = findings(folder).into_iter();
        let found = found.filter(|finding| finding.path.starts_with("index/"));
        found
            .map(|finding| (finding.code, finding.path))
            .collect::<Vec<_>>()
    };
    // The copy, including this file, has different modes.
    let found = of_index(&crashed);
    assert!(found.contains(&(Code::Leftover, index)), "{found:?}");
    assert!(found.iter().all(|(code, _)| *code != Code::IndexDamaged));
    crashed.open().await.close();
    assert_eq!(of_index(&crashed), []);
    opened.close();
}

#[tokio::test]
async fn a_file_with_a_wrong_name_is_reported_and_the_state_ignores_it() {
    let (mut folder, opened, fleet) = Folder::prepared().await;
    let job = opened.running_job(fleet, "build").await;
    opened.complete(job).await;
    let project = opened.set_values().await;
    opened.close();
    let scan = fleet.scan("build");
    let history = Layout::history(&scan, 0).folder();
    let ledger = Layout::ledger(&scan, 0).folder();
    let revision = format!("workflows/{}/revisions/01-abc", scan.workflow);
    let long = "x".repeat(198);
    let wrong = [
        (Code::UnknownFile, format!("{}/03.jsonl", history.as_str())),
        (Code::UnknownFile, format!("{}/x.jsonl", history.as_str())),
        (Code::UnknownFile, format!("{}/+7.jsonl", ledger.as_str())),
        (Code::UnknownFile, "audit/2026-1-2.jsonl".to_owned()),
        (Code::UnknownFile, "events/x.jsonl".to_owned()),
        (Code::UnknownFile, "deliveries/2026.json".to_owned()),
        (Code::UnknownFile, "blob/a".to_owned()),
        (Code::Orphan, format!("blobs/{project}/{long}")),
        (Code::RecordMissing, format!("{revision}/revision.json")),
    ];
    for (_, path) in &wrong {
        let path = folder.root().join(path);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        if !path.ends_with("revision.json") {
            std::fs::write(path, "").unwrap();
        }
    }
    let found = findings(&folder).into_iter();
    let found: Vec<_> = found.map(|finding| (finding.code, finding.path)).collect();
    for (code, path) in wrong {
        // A folder with a wrong name is reported as a whole.
        let path = path.replace("blob/a", "blob");
        assert!(found.contains(&(code, path.clone())), "{path}: {found:?}");
    }
    // The head is counted again from the pages with right names.
    std::fs::remove_file(folder.path(&Layout::head(&scan))).unwrap();
    folder.remove_index();
    let opened = folder.open().await;
    assert_eq!(opened.head(fleet, "build").history.page, 1);
    assert_eq!(
        opened.state.revisions(scan.workflow).await.unwrap().len(),
        1
    );
    opened.close();
}
