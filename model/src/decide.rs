//! The decisions. Each family of commands has one file.
//!
//! A decision is a function of the world, the command and the moment. Its result is a list of changes. The single
//! committer takes all decisions one after another, so decisions never conflict.

mod append;
mod artifact;
mod blob_links;
mod blobs;
mod callbacks;
mod certificate;
mod channels;
mod claim;
mod clock;
mod complete;
mod conditions;
mod deliveries;
mod dispatch;
mod end;
mod evaluate;
mod events;
mod finish;
mod job_end;
mod mints;
mod observe;
mod once;
mod payloads;
mod readable;
mod refusal;
mod registrations;
mod removal;
mod renames;
mod report;
mod retry;
mod rules;
mod runners;
mod secrets;
mod sessions;
mod sources;
mod suspend;
mod tokens;
mod triggers;
mod user_ends;
mod users;
mod values;
mod vars;
mod workflows;

pub use crate::read_set::{Evaluated, PreparedExpression};
pub use artifact::{StoreArtifact, declared_artifact};
pub use blob_links::{CreateBlobLink, NewBlobLink, RevokeBlobLink};
pub use blobs::{MoveBlob, RemoveBlob, StoreBlob};
pub use callbacks::{
    ClearCallback, CreateCallback, CreateCallbackToken, DeleteCallback, EndCallbackToken,
    ExpireCallbackTokens, IndexInteractions, PageLines, RecordInteractions, RemoveInteractions,
    SetCallbackRules,
};
pub use certificate::{KeepCertificate, ResealCertificate};
pub use channels::{
    DeleteChannel, FailedMessage, NoteRestored, ResealChannel, SendAgain, SetAnswer, SetChannel,
};
pub use claim::{Claim, ClaimOutcome, Claimed, EvaluatedClaim, PreparedClaim};
pub use clock::{FollowClock, ForgetClocks, NoteClocks, StoreExpiry};
pub use complete::{Complete, Failure};
pub use conditions::{Acknowledge, Look, Measure, Silence};
pub use deliveries::{EndAttempt, PlanDeliveries};
pub use dispatch::{Again, Checked, Dispatch, check_dispatch, check_rerun, repeated_dispatch};
pub use end::{Cancel, EndJob, Loss};
pub use evaluate::Evaluate;
pub use mints::{MintTags, NewMint, RemoveMints};
pub use once::{Once, ShownOnce};
pub use payloads::{
    ChangePayloadGroup, ClearPayloadGroup, CreatePayloadGroup, DeletePayload, DeletePayloadGroup,
    StorePayload,
};
pub use readable::readable_workflow;
pub use refusal::{Refusal, Remedy};
pub use registrations::{CreateRegistration, EndRegistrations, Maker, NewRegistration};
pub use removal::{DeleteJob, DropExpiry, Prune, RemoveArtifacts};
pub use report::{CutEndedLog, CutLog, ReportSteps};
pub use retry::LargeInputs;
pub use rules::{Addressee, DeleteRule, SetRule, addressees, would_send};
pub use runners::{
    EndSessions, LimitRunner, NewRunner, NewSession, NoteProgram, RegisterRunner, RemoveRunner,
    RenewSession, is_invisible,
};
pub use secrets::{DeleteSecret, Reseal, Resealed, SetSecret};
pub use sessions::{SeeSession, SignIn, SignOut, SignOutEverywhere, SignedIn, SignedInBy};
pub use sources::{
    ApproveRemoval, ConfigureSource, DropSource, RecordApplyFailure, RecordPoll, RecordTip,
};
pub use suspend::{Resume, Suspend};
pub use tokens::{
    CreateToken, EndToken, InitialToken, MakeOwner, MoveToken, NewToken, NoteUse, RegenerateToken,
    RevokeToken,
};
pub use triggers::{Consider, Considered, ExplainedTrigger, Fire, Hear, Rewind};
pub(crate) use user_ends::has_made_in_sessions;
pub use user_ends::{EndOfUser, Updated};
pub use users::{
    CreateUser, DeleteUser, Giver, MakeUserLink, NewUser, SetMember, SetPassword, UpdateUser,
    UseUserLink,
};
pub use values::Precondition;
pub use vars::{DeleteVar, SetVar};
pub use workflows::{Activate, HoldCommit, Retire};

use std::collections::BTreeSet;

use crate::ScanKey;
use crate::change::Change;
use crate::moment::Moment;
use crate::world::World;

/// A request for a change. It is decided again if the commit of its first decision failed.
pub trait Command: Clone + Send + 'static {
    /// The reply once the changes are durable.
    type Answer: Send + 'static;

    const URGENCY: Urgency;

    /// Scans whose finished jobs the world must hold for this decision. The committer reads them from the history when
    /// they are first needed, because only expressions use them.
    fn histories(&self, _: &World) -> BTreeSet<ScanKey> {
        BTreeSet::new()
    }

    fn decide(
        self,
        world: &World,
        moment: &mut Moment<'_>,
    ) -> Result<Decision<Self::Answer>, Refusal>;
}

/// Whether a command may run when the disk is full.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Urgency {
    /// Makes new jobs: refused while space is low.
    Beginning,
    /// Adds something else: refused when space runs out.
    Ordinary,
    /// Ends something: allowed while the journal has room.
    Finishing,
}

/// The changes, and the reply to send when they are durable.
#[derive(Debug)]
#[must_use]
pub struct Decision<A> {
    /// Applied in this order, all or none.
    pub changes: Vec<Change>,
    pub answer: A,
}

impl Decision<()> {
    /// A decision whose reply has no content.
    fn of(changes: impl IntoIterator<Item = Change>) -> Self {
        Self {
            changes: changes.into_iter().collect(),
            answer: (),
        }
    }
}

impl<A> Decision<A> {
    /// A decision that changes nothing.
    pub const fn unchanged(answer: A) -> Self {
        Self {
            changes: Vec::new(),
            answer,
        }
    }
}

pub fn decide<C: Command>(
    world: &World,
    command: C,
    moment: &mut Moment<'_>,
) -> Result<Decision<C::Answer>, Refusal> {
    let mut decision = command.decide(world, moment)?;
    let observed = observe::observe(world, &decision.changes, moment);
    decision.changes.extend(observed);
    let events = events::events(world, &decision.changes, moment);
    decision.changes.extend(events);
    Ok(decision)
}

#[cfg(test)]
mod tests;
