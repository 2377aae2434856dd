//! Tests of the whole package: the contract over both engines, and what only files can show.

mod adoption;
mod backup;
mod busy;
mod contract;
mod crash;
mod exhaustive;
mod faults;
mod groups;
mod look;
mod mend;
mod refuse;
mod simulated;
pub(crate) mod world;
