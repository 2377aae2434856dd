//! The pace of events about interactions: for each callback server at most four a second. In a flood, what comes in between is one
//! event.

use std::collections::HashMap;
use std::sync::Arc;

use model::callback::{InteractionChange, Recorded};
use model::{CallbackId, Change};
use state::Published;
use tokio::time::Instant;

use crate::limits::TOPICS_PAUSE;

#[derive(Default)]
pub(super) struct Pace(HashMap<CallbackId, Sent>);

struct Sent {
    /// When the next event may be sent.
    next: Instant,
    held: Option<Recorded>,
}

impl Pace {
    /// Keeps back the changes of a commit that come too early.
    pub(super) fn hold(&mut self, published: Published, now: Instant) -> Published {
        if published.changes.iter().all(|it| recorded(it).is_none()) {
            return published;
        }
        let is_early = |change: &Change| match recorded(change) {
            Some((server, _)) => self
                .0
                .get(&server)
                .is_some_and(|sent| now < sent.next || sent.held.is_some()),
            None => false,
        };
        let early: Vec<bool> = published.changes.iter().map(is_early).collect();
        for (change, is_early) in published.changes.iter().zip(&early) {
            let Some((server, recorded)) = recorded(change) else {
                continue;
            };
            match self.0.get_mut(&server) {
                Some(sent) if *is_early => match &mut sent.held {
                    Some(held) => add(held, recorded),
                    None => sent.held = Some(recorded.clone()),
                },
                Some(_) | None => drop(self.0.insert(server, Sent::now(now))),
            }
        }
        if !early.contains(&true) {
            return published;
        }
        let changes = published.changes.iter().zip(early);
        Published {
            seq: published.seq,
            changes: changes
                .filter(|(_, is_early)| !is_early)
                .map(|(change, _)| change.clone())
                .collect(),
        }
    }

    /// When something held may be sent.
    pub(super) fn due(&self) -> Option<Instant> {
        let held = self.0.values().filter(|sent| sent.held.is_some());
        held.map(|sent| sent.next).min()
    }

    /// What may be sent now.
    pub(super) fn release(&mut self, now: Instant) -> Arc<[Change]> {
        let mut changes = Vec::new();
        self.0.retain(|server, sent| {
            if now < sent.next {
                return true;
            }
            let Some(held) = sent.held.take() else {
                return false;
            };
            let change = InteractionChange::Recorded(held);
            changes.push(Change::Interactions(*server, Arc::new(change)));
            *sent = Sent::now(now);
            true
        });
        changes.into()
    }
}

impl Sent {
    fn now(now: Instant) -> Self {
        Self {
            next: now + TOPICS_PAUSE,
            held: None,
        }
    }
}

fn recorded(change: &Change) -> Option<(CallbackId, &Recorded)> {
    let Change::Interactions(server, change) = change else {
        return None;
    };
    match &**change {
        InteractionChange::Recorded(recorded) => Some((*server, recorded)),
        InteractionChange::Indexed { .. }
        | InteractionChange::PageRemoved(_)
        | InteractionChange::IndexRemoved(_) => None,
    }
}

fn add(held: &mut Recorded, more: &Recorded) {
    held.last = more.last;
    held.count += more.count;
    held.types.extend(&more.types);
    held.tags.extend(&more.tags);
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use model::ProjectId;
    use model::callback::RequestType;
    use state::Seq;

    use super::*;

    fn commit(first: u64) -> Published {
        let recorded = Recorded {
            project: ProjectId::from_uuid(uuid::Uuid::nil()),
            first,
            last: first + 1,
            count: 2,
            types: [RequestType::Dns].into(),
            tags: Default::default(),
            announcement: None,
        };
        let server = "aaaaaaaaaaaaaaaa".parse().unwrap();
        let change = InteractionChange::Recorded(recorded);
        Published {
            seq: Seq(first),
            changes: Arc::new([Change::Interactions(server, Arc::new(change))]),
        }
    }

    fn range(changes: &[Change]) -> Option<(u64, u64, u64)> {
        let (_, recorded) = recorded(changes.first()?)?;
        Some((recorded.first, recorded.last, recorded.count))
    }

    #[tokio::test(start_paused = true)]
    async fn what_comes_early_is_one_event_later() {
        let mut pace = Pace::default();
        let begin = Instant::now();
        let at = |millis| begin + Duration::from_millis(millis);
        let first = pace.hold(commit(1), at(0));
        assert_eq!(range(&first.changes), Some((1, 2, 2)));
        for (number, millis) in [(3, 10), (5, 100), (7, 249)] {
            let early = pace.hold(commit(number), at(millis));
            assert_eq!(range(&early.changes), None);
        }
        assert_eq!(pace.due(), Some(at(250)));
        assert_eq!(range(&pace.release(at(250))), Some((3, 8, 6)));
        assert_eq!(pace.due(), None);
        let early = pace.hold(commit(9), at(300));
        assert_eq!(range(&early.changes), None);
        assert_eq!(range(&pace.release(at(500))), Some((9, 10, 2)));
        assert_eq!(range(&pace.release(at(800))), None);
        let idle = pace.hold(commit(11), at(900));
        assert_eq!(range(&idle.changes), Some((11, 12, 2)), "at once when idle");
    }
}
