//! Lists over live and finished jobs.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use bytes::Bytes;
use model::decide::{Cancel, Claim, Command, Evaluate};
use model::{Actor, Entropy, JobId, StateKind, Timestamp};
use store::memory::MemoryStore;
use store::{Batch, Engine, Key, Put, Reader};

use super::fixture::{Fleet, Folder, Opened, completion, scan_name, token};
use crate::history::{HistoryCursor, KnownPast, Look, Wanted};
use crate::jobs::Listing;
use crate::layout::Layout;
use crate::limits::{HISTORY_PIECE_BYTES, LINE_BEGIN_BYTES, LINES_OF_A_PIECE};
use crate::page_index::PageIndex;
use crate::reader::StoreReader;
use crate::{DamagedLines, JobFilter, State};

/// 300 jobs of both scans with how they stand: most succeed or are cancelled, out of order; some run and some wait.
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
            evaluate: Evaluate::CHEAP,
        });
        together(claims.map(|claim| submit(state, claim))).await;
        running.extend(&claimed);
        // The two oldest go on, so that later jobs end before them; the others end in the opposite order.
        let ended: Vec<_> = running.drain(2..).rev().collect();
        together(ended.iter().map(|job| submit(state, completion(*job, 0)))).await;
        let stand = |jobs: &mut BTreeMap<JobId, (&str, &'static str)>, ids: &[JobId], state| {
            ids.iter()
                .for_each(|id| jobs.get_mut(id).unwrap().1 = state);
        };
        stand(&mut jobs, &cancelled, "cancelled");
        stand(&mut jobs, &running, "running");
        stand(&mut jobs, &ended, "succeeded");
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

/// Things that are asked at once share commits, and come in the order in which they stand here.
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
async fn every_job_is_listed_once_newest_first_whatever_the_filter() {
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
async fn a_finished_job_that_is_damaged_does_not_hide_the_others() {
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
async fn histories_go_on_over_pages() {
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
    // Three pages as a long history would have them, of ten lines each.
    let scan = fleet.scan("build");
    let path = |page| folder.path(&Layout::history(&scan, page));
    let text = std::fs::read_to_string(path(0)).unwrap();
    let lines: Vec<&str> = text.split_inclusive('\n').collect();
    for (page, lines) in lines.chunks(10).enumerate() {
        std::fs::write(path(page as u64), lines.concat()).unwrap();
    }
    let opened = folder.open().await;
    // The head says that page 0 is longer than it is now, so the next line goes to page 1; put it at the end instead.
    let mut head = model::ScanHead::clone(&opened.head(fleet, "build"));
    head.history = model::Tail { page: 3, bytes: 0 };
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
        while let Look::Job(job) = cursor.newest(&mut 3).await.unwrap() {
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

/// Counts the files, or pieces of them, that are read.
#[derive(Clone)]
struct Counting<R>(R, Arc<Reads>);

#[derive(Default)]
struct Reads {
    files: AtomicUsize,
    bytes: AtomicUsize,
}

impl Reads {
    fn add(&self, bytes: Option<usize>) {
        self.files.fetch_add(1, Ordering::SeqCst);
        self.bytes.fetch_add(bytes.unwrap_or(0), Ordering::SeqCst);
    }

    fn take(&self) -> (usize, usize) {
        let take = |count: &AtomicUsize| count.swap(0, Ordering::SeqCst);
        (take(&self.files), take(&self.bytes))
    }
}

impl<R: Reader> Reader for Counting<R> {
    async fn get(&self, key: &Key) -> Result<Option<Bytes>, store::ReadError> {
        let found = self.0.get(key).await?;
        self.1.add(found.as_ref().map(Bytes::len));
        Ok(found)
    }

    async fn piece(
        &self,
        key: &Key,
        before: u64,
        limit: usize,
    ) -> Result<Option<store::Piece>, store::ReadError> {
        let found = self.0.piece(key, before, limit).await?;
        self.1.add(found.as_ref().map(|piece| piece.bytes.len()));
        Ok(found)
    }

    async fn get_many(&self, keys: Vec<Key>) -> Result<Vec<Option<Bytes>>, store::ReadError> {
        let found = self.0.get_many(keys).await?;
        for bytes in &found {
            self.1.add(bytes.as_ref().map(Bytes::len));
        }
        Ok(found)
    }

    async fn lengths(&self, keys: Vec<Key>) -> Result<Vec<store::Length>, store::ReadError> {
        self.0.lengths(keys).await
    }

    async fn children(&self, folder: &store::Prefix) -> Result<Vec<String>, store::ReadError> {
        self.0.children(folder).await
    }

    async fn settled(&self) -> Result<(), store::ReadError> {
        self.0.settled().await
    }
}

/// Reads these files from memory, and counts.
async fn counted(files: impl Iterator<Item = (Key, Bytes)>) -> (StoreReader, Arc<Reads>) {
    let mut engine = MemoryStore::new().engine();
    let (epoch, _) = engine.open(&mut |_, _| {}).await.unwrap();
    for (key, bytes) in files {
        let mut batch = Batch::new(epoch);
        batch.puts.insert(key, Put { bytes, live: false });
        engine.commit(batch).await.unwrap();
    }
    let reads = Arc::new(Reads::default());
    let reader = StoreReader::new(Counting(engine.reader(), reads.clone()));
    (reader, reads)
}

#[tokio::test]
async fn a_list_reads_a_bounded_number_of_pages_fruitless_and_goes_on() {
    const PAGES: u64 = 10;
    const FRUITLESS: usize = 3;
    let (folder, opened, fleet) = Folder::prepared().await;
    let failing = opened.running_job(fleet, "build").await;
    let failed = model::decide::Complete {
        steps: Vec::new(),
        failure: Some(model::decide::Failure::Setup("no room".to_owned())),
        ..completion(failing, 0)
    };
    opened.state.complete(failed).await.unwrap();
    let newest = opened.running_job(fleet, "build").await;
    opened.complete(newest).await;
    opened.state.settled().await.unwrap();
    // A long history whose oldest page alone has the failure.
    let line = |id: JobId, state: &str| {
        let at = id.moment();
        format!(
            "{{\"id\":\"{id}\",\"state\":\"{state}\",\"trigger\":\"cron\",\"finished_at\":\"{}\"}}\n",
            at.to_rfc3339()
        )
    };
    let scan = fleet.scan("build");
    let mut files = BTreeMap::from([(Layout::history(&scan, 0), line(failing, "failed").into())]);
    for page in 1..PAGES {
        let succeeded = line(newest, "succeeded").into();
        files.insert(Layout::history(&scan, page), succeeded);
    }
    let record = std::fs::read(folder.path(&Layout::job(failing))).unwrap();
    files.insert(Layout::job(failing), record.into());
    let (reader, reads) = counted(files.into_iter()).await;
    let mut head = model::ScanHead::clone(&opened.head(fleet, "build"));
    head.history = model::Tail {
        page: PAGES,
        bytes: 0,
    };
    let mut world = opened.state.read(model::World::clone);
    world.apply(&model::Change::Head(Arc::new(head)));

    let index = Arc::default();
    let list = async |state: &str, before| {
        let filter = JobFilter {
            state: StateKind::named(state),
            ..JobFilter::default()
        };
        reads.take();
        let page = Listing::of(&world, &filter, before, 5)
            .page(&reader, &index, &filter, before, 5, FRUITLESS)
            .await
            .unwrap();
        let jobs: Vec<JobId> = page.jobs.iter().map(|job| job.id).collect();
        (jobs, page.next, reads.take().0)
    };
    let (mut listed, mut before, mut asked) = (Vec::new(), None, 0);
    loop {
        let (jobs, next, read) = list("failed", before).await;
        assert!(
            read <= FRUITLESS + 2,
            "{read} files for {} jobs",
            jobs.len()
        );
        listed.extend(jobs);
        asked += 1;
        before = next;
        if next.is_none() {
            break;
        }
    }
    assert_eq!((listed, asked), (vec![failing], 4));
    let (jobs, next, read) = list("failed", None).await;
    assert_eq!((jobs, next), (vec![failing], None));
    assert_eq!(
        read, 0,
        "pages without a failure are remembered as such, and the job that was shown is in memory with its line"
    );
    let none = list("cancelled", None).await;
    assert_eq!(
        none,
        (Vec::new(), None, 0),
        "the head knows that there is none"
    );
}

#[tokio::test]
async fn a_list_looks_for_a_bounded_number_of_records_that_are_gone() {
    let (mut folder, opened, fleet) = Folder::prepared().await;
    let mut made = Vec::new();
    for _ in 0..3 * LINES_OF_A_PIECE {
        made.push(opened.new_job(fleet, "build").await);
    }
    for job in &made {
        opened.cancel(*job).await;
    }
    opened.close();
    let left = made[0];
    for job in &made[1..] {
        std::fs::remove_file(folder.path(&Layout::job(*job))).unwrap();
    }
    let opened = folder.open().await;
    let filter = JobFilter::default();
    let index = Arc::default();
    let (mut before, mut asked, mut listed) = (None, 0, Vec::new());
    loop {
        let page = opened
            .state
            .read(|world| Listing::of(world, &filter, before, 10))
            .page(opened.state.reader(), &index, &filter, before, 10, 1)
            .await
            .unwrap();
        listed.extend(page.jobs.iter().map(|job| job.id));
        asked += 1;
        before = page.next;
        if before.is_none() {
            break;
        }
    }
    assert_eq!(listed, [left]);
    assert!(asked >= 3, "{asked} lists for {} records", made.len());
}

#[tokio::test]
async fn a_history_is_read_no_further_than_is_asked_for() {
    const LINES: u64 = 2_000;
    struct Zeros;
    impl Entropy for Zeros {
        fn fill(&mut self, bytes: &mut [u8]) {
            bytes.fill(0);
        }
    }
    let (_folder, opened, fleet) = Folder::prepared().await;
    let scan = fleet.scan("build");
    let mut ids = vec![JobId::FIRST];
    for second in 1..LINES {
        let made = Timestamp::UNIX_EPOCH + std::time::Duration::from_secs(second);
        ids.push(JobId::next(ids[ids.len() - 1], made, &mut Zeros));
    }
    let line = |id: &JobId| {
        let at = (id.moment() + std::time::Duration::from_millis(1)).to_rfc3339();
        format!(
            "{{\"id\":\"{id}\",\"state\":\"succeeded\",\"trigger\":\"cron\",\"finished_at\":\"{at}\"}}\n"
        )
    };
    let text: String = ids.iter().map(line).collect();
    ids.reverse();
    // The last line is of a job that ended after the head was looked at.
    let end = model::Tail {
        page: 4,
        bytes: text.len() as u64,
    };
    let file = (Layout::history(&scan, 4), (text.clone() + &text).into());
    let (reader, reads) = counted([file].into_iter()).await;
    let mut head = model::ScanHead::new(scan.workflow, scan.scan.clone());
    head.history = end;
    head.latest_job = ids[0];
    let past = opened
        .state
        .read(|world| KnownPast::of(world, &Arc::new(head)));
    let mut cursor = HistoryCursor::new(reader, Arc::default(), &past, Wanted::default());
    let mut newest = Vec::new();
    for _ in 0..50 {
        let Look::Job(id) = cursor.newest(&mut 1).await.unwrap() else {
            panic!("{} of {LINES} jobs", newest.len());
        };
        cursor.pop();
        newest.push(id);
    }
    assert_eq!(newest, ids[..50]);
    let (files, bytes) = reads.take();
    let most = 2 * (HISTORY_PIECE_BYTES + LINE_BEGIN_BYTES);
    assert!(
        files <= 2 && bytes <= most,
        "{files} reads, {bytes} of {} bytes",
        text.len()
    );
    while let Look::Job(id) = cursor.newest(&mut 9).await.unwrap() {
        cursor.pop();
        newest.push(id);
    }
    assert!(newest == ids, "each once, across the ends of the pieces");
}

/// Lists the 50 newest jobs twice after a backlog: jobs that were all made before the first of them ended.
async fn list_twice_after_a_backlog(order: &[usize], is_noted: bool) {
    let (_folder, opened, fleet) = Folder::prepared().await;
    let scan = fleet.scan("build");
    let millis =
        |count: usize| Timestamp::UNIX_EPOCH + chrono::TimeDelta::milliseconds(count as i64);
    let ids: Vec<JobId> = (1..=order.len())
        .map(|made| JobId::at(millis(made)))
        .collect();
    let template = model::HistoryLine::of(
        &*opened
            .complete(opened.running_job(fleet, "build").await)
            .await,
    );
    let index = Arc::new(PageIndex::default());
    let mut head = model::ScanHead::new(scan.workflow, scan.scan.clone());
    let mut pages: BTreeMap<u64, String> = BTreeMap::new();
    for (at, made) in order.iter().enumerate() {
        let mut line = template.clone().unwrap();
        line.id = ids[*made];
        line.finished_at = millis(2 * order.len() + at);
        let text = serde_json::to_string(&line).unwrap() + "\n";
        let page = pages.entry(head.history.page).or_default();
        let entry = model::HistoryEntry {
            scan: scan.clone(),
            page: head.history.page,
            at: page.len() as u64,
            line,
            text,
        };
        page.push_str(&entry.text);
        head.history.bytes = page.len() as u64;
        if page.len() > 512 * 1024 {
            head.history.page += 1;
            head.history.bytes = 0;
        }
        if is_noted {
            index.added(&entry);
        }
    }
    head.latest_job = ids[ids.len() - 1];
    let past = opened
        .state
        .read(|world| KnownPast::of(world, &Arc::new(head)));
    let files = pages.into_iter();
    let files = files.map(|(page, text)| (Layout::history(&scan, page), text.into()));
    let (reader, reads) = counted(files).await;
    let newest: Vec<JobId> = ids.iter().rev().take(50).copied().collect();
    let mut took = Vec::new();
    for _ in 0..2 {
        let mut cursor =
            HistoryCursor::new(reader.clone(), index.clone(), &past, Wanted::default());
        for wanted in &newest {
            assert_eq!(cursor.newest(&mut 999).await.unwrap(), Look::Job(*wanted));
            cursor.pop();
        }
        took.push(reads.take().0);
    }
    assert_eq!(
        took[0] <= 60,
        is_noted,
        "of a history that was not read yet: {took:?}"
    );
    assert_eq!(took[1], 0, "its lines are still known");
}

#[tokio::test]
async fn after_a_backlog_a_page_reads_only_what_it_shows_and_the_next_one_nothing() {
    let fifo: Vec<usize> = (0..6_000).collect();
    let lifo: Vec<usize> = fifo.iter().rev().copied().collect();
    // Neighbours are far apart.
    let mixed: Vec<usize> = fifo.iter().map(|at| at * 1_009 % 6_000).collect();
    for order in [fifo, lifo, mixed] {
        for is_noted in [false, true] {
            list_twice_after_a_backlog(&order, is_noted).await;
        }
    }
}

#[tokio::test]
async fn a_list_says_what_of_its_histories_cannot_be_read() {
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
    // The second list takes what the first one has remembered.
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

/// Cut within a line, at the end of one, and all of it: of the first two the next start knows too, and goes on with the
/// next page.
#[tokio::test]
async fn a_list_says_when_a_history_has_lost_its_end() {
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
        let told = [DamagedLines { file, lines }];
        let check = async |opened: &Opened, told: &[DamagedLines]| {
            let list = opened.state.jobs(&JobFilter::default(), None, 50).await;
            let list = list.unwrap();
            assert_eq!((list.jobs.len(), &*list.damaged), (jobs, told), "{left:?}");
            let page = opened.state.history(&scan, None, 50).await.unwrap();
            assert_eq!((page.lines.len(), &*page.damaged), (jobs, told), "{left:?}");
        };
        check(&opened, &told).await;
        opened.close();
        let opened = folder.open().await;
        check(&opened, &told).await;
        opened.close();
    }
}
