//! The promises of the state, kept on real folders.

mod crash;
pub(crate) mod fixture;
mod heads;
mod life;
mod lists;
mod logs;
mod objects;
mod record;
mod triggers;
