//! Callback servers: listeners for DNS, HTTP and HTTPS that answer for the operator's zones and report what was
//! sent to a known id.
//!
//! A name is `<server>.<zone>` or `<server>-<tag>.<zone>`. This package knows no jobs and no state. It is given a [`Table`]
//! of the known ids, which is replaced as a whole, and sends each [`Hit`] into a bounded channel. It never waits for the
//! channel: hits that do not fit are answered, and counted in [`Counts`].
//!
//! [`bind`] binds the sockets, and [`start`] runs everything on one thread with a runtime of its own.

#![cfg_attr(
    test,
    expect(
        clippy::disallowed_methods,
        clippy::print_stdout,
        reason = "tests read the clock, start other programs, and say which are missing"
    )
)]

mod acme;
pub mod check;
mod dns;
#[cfg(any(test, feature = "fuzzing"))]
pub mod fuzzing;
mod hit;
mod http;
mod ids;
mod limits;
mod report;
mod rules;
mod served;
mod start;
mod table;
mod zone;

#[cfg(test)]
mod tests;

pub use acme::{AcmeError, Authority, Issued};
pub use dns::answer::Challenges;
pub use hit::{Dns, Hit, Http, Kind, Transport};
pub use ids::{Id, IdError, ServerId, Tag};
pub use limits::CONNECTIONS;
pub use rules::{Match, Noise, Rules};
pub use served::{Find, Finding, Payload, Served};
pub use start::{Bound, Callbacks, Clock, Settings, StartError, bind, start};
pub use table::{Counts, Minted, Server, Table};
pub use zone::{Zone, ZoneError};
