//! The API in process: a state in a temporary folder, a real Git repository, a real socket.
//!
//! The clock stands still and randomness is seeded, so answers can be compared with the files in `answers/`.
//! `UPDATE_ANSWERS=1` rewrites those files; read the difference before you commit it.

#![expect(
    clippy::disallowed_methods,
    reason = "tests lay out files and start the programs they are about"
)]
#![expect(
    clippy::unwrap_used,
    reason = "a test may end where it finds what it does not expect"
)]

mod access;
mod answers;
mod artifacts;
mod base_path;
mod blob_links;
mod blobs;
mod bodies;
mod browser;
mod callbacks;
mod callers;
mod channels;
mod client;
mod conditions;
mod cycles;
mod device_logins;
mod dispatch;
mod documented;
mod entries;
mod events;
mod faults;
mod forms;
mod idempotency;
mod job_ids;
mod job_tokens;
mod jobs;
mod lists;
mod live_pages;
mod log_following;
mod log_search;
mod logs;
mod message_texts;
mod messages;
mod metrics;
mod mutations;
mod notify_pages;
mod notify_rules;
mod operations;
mod page_contents;
mod pages;
mod passwords;
mod payloads;
mod people;
mod polls;
mod problems;
mod projects;
mod removal;
mod renames;
mod renewals;
mod repository;
mod rerun;
mod revisions;
mod rights;
mod roles;
mod runners;
mod scans;
mod service;
mod sessions;
mod sign_in;
mod sign_in_links;
mod sources;
mod suspensions;
mod tokens;
mod truths;
mod user_pages;
mod users;
mod walk;
