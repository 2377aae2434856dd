//! Everscan's store: bytes under keys, committed in batches that are durable, atomic and ordered. [`Engine`] is the
//! contract, with a [`Reader`] and, for data that is too large for a batch, a [`volume`]. [`mod@file`] implements it on
//! local files and [`memory`] for tests. The store does not know the meaning of its bytes.

#![cfg_attr(
    test,
    expect(
        clippy::disallowed_methods,
        reason = "tests create files and start programs"
    )
)]

mod append_file;
mod applied;
mod applier;
mod batch;
mod checkpoint;
mod control;
mod copy;
mod disk;
mod engine;
mod fault;
mod file_volume;
mod group;
mod hold;
mod journal;
mod key;
mod live;
mod lock;
mod manifest;
mod open_error;
mod overlay;
mod paths;
mod pending;
mod quarantine;
mod record;
mod recovery;
mod replace;
mod scan;
mod segment;
mod segments;
mod space;
mod staged;
mod survey;
mod top_folders;
mod tree;
mod view;

pub mod backup;
pub mod failpoint;
pub mod file;
pub mod limits;
pub mod look;
pub mod memory;
pub mod mend;
pub mod parallel;
pub mod volume;

#[cfg(test)]
mod tests;

pub use batch::{Append, Batch, Epoch, InvalidBatch, Put, Seq};
pub use control::FORMAT;
pub use disk::{Details, DiskError, Form};
pub use engine::{
    CloseError, CommitError, Engine, Length, LiveRecord, OpenError, OpenErrorKind, Piece,
    ReadError, Reader,
};
pub use fault::{Failure, Fault, FaultKind};
pub use key::{Key, KeyError, Prefix};
pub use lock::{Owner, user};
pub use space::{DiskBytes, Room, Watermark, Watermarks};
pub use staged::{Object, Staged};
