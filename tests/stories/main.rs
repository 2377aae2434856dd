//! Whole stories with real processes: git, daemon, runner, command line. One binary, one file per story.

#![expect(
    clippy::disallowed_methods,
    reason = "tests create files and start programs"
)]
#![expect(clippy::unwrap_used, reason = "a story ends if it cannot continue")]

mod accounts;
mod accounts_killed;
mod architecture;
mod artifact_news;
mod backup;
mod bad_input;
mod blind_requests;
mod blobs;
mod callbacks;
mod cancelled;
mod certificates;
mod chance;
mod checkout;
mod clean_up;
mod clock;
mod contents;
mod copies;
mod costly;
mod crash;
mod cycles;
mod demo;
mod dependency_watch;
mod disk_full;
mod documented;
mod failpoints;
mod failpoints_aside;
mod forge;
mod fsck;
mod heartbeat;
mod hello;
mod io_errors;
mod licences;
mod listeners;
mod load;
mod machine;
mod news;
mod notify;
mod open_files;
mod outputs;
mod payloads;
mod power_cuts;
mod private_source;
mod process_one;
mod promises;
mod pulled_away;
mod recon;
mod removals;
mod renames;
mod rerun;
mod restart;
mod restored;
mod retention;
mod retry;
mod runners_of_projects;
mod schedules;
mod second_process;
mod secrets;
mod site;
mod standstill;
#[path = "../support.rs"]
mod support;
mod suspended;
mod timeout;
mod tls;
mod tree;
mod up;
mod user_reset;
