//! Tests lists of live and finished jobs.

pub(super) mod bounded;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use bytes::Bytes;
use model::decide::{Cancel, Claim, Command, Evaluate};
use model::{Actor, Entropy, JobId, StateKind, Timestamp};
use store::memory::MemoryStore;
use store::{Batch, Engine, Key, Put, Reader};

use super::fixture::{Fleet, Folder, Opened, completion, scan_name, token};
use crate::history::{CursorResult, HistoryCursor, KnownPast, Wanted};
use crate::jobs::Listing;
use crate::layout::Layout;
use crate::limits::{HISTORY_PIECE_BYTES, LINE_BEGIN_BYTES, LINES_OF_A_PIECE};
use crate::page_index::PageIndex;
use crate::reader::StoreReader;
use crate::{DamagedLines, JobFilter, State};

/// 300 jobs of both scans with their states: most succeed or are cancelled, out of order; some run and some wait.
async fn many_jobs(
    folder: &Folder,
    opened: &Opened,
    fleet: Fleet,
) -> BTreeMap<JobId, (&'static str, &'static str)> {
    let mut jobs = BTreeMap::new();
    let mut running = Vec::new();
    for _ in 0..10 {
        folder.advance(1_000);
        let state = &opened.state;
        let scans = ["check", "build", "build"].repeat(10);
        let made = together(
            scans
                .iter()
                .map(|scan| submit(state, opened.dispatch(fleet, scan))),
        )
        .await;
        jobs.extend(
            made.iter()
                .zip(scans)
                .map(|(id, scan)| (*id, (scan, "scheduled"))),
        );
        folder.advance(1_000);
        let cancelled: Vec<_> = made.iter().copied().skip(1).step_by(7).collect();
        together(cancelled.iter().map(|job| {
            submit(
                state,
                Cancel {
                    job: *job,
                    actor: Actor::Daemon,
                },
            )
        }))
        .await;
        let claimed: Vec<_> = made
            .into_iter()
            .filter(|job| !cancelled.contains(job))
            .take(22)
            .collect();
        let claims = claimed.iter().map(|job| Claim {
            job: *job,
            runner: fleet.runner,
            token: token(*job),
            job_token: None,
            evaluate: Evaluate::CHEAP,
        });
        together(claims.map(|claim| submit(state, claim))).await;
        running.extend(&claimed);
        // The two oldest jobs keep running, so that later jobs end before them. The others end in reverse order.
        let ended: Vec<_> = running.drain(2..).rev().collect();
        together(ended.iter().map(|job| submit(state, completion(*job, 0)))).await;
        let set_state = |jobs: &mut BTreeMap<JobId, (&str, &'static str)>, ids: &[JobId], state| {
            ids.iter()
                .for_each(|id| jobs.get_mut(id).unwrap().1 = state);
        };
        set_state(&mut jobs, &cancelled, "cancelled");
        set_state(&mut jobs, &running, "running");
        set_state(&mut jobs, &ended, "succeeded");
    }
    opened.complete(running[0]).await;
    jobs.get_mut(&running[0]).unwrap().1 = "succeeded";
    jobs
}

fn submit<C: Command>(
    state: &State,
    command: C,
) -> impl Future<Output = C::Answer> + Send + 'static {
    let state = state.clone();
    async move { state.submit(command).await.unwrap() }
}

/// Runs futures concurrently, so that their commands share commits. Returns the answers in order.
async fn together<T: Send + 'static>(
    asks: impl Iterator<Item = impl Future<Output = T> + Send + 'static>,
) -> Vec<T> {
    let tasks: Vec<_> = asks.map(tokio::spawn).collect();
    let mut answers = Vec::with_capacity(tasks.len());
    for task in tasks {
        answers.push(task.await.unwrap());
    }
    answers
}

async fn all_pages(opened: &Opened, filter: &JobFilter, limit: usize) -> Vec<JobId> {
    let (mut listed, mut before) = (Vec::new(), None);
    loop {
        let page = opened.state.jobs(filter, before, limit).await.unwrap();
        assert!(page.jobs.len() <= limit && (page.jobs.len() == limit || page.next.is_none()));
        listed.extend(page.jobs.iter().map(|job| job.id));
        before = page.next;
        if before.is_none() {
            return listed;
        }
    }
}

#[tokio::test]
async fn for_every_filter_each_job_is_listed_once_newest_first() {
    let (mut folder, opened, fleet) = Folder::prepared().await;
    let jobs = many_jobs(&folder, &opened, fleet).await;
    let lists = [
        (None, None, 300),
        (None, None, 41),
        (Some("build"), None, 17),
        (Some("check"), Some("succeeded"), 9),
        (None, Some("cancelled"), 10),
        (Some("build"), Some("running"), 1),
        (None, Some("scheduled"), 5),
        (None, Some("failed"), 5),
        (Some("none"), None, 5),
    ];
    let check = async |opened: &Opened| {
        for (scan, state, limit) in lists {
            let is_wanted = |job: &(&str, &str)| {
                scan.is_none_or(|scan| job.0 == scan) && state.is_none_or(|state| job.1 == state)
            };
            let wanted = jobs.iter().rev().filter(|(_, job)| is_wanted(job));
            let expected: Vec<JobId> = wanted.map(|(id, _)| *id).collect();
            let filter = JobFilter {
                workflow: scan.map(|_| fleet.workflow),
                scan: scan.map(scan_name),
                state: state.and_then(StateKind::named),
                ..JobFilter::default()
            };
            let listed = all_pages(opened, &filter, limit).await;
            assert_eq!(listed, expected, "{scan:?} {state:?} by {limit}");
        }
    };
    check(&opened).await;
    opened.close();
    check(&folder.open().await).await;
}

#[tokio::test]
async fn a_job_that_ends_while_it_is_listed_is_listed_once() {
    let (_folder, opened, fleet) = Folder::prepared().await;
    let done = opened.running_job(fleet, "build").await;
    opened.complete(done).await;
    let ending = opened.running_job(fleet, "build").await;
    let filter = JobFilter::default();
    let listing = opened
        .state
        .read(|world| Listing::of(world, &filter, None, 10));
    opened.complete(ending).await;
    let page = listing
        .page(opened.state.reader(), &Arc::default(), &filter, None, 10, 1)
        .await
        .unwrap();
    let listed: Vec<_> = page
        .jobs
        .iter()
        .map(|job| (job.id, job.state.name()))
        .collect();
    assert_eq!(listed, [(ending, "running"), (done, "succeeded")]);
}

#[tokio::test]
async fn a_damaged_finished_job_does_not_hide_other_jobs() {
    let (mut folder, opened, fleet) = Folder::prepared().await;
    let mut jobs = Vec::new();
    for _ in 0..3 {
        jobs.push(opened.running_job(fleet, "build").await);
    }
    for job in &jobs {
        opened.complete(*job).await;
    }
    opened.close();
    std::fs::write(folder.path(&Layout::job(jobs[1])), "{}").unwrap();
    let opened = folder.open().await;
    assert_eq!(
        all_pages(&opened, &JobFilter::default(), 2).await,
        [jobs[2], jobs[0]]
    );
}

#[tokio::test]
async fn a_cursor_reads_across_pages() {
    let (mut folder, opened, fleet) = Folder::prepared().await;
    let state = &opened.state;
    let made = together((0..30).map(|_| submit(state, opened.dispatch(fleet, "build")))).await;
    together(made.iter().map(|job| {
        submit(
            state,
            Cancel {
                job: *job,
                actor: Actor::Daemon,
            },
        )
    }))
    .await;
    let jobs = BTreeSet::from_iter(made);
    opened.close();
    // Split the history into three pages of ten lines, as a long history has several pages.
    let scan = fleet.scan("build");
    let path = |page| folder.path(&Layout::history(&scan, page));
    let text = std::fs::read_to_string(path(0)).unwrap();
    let lines: Vec<&str> = text.split_inclusive('\n').collect();
    for (page, lines) in lines.chunks(10).enumerate() {
        std::fs::write(path(page as u64), lines.concat()).unwrap();
    }
    let opened = folder.open().await;
    // The head says that page 0 is longer than it is now, so the next line would go to page 1. Put it after the last
    // page instead.
    let mut head = model::ScanHead::clone(&opened.head(fleet, "build"));
    head.history = model::TailEnd { page: 3, bytes: 0 };
    let past = opened
        .state
        .read(|world| KnownPast::of(world, &Arc::new(head)));
    let cursor = |before| {
        let wanted = Wanted {
            before,
            ..Wanted::default()
        };
        HistoryCursor::new(opened.state.reader().clone(), Arc::default(), &past, wanted)
    };
    for before in [None, jobs.iter().nth(15).copied()] {
        let mut cursor = cursor(before);
        let mut read = Vec::new();
        while let CursorResult::Job(job) = cursor.newest(&mut 3).await.unwrap() {
            cursor.pop();
            read.push(job);
        }
        let expected: Vec<_> = jobs
            .iter()
            .rev()
            .filter(|job| before.is_none_or(|before| **job < before))
            .copied()
            .collect();
        assert_eq!(read, expected);
    }
}

#[tokio::test]
async fn a_list_reports_damaged_lines_of_its_histories() {
    let (mut folder, opened, fleet) = Folder::prepared().await;
    for _ in 0..5 {
        let job = opened.running_job(fleet, "build").await;
        opened.complete(job).await;
    }
    opened.close();
    let file = Layout::history(&fleet.scan("build"), 0).to_string();
    let path = folder.root().join(&file);
    let whole = std::fs::read_to_string(&path).unwrap();
    let lines = whole.split_inclusive('\n').enumerate();
    let damaged: String = lines
        .map(|(n, line)| match n {
            1 | 3 => line.replacen('{', "[", 1),
            _ => line.to_owned(),
        })
        .collect();
    std::fs::write(&path, damaged).unwrap();
    let opened = folder.open().await;
    let filter = JobFilter::default();
    // The second list uses the summaries of the first list.
    for _ in 0..2 {
        let page = opened.state.jobs(&filter, None, 50).await.unwrap();
        assert_eq!(page.jobs.len(), 3);
        let file = file.clone();
        assert_eq!(page.damaged, [DamagedLines { file, lines: 2 }]);
    }
    let other = JobFilter {
        scan: Some(scan_name("check")),
        ..JobFilter::default()
    };
    let page = opened.state.jobs(&other, None, 50).await.unwrap();
    assert!(page.damaged.is_empty());
}

/// The history is cut within a line, cut after a line, or removed. The next start also notices this and continues with
/// the next page.
#[tokio::test]
async fn a_list_reports_a_history_that_has_lost_its_end() {
    let (mut folder, opened, fleet) = Folder::prepared().await;
    for _ in 0..3 {
        let job = opened.running_job(fleet, "build").await;
        opened.complete(job).await;
    }
    opened.state.settled().await.unwrap();
    opened.close();
    let scan = fleet.scan("build");
    let file = Layout::history(&scan, 0).to_string();
    let path = folder.root().join(&file);
    let whole = std::fs::read(&path).unwrap();
    let third = whole.len() - 1;
    let second = whole[..third].iter().rposition(|byte| *byte == b'\n');
    let second = second.unwrap() + 1;
    for (left, jobs) in [(Some(third - 9), 2), (Some(second), 2), (None, 0)] {
        std::fs::write(&path, &whole).unwrap();
        let opened = folder.open().await;
        match left {
            Some(left) => std::fs::write(&path, &whole[..left]).unwrap(),
            None => std::fs::remove_file(&path).unwrap(),
        }
        let lines = 1;
        let file = file.clone();
        let damaged = [DamagedLines { file, lines }];
        let check = async |opened: &Opened, damaged: &[DamagedLines]| {
            let list = opened.state.jobs(&JobFilter::default(), None, 50).await;
            let list = list.unwrap();
            assert_eq!(
                (list.jobs.len(), &*list.damaged),
                (jobs, damaged),
                "{left:?}"
            );
            let page = opened.state.history(&scan, None, 50).await.unwrap();
            assert_eq!(
                (page.lines.len(), &*page.damaged),
                (jobs, damaged),
                "{left:?}"
            );
        };
        check(&opened, &damaged).await;
        opened.close();
        let opened = folder.open().await;
        check(&opened, &damaged).await;
        opened.close();
    }
}
