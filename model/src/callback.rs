//! Callback servers: names that are planted in targets, and the interactions of whoever looks them up.
//!
//! Interactions are numbered for each server. Number `n` is in page `n / INTERACTION_PAGE`, so a number leads to its file. A page
//! also ends with its day and when it is large. Then the numbers continue with the next page: they increase, with gaps.

mod announce;
mod cause;
pub(crate) mod certificate;
mod mint;
mod rules;
mod sampling;

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::net::{IpAddr, SocketAddr};
use std::str::FromStr;
use std::sync::Arc;

use serde::{Deserialize, Serialize};
use thiserror::Error;
use workflow::is_obeyed;
use workflow::notify::NotifyName;

pub use self::announce::{Announced, Announcement};
pub use self::cause::{CallbackCause, ConsideredInteractions, Unconsidered};
pub use self::certificate::{
    AskedCertificate, CallbackCertificate, CertificateFailure, CertificateSecret,
};
pub use self::mint::{LiveMints, MINT_LINES, Mint, MintKey, Minted, PlantedBy, mint, read};
pub use self::rules::{CallbackRule, CallbackRules, Ignored, RuleAnswer};
pub use self::sampling::{Sampling, Share};
use crate::limits::{
    INTERACTION_BYTES, INTERACTION_PAGE, INTERACTION_PAGES_INDEXED, INTERACTION_RAW_PAGE,
    INTERACTION_TEXT_BYTES, INTERACTIONS,
};
use crate::moment::Entropy;
use crate::{Actor, JobId, PayloadName, ProjectId, Timestamp};

/// The text is neither the id of a callback server nor a tag.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Error)]
#[error("must be {length} characters of a-z and 2-7")]
pub struct ParseNameError {
    length: usize,
}

const BASE32: &[u8; 32] = b"abcdefghijklmnopqrstuvwxyz234567";

macro_rules! base32 {
    ($($(#[$doc:meta])* $name:ident = $length:literal;)*) => {$(
        $(#[$doc])*
        #[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
        #[serde(try_from = "String", into = "String")]
        pub struct $name([u8; $length]);

        impl $name {
            pub fn random(entropy: &mut dyn Entropy) -> Self {
                let mut bytes = [0; $length];
                entropy.fill(&mut bytes);
                Self(bytes.map(|byte| BASE32[usize::from(byte % 32)]))
            }

            pub fn as_str(&self) -> &str {
                // All bytes are of BASE32.
                std::str::from_utf8(&self.0).unwrap_or_default()
            }
        }

        impl FromStr for $name {
            type Err = ParseNameError;

            /// In any case of its letters.
            fn from_str(text: &str) -> Result<Self, ParseNameError> {
                let lower = text.to_ascii_lowercase();
                let bytes: Option<[u8; $length]> = lower.as_bytes().try_into().ok();
                let bytes = bytes.filter(|bytes| bytes.iter().all(|byte| BASE32.contains(byte)));
                bytes.map(Self).ok_or(ParseNameError { length: $length })
            }
        }

        impl TryFrom<String> for $name {
            type Error = ParseNameError;

            fn try_from(text: String) -> Result<Self, ParseNameError> {
                text.parse()
            }
        }

        impl From<$name> for String {
            fn from(name: $name) -> Self {
                name.as_str().to_owned()
            }
        }

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str(self.as_str())
            }
        }

        impl fmt::Debug for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str(self.as_str())
            }
        }
    )*};
}

base32! {
    /// A callback server, as in its names: `<id>-<tag>.<zone>`.
    CallbackId = 16;
    /// Which planted name it was.
    CallbackTag = 20;
}

/// A callback server of a project.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Callback {
    pub id: CallbackId,
    pub project: ProjectId,
    pub name: NotifyName,
    pub created_at: Timestamp,
    pub created_by: Actor,
    /// How many days interactions are kept. None keeps them for ever.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub keep_days: Option<u32>,
    pub interactions: Interactions,
    #[serde(default, skip_serializing_if = "CallbackRules::is_empty")]
    pub rules: CallbackRules,
    /// Tags that were made many at a time, once there is one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub minted: Option<Minted>,
    /// What scans that it starts have not considered yet.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub unconsidered: Vec<Unconsidered>,
    /// What people were told of lately.
    #[serde(default, skip_serializing_if = "Announced::is_none")]
    pub announced: Announced,
    /// Nobody sees it any more. Its files are being removed.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub is_deleted: bool,
}

impl Callback {
    /// True if it has reached a limit and records nothing more.
    pub const fn is_full(&self) -> bool {
        !self.is_deleted && self.interactions.is_full()
    }
}

/// Where the interactions of a server are.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Interactions {
    /// The number of the next one.
    pub next: u64,
    /// The oldest page that is kept.
    pub oldest: u64,
    /// When the first one of the open page was recorded.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub opened: Option<Timestamp>,
    /// Bytes of the open page: of its lines, and of its raw requests.
    pub lines: u64,
    pub raw: u64,
    /// The pages before this one have a line in the index.
    pub indexed: u64,
    /// Bytes of the file of the index that gets the next line.
    pub index: u64,
    /// How many are kept, with all their bytes.
    pub count: u64,
    pub bytes: u64,
    /// How many were left out: of a flood, or because of a limit.
    pub left_out: u64,
    /// How many queries and requests had a tag that is unknown or has ended. They are not recorded.
    #[serde(default, skip_serializing_if = "crate::is_zero")]
    pub unknown_tags: u64,
}

impl Default for Interactions {
    fn default() -> Self {
        Self {
            next: 1,
            oldest: 0,
            opened: None,
            lines: 0,
            raw: 0,
            indexed: 0,
            index: 0,
            count: 0,
            bytes: 0,
            left_out: 0,
            unknown_tags: 0,
        }
    }
}

impl Interactions {
    /// The page that the next interaction belongs to.
    pub const fn open_page(&self) -> u64 {
        page_of(self.next)
    }

    /// True if nothing more can be recorded.
    pub const fn is_full(&self) -> bool {
        self.count >= INTERACTIONS || self.bytes >= INTERACTION_BYTES
    }

    /// How much of the limits is used.
    pub const fn share(&self) -> Share {
        if self.is_full() {
            Share::Full
        } else if self.count >= INTERACTIONS / 10 * 9 || self.bytes >= INTERACTION_BYTES / 10 * 9 {
            Share::NearlyFull
        } else {
            Share::Free
        }
    }

    /// True if the open page is of an earlier day, or large.
    pub fn is_page_over(&self, now: Timestamp) -> bool {
        let is_old = |opened: Timestamp| opened.date_naive() < now.date_naive();
        self.raw >= INTERACTION_RAW_PAGE || self.opened.is_some_and(is_old)
    }

    /// Ends the open page if it is over.
    pub(crate) fn turn_page(&mut self, now: Timestamp) {
        if self.is_page_over(now) {
            self.close_page();
        }
    }

    /// Ends the open page if it has a line.
    pub(crate) const fn close_page(&mut self) {
        if self.lines > 0 {
            self.next = (self.open_page() + 1) * INTERACTION_PAGE;
            self.begin_page();
        }
    }

    const fn begin_page(&mut self) {
        (self.lines, self.raw, self.opened) = (0, 0, None);
    }

    /// Counts one more interaction, with the bytes of its line and of its raw request.
    pub(crate) fn add(&mut self, now: Timestamp, line: u64, raw: u64) {
        self.opened.get_or_insert(now);
        self.next += 1;
        self.count += 1;
        self.bytes += line + raw;
        if self.next.is_multiple_of(INTERACTION_PAGE) {
            self.begin_page();
        } else {
            self.lines += line;
            self.raw += raw;
        }
    }
}

/// The page of an interaction.
pub const fn page_of(number: u64) -> u64 {
    number / INTERACTION_PAGE
}

/// The number of the file of the index that has the line of this page.
pub const fn index_of(page: u64) -> u64 {
    page / INTERACTION_PAGES_INDEXED
}

/// A name that was made to be planted.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct CallbackToken {
    pub server: CallbackId,
    pub tag: CallbackTag,
    /// Where it was planted, or what for. It may be empty.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub note: String,
    pub created_at: Timestamp,
    pub created_by: Actor,
    /// When the name is not answered any more, by the wall clock. None is never.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub expires_at: Option<Timestamp>,
}

/// The names of a callback server that were made one by one.
pub type CallbackTokens = Arc<BTreeMap<CallbackTag, Arc<CallbackToken>>>;

/// What is known of a planted name. It stands in each interaction, since names end.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Planted {
    /// Where it was planted, or what for.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub note: Option<String>,
    /// The job that made the name.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub job: Option<PlantedBy>,
    /// What was planted with it, and where.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub payload: Option<PlantedPayload>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub target: Option<String>,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct PlantedPayload {
    pub group: String,
    pub payload: PayloadName,
    pub version: u64,
}

impl Planted {
    /// Adds what was rendered with the name. A long target is cut.
    #[must_use]
    pub fn rendered(self, payload: PlantedPayload, target: Option<&str>) -> Self {
        Self {
            payload: Some(payload),
            target: target.map(shown_text),
            ..self
        }
    }

    fn is_empty(&self) -> bool {
        *self == Self::default()
    }
}

impl From<&CallbackToken> for Planted {
    fn from(token: &CallbackToken) -> Self {
        Self {
            note: (!token.note.is_empty()).then(|| token.note.clone()),
            ..Self::default()
        }
    }
}

impl From<&Mint> for Planted {
    fn from(mint: &Mint) -> Self {
        Self {
            note: (!mint.note.is_empty()).then(|| mint.note.clone()),
            job: mint.job.clone(),
            ..Self::default()
        }
    }
}

/// What somebody has sent to a callback server. All texts are of strangers.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Interaction {
    pub number: u64,
    pub heard: Heard,
    #[serde(default, skip_serializing_if = "Planted::is_empty")]
    pub planted: Planted,
    /// How many of the same tag were left out since the one before.
    #[serde(default, skip_serializing_if = "crate::is_zero")]
    pub left_out: u64,
    /// How many more of the same came from the same address in the same moment. Only the first one is kept.
    #[serde(default, skip_serializing_if = "crate::is_zero")]
    pub repeats: u64,
    /// Where its raw request begins in the file of its page, and how long it is.
    pub raw_at: u64,
    pub raw_bytes: u64,
}

impl Interaction {
    /// True if this job has made the name.
    pub fn is_of(&self, job: JobId) -> bool {
        self.planted.job.as_ref().is_some_and(|by| by.id == job)
    }
}

/// An interaction as it was received.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Heard {
    pub at: Timestamp,
    pub peer: SocketAddr,
    /// Absent if only the name of the server was used.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tag: Option<CallbackTag>,
    pub request: Request,
    /// What was answered, in a few words.
    pub answer: String,
    /// The name of the rule that answered.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rule: Option<String>,
}

#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Request {
    Dns {
        /// `udp` or `tcp`.
        transport: String,
        /// As it was sent, in upper and lower case.
        name: String,
        qtype: String,
        /// For whom the resolver asks.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        client_subnet: Option<String>,
    },
    Http {
        method: String,
        target: String,
        host: String,
        /// The length of the head in the raw request. The rest is the body.
        head_bytes: u64,
        /// The rest of the request was not kept.
        #[serde(default, skip_serializing_if = "std::ops::Not::not")]
        truncated: bool,
        #[serde(default, skip_serializing_if = "std::ops::Not::not")]
        malformed: bool,
        /// It came over HTTPS.
        #[serde(default, skip_serializing_if = "std::ops::Not::not")]
        tls: bool,
        /// The name that the client asked for in TLS.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        sni: Option<String>,
    },
}

/// The kinds of requests.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum RequestType {
    Dns,
    Http,
}

impl RequestType {
    pub const ALL: [Self; 2] = [Self::Dns, Self::Http];

    pub const fn name(self) -> &'static str {
        match self {
            Self::Dns => "dns",
            Self::Http => "http",
        }
    }
}

impl Request {
    pub const fn kind(&self) -> RequestType {
        match self {
            Self::Dns { .. } => RequestType::Dns,
            Self::Http { .. } => RequestType::Http,
        }
    }

    /// The texts of the line.
    pub fn texts(&self) -> [&str; 4] {
        match self {
            Self::Dns {
                transport,
                name,
                qtype,
                ..
            } => [transport, name, qtype, ""],
            Self::Http {
                method,
                target,
                host,
                sni,
                ..
            } => [method, target, host, sni.as_deref().unwrap_or_default()],
        }
    }
}

impl Heard {
    /// With short texts that a terminal and a page can show. The raw request has the rest.
    pub(crate) fn shown(&self) -> Self {
        let mut shown = self.clone();
        let texts = match &mut shown.request {
            Request::Dns {
                transport,
                name,
                qtype,
                client_subnet: _,
            } => [transport, name, qtype],
            Request::Http {
                method,
                target,
                host,
                ..
            } => [method, target, host],
        };
        for text in texts.into_iter().chain([&mut shown.answer]) {
            if text.len() > INTERACTION_TEXT_BYTES || text.contains(is_obeyed) {
                *text = shown_text(text);
            }
        }
        shown
    }

    /// The address of the sender. IPv4 is never written as IPv6.
    pub const fn address(&self) -> IpAddr {
        self.peer.ip().to_canonical()
    }
}

fn shown_text(text: &str) -> String {
    let mut shown = String::new();
    for c in text.chars() {
        if shown.len() + c.len_utf8() > INTERACTION_TEXT_BYTES {
            break;
        }
        shown.push(match is_obeyed(c) {
            true => char::REPLACEMENT_CHARACTER,
            false => c,
        });
    }
    shown
}

/// An interaction with its raw request, before it is recorded.
#[derive(Debug, Clone)]
pub struct NewInteraction {
    pub heard: Heard,
    /// Of a name that has a record of its own, the decision knows it.
    pub planted: Planted,
    pub left_out: u64,
    pub repeats: u64,
    pub raw: Vec<u8>,
}

/// A closed page of interactions, as a line of the index.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct IndexedPage {
    pub page: u64,
    /// When its last interaction was recorded.
    pub until: Timestamp,
    pub count: u64,
    /// Of its lines and raw requests.
    pub bytes: u64,
    /// The beginnings of its tags. A page may lack a tag whose beginning is here.
    pub tags: BTreeSet<String>,
}

/// The characters of a tag in the index: few enough for a small index, and enough for rare coincidences.
pub const INDEXED_CHARS: usize = 8;

/// How the index names a tag. The name of the server alone is empty.
pub fn indexed_tag(tag: Option<&CallbackTag>) -> &str {
    tag.map_or("", |tag| &tag.as_str()[..INDEXED_CHARS])
}

/// What happens to the files of interactions.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum InteractionChange {
    /// New ones. Their lines are in the batch of the decision.
    Recorded(Recorded),
    /// A closed page gets this line in a file of the index, at this offset.
    Indexed {
        file: u64,
        at: u64,
        text: String,
    },
    PageRemoved(u64),
    IndexRemoved(u64),
}

/// A summary of new interactions.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Recorded {
    pub project: ProjectId,
    pub first: u64,
    pub last: u64,
    pub count: u64,
    pub types: BTreeSet<RequestType>,
    pub tags: BTreeSet<CallbackTag>,
    /// What people are told of them.
    pub announcement: Option<Box<Announcement>>,
}

#[cfg(test)]
mod tests;
