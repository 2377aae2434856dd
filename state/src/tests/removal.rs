//! Tests the removal of jobs and artifacts.

use bytes::Bytes;
use model::decide::{Prune, StoreArtifact};
use model::retention::Position;
use model::{Job, JobId, Timestamp};
use store::Key;

use super::fixture::{Fleet, Folder, Opened, line, scan_name, token};
use super::picture::picture;
use crate::JobFilter;
use crate::envelope;
use crate::layout::Layout;

/// The artifact `cache` expires after a day, and `report` is kept.
pub(crate) const EXPIRING: &str = "\
scans:
  build:
    on: {dispatch: {}}
    steps: [{run: make}]
    artifacts:
      - {name: report, paths: [out]}
      - {name: cache, paths: [cache], expires_in: 1d}
  announce:
    on:
      expr: size(scans.build) > 3
    steps: [{run: announce}]
";

pub(super) async fn prepared() -> (Folder, Opened, Fleet) {
    let (folder, opened, fleet) = Folder::prepared().await;
    let workflow = opened.activate("expiring", EXPIRING).await;
    (folder, opened, Fleet { workflow, ..fleet })
}

/// A finished job with a log and artifacts of 100 bytes each.
pub(crate) async fn finished(opened: &Opened, fleet: Fleet, artifacts: &[&str]) -> JobId {
    let job = opened.running_job(fleet, "build").await;
    let logs = opened.state.logs();
    logs.append(job, 0, vec![line("hello")]).await.unwrap();
    for name in artifacts {
        let upload = opened.state.begin_upload().await.unwrap();
        let upload = upload.write(Bytes::from(vec![7; 100])).await.unwrap();
        let received = upload.finish().await.unwrap();
        let store = StoreArtifact {
            job,
            token: token(job),
            name: (*name).to_owned(),
            size: received.size(),
            sha256: workflow::hex(&received.sha256()),
            content_digest: "d".to_owned(),
        };
        opened.state.store_artifact(store, received).await.unwrap();
    }
    let completion = super::fixture::completion(job, 1);
    opened.state.complete(completion).await.unwrap();
    job
}

/// Removes the `count` oldest jobs of the scan `build`, except protected jobs. Returns how many were removed.
pub(super) async fn prune(opened: &Opened, fleet: Fleet, count: usize) -> u64 {
    let scan = fleet.scan("build");
    let state = &opened.state;
    let from = state.read(|world| world.retention(&scan).map(|it| it.from));
    let from = from.unwrap_or_default();
    let found = state.finished_after(&scan, from, count).await.unwrap();
    let mut remove = Vec::new();
    for candidate in &found.jobs {
        let job = state.job(candidate.job.id).await.unwrap();
        remove.extend(job.map(|job| (candidate.job.clone(), job)));
    }
    let last = found.jobs.last().and_then(|candidate| candidate.end);
    let before = retained(opened, fleet).0;
    let prune = Prune {
        scan,
        from: last.unwrap_or(from),
        remove,
        stay: Vec::new(),
        gone: Vec::new(),
    };
    state.submit(prune).await.unwrap();
    before - retained(opened, fleet).0
}

async fn listed(opened: &Opened, fleet: Fleet) -> Vec<JobId> {
    let filter = JobFilter {
        workflow: Some(fleet.workflow),
        scan: Some(scan_name("build")),
        ..JobFilter::default()
    };
    let page = opened.state.jobs(&filter, None, 100).await.unwrap();
    assert_eq!(page.next, None);
    page.jobs.iter().rev().map(|job| job.id).collect()
}

/// Whether a path in the state folder contains the id of the job.
fn is_on_disk(folder: &Folder, job: JobId) -> bool {
    let id = job.to_string();
    folder.walk().keys().any(|path| path.contains(&id))
}

fn retained(opened: &Opened, fleet: Fleet) -> (u64, u64) {
    opened.state.read(|world| {
        let retained = world.retained(world.head(&fleet.scan("build")).unwrap());
        (retained.jobs(), retained.bytes)
    })
}

#[tokio::test]
async fn removed_jobs_stay_removed() {
    let (mut folder, opened, fleet) = prepared().await;
    let mut jobs = Vec::new();
    for _ in 0..6 {
        jobs.push(finished(&opened, fleet, &["report", "cache"]).await);
    }
    let (count, bytes) = retained(&opened, fleet);
    assert_eq!(count, 6);
    assert_eq!(prune(&opened, fleet, 4).await, 4);
    assert_eq!(retained(&opened, fleet), (2, bytes / 6 * 2));
    opened.delete(jobs[4]).await;
    assert_eq!(listed(&opened, fleet).await, [jobs[5]]);
    assert_eq!(retained(&opened, fleet), (1, bytes / 6));
    opened.state.settled().await.unwrap();
    for job in &jobs[..5] {
        assert!(!is_on_disk(&folder, *job), "{job}");
        assert!(opened.state.job(*job).await.unwrap().is_none());
    }
    assert!(is_on_disk(&folder, jobs[5]));
    let before = opened.state.read(picture);
    let mut crashed = folder.crashed();
    opened.close();
    for folder in [&mut folder, &mut crashed] {
        for part in ["", "index"] {
            if !part.is_empty() {
                std::fs::remove_dir_all(folder.root().join(part)).unwrap();
            }
            let opened = folder.open().await;
            assert_eq!(opened.state.read(picture), before, "without `{part}`");
            assert_eq!(listed(&opened, fleet).await, [jobs[5]]);
            assert_eq!(retained(&opened, fleet), (1, bytes / 6));
            opened.close();
        }
    }
}

#[tokio::test]
async fn expressions_do_not_see_deleted_jobs_even_after_a_restart() {
    let (mut folder, opened, fleet) = prepared().await;
    let mut jobs = Vec::new();
    for _ in 0..4 {
        jobs.push(finished(&opened, fleet, &[]).await);
    }
    let announced = |opened: &Opened| {
        let scan = fleet.scan("announce");
        opened.state.read(|world| world.unfinished_of(&scan))
    };
    assert_eq!(
        announced(&opened),
        1,
        "four jobs do not trigger the expression"
    );
    let announce = opened.state.read(|world| {
        let scan = fleet.scan("announce");
        world.jobs_of(&scan).next().unwrap().id
    });
    opened.cancel(announce).await;
    for job in &jobs[1..3] {
        opened.delete(*job).await;
    }
    opened.close();
    let opened = folder.open().await;
    finished(&opened, fleet, &[]).await;
    assert_eq!(
        announced(&opened),
        0,
        "deleted jobs still count for the expression"
    );
    finished(&opened, fleet, &[]).await;
    assert_eq!(announced(&opened), 1);
}

/// The revision number in the record of a job.
fn revision(folder: &Folder, job: JobId) -> u64 {
    let bytes = std::fs::read(folder.path(&Layout::job(job))).unwrap();
    envelope::read(&bytes).unwrap().stamp.revision
}

#[tokio::test]
async fn an_artifact_expires_on_its_own_and_its_record_stays() {
    let (mut folder, opened, fleet) = prepared().await;
    let job = finished(&opened, fleet, &["report", "cache"]).await;
    let now = || Timestamp::from_timestamp_millis(1_795_176_000_000).unwrap();
    let later = |hours| now() + chrono::TimeDelta::hours(hours);
    assert!(opened.state.expired(later(23)).await.unwrap().is_empty());
    opened.state.settled().await.unwrap();
    let due = opened.state.expired(later(25)).await.unwrap();
    assert_eq!(
        due.iter().map(|expiry| expiry.job).collect::<Vec<_>>(),
        [job]
    );
    let before = revision(&folder, job);
    let marked = opened.remove_artifact(job, "cache").await;
    opened.close();
    let opened = folder.open().await;
    assert_eq!(opened.state.job(job).await.unwrap().unwrap(), marked);
    assert_eq!(revision(&folder, job), before + 1);
    let files = folder.files();
    assert!(files.contains(Layout::artifact(job, "report").as_str()));
    assert!(!files.contains(Layout::artifact(job, "cache").as_str()));
    assert!(!files.iter().any(|path| path.starts_with("expiries")));
    assert!(opened.state.expired(later(50)).await.unwrap().is_empty());
}

/// Makes a record unreadable. Nobody may have the folder open.
fn damage(folder: &Folder, key: &Key, member: &str) {
    let path = folder.path(key);
    let text = std::fs::read_to_string(&path).unwrap();
    std::fs::write(&path, text.replace(member, "other")).unwrap();
    folder.remove_index();
}

#[tokio::test]
async fn after_the_loss_of_a_record_each_existing_job_is_counted_once() {
    let (mut folder, opened, fleet) = prepared().await;
    let mut jobs = Vec::new();
    for _ in 0..5 {
        jobs.push(finished(&opened, fleet, &["report", "cache"]).await);
    }
    prune(&opened, fleet, 1).await;
    opened.delete(jobs[2]).await;
    opened.remove_artifact(jobs[3], "cache").await;
    let before = retained(&opened, fleet);
    assert_eq!(before.0, 3);
    opened.close();

    let scan = fleet.scan("build");
    damage(&folder, &Layout::retention(&scan), "removed");
    let opened = folder.open().await;
    assert_eq!(
        retained(&opened, fleet),
        before,
        "without the retention record"
    );
    assert_eq!(listed(&opened, fleet).await, [jobs[1], jobs[3], jobs[4]]);
    opened.close();
    damage(&folder, &Layout::head(&scan), "latest_job");
    let opened = folder.open().await;
    assert_eq!(retained(&opened, fleet), before, "without the head");
    assert_eq!(listed(&opened, fleet).await, [jobs[1], jobs[3], jobs[4]]);
    assert_eq!(opened.head(fleet, "build").totals.succeeded, 5);
    opened.close();

    // Jobs removed by hand count until a repair, even if the head is lost.
    let by_hand = folder.path(&Layout::job(jobs[1]));
    std::fs::remove_dir_all(by_hand.parent().unwrap()).unwrap();
    damage(&folder, &Layout::head(&scan), "latest_job");
    let opened = folder.open().await;
    assert_eq!(retained(&opened, fleet), before, "without a job");
    assert_eq!(prune(&opened, fleet, 9).await, 2);
    assert_eq!(retained(&opened, fleet).0, 1);
    opened.close();
}

#[tokio::test]
async fn a_history_is_read_forward_across_its_pages() {
    let (mut folder, opened, fleet) = prepared().await;
    let mut jobs = Vec::new();
    for _ in 0..7 {
        jobs.push(finished(&opened, fleet, &[]).await);
    }
    let scan = fleet.scan("build");
    let mut from = Position::default();
    let mut read = Vec::new();
    loop {
        let found = opened.state.finished_after(&scan, from, 2).await.unwrap();
        read.extend(found.jobs.iter().map(|it| it.job.id));
        from = found.jobs.last().and_then(|it| it.end).unwrap_or(from);
        if found.is_whole {
            break;
        }
    }
    assert_eq!(read, jobs);
    opened.close();
    // Cut the page after its third line, as if it were full.
    let root = folder.root().to_owned();
    let page = |page| root.join(Layout::history(&scan, page).as_str());
    let text = std::fs::read_to_string(page(0)).unwrap();
    let lines: Vec<&str> = text.split_inclusive('\n').collect();
    std::fs::write(page(0), lines[..3].concat()).unwrap();
    let opened = folder.open().await;
    let next = finished(&opened, fleet, &[]).await;
    let found = opened
        .state
        .finished_after(&scan, Position::default(), 9)
        .await;
    let found = found.unwrap();
    let ids: Vec<JobId> = found.jobs.iter().map(|it| it.job.id).collect();
    assert_eq!(ids, [jobs[0], jobs[1], jobs[2], next]);
    assert_eq!(found.jobs[2].end, Some(Position { page: 1, at: 0 }));
    assert_eq!(prune(&opened, fleet, 3).await, 3);
    opened.state.settled().await.unwrap();
    assert!(!page(0).exists() && page(1).exists());
    assert_eq!(listed(&opened, fleet).await.last(), Some(&next));
    opened.close();
    folder.open().await.close();
}

#[tokio::test]
async fn a_cached_job_has_its_latest_changes() {
    let (mut folder, opened, fleet) = Folder::prepared().await;
    let job = opened.running_job(fleet, "build").await;
    opened.store_artifact(job, "report", "zip").await;
    opened.complete(job).await;
    opened.close();
    let opened = folder.open().await;
    let shown = async || opened.state.job(job).await.unwrap();
    let artifact = |job: &Job| job.state.run().unwrap().artifacts[0].removed.clone();
    // The first read is from the file, and the second from the cache.
    for _ in 0..2 {
        assert_eq!(artifact(&shown().await.unwrap()), None);
    }
    opened.remove_artifact(job, "report").await;
    assert!(artifact(&shown().await.unwrap()).is_some());
    opened.delete(job).await;
    assert!(shown().await.is_none());
}
