//! The permissions of a personal access token, and its projects.

use std::collections::BTreeSet;
use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};
use thiserror::Error;

use crate::ProjectId;

macro_rules! scopes {
    (
        $($(#[$doc:meta])* $variant:ident = $name:literal),*;
        $($(#[$of_job:meta])* $job_variant:ident = $job_name:literal),*
    ) => {
        /// A permission.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
        pub enum Scope {
            $($(#[$doc])* #[serde(rename = $name)] $variant,)*
            $($(#[$of_job])* #[serde(rename = $job_name)] $job_variant,)*
        }

        impl Scope {
            /// What a token of a person may have.
            pub const ALL: &'static [Self] = &[$(Self::$variant),*];

            /// What only the token of a job has.
            pub const OF_JOBS: &'static [Self] = &[$(Self::$job_variant),*];

            pub const fn name(self) -> &'static str {
                match self {
                    $(Self::$variant => $name,)*
                    $(Self::$job_variant => $job_name,)*
                }
            }
        }
    };
}

scopes! {
    /// See sources and projects.
    ProjectRead = "project:read",
    /// Sync sources, and change vars.
    ProjectWrite = "project:write",
    /// See workflows, revisions and scans.
    WorkflowRead = "workflow:read",
    /// Suspend and resume workflows and scans, answer conditions, and remove finished jobs.
    WorkflowWrite = "workflow:write",
    /// Suspend and resume workflows and scans.
    WorkflowSuspend = "workflow:suspend",
    /// Acknowledge and silence conditions.
    ConditionWrite = "condition:write",
    /// See jobs, their logs and artifacts.
    JobRead = "job:read",
    /// Cancel jobs, and remove finished jobs.
    JobWrite = "job:write",
    /// Cancel jobs.
    JobCancel = "job:cancel",
    /// Start jobs.
    Dispatch = "dispatch",
    /// See and read blobs.
    BlobRead = "blob:read",
    /// Store, move and remove blobs.
    BlobWrite = "blob:write",
    /// Set and delete secrets. Nobody can read their values.
    SecretWrite = "secret:write",
    /// See channels and rules of notifications, and what was sent.
    NotifyRead = "notify:read",
    /// Change channels and rules of notifications, and send again.
    NotifyWrite = "notify:write",
    /// See what callback servers have heard, and their names.
    CallbackRead = "callback:read",
    /// Create and delete callback servers, and make names.
    CallbackWrite = "callback:write",
    /// See and render payloads.
    PayloadRead = "payload:read",
    /// Change payloads and their groups.
    PayloadWrite = "payload:write",
    /// See runners.
    RunnerRead = "runner:read",
    /// Register, limit and remove runners of its projects.
    RunnerWrite = "runner:write",
    /// Invite people to projects, and change their roles there.
    MemberWrite = "member:write",
    /// See, make and revoke tokens.
    TokenWrite = "token:write",
    /// Read the daemon's metrics.
    Metrics = "metrics",
    /// Everything.
    Admin = "admin";

    /// Make names of callback servers, and see what the own names have heard.
    CallbackOwn = "callback:own"
}

impl Scope {
    /// True if it affects the whole installation and cannot be limited to projects.
    pub const fn is_of_installation(self) -> bool {
        match self {
            Self::Metrics | Self::Admin => true,
            Self::ProjectRead
            | Self::ProjectWrite
            | Self::WorkflowRead
            | Self::WorkflowWrite
            | Self::WorkflowSuspend
            | Self::ConditionWrite
            | Self::JobRead
            | Self::JobWrite
            | Self::JobCancel
            | Self::Dispatch
            | Self::BlobRead
            | Self::BlobWrite
            | Self::SecretWrite
            | Self::NotifyRead
            | Self::NotifyWrite
            | Self::CallbackRead
            | Self::CallbackWrite
            | Self::PayloadRead
            | Self::PayloadWrite
            | Self::CallbackOwn
            | Self::RunnerRead
            | Self::RunnerWrite
            | Self::MemberWrite
            | Self::TokenWrite => false,
        }
    }

    /// The scope that includes this one.
    const fn whole(self) -> Option<Self> {
        match self {
            Self::WorkflowSuspend | Self::ConditionWrite => Some(Self::WorkflowWrite),
            Self::JobCancel => Some(Self::JobWrite),
            _ => None,
        }
    }

    /// The scope with which one sees what this scope changes.
    pub const fn reading(self) -> Self {
        match self {
            Self::ProjectRead | Self::ProjectWrite | Self::SecretWrite | Self::MemberWrite => {
                Self::ProjectRead
            }
            Self::WorkflowRead
            | Self::WorkflowWrite
            | Self::WorkflowSuspend
            | Self::ConditionWrite
            | Self::Dispatch => Self::WorkflowRead,
            Self::JobRead | Self::JobWrite | Self::JobCancel => Self::JobRead,
            Self::BlobRead | Self::BlobWrite => Self::BlobRead,
            Self::NotifyRead | Self::NotifyWrite => Self::NotifyRead,
            Self::CallbackRead | Self::CallbackWrite => Self::CallbackRead,
            Self::PayloadRead | Self::PayloadWrite => Self::PayloadRead,
            Self::RunnerRead | Self::RunnerWrite => Self::RunnerRead,
            Self::TokenWrite | Self::Metrics | Self::Admin | Self::CallbackOwn => self,
        }
    }
}

/// Names for several scopes.
const ALIASES: &[(&str, &[Scope])] = &[("blob", &[Scope::BlobRead, Scope::BlobWrite])];

impl fmt::Display for Scope {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// The name is not a scope.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[error("`{name}` is not a scope (one of: {})", Scope::ALL.iter().map(|scope| scope.name()).collect::<Vec<_>>().join(", "))]
pub struct ParseScopeError {
    pub name: String,
}

impl FromStr for Scope {
    type Err = ParseScopeError;

    fn from_str(name: &str) -> Result<Self, ParseScopeError> {
        Self::ALL
            .iter()
            .copied()
            .find(|scope| scope.name() == name)
            .ok_or_else(|| ParseScopeError {
                name: name.chars().take(64).collect(),
            })
    }
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Scopes(BTreeSet<Scope>);

impl Scopes {
    pub fn admin() -> Self {
        Self::from_iter([Scope::Admin])
    }

    /// A scope also allows what is a part of it.
    pub fn allow(&self, scope: Scope) -> bool {
        let has = |scope| self.0.contains(&scope);
        has(Scope::Admin) || has(scope) || scope.whole().is_some_and(has)
    }

    /// True if these scopes allow everything that `other` allows.
    pub fn cover(&self, other: &Self) -> bool {
        other.0.iter().all(|scope| self.allow(*scope))
    }

    /// The scopes with these names. An alias such as `blob` means several scopes.
    pub fn parse<'a>(names: impl IntoIterator<Item = &'a str>) -> Result<Self, ParseScopeError> {
        let mut scopes = BTreeSet::new();
        for name in names {
            match ALIASES.iter().find(|(alias, _)| *alias == name) {
                Some((_, several)) => scopes.extend(several.iter().copied()),
                None => drop(scopes.insert(name.parse()?)),
            }
        }
        Ok(Self(scopes))
    }

    /// The scopes of the `permissions` of a scan, each of which is one of [`workflow::PERMISSIONS`].
    pub fn of_permissions(names: &[String]) -> Self {
        let named = |name: &String| {
            let mut all = Scope::ALL.iter().chain(Scope::OF_JOBS);
            all.find(|scope| scope.name() == name)
        };
        names.iter().filter_map(named).copied().collect()
    }

    /// Every name that [`Self::parse`] accepts.
    pub fn names() -> impl Iterator<Item = &'static str> {
        let of_one = Scope::ALL.iter().map(|scope| scope.name());
        of_one.chain(ALIASES.iter().map(|(alias, _)| *alias))
    }

    /// The permissions in their fixed order.
    pub fn iter(&self) -> impl Iterator<Item = Scope> {
        self.0.iter().copied()
    }

    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
}

impl FromIterator<Scope> for Scopes {
    fn from_iter<I: IntoIterator<Item = Scope>>(scopes: I) -> Self {
        Self(scopes.into_iter().collect())
    }
}

/// The projects of a token or runner.
#[derive(Debug, Clone, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(untagged)]
pub enum Projects {
    Only(BTreeSet<ProjectId>),
    /// All projects, including future projects.
    #[default]
    All,
}

impl Projects {
    pub fn is_all(&self) -> bool {
        *self == Self::All
    }

    pub fn contain(&self, project: ProjectId) -> bool {
        match self {
            Self::All => true,
            Self::Only(projects) => projects.contains(&project),
        }
    }

    /// True if `other` has no other projects.
    pub fn cover(&self, other: &Self) -> bool {
        match (self, other) {
            (Self::All, _) => true,
            (Self::Only(_), Self::All) => false,
            (Self::Only(these), Self::Only(others)) => others.is_subset(these),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_can_be_parsed_again() {
        for scope in Scope::ALL {
            assert_eq!(scope.name().parse(), Ok(*scope));
            assert_eq!(serde_json::to_value(scope).unwrap(), scope.name());
        }
        for scope in Scope::OF_JOBS {
            assert_eq!(serde_json::to_value(scope).unwrap(), scope.name());
            assert!(scope.name().parse::<Scope>().is_err(), "a person");
        }
        assert!("job".parse::<Scope>().is_err());
    }

    #[test]
    fn every_permission_of_a_scan_is_a_scope() {
        let names = workflow::PERMISSIONS.map(str::to_owned);
        assert_eq!(Scopes::of_permissions(&names).0.len(), names.len());
    }

    #[test]
    fn an_alias_means_its_scopes() {
        let parsed = Scopes::parse(["dispatch", "blob"]).unwrap();
        let wanted = [Scope::Dispatch, Scope::BlobRead, Scope::BlobWrite];
        assert_eq!(parsed, Scopes::from_iter(wanted));
        assert!(Scopes::parse(["blobs"]).is_err());
    }

    #[test]
    fn only_admin_covers_admin() {
        let job = Scopes::from_iter([Scope::JobRead, Scope::Dispatch]);
        assert!(Scopes::admin().cover(&job));
        assert!(!job.cover(&Scopes::admin()));
        assert!(job.cover(&Scopes::from_iter([Scope::JobRead])));
        assert!(!job.allow(Scope::JobWrite));
    }

    #[test]
    fn a_scope_allows_its_parts_and_no_part_allows_the_whole() {
        for part in Scope::ALL {
            let Some(whole) = part.whole() else { continue };
            assert!(Scopes::from_iter([whole]).allow(*part));
            assert!(!Scopes::from_iter([*part]).allow(whole));
        }
        let stronger = Scopes::from_iter([Scope::JobWrite]);
        assert!(stronger.cover(&Scopes::from_iter([Scope::JobCancel])));
    }
}
