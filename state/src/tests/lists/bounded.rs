//! Tests that a list reads a bounded part of its histories.

use super::*;

/// A reader that counts reads of files and pieces.
#[derive(Clone)]
struct Counting<R>(R, Arc<Reads>);

#[derive(Default)]
pub(in crate::tests) struct Reads {
    files: AtomicUsize,
    bytes: AtomicUsize,
}

impl Reads {
    fn add(&self, bytes: Option<usize>) {
        self.files.fetch_add(1, Ordering::SeqCst);
        self.bytes.fetch_add(bytes.unwrap_or(0), Ordering::SeqCst);
    }

    pub(in crate::tests) fn take(&self) -> (usize, usize) {
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

/// A counting reader of these files, which are in memory.
pub(in crate::tests) async fn counted(
    files: impl Iterator<Item = (Key, Bytes)>,
) -> (StoreReader, Arc<Reads>) {
    let mut engine = MemoryStore::new().engine();
    let (epoch, _) = engine.open(&mut |_| {}).await.unwrap();
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
async fn a_list_without_matches_stops_after_a_limit_and_continues_with_its_cursor() {
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
    // In this long history, only the oldest page has a failed job.
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
    head.history = model::TailEnd {
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
        "summaries, the line and the shown job are not cached"
    );
    let none = list("cancelled", None).await;
    assert_eq!(
        none,
        (Vec::new(), None, 0),
        "the head shows that no job was cancelled"
    );
}

#[tokio::test]
async fn a_list_reads_a_bounded_number_of_missing_records() {
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
async fn a_history_is_read_only_as_far_as_needed() {
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
    // The last line belongs to a job that ended after the head was read.
    let end = model::TailEnd {
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
        let CursorResult::Job(id) = cursor.newest(&mut 1).await.unwrap() else {
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
    while let CursorResult::Job(id) = cursor.newest(&mut 9).await.unwrap() {
        cursor.pop();
        newest.push(id);
    }
    assert!(
        newest == ids,
        "not every job was returned once across pieces"
    );
}

/// Lists the 50 newest jobs twice after a backlog, in which all jobs were made before the first job ended.
async fn list_twice_after_a_backlog(order: &[usize], has_summaries: bool) {
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
        if has_summaries {
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
            assert_eq!(
                cursor.newest(&mut 999).await.unwrap(),
                CursorResult::Job(*wanted)
            );
            cursor.pop();
        }
        took.push(reads.take().0);
    }
    assert_eq!(
        took[0] <= 60,
        has_summaries,
        "reads of an unread history: {took:?}"
    );
    assert_eq!(took[1], 0, "the lines are not cached");
}

#[tokio::test]
async fn after_a_backlog_a_page_reads_only_its_jobs_and_a_repeat_reads_nothing() {
    let fifo: Vec<usize> = (0..6_000).collect();
    let lifo: Vec<usize> = fifo.iter().rev().copied().collect();
    // Jobs that were made one after another are far apart in the history.
    let mixed: Vec<usize> = fifo.iter().map(|at| at * 1_009 % 6_000).collect();
    for order in [fifo, lifo, mixed] {
        for has_summaries in [false, true] {
            list_twice_after_a_backlog(&order, has_summaries).await;
        }
    }
}
