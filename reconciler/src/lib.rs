//! Follows sources, keeps deadlines and offers jobs. All commands enter through one [`Handle`].
//!
//! A wake-up carries no data. The woken task reads the published world again, so a restart, a lost signal and normal
//! operation take the same path. This package does not use HTTP.

#![cfg_attr(
    test,
    expect(
        clippy::disallowed_methods,
        reason = "tests lay out files and start the programs they are about"
    )
)]

mod blobs;
mod callbacks;
mod checkout;
mod clock;
mod conditions;
mod cursors;
mod deadlines;
mod dispatch;
mod error;
mod evaluations;
mod expiry;
mod git;
mod handle;
mod jumps;
mod limits;
mod masking;
mod payloads;
mod planted;
mod projects;
mod removal;
mod retention;
mod runners;
mod sealing;
mod sign_in;
mod source;
mod sources;
mod supervise;
mod tasks;
#[cfg(test)]
mod testing;
mod triggers;
mod watch;
mod worker;

pub use blobs::{BlobSettings, BlobUpload, Blobs, NewBlob, Stored};
pub use callbacks::{CallbackHit, CallbackSettings, Missed, record_callbacks};
pub use checkout::{Piece, SourceFiles};
pub use clock::{ClockTrouble, ClockWatch, jump};
pub use dispatch::RerunOf;
pub use error::{
    BlobError, DispatchError, RemovalError, RunnerError, SecretError, SourceError, WorkerError,
};
pub use git::{
    Access, Location, LocationError, Login, Reference, TokenSource, Username, UsernameError,
};
pub use handle::{Handle, Settings, Upkeep};
pub use limits::{DEVICE_LOGIN, LOG_LIMIT, SIGN_IN_LINK};
pub use payloads::NewPayload;
pub use retention::{Retained, ScanRetained};
pub use runners::{ArtifactPhase, ArtifactProgress, Instance, Message, RunnerSession, Runners};
pub use sign_in::{NewDeviceLogin, NewSignInLink, SignIns, TooManyDevices, WaitingDevice};
pub use source::SourceConfig;
pub use sources::Sources;
pub use tasks::{Reconciler, Start};
pub use triggers::{Why, WhyCallback, WhyError};
pub use worker::{ClaimRequest, Resolved, Worker};
