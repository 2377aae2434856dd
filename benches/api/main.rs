//! The API: each figure beside a bare warp server, which does nothing but answer, in the same run.
//!
//!     cargo bench --package daemon --bench api [-- SECTION…]
//!
//! Sections, all of them when none is named:
//! - `reads`: rate of one job, unfinished and finished, beside the bare server with the same bytes; time of a page of 50
//!   jobs behind a short and a long history.
//! - `dispatches`: jobs that 64 clients make in a second, beside as many requests to the bare server.
//! - `polls`: memory of 10,000 idle polls, beside as many requests that the bare server holds; from a dispatch to the poll
//!   of the one runner that may have the job, beside append and fdatasync.
//! - `events`: from a change to a listener; time of a commit without listeners and with 1,000 under 400 jobs/s.
//! - `contents`: a blob and an artifact of 2 GB in and out, beside a server that writes, hashes and syncs, and sends a file.
//!
//! Daemon and bare server are processes of their own. The clients are in this one and share the machine with them.

#![expect(
    clippy::disallowed_methods,
    clippy::print_stdout,
    clippy::unwrap_used,
    reason = "figures are this program's output, and one that cannot be taken ends there"
)]

mod bare;
#[expect(dead_code, reason = "the bench of the UI needs more of it")]
mod connection;
mod contents;
mod dispatches;
mod events;
mod figures;
#[expect(dead_code, reason = "the bench of the UI needs more of it")]
mod pace;
mod polls;
mod reads;
mod stage;
#[path = "../../tests/support.rs"]
#[expect(dead_code, reason = "the stories need more of it")]
mod support;

fn main() {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    if let [command, body] = &arguments[..]
        && command == bare::SERVE
    {
        return bare::serve(body);
    }
    let sections: [(&str, fn()); 5] = [
        ("reads", reads::run),
        ("dispatches", dispatches::run),
        ("polls", polls::run),
        ("events", events::run),
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
