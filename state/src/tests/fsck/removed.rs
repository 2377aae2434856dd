//! Tests checks of the records about removed jobs and artifacts.

use std::collections::BTreeSet;
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::PathBuf;

use model::retention::{Expiry, Retention};
use model::{JobId, ScanHead, TailEnd, Totals};
use store::{Key, Seq};

use super::findings;
use crate::envelope::{self, Stamp, seal};
use crate::fsck::{Code, repair};
use crate::layout::Layout;
use crate::record::Record;
use crate::tests::fixture::{Fleet, Folder, copy};
use crate::tests::removal::{finished, prepared, prune};

/// A state with removed jobs and artifacts: of eight jobs, the first, second and fifth are removed, and an artifact of
/// the sixth. The last two jobs are the newest successes.
struct Removed {
    folder: Folder,
    fleet: Fleet,
    jobs: Vec<JobId>,
}

impl Removed {
    async fn new() -> Self {
        let (folder, opened, fleet) = prepared().await;
        let mut jobs = Vec::new();
        for _ in 0..8 {
            jobs.push(finished(&opened, fleet, &["report", "cache"]).await);
        }
        prune(&opened, fleet, 2).await;
        opened.delete(jobs[4]).await;
        opened.remove_artifact(jobs[5], "cache").await;
        opened.close();
        Self {
            folder,
            fleet,
            jobs,
        }
    }

    fn retention(&self) -> Key {
        Layout::retention(&self.fleet.scan("build"))
    }

    fn head(&self) -> Key {
        Layout::head(&self.fleet.scan("build"))
    }

    fn codes(&self) -> Vec<Code> {
        findings(&self.folder).iter().map(|it| it.code).collect()
    }

    /// The findings after a record was changed with a valid checksum.
    fn codes_after<R: Record>(&self, key: &Key, change: impl FnOnce(&mut R)) -> Vec<Code> {
        let before = fs::read(self.folder.path(key)).unwrap();
        self.folder.change(key, change);
        let codes = self.codes();
        fs::write(self.folder.path(key), before).unwrap();
        codes
    }

    fn read<R: Record>(&self, key: &Key) -> R {
        envelope::open(&fs::read(self.folder.path(key)).unwrap()).unwrap()
    }

    async fn repair(&self) {
        let repaired = repair(self.folder.root(), false, &mut |_| ()).await;
        repaired.unwrap();
    }

    /// Moves all but the first `lines` lines of the history to a second page.
    fn split_history(&self, lines: usize) {
        let scan = self.fleet.scan("build");
        let page = |page| self.folder.path(&Layout::history(&scan, page));
        let text = fs::read_to_string(page(0)).unwrap();
        let all: Vec<&str> = text.split_inclusive('\n').collect();
        let (first, second) = (all[..lines].concat(), all[lines..].concat());
        fs::write(page(0), first).unwrap();
        fs::write(page(1), &second).unwrap();
        fs::set_permissions(page(1), fs::Permissions::from_mode(0o600)).unwrap();
        self.folder.change(&self.head(), |head: &mut ScanHead| {
            head.history = TailEnd {
                page: 1,
                bytes: second.len() as u64,
            };
        });
    }
}

#[tokio::test]
async fn wrong_counters_are_found_and_counted_again() {
    let removed = Removed::new().await;
    assert_eq!(removed.codes(), []);
    let retention = removed.retention();
    let whole: Retention = removed.read(&retention);
    let changes: [fn(&mut Retention); 6] = [
        |it| it.removed.succeeded += 1,
        |it| it.removed.succeeded -= 1,
        |it| it.removed.bytes += 1,
        |it| it.removed.bytes = 0,
        |it| it.from.page += 1,
        |it| it.from.at = 1 << 30,
    ];
    for (number, change) in changes.into_iter().enumerate() {
        removed.folder.change(&retention, change);
        let code = if number < 4 {
            Code::KeptDiffers
        } else {
            Code::RetentionDiffers
        };
        let codes = removed.codes();
        assert!(codes.contains(&code), "{number}: {codes:?}");
        removed.repair().await;
        assert_eq!(removed.codes(), [], "{number}");
        let found: Retention = removed.read(&retention);
        assert_eq!(
            (found.removed, &found.deletions),
            (whole.removed, &whole.deletions)
        );
    }

    let head = removed.head();
    let changed = |change: fn(&mut Totals)| {
        let change = |head: &mut ScanHead| change(&mut head.totals);
        removed.codes_after(&head, change)
    };
    assert_eq!(changed(|totals| totals.bytes += 1), [Code::HeadTotals]);
    assert_eq!(changed(|totals| totals.succeeded += 1), [Code::HeadTotals]);
}

#[tokio::test]
async fn a_job_without_a_history_line_is_found() {
    let mut removed = Removed::new().await;
    let opened = removed.folder.open().await;
    prune(&opened, removed.fleet, 9).await;
    opened.close();
    assert_eq!(removed.codes(), []);
    let forget = |it: &mut Retention| it.passed_over.truncate(1);
    assert_eq!(
        removed.codes_after(&removed.retention(), forget),
        [Code::HistoryLacks]
    );
}

#[tokio::test]
async fn missing_jobs_are_found_and_not_counted_after_a_repair() {
    let mut removed = Removed::new().await;
    // This job has no artifacts that expire, so no other record names it.
    let key = Layout::job(removed.jobs[5]);
    let job = removed.folder.path(&key).parent().unwrap().to_owned();
    let aside = removed.folder.root().with_extension("aside");
    fs::rename(&job, &aside).unwrap();
    assert_eq!(removed.codes(), [Code::KeptDiffers]);
    fs::rename(&aside, &job).unwrap();
    assert_eq!(removed.codes(), []);
    // An unreadable job has its own finding and is not also reported as missing.
    fs::write(removed.folder.path(&key), "{").unwrap();
    let codes: BTreeSet<Code> = removed.codes().into_iter().collect();
    assert!(codes.contains(&Code::RecordMalformed));
    assert!(!codes.contains(&Code::KeptDiffers), "{codes:?}");
    let before: Retention = removed.read(&removed.retention());
    removed.repair().await;
    let codes = removed.codes();
    assert!(!codes.contains(&Code::KeptDiffers), "{codes:?}");
    let after: Retention = removed.read(&removed.retention());
    assert_eq!(after.removed.succeeded, before.removed.succeeded + 1);
    // The next retention pass removes the rest, and counts no job twice.
    let opened = removed.folder.open().await;
    assert_eq!(prune(&opened, removed.fleet, 9).await, 2);
    opened.close();
}

#[tokio::test]
async fn missing_and_stray_expiry_records_are_found() {
    let removed = Removed::new().await;
    let job = removed.jobs[6];
    let found = removed.folder.files().into_iter();
    let expiry = found
        .filter(|path| path.starts_with("expiries") && path.contains(&job.to_string()))
        .map(|path| Key::new(path).unwrap());
    let expiry = expiry.max().unwrap();
    let bytes = fs::read(removed.folder.path(&expiry)).unwrap();
    let aside = removed.folder.root().with_extension("aside");
    fs::rename(removed.folder.path(&expiry), &aside).unwrap();
    assert_eq!(removed.codes(), [Code::ExpiryMissing]);
    fs::rename(&aside, removed.folder.path(&expiry)).unwrap();
    assert_eq!(removed.codes(), []);

    let known: Expiry = envelope::open(&bytes).unwrap();
    let stray = |expiry: Expiry| {
        let stamp = Stamp {
            revision: 1,
            sequence: Seq(1),
            clock: None,
        };
        let key = Layout::expiry(&expiry);
        let bytes = seal(&expiry, stamp).unwrap();
        let path = removed.folder.path(&key);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(&path, bytes).unwrap();
        let codes = removed.codes();
        fs::remove_file(path).unwrap();
        codes
    };
    let of_nothing = Expiry {
        job: removed.jobs[0],
        ..known.clone()
    };
    let too_early = Expiry {
        at: known.at - chrono::TimeDelta::hours(1),
        ..known
    };
    for expiry in [of_nothing, too_early] {
        let codes: Vec<Code> = stray(expiry);
        let of_expiries = codes.into_iter().filter(|code| *code != Code::Mode);
        assert_eq!(of_expiries.collect::<Vec<_>>(), [Code::ExpiryStray]);
    }
}

#[tokio::test]
async fn scans_whose_pages_were_removed_are_checked_too() {
    let mut removed = Removed::new().await;
    removed.split_history(5);
    assert_eq!(removed.codes(), []);
    let before = removed.folder.crashed();
    let opened = removed.folder.open().await;
    prune(&opened, removed.fleet, 4).await;
    opened.close();
    let scan = removed.fleet.scan("build");
    assert!(!removed.folder.path(&Layout::history(&scan, 0)).exists());
    assert_eq!(removed.codes(), []);

    let miscounted = |it: &mut Retention| it.removed.succeeded += 1;
    let codes = removed.codes_after(&removed.retention(), miscounted);
    assert_eq!(codes, [Code::KeptDiffers]);
    let head = removed.head();
    let changed = |change: fn(&mut ScanHead)| removed.codes_after(&head, change);
    let counted = changed(|head| head.totals.succeeded += 1);
    assert_eq!(counted, [Code::KeptDiffers]);
    let swapped = changed(|head| head.successes.reverse());
    assert_eq!(swapped, [Code::HeadSuccesses]);

    // A removed job comes back without its line in the history.
    let id = removed.jobs[2];
    let job = |root: PathBuf| {
        root.join(Layout::job(id).as_str())
            .parent()
            .unwrap()
            .to_owned()
    };
    let (from, to) = (before.root().to_owned(), removed.folder.root().to_owned());
    copy(&job(from), &job(to));
    let codes: BTreeSet<Code> = removed.codes().into_iter().collect();
    assert!(codes.contains(&Code::HistoryLacks), "{codes:?}");
    assert!(codes.contains(&Code::KeptDiffers), "{codes:?}");
}
