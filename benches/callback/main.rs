//! Callback servers: each figure beside its floor in the same run. The rate limit exempts the client.
//!
//!     cargo bench --package daemon --bench callback [-- SECTION…]
//!
//! Sections, all of them when none is named:
//! - `dns`: answers per second, beside a program that sends equally many bytes back.
//! - `recording`: 2,000 hits/s for 10 s; whether all are recorded, and the time of their commits beside the same bytes appended and
//!   synced by a bare program.
//! - `requests`: time of a request of the API during 10,000 queries/s, beside the same queries to the program above.
//! - `stream`: from a query to the answer of a request that waits for it, idle and during 2,000 hits/s, beside a commit.
//! - `lists`: with 1,000,000 interactions and with none: reads of a start; reads of a page, of the hits of a tag, of a search.
//! - `off`: threads, sockets and memory of a daemon without callback servers, and of an earlier build (`-- off --program EVERSCAND`).

#![expect(
    clippy::disallowed_methods,
    clippy::print_stdout,
    clippy::unwrap_used,
    reason = "figures are this program's output, and a failed measurement ends it"
)]

mod dns;
#[path = "../api/figures.rs"]
#[expect(dead_code, reason = "the bench of the API needs more of it")]
mod figures;
mod lists;
mod off;
mod recording;
mod requests;
mod stage;
mod stream;
#[path = "../../tests/support.rs"]
#[expect(dead_code, reason = "the stories need the rest")]
mod support;

fn main() {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let sections: [(&str, fn()); 6] = [
        ("dns", dns::run),
        ("recording", recording::run),
        ("requests", requests::run),
        ("stream", stream::run),
        ("lists", lists::run),
        ("off", off::run),
    ];
    let is_named = |section: &str| arguments.iter().any(|argument| argument == section);
    let is_all = !sections.iter().any(|(section, _)| is_named(section));
    for (section, run) in sections {
        if is_all || is_named(section) {
            println!("{section}");
            run();
        }
    }
}
