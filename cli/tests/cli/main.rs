//! Tests `everscan` as people and scripts use it: real processes that talk to a fake daemon on a real socket.

#![expect(
    clippy::disallowed_methods,
    reason = "tests create files and start the programs under test"
)]
#![expect(clippy::unwrap_used, reason = "a test may fail by panic")]

mod artifacts;
mod blobs;
mod callbacks;
mod conditions;
mod everscan;
mod failures;
mod fixtures;
mod forms;
mod help;
mod jobs;
mod language;
mod lines;
mod listings;
mod login;
mod news;
mod notify_channels;
mod notify_rules;
mod outputs;
mod payloads;
mod reads;
mod removal;
mod repository_reads;
mod retries;
mod screen;
mod server;
mod snapshot;
mod steps;
mod suspension;
mod users;
mod validate;
mod values;
