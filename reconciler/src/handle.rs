//! The handle, which receives all commands.
//!
//! It gives access to the parts of the running daemon, each for one subject. A function that needs several parts is a
//! method of the handle, in the file of its subject.

use std::sync::Arc;

use chrono::TimeDelta;
use model::decide::{LimitRunner, RemoveRunner};
use model::retention::RetentionSettings;
use model::{
    Clock, Entropy, Guard, Job, Principal, Reason, Rights, RunnerId, SealingKeys, Timestamp, World,
    waiting,
};
use state::{AuditEntry, State, SubmitError};
use tokio::sync::{Mutex, watch};

use crate::blobs::{BlobSettings, Blobs};
use crate::callbacks::CallbackSettings;
use crate::clock::ClockWatch;
use crate::evaluations::Evaluations;
use crate::runners::Runners;
use crate::sign_in::SignIns;
use crate::source::SourceHandle;
use crate::sources::Sources;

/// Receives all commands. Cheap to clone.
#[derive(Clone)]
pub struct Handle {
    state: State,
    blobs: Blobs,
    parts: Arc<Parts>,
}

/// Shared by all handles of a daemon.
struct Parts {
    clock: Arc<dyn Clock>,
    clock_watch: ClockWatch,
    runners: Runners,
    sources: Sources,
    sign_ins: SignIns,
    settings: Settings,
    evaluations: Arc<Evaluations>,
    removals: Arc<Mutex<()>>,
    stopping: watch::Sender<bool>,
    /// For work that goes on after the request that asks for it.
    state: State,
}

/// What the instance needs to go on, in addition to its disk.
#[derive(Debug, Default)]
pub struct Upkeep {
    /// When the certificate of the daemon's listener expires.
    pub certificate: Option<watch::Receiver<Option<Timestamp>>>,
    /// When the certificate of callback servers expires, if there is one yet. None without HTTPS.
    pub callback_certificate: Option<watch::Receiver<Option<Timestamp>>>,
    /// How old the newest backup may become.
    pub backup_within: Option<TimeDelta>,
}

impl Upkeep {
    pub fn certificate_expires(&self) -> Option<Timestamp> {
        *self.certificate.as_ref()?.borrow()
    }
}

/// The configuration of retention, logs, secrets, upkeep and callbacks.
pub struct Settings {
    pub(crate) retention: RetentionSettings,
    /// The longest log of a job, in bytes.
    pub(crate) log_limit: u64,
    pub(crate) secret_keys: Option<SealingKeys>,
    pub upkeep: Upkeep,
    /// None if no zone is configured.
    pub callbacks: Option<CallbackSettings>,
}

impl Handle {
    pub(crate) fn new(
        state: State,
        clock: Arc<dyn Clock>,
        entropy: Box<dyn Entropy>,
        sources: &[SourceHandle],
        settings: Settings,
        blobs: BlobSettings,
    ) -> Self {
        let entropy = Arc::new(std::sync::Mutex::new(entropy));
        let stopping = watch::Sender::new(false);
        let parts = Parts {
            clock_watch: ClockWatch::new(state.clone(), clock.clone()),
            runners: Runners::new(state.clone(), clock.clone(), entropy.clone()),
            sources: Sources::new(sources, stopping.subscribe()),
            sign_ins: SignIns::new(state.clone(), clock.clone(), entropy),
            settings,
            evaluations: Arc::default(),
            removals: Arc::default(),
            stopping,
            clock: clock.clone(),
            state: state.clone(),
        };
        Self {
            blobs: Blobs::new(state.clone(), clock, blobs),
            state,
            parts: Arc::new(parts),
        }
    }

    /// Why a scheduled job has not started.
    pub fn why_waiting(&self, job: &Job) -> Option<Reason> {
        // Read this before locking the world, to avoid a deadlock with the code that assigns jobs.
        let in_hand = self.runners().jobs_in_hand();
        let holding = |runner| in_hand.get(&runner);
        let ahead = self.now() - self.steady();
        self.state.read(|world| {
            let is_connected = |runner| self.runners().is_connected(runner);
            let is_suspended = world.suspension(&job.scan_key()).is_some();
            let time = self.time(world);
            let retry = job.waits_for_its_time(time);
            match retry.filter(|_| !is_suspended) {
                Some(retry) => Some(retry.by_clock(ahead)),
                None => waiting(world, job, time, is_connected, holding),
            }
        })
    }

    /// The state, for reading and for commands that need no part.
    pub fn state(&self) -> &State {
        &self.state
    }

    /// The same handle for one request of a person. Each commit of the request adds a line to the audit log.
    #[must_use]
    pub fn audited(&self, entry: AuditEntry) -> Self {
        let state = self.state.audited(entry);
        Self {
            blobs: self.blobs.with_state(state.clone()),
            state,
            parts: self.parts.clone(),
        }
    }

    /// The same handle for one request: each of its decisions checks the rights of the caller.
    #[must_use]
    pub fn guarded(&self, guard: Arc<Guard>) -> Self {
        let state = self.state.guarded(guard);
        Self {
            blobs: self.blobs.with_state(state.clone()),
            state,
            parts: self.parts.clone(),
        }
    }

    /// The state without the audit and the rights of a request.
    pub(crate) fn own_state(&self) -> &State {
        &self.parts.state
    }

    pub fn runners(&self) -> &Runners {
        &self.parts.runners
    }

    pub fn sources(&self) -> &Sources {
        &self.parts.sources
    }

    pub fn sign_ins(&self) -> &SignIns {
        &self.parts.sign_ins
    }

    pub fn settings(&self) -> &Settings {
        &self.parts.settings
    }

    pub fn blobs(&self) -> &Blobs {
        &self.blobs
    }

    pub fn clock(&self) -> &ClockWatch {
        &self.parts.clock_watch
    }

    pub(crate) fn evaluations(&self) -> &Arc<Evaluations> {
        &self.parts.evaluations
    }

    /// The lock for records of finished jobs.
    pub(crate) fn removals(&self) -> Arc<Mutex<()>> {
        self.parts.removals.clone()
    }

    pub fn now(&self) -> Timestamp {
        self.parts.clock.now()
    }

    pub fn time(&self, world: &World) -> Timestamp {
        world.time(self.parts.clock.steady())
    }

    /// The present rights of a caller. None if its credential is not valid any more.
    pub fn rights(&self, principal: &Principal) -> Option<Rights> {
        self.state()
            .read(|world| principal.rights(world, self.time(world)))
    }

    /// The time for comparing expiry times: the wall clock without the jumps that are not trusted yet.
    pub fn steady(&self) -> Timestamp {
        self.state.read(|world| self.time(world))
    }

    /// Converts an expiry time to the wall clock.
    pub fn by_the_clock(&self, end: Timestamp) -> Timestamp {
        end + (self.now() - self.steady())
    }

    /// Removes a runner. Its jobs are lost.
    pub async fn remove_runner(&self, runner: RunnerId, by: Rights) -> Result<(), SubmitError> {
        self.state.submit(RemoveRunner { runner, by }).await?;
        self.runners().removed(&self.state, runner).await
    }

    /// Gives a runner other projects.
    pub async fn limit_runner(&self, limit: LimitRunner) -> Result<(), SubmitError> {
        let runner = limit.runner;
        self.state.submit(limit).await?;
        self.runners().board().end_poll(runner);
        Ok(())
    }

    /// Ends every waiting poll and read without a message, because the daemon is stopping.
    pub fn drain(&self) {
        self.runners().board().close();
        self.parts.stopping.send_replace(true);
    }

    pub fn is_stopping(&self) -> bool {
        *self.parts.stopping.borrow()
    }

    /// Waits until the daemon is stopping.
    pub async fn stopping(&self) {
        let mut stopping = self.parts.stopping.subscribe();
        // The sender lives as long as this handle.
        drop(stopping.wait_for(|stopping| *stopping).await);
    }
}
