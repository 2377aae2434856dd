//! One job from its offer to its acknowledged completion: claim, execute, ship, upload, complete, clean up. The daemon
//! may be away at any time: the worker repeats each request until it is answered, while the steps continue.

mod artifacts;
mod deadlines;

use std::collections::{BTreeMap, BTreeSet};
use std::io;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, OnceLock, PoisonError};

use client::Client;
use model::{Masker, error_chain};
use tokio::sync::watch;
use tokio::task::{JoinSet, spawn_blocking};
use tokio::time::{Instant, timeout_at};
use uuid::Uuid;
use wire::{Assignment, CompleteJob, JobFailure, JobState, LeftOut};

use crate::checkout;
use crate::contact::Contact;
use crate::environment::HostEnvironment;
use crate::evaluation::Evaluation;
use crate::execution::{Conclusion, Execution};
use crate::job_log::JobLog;
use crate::limits;
use crate::link::{Link, Verdict};
use crate::log_shipper::LogShipper;
use crate::options::Options;
use crate::shutdown::{self, Urgency};
use crate::slots::Place;
use crate::source_cache::SourceCache;
use crate::spool;
use crate::step_outputs::JobOutputs;
use crate::stop::{Stop, StopSignal};
use crate::supervisor::{JobProcesses, Supervisors};
use crate::timeline::{self, Timeline};
use crate::workdir::{self, Workdir};
use deadlines::{Deadlines, watch};

/// The file in the runner's folder that a check writes, because the spool needs this disk.
const TRIED: &str = "try";

/// The outcome of a job that the daemon had already closed.
const ALREADY_OVER: &str = "already over";

/// The outcome of a job whose end could not be reported to the daemon.
const NOT_REPORTED: &str = "not reported";

#[derive(Debug)]
pub(crate) struct Shared {
    /// The daemon; carries no token a worker may use.
    pub(crate) client: Client,
    /// The value of `SERVICE_URL` for steps.
    pub(crate) url: String,
    pub(crate) folder: PathBuf,
    pub(crate) workdir: Workdir,
    pub(crate) sources: SourceCache,
    pub(crate) environment: HostEnvironment,
    pub(crate) supervisors: Supervisors,
    pub(crate) urgency: watch::Receiver<Urgency>,
    pub(crate) options: Options,
    /// Records every answer of the daemon.
    pub(crate) contact: Contact,
    /// When this machine last had the resources for a job.
    pub(crate) tried: Mutex<Option<Instant>>,
}

#[derive(Debug)]
pub(crate) enum Worked {
    /// The job was executed, and this machine had the resources for it.
    Done,
    /// Another runner has the job, or the job had ended.
    Lapsed,
    CannotSetUp(io::Error),
}

/// Claims and executes the offered job, until it has ended or must stop. Leaves nothing behind. A job that cannot be set up is
/// not claimed, so the daemon offers it again, and another runner may take it.
pub(crate) async fn work(
    shared: Arc<Shared>,
    offer: wire::JobAssigned,
    stop: StopSignal,
) -> Worked {
    let link = Link {
        client: shared.client.with_token(client::Secret::new(offer.token)),
        job: offer.id,
        stop,
        contact: shared.contact.clone(),
        progress: Contact::new(shared.options.silence),
    };
    let place = match shared.set_up(link.job) {
        Ok(place) => place,
        Err(error) => return Worked::CannotSetUp(error),
    };
    let claimed = tokio::select! {
        claimed = claim(&link) => claimed,
        () = shared.daemon_lost(&link, None) => {
            tracing::error!(job = %link.job, "the daemon does not say whether the job was claimed");
            None
        }
    };
    let Some(assignment) = claimed else {
        shared.leave(place).await;
        return Worked::Lapsed;
    };
    tracing::info!(job = %link.job, scan = assignment.scan, "job started");
    let masker = masker(&assignment, &shared.environment).await;
    let mask = masker.clone().unwrap_or_default();
    let worker = Worker {
        deadlines: Deadlines::of(&assignment, shared.options.session_allowance),
        log: Arc::new(JobLog::new(
            spool::folder_of(&shared.folder, link.job),
            assignment.next_log_record,
            mask.clone(),
        )),
        timeline: Timeline::new(mask),
        outputs: JobOutputs::default(),
        processes: JobProcesses::new(shared.supervisors.clone()),
        left_out: Mutex::default(),
        lacking: OnceLock::new(),
        masker,
        place,
        shared: &shared,
        link,
        assignment,
    };
    let outcome = tokio::select! {
        outcome = worker.run() => outcome,
        () = shared.daemon_lost(&worker.link, Some(&worker.timeline)) => worker.give_up().await,
    };
    worker.log.remove();
    shared.leave(worker.place).await;
    tracing::info!(job = %worker.link.job, outcome, "job ended");
    match worker.lacking.into_inner() {
        Some(message) => Worked::CannotSetUp(io::Error::other(message)),
        None => Worked::Done,
    }
}

impl Shared {
    /// Gives a job its place, if the machine has the resources for a job. One check serves all jobs of the next second.
    fn set_up(&self, job: Uuid) -> io::Result<Place> {
        let now = Instant::now();
        let mut last = self.tried.lock().unwrap_or_else(PoisonError::into_inner);
        if last.is_none_or(|last| now - last >= limits::TRIED_FOR) {
            *last = None;
            // The spool is in the runner's folder, which may be on another disk.
            self.workdir.try_file(job)?;
            workdir::try_file(&self.folder.join(TRIED))?;
            *last = Some(now);
        }
        drop(last);
        self.workdir.slots.take(job)
    }

    /// Whether a job could be set up now.
    pub(crate) async fn try_set_up(&self) -> io::Result<()> {
        *self.tried.lock().unwrap_or_else(PoisonError::into_inner) = None;
        // An earlier check may have failed to remove it, without a free file descriptor.
        workdir::remove(&self.workdir.slots.folder(Uuid::nil()));
        let place = self.set_up(Uuid::nil())?;
        self.leave(place).await;
        Ok(())
    }

    /// Removes the leftovers of a job, and frees its place.
    async fn leave(&self, place: Place) {
        let Err(folder) = self.workdir.slots.give_back(place) else {
            return;
        };
        if spawn_blocking(move || workdir::remove(&folder))
            .await
            .is_err()
        {
            tracing::error!("removing a job's folder panicked");
        }
    }

    /// Waits until the runner must end, no step of the job runs, and the job makes no progress because the daemon does not
    /// answer.
    async fn daemon_lost(&self, link: &Link, timeline: Option<&Timeline>) {
        shutdown::reaches(&self.urgency, Urgency::Drain).await;
        let Some(timeline) = timeline else {
            return link.progress.silent(self.options.stopped_silence).await;
        };
        loop {
            timeline.step_runs(false).await;
            tokio::select! {
                () = link.progress.silent(self.options.stopped_silence) => return,
                () = timeline.step_runs(true) => {}
            }
        }
    }
}

/// Claims the job. `None` if another runner has it, or it has ended, or it was cancelled meanwhile.
async fn claim(link: &Link) -> Option<Assignment> {
    let mut backoff = limits::backoff();
    loop {
        // A stop does not interrupt the request: a claimed job must be completed.
        let failure = match link.judge(link.client.resolve(link.job).await) {
            Ok(assignment) => {
                link.stop.claimed();
                return Some(assignment);
            }
            Err(failure) => failure,
        };
        if failure.verdict != Verdict::Again {
            let reason = error_chain(&failure.error);
            tracing::debug!(job = %link.job, reason, "offer lapsed");
            return None;
        }
        tokio::select! {
            () = link.pause(&mut backoff, &failure) => {}
            _ = link.stop.requested() => return None,
        }
    }
}

struct Worker<'a> {
    shared: &'a Shared,
    place: Place,
    link: Link,
    assignment: Assignment,
    deadlines: Deadlines,
    log: Arc<JobLog>,
    timeline: Timeline,
    outputs: JobOutputs,
    processes: JobProcesses,
    /// The files that are left out of stored artifacts, without secrets.
    left_out: Mutex<BTreeMap<String, LeftOut>>,
    /// The resource that this machine lacked, if a step could not start because of it.
    lacking: OnceLock<String>,
    /// Masks the job's secrets. If this is an error, no part of the job runs.
    masker: Result<Masker, String>,
}

impl Worker<'_> {
    /// Returns the outcome in one or two words, for the runner's log.
    async fn run(&self) -> &'static str {
        let mut helpers = JoinSet::new();
        let needs_contact = self.assignment.retries;
        helpers.spawn(watch(self.link.clone(), self.deadlines, needs_contact));
        helpers.spawn(timeline::report(
            self.timeline.watch(),
            self.link.clone(),
            self.shared.options.ship_after,
        ));
        let shipper = LogShipper::new(
            Arc::clone(&self.log),
            self.link.clone(),
            self.shared.options,
        );
        let mut shipping = JoinSet::new();
        shipping.spawn(shipper.run());
        let failure = match &self.masker {
            Ok(masker) => {
                let failure = self.execute(masker).await;
                failure.map(|failure| masked(failure, masker))
            }
            Err(message) => Some(JobFailure::SetupFailed(message.clone())),
        };
        self.timeline.skip_missing(self.assignment.steps.len());
        self.log.close();
        // Aborting the helpers loses nothing, because the completion repeats all reports.
        helpers.abort_all();
        let reported = timeout_at(self.patience(), self.report_end(shipping, failure)).await;
        match reported {
            Ok(Some(state)) => state.as_str(),
            Ok(None) if self.link.stop.is_over() => ALREADY_OVER,
            Ok(None) => NOT_REPORTED,
            Err(_) => {
                tracing::error!(job = %self.link.job, "could not report to the daemon how the job ended");
                NOT_REPORTED
            }
        }
    }

    /// Runs the steps and uploads the artifacts. Returns a failure of the job outside of its steps.
    async fn execute(&self, masker: &Masker) -> Option<JobFailure> {
        let folder = &self.place.folder;
        if let Some(checkout) = &self.assignment.checkout {
            let brought = checkout::bring(&self.shared.sources, &self.link, checkout, folder);
            match brought.await {
                Ok(lines) => self.report(&lines),
                // The steps are cancelled below, as in any other job.
                Err(_) if self.link.stop.reason().is_some() => {}
                Err(message) => {
                    self.report(&message);
                    return Some(JobFailure::CheckoutFailed(message));
                }
            }
        }
        let evaluation = match Evaluation::of(&self.assignment) {
            Ok(evaluation) => evaluation,
            Err(error) => return Some(JobFailure::SetupFailed(error_chain(&error))),
        };
        let execution = Execution {
            processes: &self.processes,
            assignment: &self.assignment,
            evaluation: &evaluation,
            place: &self.place,
            log: &self.log,
            timeline: &self.timeline,
            masker,
            outputs: &self.outputs,
            lacking: &self.lacking,
            stop: &self.link.stop,
            options: self.shared.options,
        };
        let conclusion = execution
            .run(&self.shared.environment, &self.shared.url)
            .await;
        match conclusion {
            Conclusion::Succeeded => self.store_artifacts(true, folder, &evaluation).await.err(),
            Conclusion::Failed => self.store_artifacts(false, folder, &evaluation).await.err(),
            Conclusion::Stopped(Stop::DeadlinePassed) => {
                let none = BTreeSet::new();
                self.store_late_artifacts(&none, folder, &evaluation).await;
                Some(JobFailure::TimedOut)
            }
            Conclusion::Stopped(reason) => failure_of(&reason),
            Conclusion::Impossible(failure) => Some(failure),
        }
    }

    fn report(&self, lines: &str) {
        if let Err(error) = self.log.add_runner_lines(None, lines) {
            tracing::warn!(job = %self.link.job, error = error_chain(&error), "cannot log");
        }
    }

    /// Sends the rest of the log, then the completion. If the daemon has lost log records meanwhile, sends both again. Returns
    /// the job's final state from the daemon.
    async fn report_end(
        &self,
        mut shipping: JoinSet<LogShipper>,
        mut failure: Option<JobFailure>,
    ) -> Option<JobState> {
        let mut backoff = limits::backoff();
        while let Some(Ok(mut shipper)) = shipping.join_next().await {
            if self.link.stop.is_over() {
                shipper.give_up();
                return None;
            }
            if let Some(Stop::LogFailed(message)) = self.link.stop.reason() {
                failure.get_or_insert(JobFailure::SetupFailed(message));
            }
            let end = CompleteJob {
                steps: self.timeline.steps(),
                outputs: self.outputs.all(),
                left_out: self
                    .left_out
                    .lock()
                    .unwrap_or_else(PoisonError::into_inner)
                    .clone(),
                log_records: shipper.sent(),
                failure: failure.clone(),
            };
            let request = self.link.client.complete(self.link.job, &end);
            let refusal = match self.link.judge(request.await) {
                Ok(completed) => {
                    shipper.give_up();
                    return Some(completed.state);
                }
                Err(refusal) => refusal,
            };
            match refusal.verdict {
                Verdict::Over => {
                    let reason = error_chain(&refusal.error);
                    tracing::info!(job = %self.link.job, reason, "the job was already over");
                    shipper.give_up();
                    self.link.stop.stop_reporting();
                    return None;
                }
                Verdict::LogFrom(next) => shipper.rewind(next),
                Verdict::Again | Verdict::Refused => {}
            }
            self.link.pause(&mut backoff, &refusal).await;
            shipping.spawn(shipper.run());
        }
        None
    }

    fn patience(&self) -> Instant {
        let token_ends = self.deadlines.token + limits::AFTER_EXPIRY;
        match self.link.stop.reason() {
            Some(Stop::RunnerStopped) => {
                token_ends.min(Instant::now() + self.shared.options.final_report)
            }
            _ => token_ends,
        }
    }

    /// Removes the rest of a job whose end the daemon does not accept.
    async fn give_up(&self) -> &'static str {
        self.link.stop.stop_reporting();
        let kill_at = Instant::now() + self.shared.options.grace;
        self.processes.end(kill_at).await;
        tracing::error!(
            job = %self.link.job,
            "the daemon does not answer, and the runner stops: it is not reported how the job ended"
        );
        NOT_REPORTED
    }
}

/// Masks the secrets of a job and the tokens of its steps. Preparing large secrets takes a moment.
async fn masker(assignment: &Assignment, host: &HostEnvironment) -> Result<Masker, String> {
    let tokens = assignment.job_token.as_deref().into_iter();
    let tokens = tokens.chain(host.token()).map(str::to_owned);
    let secrets: Vec<String> = assignment.secrets.values().cloned().chain(tokens).collect();
    if secrets.iter().map(String::len).sum::<usize>() <= limits::MASKED_AT_ONCE {
        let made = Masker::new(secrets.iter().map(String::as_str));
        return made.map_err(|error| error_chain(&error));
    }
    let made = spawn_blocking(move || Masker::new(secrets.iter().map(String::as_str))).await;
    match made {
        Ok(masker) => masker.map_err(|error| error_chain(&error)),
        Err(error) => Err(format!("preparing to mask secrets panicked: {error}")),
    }
}

fn masked(failure: JobFailure, masker: &Masker) -> JobFailure {
    match failure {
        JobFailure::ArtifactFailed(message) => JobFailure::ArtifactFailed(masker.mask(&message)),
        JobFailure::EnvFailed(message) => JobFailure::EnvFailed(masker.mask(&message)),
        JobFailure::CheckoutFailed(message) => JobFailure::CheckoutFailed(masker.mask(&message)),
        JobFailure::SetupFailed(message) => JobFailure::SetupFailed(masker.mask(&message)),
        JobFailure::RunnerStopped(message) => JobFailure::RunnerStopped(masker.mask(&message)),
        JobFailure::TimedOut => JobFailure::TimedOut,
    }
}

/// The failure for the completion after a stop. `None` if the cancelled steps show it, or the daemon knows it.
fn failure_of(reason: &Stop) -> Option<JobFailure> {
    match reason {
        Stop::Cancelled | Stop::JobOver => None,
        Stop::DeadlinePassed => Some(JobFailure::TimedOut),
        Stop::SessionExpired | Stop::ContactLost | Stop::RunnerStopped => {
            Some(JobFailure::RunnerStopped(reason.explanation().to_owned()))
        }
        Stop::LogFailed(message) => Some(JobFailure::SetupFailed(message.clone())),
    }
}
