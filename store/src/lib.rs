//! Everscan's store: bytes under keys, committed in batches that are durable, atomic and ordered. `Engine` is the
//! contract, `file` its implementation on local files and `memory` one for tests; `objects` and `append_file` hold
//! what is too large for a batch. The store knows nothing of what its bytes mean.

#![cfg_attr(
    test,
    expect(
        clippy::disallowed_methods,
        reason = "tests lay out files and start the programs they are about"
    )
)]

mod applier;
mod batch;
mod checkpoint;
mod control;
mod copy;
mod disk;
mod engine;
mod hold;
mod journal;
mod key;
mod layout;
mod live;
mod lock;
mod manifest;
mod overlay;
pub mod parallel;
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
mod top_folders;
mod tree;
mod view;

pub mod append_file;
pub mod backup;
pub mod failpoint;
pub mod file;
pub mod limits;
pub mod look;
pub mod memory;
pub mod mend;
pub mod objects;

#[cfg(test)]
mod tests;

pub use batch::{Append, Batch, Epoch, InvalidBatch, Put, Seq, Urgency};
pub use control::FORMAT;
pub use disk::{Action, Details, DiskError, Form};
pub use engine::{CommitError, Engine, OpenError, Page, Piece, ReadError, Reader};
pub use key::{Key, KeyError, Prefix};
pub use lock::{Owner, user};
pub use manifest::forget_restored;
pub use space::{FreeSpace, Gauge, Room, Watermark, Watermarks};
pub use staged::Staged;
