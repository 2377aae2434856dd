//! Reads workflow files from Git: one bare mirror per source, read by commit.
//!
//! A mirror keeps every commit it has fetched, so that a tip stays readable after a force push or an outage. Nothing is
//! checked out. The content of a repository (symbolic links, huge files, odd names) is checked as data and never
//! followed. Every call blocks; callers run it on their own thread. The reconciler decides what a revision means, when
//! to poll again, and what to do about an error.

mod access;
mod calls;
mod commit_id;
mod complaint;
mod copy;
mod credentials;
mod error;
mod files;
mod left_out;
mod limits;
mod local;
mod location;
mod mirror;
mod process;
mod program;
mod reference;
mod references;
mod relation;
mod remote;
mod scene;
mod snapshot;
#[cfg(test)]
pub(crate) mod testing;
#[cfg(test)]
mod tests;
mod tip;

pub use access::{Access, Login, TokenSource, Username, UsernameError};
pub use location::{Location, LocationError};
pub use reference::Reference;

pub(crate) use calls::Calls;
pub(crate) use commit_id::CommitId;
pub(crate) use error::{FetchError, ReadError};
pub(crate) use files::{Files, FilesError};
pub(crate) use limits::{FileLimits, LAST_CALLS, ReadLimits};
pub(crate) use location::RemoteUrl;
pub(crate) use mirror::Mirror;
pub(crate) use relation::Relation;
pub(crate) use scene::{Scene, Verdict};
pub(crate) use snapshot::{Content, File, Snapshot, Unreadable};
pub(crate) use tip::Tip;
