//! The model: what a valid workflow file says. Everything in here has been checked by [`crate::parse`]; nobody checks
//! again.

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;

use chrono::{DateTime, TimeDelta, Utc};
use chrono_tz::Tz;
use serde_json::Value;

use crate::cron::Cron;
use crate::digest::{self, ScanDigest};
use crate::dispatch::{Dispatch, InputError, InputValue};
use crate::expression::{Expression, References};
use crate::names::ScanName;
use crate::template::Template;

/// A collection of scans, described in one file.
#[derive(Debug, Clone)]
pub struct Workflow {
    /// A title for people.
    pub name: Option<String>,
    /// A text for people.
    pub description: Option<String>,
    /// Environment of every step of every scan; a scan's own `env` wins.
    pub env: Arc<[Variable]>,
    scans: Vec<Scan>,
    index: HashMap<ScanName, usize>,
}

impl Workflow {
    pub(crate) fn new(
        name: Option<String>,
        description: Option<String>,
        env: Arc<[Variable]>,
        scans: Vec<Scan>,
    ) -> Self {
        let index = scans
            .iter()
            .enumerate()
            .map(|(at, scan)| (scan.name.clone(), at))
            .collect();
        Self {
            name,
            description,
            env,
            scans,
            index,
        }
    }

    /// The scans in file order.
    pub fn scans(&self) -> impl ExactSizeIterator<Item = &Scan> {
        self.scans.iter()
    }

    /// The scan of that name.
    pub fn scan(&self, name: &str) -> Option<&Scan> {
        self.scans.get(*self.index.get(name)?)
    }
}

/// The description of something to run.
#[derive(Debug, Clone)]
pub struct Scan {
    /// Unique in the workflow.
    pub name: ScanName,
    /// What starts it.
    pub on: Triggers,
    /// Files stored after a successful job.
    pub artifacts: Vec<Artifact>,
    /// Environment of every step.
    pub env: Vec<Variable>,
    /// The workflow's `env`, which this scan's own overrides.
    pub inherited_env: Arc<[Variable]>,
    /// Executed in order; at least one.
    pub steps: Vec<Step>,
    /// A job that runs longer is stopped.
    pub timeout: Option<TimeDelta>,
    /// The longest log of a job, in bytes; the daemon has a limit as well.
    pub log_limit: Option<u64>,
    /// What follows a failed job.
    pub retry: Option<Retry>,
    /// Labels a runner must have.
    pub runs_on: Vec<String>,
    /// What happens when a trigger comes while a job of the scan is scheduled or running.
    pub overlap: Overlap,
    /// Variables of the runner's own environment that steps may see.
    pub pass_env: Vec<String>,
}

impl Scan {
    /// The scans, variables, secrets and inputs that any of the scan's expressions and templates names.
    pub fn references(&self) -> References {
        let mut all = References::default();
        let env = self
            .env
            .iter()
            .chain(self.inherited_env.iter())
            .map(|variable| variable.value.references());
        let steps = self.steps.iter().flat_map(|step| {
            std::iter::once(step.run.references())
                .chain(step.condition.as_ref().map(Expression::references))
        });
        let artifacts = self
            .artifacts
            .iter()
            .filter_map(|artifact| artifact.condition.as_ref());
        env.chain(steps)
            .chain(artifacts.map(Expression::references))
            .chain(self.on.expr.as_ref().map(Expression::references))
            .for_each(|references| all.add(references));
        all
    }

    /// Changes exactly when the scan means something else: comments, the order of keys and quoting do not count.
    pub fn digest(&self) -> ScanDigest {
        digest::of(self)
    }

    /// The inputs of a job that nobody dispatched.
    pub fn default_inputs(&self) -> BTreeMap<String, InputValue> {
        self.on
            .dispatch
            .as_ref()
            .map(Dispatch::defaults)
            .unwrap_or_default()
    }

    /// Checks what a dispatcher gave; a scan without `on.dispatch` takes no inputs. See [`Dispatch::accept`].
    ///
    /// # Errors
    /// Every problem at once.
    pub fn accept_inputs(
        &self,
        given: &BTreeMap<String, Value>,
    ) -> Result<BTreeMap<String, InputValue>, Vec<InputError>> {
        match &self.on.dispatch {
            Some(dispatch) => dispatch.accept(given),
            None => Dispatch::default().accept(given),
        }
    }
}

/// What starts a scan; at least one of `cron`, `expr` and `dispatch` is there, and they work independently.
#[derive(Debug, Clone)]
pub struct Triggers {
    /// A schedule.
    pub cron: Option<Cron>,
    /// The zone in which `cron` is read.
    pub timezone: Tz,
    /// What happens to slots of `cron` that passed while nothing could start.
    pub catch_up: CatchUp,
    /// Looked at when another scan succeeds.
    pub expr: Option<Expression>,
    /// Present when the file makes the scan startable by hand.
    pub dispatch: Option<Dispatch>,
}

impl Triggers {
    /// The first slot of the schedule after `after`.
    pub fn next_slot(&self, after: DateTime<Utc>) -> Option<DateTime<Utc>> {
        self.cron.as_ref()?.next_after(after, self.timezone)
    }
}

/// What happens to missed slots.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum CatchUp {
    /// The newest one runs.
    #[default]
    Latest,
    /// None runs.
    None,
    /// All run, up to ten.
    All,
}

impl CatchUp {
    /// The word of the file.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Latest => "latest",
            Self::None => "none",
            Self::All => "all",
        }
    }
}

/// What happens when a trigger comes too early.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Overlap {
    /// It makes no job.
    #[default]
    Skip,
    /// One job waits.
    Queue,
    /// The older job is cancelled, unless somebody dispatched it.
    Replace,
}

impl Overlap {
    /// The word of the file.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Skip => "skip",
            Self::Queue => "queue",
            Self::Replace => "replace",
        }
    }
}

/// What follows a failed job.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Retry {
    /// Further jobs, 1 to 10.
    pub attempts: u8,
    /// Wait before the first further job; doubles with each.
    pub backoff: TimeDelta,
}

/// One entry of an `env`.
#[derive(Debug, Clone, PartialEq)]
pub struct Variable {
    /// Its name.
    pub name: String,
    /// Its value.
    pub value: Template,
}

/// One step of a scan.
#[derive(Debug, Clone)]
pub struct Step {
    /// The script.
    pub run: Template,
    /// The words of the shell's command line, without the script; absent for the default.
    pub shell: Option<Vec<String>>,
    /// Runs only when true; see [`crate::expression::should_run`] for the whole rule.
    pub condition: Option<Expression>,
    /// Whether the job goes on when the step fails.
    pub allow_failure: bool,
    /// The step is stopped after this long.
    pub timeout: Option<TimeDelta>,
}

/// Files stored after a successful job.
#[derive(Debug, Clone)]
pub struct Artifact {
    /// Unique in the scan.
    pub name: String,
    /// Files and folders, relative to the job's folder.
    pub paths: Vec<String>,
    /// Stored only when true.
    pub condition: Option<Expression>,
    /// How long it is kept, when that is bounded.
    pub expires_in: Option<TimeDelta>,
    /// When to notify.
    pub notify_on: NotifyOn,
}

/// When an artifact makes a notification.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum NotifyOn {
    /// When it differs from the previous success.
    Diff,
    /// After every success.
    Always,
    /// Never.
    #[default]
    Never,
}

impl NotifyOn {
    /// The word of the file.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Diff => "diff",
            Self::Always => "always",
            Self::Never => "never",
        }
    }
}
