//! Callback servers, their names, and interactions. All texts of an interaction were written by strangers.

use chrono::{DateTime, Utc};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use uuid::Uuid;

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Callback {
    /// 16 characters of a-z and 2-7.
    pub id: String,
    pub project: String,
    pub name: String,
    /// What to plant without a tag: the name of the server in each zone. Empty without `callback:read`.
    pub names: Vec<String>,
    pub created_at: DateTime<Utc>,
    pub created_by: String,
    /// How many days interactions are kept; absent if for ever.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub keep_days: Option<u32>,
    /// How many names were made one by one and are answered.
    pub tokens: u64,
    /// How many interactions are kept, and the bytes that they take.
    pub interactions: u64,
    pub bytes: u64,
    /// How many interactions were left out: of a flood, or because of a limit.
    pub left_out: u64,
    /// How many queries and requests had a tag that is unknown or has ended. They are answered and not recorded.
    #[serde(default, skip_serializing_if = "crate::is_zero")]
    pub unknown_tags: u64,
    /// Whether a limit is reached. Then nothing more is recorded.
    pub full: bool,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct CreateCallback {
    /// The project, by name or id.
    pub project: String,
    pub name: String,
    /// How many days interactions are kept; absent for 30.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub keep_days: Option<u32>,
    /// True if interactions are kept until the server is deleted.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub keep_forever: bool,
}

/// A name of a callback server that was made to be planted.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct CallbackToken {
    /// 20 characters of a-z and 2-7.
    pub tag: String,
    /// The name in each zone.
    pub names: Vec<String>,
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub note: String,
    pub created_at: DateTime<Utc>,
    pub created_by: String,
    /// Absent if it is answered until it is ended.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub expires_at: Option<DateTime<Utc>>,
}

#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct CreateCallbackToken {
    /// Where it is planted, or what for.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub note: String,
    /// Seconds until it is not answered any more; absent for 90 days.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub expires_in_seconds: Option<u64>,
    /// True if it is answered until it is ended.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub never_expires: bool,
}

/// What the daemon sees of the zones of its callback servers.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct CallbackCheck {
    pub findings: Vec<CallbackFinding>,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct CallbackFinding {
    /// Absent if it is about all zones.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub zone: Option<String>,
    pub outcome: CallbackOutcome,
    pub text: String,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum CallbackOutcome {
    Good,
    Bad,
    /// The daemon cannot see it.
    Unknown,
}

/// What somebody has sent to a callback server.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Interaction {
    /// Numbers of a server increase, with gaps.
    pub number: u64,
    pub at: DateTime<Utc>,
    /// The sender, as address and port.
    pub peer: String,
    /// Absent if only the name of the server was used.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tag: Option<String>,
    /// The note of the tag.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub note: Option<String>,
    /// What was planted with the tag.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub payload: Option<PlantedPayload>,
    /// The job that has made the name. It may be removed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub job: Option<PlantingJob>,
    #[serde(flatten)]
    pub request: InteractionRequest,
    /// What was answered, in a few words.
    pub answer: String,
    /// The name of the rule that answered.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rule: Option<String>,
    /// How many of the same tag were left out since the one before.
    #[serde(default, skip_serializing_if = "crate::is_zero")]
    pub left_out: u64,
    /// How many more of the same came from the same address in the same moment. Only the first one is kept.
    #[serde(default, skip_serializing_if = "crate::is_zero")]
    pub repeats: u64,
    pub raw_bytes: u64,
    /// The raw request in base64, if it was asked for. Of HTTP: the head, then the body.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub raw: Option<String>,
}

/// A payload that was rendered with a tag of its own.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct PlantedPayload {
    pub group: String,
    pub name: String,
    pub version: u64,
    /// Absent if it was rendered without a target.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub target: Option<String>,
}

impl PlantedPayload {
    /// In one line.
    pub fn summary(&self) -> String {
        let Self {
            group,
            name,
            version,
            target,
        } = self;
        match target {
            Some(target) => format!("{group}/{name}@{version} for {target}"),
            None => format!("{group}/{name}@{version}"),
        }
    }
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct PlantingJob {
    pub id: Uuid,
    pub scan: String,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "type", rename_all = "snake_case")]
pub enum InteractionRequest {
    Dns {
        /// `udp` or `tcp`.
        transport: String,
        /// As it was sent, in upper and lower case.
        name: String,
        qtype: String,
        /// For which network the resolver asks.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        client_subnet: Option<String>,
    },
    Http {
        method: String,
        target: String,
        host: String,
        /// The length of the head in the raw request. The rest is the body.
        head_bytes: u64,
        /// Whether the rest of the request was not kept.
        #[serde(default, skip_serializing_if = "std::ops::Not::not")]
        truncated: bool,
        #[serde(default, skip_serializing_if = "std::ops::Not::not")]
        malformed: bool,
        /// Whether it came over HTTPS.
        #[serde(default, skip_serializing_if = "std::ops::Not::not")]
        tls: bool,
        /// The name that the client asked for in TLS. It may differ from `host`.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        sni: Option<String>,
    },
}

impl InteractionRequest {
    pub const fn kind(&self) -> &'static str {
        match self {
            Self::Dns { .. } => "dns",
            Self::Http { .. } => "http",
        }
    }

    /// What was asked, in one line. A stranger has written it.
    pub fn summary(&self) -> String {
        match self {
            Self::Dns { name, qtype, .. } => format!("{qtype} {name}"),
            Self::Http {
                method,
                target,
                host,
                malformed,
                sni,
                ..
            } => {
                let host = match sni {
                    Some(name) if host.is_empty() => name,
                    Some(_) | None => host,
                };
                let malformed = if *malformed { "malformed request" } else { "" };
                let parts = [malformed, method, host, target].into_iter();
                let parts: Vec<&str> = parts.filter(|part| !part.is_empty()).collect();
                parts.join(" ")
            }
        }
    }
}
