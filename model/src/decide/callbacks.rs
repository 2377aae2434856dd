//! Creates and deletes callback servers and their names, and records interactions.

use std::collections::BTreeSet;
use std::sync::Arc;

use chrono::TimeDelta;
use workflow::notify::NotifyName;

use super::values::project_name;
use super::{Command, Decision, Refusal, Urgency};
use crate::callback::{
    Announced, Callback, CallbackId, CallbackRules, CallbackTag, CallbackToken, IndexedPage,
    Interaction, InteractionChange, Interactions, NewInteraction, Recorded, index_of,
};
use crate::change::Change;
use crate::limits::{
    CALLBACK_NOTE_CHARS, CALLBACK_TOKENS, CALLBACKS, INTERACTION_DAYS_MOST,
    INTERACTION_PAGES_REMOVED,
};
use crate::moment::Moment;
use crate::world::World;
use crate::{Actor, ProjectId, Timestamp};

#[derive(Debug, Clone)]
pub struct CreateCallback {
    pub project: ProjectId,
    pub name: NotifyName,
    /// None keeps interactions for ever.
    pub keep_days: Option<u32>,
    pub actor: Actor,
}

impl Command for CreateCallback {
    type Answer = Arc<Callback>;
    const URGENCY: Urgency = Urgency::Ordinary;

    fn decide(
        self,
        world: &World,
        moment: &mut Moment<'_>,
    ) -> Result<Decision<Self::Answer>, Refusal> {
        project_name(world, self.project)?;
        if let Some(days) = self.keep_days
            && !(1..=INTERACTION_DAYS_MOST).contains(&days)
        {
            let problem = format!("must be 1 to {INTERACTION_DAYS_MOST}");
            return Err(Refusal::invalid("keep_days", problem));
        }
        if world.callback_of(self.project, &self.name).is_some() {
            let name = self.name.to_string();
            return Err(Refusal::CallbackExists { name });
        }
        let of_project = world.callbacks().filter(|it| it.project == self.project);
        if of_project.count() >= CALLBACKS {
            return Err(Refusal::TooManyCallbacks { limit: CALLBACKS });
        }
        let callback = Arc::new(Callback {
            id: CallbackId::random(moment.entropy),
            project: self.project,
            name: self.name,
            created_at: moment.now,
            created_by: self.actor,
            keep_days: self.keep_days,
            interactions: Interactions::default(),
            rules: CallbackRules::default(),
            minted: None,
            unconsidered: Vec::new(),
            announced: Announced::default(),
            is_deleted: false,
        });
        Ok(Decision {
            changes: vec![Change::Callback(callback.clone())],
            answer: callback,
        })
    }
}

/// Replace the fixed answers of a callback server, and what it ignores.
#[derive(Debug, Clone)]
pub struct SetCallbackRules {
    pub server: CallbackId,
    pub rules: CallbackRules,
}

impl Command for SetCallbackRules {
    type Answer = ();
    const URGENCY: Urgency = Urgency::Ordinary;

    fn decide(self, world: &World, _: &mut Moment<'_>) -> Result<Decision<()>, Refusal> {
        let mut callback = Callback::clone(find(world, self.server)?);
        let checked = self.rules.check();
        checked.map_err(|problem| Refusal::invalid("rules", problem))?;
        if callback.rules == self.rules {
            return Ok(Decision::unchanged(()));
        }
        callback.rules = self.rules;
        Ok(Decision::of([Change::Callback(Arc::new(callback))]))
    }
}

/// Delete a callback server. Nobody sees it any more; [`ClearCallback`] removes its files.
#[derive(Debug, Clone, Copy)]
pub struct DeleteCallback {
    pub server: CallbackId,
}

impl Command for DeleteCallback {
    type Answer = ();
    const URGENCY: Urgency = Urgency::Finishing;

    fn decide(self, world: &World, _: &mut Moment<'_>) -> Result<Decision<()>, Refusal> {
        let mut callback = Callback::clone(find(world, self.server)?);
        callback.is_deleted = true;
        Ok(Decision::of([Change::Callback(Arc::new(callback))]))
    }
}

/// Remove some files of a deleted callback server, and at last its record. The answer is false once nothing is left.
#[derive(Debug, Clone, Copy)]
pub struct ClearCallback {
    pub server: CallbackId,
}

impl Command for ClearCallback {
    type Answer = bool;
    const URGENCY: Urgency = Urgency::Finishing;

    fn decide(self, world: &World, _: &mut Moment<'_>) -> Result<Decision<bool>, Refusal> {
        let deleted = world.any_callback(self.server);
        let Some(callback) = deleted.filter(|callback| callback.is_deleted) else {
            return Ok(Decision::unchanged(false));
        };
        let (oldest, open) = (
            callback.interactions.oldest,
            callback.interactions.open_page(),
        );
        if oldest <= open {
            let until = (open + 1).min(oldest + INTERACTION_PAGES_REMOVED);
            let mut callback = Callback::clone(callback);
            let mut changes = remove_pages(&mut callback, until);
            changes.push(Change::Callback(Arc::new(callback)));
            let answer = true;
            return Ok(Decision { changes, answer });
        }
        if let Some(changes) = super::mints::clear(callback) {
            let answer = true;
            return Ok(Decision { changes, answer });
        }
        let tokens = world.callback_tokens(self.server);
        let some = tokens.take(2 * INTERACTION_PAGES_REMOVED as usize);
        let mut changes: Vec<Change> = some
            .map(|token| Change::CallbackTokenRemoved(token.server, token.tag))
            .collect();
        let answer = !changes.is_empty();
        if !answer {
            // The file of the index that the next page would get a line in.
            let index = InteractionChange::IndexRemoved(index_of(oldest));
            changes.push(Change::Interactions(self.server, Arc::new(index)));
            changes.push(Change::CallbackRemoved(self.server));
        }
        Ok(Decision { changes, answer })
    }
}

/// Moves the beginning of the interactions to a page, and removes the files before it.
fn remove_pages(callback: &mut Callback, until: u64) -> Vec<Change> {
    let oldest = callback.interactions.oldest;
    callback.interactions.oldest = until;
    let pages = (oldest..until).map(InteractionChange::PageRemoved);
    let files = (index_of(oldest)..index_of(until)).map(InteractionChange::IndexRemoved);
    let change = |change| Change::Interactions(callback.id, Arc::new(change));
    pages.chain(files).map(change).collect()
}

/// Make a name of a callback server.
#[derive(Debug, Clone)]
pub struct CreateCallbackToken {
    pub server: CallbackId,
    pub note: String,
    /// None is for ever.
    pub life: Option<TimeDelta>,
    pub actor: Actor,
}

impl Command for CreateCallbackToken {
    type Answer = Arc<CallbackToken>;
    const URGENCY: Urgency = Urgency::Ordinary;

    fn decide(
        self,
        world: &World,
        moment: &mut Moment<'_>,
    ) -> Result<Decision<Self::Answer>, Refusal> {
        find(world, self.server)?;
        check_note(&self.note)?;
        if world.callback_tokens(self.server).count() >= CALLBACK_TOKENS {
            let limit = CALLBACK_TOKENS;
            return Err(Refusal::TooManyCallbackTokens { limit });
        }
        let expires_at = end_of(moment.now, self.life)?;
        let token = Arc::new(CallbackToken {
            server: self.server,
            tag: CallbackTag::random(moment.entropy),
            note: self.note,
            created_at: moment.now,
            created_by: self.actor,
            expires_at,
        });
        Ok(Decision {
            changes: vec![Change::CallbackToken(token.clone())],
            answer: token,
        })
    }
}

/// End a name: it is not answered any more. What was heard of it stays.
#[derive(Debug, Clone, Copy)]
pub struct EndCallbackToken {
    pub server: CallbackId,
    pub tag: CallbackTag,
}

impl Command for EndCallbackToken {
    type Answer = ();
    const URGENCY: Urgency = Urgency::Finishing;

    fn decide(self, world: &World, _: &mut Moment<'_>) -> Result<Decision<()>, Refusal> {
        find(world, self.server)?;
        if world.callback_token(self.server, self.tag).is_none() {
            return Err(Refusal::NoSuchCallbackToken);
        }
        let ended = Change::CallbackTokenRemoved(self.server, self.tag);
        Ok(Decision::of([ended]))
    }
}

/// Remove some names that have expired by the wall clock. The answer is true if there may be more.
#[derive(Debug, Clone, Copy)]
pub struct ExpireCallbackTokens {
    pub now: Timestamp,
}

impl Command for ExpireCallbackTokens {
    type Answer = bool;
    const URGENCY: Urgency = Urgency::Finishing;

    fn decide(self, world: &World, _: &mut Moment<'_>) -> Result<Decision<bool>, Refusal> {
        let tokens = world
            .callbacks()
            .flat_map(|callback| world.callback_tokens(callback.id));
        let over = tokens.filter(|it| it.expires_at.is_some_and(|end| end <= self.now));
        let removed = over.map(|token| Change::CallbackTokenRemoved(token.server, token.tag));
        let changes: Vec<Change> = removed
            .take(INTERACTION_PAGES_REMOVED as usize * 2)
            .collect();
        let answer = !changes.is_empty();
        Ok(Decision { changes, answer })
    }
}

/// Record interactions of a callback server. Those beyond its limits are left out.
#[derive(Debug, Clone)]
pub struct RecordInteractions {
    pub server: CallbackId,
    pub new: Arc<Vec<NewInteraction>>,
    /// How many were left out, and how many had an unknown tag, since the last record.
    pub left_out: u64,
    pub unknown_tags: u64,
}

/// Lines for a page of interactions, with the numbers of the first and the last of them in [`RecordInteractions::new`].
#[derive(Debug, Clone)]
pub struct PageLines {
    pub page: u64,
    pub at: u64,
    pub text: String,
    pub raw_at: u64,
    pub new: std::ops::Range<usize>,
}

impl Command for RecordInteractions {
    /// What goes into the files.
    type Answer = Vec<PageLines>;
    /// While the disk is low, jobs are more important.
    const URGENCY: Urgency = Urgency::Beginning;

    fn decide(
        self,
        world: &World,
        moment: &mut Moment<'_>,
    ) -> Result<Decision<Self::Answer>, Refusal> {
        let mut callback = Callback::clone(find(world, self.server)?);
        let listeners = world.listeners(callback.project, &callback.name);
        callback.interactions.left_out += self.left_out;
        callback.interactions.unknown_tags += self.unknown_tags;
        let mut pages: Vec<PageLines> = Vec::new();
        let mut recorded: Option<Recorded> = None;
        let mut lines = Vec::new();
        for (index, new) in self.new.iter().enumerate() {
            let end = &mut callback.interactions;
            if end.is_full() {
                end.left_out += (self.new.len() - index) as u64;
                break;
            }
            end.turn_page(moment.now);
            let tag = new.heard.tag;
            let token = tag.and_then(|tag| world.callback_token(self.server, tag));
            let line = Interaction {
                number: end.next,
                heard: new.heard.shown(),
                planted: token.map_or_else(|| new.planted.clone(), |token| (&**token).into()),
                left_out: new.left_out,
                repeats: new.repeats,
                raw_at: end.raw,
                raw_bytes: new.raw.len() as u64,
            };
            let Ok(mut text) = serde_json::to_string(&line) else {
                end.left_out += 1;
                continue;
            };
            text.push('\n');
            let page = end.open_page();
            if pages.last().is_none_or(|last| last.page != page) {
                pages.push(PageLines {
                    page,
                    at: end.lines,
                    text: String::new(),
                    raw_at: end.raw,
                    new: index..index,
                });
            }
            end.add(moment.now, text.len() as u64, line.raw_bytes);
            if let Some(last) = pages.last_mut() {
                last.text.push_str(&text);
                last.new.end = index + 1;
            }
            let summary = recorded.get_or_insert(Recorded {
                project: callback.project,
                first: line.number,
                last: line.number,
                count: 0,
                types: BTreeSet::new(),
                tags: BTreeSet::new(),
                announcement: None,
            });
            summary.last = line.number;
            summary.count += 1;
            summary.types.insert(line.heard.request.kind());
            summary.tags.extend(line.heard.tag);
            lines.push(line);
        }
        callback.add_unconsidered(&listeners, &lines, moment.order);
        let announcement = callback.announce(&lines, moment.now).map(Box::new);
        let recorded = recorded.map(|recorded| {
            let change = InteractionChange::Recorded(Recorded {
                announcement,
                ..recorded
            });
            Change::Interactions(self.server, Arc::new(change))
        });
        let changes = recorded
            .into_iter()
            .chain([Change::Callback(Arc::new(callback))]);
        Ok(Decision {
            changes: changes.collect(),
            answer: pages,
        })
    }
}

/// Give a page its line in the index. The open page is closed by this, unless the line lacks newer interactions.
#[derive(Debug, Clone)]
pub struct IndexInteractions {
    pub server: CallbackId,
    pub line: IndexedPage,
    /// The number after the newest interaction when the page was read.
    pub next: u64,
}

impl Command for IndexInteractions {
    type Answer = ();
    const URGENCY: Urgency = Urgency::Ordinary;

    fn decide(self, world: &World, _: &mut Moment<'_>) -> Result<Decision<()>, Refusal> {
        let mut callback = Callback::clone(find(world, self.server)?);
        let end = &mut callback.interactions;
        if self.next == end.next && self.line.page == end.open_page() {
            end.close_page();
        }
        // Somebody else has done it, or new interactions have come.
        if self.line.page != end.indexed || self.line.page >= end.open_page() {
            return Ok(Decision::unchanged(()));
        }
        let Ok(mut text) = serde_json::to_string(&self.line) else {
            return Ok(Decision::unchanged(()));
        };
        text.push('\n');
        let (file, at) = (index_of(end.indexed), end.index);
        end.indexed += 1;
        end.index = match index_of(end.indexed) {
            same if same == file => at + text.len() as u64,
            _ => 0,
        };
        let indexed = InteractionChange::Indexed { file, at, text };
        Ok(Decision::of([
            Change::Interactions(self.server, Arc::new(indexed)),
            Change::Callback(Arc::new(callback)),
        ]))
    }
}

/// Remove the oldest pages of interactions.
#[derive(Debug, Clone)]
pub struct RemoveInteractions {
    pub server: CallbackId,
    /// From the oldest page on, without a gap; at most [`INTERACTION_PAGES_REMOVED`].
    pub pages: Vec<IndexedPage>,
}

impl Command for RemoveInteractions {
    type Answer = ();
    const URGENCY: Urgency = Urgency::Finishing;

    fn decide(self, world: &World, _: &mut Moment<'_>) -> Result<Decision<()>, Refusal> {
        let mut callback = Callback::clone(find(world, self.server)?);
        let end = &mut callback.interactions;
        let oldest = end.oldest;
        let fits = |(page, at): (&IndexedPage, u64)| page.page == at;
        let is_known = self.pages.iter().zip(oldest..).all(fits);
        let until = oldest + self.pages.len() as u64;
        if !is_known || until > end.indexed {
            return Ok(Decision::unchanged(()));
        }
        for page in &self.pages {
            end.count = end.count.saturating_sub(page.count);
            end.bytes = end.bytes.saturating_sub(page.bytes);
        }
        let mut changes = remove_pages(&mut callback, until);
        changes.push(Change::Callback(Arc::new(callback)));
        Ok(Decision::of(changes))
    }
}

pub(super) fn check_note(note: &str) -> Result<(), Refusal> {
    if note.chars().count() > CALLBACK_NOTE_CHARS || note.contains(char::is_control) {
        let problem = format!("must be one line of at most {CALLBACK_NOTE_CHARS} characters");
        return Err(Refusal::invalid("note", problem));
    }
    Ok(())
}

/// When a name ends. None is never.
pub(super) fn end_of(
    now: Timestamp,
    life: Option<TimeDelta>,
) -> Result<Option<Timestamp>, Refusal> {
    match life {
        None => Ok(None),
        Some(life) if life > TimeDelta::zero() => Ok(now.checked_add_signed(life)),
        Some(_) => Err(Refusal::invalid("expires_in", "must be longer than 0s")),
    }
}

pub(super) fn find(world: &World, server: CallbackId) -> Result<&Arc<Callback>, Refusal> {
    world.callback(server).ok_or(Refusal::NoSuchCallback)
}
