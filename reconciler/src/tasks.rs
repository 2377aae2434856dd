//! The running reconciler: its start, its tasks, and its stop.
//!
//! Each task has one duty and reads the world again whenever it wakes up. A task that panics is restarted. On a full
//! disk, a task retries at its next wake-up.

use std::collections::HashMap;
use std::path::PathBuf;
use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;

use futures_util::{StreamExt, stream};
use model::decide::Loss;
use model::retention::RetentionSettings;
use model::{Clock, Entropy, JobId, PlainToken, SealingKeys, TokenKind};
use state::{PayloadError, State, SubmitError, WriteError};
use tokio::task::JoinSet;
use tokio::time::Instant;

use crate::blobs::BlobSettings;
use crate::callbacks::CallbackSettings;
use crate::conditions::keep_conditions;
use crate::deadlines::due;
use crate::expiry::remove_expired;
use crate::git::{Calls, LAST_CALLS};
use crate::handle::{Handle, Settings, Upkeep};
use crate::limits::{AT_ONCE, DEADLINE_CHECK, DEFECT_REST};
use crate::retention::enforce_retention;
use crate::sealing::{log_sealed_secrets, reseal};
use crate::source::{self, SourceConfig, SourceHandle};
use crate::supervise::supervise;
use crate::triggers::pull_triggers;

/// The inputs of the reconciler. It measures durations with tokio's clock, which never jumps.
pub struct Start {
    pub state: State,
    pub mirrors: PathBuf,
    pub sources: Vec<SourceConfig>,
    pub clock: Arc<dyn Clock>,
    /// Randomness for worker tokens.
    pub entropy: Box<dyn Entropy>,
    /// The keys for secrets. Without keys, no secret can be set or read.
    pub secret_keys: Option<SealingKeys>,
    pub retention: RetentionSettings,
    /// The longest log of a job, in bytes.
    pub log_limit: u64,
    pub blobs: BlobSettings,
    pub upkeep: Upkeep,
    pub callbacks: Option<CallbackSettings>,
}

pub struct Reconciler {
    handle: Handle,
    tasks: JoinSet<()>,
    git: Calls,
}

impl Reconciler {
    /// Records the configured sources and starts the tasks. It also starts if the disk is full or if recording the
    /// sources panics, so that running jobs can still end.
    pub async fn start(start: Start) -> Result<Self, PayloadError> {
        let Start {
            state,
            mirrors,
            sources,
            clock,
            mut entropy,
            secret_keys,
            retention,
            log_limit,
            blobs,
            upkeep,
            callbacks,
        } = start;
        let secret = PlainToken::random(TokenKind::Personal, &mut *entropy);
        if_possible(state.make_owner(secret).await)?;
        if_possible(source::configure(&state, &sources).await)?;
        let git = Calls::default();
        let sources: Vec<SourceHandle> = sources
            .into_iter()
            .map(|config| SourceHandle::new(config, &mirrors, git.clone()))
            .collect();
        let settings = Settings {
            retention,
            log_limit,
            secret_keys,
            upkeep,
            callbacks,
        };
        let handle = Handle::new(state, clock, entropy, &sources, settings, blobs);
        log_sealed_secrets(&handle);
        let mut tasks = JoinSet::new();
        for source in sources {
            let state = handle.state().clone();
            let name = format!("source {}", source.name());
            let follow = move || source.clone().follow(state.clone());
            tasks.spawn(supervise(name, follow));
        }
        spawn(&mut tasks, "offers", &handle, hand_out);
        spawn(&mut tasks, "deadlines", &handle, keep_time);
        spawn(&mut tasks, "triggers", &handle, pull_triggers);
        spawn(&mut tasks, "conditions", &handle, keep_conditions);
        spawn(&mut tasks, "expiry", &handle, remove_expired);
        spawn(&mut tasks, "sealing", &handle, reseal);
        spawn(&mut tasks, "retention", &handle, enforce_retention);
        spawn(&mut tasks, "refused sign-ins", &handle, async |handle| {
            handle.sign_ins().write_refused_sign_ins().await;
        });
        spawn(&mut tasks, "logs", &handle, async |handle| {
            handle.state().keep_logs_durable().await;
        });
        Ok(Self { handle, tasks, git })
    }

    /// Runs a further task until the daemon stops. If it panics, it is started again.
    pub fn add<F: Future<Output = ()> + Send + 'static>(
        &mut self,
        name: &str,
        task: impl Fn(Handle) -> F + Send + 'static,
    ) {
        spawn(&mut self.tasks, name, &self.handle, task);
    }

    pub fn handle(&self) -> Handle {
        self.handle.clone()
    }

    /// Ends the tasks as a crash would.
    #[cfg(test)]
    pub(crate) async fn crash(mut self) {
        self.tasks.shutdown().await;
    }

    /// Answers waiting polls without a message, ends the tasks, and then ends the fetches that still run.
    pub async fn stop(mut self) {
        self.handle.drain();
        self.handle.clock().follow_at_once().await;
        self.handle.sign_ins().write_refused().await;
        self.tasks.shutdown().await;
        let git = self.git;
        let ended = tokio::task::spawn_blocking(move || git.end(LAST_CALLS)).await;
        if !matches!(ended, Ok(true)) {
            tracing::warn!("a fetch is still running: the kernel does not end `git`");
        }
    }
}

fn if_possible(done: Result<(), impl Into<PayloadError>>) -> Result<(), PayloadError> {
    match done.map_err(Into::into) {
        Err(
            error @ (PayloadError::Submit(
                SubmitError::DiskLow | SubmitError::DiskFull | SubmitError::Defect { .. },
            )
            | PayloadError::Write(WriteError::DiskFull)),
        ) => {
            tracing::error!(%error, "starting with the earlier configuration");
            Ok(())
        }
        done => done,
    }
}

fn spawn<F: Future<Output = ()> + Send + 'static>(
    tasks: &mut JoinSet<()>,
    name: &str,
    handle: &Handle,
    task: impl Fn(Handle) -> F + Send + 'static,
) {
    let handle = handle.clone();
    tasks.spawn(supervise(name.to_owned(), move || task(handle.clone())));
}

/// Answers waiting polls whenever the world changes, a poll arrives, an offer expires or a retry is due.
async fn hand_out(handle: Handle) {
    let mut changes = handle.state().changed();
    // One timer that is reset. If each round created a timer, a worker that sleeps until an earlier timer might have to
    // be woken.
    let mut lapsed = pin!(tokio::time::sleep(Duration::ZERO));
    loop {
        let next_check = handle.runners().assign();
        if let Some(at) = next_check {
            lapsed.as_mut().reset(at);
        }
        tokio::select! {
            changed = changes.changed() => if changed.is_err() { return },
            () = handle.runners().board_woken() => {}
            () = &mut lapsed, if next_check.is_some() => {}
        }
    }
}

/// Ends jobs whose deadline has passed, and waiting jobs whose scan was removed or suspended.
async fn keep_time(handle: Handle) {
    let (state, runners) = (handle.state(), handle.runners());
    let mut changes = state.changed();
    // Jobs whose end panicked, and the time of the next attempt.
    let mut resting: HashMap<JobId, Instant> = HashMap::new();
    // When leases are checked again. The removal of a runner also causes a check.
    let (mut leases_at, mut registered_before) = (Instant::now(), 0);
    let mut has_failed = false;
    let mut lapsed = pin!(tokio::time::sleep(Duration::ZERO));
    loop {
        handle.clock().follow().await;
        resting.retain(|_, until| *until > Instant::now());
        let now = Instant::now();
        let (due, leases) = state.read(|world| {
            let mut presence = runners.presence();
            let registered = world.runners().len();
            presence.keep(registered, |runner| world.runner(runner).is_some());
            let leases = now >= leases_at || registered != registered_before || has_failed;
            registered_before = registered;
            let due = due(world, &presence, handle.time(world), now, leases);
            (due, leases)
        });
        let unwanted: Vec<(JobId, Loss)> = state.read(|world| {
            let orphans = world.orphans().map(|job| (job, Loss::Retired));
            let withdrawn = world.withdrawn().map(|job| (job, Loss::Suspended));
            orphans.chain(withdrawn).collect()
        });
        has_failed = false;
        // Submit them together, so that they share commits.
        let ends = due.jobs.into_iter().chain(unwanted);
        let ends: Vec<_> = ends.filter(|(job, _)| !resting.contains_key(job)).collect();
        let mut ended = stream::iter(ends)
            .map(|(job, loss)| async move { (job, runners.end(state, job, loss).await) })
            .buffer_unordered(AT_ONCE);
        while let Some((job, ended)) = ended.next().await {
            let Err(error) = ended else {
                continue;
            };
            // A full disk is retried at the next wake-up. A failed disk ends the process.
            tracing::warn!(%job, %error, "a job cannot be ended");
            has_failed = true;
            if let SubmitError::Defect { .. } = error {
                resting.insert(job, Instant::now() + DEFECT_REST);
            }
        }
        let pause = due
            .next
            .map_or(DEADLINE_CHECK, |next| next.min(DEADLINE_CHECK));
        if leases {
            leases_at = now + pause;
        }
        let pause = pause.min(leases_at.saturating_duration_since(now));
        let next = Instant::now() + pause;
        runners.presence().checked(next);
        lapsed.as_mut().reset(next);
        tokio::select! {
            changed = changes.changed() => if changed.is_err() { return },
            () = handle.clock().jumped() => {}
            () = &mut lapsed => {}
        }
    }
}

#[cfg(test)]
mod tests;
