//! Tests repairs of damaged states.

use std::fs;
use std::os::unix::fs::PermissionsExt;

use model::{JobId, ScanHead};

use super::everything::make_every_kind_of_record;
use super::fixture::{Folder, Opened};
use super::fsck::findings;
use crate::JobFilter;
use crate::fsck::{Code, Event, Finding, Moved, Repair, Severity, repair};
use crate::layout::Layout;

/// The events of a repair.
#[derive(Default)]
pub(super) struct Reported {
    pub(super) found: Vec<Finding>,
    done: Vec<Repair>,
    pub(super) left: Vec<Finding>,
}

pub(super) async fn repaired(folder: &Folder, accept_loss: bool) -> Reported {
    let mut reported = Reported::default();
    let report = &mut |event| match event {
        Event::Found(finding) => reported.found.push(finding),
        Event::Done(done) => reported.done.push(done),
        Event::Left(finding) => reported.left.push(finding),
        Event::Progress(_) => {}
    };
    repair(folder.root(), accept_loss, report).await.unwrap();
    reported
}

fn severe(found: &[Finding]) -> Vec<&Finding> {
    let severe = |finding: &&Finding| finding.severity < Severity::Note;
    found.iter().filter(severe).collect()
}

#[tokio::test]
async fn untrustworthy_files_are_set_aside_and_the_rest_stays_usable() {
    let (mut folder, opened, fleet) = Folder::prepared().await;
    make_every_kind_of_record(&opened, fleet).await;
    let broken = opened.running_job(fleet, "check").await;
    opened.complete(broken).await;
    let whole = opened.running_job(fleet, "check").await;
    opened.complete(whole).await;
    let head = opened.head(fleet, "check");
    opened.close();

    let root = folder.root().to_owned();
    let path = |key: &store::Key| root.join(key.as_str());
    let job = Layout::job(broken);
    let text = fs::read_to_string(path(&job)).unwrap();
    fs::write(path(&job), text.replace("\"check\"", "\"chalk\"")).unwrap();
    let head_key = Layout::head(&fleet.scan("check"));
    fs::write(path(&head_key), "{").unwrap();
    fs::write(root.join("jobs/notes.txt"), "mine").unwrap();
    let token = root.join("initial-admin-token");
    fs::set_permissions(&token, fs::Permissions::from_mode(0o644)).unwrap();

    let reported = repaired(&folder, false).await;
    let codes: Vec<Code> = reported.found.iter().map(|finding| finding.code).collect();
    for code in [
        Code::RecordChecksum,
        Code::RecordMalformed,
        Code::UnknownFile,
        Code::Mode,
    ] {
        assert!(codes.contains(&code), "{code} is not among {codes:?}");
    }
    assert_eq!(
        fs::metadata(&token).unwrap().permissions().mode() & 0o777,
        0o600
    );
    for aside in [job.as_str(), head_key.as_str(), "jobs/notes.txt"] {
        assert!(root.join("quarantine").join(aside).exists(), "{aside}");
    }
    // A rebuilt head does not know its newest successes, so a finding remains until there are new successes. No record
    // refers to the job that was set aside.
    let left: Vec<Code> = severe(&reported.left)
        .iter()
        .map(|finding| finding.code)
        .collect();
    assert_eq!(left, [Code::HeadSuccesses], "{:?}", reported.left);

    let opened = folder.open().await;
    assert!(opened.state.job(broken).await.unwrap().is_none());
    assert!(opened.state.job(whole).await.unwrap().is_some());
    let counted = opened.head(fleet, "check");
    assert_eq!(
        (counted.totals, counted.latest_job),
        (head.totals, head.latest_job)
    );
    let next = opened.running_job(fleet, "check").await;
    opened.complete(next).await;
    opened.close();
    let codes: Vec<Code> = findings(&folder)
        .iter()
        .map(|finding| finding.code)
        .collect();
    assert!(
        !codes.contains(&Code::HistoryTwice) && !codes.contains(&Code::HistoryLine),
        "{codes:?}"
    );

    // Moved files can be put back.
    for done in reported.done.iter().rev() {
        if let Repair::Moved(Moved { from, to }) = done
            && !from.starts_with("index/")
        {
            fs::rename(root.join(to), root.join(from)).unwrap();
        }
    }
    assert_eq!(fs::read_to_string(path(&head_key)).unwrap(), "{");
}

#[tokio::test]
async fn the_next_repair_completes_an_interrupted_repair() {
    let (folder, opened, fleet) = Folder::prepared().await;
    let job = opened.running_job(fleet, "build").await;
    opened.close();
    let key = Layout::job(job);
    fs::write(folder.path(&key), "{").unwrap();
    let root = folder.root().to_owned();
    let interrupted = std::thread::spawn(move || {
        let report = &mut |event| {
            let is_aside = matches!(&event, Event::Done(Repair::Moved(Moved { from, .. })) if *from == key.as_str());
            assert!(!is_aside, "on purpose");
        };
        let runtime = tokio::runtime::Builder::new_current_thread()
            .build()
            .unwrap();
        runtime.block_on(repair(&root, false, report)).map(drop)
    });
    interrupted.join().unwrap_err();
    let reported = repaired(&folder, false).await;
    assert_eq!(severe(&reported.left), Vec::<&Finding>::new());
}

#[tokio::test]
async fn wrong_counters_are_counted_again() {
    let (mut folder, opened, fleet) = Folder::prepared().await;
    for _ in 0..3 {
        let job = opened.running_job(fleet, "check").await;
        opened.complete(job).await;
    }
    let head = opened.head(fleet, "check");
    opened.close();
    folder.change(
        &Layout::head(&fleet.scan("check")),
        |head: &mut ScanHead| {
            (head.totals.succeeded, head.totals.failed) = (7, 1);
            head.latest_job = JobId::FIRST;
        },
    );

    let reported = repaired(&folder, false).await;
    let codes: Vec<Code> = reported.found.iter().map(|finding| finding.code).collect();
    assert_eq!(
        codes,
        [Code::HeadTotals, Code::HeadTotals, Code::HeadBehind]
    );
    assert_eq!(severe(&reported.left), Vec::<&Finding>::new());
    let opened = folder.open().await;
    assert_eq!(*opened.head(fleet, "check"), *head);
    opened.close();
}

/// The record may be missing after an interrupted repair, or because a person moved it.
#[tokio::test]
async fn a_retention_record_that_was_set_aside_is_rebuilt_at_the_next_start() {
    let (mut folder, opened, fleet) = Folder::prepared().await;
    for _ in 0..3 {
        let job = opened.running_job(fleet, "check").await;
        opened.complete(job).await;
    }
    let scan = fleet.scan("check");
    let first = opened
        .state
        .jobs(&JobFilter::default(), None, 9)
        .await
        .unwrap()
        .jobs[2]
        .id;
    opened.delete(first).await;
    let removed = |opened: &Opened| {
        opened
            .state
            .read(|world| world.retention(&scan).unwrap().removed)
    };
    let before = removed(&opened);
    assert_eq!(before.jobs(), 1);
    opened.close();
    for also_the_head in [false, true] {
        folder.remove_index();
        let mut lost = vec![Layout::retention(&scan)];
        lost.extend(also_the_head.then(|| Layout::head(&scan)));
        for key in lost {
            let (from, to) = (key.to_string(), format!("quarantine/{key}"));
            let to = folder.root().join(to);
            fs::create_dir_all(to.parent().unwrap()).unwrap();
            drop(fs::rename(folder.root().join(from), to));
        }
        let opened = folder.open().await;
        assert_eq!(removed(&opened).jobs(), before.jobs());
        opened.close();
    }
}

#[tokio::test]
async fn a_journal_that_is_damaged_in_the_middle_is_only_cut_on_request() {
    let (_folder, opened, fleet) = Folder::prepared().await;
    make_every_kind_of_record(&opened, fleet).await;
    // Wait, so that all files are from the same commit.
    opened.state.settled().await.unwrap();
    let mut crashed = _folder.crashed();
    opened.close();
    let journal = crashed.root().join("journal");
    let segments = fs::read_dir(&journal)
        .unwrap()
        .map(|entry| entry.unwrap().path());
    let segment = segments
        .filter(|path| path.extension().is_some())
        .max()
        .unwrap();
    let mut bytes = fs::read(&segment).unwrap();
    // This byte is in the first record after the header.
    bytes[4096 + 40] ^= 1;
    fs::write(&segment, bytes).unwrap();

    let refused = crashed.try_open().await.err().unwrap();
    assert!(
        model::error_chain(&refused).contains("everscand fsck"),
        "{refused}"
    );
    let codes: Vec<Code> = findings(&crashed)
        .iter()
        .map(|finding| finding.code)
        .collect();
    assert!(codes.contains(&Code::JournalDamaged), "{codes:?}");
    let reported = repaired(&crashed, true).await;
    let lost = reported.done.iter().find_map(|done| match done {
        Repair::Lost(loss) => Some((loss.first.0, loss.last.0)),
        _ => None,
    });
    let (first, last) = lost.unwrap();
    assert!(first == 1 && last > 10, "{first} to {last}");
    assert_eq!(severe(&reported.left), Vec::<&Finding>::new());
    crashed.open().await.close();
    assert!(repaired(&crashed, true).await.done.is_empty());
}
