//! Executes the steps of one job in order and decides what the result of each step means for the job. It writes to the job's log
//! and timeline, and does not know their readers.

use std::path::Path;
use std::sync::OnceLock;
use std::time::Duration;

use model::{Masker, error_chain};
use tokio::time::Instant;
use wire::{Assignment, JobFailure, ScanStep, Step, StepOutcome, StepStatus};

use crate::clock;
use crate::environment::{CALLBACK_HOST, Environment, HostEnvironment};
use crate::evaluation::{Evaluation, Site};
use crate::job_log::JobLog;
use crate::options::Options;
use crate::slots::Place;
use crate::step::{Script, StepEnd, run};
use crate::step_outputs::{self, JobOutputs};
use crate::stop::{Stop, StopSignal};
use crate::supervisor::{Exit, JobProcesses};
use crate::timeline::Timeline;

#[derive(Debug)]
pub(crate) struct Execution<'a> {
    pub(crate) processes: &'a JobProcesses,
    pub(crate) assignment: &'a Assignment,
    pub(crate) evaluation: &'a Evaluation,
    pub(crate) place: &'a Place,
    pub(crate) log: &'a JobLog,
    pub(crate) timeline: &'a Timeline,
    pub(crate) masker: &'a Masker,
    /// The resource that this machine lacked, if a step could not start because of it.
    pub(crate) lacking: &'a OnceLock<String>,
    /// The outputs of all steps so far.
    pub(crate) outputs: &'a JobOutputs,
    pub(crate) stop: &'a StopSignal,
    pub(crate) options: Options,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Conclusion {
    Succeeded,
    Failed,
    /// The job was stopped; its remaining steps are cancelled.
    Stopped(Stop),
    Impossible(JobFailure),
}

impl Execution<'_> {
    /// Runs all steps. When it returns, all their processes have ended.
    pub(crate) async fn run(&self, host: &HostEnvironment, url: &str) -> Conclusion {
        let conclusion = self.run_steps(host, url).await;
        let stopped = self.stop.since().unwrap_or_else(Instant::now);
        match self.processes.end(stopped + self.options.grace).await {
            0 => {}
            1 => self.report(None, "ended 1 process that the steps left running"),
            ended => {
                let message = format!("ended {ended} processes that the steps left running");
                self.report(None, &message);
            }
        }
        conclusion
    }

    async fn run_steps(&self, host: &HostEnvironment, url: &str) -> Conclusion {
        let environment = match self.environment(host, url).await {
            Ok(environment) => environment,
            Err(message) => {
                self.report(None, &message);
                return Conclusion::Impossible(JobFailure::EnvFailed(message));
            }
        };
        let mut ok = true;
        for (index, step) in (0..).zip(&self.assignment.steps) {
            if let Some(reason) = self.stop.reason() {
                return self.stopped(index, ok, reason, &environment).await;
            }
            let report = self.run_step(index, step, ok, None, &environment).await;
            ok &= report.outcome != Some(StepOutcome::Failed);
            let cancelled = report.outcome == Some(StepOutcome::Cancelled);
            self.timeline.record(report);
            if cancelled && let Some(reason) = self.stop.reason() {
                return self.stopped(index + 1, ok, reason, &environment).await;
            }
        }
        if ok {
            Conclusion::Succeeded
        } else {
            Conclusion::Failed
        }
    }

    async fn environment(&self, host: &HostEnvironment, url: &str) -> Result<Environment, String> {
        let mut environment = Environment::of_job(host, self.assignment, url, &self.place.folder);
        if let Some(why) = self.assignment.missing.get("callback") {
            return Err(format!("{CALLBACK_HOST} has no value: {why}"));
        }
        for (name, template) in &self.assignment.env {
            let value = self
                .evaluation
                .render(template, Site::Environment, true)
                .await
                .map_err(|error| format!("cannot evaluate env {name}: {}", error_chain(&error)))?;
            environment.set(name, value);
        }
        Ok(environment)
    }

    /// Runs one step. Later steps can then read its results. After a stop it must end by `clean_up`.
    async fn run_step(
        &self,
        index: u32,
        step: &ScanStep,
        ok: bool,
        clean_up: Option<Instant>,
        environment: &Environment,
    ) -> Step {
        let report = self.try_step(index, step, ok, clean_up, environment).await;
        if let Some(name) = &step.name {
            self.evaluation.step_ended(name);
        }
        report
    }

    async fn try_step(
        &self,
        index: u32,
        step: &ScanStep,
        ok: bool,
        clean_up: Option<Instant>,
        environment: &Environment,
    ) -> Step {
        let mut report = Step {
            name: None,
            index,
            status: StepStatus::Skipped,
            outcome: Some(StepOutcome::Skipped),
            exit_code: None,
            error: None,
            started_at: None,
            finished_at: None,
        };
        let wanted = self
            .evaluation
            .should_run(step.condition.as_deref(), ok, clean_up.is_some())
            .await;
        let text = match wanted {
            Ok(false) if clean_up.is_some() => return cancelled(index),
            Ok(false) => return report,
            Ok(true) => self
                .evaluation
                .render(&step.run, Site::Script, ok)
                .await
                .map_err(|error| format!("cannot evaluate run: {}", error_chain(&error))),
            Err(error) => Err(format!("cannot evaluate if: {}", error_chain(&error))),
        };
        report.started_at = Some(clock::now());
        let end = match text {
            Ok(text) => {
                report.status = StepStatus::Running;
                report.outcome = None;
                self.timeline.record(report.clone());
                let own = step.timeout_seconds.map(Duration::from_secs);
                let left = clean_up.map(|end| end.saturating_duration_since(Instant::now()));
                let script = Script {
                    processes: self.processes,
                    step: index,
                    text: &text,
                    shell: step.shell.as_deref(),
                    place: self.place,
                    timeout: own.into_iter().chain(left).min(),
                    cleans_up: clean_up.is_some(),
                };
                self.run_script(step, &script, environment).await
            }
            Err(message) => StepEnd::Broken(message),
        };
        report.finished_at = Some(clock::now());
        self.conclude(&mut report, &end, step.allow_failure);
        report
    }

    /// Runs a script with a file for its outputs. Reads the outputs if the script ended by itself.
    async fn run_script(
        &self,
        step: &ScanStep,
        script: &Script<'_>,
        environment: &Environment,
    ) -> StepEnd {
        let file = match self.place.outputs(script.step) {
            Ok(file) => file,
            Err(error) => return StepEnd::not_started("make the file of the outputs", &error),
        };
        let mut environment = environment.clone();
        environment.set(step_outputs::VARIABLE, file.path().display().to_string());
        let end = run(script, &environment, self.log, self.stop).await;
        match end {
            StepEnd::Exited(_) | StepEnd::TimedOut(_) => {}
            StepEnd::Stopped | StepEnd::Broken(_) | StepEnd::NotSetUp(_) => return end,
        }
        match (self.take_outputs(step, file.path()), end) {
            (Ok(()), end) => end,
            (Err(message), StepEnd::Exited(Exit::Code(0))) => StepEnd::Broken(message),
            (Err(message), end) => {
                self.report(Some(script.step), &message);
                end
            }
        }
    }

    fn take_outputs(&self, step: &ScanStep, file: &Path) -> Result<(), String> {
        let outputs = step_outputs::read(file, self.masker)?;
        self.outputs.add(&outputs)?;
        if let Some(name) = &step.name {
            self.evaluation.step_wrote(name, outputs);
        }
        Ok(())
    }

    /// Adds to the report how the script ended, and what this means for the job.
    fn conclude(&self, report: &mut Step, end: &StepEnd, allow_failure: bool) {
        report.exit_code = match end {
            StepEnd::Exited(Exit::Code(code)) => Some(*code),
            StepEnd::Exited(Exit::Signal(_))
            | StepEnd::TimedOut(_)
            | StepEnd::Stopped
            | StepEnd::Broken(_)
            | StepEnd::NotSetUp(_) => None,
        };
        report.error = match end {
            StepEnd::Exited(Exit::Code(_)) | StepEnd::Stopped => None,
            StepEnd::Exited(Exit::Signal(signal)) => Some(format!("ended by signal {signal}")),
            StepEnd::TimedOut(timeout) => Some(format!("timed out after {} s", timeout.as_secs())),
            StepEnd::Broken(message) | StepEnd::NotSetUp(message) => Some(message.clone()),
        };
        if let StepEnd::NotSetUp(message) = end {
            self.lacking.get_or_init(|| message.clone());
        }
        if let Some(error) = &report.error {
            self.report(Some(report.index), error);
        }
        (report.status, report.outcome) = match end {
            StepEnd::Exited(Exit::Code(0)) => (StepStatus::Succeeded, Some(StepOutcome::Succeeded)),
            StepEnd::Stopped => (StepStatus::Cancelled, Some(StepOutcome::Cancelled)),
            StepEnd::Exited(_)
            | StepEnd::TimedOut(_)
            | StepEnd::Broken(_)
            | StepEnd::NotSetUp(_) => {
                let outcome = if allow_failure {
                    StepOutcome::Succeeded
                } else {
                    StepOutcome::Failed
                };
                (StepStatus::Failed, Some(outcome))
            }
        };
    }

    /// Cancels the steps from `first` on because of a stop. While there is time, it runs steps whose condition names `always`.
    async fn stopped(
        &self,
        first: u32,
        mut ok: bool,
        reason: Stop,
        environment: &Environment,
    ) -> Conclusion {
        self.report(None, reason.explanation());
        let limit = self.options.clean_up;
        let end = Instant::now() + limit;
        let (mut is_over, mut has_run) = (false, false);
        for (index, step) in (0..).zip(&self.assignment.steps).skip(first as usize) {
            if self.stop.is_at_once() || is_over {
                self.timeline.record(cancelled(index));
                continue;
            }
            let report = self.run_step(index, step, ok, Some(end), environment).await;
            ok &= report.outcome != Some(StepOutcome::Failed);
            has_run |= report.started_at.is_some();
            self.timeline.record(report);
            if Instant::now() >= end {
                is_over = true;
                let seconds = limit.as_secs();
                let message =
                    format!("the steps that clean up took {seconds} s together, and are stopped");
                self.report(None, &message);
            }
        }
        if has_run {
            self.stop.cleaned_up();
        }
        Conclusion::Stopped(reason)
    }

    fn report(&self, step: Option<u32>, text: &str) {
        if let Err(error) = self.log.add_runner_lines(step, text) {
            self.stop.request(Stop::LogFailed(error_chain(&error)));
        }
    }
}

fn cancelled(index: u32) -> Step {
    Step {
        name: None,
        index,
        status: StepStatus::Cancelled,
        outcome: Some(StepOutcome::Cancelled),
        exit_code: None,
        error: None,
        started_at: None,
        finished_at: None,
    }
}
