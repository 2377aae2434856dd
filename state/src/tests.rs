//! The promises of the state, kept on real folders.

mod backup;
mod crash;
mod damaged;
pub(crate) mod fixture;
mod full_disk;
mod heads;
mod life;
mod lists;
mod logs;
mod objects;
mod record;
pub(crate) mod removal;
mod triggers;
