//! What monitoring systems read: counters and times of the daemon, in the text format of Prometheus.
//!
//! What the world says is counted when somebody reads. The rest is counted as it happens: requests where they are
//! answered, commits where they are made, and jobs by a task that follows what is committed.

use std::collections::HashMap;
use std::fmt;
use std::sync::{Arc, LazyLock, Mutex, PoisonError};
use std::time::Duration;

use http::StatusCode;
use model::{Change, EndState, Job, JobId, JobState, Reason, Viewer};
use prometheus_client::encoding::{EncodeLabelSet, text};
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::gauge::Gauge;
use prometheus_client::metrics::histogram::Histogram;
use prometheus_client::registry::{Registry, Unit};
use reconciler::Handle;
use state::{ChangesGone, CommitMeasure, DiskBytes, Room};
use workflow::Sandbox;

/// The media type of the answer.
pub(crate) const MEDIA_TYPE: &str = "text/plain; version=0.0.4; charset=utf-8";

/// Bounds of the times of requests, commits and decisions, in seconds: from a tenth of a millisecond to ten seconds.
const FAST: [f64; 11] = [
    0.000_1, 0.000_3, 0.001, 0.003, 0.01, 0.03, 0.1, 0.3, 1.0, 3.0, 10.0,
];

/// Bounds of the times that jobs wait, in seconds: from ten milliseconds to an hour.
const SLOW: [f64; 11] = [
    0.01, 0.03, 0.1, 0.3, 1.0, 3.0, 10.0, 30.0, 120.0, 600.0, 3_600.0,
];

/// Bounds of the number of commands in a commit.
const COMMANDS: [f64; 8] = [1.0, 2.0, 4.0, 8.0, 16.0, 32.0, 64.0, 128.0];

/// Of the whole process, as the sandbox is that evaluates.
static EVALUATION_SECONDS: LazyLock<Histogram> = LazyLock::new(|| Histogram::new(FAST));

type Labels<const N: usize> = [(&'static str, String); N];

#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
struct RequestLabels {
    method: &'static str,
    /// The pattern of the path, so that the number of series is bounded.
    route: &'static str,
    status: u16,
}

#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
struct RouteLabels {
    route: &'static str,
}

type TimesByRoute = Family<RouteLabels, Histogram, fn() -> Histogram>;

/// Everything that is measured.
pub(crate) struct Metrics {
    registry: Registry,
    requests: Family<RequestLabels, Counter>,
    request_seconds: TimesByRoute,
    jobs_ended: Family<Labels<2>, Counter>,
    queue_wait_seconds: Histogram,
    schedule_lateness_seconds: Histogram,
    changes_missed: Counter,
    commit: CommitMetrics,
    world: Mutex<WorldMetrics>,
}

#[derive(Clone)]
struct CommitMetrics {
    seconds: Histogram,
    decision_seconds: Histogram,
    commands: Histogram,
    bytes: Counter,
}

/// What is read from the world, when somebody reads the metrics.
#[derive(Default, Clone)]
struct WorldMetrics {
    jobs: Family<Labels<1>, Gauge>,
    runners: Family<Labels<1>, Gauge>,
    runner_slots: Gauge,
    polls: Gauge,
    source_conditions: Family<Labels<3>, Gauge>,
    disk: Family<Labels<1>, Gauge>,
    disk_bytes: Family<Labels<1>, Gauge>,
    tokens: Gauge,
    circles: Gauge,
    masked_errors: Counter,
}

impl fmt::Debug for Metrics {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Metrics").finish_non_exhaustive()
    }
}

impl Metrics {
    pub(crate) fn new() -> Self {
        let mut registry = Registry::with_prefix("everscan");
        let requests = Family::default();
        registry.register("requests", "Answered requests", requests.clone());
        let request_seconds = TimesByRoute::new_with_constructor(|| Histogram::new(FAST));
        registry.register_with_unit(
            "request",
            "Time from the head of a request to the head of its answer; held reads and polls are in it",
            Unit::Seconds,
            request_seconds.clone(),
        );
        let jobs_ended: Family<Labels<2>, Counter> = Family::default();
        // Rules count what hangs. They see a counter rise only if it was there before.
        for (state, reason) in [
            (EndState::Failed, Reason::TimedOut),
            (EndState::Cancelled, Reason::SessionExpired),
        ] {
            drop(jobs_ended.get_or_create(&ended(state.name(), &reason)));
        }
        registry.register(
            "jobs_ended",
            "Jobs that ended, by state and reason",
            jobs_ended.clone(),
        );
        let queue_wait_seconds = Histogram::new(SLOW);
        registry.register_with_unit(
            "job_queue_wait",
            "Time from the making of a job to its claim by a runner",
            Unit::Seconds,
            queue_wait_seconds.clone(),
        );
        let schedule_lateness_seconds = Histogram::new(SLOW);
        registry.register_with_unit(
            "schedule_lateness",
            "Time from a slot of a schedule to the making of its job",
            Unit::Seconds,
            schedule_lateness_seconds.clone(),
        );
        let changes_missed = Counter::default();
        registry.register(
            "job_changes_missed",
            "How often the counting of jobs fell behind and left some out",
            changes_missed.clone(),
        );
        registry.register_with_unit(
            "evaluation",
            "Time to evaluate one expression",
            Unit::Seconds,
            EVALUATION_SECONDS.clone(),
        );
        // If its threads cannot be started, each evaluation says so.
        if let Ok(sandbox) = Sandbox::shared() {
            sandbox.observe(|took| EVALUATION_SECONDS.observe(took.as_secs_f64()));
        }
        let commit = CommitMetrics::registered(&mut registry);
        let world = WorldMetrics::registered(&mut registry);
        Self {
            registry,
            requests,
            request_seconds,
            jobs_ended,
            queue_wait_seconds,
            schedule_lateness_seconds,
            changes_missed,
            commit,
            world: Mutex::new(world),
        }
    }

    /// Begins to measure commits, and jobs until the daemon stops.
    pub(crate) fn follow(self: &Arc<Self>, handle: &Handle) {
        let commit = self.commit.clone();
        handle
            .state()
            .measure_commits(Box::new(move |measure| commit.observe(measure)));
        let (metrics, handle) = (self.clone(), handle.clone());
        tokio::spawn(async move {
            tokio::select! {
                () = metrics.follow_jobs(&handle) => {}
                () = handle.stopping() => {}
            }
        });
    }

    /// Counts an answered request.
    pub(crate) fn answered(
        &self,
        method: &http::Method,
        route: &'static str,
        status: StatusCode,
        took: Duration,
    ) {
        let labels = RequestLabels {
            // A method that no route has is the caller's word, of which there are any number.
            method: match route {
                NO_ROUTE => "-",
                _ => name(method),
            },
            route,
            status: status.as_u16(),
        };
        self.requests.get_or_create(&labels).inc();
        self.request_seconds
            .get_or_create(&RouteLabels { route })
            .observe(took.as_secs_f64());
    }

    /// The text for a monitoring system.
    pub(crate) fn text(
        &self,
        handle: &Handle,
        room: Room,
        disk: Option<DiskBytes>,
    ) -> Result<String, fmt::Error> {
        // Two readers at once must not mix their looks.
        let world = self.world.lock().unwrap_or_else(PoisonError::into_inner);
        world.look(handle, room, disk);
        let mut written = String::new();
        text::encode_registry(&mut written, &self.registry)?;
        Ok(classic(&written))
    }

    async fn follow_jobs(&self, handle: &Handle) {
        let state = handle.state();
        loop {
            // First the place, then the world, which has all changes up to there.
            let place = state.seq();
            let mut running: HashMap<JobId, bool> = state.read(|world| {
                let jobs = world.jobs().map(|job| (job.id, job.state.run().is_some()));
                jobs.collect()
            });
            let Ok(mut commits) = state.subscribe(place) else {
                continue;
            };
            loop {
                match commits.next().await {
                    Ok(published) => {
                        for change in published.changes.iter() {
                            if let Change::Job(job) = change {
                                self.job_changed(job, &mut running);
                            }
                        }
                    }
                    Err(ChangesGone { .. }) => {
                        self.changes_missed.inc();
                        break;
                    }
                }
            }
        }
    }

    /// `running` has the unfinished jobs that were seen, and whether each was running.
    fn job_changed(&self, job: &Job, running: &mut HashMap<JobId, bool>) {
        let since_creation = |time: model::Timestamp| seconds(time - job.created_at);
        match &job.state {
            JobState::Scheduled => {
                let is_new = running.insert(job.id, false).is_none();
                if let (true, Reason::SlotDue { slot }) = (is_new, &job.reason) {
                    let late = seconds(job.created_at - *slot);
                    self.schedule_lateness_seconds.observe(late);
                }
            }
            JobState::Running { run } => {
                if running.insert(job.id, true) != Some(true) {
                    self.queue_wait_seconds
                        .observe(since_creation(run.started_at));
                }
            }
            JobState::Succeeded { end, .. }
            | JobState::Failed { end, .. }
            | JobState::Cancelled { end, .. }
            | JobState::Skipped { end } => {
                // A finished job changes again when its artifacts go.
                if running.remove(&job.id).is_some() {
                    let labels = ended(job.state.name(), &end.reason);
                    self.jobs_ended.get_or_create(&labels).inc();
                }
            }
        }
    }
}

/// The labels of jobs that ended so.
fn ended(state: &str, reason: &Reason) -> Labels<2> {
    [
        ("state", state.to_owned()),
        ("reason", reason.code().to_owned()),
    ]
}

/// The classic text format, which every monitoring system reads, of one in OpenMetrics. There the head of a counter names
/// it without the ending of its samples, and may have a line for the unit.
fn classic(text: &str) -> String {
    let mut written = String::with_capacity(text.len());
    let mut lines = text.lines().peekable();
    let is_type_of_counter =
        |line: &&str| line.starts_with("# TYPE ") && line.ends_with(" counter");
    while let Some(line) = lines.next() {
        let of_counter = is_type_of_counter(&line) || lines.peek().is_some_and(is_type_of_counter);
        match line.split(' ').collect::<Vec<_>>()[..] {
            ["#", "UNIT", ..] => continue,
            ["#", kind @ ("HELP" | "TYPE"), name, ..] if of_counter => {
                let rest = &line[2 + kind.len() + 1 + name.len()..];
                written.push_str(&format!("# {kind} {name}_total{rest}"));
            }
            _ => written.push_str(line),
        }
        written.push('\n');
    }
    written
}

/// The name of a method that a route may have.
fn name(method: &http::Method) -> &'static str {
    let named = ["GET", "HEAD", "POST", "PUT", "PATCH", "DELETE"];
    let found = named.into_iter().find(|name| *name == method.as_str());
    found.unwrap_or("-")
}

/// The route of requests that have none.
pub(crate) const NO_ROUTE: &str = "none";

fn seconds(span: chrono::TimeDelta) -> f64 {
    // A clock that was set back in between.
    span.to_std().unwrap_or_default().as_secs_f64()
}

impl CommitMetrics {
    fn registered(registry: &mut Registry) -> Self {
        let metrics = Self {
            seconds: Histogram::new(FAST),
            decision_seconds: Histogram::new(FAST),
            commands: Histogram::new(COMMANDS),
            bytes: Counter::default(),
        };
        registry.register_with_unit(
            "commit",
            "Time of a commit: one write to the journal and one sync",
            Unit::Seconds,
            metrics.seconds.clone(),
        );
        registry.register_with_unit(
            "decision",
            "Time to decide the commands of a commit, with the expressions that they evaluate",
            Unit::Seconds,
            metrics.decision_seconds.clone(),
        );
        registry.register(
            "commit_commands",
            "Commands that shared a commit",
            metrics.commands.clone(),
        );
        registry.register_with_unit(
            "commit",
            "Content of commits",
            Unit::Bytes,
            metrics.bytes.clone(),
        );
        metrics
    }

    fn observe(&self, measure: &CommitMeasure) {
        self.seconds.observe(measure.took.as_secs_f64());
        self.decision_seconds
            .observe(measure.deciding.as_secs_f64());
        self.commands.observe(measure.commands as f64);
        self.bytes.inc_by(measure.bytes as u64);
    }
}

impl WorldMetrics {
    fn registered(registry: &mut Registry) -> Self {
        let metrics = Self::default();
        registry.register("jobs", "Unfinished jobs by state", metrics.jobs.clone());
        registry.register(
            "runners",
            "Registered runners, by whether they have been heard of lately",
            metrics.runners.clone(),
        );
        registry.register(
            "runner_slots",
            "Jobs that the connected runners can run at once",
            metrics.runner_slots.clone(),
        );
        registry.register(
            "waiting_polls",
            "Requests for work that wait for a job",
            metrics.polls.clone(),
        );
        registry.register(
            "source_condition",
            "1 for the present status of each condition of each source",
            metrics.source_conditions.clone(),
        );
        registry.register(
            "disk",
            "1 for the mark that the disk of the state has reached: enough, low or full",
            metrics.disk.clone(),
        );
        registry.register_with_unit(
            "disk",
            "The disk of the state: total, and free for the daemon",
            Unit::Bytes,
            metrics.disk_bytes.clone(),
        );
        registry.register("tokens", "Access tokens", metrics.tokens.clone());
        registry.register(
            "circles",
            "Groups of scans that wake each other, after more than 100 laps of under a minute each",
            metrics.circles.clone(),
        );
        registry.register(
            "masked_errors",
            "Errors told by runners in which the daemon had to hide a secret",
            metrics.masked_errors.clone(),
        );
        metrics
    }

    fn look(&self, handle: &Handle, room: Room, disk: Option<DiskBytes>) {
        self.source_conditions.clear();
        handle.state().read(|world| {
            let of = |state: &str| {
                self.jobs
                    .get_or_create_owned(&[("state", state.to_owned())])
            };
            let running = world.running().count();
            set(&of("running"), running);
            set(&of("scheduled"), world.unfinished_jobs() - running);
            let (mut connected, mut gone, mut slots) = (0, 0, 0);
            for runner in world.runners() {
                if handle.is_connected(runner.id) {
                    connected += 1;
                    slots += runner.capacity as usize;
                } else {
                    gone += 1;
                }
            }
            let of = |connected: &str| {
                let labels = [("connected", connected.to_owned())];
                self.runners.get_or_create_owned(&labels)
            };
            set(&of("true"), connected);
            set(&of("false"), gone);
            set(&self.runner_slots, slots);
            set(&self.tokens, world.tokens().count());
            set(
                &self.circles,
                world.seen_by(&Viewer::admin()).circles().len(),
            );
            for source in world.sources() {
                for condition in &source.conditions {
                    let labels = [
                        ("source", source.name.to_string()),
                        ("condition", condition.kind.name().to_owned()),
                        ("status", condition.status.name().to_owned()),
                    ];
                    self.source_conditions.get_or_create(&labels).set(1);
                }
            }
        });
        set(&self.polls, handle.waiting_polls());
        let masked = handle.masked_errors();
        let counted = self.masked_errors.get();
        self.masked_errors.inc_by(masked.saturating_sub(counted));
        for (mark, at) in [
            ("enough", Room::Enough),
            ("low", Room::Low),
            ("full", Room::Full),
        ] {
            let labels = [("mark", mark.to_owned())];
            self.disk.get_or_create(&labels).set(i64::from(room == at));
        }
        if let Some(disk) = disk {
            for (of, bytes) in [("total", disk.total), ("free", disk.free)] {
                let labels = [("of", of.to_owned())];
                let bytes = i64::try_from(bytes).unwrap_or(i64::MAX);
                self.disk_bytes.get_or_create(&labels).set(bytes);
            }
        }
    }
}

fn set(gauge: &Gauge, count: usize) {
    gauge.set(i64::try_from(count).unwrap_or(i64::MAX));
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_counter_is_named_like_its_samples() {
        let open = "# HELP a_seconds A time.\n# TYPE a_seconds histogram\n# UNIT a_seconds seconds\na_seconds_count 1\n\
                    # HELP b B is counted.\n# TYPE b counter\nb_total 1\n\
                    # HELP c_bytes C.\n# TYPE c_bytes counter\n# UNIT c_bytes bytes\nc_bytes_total 1\n";
        let classic_text = "# HELP a_seconds A time.\n# TYPE a_seconds histogram\na_seconds_count 1\n\
                    # HELP b_total B is counted.\n# TYPE b_total counter\nb_total 1\n\
                    # HELP c_bytes_total C.\n# TYPE c_bytes_total counter\nc_bytes_total 1\n";
        assert_eq!(classic(open), classic_text);
    }
}
