//! A command on its way through the committer: waiting, decided, answered.

use std::collections::BTreeSet;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;

use model::decide::{Command, Decision, Urgency, decide};
use model::{Change, Guard, Moment, ScanKey, World};
use store::{Batch, Room};
use tokio::sync::oneshot;

use crate::audit::Audited;
use crate::encode::Encoder;
use crate::error::SubmitError;
use crate::tails::Tails;
use crate::written::Rewritten;

/// A command waiting for its decision. The queue holds commands of all types in this form.
pub(crate) type Waiting = Box<dyn Submitted>;

pub(crate) trait Submitted: Send {
    /// Scans whose finished jobs must be in memory for the decision.
    fn histories(&self, world: &World) -> Result<BTreeSet<ScanKey>, SubmitError>;

    /// Answers with an error, without deciding.
    fn refuse(self: Box<Self>, error: SubmitError);

    fn decide(self: Box<Self>, deciding: &Deciding<'_>, moment: &mut Moment<'_>) -> Decided;
}

pub(super) trait Unanswered: Send {
    fn answer(self: Box<Self>, committed: Result<(), SubmitError>);

    /// Returns the command for a new decision, because its decision was undone.
    fn again(self: Box<Self>) -> Waiting;
}

/// The state on which a decision is based.
pub(crate) struct Deciding<'a> {
    pub(super) world: &'a World,
    pub(super) encoder: Encoder<'a>,
    pub(super) tails: &'a Tails,
    pub(super) room: Room,
}

/// A decision that is ready to be committed, and the command to answer after the commit.
pub(crate) struct Decided {
    pub(super) changes: Vec<Change>,
    pub(super) batch: Batch,
    pub(super) rewritten: Option<Rewritten>,
    /// Where the ledgers of days end after this decision, if the decision adds a line.
    pub(super) tails: Option<Tails>,
    pub(super) command: Box<dyn Unanswered>,
}

impl Decided {
    /// The same decision, encoded again for a later commit.
    pub(super) fn sealed_again(mut self, encoder: Encoder<'_>) -> Self {
        // The first encoding succeeded, so this one does too.
        let encoder = encoder.rewriting(self.rewritten.as_ref());
        if let Ok(batch) = encoder.encode(&self.changes) {
            self.batch.puts = batch.puts;
        }
        self
    }
}

/// Adds data to the batch of a command that decisions do not handle, such as large objects. The data becomes durable
/// together with the command's changes or not at all. It is added after the decision, which determines where and
/// whether it is stored.
pub(crate) type Attachment<C> = Box<dyn Fn(&Decision<<C as Command>::Answer>, &mut Batch) + Send>;

pub(crate) struct Submission<C: Command> {
    pub(crate) command: C,
    pub(crate) attachment: Attachment<C>,
    /// The settled record that the command changes, if any.
    pub(crate) rewritten: Option<Rewritten>,
    /// The audit lines of the command, if it belongs to a person's request.
    pub(crate) audited: Option<Arc<Audited>>,
    /// The rights that the command needs, if it belongs to a person's request.
    pub(crate) guard: Option<Arc<Guard>>,
    pub(crate) reply: oneshot::Sender<Result<C::Answer, SubmitError>>,
}

impl<C: Command> Submitted for Submission<C> {
    fn histories(&self, world: &World) -> Result<BTreeSet<ScanKey>, SubmitError> {
        catch_panic::<C, _>(|| self.command.histories(world))
    }

    fn refuse(self: Box<Self>, error: SubmitError) {
        // Maybe nobody waits for the answer any more.
        drop(self.reply.send(Err(error)));
    }

    fn decide(self: Box<Self>, deciding: &Deciding<'_>, moment: &mut Moment<'_>) -> Decided {
        let encoder = deciding.encoder.rewriting(self.rewritten.as_ref());
        match self.seal(deciding, encoder, moment) {
            Ok(sealed) => Decided {
                changes: sealed.changes,
                batch: sealed.batch,
                rewritten: self.rewritten.clone(),
                tails: sealed.tails,
                command: Box::new(Answerable {
                    answer: Ok(sealed.answer),
                    submission: *self,
                }),
            },
            Err(error) => Decided {
                changes: Vec::new(),
                batch: encoder.empty(),
                rewritten: None,
                tails: None,
                command: Box::new(Answerable {
                    answer: Err(error),
                    submission: *self,
                }),
            },
        }
    }
}

impl<C: Command> Submission<C> {
    /// Decides the command, and encodes the decision.
    fn seal(
        &self,
        deciding: &Deciding<'_>,
        encoder: Encoder<'_>,
        moment: &mut Moment<'_>,
    ) -> Result<SealedDecision<C::Answer>, SubmitError> {
        match (C::URGENCY, deciding.room) {
            (Urgency::Beginning | Urgency::Ordinary, Room::Full) => {
                return Err(SubmitError::DiskFull);
            }
            (Urgency::Beginning, Room::Low) => return Err(SubmitError::DiskLow),
            (Urgency::Beginning, Room::Enough)
            | (Urgency::Ordinary, Room::Low | Room::Enough)
            | (Urgency::Finishing, _) => {}
        }
        let (now, time) = (moment.now, moment.steady);
        if let Some(guard) = &self.guard {
            let checked = guard.check(deciding.world, time);
            checked.map_err(SubmitError::Refused)?;
        }
        let decided = catch_panic::<C, _>(|| decide(deciding.world, self.command.clone(), moment))?;
        let decision = decided.map_err(SubmitError::Refused)?;
        let unwritten = |error: serde_json::Error| {
            tracing::error!(%error, "a record cannot be written as JSON");
            SubmitError::TooLarge
        };
        let mut batch = encoder.encode(&decision.changes).map_err(unwritten)?;
        (self.attachment)(&decision, &mut batch);
        let audited = self.audited.as_ref();
        let lines = audited.map_or_else(Vec::new, |audited| {
            audited.lines(now, deciding.world, time, &decision.changes)
        });
        let tails = deciding
            .tails
            .append(now, &lines, &decision.changes, &mut batch)
            .map_err(unwritten)?;
        if !encoder.empty().fits(&batch) {
            return Err(SubmitError::TooLarge);
        }
        Ok(SealedDecision {
            changes: decision.changes,
            batch,
            tails,
            answer: decision.answer,
        })
    }
}

/// Runs a part of a decision and turns a panic into an error. The part only reads the world, so a panic loses nothing
/// but the randomness that was used.
fn catch_panic<C, T>(part: impl FnOnce() -> T) -> Result<T, SubmitError> {
    catch_unwind(AssertUnwindSafe(part)).map_err(|panic| {
        let text = panic.downcast_ref::<&str>().map(|text| (*text).to_owned());
        let text = text.or_else(|| panic.downcast_ref::<String>().cloned());
        let (command, panic) = (kind::<C>(), text.unwrap_or_default());
        tracing::error!(
            command,
            panic,
            "a decision panicked and is refused; this is a defect of Everscan"
        );
        SubmitError::Defect { command }
    })
}

/// The name of a command's type, without paths: `Once<CreateToken>`.
pub(super) fn kind<C>() -> String {
    let name = std::any::type_name::<C>();
    let parts = name.split('<').filter_map(|part| part.rsplit("::").next());
    parts.collect::<Vec<_>>().join("<")
}

struct SealedDecision<A> {
    changes: Vec<Change>,
    batch: Batch,
    tails: Option<Tails>,
    answer: A,
}

/// A command with its answer, which is sent after the commit.
struct Answerable<C: Command> {
    submission: Submission<C>,
    answer: Result<C::Answer, SubmitError>,
}

impl<C: Command> Unanswered for Answerable<C> {
    fn answer(self: Box<Self>, committed: Result<(), SubmitError>) {
        let Self { submission, answer } = *self;
        // An object that was not stored is removed before its sender gets the answer.
        drop(submission.attachment);
        // Maybe nobody waits for the answer any more. The decision is kept anyway.
        drop(submission.reply.send(committed.and(answer)));
    }

    fn again(self: Box<Self>) -> Waiting {
        Box::new(self.submission)
    }
}
