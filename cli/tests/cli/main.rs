//! The program `everscan` as a person or a script meets it: real processes, and a daemon's answers on a real socket.

#![expect(
    clippy::disallowed_methods,
    reason = "tests lay out files and start the programs they are about"
)]
#![expect(clippy::unwrap_used, reason = "a test may fail by panic")]

mod artifacts;
mod everscan;
mod failures;
mod fixtures;
mod forms;
mod help;
mod jobs;
mod language;
mod lines;
mod listings;
mod news;
mod reads;
mod removal;
mod retries;
mod server;
mod snapshot;
mod suspension;
mod validate;
mod values;
