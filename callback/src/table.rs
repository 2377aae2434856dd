//! The known ids, and which of them a stranger's bytes name.

use std::collections::HashMap;
use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::SystemTime;

use crate::ids::{ServerId, Tag, mentions};
use crate::rules::Rules;
use crate::served::Served;

/// All known ids. It is immutable and replaced as a whole; a clone with one changed server is cheap.
#[derive(Debug, Clone, Default)]
pub struct Table {
    pub servers: HashMap<ServerId, Server>,
}

#[derive(Debug, Clone, Default)]
pub struct Server {
    /// The live tags, with the time when they end.
    pub tags: Arc<HashMap<Tag, Option<SystemTime>>>,
    /// Knows tags that are in no list.
    pub minted: Option<Minted>,
    pub rules: Arc<Rules>,
    pub served: Option<Served>,
    /// Whoever replaces a server in the table keeps its counts.
    pub counts: Arc<Counts>,
}

/// Tells whether a tag was minted and is live. It is asked for each tag that is not in the list, so it must be quick.
#[derive(Clone)]
pub struct Minted(pub Arc<dyn Fn(&Tag) -> bool + Send + Sync>);

impl fmt::Debug for Minted {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Minted")
    }
}

impl Server {
    fn is_live(&self, tag: &Tag, now: SystemTime) -> bool {
        match (self.tags.get(tag), &self.minted) {
            (Some(end), _) => end.is_none_or(|end| now < end),
            (None, Some(minted)) => (minted.0)(tag),
            (None, None) => false,
        }
    }
}

/// What was answered to queries and requests for a server and not reported as a [`crate::Hit`].
#[derive(Debug, Default)]
pub struct Counts {
    /// They had a tag that is not live.
    pub unknown_tag: AtomicU64,
    /// The channel had no room.
    pub dropped: AtomicU64,
}

impl Counts {
    /// What was counted since the last call: unknown tags, and dropped hits.
    pub fn take(&self) -> (u64, u64) {
        let take = |count: &AtomicU64| count.swap(0, Ordering::Relaxed);
        (take(&self.unknown_tag), take(&self.dropped))
    }
}

/// Which known id some texts name.
pub(crate) enum Found<'t> {
    Known(ServerId, Option<Tag>),
    UnknownTag(&'t Counts),
    UnknownServer,
}

impl Table {
    /// The first known server that the texts name, with the first of its live tags. A dead tag counts only if no live one follows.
    pub(crate) fn find(&self, texts: &[&[u8]], now: SystemTime) -> Found<'_> {
        let mut first: Option<(ServerId, &Server, bool)> = None;
        for (id, tag) in texts.iter().flat_map(|text| mentions(text)) {
            let (named, server, _) = match first {
                Some(first) => first,
                None => match self.servers.get(&id) {
                    Some(server) => *first.insert((id, server, tag.is_some())),
                    None => continue,
                },
            };
            if named == id && tag.is_some_and(|tag| server.is_live(&tag, now)) {
                return Found::Known(id, tag);
            }
        }
        match first {
            None => Found::UnknownServer,
            Some((id, _, false)) => Found::Known(id, None),
            Some((_, server, true)) => Found::UnknownTag(&server.counts),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    const A: &str = "aaaaaaaaaaaaaaaa";
    const B: &str = "bbbbbbbbbbbbbbbb";
    const LIVE: &str = "22222222222222222222";
    const DEAD: &str = "33333333333333333333";
    const OVER: &str = "44444444444444444444";
    const MINTED: &str = "55555555555555555555";

    #[test]
    fn the_first_known_server_and_its_first_live_tag_count() {
        let now = SystemTime::UNIX_EPOCH + Duration::from_secs(9);
        let later = now + Duration::from_nanos(1);
        let tags = [(LIVE, Some(later)), (OVER, Some(now))];
        let tags = tags.map(|(tag, end)| (tag.parse().unwrap(), end));
        let tags = Arc::new(HashMap::from(tags));
        let server = |tags| Server {
            tags,
            ..Server::default()
        };
        let servers = [(A, tags.clone()), (B, tags)];
        let mut table = Table {
            servers: servers
                .map(|(id, tags)| (id.parse().unwrap(), server(tags)))
                .into(),
        };
        let minted: Tag = MINTED.parse().unwrap();
        let minted = Minted(Arc::new(move |tag| *tag == minted));
        let server = table.servers.get_mut(&A.parse().unwrap()).unwrap();
        server.minted = Some(minted);
        let found = |texts: &[String]| {
            let texts: Vec<_> = texts.iter().map(String::as_bytes).collect();
            match table.find(&texts, now) {
                Found::Known(id, None) => id.to_string(),
                Found::Known(id, Some(tag)) => format!("{id}-{tag}"),
                Found::UnknownTag(_) => "unknown tag".to_owned(),
                Found::UnknownServer => "unknown".to_owned(),
            }
        };
        let text = |text: &str| {
            let text = text.replace('L', LIVE).replace('D', DEAD);
            text.replace('O', OVER).replace('M', MINTED)
        };
        for (texts, expected) in [
            (vec![], "unknown"),
            (vec!["cccccccccccccccc-L"], "unknown"),
            (vec!["aaaaaaaaaaaaaaaa.zone"], A),
            (vec!["aaaaaaaaaaaaaaaa.zone", "bbbbbbbbbbbbbbbb-L"], A),
            (
                vec!["aaaaaaaaaaaaaaaa.zone", "/aaaaaaaaaaaaaaaa-L"],
                "aaaaaaaaaaaaaaaa-L",
            ),
            (
                vec!["cccccccccccccccc.bbbbbbbbbbbbbbbb-L"],
                "bbbbbbbbbbbbbbbb-L",
            ),
            (vec!["aaaaaaaaaaaaaaaa-D.zone"], "unknown tag"),
            (vec!["aaaaaaaaaaaaaaaa-O.zone"], "unknown tag"),
            (vec!["aaaaaaaaaaaaaaaa-M.zone"], "aaaaaaaaaaaaaaaa-M"),
            (vec!["bbbbbbbbbbbbbbbb-M.zone"], "unknown tag"),
            (
                vec!["aaaaaaaaaaaaaaaa-D.aaaaaaaaaaaaaaaa-L"],
                "aaaaaaaaaaaaaaaa-L",
            ),
            (vec!["aaaaaaaaaaaaaaaa.zone aaaaaaaaaaaaaaaa-D"], A),
        ] {
            let texts: Vec<_> = texts.into_iter().map(text).collect();
            assert_eq!(found(&texts), text(expected), "{texts:?}");
        }
    }
}
