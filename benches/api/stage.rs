//! The measured system: a daemon with workflows, and runners that run no steps.

use std::fmt::Write as _;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use chrono::Utc;
use client::{Client, Secret};
use tokio::runtime::Runtime;
use tokio::sync::Semaphore;
use tokio::task::{JoinHandle, JoinSet};
use uuid::Uuid;
use wire::{
    CompleteJob, CreateRegistration, DispatchResponse, JobAssigned, Message, Poll, RegisterRunner,
    Step, StepOutcome, StepStatus,
};

use crate::connection::Target;
use crate::support::World;

/// Scans with their own labels, `own_0` and so on.
pub(crate) const OWN: usize = 100;

/// Capacity of the runner that ends jobs at once.
const SLOTS: u32 = 200;

pub(crate) struct Stage {
    pub(crate) world: World,
    pub(crate) target: Target,
    pub(crate) client: Client,
    runtime: Runtime,
}

impl Stage {
    /// A daemon on the disk of the build, not in memory. Its workflow has the scan `idle`, whose jobs no runner takes,
    /// `busy`, whose jobs are taken by runners with this label, and scans with their own labels.
    pub(crate) fn new() -> Self {
        Self::with(&[])
    }

    /// The same, and callers may name other addresses.
    pub(crate) fn behind_a_proxy() -> Self {
        Self::with(&[("SERVICE_TRUST_PROXY", "127.0.0.1")])
    }

    fn with(variables: &[(&str, &str)]) -> Self {
        let mut world = World::below(Path::new(env!("CARGO_TARGET_TMPDIR")));
        let variables = variables.iter();
        world.daemon_variables = variables
            .map(|(name, value)| ((*name).to_owned(), (*value).to_owned()))
            .collect();
        let mut text = "scans:\n".to_owned();
        let labels = ["idle".to_owned(), "busy".to_owned()].into_iter();
        for label in labels.chain((0..OWN).map(|n| format!("own_{n}"))) {
            writeln!(
                text,
                "  {label}:\n    on: {{ dispatch: {{}} }}\n    runs_on: [{label}]\n    steps: [{{ run: 'true' }}]\n    \
                 artifacts: [{{ name: out, paths: [out] }}]"
            )
            .unwrap();
        }
        world.init_repository();
        world.push(&[("bench.yaml", Some(&text))]);
        world.start_daemon();
        world.sync();
        let token = world.token().unwrap();
        Self {
            target: Target {
                address: world.address(),
                token: token.clone(),
            },
            client: Client::new(world.url(), Some(Secret::new(token))).unwrap(),
            world,
            runtime: tokio::runtime::Builder::new_multi_thread()
                .enable_all()
                .build()
                .unwrap(),
        }
    }

    pub(crate) fn block_on<T>(&self, work: impl Future<Output = T>) -> T {
        self.runtime.block_on(work)
    }

    pub(crate) fn dispatch_request(target: &Target, scan: &str) -> Vec<u8> {
        let path = format!("/v0/workflows/bench/scans/{scan}/dispatch");
        target.request("POST", &path, "", "{}")
    }

    pub(crate) async fn dispatch(&self, scan: &str) -> Uuid {
        let request = Self::dispatch_request(&self.target, scan);
        let answer = self.target.connect().await.ask(&request).await;
        answer.json::<DispatchResponse>().job.id()
    }

    /// Creates this many jobs and finishes them. Returns the last.
    pub(crate) async fn finish(&self, count: usize) -> Uuid {
        let ending = self.end_jobs().await;
        let mut clients = JoinSet::new();
        let (places, request) = (
            Arc::new(Semaphore::new(SLOTS as usize)),
            Self::dispatch_request(&self.target, "busy"),
        );
        for _ in 0..count {
            let (places, target, client, request) = (
                places.clone(),
                self.target.clone(),
                self.client.clone(),
                request.clone(),
            );
            clients.spawn(async move {
                let _place = places.acquire_owned().await.unwrap();
                let answer = target.connect().await.ask(&request).await;
                let job = answer.json::<DispatchResponse>().job.id();
                while !client.await_job(job).await.unwrap().state.is_terminal() {}
                job
            });
        }
        let mut last = None;
        while let Some(job) = clients.join_next().await {
            last = last.max(Some(job.unwrap()));
        }
        ending.abort();
        last.unwrap()
    }

    /// Registers a runner with these labels. Returns its session.
    pub(crate) async fn runner(client: &Client, name: String, labels: Vec<String>) -> Secret {
        let registration = client
            .create_registration(&CreateRegistration::default())
            .await
            .unwrap();
        let register = RegisterRunner {
            token: registration.token,
            name,
            labels,
            exclusive: false,
            capacity: SLOTS,
            version: "bench".to_owned(),
            replace: true,
        };
        Secret::new(client.register(&register).await.unwrap().token)
    }

    /// A runner that takes the jobs of `busy` and ends each at once, until it is aborted.
    pub(crate) async fn end_jobs(&self) -> JoinHandle<()> {
        self.end_jobs_reporting(|_| {}).await
    }

    /// Like this, and sends each job when its end is acknowledged.
    pub(crate) async fn end_jobs_reporting(
        &self,
        on_end: impl Fn(Uuid) + Clone + Send + 'static,
    ) -> JoinHandle<()> {
        let labels = vec!["busy".to_owned()];
        let session = Self::runner(&self.client, "busy".to_owned(), labels).await;
        let (client, session) = (self.client.clone(), self.client.with_token(session));
        tokio::spawn(async move {
            let mut jobs = JoinSet::new();
            let mut holding = Vec::new();
            loop {
                let poll = Poll {
                    instance: Uuid::nil(),
                    number: None,
                    capacity: SLOTS,
                    holding: holding.clone(),
                };
                // An aborted poll may have had an offer for a job, which is offered again only after a while.
                let mut answer = std::pin::pin!(session.poll(&poll));
                let answer = loop {
                    tokio::select! {
                        answer = &mut answer => break answer.unwrap(),
                        Some(ended) = jobs.join_next() => {
                            let ended = ended.unwrap();
                            holding.retain(|job| *job != ended);
                        }
                    }
                };
                for message in answer.messages {
                    let Message::JobAssigned(job) = message else {
                        continue;
                    };
                    holding.push(job.id);
                    let (client, on_end) = (client.clone(), on_end.clone());
                    jobs.spawn(async move {
                        let ended = end(client, job).await;
                        on_end(ended);
                        ended
                    });
                }
            }
        })
    }
}

/// Claims a job and reports its success.
async fn end(client: Client, job: JobAssigned) -> Uuid {
    let worker = client.with_token(Secret::new(job.token));
    worker.resolve(job.id).await.unwrap();
    worker.complete(job.id, &success()).await.unwrap();
    job.id
}

/// The completion of a job whose only step has succeeded.
pub(crate) fn success() -> CompleteJob {
    let now = Utc::now();
    CompleteJob {
        steps: vec![Step {
            name: None,
            index: 0,
            status: StepStatus::Succeeded,
            outcome: Some(StepOutcome::Succeeded),
            exit_code: Some(0),
            error: None,
            started_at: Some(now),
            finished_at: Some(now),
        }],
        outputs: std::collections::BTreeMap::new(),
        left_out: std::collections::BTreeMap::new(),
        log_records: 0,
        failure: None,
    }
}

/// Commits since the daemon started.
pub(crate) struct Commits {
    pub(crate) count: f64,
    /// Their total time.
    pub(crate) seconds: f64,
}

impl Stage {
    /// Stops the daemon and starts it again.
    pub(crate) fn restart(&mut self) {
        self.world.stop_daemon();
        self.world.start_daemon();
    }

    pub(crate) async fn metrics(&self) -> String {
        let request = self.target.request("GET", "/metrics", "", "");
        let answer = self.target.connect().await.ask(&request).await;
        String::from_utf8(answer.body.to_vec()).unwrap()
    }

    pub(crate) async fn await_metric(&self, holds: impl Fn(&str) -> bool) {
        while !holds(&self.metrics().await) {
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    }

    pub(crate) async fn commits(&self) -> Commits {
        let metrics = self.metrics().await;
        let value = |name: &str| {
            let line = metrics.lines().find_map(|line| line.strip_prefix(name));
            line.expect("the daemon has this series")
                .trim()
                .parse()
                .unwrap()
        };
        Commits {
            count: value("everscan_commit_seconds_count "),
            seconds: value("everscan_commit_seconds_sum "),
        }
    }
}
