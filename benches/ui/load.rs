//! The cost of readers for running jobs.

use std::collections::HashMap;
use std::time::{Duration, Instant};

use tokio::sync::mpsc::{self, UnboundedReceiver};
use tokio::task::JoinSet;
use uuid::Uuid;

use crate::budgets::Budgets;
use crate::figures::{Times, ms};
use crate::pace::{JOBS, SPAN, pace};
use crate::readers::Reader;
use crate::stage::Stage;

const READERS: usize = 20;
const ROUNDS: usize = 4;

/// The pages of readers. Each page has a quarter of the readers.
const PAGES: [(&str, &str); 4] = [
    ("overview", "/"),
    ("workflow", "/workflows/main/bench"),
    ("scan", "/workflows/main/bench/-/scans/busy"),
    ("jobs", "/jobs"),
];

/// Allowed slowdown of jobs.
const GROWTH: f64 = 1.2;

type Ends = UnboundedReceiver<(Uuid, Instant)>;

/// Measurements in the spans of one kind.
#[derive(Default)]
struct Spans {
    /// Times from a dispatch to the acknowledged end of its job.
    jobs: Vec<Duration>,
    dispatches: Vec<Duration>,
    /// The average commit of each span in milliseconds.
    commits: Vec<f64>,
    /// Processor time of the daemon.
    busy: Duration,
}

pub(crate) fn run(budgets: &mut Budgets) {
    let stage = Stage::new();
    stage.block_on(measure(&stage, budgets));
}

async fn measure(stage: &Stage, budgets: &mut Budgets) {
    println!(
        "  {JOBS} jobs/s, {READERS} readers, {ROUNDS} spans of {SPAN:?} without and with them"
    );
    let (sender, mut ends) = mpsc::unbounded_channel();
    let ending = stage.end_jobs_reporting(move |job| sender.send((job, Instant::now())).unwrap());
    let ending = ending.await;
    let mut readers = Vec::with_capacity(READERS);
    for _ in 0..READERS {
        readers.push(Reader::sign_in(&stage.target).await);
    }
    // The first jobs and pages meet a cold daemon.
    let mut pages = Pages::default();
    let mut warm = Spans::default();
    pages.open(&readers);
    warm.add(stage, &mut ends).await;
    pages.close().await;
    pages.forget();

    let (mut alone, mut watched) = (Spans::default(), Spans::default());
    for round in 0..ROUNDS {
        // Alternate the order of the two kinds.
        for with_readers in [round % 2 == 1, round % 2 == 0] {
            if with_readers {
                pages.open(&readers);
                watched.add(stage, &mut ends).await;
                pages.close().await;
            } else {
                alone.add(stage, &mut ends).await;
            }
        }
    }
    ending.abort();
    alone.print("alone");
    watched.print("with readers");
    pages.print();
    let (alone, watched) = (Times::of(alone.jobs), Times::of(watched.jobs));
    for percent in [50, 95] {
        let ratio = ms(watched.at(percent)) / ms(alone.at(percent));
        budgets.print(&format!("growth of p{percent}"), ratio, GROWTH, "");
    }
}

impl Spans {
    /// Measures one more span.
    async fn add(&mut self, stage: &Stage, ends: &mut Ends) {
        let pid = stage.world.daemon_pid();
        let busy = processor_time(pid);
        let paced = pace(stage).await;
        self.busy += processor_time(pid) - busy;
        self.commits.push(paced.commit);
        let mut unfinished: HashMap<Uuid, Instant> = HashMap::new();
        for dispatch in paced.dispatches {
            unfinished.insert(dispatch.job, dispatch.sent);
            self.dispatches.push(dispatch.took);
        }
        while !unfinished.is_empty() {
            let (job, ended) = ends.recv().await.unwrap();
            let sent = unfinished.remove(&job).unwrap();
            self.jobs.push(ended - sent);
        }
    }

    fn print(&self, what: &str) {
        let cores = self.busy.as_secs_f64() / (SPAN.as_secs_f64() * self.commits.len() as f64);
        let commit = self.commits.iter().sum::<f64>() / self.commits.len() as f64;
        println!("  {what}: the daemon takes {cores:.2} processors");
        println!(
            "    dispatch sent → end:      {}",
            Times::of(self.jobs.clone())
        );
        println!(
            "    dispatch sent → answer:   {}",
            Times::of(self.dispatches.clone())
        );
        println!(
            "    commit on average:        {commit:.3} ms {:.3?}",
            self.commits
        );
    }
}

/// Processor time of a process.
fn processor_time(pid: u32) -> Duration {
    let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).unwrap();
    let (_, fields) = stat.rsplit_once(") ").unwrap();
    // User and system time, in hundredths of a second.
    let ticks = fields.split(' ').skip(11).take(2);
    let ticks: u64 = ticks.map(|ticks| ticks.parse::<u64>().unwrap()).sum();
    Duration::from_millis(ticks * 10)
}

/// A fetch of a page: its index, time and bytes.
type Fetch = (usize, Duration, usize);

/// Open pages of readers.
struct Pages {
    open: JoinSet<()>,
    sender: mpsc::UnboundedSender<Fetch>,
    fetches: UnboundedReceiver<Fetch>,
}

impl Default for Pages {
    fn default() -> Self {
        let (sender, fetches) = mpsc::unbounded_channel();
        Self {
            open: JoinSet::new(),
            sender,
            fetches,
        }
    }
}

impl Pages {
    fn open(&mut self, readers: &[Reader]) {
        for (number, reader) in readers.iter().enumerate() {
            let (page, reader, sender) =
                (number % PAGES.len(), reader.clone(), self.sender.clone());
            self.open.spawn(async move {
                let fetched = |took, bytes| sender.send((page, took, bytes)).unwrap();
                reader.follow(PAGES[page].1, fetched).await;
            });
        }
    }

    async fn close(&mut self) {
        assert!(self.open.try_join_next().is_none(), "a reader was dropped");
        self.open.shutdown().await;
    }

    /// Drops the fetches so far.
    fn forget(&mut self) {
        while self.fetches.try_recv().is_ok() {}
    }

    fn print(mut self) {
        let mut times: [Vec<Duration>; PAGES.len()] = Default::default();
        let mut sizes = [0; PAGES.len()];
        while let Ok((page, took, bytes)) = self.fetches.try_recv() {
            times[page].push(took);
            sizes[page] = bytes;
        }
        for (((name, _), times), bytes) in PAGES.iter().zip(times).zip(sizes) {
            let rate = times.len() as f64 / (SPAN.as_secs_f64() * ROUNDS as f64);
            let times = Times::of(times);
            println!("    page {name:<10} {times}, {bytes} bytes, {rate:.1}/s");
        }
    }
}
