//! Rules of notifications: which events go to which channel. They stand in `everscan.yaml` or in the API, with one form.

use std::collections::BTreeSet;
use std::fmt;

use chrono::{DateTime, NaiveTime, TimeDelta, Utc};
use serde::{Deserialize, Serialize};

use crate::cron::first_instant;
use crate::duration::parse_duration;
use crate::expression::{Sandbox, Site};
use crate::names::{NameError, check_notify_name};
use crate::path_pattern::PathPattern;
use crate::template::Template;
use crate::timezone::parse_timezone;

pub use crate::parse::{parse_project, parse_rule};
pub use crate::schema::project_schema;

macro_rules! events {
    ($($(#[$doc:meta])* $variant:ident = $word:literal,)*) => {
        /// What a rule may ask for. The word of a condition also stands for its end.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
        #[serde(rename_all = "snake_case")]
        pub enum EventName {
            $($(#[$doc])* $variant,)*
        }

        impl EventName {
            pub const ALL: &[Self] = &[$(Self::$variant),*];

            pub const fn name(self) -> &'static str {
                match self { $(Self::$variant => $word,)* }
            }
        }
    };
}

events! {
    Failing = "failing",
    Overdue = "overdue",
    Late = "late",
    TooShort = "too_short",
    TooLong = "too_long",
    Circle = "circle",
    Stuck = "stuck",
    HistoryDamaged = "history_damaged",
    Suspended = "suspended",
    SourceFailing = "source_failing",
    InvalidFile = "invalid_file",
    RemovalHeld = "removal_held",
    MissingVar = "missing_var",
    MissingSecret = "missing_secret",
    /// A scan names a callback server that the project does not have.
    MissingCallback = "missing_callback",
    /// A rule names a channel that the project does not have.
    MissingChannel = "missing_channel",
    RunnerLost = "runner_lost",
    TokenExpires = "token_expires",
    CertificateExpires = "certificate_expires",
    /// HTTPS of callback servers has no certificate, or will soon have none.
    CallbackCertificate = "callback_certificate",
    DiskLow = "disk_low",
    BackupOld = "backup_old",
    ChannelFailing = "channel_failing",
    /// A callback server has reached a limit and records nothing more.
    CallbackFull = "callback_full",
    /// A slot of a schedule passed without a job.
    SlotMissed = "slot_missed",
    WorkflowRemoved = "workflow_removed",
    /// An artifact, as its `notify_on` says.
    Artifact = "artifact",
    /// The same, if it has lines that the success before did not have.
    NewLines = "new_lines",
    /// A planted name was used.
    Interaction = "interaction",
}

impl EventName {
    /// Whether it is about the instance: its rules are for administrators.
    pub const fn is_of_instance(self) -> bool {
        matches!(
            self,
            Self::RunnerLost
                | Self::TokenExpires
                | Self::CertificateExpires
                | Self::CallbackCertificate
                | Self::DiskLow
                | Self::BackupOld
        )
    }
}

/// What a rule without `events` asks for, and a channel without rules gets. A project has no event of the instance.
pub const DEFAULT_EVENTS: [EventName; 19] = [
    EventName::Failing,
    EventName::Overdue,
    EventName::Late,
    EventName::TooShort,
    EventName::TooLong,
    EventName::Circle,
    EventName::SourceFailing,
    EventName::InvalidFile,
    EventName::RemovalHeld,
    EventName::MissingChannel,
    EventName::ChannelFailing,
    EventName::CallbackFull,
    EventName::Artifact,
    EventName::RunnerLost,
    EventName::TokenExpires,
    EventName::CertificateExpires,
    EventName::CallbackCertificate,
    EventName::DiskLow,
    EventName::BackupOld,
];

/// The members of `event` in a template. All are texts; a member that an event does not have is empty.
pub const EVENT_MEMBERS: [&str; 15] = [
    "artifact", "at", "id", "job", "lines", "link", "name", "project", "runner", "scan", "since",
    "state", "text", "title", "workflow",
];

/// The name of a channel or of a rule: letters, digits, `-` and `_`.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct NotifyName(String);

impl NotifyName {
    /// Takes the name of a channel or of a rule.
    ///
    /// # Errors
    /// Says which rule the text breaks.
    pub fn new(name: impl Into<String>) -> Result<Self, NameError> {
        let name = name.into();
        check_notify_name(&name)?;
        Ok(Self(name))
    }

    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for NotifyName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl TryFrom<String> for NotifyName {
    type Error = NameError;

    fn try_from(name: String) -> Result<Self, NameError> {
        Self::new(name)
    }
}

impl From<NotifyName> for String {
    fn from(name: NotifyName) -> Self {
        name.0
    }
}

/// A pattern of names, as in the path of an artifact: `*` stays within one folder.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct Pattern {
    text: String,
    pattern: PathPattern,
}

impl TryFrom<String> for Pattern {
    type Error = NameError;

    fn try_from(text: String) -> Result<Self, NameError> {
        let pattern = PathPattern::parse(&text)
            .map_err(|error| NameError(format!("`{text}` is no pattern: {error}")))?;
        Ok(Self { text, pattern })
    }
}

impl From<Pattern> for String {
    fn from(pattern: Pattern) -> Self {
        pattern.text
    }
}

impl PartialEq for Pattern {
    fn eq(&self, other: &Self) -> bool {
        self.text == other.text
    }
}

impl Eq for Pattern {}

/// Which part of an artifact's new lines stands in a message.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Content {
    None,
    /// Only how many there are.
    Summary,
    #[default]
    Lines,
}

impl Content {
    pub const ALL: &[Self] = &[Self::None, Self::Summary, Self::Lines];

    pub const fn name(self) -> &'static str {
        match self {
            Self::None => "none",
            Self::Summary => "summary",
            Self::Lines => "lines",
        }
    }
}

/// The hours in which messages are held.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Quiet {
    pub from: String,
    /// On the next day if it is not after `from`.
    pub to: String,
    pub timezone: String,
}

/// One rule. Only the parser makes one with more than a channel, so its texts are valid.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Rule {
    pub name: NotifyName,
    pub channel: NotifyName,
    /// Empty: the events of a channel without rules.
    #[serde(default, skip_serializing_if = "BTreeSet::is_empty")]
    pub events: BTreeSet<EventName>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub workflows: Vec<Pattern>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub scans: Vec<Pattern>,
    /// Patterns of callback servers. An event that is about none of them is not sent.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub callbacks: Vec<Pattern>,
    #[serde(default = "first", skip_serializing_if = "is_first")]
    pub after: u8,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub group: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub repeat: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub quiet: Option<Quiet>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub template: Option<String>,
    #[serde(default)]
    pub content: Content,
}

impl Rule {
    /// What follows a message within this time becomes one message, unless the rule says another time.
    pub const GROUP: TimeDelta = TimeDelta::seconds(30);

    /// The rule of a channel that has no other rule.
    pub fn of(channel: NotifyName) -> Self {
        Self {
            name: channel.clone(),
            channel,
            events: BTreeSet::new(),
            workflows: Vec::new(),
            scans: Vec::new(),
            callbacks: Vec::new(),
            after: 1,
            group: None,
            repeat: None,
            quiet: None,
            template: None,
            content: Content::default(),
        }
    }

    /// The size of rules in a record.
    pub fn bytes(rules: &[Self]) -> usize {
        serde_json::to_vec(rules).map_or(usize::MAX, |json| json.len())
    }

    /// Whether it asks for an event of this workflow (`SOURCE/NAME`) and scan. A pattern may leave out the source.
    pub fn takes(&self, event: EventName, workflow: Option<&str>, scan: Option<&str>) -> bool {
        let name = workflow.and_then(|it| Some(it.split_once('/')?.1));
        let is_asked = if self.events.is_empty() {
            DEFAULT_EVENTS.contains(&event)
        } else {
            self.events.contains(&event)
        };
        let fits = |patterns: &[Pattern], names: &[Option<&str>]| {
            let matches = |name: &str| patterns.iter().any(|it| it.pattern.matches(name.as_ref()));
            patterns.is_empty() || names.iter().flatten().any(|name| matches(name))
        };
        is_asked && fits(&self.workflows, &[workflow, name]) && fits(&self.scans, &[scan])
    }

    /// Whether it asks for events of this callback server. None for an event that is about no server.
    pub fn takes_callback(&self, server: Option<&NotifyName>) -> bool {
        let matches = |server: &NotifyName| {
            let mut patterns = self.callbacks.iter();
            patterns.any(|it| it.pattern.matches(server.as_str().as_ref()))
        };
        self.callbacks.is_empty() || server.is_some_and(matches)
    }

    /// Failures in a row before it reports a failing scan.
    pub fn after(&self) -> u64 {
        self.after.into()
    }

    /// What follows a message within this time becomes one message.
    pub fn group(&self) -> TimeDelta {
        match self.group.as_deref() {
            Some("0s") => TimeDelta::zero(),
            given => given
                .and_then(|text| parse_duration(text).ok())
                .unwrap_or(Self::GROUP),
        }
    }

    /// How often an open condition is reported again.
    pub fn repeat(&self) -> Option<TimeDelta> {
        parse_duration(self.repeat.as_deref()?).ok()
    }

    /// The end of the quiet hours in which `now` lies. A time that the wall clock skips is the next one that exists, and of a
    /// time that it repeats the first counts.
    pub fn quiet_until(&self, now: DateTime<Utc>) -> Option<DateTime<Utc>> {
        let quiet = self.quiet.as_ref()?;
        let (from, to) = (clock(&quiet.from)?, clock(&quiet.to)?);
        let zone = parse_timezone(&quiet.timezone).ok()?;
        let today = now.with_timezone(&zone).date_naive();
        [today.pred_opt()?, today].into_iter().find_map(|day| {
            let last = if to > from { day } else { day.succ_opt()? };
            let begin = first_instant(day.and_time(from), zone)?;
            let end = first_instant(last.and_time(to), zone)?;
            (begin..end).contains(&now).then_some(end)
        })
    }

    /// The text of its template for an event, whose members are [`EVENT_MEMBERS`]. `None` without a template.
    ///
    /// # Errors
    /// Why the template has no text for this event. The caller sends the built-in text.
    pub fn render(&self, event: &serde_json::Value) -> Option<Result<String, String>> {
        let source = self.template.as_deref()?;
        let texts = EVENT_MEMBERS.map(|name| {
            let text = match event.get(name) {
                None | Some(serde_json::Value::Null) => String::new(),
                Some(serde_json::Value::String(text)) => text.clone(),
                Some(other) => other.to_string(),
            };
            (name.to_owned(), text)
        });
        let rendered = || {
            let template =
                Template::parse(source, Site::Message).map_err(|error| error.to_string())?;
            let sandbox = Sandbox::shared().map_err(|error| error.to_string())?;
            let rendered = sandbox.render_event(&template, texts.into());
            rendered.map_err(|error| error.to_string())
        };
        Some(rendered())
    }
}

/// A time of the day: `07:00`.
pub(crate) fn clock(text: &str) -> Option<NaiveTime> {
    let is_whole = text.len() == 5 && text.starts_with(|c: char| c.is_ascii_digit());
    NaiveTime::parse_from_str(text, "%H:%M")
        .ok()
        .filter(|_| is_whole)
}

const fn first() -> u8 {
    1
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde gives a reference")]
const fn is_first(after: &u8) -> bool {
    *after == 1
}

#[cfg(test)]
mod tests;
