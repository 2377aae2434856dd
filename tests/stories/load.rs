//! Clients that keep a daemon busy and record its responses.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use client::{Client, Expected, JobFilter};
use serde_json::json;
use tokio::runtime::Handle;
use tokio::task::JoinSet;
use uuid::Uuid;
use wire::{ChangedJob, DispatchRequest, Job, JobState, SetValue};

use crate::copies::{self, Copier};
use crate::promises::Promises;
use crate::removals;
use crate::support::World;

/// Jobs of one client at once.
const AT_ONCE: usize = 3;

/// With this many unfinished jobs clients dispatch no more: jobs should end before the next kill.
const WAITING: usize = 24;

/// Log lines of a job of each scan: few enough for its last commit, or so many that they are synced before.
const COUNT_LINES: usize = 40;
const FOLLOW_LINES: usize = 600;

/// Finished jobs that a workflow keeps: few enough that some are removed between any two kills.
pub(crate) const KEPT: usize = 24;

/// Characters of a large input. A record has at most 64 KiB of inputs, so these become a separate object.
const LARGE_INPUT: usize = 65_535;

/// Longest value that is set: in a few seconds such values fill segments of the journal.
const VALUE_BYTES: usize = 48 * 1024;

/// Jobs of the second workflow are cancelled. They have their own workflow because retention keeps a cancelled job, and
/// all that ended after it, for two minutes.
pub(crate) const WORKFLOWS: [&str; 2] = ["count", "stop"];

const PROJECT: &str = "main";
const VAR: &str = "REGISTER";

/// Pause of a client that was refused or has nothing to do.
pub(crate) const PAUSE: Duration = Duration::from_millis(10);

/// Running clients. Dropping the value stops them.
pub(crate) struct Load {
    tasks: JoinSet<()>,
}

/// The role of a client.
#[derive(Clone, Copy)]
enum Role {
    /// Dispatches some jobs, cancels some of them, and waits for their ends.
    Dispatch,
    /// Sets a var to the next number.
    Set,
    /// Reads the jobs of other clients: every response must still be true after a power cut.
    Watch,
    /// Deletes a job or an artifact.
    Delete,
    /// Prunes more jobs than retention removes.
    Prune,
    /// Makes a backup.
    BackUp,
}

/// Shared by all roles.
#[derive(Clone)]
pub(crate) struct Player {
    pub(crate) client: Client,
    pub(crate) copier: Copier,
    pub(crate) promises: Arc<Mutex<Promises>>,
}

impl Load {
    /// Starts clients that never end.
    pub(crate) fn start(runtime: &Handle, player: &Player) -> Self {
        use Role::{BackUp, Delete, Dispatch, Prune, Set, Watch};
        let mut tasks = JoinSet::new();
        for role in [
            Dispatch, Dispatch, Dispatch, Set, Watch, Delete, Prune, BackUp,
        ] {
            let player = player.clone();
            let play = async move {
                loop {
                    role.play(&player).await;
                }
            };
            tasks.spawn_on(play, runtime);
        }
        Self { tasks }
    }

    /// Runs one client of each role, once.
    pub(crate) fn once(runtime: &Handle, player: &Player) -> Self {
        use Role::{BackUp, Delete, Dispatch, Prune, Set, Watch};
        let mut tasks = JoinSet::new();
        for role in [Dispatch, Set, Watch, Delete, Prune, BackUp] {
            let player = player.clone();
            tasks.spawn_on(async move { role.play(&player).await }, runtime);
        }
        Self { tasks }
    }

    /// Whether all of them have finished.
    pub(crate) fn is_over(&mut self) -> bool {
        while self.tasks.try_join_next().is_some() {}
        self.tasks.is_empty()
    }
}

impl Role {
    async fn play(self, player: &Player) {
        let Player {
            client,
            copier,
            promises,
        } = player;
        match self {
            Self::Dispatch => dispatch(client, promises).await,
            Self::Set => set(client, promises).await,
            Self::Watch => watch(client, promises).await,
            Self::Delete => removals::delete(client, promises).await,
            Self::Prune => removals::prune(client).await,
            Self::BackUp => copies::back_up(copier, promises).await,
        }
    }
}

/// The daemon's configuration.
pub(crate) fn configuration() -> String {
    format!("retention: {{jobs: {KEPT}}}\n")
}

/// The text of the load's workflows, the `revision`th one. A step appends its job's id to the file `ran` before anything
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
          padding: {{ type: string, default: "" }}
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

/// The log of a successful job.
pub(crate) fn expected_log(job: &Job) -> Vec<String> {
    let lines = match job.scan.as_str() {
        "count" => COUNT_LINES,
        _ => FOLLOW_LINES,
    };
    (1..=lines).map(|n| format!("{} {n}", job.id)).collect()
}

/// Dispatches the job of a tag. The same tag gives the same job: its first digit selects the workflow, its last one
/// large inputs.
pub(crate) async fn dispatch_tag(client: &Client, tag: &str) -> Result<Job, client::Error> {
    let workflow = WORKFLOWS[usize::from(is_cancelled(tag))];
    let mut inputs = BTreeMap::from([("tag".to_owned(), json!(tag))]);
    if tag.ends_with(['0', '1', '2', '3']) {
        let padding: String = tag.chars().cycle().take(LARGE_INPUT).collect();
        inputs.insert("padding".to_owned(), json!(padding));
    }
    let request = DispatchRequest { inputs };
    let made = client.dispatch(workflow, "count", &request, tag).await?;
    Ok(whole(made))
}

/// The token of the load may read jobs.
fn whole(job: ChangedJob) -> Job {
    match job {
        ChangedJob::Whole(job) => *job,
        ChangedJob::Short { .. } => panic!("{job:?}"),
    }
}

fn is_cancelled(tag: &str) -> bool {
    tag.starts_with(['0', '1'])
}

/// The number that was set last.
pub(crate) async fn register(client: &Client) -> Result<Option<u64>, client::Error> {
    match client.var(PROJECT, VAR).await {
        Ok(var) => Ok(var.value.trim_end().parse().ok()),
        Err(error) if error.status() == Some(404) => Ok(None),
        Err(error) => Err(error),
    }
}

/// Waits until a job has ended or was removed.
pub(crate) async fn ended(client: &Client, job: Uuid) {
    loop {
        match client.await_job(job).await {
            Ok(job) if job.state.is_terminal() => return,
            Err(error) if error.status() == Some(404) => return,
            Ok(_) | Err(_) => tokio::time::sleep(PAUSE).await,
        }
    }
}

async fn dispatch(client: &Client, promises: &Mutex<Promises>) {
    if promises.lock().unwrap().unfinished().len() > WAITING {
        return tokio::time::sleep(PAUSE).await;
    }
    let mut jobs = Vec::new();
    while jobs.len() < AT_ONCE {
        let tag = Uuid::new_v4().to_string();
        promises.lock().unwrap().asked(&tag);
        match dispatch_tag(client, &tag).await {
            Ok(job) => {
                promises.lock().unwrap().answered(&tag, &job);
                jobs.push((job.id, tag));
            }
            Err(_) => tokio::time::sleep(PAUSE).await,
        }
    }
    for (job, tag) in jobs {
        if is_cancelled(&tag)
            && let Ok(job) = client.cancel_job(&job.to_string()).await
        {
            promises.lock().unwrap().saw(&whole(job));
        }
        // On a busy machine a job may take longer than the daemon holds a request.
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
    match client
        .set_var(PROJECT, VAR, &value, Expected::Anything)
        .await
    {
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
