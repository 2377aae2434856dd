//! Clients that keep a daemon busy, and write down what it has told them.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use client::{Client, JobFilter};
use serde_json::json;
use tokio::runtime::Handle;
use tokio::task::JoinSet;
use uuid::Uuid;
use wire::{DispatchRequest, Job, JobState, SetValue};

use crate::promises::Promises;
use crate::support::World;

/// Jobs that a client has under way at once.
const AT_ONCE: usize = 3;

/// Lines that a job of each scan logs: as much as its last commit carries, and so much that it has to be synced before.
const COUNT_LINES: usize = 40;
const FOLLOW_LINES: usize = 600;

/// Jobs of which one is cancelled.
const CANCELLED: u128 = 8;

/// Longest value that is set: a few seconds of them fill segments of the journal.
const VALUE_BYTES: usize = 48 * 1024;

const PROJECT: &str = "main";
const WORKFLOW: &str = "count";
const VAR: &str = "REGISTER";

/// Pause of a client that was refused, or that has seen everything.
const PAUSE: Duration = Duration::from_millis(10);

/// Clients at work; dropped they are gone, whatever they wait for.
pub(crate) struct Load {
    tasks: JoinSet<()>,
}

/// What a client does.
#[derive(Clone, Copy)]
enum Role {
    /// Dispatches some jobs, cancels a few, and waits for their ends.
    Dispatch,
    /// Sets a var to the next number.
    Set,
    /// Looks at what others do: whatever anybody is told must be true after a power cut as well.
    Watch,
}

impl Load {
    /// Clients that go on and on.
    pub(crate) fn start(
        runtime: &Handle,
        client: &Client,
        promises: &Arc<Mutex<Promises>>,
    ) -> Self {
        use Role::{Dispatch, Set, Watch};
        let mut tasks = JoinSet::new();
        for role in [Dispatch, Dispatch, Dispatch, Set, Watch] {
            let (client, promises) = (client.clone(), promises.clone());
            let play = async move {
                loop {
                    role.play(&client, &promises).await;
                }
            };
            tasks.spawn_on(play, runtime);
        }
        Self { tasks }
    }

    /// One client of each role, which plays it once.
    pub(crate) fn once(runtime: &Handle, client: &Client, promises: &Arc<Mutex<Promises>>) -> Self {
        let mut tasks = JoinSet::new();
        for role in [Role::Dispatch, Role::Set, Role::Watch] {
            let (client, promises) = (client.clone(), promises.clone());
            let play = async move { role.play(&client, &promises).await };
            tasks.spawn_on(play, runtime);
        }
        Self { tasks }
    }

    /// Whether they have done what they came for.
    pub(crate) fn is_over(&mut self) -> bool {
        while self.tasks.try_join_next().is_some() {}
        self.tasks.is_empty()
    }
}

impl Role {
    async fn play(self, client: &Client, promises: &Mutex<Promises>) {
        match self {
            Self::Dispatch => dispatch(client, promises).await,
            Self::Set => set(client, promises).await,
            Self::Watch => watch(client, promises).await,
        }
    }
}

/// The workflow of the load, as its `revision`th text. A step appends its job's id to the file `ran` before anything
/// else, so that a second execution would show. Each success of one scan starts a job of the other.
pub(crate) fn workflow(world: &World, revision: u64) -> String {
    let ran = world.path("ran").display().to_string();
    format!(
        r#"# Text {revision}.
scans:
  count:
    on:
      dispatch:
        inputs:
          tag: {{ type: string, required: true }}
    steps:
      - run: |
          echo "$SERVICE_JOB_ID" >> {ran}
          for n in $(seq {COUNT_LINES}); do echo "$SERVICE_JOB_ID $n"; done
          seq 1 20000 > numbers
    artifacts:
      - name: numbers
        paths: [numbers]
  follow:
    on:
      expr: scans.count.is_available()
    steps:
      - run: |
          echo "$SERVICE_JOB_ID" >> {ran}
          seq -f "$SERVICE_JOB_ID %.0f" {FOLLOW_LINES}
"#
    )
}

/// What the log of a job holds once it has succeeded.
pub(crate) fn expected_log(job: &Job) -> Vec<String> {
    let lines = match job.scan.as_str() {
        "count" => COUNT_LINES,
        _ => FOLLOW_LINES,
    };
    (1..=lines).map(|n| format!("{} {n}", job.id)).collect()
}

/// Asks for the job of a tag. The same tag asks for the same job.
pub(crate) async fn dispatch_tag(client: &Client, tag: &str) -> Result<Job, client::Error> {
    let request = DispatchRequest {
        inputs: [("tag".to_owned(), json!(tag))].into(),
    };
    client.dispatch(WORKFLOW, "count", &request, tag).await
}

/// The number that was set last.
pub(crate) async fn register(client: &Client) -> Result<Option<u64>, client::Error> {
    match client.var(PROJECT, VAR).await {
        Ok(var) => Ok(var.value.trim_end().parse().ok()),
        Err(error) if error.status() == Some(404) => Ok(None),
        Err(error) => Err(error),
    }
}

async fn dispatch(client: &Client, promises: &Mutex<Promises>) {
    let mut jobs = Vec::new();
    while jobs.len() < AT_ONCE {
        let tag = Uuid::new_v4().to_string();
        promises.lock().unwrap().asked(&tag);
        match dispatch_tag(client, &tag).await {
            Ok(job) => {
                promises.lock().unwrap().answered(&tag, &job);
                jobs.push(job.id);
            }
            Err(_) => tokio::time::sleep(PAUSE).await,
        }
    }
    for job in jobs {
        if job.as_u128().is_multiple_of(CANCELLED)
            && let Ok(job) = client.cancel_job(job).await
        {
            promises.lock().unwrap().saw(&job);
        }
        // The daemon holds a question for less time than a job may take on a busy machine.
        while let Ok(job) = client.await_job(job).await {
            promises.lock().unwrap().saw(&job);
            if job.state.is_terminal() {
                break;
            }
        }
    }
}

async fn set(client: &Client, promises: &Mutex<Promises>) {
    let number = promises.lock().unwrap().setting();
    let padding = (number as usize * 7919) % VALUE_BYTES;
    let value = SetValue {
        value: format!("{number}{}", " ".repeat(padding)),
    };
    match client.set_var(PROJECT, VAR, &value).await {
        Ok(_) => promises.lock().unwrap().set(number),
        Err(_) => tokio::time::sleep(PAUSE).await,
    }
}

async fn watch(client: &Client, promises: &Mutex<Promises>) {
    let running = JobFilter {
        state: Some(JobState::Running),
        ..JobFilter::default()
    };
    if let Ok(page) = client.jobs(&running, None, None).await {
        let mut promises = promises.lock().unwrap();
        page.items.iter().for_each(|job| promises.saw(job));
    }
    if let Ok(Some(number)) = register(client).await {
        promises.lock().unwrap().set(number);
    }
    tokio::time::sleep(PAUSE).await;
}
