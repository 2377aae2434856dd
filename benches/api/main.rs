//! The API: each figure with the figure of a bare warp server in the same run.
//!
//!     cargo bench --package daemon --bench api [-- SECTION…]
//!
//! Sections, all of them when none is named:
//! - `reads`: reads per second of one job, unfinished and finished, and of the same bytes from the bare server; time of
//!   a page of 50 jobs with a short and a long history.
//! - `dispatches`: jobs per second that 64 clients create, and requests per second of the same clients to the bare
//!   server.
//! - `polls`: memory of 10,000 idle polls, and of the same number of requests that the bare server holds; time from a
//!   dispatch to the poll of the only matching runner, and of append and fdatasync.
//! - `events`: time from a change to a listener; time of a commit without listeners and with 1,000, at 400 jobs/s.
//! - `claims`: time of a claim by a runner that gives its steps the token of their job, and by one that does not.
//! - `sign_ins`: time of a hash of a password, and of a request with a token; time of a commit without and with guesses of
//!   passwords from 100 addresses.
//! - `people`: time of a request with a token of this build and of an earlier one (`-- people --program EVERSCAND`); start,
//!   memory and requests with 1,000 projects, without and with 10,000 users.
//! - `contents`: uploads and downloads of a blob and an artifact of 2 GB, and the same with a minimal file server.
//!
//! Daemon and bare server are separate processes. The clients are in this process and share the machine with them.

#![expect(
    clippy::disallowed_methods,
    clippy::print_stdout,
    clippy::unwrap_used,
    reason = "figures are this program's output, and a failed measurement ends it"
)]

mod bare;
mod claims;
#[expect(dead_code, reason = "the bench of the UI needs more of it")]
mod connection;
mod contents;
mod dispatches;
mod events;
mod figures;
#[expect(dead_code, reason = "the bench of the UI needs more of it")]
mod pace;
mod people;
mod polls;
mod reads;
mod sign_ins;
mod stage;
#[path = "../../tests/support.rs"]
#[expect(dead_code, reason = "the stories need the rest")]
mod support;

fn main() {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    if let [command, body] = &arguments[..]
        && command == bare::SERVE
    {
        return bare::serve(body);
    }
    let sections: [(&str, fn()); 8] = [
        ("reads", reads::run),
        ("dispatches", dispatches::run),
        ("polls", polls::run),
        ("events", events::run),
        ("claims", claims::run),
        ("sign_ins", sign_ins::run),
        ("people", people::run),
        ("contents", contents::run),
    ];
    let is_named = |section: &str| arguments.iter().any(|argument| argument == section);
    let is_all = !sections.iter().any(|(section, _)| is_named(section));
    for (section, run) in sections {
        if is_all || is_named(section) {
            run();
        }
    }
}
