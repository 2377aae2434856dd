//! Which interactions of a flood are kept. It depends only on the values that it is given.

use std::collections::HashMap;

use super::{CallbackId, CallbackTag};
use crate::Timestamp;
use crate::limits::{
    KEPT_A_MINUTE, KEPT_WHILE_BUSY, LEFT_OUT_MINUTES, SAMPLED_ABOVE, SAMPLED_TAGS,
};

/// How much of a server's limits is used.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Share {
    Free,
    /// The last tenth is for tags that are hit rarely: a flood cannot take the place of a single hit.
    NearlyFull,
    Full,
}

/// Counts the hits of tags.
#[derive(Debug, Default)]
pub struct Sampling {
    minute: i64,
    second: i64,
    /// All hits of this second.
    all: u64,
    tags: HashMap<(CallbackId, Option<CallbackTag>), Hits>,
}

#[derive(Debug, Default)]
struct Hits {
    /// Of this minute.
    seen: u64,
    /// Since the last one that was kept.
    left_out: u64,
    /// The minute of the last one.
    minute: i64,
}

impl Sampling {
    /// Counts a hit. If it is kept, the answer is how many of the same tag were left out since the one before.
    pub fn keep(
        &mut self,
        at: Timestamp,
        server: CallbackId,
        tag: Option<CallbackTag>,
        share: Share,
    ) -> Option<u64> {
        let second = at.timestamp();
        if second != self.second {
            (self.second, self.all) = (second, 0);
        }
        if second / 60 != self.minute {
            self.minute = second / 60;
            let since = self.minute - LEFT_OUT_MINUTES;
            self.tags
                .retain(|_, hits| hits.left_out > 0 && hits.minute >= since);
            self.tags.values_mut().for_each(|hits| hits.seen = 0);
        }
        if self.tags.len() >= SAMPLED_TAGS {
            self.tags.clear();
        }
        self.all += 1;
        let hits = self.tags.entry((server, tag)).or_default();
        hits.seen += 1;
        hits.minute = self.minute;
        let is_kept = match share {
            Share::Full => false,
            Share::NearlyFull => hits.seen <= KEPT_WHILE_BUSY,
            Share::Free if self.all > SAMPLED_ABOVE => is_sampled(hits.seen, KEPT_WHILE_BUSY),
            Share::Free => is_sampled(hits.seen, KEPT_A_MINUTE),
        };
        if is_kept {
            return Some(std::mem::take(&mut hits.left_out));
        }
        hits.left_out += 1;
        None
    }

    /// A hit that was to be kept could not be recorded.
    pub fn lost(&mut self, server: CallbackId, tag: Option<CallbackTag>, left_out: u64) {
        let hits = self.tags.entry((server, tag)).or_default();
        hits.left_out += left_out + 1;
        hits.minute = self.minute;
    }

    #[cfg(test)]
    pub(super) fn tags(&self) -> usize {
        self.tags.len()
    }
}

/// The first hits are kept, then every tenth, then every hundredth, and so on.
const fn is_sampled(seen: u64, first: u64) -> bool {
    let (mut step, mut until) = (1_u64, first);
    while seen > until {
        step *= 10;
        until = until.saturating_mul(10);
    }
    seen.is_multiple_of(step)
}
