//! Makes and removes minted tags.

use std::sync::Arc;

use chrono::TimeDelta;
use workflow::notify::NotifyName;

use super::callbacks::{check_note, end_of, find};
use super::{Command, Decision, Refusal, Urgency};
use crate::callback::{Callback, CallbackId, CallbackTag, Mint, MintKey, Minted, PlantedBy, mint};
use crate::change::Change;
use crate::job::{Job, RunCallback};
use crate::limits::{
    CALLBACK_MINTS, CALLBACK_MINTS_FOR_EVER, CALLBACK_TOKEN_LIFE, INTERACTION_PAGES_REMOVED,
    RENDERED_LINES, WORKER_SESSION,
};
use crate::moment::Moment;
use crate::world::World;
use crate::{Actor, JobId};

/// Mint tags of a callback server.
#[derive(Debug, Clone)]
pub struct MintTags {
    pub server: CallbackId,
    pub lines: u32,
    pub note: String,
    /// None is for ever.
    pub life: Option<TimeDelta>,
    /// The running job that they belong to.
    pub job: Option<JobId>,
    /// The payloads that are rendered.
    pub group: Option<String>,
    pub actor: Actor,
}

/// A mint with what makes its tags.
#[derive(Debug, Clone)]
pub struct NewMint {
    pub mint: Arc<Mint>,
    key: MintKey,
}

impl NewMint {
    /// The tag of a line.
    pub fn tag(&self, line: u32) -> Option<CallbackTag> {
        let Mint { server, number, .. } = *self.mint;
        mint(&self.key, server, number, line)
    }
}

impl Command for MintTags {
    type Answer = NewMint;
    const URGENCY: Urgency = Urgency::Ordinary;

    fn decide(self, world: &World, moment: &mut Moment<'_>) -> Result<Decision<NewMint>, Refusal> {
        let mut callback = Callback::clone(find(world, self.server)?);
        check_note(&self.note)?;
        if !(1..=RENDERED_LINES).contains(&self.lines) {
            let problem = format!("must be 1 to {RENDERED_LINES}");
            return Err(Refusal::invalid("lines", problem));
        }
        let job = match self.job {
            None => None,
            Some(id) => Some(PlantedBy::from(
                &**world.job(id).ok_or(Refusal::JobOver { job: id })?,
            )),
        };
        let minted = callback.minted.as_ref();
        if minted.is_some_and(|it| it.next - it.live.oldest >= CALLBACK_MINTS) {
            let limit = CALLBACK_MINTS as usize;
            return Err(Refusal::TooManyCallbackTokens { limit });
        }
        if self.life.is_none()
            && minted.is_some_and(|it| it.live.never.len() >= CALLBACK_MINTS_FOR_EVER)
        {
            let problem = format!(
                "{CALLBACK_MINTS_FOR_EVER} sets of names of this server never expire, which is the limit"
            );
            return Err(Refusal::invalid("expires_in", problem));
        }
        let new = Mint {
            server: self.server,
            number: 0,
            lines: self.lines,
            created_at: moment.now,
            created_by: self.actor,
            expires_at: end_of(moment.now, self.life)?,
            note: self.note,
            job,
            group: self.group,
        };
        let (answer, changes) = record(&mut callback, new, moment)?;
        let changes = changes.into();
        Ok(Decision { changes, answer })
    }
}

/// Gives a mint its number.
fn record(
    callback: &mut Callback,
    mut new: Mint,
    moment: &mut Moment<'_>,
) -> Result<(NewMint, [Change; 2]), Refusal> {
    let minted = callback.minted.take();
    let mut minted = minted.unwrap_or_else(|| Minted::new(moment.entropy));
    new.number = minted.next;
    minted.next = (minted.next.checked_add(1)).ok_or(Refusal::TooManyCallbackTokens {
        limit: u32::MAX as usize,
    })?;
    if new.expires_at.is_none() {
        minted.live.never.insert(new.number);
    }
    let new = NewMint {
        mint: Arc::new(new),
        key: minted.live.key.clone(),
    };
    callback.minted = Some(minted);
    let callback = Change::Callback(Arc::new(callback.clone()));
    let minted = Change::Minted(new.mint.clone());
    Ok((new, [callback, minted]))
}

/// The name of a job that is claimed. None if there is no such server.
pub(super) fn mint_for(
    world: &World,
    job: &Job,
    server: &NotifyName,
    moment: &mut Moment<'_>,
) -> Result<Option<(RunCallback, [Change; 2])>, Refusal> {
    let Some(callback) = world.callback_of(job.project, server) else {
        return Ok(None);
    };
    let life = WORKER_SESSION + CALLBACK_TOKEN_LIFE;
    let new = Mint {
        server: callback.id,
        number: 0,
        lines: 1,
        created_at: moment.now,
        created_by: Actor::Job { id: job.id },
        expires_at: end_of(moment.now, Some(life))?,
        note: String::new(),
        job: Some(PlantedBy::from(job)),
        group: None,
    };
    let (minted, changes) = record(&mut Callback::clone(callback), new, moment)?;
    let run = |tag| RunCallback {
        server: callback.id,
        tag,
        since: callback.interactions.next,
    };
    Ok(minted.tag(0).map(|tag| (run(tag), changes)))
}

/// Remove the records of the oldest mints that are over, except those that never are.
#[derive(Debug, Clone, Copy)]
pub struct RemoveMints {
    pub server: CallbackId,
    pub first: u32,
    /// The number after the last one; at most [`INTERACTION_PAGES_REMOVED`] are removed.
    pub until: u32,
}

impl Command for RemoveMints {
    type Answer = ();
    const URGENCY: Urgency = Urgency::Finishing;

    fn decide(self, world: &World, _: &mut Moment<'_>) -> Result<Decision<()>, Refusal> {
        let mut callback = Callback::clone(find(world, self.server)?);
        let fits = |minted: &&mut Minted| {
            minted.live.oldest == self.first && (self.first..=minted.next).contains(&self.until)
        };
        let Some(minted) = callback.minted.as_mut().filter(fits) else {
            return Ok(Decision::unchanged(()));
        };
        minted.live.oldest = self.until;
        let numbers = (self.first..self.until).filter(|it| !minted.live.never.contains(it));
        let numbers: Vec<u32> = numbers.collect();
        Ok(Decision::of(removed(callback, numbers)))
    }
}

/// Removes some mints of a deleted server. None once nothing is left.
pub(super) fn clear(callback: &Callback) -> Option<Vec<Change>> {
    let mut callback = callback.clone();
    let minted = callback.minted.as_mut()?;
    let numbers = minted.numbers();
    let numbers: Vec<u32> = numbers.take(INTERACTION_PAGES_REMOVED as usize).collect();
    let last = numbers.last()?;
    minted.live.oldest = minted.live.oldest.max(last + 1);
    minted.live.never.retain(|number| number > last);
    Some(removed(callback, numbers))
}

fn removed(callback: Callback, numbers: Vec<u32>) -> Vec<Change> {
    let server = callback.id;
    let numbers = numbers.into_iter();
    let removed = numbers.map(|number| Change::MintRemoved(server, number));
    removed
        .chain([Change::Callback(Arc::new(callback))])
        .collect()
}
