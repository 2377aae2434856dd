//! Identifiers. Each id is parsed once, at the edge. Inside, no bare UUID or string is used as an id.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};
use thiserror::Error;
use uuid::{Builder, Uuid};
use workflow::ScanName;

use crate::Timestamp;
use crate::limits::SOURCE_NAME_BYTES;
use crate::moment::Entropy;

/// The text is not an identifier.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[error("`{text}` is not an id (a UUID such as 0198c5f2-7c1e-7000-8000-000000000000)")]
pub struct ParseIdError {
    /// The text, cut to a readable length.
    pub text: String,
}

macro_rules! ids {
    ($($(#[$doc:meta])* $name:ident;)*) => {$(
        $(#[$doc])*
        #[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
        #[serde(transparent)]
        pub struct $name(Uuid);

        impl $name {
            pub const fn uuid(self) -> Uuid {
                self.0
            }

            pub const fn from_uuid(uuid: Uuid) -> Self {
                Self(uuid)
            }
        }

        impl From<$name> for Uuid {
            fn from(id: $name) -> Self {
                id.0
            }
        }

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                self.0.fmt(f)
            }
        }

        impl fmt::Debug for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                write!(f, "{}({})", stringify!($name), self.0)
            }
        }

        impl FromStr for $name {
            type Err = ParseIdError;

            fn from_str(text: &str) -> Result<Self, ParseIdError> {
                Uuid::try_parse(text).map(Self).map_err(|_| ParseIdError { text: text.chars().take(64).collect() })
            }
        }
    )*};
}

ids! {
    /// A project: the workflows of one source.
    ProjectId;
    /// A workflow file's identity across its revisions.
    WorkflowId;
    /// A version of a workflow file. Expressions read it as `revision.id`.
    RevisionId;
    /// A job. Ids are UUID v7 and strictly increasing, so that the newest job has the largest id.
    JobId;
    ArtifactId;
    RunnerId;
    /// A personal access token.
    TokenId;
    /// A person or a service with an account.
    UserId;
    /// A signed-in browser or device.
    SessionId;
    BlobLinkId;
    ConditionId;
    EventId;
    /// A channel of notifications.
    ChannelId;
    /// A record of the outbox.
    OutgoingId;
    /// A message of a channel. All its attempts have the same id.
    MessageId;
    /// An unused registration token.
    RegistrationId;
    /// A group of payloads.
    PayloadGroupId;
}

/// The UUID namespace of ids that are derived from names. A rebuilt state folder has the same ids.
const NAMES: Uuid = Uuid::from_u128(0x5e6d_3f0a_7b1c_5d2e_9a44_0c7f_e2b8_6d31);

impl ProjectId {
    /// The project of a source. Each source has one project of the same name.
    pub fn of_source(source: &SourceName) -> Self {
        Self(Uuid::new_v5(&NAMES, format!("source\0{source}").as_bytes()))
    }
}

impl WorkflowId {
    /// The id of the workflow `name` (path without extension) of a source (design section 3).
    pub fn derive(source: &SourceName, name: &str) -> Self {
        Self(Uuid::new_v5(
            &NAMES,
            format!("workflow\0{source}\0{name}").as_bytes(),
        ))
    }
}

impl RevisionId {
    /// The id of a workflow's revision. Revisions are numbered from 1.
    pub fn derive(workflow: WorkflowId, number: u64) -> Self {
        Self(Uuid::new_v5(
            &workflow.0,
            format!("revision\0{number}").as_bytes(),
        ))
    }
}

impl ArtifactId {
    /// The id of the job's artifact with this name (design section 7).
    pub fn derive(job: JobId, name: &str) -> Self {
        Self(Uuid::new_v5(&job.0, name.as_bytes()))
    }
}

impl UserId {
    /// The user that the first start makes. Tokens and sessions of states without users belong to it.
    pub const OWNER: Self = Self(Uuid::from_u128(0x6f77_6e65_7200_8000_8000_0000_0000_0000));

    pub(crate) const fn owner() -> Self {
        Self::OWNER
    }
}

macro_rules! random {
    ($($name:ident)*) => {$(
        impl $name {
            pub fn random(entropy: &mut dyn Entropy) -> Self {
                Self(entropy.uuid_v4())
            }
        }
    )*};
}

random! { ConditionId RunnerId TokenId UserId SessionId BlobLinkId RegistrationId ChannelId EventId OutgoingId MessageId PayloadGroupId }

impl JobId {
    /// Smaller than the id of any job.
    pub const FIRST: Self = Self(Uuid::nil());

    /// Greater than the id of any job.
    pub const LAST: Self = Self(Uuid::max());

    /// The id of a new job: a UUID v7 of `now` that is always greater than `latest`, even if the clock was set back.
    pub fn next(latest: Self, now: Timestamp, entropy: &mut dyn Entropy) -> Self {
        let millis = u64::try_from(now.timestamp_millis()).unwrap_or(0);
        let mut random = [0; 10];
        entropy.fill(&mut random);
        let fresh = Builder::from_unix_timestamp_millis(millis, &random).into_uuid();
        if fresh > latest.0 {
            Self(fresh)
        } else {
            Self(successor(latest.0))
        }
    }

    /// The smallest possible id of a job that was created at `moment`. Older jobs have smaller ids.
    pub fn at(moment: Timestamp) -> Self {
        let millis = u128::try_from(moment.timestamp_millis()).unwrap_or(0);
        Self(Uuid::from_u128((millis << 80) & !(u128::MAX >> 48)))
    }

    /// The time in the id, to the millisecond. The job's folder is named after it.
    pub fn moment(self) -> Timestamp {
        let millis = (self.0.as_u128() >> 80) as u64;
        i64::try_from(millis)
            .ok()
            .and_then(Timestamp::from_timestamp_millis)
            .unwrap_or_default()
    }
}

/// The next UUID v7 in order. It increments the 74 random bits and carries into the time.
fn successor(uuid: Uuid) -> Uuid {
    const LOW_BITS: u32 = 62;
    const MIDDLE_BITS: u32 = 12;
    let value = uuid.as_u128();
    let low = value & ((1 << LOW_BITS) - 1);
    let middle = (value >> 64) & ((1 << MIDDLE_BITS) - 1);
    let time = value >> 80;
    let joined = ((time << (MIDDLE_BITS + LOW_BITS)) | (middle << LOW_BITS) | low) + 1;
    let low = joined & ((1 << LOW_BITS) - 1);
    let middle = (joined >> LOW_BITS) & ((1 << MIDDLE_BITS) - 1);
    let time = joined >> (MIDDLE_BITS + LOW_BITS);
    Uuid::from_u128((time << 80) | (0x7 << 76) | (middle << 64) | (0b10 << LOW_BITS) | low)
}

/// The name of a source, which is also its project's name: ASCII letters, digits, `-`, `_` and `.`.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct SourceName(String);

/// The text is not a source name.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[error(
    "`{name}` is not a source name (1 to {SOURCE_NAME_BYTES} of A-Z a-z 0-9 - _ . with a letter or digit first)"
)]
pub struct SourceNameError {
    /// The text, cut to a readable length.
    pub name: String,
}

impl SourceName {
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl FromStr for SourceName {
    type Err = SourceNameError;

    fn from_str(name: &str) -> Result<Self, SourceNameError> {
        let fits = name.len() <= SOURCE_NAME_BYTES
            && name.starts_with(|first: char| first.is_ascii_alphanumeric())
            && name
                .chars()
                .all(|c| c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | '.'));
        if fits {
            Ok(Self(name.to_owned()))
        } else {
            Err(SourceNameError {
                name: name.chars().take(80).collect(),
            })
        }
    }
}

impl TryFrom<String> for SourceName {
    type Error = SourceNameError;

    fn try_from(name: String) -> Result<Self, SourceNameError> {
        name.parse()
    }
}

impl From<SourceName> for String {
    fn from(name: SourceName) -> Self {
        name.0
    }
}

impl fmt::Display for SourceName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// Identifies a scan of a workflow.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct ScanKey {
    pub workflow: WorkflowId,
    pub scan: ScanName,
}

impl ScanKey {
    pub fn new(workflow: WorkflowId, scan: &ScanName) -> Self {
        Self {
            workflow,
            scan: scan.clone(),
        }
    }
}

/// Identifies a live record that expires.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum Holder {
    Token(TokenId),
    /// A user with an open link.
    User(UserId),
    /// A runner, with its sessions.
    Runner(RunnerId),
    Registration(RegistrationId),
    /// A running job, or a waiting retry.
    Job(JobId),
    /// A stored request, by its key.
    Idempotency(String),
    BlobLink(BlobLinkId),
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::moment::SeededEntropy;

    fn at(millis: i64) -> Timestamp {
        Timestamp::from_timestamp_millis(millis).unwrap()
    }

    #[test]
    fn job_ids_increase_even_if_the_clock_stops_or_moves_back() {
        let mut entropy = SeededEntropy::new(7);
        let mut latest = JobId::FIRST;
        for step in 0..2_000_i64 {
            let next = JobId::next(latest, at(1_790_000_000_000 - (step % 50)), &mut entropy);
            assert!(next > latest, "{next} does not follow {latest}");
            assert_eq!(next.uuid().get_version_num(), 7);
            assert_eq!(next.uuid().get_variant(), uuid::Variant::RFC4122);
            latest = next;
        }
    }

    #[test]
    fn a_full_counter_carries_into_the_time() {
        let full = Uuid::from_u128((5 << 80) | (0x7fff << 64) | (0b10 << 62) | ((1 << 62) - 1));
        let next = successor(full);
        assert!(next > full);
        assert_eq!(JobId(next).moment(), at(6));
        assert_eq!(next.get_version_num(), 7);
    }

    #[test]
    fn a_job_id_contains_its_time() {
        let now = at(1_790_123_456_789);
        assert_eq!(
            JobId::next(JobId::FIRST, now, &mut SeededEntropy::new(1)).moment(),
            now
        );
    }

    #[test]
    fn ids_derived_from_names_never_change() {
        let source: SourceName = "recon".parse().unwrap();
        let project = ProjectId::of_source(&source);
        assert_eq!(project.to_string(), "499ffec8-c289-5324-a8f7-8fac65b6824f");
        let workflow = WorkflowId::derive(&source, "a/b");
        assert_eq!(workflow.to_string(), "2c99c85a-c2a2-504b-a5cb-da55103000ee");
        let revision = RevisionId::derive(workflow, 3);
        assert_eq!(revision.to_string(), "bfe98e53-8108-56d8-80a4-0f7bcec15e50");
        let job: JobId = "0198c5f2-7c1e-7000-8000-000000000000".parse().unwrap();
        let artifact = ArtifactId::derive(job, "hosts");
        assert_eq!(artifact.to_string(), "8c02f070-9714-58b4-9f4a-1990ed2b6258");
    }

    #[test]
    fn source_names_are_plain() {
        for good in ["a", "recon-2", "a.b_c"] {
            assert!(good.parse::<SourceName>().is_ok(), "{good}");
        }
        for bad in ["", ".", "..", "-a", "a/b", "a b", "ä", &"x".repeat(65)] {
            assert!(bad.parse::<SourceName>().is_err(), "{bad}");
        }
    }
}
