//! Which interactions people are told of: the first of each name at once; repeats are only counted.

use std::collections::BTreeSet;
use std::net::IpAddr;

use serde::{Deserialize, Serialize};

use super::{Callback, CallbackTag, Interaction, Planted, Request, RequestType};
use crate::Timestamp;
use crate::limits::{ANNOUNCED_NAMES, ANNOUNCED_SPAN, ANNOUNCED_TEXT_CHARS};

/// What people were told of in this span of time. It is part of the server's record, which is written with each interaction.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Announced {
    /// When the span began.
    pub since: Timestamp,
    /// The tags that were reported in it. None is the name of the server alone.
    pub tags: BTreeSet<Option<CallbackTag>>,
    /// The first interaction since the last report, and how many there were.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub repeats: Option<(u64, u64)>,
}

impl Announced {
    pub(super) fn is_none(&self) -> bool {
        *self == Self::default()
    }
}

/// Interactions that people are told of. Texts are of strangers, except those in `planted`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Announcement {
    /// The first one since the report before, the last one, and how many there were.
    pub first: u64,
    pub last: u64,
    pub count: u64,
    /// The first one with a name that was not reported lately.
    pub kind: RequestType,
    /// The name that was used.
    pub name: String,
    pub from: IpAddr,
    pub planted: Planted,
}

impl Callback {
    /// Decides whether people are told of these interactions.
    pub(crate) fn announce(
        &mut self,
        interactions: &[Interaction],
        now: Timestamp,
    ) -> Option<Announcement> {
        let (first, last) = (interactions.first()?.number, interactions.last()?.number);
        let announced = &mut self.announced;
        // After a jump of the clock back, the span may be ahead of it.
        if announced.since > now || now - announced.since >= ANNOUNCED_SPAN {
            announced.since = now;
            announced.tags.clear();
        }
        let repeats = announced.repeats.take();
        let (first, before) = repeats.unwrap_or((first, 0));
        let count = before + interactions.len() as u64;
        let is_new = |it: &&Interaction| !announced.tags.contains(&it.heard.tag);
        let new = interactions.iter().find(is_new);
        let Some(new) = new.filter(|_| announced.tags.len() < ANNOUNCED_NAMES) else {
            announced.repeats = Some((first, count));
            return None;
        };
        let tags = interactions.iter().map(|it| it.heard.tag);
        announced.tags.extend(tags);
        let name = match &new.heard.request {
            Request::Dns { name, .. } => name,
            Request::Http { host, .. } => host,
        };
        Some(Announcement {
            first,
            last,
            count,
            kind: new.heard.request.kind(),
            name: name.chars().take(ANNOUNCED_TEXT_CHARS).collect(),
            from: new.heard.address(),
            planted: Planted {
                target: new
                    .planted
                    .target
                    .as_ref()
                    .map(|it| it.chars().take(ANNOUNCED_TEXT_CHARS).collect()),
                ..new.planted.clone()
            },
        })
    }
}
