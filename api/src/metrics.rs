//! The metrics of the daemon, in the text format of Prometheus.
//!
//! Gauges of the current state are computed on each scrape. Everything else is counted when it happens: requests when they are
//! answered, commits when they are made, and jobs by a task that follows the commits.

mod series;
mod world;

use std::collections::HashMap;
use std::fmt;
use std::sync::{Arc, LazyLock, Mutex, PoisonError};
use std::time::Duration;

use http::StatusCode;
use model::{Change, EndState, Job, JobId, JobState, Reason};
use prometheus_client::encoding::{EncodeLabelSet, text};
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::histogram::Histogram;
use prometheus_client::registry::{Metric, Registry};
use reconciler::Handle;
use state::{ChangesGone, CommitMeasure, DiskBytes, Room};
use workflow::Sandbox;

use self::world::WorldMetrics;

pub(crate) const MEDIA_TYPE: &str = "text/plain; version=0.0.4; charset=utf-8";

/// Bounds for the times of requests, commits and decisions, in seconds: from a tenth of a millisecond to ten seconds.
const FAST: [f64; 11] = [
    0.000_1, 0.000_3, 0.001, 0.003, 0.01, 0.03, 0.1, 0.3, 1.0, 3.0, 10.0,
];

/// Bounds for the times that jobs wait, in seconds: from ten milliseconds to an hour.
const SLOW: [f64; 11] = [
    0.01, 0.03, 0.1, 0.3, 1.0, 3.0, 10.0, 30.0, 120.0, 600.0, 3_600.0,
];

const COMMANDS: [f64; 8] = [1.0, 2.0, 4.0, 8.0, 16.0, 32.0, 64.0, 128.0];

/// One histogram for the process, because there is one sandbox.
static EVALUATION_SECONDS: LazyLock<Histogram> = LazyLock::new(|| Histogram::new(FAST));

type Labels<const N: usize> = [(&'static str, String); N];

#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
struct RequestLabels {
    method: &'static str,
    /// The pattern of the path. It bounds the number of series.
    route: &'static str,
    status: u16,
}

#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
struct RouteLabels {
    route: &'static str,
}

type TimesByRoute = Family<RouteLabels, Histogram, fn() -> Histogram>;

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

/// What a scrape reads from the disk.
pub(crate) struct Measured {
    pub(crate) room: Room,
    pub(crate) disk: Option<DiskBytes>,
    pub(crate) backup: Option<model::Timestamp>,
}

/// Adds a metric to the registry, under a name that ends with its unit.
fn add<M: Metric + Clone + Default>(registry: &mut Registry, name: &str, help: &str) -> M {
    let metric = M::default();
    registry.register(name, help, metric.clone());
    metric
}

fn add_histogram<const N: usize>(
    registry: &mut Registry,
    name: &str,
    help: &str,
    bounds: [f64; N],
) -> Histogram {
    let metric = Histogram::new(bounds);
    registry.register(name, help, metric.clone());
    metric
}

impl fmt::Debug for Metrics {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Metrics").finish_non_exhaustive()
    }
}

impl Metrics {
    pub(crate) fn new() -> Self {
        let mut registry = Registry::with_prefix("everscan");
        let all = &mut registry;
        let requests = add(all, "requests", "Answered requests");
        let request_seconds = TimesByRoute::new_with_constructor(|| Histogram::new(FAST));
        all.register(
            "request_seconds",
            "Time from the head of a request to the head of its answer; includes held reads and polls",
            request_seconds.clone(),
        );
        let jobs_ended: Family<Labels<2>, Counter> =
            add(all, "jobs_ended", "Jobs that ended, by state and reason");
        // An alert notices an increase only if the counter already exists, so create these at 0.
        for (state, reason) in [
            (EndState::Failed, Reason::TimedOut),
            (EndState::Cancelled, Reason::SessionExpired),
        ] {
            drop(jobs_ended.get_or_create(&ended(state.name(), &reason)));
        }
        let queue_wait_seconds = add_histogram(
            all,
            "job_queue_wait_seconds",
            "Time from the creation of a job to its claim by a runner",
            SLOW,
        );
        let schedule_lateness_seconds = add_histogram(
            all,
            "schedule_lateness_seconds",
            "Time from a slot of a schedule to the creation of its job",
            SLOW,
        );
        let changes_missed = add(
            all,
            "job_changes_missed",
            "How often the job counter fell behind and missed changes",
        );
        all.register(
            "evaluation_seconds",
            "Time to evaluate one expression",
            EVALUATION_SECONDS.clone(),
        );
        // If its threads cannot be started, each evaluation fails with the reason.
        if let Ok(sandbox) = Sandbox::shared() {
            sandbox.observe(|took| EVALUATION_SECONDS.observe(took.as_secs_f64()));
        }
        let commit = CommitMetrics::new(all);
        let world = Mutex::new(WorldMetrics::new(all));
        Self {
            registry,
            requests,
            request_seconds,
            jobs_ended,
            queue_wait_seconds,
            schedule_lateness_seconds,
            changes_missed,
            commit,
            world,
        }
    }

    /// Measures commits and jobs until the daemon stops.
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

    pub(crate) fn answered(
        &self,
        method: &http::Method,
        route: &'static str,
        status: StatusCode,
        took: Duration,
    ) {
        let labels = RequestLabels {
            // Callers can send any number of invented methods.
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

    pub(crate) fn text(&self, handle: &Handle, measured: &Measured) -> Result<String, fmt::Error> {
        // Two concurrent scrapes must not mix their counts.
        let world = self.world.lock().unwrap_or_else(PoisonError::into_inner);
        world.update(handle, measured);
        let mut written = String::new();
        text::encode_registry(&mut written, &self.registry)?;
        Ok(classic(&written))
    }

    async fn follow_jobs(&self, handle: &Handle) {
        let state = handle.state();
        loop {
            // The sequence number is read before the world, so the world contains all changes up to it.
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

    /// `running` has the unfinished jobs so far, and whether each of them runs.
    fn job_changed(&self, job: &Job, running: &mut HashMap<JobId, bool>) {
        let since_creation = |time: model::Timestamp| seconds(time - job.created_at);
        match &job.state {
            JobState::Scheduled => {
                let is_new = running.insert(job.id, false).is_none();
                if let (true, Reason::SlotDue { slot, .. }) = (is_new, &job.reason) {
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
                // A finished job changes again when its artifacts are removed.
                if running.remove(&job.id).is_some() {
                    let labels = ended(job.state.name(), &end.reason);
                    self.jobs_ended.get_or_create(&labels).inc();
                }
            }
        }
    }
}

fn ended(state: &str, reason: &Reason) -> Labels<2> {
    [
        ("state", state.to_owned()),
        ("reason", reason.code().to_owned()),
    ]
}

/// Converts OpenMetrics text to the classic Prometheus format. In OpenMetrics, the `# TYPE` line of a counter lacks the
/// suffix of its samples.
fn classic(text: &str) -> String {
    let mut written = String::with_capacity(text.len());
    let mut lines = text.lines().peekable();
    let is_type_of_counter =
        |line: &&str| line.starts_with("# TYPE ") && line.ends_with(" counter");
    while let Some(line) = lines.next() {
        let of_counter = is_type_of_counter(&line) || lines.peek().is_some_and(is_type_of_counter);
        match line.split(' ').collect::<Vec<_>>()[..] {
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

fn name(method: &http::Method) -> &'static str {
    let named = ["GET", "HEAD", "POST", "PUT", "PATCH", "DELETE"];
    let found = named.into_iter().find(|name| *name == method.as_str());
    found.unwrap_or("-")
}

/// The label for requests without a route.
pub(crate) const NO_ROUTE: &str = "none";

fn seconds(span: chrono::TimeDelta) -> f64 {
    // Negative if the clock was set back in between.
    span.to_std().unwrap_or_default().as_secs_f64()
}

impl CommitMetrics {
    fn new(registry: &mut Registry) -> Self {
        Self {
            seconds: add_histogram(
                registry,
                "commit_seconds",
                "Time of a commit: one write to the journal and one sync",
                FAST,
            ),
            decision_seconds: add_histogram(
                registry,
                "decision_seconds",
                "Time to decide the commands of a commit, with the expressions that they evaluate",
                FAST,
            ),
            commands: add_histogram(
                registry,
                "commit_commands",
                "Commands that shared a commit",
                COMMANDS,
            ),
            bytes: add(registry, "commit_bytes", "Content of commits"),
        }
    }

    fn observe(&self, measure: &CommitMeasure) {
        self.seconds.observe(measure.took.as_secs_f64());
        self.decision_seconds
            .observe(measure.deciding.as_secs_f64());
        self.commands.observe(measure.commands as f64);
        self.bytes.inc_by(measure.bytes as u64);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_counter_is_named_like_its_samples() {
        let open = "# HELP a_seconds A time.\n# TYPE a_seconds histogram\na_seconds_count 1\n\
                    # HELP b B is counted.\n# TYPE b counter\nb_total 1\n\
                    # HELP c_bytes C.\n# TYPE c_bytes counter\nc_bytes_total 1\n";
        let classic_text = "# HELP a_seconds A time.\n# TYPE a_seconds histogram\na_seconds_count 1\n\
                    # HELP b_total B is counted.\n# TYPE b_total counter\nb_total 1\n\
                    # HELP c_bytes_total C.\n# TYPE c_bytes_total counter\nc_bytes_total 1\n";
        assert_eq!(classic(open), classic_text);
    }
}
