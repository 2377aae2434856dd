//! The model of a valid workflow file. [`crate::parse`] has checked all of it, so callers need no further checks.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::sync::Arc;

use chrono::{DateTime, TimeDelta, Utc};
use chrono_tz::Tz;
use serde_json::Value;

use crate::checkout::Checkout;
use crate::cron::{Cron, Schedules};
use crate::digest::{self, ScanDigest};
use crate::dispatch::{Dispatch, InputError, InputValue};
use crate::expression::{Expression, References, groups};
use crate::limits::NAMED_SCHEDULE_CHARS;
use crate::names::ScanName;
use crate::notify::NotifyName;
use crate::template::Template;

/// A collection of scans, described in one file.
#[derive(Debug, Clone)]
pub struct Workflow {
    pub name: Option<String>,
    pub description: Option<String>,
    /// Environment of every step of every scan; a scan's own `env` wins.
    pub env: Arc<[Variable]>,
    scans: Vec<Scan>,
    index: HashMap<ScanName, usize>,
    groups: HashMap<ScanName, Arc<BTreeSet<ScanName>>>,
    vars: BTreeSet<String>,
    secrets: BTreeSet<String>,
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
        let expressions: Vec<_> = scans
            .iter()
            .map(|scan| (scan.name.as_str(), scan.on.expr.as_ref()))
            .collect();
        let mut of_scan = HashMap::new();
        for group in groups(&expressions) {
            let names = group.iter().filter_map(|at| scans.get(*at));
            let names: Arc<BTreeSet<_>> = Arc::new(names.map(|scan| scan.name.clone()).collect());
            of_scan.extend(names.iter().map(|name| (name.clone(), names.clone())));
        }
        let mut all = References::default();
        for scan in &scans {
            all.add(&scan.references());
        }
        Self {
            name,
            description,
            env,
            groups: of_scan,
            vars: all.vars,
            secrets: all.secrets,
            scans,
            index,
        }
    }

    /// The vars that its expressions and templates name.
    pub const fn vars(&self) -> &BTreeSet<String> {
        &self.vars
    }

    /// The secrets that its expressions and templates name.
    pub const fn secrets(&self) -> &BTreeSet<String> {
        &self.secrets
    }

    /// The scans in file order.
    pub fn scans(&self) -> impl ExactSizeIterator<Item = &Scan> {
        self.scans.iter()
    }

    pub fn scan(&self, name: &str) -> Option<&Scan> {
        self.scans.get(*self.index.get(name)?)
    }

    /// The scan itself and the scans that it can wake and that can wake it, directly or through others. None if there are no such
    /// scans.
    pub fn group(&self, scan: &str) -> Option<&BTreeSet<ScanName>> {
        self.groups.get(scan).map(|group| &**group)
    }
}

/// The scopes that the `permissions` of a scan may name. Rights over secrets, tokens, runners and people are not among them:
/// who pushes a file must not gain them.
pub const PERMISSIONS: [&str; 13] = [
    "project:read",
    "workflow:read",
    "workflow:write",
    "workflow:suspend",
    "condition:write",
    "job:read",
    "job:write",
    "job:cancel",
    "dispatch",
    "blob:read",
    "blob:write",
    "payload:read",
    "callback:own",
];

/// The environment variable with the token of a step. It is never passed from the runner's own environment.
pub const TOKEN_VARIABLE: &str = "SERVICE_TOKEN";

/// The declaration of a scan: its triggers, steps and artifacts.
#[derive(Debug, Clone)]
pub struct Scan {
    /// Unique in the workflow.
    pub name: ScanName,
    pub on: Triggers,
    /// Files stored when the steps are done.
    pub artifacts: Vec<Artifact>,
    pub env: Vec<Variable>,
    /// The workflow's `env`; the scan's own `env` overrides it.
    pub inherited_env: Arc<[Variable]>,
    /// Executed in order; at least one.
    pub steps: Vec<Step>,
    /// A job that runs longer is stopped.
    pub timeout: Option<TimeDelta>,
    /// The longest log of a job, in bytes. The daemon also has a limit; the lower limit counts.
    pub log_limit: Option<u64>,
    pub retry: Option<Retry>,
    /// Labels a runner must have.
    pub runs_on: Vec<String>,
    /// What happens if a trigger fires while a job of the scan is scheduled or running.
    pub overlap: Overlap,
    /// Variables of the runner's own environment that steps may see.
    pub pass_env: Vec<String>,
    /// What the token of a job may do: some of [`PERMISSIONS`]. Absent for the default.
    pub permissions: Option<Vec<String>>,
    /// The files of the repository that a job gets.
    pub checkout: Option<Checkout>,
    /// The callback server of the project of which each job gets a name.
    pub callback: Option<NotifyName>,
    pub expect: Expect,
    /// Its former name. The scan keeps the results that are stored under this name.
    pub renamed_from: Option<ScanName>,
}

impl Scan {
    /// All scans, variables, secrets and inputs that the scan's expressions and templates name.
    pub fn references(&self) -> References {
        let mut all = self.executed_references();
        if let Some(expr) = &self.on.expr {
            all.add(expr.references());
        }
        all
    }

    /// The same without `on.expr`: the names that a job of the scan needs.
    pub(crate) fn executed_references(&self) -> References {
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
            .for_each(|references| all.add(references));
        all
    }

    /// Changes exactly when the meaning of the scan changes. Comments, the order of keys and quoting have no effect.
    pub fn digest(&self) -> ScanDigest {
        digest::of(self)
    }

    /// The inputs of a job that was not dispatched.
    pub fn default_inputs(&self) -> BTreeMap<String, InputValue> {
        self.on
            .dispatch
            .as_ref()
            .map(Dispatch::defaults)
            .unwrap_or_default()
    }

    /// Checks the inputs of a dispatch. A scan without `on.dispatch` accepts none. See [`Dispatch::accept`].
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

/// The triggers of a scan: at least one of `cron`, `expr`, `callback` and `dispatch`. They work independently.
#[derive(Debug, Clone)]
pub struct Triggers {
    pub cron: Option<Schedules>,
    /// The time zone of `cron`.
    pub timezone: Tz,
    /// What happens to missed slots of `cron`.
    pub catch_up: CatchUp,
    /// Evaluated when another scan succeeds.
    pub expr: Option<Expression>,
    /// Interactions of a callback server start the scan.
    pub callback: Option<OnCallback>,
    /// Present if the file allows people to dispatch the scan.
    pub dispatch: Option<Dispatch>,
}

/// `on.callback`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OnCallback {
    /// The name of a callback server of the project.
    pub server: NotifyName,
    /// The shortest time between two starts.
    pub min_interval: TimeDelta,
}

impl Scan {
    /// The most bytes that its triggers need in the record of active triggers.
    pub fn trigger_bytes(&self) -> usize {
        let is_expected = self.expect.success_every.is_some();
        self.on.bytes_for(&self.name, is_expected)
    }
}

impl Triggers {
    /// [`Scan::trigger_bytes`] for a scan with this name.
    pub(crate) fn bytes_for(&self, name: &ScanName, is_expected: bool) -> usize {
        // Names of members, times, brackets and indentation; each member has its own line.
        const SCAN: usize = 21;
        const CRON: usize = 133;
        const EXPR: usize = 97;
        const LOOK: usize = 38;
        const CALLBACK: usize = 97;
        const EXPECTED: usize = 52;
        let cron = self.cron.as_ref().map_or(0, |cron| {
            CRON + json_bytes(cron.source()) + json_bytes(self.timezone.name())
        });
        let expr = self.expr.as_ref().map_or(0, |expr| {
            let reads_news = !expr.references().news.is_empty();
            EXPR + json_bytes(expr.source()) + if reads_news { LOOK } else { 0 }
        });
        let callback = self.callback.as_ref().map_or(0, |callback| {
            CALLBACK + json_bytes(callback.server.as_str())
        });
        let expected = if is_expected { EXPECTED } else { 0 };
        match cron + expr + callback + expected {
            0 => 0,
            all => SCAN + json_bytes(name.as_str()) + all,
        }
    }

    /// The first slot of its schedules after `after`.
    pub fn next_slot(&self, after: DateTime<Utc>) -> Option<DateTime<Utc>> {
        self.cron.as_ref()?.next_after(after, self.timezone)
    }

    /// The schedule of a slot. With several schedules, the first that is due at this time.
    pub fn schedule_of(&self, slot: DateTime<Utc>) -> Option<&Cron> {
        self.cron.as_ref()?.due_at(slot, self.timezone)
    }

    /// The schedule of a slot for its records, if it is one of several. A text with more than [`NAMED_SCHEDULE_CHARS`] is cut.
    pub fn named_schedule_of(&self, slot: DateTime<Utc>) -> Option<String> {
        let several = self.cron.as_ref().filter(|cron| cron.are_several())?;
        let schedule = several.due_at(slot, self.timezone)?.source().chars();
        Some(schedule.take(NAMED_SCHEDULE_CHARS).collect())
    }
}

/// Bytes of a text in a JSON string.
fn json_bytes(text: &str) -> usize {
    let bytes = |letter: char| match letter {
        '"' | '\\' | '\n' | '\r' | '\t' | '\u{8}' | '\u{c}' => 2,
        '\0'..='\u{1f}' => 6,
        _ => letter.len_utf8(),
    };
    text.chars().map(bytes).sum()
}

/// An enum of the words that a key of the file accepts.
macro_rules! words {
    ($(#[$doc:meta])* $name:ident { $($(#[$variant_doc:meta])* $variant:ident = $word:literal,)* }) => {
        $(#[$doc])*
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
        pub enum $name {
            $($(#[$variant_doc])* $variant,)*
        }

        impl $name {
            pub(crate) const ALL: &[Self] = &[$(Self::$variant),*];

            /// The word in the file.
            pub const fn name(self) -> &'static str {
                match self {
                    $(Self::$variant => $word,)*
                }
            }
        }
    };
}

words! {
    /// Which missed slots run.
    CatchUp {
        /// The newest one.
        #[default]
        Latest = "latest",
        None = "none",
        /// Up to ten.
        All = "all",
    }
}

words! {
    /// What happens if a trigger fires while a job of the scan is scheduled or running.
    Overlap {
        /// No new job.
        #[default]
        Skip = "skip",
        /// One job waits.
        Queue = "queue",
        /// The older job is cancelled, unless it was dispatched.
        Replace = "replace",
    }
}

words! {
    /// After which result of the steps an artifact is stored.
    UploadOn {
        /// When no step has failed the job.
        #[default]
        Success = "success",
        /// When a step has failed the job.
        Failure = "failure",
        /// After both.
        Always = "always",
    }
}

words! {
    /// When an artifact causes a notification.
    NotifyOn {
        /// When it differs from the previous success.
        Diff = "diff",
        /// After every success.
        Always = "always",
        #[default]
        Never = "never",
    }
}

/// What people expect of a scan. A violation ends nothing: it opens a condition, which closes by itself.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Expect {
    /// A job succeeds at least this often.
    pub success_every: Option<TimeDelta>,
    /// A runner takes each job this soon.
    pub starts_within: Option<TimeDelta>,
    /// A successful job runs at least this long.
    pub at_least: Option<TimeDelta>,
    /// A job runs at most this long.
    pub at_most: Option<TimeDelta>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Retry {
    /// Further jobs, 1 to 10.
    pub attempts: u8,
    /// The pause before the first further job. It doubles with each further job.
    pub backoff: TimeDelta,
}

#[derive(Debug, Clone, PartialEq)]
pub struct Variable {
    pub name: String,
    pub value: Template,
}

#[derive(Debug, Clone)]
pub struct Step {
    /// Unique in the scan. Expressions read `steps.NAME`.
    pub name: Option<String>,
    pub run: Template,
    /// The words of the shell's command line, without the script; absent for the default.
    pub shell: Option<Vec<String>>,
    /// The step runs only if this is true. [`crate::expression::should_run`] has the whole rule.
    pub condition: Option<Expression>,
    /// Whether the job continues if the step fails.
    pub allow_failure: bool,
    /// The step is stopped after this long.
    pub timeout: Option<TimeDelta>,
}

/// Files stored when the steps are done.
#[derive(Debug, Clone)]
pub struct Artifact {
    /// Unique in the scan.
    pub name: String,
    /// Files and folders, relative to the job's folder.
    pub paths: Vec<String>,
    /// Stored only when true.
    pub condition: Option<Expression>,
    /// How long it is kept, if limited.
    pub expires_in: Option<TimeDelta>,
    /// After which result of the steps it is stored.
    pub upload_on: UploadOn,
    /// Whether a file that cannot be packed fails the artifact, instead of being left out.
    pub strict: bool,
    pub notify_on: NotifyOn,
}
