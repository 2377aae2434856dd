//! The web UI: each figure and its budget. The program fails if a budget is exceeded.
//!
//!     cargo bench --package daemon --bench ui [-- SECTION…]
//!
//! Sections, all of them when none is named:
//! - `load`: time from a dispatch to the job's end at 400 jobs/s, without and with 20 readers. Each reader has a stream
//!   of `/live` and fetches a page again, like the script of the pages. Spans of both kinds alternate.
//! - `streams`: memory of an idle daemon, and of each open stream.
//! - `pages`: in Chromium, first paint and layout shift of every page, a link into a log of 1,000,000 lines, and the
//!   update of 300 rows. Without Chromium this section is skipped.
//!
//! The tests of `ui` check the budgets of sizes, its benches the budgets of graphs and lists. The clients are in this
//! process and share the machine with the daemon.

#![expect(
    clippy::disallowed_methods,
    clippy::print_stdout,
    clippy::unwrap_used,
    reason = "figures are this program's output, and a failed measurement ends it"
)]

#[path = "../../tests/browser/browser.rs"]
#[expect(dead_code, reason = "the stories need more of it")]
mod browser;
mod budgets;
#[path = "../../tests/browser/chromium.rs"]
mod chromium;
#[path = "../api/connection.rs"]
#[expect(dead_code, reason = "the bench of the API needs more of it")]
mod connection;
#[path = "../api/figures.rs"]
#[expect(dead_code, reason = "the bench of the API needs more of it")]
mod figures;
mod load;
#[path = "../api/pace.rs"]
mod pace;
mod pages;
mod readers;
#[path = "../../tests/browser/scene.rs"]
#[expect(dead_code, reason = "the stories need more of it")]
mod scene;
#[path = "../api/stage.rs"]
#[expect(dead_code, reason = "the bench of the API needs more of it")]
mod stage;
mod streams;
#[path = "../../tests/support.rs"]
#[expect(dead_code, reason = "the stories need more of it")]
mod support;

use budgets::Budgets;

/// The name of a section, and its function.
type Section = (&'static str, fn(&mut Budgets));

fn main() {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let sections: [Section; 3] = [
        ("load", load::run),
        ("streams", streams::run),
        ("pages", pages::run),
    ];
    let is_named = |section: &str| arguments.iter().any(|argument| argument == section);
    let is_all = !sections.iter().any(|(section, _)| is_named(section));
    let mut budgets = Budgets::default();
    for (section, run) in sections {
        if is_all || is_named(section) {
            println!("{section}");
            run(&mut budgets);
        }
    }
    budgets.end();
}
