//! Follows sources, keeps deadlines and offers jobs. All commands enter through one [`Handle`].
//!
//! A wake-up carries no data. Whoever is woken reads the published world again, so a restart, a lost signal and normal
//! operation take the same path. This package does not use HTTP.

#![cfg_attr(
    test,
    expect(
        clippy::disallowed_methods,
        reason = "tests lay out files and start the programs they are about"
    )
)]

mod artifact_progress;
mod blobs;
mod board;
mod checkout;
mod clock;
mod cursors;
mod deadlines;
mod error;
mod evaluations;
mod expiry;
mod git;
mod handle;
mod jumps;
mod limits;
mod masking;
mod presence;
mod projects;
mod refused_sign_ins;
mod removal;
mod retention;
mod runners;
mod sealing;
mod sign_in_links;
mod source;
mod supervise;
mod tasks;
#[cfg(test)]
mod testing;
mod triggers;
mod uninterrupted;
mod watch;
mod worker;

pub use artifact_progress::{ArtifactPhase, ArtifactProgress};
pub use blobs::{BlobSettings, BlobUpload, NewBlob, Stored};
pub use board::Message;
pub use checkout::{Piece, SourceFiles};
pub use clock::{ClockTrouble, jump};
pub use error::{
    BlobError, DispatchError, RemovalError, RunnerError, SecretError, SourceError, WorkerError,
};
pub use git::{
    Access, Location, LocationError, Login, Reference, TokenSource, Username, UsernameError,
};
pub use handle::{Handle, RerunOf};
pub use limits::{LOG_LIMIT, SIGN_IN_LINK};
pub use presence::Instance;
pub use retention::{Retained, ScanRetained};
pub use runners::RunnerSession;
pub use sign_in_links::{LinkedToken, NewSignInLink};
pub use source::SourceConfig;
pub use tasks::{Reconciler, Start};
pub use triggers::{Why, WhyError};
pub use worker::{Resolved, Worker};
