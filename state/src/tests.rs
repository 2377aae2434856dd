//! Tests the promises of the state on real folders.

mod backup;
mod blobs;
mod clock;
mod corruption;
mod crash;
mod damaged;
pub(crate) mod everything;
pub(crate) mod fixture;
mod format;
mod fsck;
mod full_disk;
mod heads;
mod in_memory;
mod inspect;
mod life;
mod lists;
mod logs;
mod news;
mod objects;
mod past;
mod picture;
mod record;
pub(crate) mod removal;
mod renames;
mod repair;
mod simulation;
mod triggers;
