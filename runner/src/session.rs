//! A runner's session with the daemon: it says hello, polls for jobs, starts a worker for each job, stops jobs that the daemon
//! cancels, and says goodbye. It holds a job from the moment it reads the offer until the job's worker has ended, so that the
//! daemon can distinguish a lost job from a running job.

mod error;
mod renewal;
mod rest;

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use client::{Backoff, Client, Error as ClientError, PollAnswer, Secret};
use model::{CALLBACK, CHECKOUT, JOB_TOKEN, error_chain};
use tokio::sync::watch;
use tokio::task::{Id, JoinError, JoinSet};
use tokio::time::{Instant, sleep_until, timeout};
use uuid::Uuid;
use wire::{Hello, JobAssigned, Message, Poll};

use crate::clock;
use crate::configuration::{Configuration, ConfigurationError};
use crate::conflict::Conflict;
use crate::contact::Contact;
use crate::environment::HostEnvironment;
use crate::escaped;
use crate::instance::Instance;
use crate::jobs_thread::JobsThread;
use crate::limits;
use crate::options::Options;
use crate::polls::Polls;
use crate::shutdown::{Shutdown, Urgency};
use crate::source_cache::SourceCache;
use crate::stop::{Stop, StopSignal};
use crate::supervisor::Supervisors;
use crate::workdir::{self, Workdir};
use crate::worker::{Shared, Worked, work};
use renewal::Saved;
use rest::Rests;

pub use error::SessionError;

const HOW_TO_FORCE: &str = "a second signal cancels them, a third waits for nothing";

/// A client without a token yet.
pub(crate) fn client(
    url: &str,
    ca_file: Option<&Path>,
    insecure_http: bool,
) -> Result<Client, ClientError> {
    let client = Client::trusting(url, None, ca_file)?;
    if insecure_http {
        Ok(client)
    } else {
        client.refuse_plain_http()
    }
}

#[derive(Debug)]
pub struct Setup {
    pub configuration: Configuration,
    /// The folder of its configuration. Renewed tokens and log spools also go there.
    pub folder: PathBuf,
    pub environment: HostEnvironment,
    /// The program that supervises steps, which calls [`crate::before_main`]: [`crate::OWN_PROGRAM`].
    pub supervisor: PathBuf,
    pub options: Options,
}

/// Works for the daemon until a signal stops it, and returns when no job is left. After an error, running jobs finish first,
/// unless the daemon has lost them.
pub async fn serve(setup: Setup, shutdown: watch::Receiver<Urgency>) -> Result<(), SessionError> {
    let configuration = setup.configuration;
    let url = configuration.url.clone();
    let ca_file = configuration.ca_file.as_deref();
    let connect =
        || client(&url, ca_file, configuration.insecure_http).map_err(SessionError::Client);
    let anonymous = connect()?;
    let instance = Instance::take(&setup.folder)?;
    let workdir = Workdir::open(&configuration.workdir)?;
    escaped::end(workdir.jobs(), Instant::now() + setup.options.grace).await;
    workdir.clear();
    workdir::remove_leftovers(&setup.folder.join("spool"));
    // Separate connections: the connections of the jobs wait while the jobs' thread is blocked.
    let client = connect()?.with_token(Secret::new(configuration.token.clone()));
    let sources = SourceCache::open(setup.folder.join("sources"), setup.options.source_cache);
    let contact = Contact::new(setup.options.silence);
    let shared = Shared {
        client: anonymous,
        sources,
        url,
        folder: setup.folder,
        workdir,
        environment: setup
            .environment
            .with_connection(ca_file, configuration.insecure_http),
        supervisors: Supervisors::new(setup.supervisor, setup.options),
        urgency: shutdown.clone(),
        options: setup.options,
        contact,
        tried: Mutex::default(),
    };
    let session = Session {
        client,
        configuration,
        instance,
        shared: Arc::new(shared),
        held: BTreeMap::new(),
        thread: JobsThread::start().map_err(SessionError::Thread)?,
        workers: JoinSet::new(),
        jobs_of_workers: BTreeMap::new(),
        rests: Rests::new(setup.options.first_rest),
        saving: JoinSet::new(),
        polls: Polls::new(clock::since_boot()),
        outdated: true,
        backoff: limits::backoff(),
        conflict: Conflict::none(),
        poll_after: Instant::now(),
        offered_at: Instant::now(),
        give_up_at: None,
        shutdown: Shutdown::new(shutdown),
    };
    session.run().await
}

#[derive(Debug)]
struct Held {
    stop: StopSignal,
    /// An offer whose worker has not started. It waits until every poll in flight has at least this number.
    waiting: Option<(JobAssigned, u64)>,
}

struct Session {
    client: Client,
    configuration: Configuration,
    instance: Instance,
    shared: Arc<Shared>,
    held: BTreeMap<Uuid, Held>,
    thread: JobsThread,
    workers: JoinSet<Worked>,
    jobs_of_workers: BTreeMap<Id, Uuid>,
    rests: Rests,
    /// A renewed token that is being written to disk.
    saving: JoinSet<Result<Configuration, ConfigurationError>>,
    polls: Polls,
    /// True if the newest poll does not list the jobs held now, or no poll is in flight.
    outdated: bool,
    backoff: Backoff,
    conflict: Conflict,
    poll_after: Instant,
    offered_at: Instant,
    give_up_at: Option<Instant>,
    shutdown: Shutdown,
}

enum Wake {
    Answer(bool, Result<PollAnswer, ClientError>),
    WorkerEnded(Result<(Id, Worked), JoinError>),
    Rested,
    Saved(Saved),
    Shutdown(Urgency),
    PollDue,
    GiveUp,
}

impl Session {
    async fn run(mut self) -> Result<(), SessionError> {
        let mut ended = self.send_hello().await;
        while ended.is_ok() && !self.is_done() {
            let wake = self.next_wake().await;
            ended = self.on_wake(wake);
        }
        if let Err(error) = &ended {
            if error.has_lost_jobs() {
                tracing::warn!(
                    jobs = self.held.len(),
                    "stopping the running jobs, which are lost"
                );
                for held in self.held.values() {
                    held.stop.stop_reporting();
                }
            }
            // After any other error the jobs continue, because their workers have their own tokens.
            self.finish_jobs().await;
        } else {
            self.send_goodbye().await;
        }
        ended
    }

    fn urgency(&self) -> Urgency {
        self.shutdown.now()
    }

    fn is_done(&self) -> bool {
        self.urgency() >= Urgency::Drain && self.held.is_empty()
    }

    async fn send_hello(&mut self) -> Result<(), SessionError> {
        let hello = self.hello();
        while self.urgency() == Urgency::None {
            let answered = tokio::select! {
                answered = self.client.hello(&hello) => answered,
                _ = self.shutdown.changed() => return Ok(()),
            };
            let Err(error) = answered else {
                self.is_heard();
                tracing::info!(
                    url = self.configuration.url,
                    name = self.configuration.name,
                    "ready"
                );
                return Ok(());
            };
            let pause = self.after_error(error)?;
            tokio::select! {
                () = sleep_until(Instant::now() + pause) => {}
                _ = self.shutdown.changed() => {}
            }
        }
        Ok(())
    }

    async fn next_wake(&mut self) -> Wake {
        let poll_after = self.poll_after();
        if self.outdated && self.polls.has_room() && poll_after <= Instant::now() {
            self.outdated = false;
            self.polls.send(self.client.clone(), self.poll());
        }
        let is_due = self.outdated && self.polls.has_room();
        let give_up = give_up_time(self.give_up_at);
        tokio::select! {
            (newest, answer) = self.polls.answer() => Wake::Answer(newest, answer),
            Some(ended) = self.workers.join_next_with_id() => Wake::WorkerEnded(ended),
            () = self.rests.end() => Wake::Rested,
            Some(saved) = self.saving.join_next() => Wake::Saved(saved),
            urgency = self.shutdown.changed() => Wake::Shutdown(urgency),
            () = sleep_until(poll_after), if is_due => Wake::PollDue,
            () = give_up => Wake::GiveUp,
        }
    }

    /// When the next poll may be sent. A poll without a free slot can wait a little: often a job ends meanwhile, and one poll
    /// then reports both changes.
    fn poll_after(&self) -> Instant {
        if self.held.len() < self.configuration.capacity as usize {
            return self.poll_after;
        }
        self.poll_after
            .max(self.offered_at + self.shared.options.full_pause)
    }

    fn on_wake(&mut self, wake: Wake) -> Result<(), SessionError> {
        match wake {
            Wake::Answer(newest, Ok(answer)) => {
                self.outdated |= newest;
                let is_empty = answer.messages.is_empty();
                self.take(answer);
                // The daemon holds a poll until it has a message; another server may answer at once.
                if newest && is_empty {
                    self.poll_after += limits::FIRST_PAUSE;
                }
                self.start_waiting_workers();
            }
            Wake::Answer(newest, Err(error)) => {
                self.outdated |= newest;
                let pause = self.after_error(error)?;
                // The end of a replaced poll causes no delay.
                if newest {
                    self.poll_after = Instant::now() + pause;
                }
                self.start_waiting_workers();
            }
            Wake::WorkerEnded(ended) => self.release(ended),
            Wake::Rested => {
                tracing::info!("jobs can be set up again");
                self.outdated = true;
            }
            Wake::Saved(saved) => self.use_saved(saved),
            Wake::Shutdown(urgency) => self.on_urgency(urgency),
            Wake::PollDue => {}
            Wake::GiveUp => self.abandon(),
        }
        Ok(())
    }

    /// The daemon has accepted a request of this process.
    fn is_heard(&mut self) {
        self.shared.contact.heard();
        self.backoff.succeeded();
        self.conflict.resolved(&self.configuration.name);
    }

    fn hello(&self) -> Hello {
        Hello {
            version: env!("CARGO_PKG_VERSION").to_owned(),
            instance: self.instance.id(),
            capabilities: [CALLBACK, CHECKOUT, JOB_TOKEN].map(str::to_owned).into(),
        }
    }

    fn poll(&self) -> Poll {
        let capacity = match self.urgency() {
            Urgency::None if !self.rests.is_resting() => self.configuration.capacity,
            Urgency::None | Urgency::Drain | Urgency::Cancel | Urgency::Abandon => 0,
        };
        Poll {
            instance: self.instance.id(),
            number: Some(self.polls.next_number()),
            capacity,
            holding: self.held.keys().copied().collect(),
        }
    }

    fn take(&mut self, answer: PollAnswer) {
        self.is_heard();
        self.poll_after = Instant::now();
        if let Some(token) = answer.renewed_token {
            self.renew(token);
        }
        for message in answer.messages {
            match message {
                Message::JobAssigned(offer) => self.hold(offer),
                Message::JobCancelled(cancelled) => {
                    if let Some(held) = self.held.get(&cancelled.id) {
                        held.stop.request(Stop::Cancelled);
                    }
                }
            }
        }
    }

    fn hold(&mut self, offer: JobAssigned) {
        // A runner that is ending, or cannot set up jobs, lets the offer lapse. A held job was already offered before.
        if self.urgency() >= Urgency::Drain
            || self.rests.is_resting()
            || self.held.contains_key(&offer.id)
        {
            return;
        }
        let held = Held {
            stop: StopSignal::new(),
            waiting: Some((offer.clone(), self.polls.next_number())),
        };
        self.held.insert(offer.id, held);
        self.offered_at = Instant::now();
        self.outdated = true;
    }

    fn start_waiting_workers(&mut self) {
        for (job, held) in &mut self.held {
            if let Some((offer, _)) = held
                .waiting
                .take_if(|(_, first_poll)| self.polls.all_know(*first_poll))
            {
                let worker = work(Arc::clone(&self.shared), offer, held.stop.clone());
                let id = self.workers.spawn_on(worker, &self.thread.runtime).id();
                self.jobs_of_workers.insert(id, *job);
            }
        }
    }

    fn release(&mut self, ended: Result<(Id, Worked), JoinError>) {
        let id = match ended {
            Ok((id, worked)) => {
                match worked {
                    Worked::Done => self.rests.job_done(),
                    Worked::Lapsed => {}
                    Worked::CannotSetUp(error) => {
                        let worker = Arc::clone(&self.shared);
                        if self.rests.begin(&error, worker, &self.thread.runtime) {
                            // Waiting offers lapse, and other runners get those jobs.
                            self.held.retain(|_, held| held.waiting.is_none());
                        }
                    }
                }
                id
            }
            Err(error) => {
                tracing::error!(%error, "a worker panicked");
                error.id()
            }
        };
        if let Some(job) = self.jobs_of_workers.remove(&id) {
            self.held.remove(&job);
            self.outdated = true;
        }
    }

    fn on_urgency(&mut self, urgency: Urgency) {
        self.outdated = true;
        match urgency {
            Urgency::None => {}
            Urgency::Drain => {
                let jobs = self.held.len();
                if jobs == 0 {
                    tracing::info!("taking no new jobs");
                } else {
                    tracing::info!(
                        jobs,
                        "taking no new jobs and waiting for the running ones; {HOW_TO_FORCE}"
                    );
                }
            }
            Urgency::Cancel => {
                tracing::info!(jobs = self.held.len(), "cancelling the running jobs");
                for held in self.held.values() {
                    held.stop.request(Stop::RunnerStopped);
                }
                let options = self.shared.options;
                let patience = options.grace + limits::AFTER_KILL + options.final_report;
                self.give_up_at = Some(Instant::now() + patience);
            }
            Urgency::Abandon => self.abandon(),
        }
        // Waiting offers will not be claimed.
        self.held.retain(|_, held| held.waiting.is_none());
    }

    fn abandon(&mut self) {
        self.give_up_at = None;
        self.workers.abort_all();
    }

    fn after_error(&mut self, error: ClientError) -> Result<Duration, SessionError> {
        if matches!(error.status(), Some(401 | 403 | 404)) {
            return Err(SessionError::Unknown {
                url: self.configuration.url.clone(),
                source: error,
            });
        }
        if Conflict::is_cause_of(&error) {
            return Ok(self.conflict.refused(&self.configuration.name));
        }
        let pause = self.backoff.failed();
        let pause = pause.max(error.retry_after().unwrap_or_default());
        let error = error_chain(&error);
        if self.urgency() == Urgency::None {
            tracing::warn!(error, ?pause, "cannot ask for work");
        } else {
            let jobs = self.held.len();
            tracing::warn!(
                error,
                ?pause,
                jobs,
                "waiting for the daemon, to report how the jobs end; {HOW_TO_FORCE}"
            );
        }
        Ok(pause)
    }

    async fn finish_jobs(&mut self) {
        while !self.workers.is_empty() {
            tokio::select! {
                Some(ended) = self.workers.join_next_with_id() => self.release(ended),
                urgency = self.shutdown.changed() => self.on_urgency(urgency),
                () = give_up_time(self.give_up_at) => self.abandon(),
            }
        }
    }

    async fn send_goodbye(&self) {
        match timeout(
            self.shared.options.final_report,
            self.client.goodbye(&self.hello()),
        )
        .await
        {
            Ok(Ok(())) => {}
            Ok(Err(error)) => {
                tracing::warn!(error = error_chain(&error), "could not send the goodbye")
            }
            Err(_) => tracing::warn!("could not send the goodbye: no answer in time"),
        }
    }
}

async fn give_up_time(at: Option<Instant>) {
    match at {
        Some(at) => sleep_until(at).await,
        None => std::future::pending().await,
    }
}
