//! Tests of the whole package: the contract over both engines, and what only files can show.

mod adoption;
mod busy;
mod contract;
mod copies;
mod crash;
mod exhaustive;
mod faults;
mod hold;
mod look;
mod mend;
mod refuse;
mod simulated;
mod world;
