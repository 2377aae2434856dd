//! Conditions: what needs a person, from the moment when it begins until it is over.
//!
//! A condition is derived from records, or measured. It opens once and closes by itself once.
//! [`crate::decide`] compares the conditions of a subject with the open ones after every decision.

mod text;

use std::collections::BTreeSet;

use serde::{Deserialize, Serialize};
use workflow::ScanName;
use workflow::notify::{EventName, NotifyName};

use crate::{
    Actor, ChannelId, ConditionId, JobId, ProjectId, Projects, Reason, Rights, RunnerId, ScanKey,
    Scope, SourceName, Timestamp, TokenId, WorkflowId,
};

/// An open condition.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Condition {
    pub id: ConditionId,
    /// Absent if it belongs to the instance.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub project: Option<ProjectId>,
    pub subject: Subject,
    /// Of the runner, if it is the subject.
    #[serde(default, skip_serializing_if = "Projects::is_all")]
    pub projects: Projects,
    pub problem: Problem,
    pub since: Timestamp,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub acknowledged: Option<Acknowledgement>,
    /// It is folded away until this time.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub silenced_until: Option<Timestamp>,
    /// The channels that have reported it. They also report its end.
    #[serde(default, skip_serializing_if = "BTreeSet::is_empty")]
    pub reported: BTreeSet<ChannelId>,
}

impl Condition {
    /// True if the holder of these rights may see its subject, and the job that it names.
    pub fn is_seen_by(&self, rights: &Rights) -> bool {
        let scope = match (self.project, &self.subject) {
            (None, Subject::Channel { .. }) => Scope::Admin,
            (_, subject) => subject.scope(),
        };
        let names_job = self.problem.job().is_some();
        let may = |scope| match self.project {
            Some(project) => rights.may(scope, project),
            None => rights.scopes.allow(scope),
        };
        may(scope) && (!names_job || may(Scope::JobRead)) && rights.see_any(&self.projects)
    }
}

/// A person knows of the condition.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Acknowledgement {
    pub by: Actor,
    pub at: Timestamp,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub note: Option<String>,
}

/// How a condition ended.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "how", rename_all = "snake_case")]
pub enum Ended {
    #[default]
    Cured,
    /// A person has settled it.
    Acknowledged(Acknowledgement),
    /// What it warned of has happened.
    Expired,
    /// Its subject was removed.
    Removed {
        /// What people called the subject.
        label: String,
    },
}

impl Ended {
    pub(crate) const fn is_cured(&self) -> bool {
        matches!(self, Self::Cured)
    }
}

/// What a condition is about.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "snake_case")]
pub enum Subject {
    Scan {
        workflow: WorkflowId,
        scan: ScanName,
    },
    Workflow {
        workflow: WorkflowId,
    },
    Source {
        source: SourceName,
    },
    /// The vars and secrets of a project.
    Project {
        project: ProjectId,
    },
    Runner {
        runner: RunnerId,
    },
    Token {
        token: TokenId,
    },
    /// A channel of a project.
    Channel {
        channel: ChannelId,
    },
    Instance,
}

impl Subject {
    pub const fn workflow(&self) -> Option<WorkflowId> {
        match self {
            Self::Scan { workflow, .. } | Self::Workflow { workflow } => Some(*workflow),
            Self::Source { .. }
            | Self::Project { .. }
            | Self::Runner { .. }
            | Self::Token { .. }
            | Self::Channel { .. }
            | Self::Instance => None,
        }
    }

    /// What a reader of its conditions must be allowed to see.
    pub const fn scope(&self) -> Scope {
        match self {
            Self::Scan { .. } | Self::Workflow { .. } => Scope::WorkflowRead,
            Self::Source { .. } | Self::Project { .. } => Scope::ProjectRead,
            Self::Channel { .. } => Scope::NotifyRead,
            Self::Runner { .. } => Scope::RunnerRead,
            Self::Token { .. } | Self::Instance => Scope::Admin,
        }
    }
}

impl From<&ScanKey> for Subject {
    fn from(scan: &ScanKey) -> Self {
        Self::Scan {
            workflow: scan.workflow,
            scan: scan.scan.clone(),
        }
    }
}

/// What is wrong. Durations are in seconds.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "code", rename_all = "snake_case")]
pub enum Problem {
    /// The scan has failed since its newest success, after all retries.
    Failing {
        /// The newest failed job.
        job: JobId,
        failures: u64,
        /// The end of the newest success.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        succeeded: Option<Timestamp>,
        /// The end of the first of the successes before the failures.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        fine_since: Option<Timestamp>,
    },
    /// `expect.success_every` has passed without a success.
    Overdue {
        every: u64,
        /// The newest success, or the begin of the expectation.
        since: Timestamp,
    },
    /// No runner has taken the job within `expect.starts_within`.
    Late {
        job: JobId,
        within: u64,
    },
    /// The newest success was shorter than `expect.at_least`.
    TooShort {
        job: JobId,
        took: u64,
        at_least: u64,
    },
    /// A job runs, or the newest success ran, longer than `expect.at_most`.
    TooLong {
        job: JobId,
        at_most: u64,
    },
    /// Scans start each other without a pause of a minute.
    Circle {
        job: JobId,
    },
    /// A job waits, and no runner can take it.
    Stuck {
        job: JobId,
        reason: Reason,
    },
    /// Lines of the scan's history cannot be read.
    HistoryDamaged,
    Suspended {
        by: Actor,
        /// The text of the person who suspended it.
        text: String,
    },
    /// The repository of a source cannot be read, or its workflows cannot be activated.
    SourceFailing {
        reason: Reason,
    },
    /// A workflow file is invalid. Its last valid version stays active.
    InvalidFile {
        file: String,
        message: String,
    },
    /// The newest tip removes many workflows and waits for an approval.
    RemovalHeld {
        reason: Reason,
    },
    MissingVar {
        name: String,
    },
    MissingSecret {
        name: String,
    },
    /// A scan names a callback server that the project does not have.
    MissingCallback {
        name: NotifyName,
    },
    /// A rule names a channel that the project does not have.
    MissingChannel {
        name: String,
    },
    RunnerLost,
    TokenExpires {
        at: Timestamp,
    },
    CertificateExpires {
        at: Timestamp,
    },
    /// HTTPS of callback servers has no certificate, or will soon have none.
    CallbackCertificate {
        /// When the certificate in use expires.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        at: Option<Timestamp>,
        /// Why no new one is issued.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        reason: Option<String>,
    },
    DiskLow,
    /// The newest backup is older than `backup_within`.
    BackupOld {
        #[serde(default, skip_serializing_if = "Option::is_none")]
        newest: Option<Timestamp>,
    },
    /// A callback server records nothing more.
    CallbackFull {
        callback: NotifyName,
    },
    /// Messages do not arrive.
    ChannelFailing {
        channel: NotifyName,
        reason: String,
    },
}

impl Problem {
    /// What rules of notifications call it.
    pub const fn event(&self) -> EventName {
        match self {
            Self::Failing { .. } => EventName::Failing,
            Self::Overdue { .. } => EventName::Overdue,
            Self::Late { .. } => EventName::Late,
            Self::TooShort { .. } => EventName::TooShort,
            Self::TooLong { .. } => EventName::TooLong,
            Self::Circle { .. } => EventName::Circle,
            Self::Stuck { .. } => EventName::Stuck,
            Self::HistoryDamaged => EventName::HistoryDamaged,
            Self::Suspended { .. } => EventName::Suspended,
            Self::SourceFailing { .. } => EventName::SourceFailing,
            Self::InvalidFile { .. } => EventName::InvalidFile,
            Self::RemovalHeld { .. } => EventName::RemovalHeld,
            Self::MissingVar { .. } => EventName::MissingVar,
            Self::MissingSecret { .. } => EventName::MissingSecret,
            Self::MissingCallback { .. } => EventName::MissingCallback,
            Self::MissingChannel { .. } => EventName::MissingChannel,
            Self::RunnerLost => EventName::RunnerLost,
            Self::TokenExpires { .. } => EventName::TokenExpires,
            Self::CertificateExpires { .. } => EventName::CertificateExpires,
            Self::CallbackCertificate { .. } => EventName::CallbackCertificate,
            Self::DiskLow => EventName::DiskLow,
            Self::BackupOld { .. } => EventName::BackupOld,
            Self::ChannelFailing { .. } => EventName::ChannelFailing,
            Self::CallbackFull { .. } => EventName::CallbackFull,
        }
    }

    /// The stable name of its kind.
    pub const fn code(&self) -> &'static str {
        self.event().name()
    }

    /// When it ends by itself: what it warns of has happened.
    pub(crate) const fn ends_at(&self) -> Option<Timestamp> {
        if let Self::TokenExpires { at } = self {
            Some(*at)
        } else {
            None
        }
    }

    /// How often a failing scan has failed since its newest success.
    pub(crate) const fn failures(&self) -> Option<u64> {
        if let Self::Failing { failures, .. } = self {
            Some(*failures)
        } else {
            None
        }
    }

    /// The job that shows it.
    pub const fn job(&self) -> Option<JobId> {
        match self {
            Self::Failing { job, .. }
            | Self::Late { job, .. }
            | Self::TooShort { job, .. }
            | Self::TooLong { job, .. }
            | Self::Circle { job }
            | Self::Stuck { job, .. } => Some(*job),
            Self::Overdue { .. }
            | Self::HistoryDamaged
            | Self::Suspended { .. }
            | Self::SourceFailing { .. }
            | Self::InvalidFile { .. }
            | Self::RemovalHeld { .. }
            | Self::MissingVar { .. }
            | Self::MissingSecret { .. }
            | Self::MissingCallback { .. }
            | Self::MissingChannel { .. }
            | Self::RunnerLost
            | Self::TokenExpires { .. }
            | Self::CertificateExpires { .. }
            | Self::CallbackCertificate { .. }
            | Self::DiskLow
            | Self::BackupOld { .. }
            | Self::CallbackFull { .. }
            | Self::ChannelFailing { .. } => None,
        }
    }

    /// Identifies it among the problems of a subject: one subject has several invalid files or missing names.
    pub(crate) fn key(&self) -> (&'static str, &str) {
        let detail = match self {
            Self::InvalidFile { file, .. } => file,
            Self::MissingVar { name }
            | Self::MissingSecret { name }
            | Self::MissingChannel { name } => name,
            Self::Failing { .. }
            | Self::Overdue { .. }
            | Self::Late { .. }
            | Self::TooShort { .. }
            | Self::TooLong { .. }
            | Self::Circle { .. }
            | Self::Stuck { .. }
            | Self::HistoryDamaged
            | Self::Suspended { .. }
            | Self::SourceFailing { .. }
            | Self::RemovalHeld { .. }
            | Self::RunnerLost
            | Self::TokenExpires { .. }
            | Self::CertificateExpires { .. }
            | Self::CallbackCertificate { .. }
            | Self::DiskLow
            | Self::BackupOld { .. }
            | Self::ChannelFailing { .. } => "",
            Self::CallbackFull { callback } => callback.as_str(),
            Self::MissingCallback { name } => name.as_str(),
        };
        (self.code(), detail)
    }

    /// True if it does not follow from records: the daemon measures it and reports it.
    pub(crate) const fn is_measured(&self) -> bool {
        match self {
            Self::Stuck { .. }
            | Self::HistoryDamaged
            | Self::RunnerLost
            | Self::CertificateExpires { .. }
            | Self::CallbackCertificate { .. }
            | Self::DiskLow
            | Self::BackupOld { .. } => true,
            Self::Failing { .. }
            | Self::Overdue { .. }
            | Self::Late { .. }
            | Self::TooShort { .. }
            | Self::TooLong { .. }
            | Self::Circle { .. }
            | Self::Suspended { .. }
            | Self::SourceFailing { .. }
            | Self::InvalidFile { .. }
            | Self::RemovalHeld { .. }
            | Self::MissingVar { .. }
            | Self::MissingSecret { .. }
            | Self::MissingCallback { .. }
            | Self::MissingChannel { .. }
            | Self::TokenExpires { .. }
            | Self::CallbackFull { .. }
            | Self::ChannelFailing { .. } => false,
        }
    }
}
