//! What is remembered of removed jobs and artifacts, damaged in one way after the other.

use std::collections::BTreeSet;
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::PathBuf;

use model::decide::{DeleteJob, RemoveArtifacts};
use model::retention::{Expiry, FinishedJob, Position, Retention};
use model::{Actor, EndState, JobId, Reason, ScanHead, Tail, Totals};
use serde::Serialize;
use serde::de::DeserializeOwned;
use store::{Key, Seq};

use super::findings;
use crate::envelope::{self, Kind, Stamp, seal};
use crate::fsck::Code;
use crate::layout::Layout;
use crate::tests::fixture::{Fleet, Folder, Opened, copy};
use crate::tests::removal::{finished, prepared, prune};

/// A state from which jobs and artifacts were removed in every way: the first two and the fifth of eight jobs are gone,
/// and an artifact of the sixth. The last two are the newest successes.
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
        delete(&opened, jobs[4]).await;
        let remove = RemoveArtifacts {
            job: opened.state.job(jobs[5]).await.unwrap().unwrap(),
            names: vec!["cache".to_owned()],
            reason: Reason::Expired,
            actor: Actor::Daemon,
        };
        opened.state.remove_artifacts(remove).await.unwrap();
        opened.close();
        Self {
            folder,
            fleet,
            jobs,
        }
    }

    fn path(&self, key: &Key) -> PathBuf {
        self.folder.root().join(key.as_str())
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

    /// What a check finds after a record was changed by a program that seals what it writes.
    fn codes_after<B: Serialize + DeserializeOwned>(
        &self,
        kind: Kind,
        key: &Key,
        change: impl FnOnce(&mut B),
    ) -> Vec<Code> {
        let before = fs::read(self.path(key)).unwrap();
        self.change(kind, key, change);
        let codes = self.codes();
        fs::write(self.path(key), before).unwrap();
        codes
    }

    fn change<B: Serialize + DeserializeOwned>(
        &self,
        kind: Kind,
        key: &Key,
        change: impl FnOnce(&mut B),
    ) {
        // The live index would say so as well.
        let _ = fs::remove_dir_all(self.folder.root().join("index"));
        let bytes = fs::read(self.path(key)).unwrap();
        let record = envelope::read(&bytes).unwrap();
        let (id, live, stamp) = (record.id.clone(), record.live, record.stamp);
        let mut body: B = record.body().unwrap();
        change(&mut body);
        let bytes = seal(kind, &id, live, stamp, &body).unwrap();
        fs::write(self.path(key), bytes).unwrap();
    }

    /// Moves everything behind the given line of the history to a page of its own, as a long history has them.
    fn split_history(&self, lines: usize) {
        let scan = self.fleet.scan("build");
        let page = |page| self.path(&Layout::history(&scan, page));
        let text = fs::read_to_string(page(0)).unwrap();
        let all: Vec<&str> = text.split_inclusive('\n').collect();
        let (first, second) = (all[..lines].concat(), all[lines..].concat());
        fs::write(page(0), first).unwrap();
        fs::write(page(1), &second).unwrap();
        fs::set_permissions(page(1), fs::Permissions::from_mode(0o600)).unwrap();
        self.change(Kind::ScanHead, &self.head(), |head: &mut ScanHead| {
            head.history = Tail {
                page: 1,
                bytes: second.len() as u64,
            };
        });
    }
}

async fn delete(opened: &Opened, job: JobId) {
    let job = opened.state.job(job).await.unwrap().unwrap();
    let actor = Actor::Daemon;
    opened.state.submit(DeleteJob { job, actor }).await.unwrap();
}

#[tokio::test]
async fn counters_that_do_not_add_up_are_found() {
    let removed = Removed::new().await;
    assert_eq!(removed.codes(), []);
    let retention = removed.retention();
    let changed =
        |change: fn(&mut Retention)| removed.codes_after(Kind::Retention, &retention, change);
    assert_eq!(changed(|_| ()), []);
    let totals = [Code::RetentionTotals];
    assert_eq!(changed(|it| it.removed.succeeded += 1), totals);
    assert_eq!(changed(|it| it.removed.succeeded -= 1), totals);
    assert_eq!(changed(|it| it.removed.failed += 1), totals);
    assert_eq!(
        changed(|it| it.note_gone_ahead(EndState::Succeeded)),
        totals
    );
    assert_eq!(changed(|it| it.gone_ahead.clear()), totals);
    let swapped = changed(|it| {
        it.gone_ahead.clear();
        it.note_gone_ahead(EndState::Failed);
    });
    assert_eq!(swapped, totals);
    assert_eq!(changed(|it| it.removed.bytes *= 9), totals);
    assert_eq!(changed(|it| it.removed.bytes = 0), totals);
    assert_eq!(changed(|it| it.removed.bytes += 1), [Code::KeptDiffers]);

    let head = removed.head();
    let changed = |change: fn(&mut Totals)| {
        let change = |head: &mut ScanHead| change(&mut head.totals);
        removed.codes_after(Kind::ScanHead, &head, change)
    };
    assert_eq!(changed(|totals| totals.bytes += 1), [Code::HeadTotals]);
    assert_eq!(changed(|totals| totals.succeeded += 1), [Code::HeadTotals]);
}

#[tokio::test]
async fn a_place_that_is_none_of_the_history_is_found() {
    let removed = Removed::new().await;
    let retention = removed.retention();
    let changed = |change: &dyn Fn(&mut Retention)| {
        removed.codes_after(Kind::Retention, &retention, |it: &mut Retention| change(it))
    };
    let differs = [Code::RetentionDiffers];
    assert_eq!(changed(&|it| it.from.at += 1), differs);
    assert_eq!(changed(&|it| it.from.at += 1 << 30), differs);
    assert_eq!(changed(&|it| it.from.page += 1), differs);
    let stays = FinishedJob {
        id: removed.jobs[6],
        state: EndState::Succeeded,
        finished_at: model::Timestamp::UNIX_EPOCH,
        bytes: 0,
        page: 0,
    };
    assert_eq!(changed(&|it| it.passed_over.push(stays.clone())), differs);
    let other = FinishedJob {
        id: removed.jobs[0],
        ..stays
    };
    assert_eq!(changed(&|it| it.passed_over.push(other.clone())), differs);
}

#[tokio::test]
async fn jobs_that_had_to_stay_are_counted() {
    let mut removed = Removed::new().await;
    let opened = removed.folder.open().await;
    prune(&opened, removed.fleet, 9).await;
    opened.close();
    assert_eq!(removed.codes(), []);
    let retention = removed.retention();
    let changed =
        |change: fn(&mut Retention)| removed.codes_after(Kind::Retention, &retention, change);
    assert_eq!(
        changed(|it| it.passed_over.truncate(it.passed_over.len() - 1)),
        [Code::RetentionTotals]
    );
    let other_bytes = changed(|it| it.passed_over[0].bytes += 1);
    assert_eq!(other_bytes, [Code::RetentionDiffers]);
}

#[tokio::test]
async fn jobs_that_are_gone_or_came_back_are_found() {
    let removed = Removed::new().await;
    // Nothing of it runs out any more, so nothing else misses it.
    let key = Layout::job(removed.jobs[5]);
    let job = removed.path(&key).parent().unwrap().to_owned();
    let aside = removed.folder.root().with_extension("aside");
    fs::rename(&job, &aside).unwrap();
    assert_eq!(removed.codes(), [Code::KeptDiffers]);
    let quarantine = removed.folder.root().join("quarantine").join(key.as_str());
    let quarantine = quarantine.parent().unwrap();
    fs::create_dir_all(quarantine.parent().unwrap()).unwrap();
    fs::rename(&aside, quarantine).unwrap();
    assert_eq!(removed.codes(), [], "it is known where it is");
    fs::rename(quarantine, &job).unwrap();
    assert_eq!(removed.codes(), []);
    // One that cannot be read is told of itself, and not once more by its absence.
    fs::write(removed.path(&key), "{").unwrap();
    let codes: BTreeSet<Code> = removed.codes().into_iter().collect();
    assert!(codes.contains(&Code::RecordMalformed));
    assert!(!codes.contains(&Code::KeptDiffers), "{codes:?}");
}

#[tokio::test]
async fn what_runs_out_without_a_record_and_records_of_nothing_are_found() {
    let removed = Removed::new().await;
    let job = removed.jobs[6];
    let found = removed.folder.files().into_iter();
    let expiry = found
        .filter(|path| path.starts_with("expiries") && path.contains(&job.to_string()))
        .map(|path| Key::new(path).unwrap());
    let expiry = expiry.max().unwrap();
    let bytes = fs::read(removed.path(&expiry)).unwrap();
    let aside = removed.folder.root().with_extension("aside");
    fs::rename(removed.path(&expiry), &aside).unwrap();
    assert_eq!(removed.codes(), [Code::ExpiryMissing]);
    fs::rename(&aside, removed.path(&expiry)).unwrap();
    assert_eq!(removed.codes(), []);

    let known: Expiry = envelope::open(Kind::Expiry, &bytes).unwrap();
    let stray = |expiry: Expiry| {
        let (revision, sequence) = (1, Seq(1));
        let stamp = Stamp { revision, sequence };
        let key = Layout::expiry(&expiry);
        let id = expiry.job.to_string();
        let bytes = seal(Kind::Expiry, &id, false, stamp, &expiry).unwrap();
        let path = removed.path(&key);
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
    assert!(!removed.path(&Layout::history(&scan, 0)).exists());
    assert_eq!(removed.codes(), []);

    let retention = removed.retention();
    let changed =
        |change: fn(&mut Retention)| removed.codes_after(Kind::Retention, &retention, change);
    assert_eq!(
        changed(|it| it.removed.succeeded += 1),
        [Code::RetentionTotals]
    );
    let early = changed(|it| it.from = Position { page: 1, at: 3 });
    assert_eq!(early, [Code::RetentionDiffers]);
    let head = removed.head();
    let changed = |change: fn(&mut ScanHead)| removed.codes_after(Kind::ScanHead, &head, change);
    let counted = changed(|head| head.totals.succeeded += 1);
    assert_eq!(counted, [Code::RetentionTotals]);
    let swapped = changed(|head| head.successes.reverse());
    assert_eq!(swapped, [Code::HeadSuccesses]);

    // A job that was removed comes back from somewhere, without its line.
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
