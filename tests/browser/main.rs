//! Stories of the web UI in a real browser, with the real processes of `tests/stories`. Without Chromium they are
//! skipped. One binary, one file per story.

#![expect(
    clippy::disallowed_methods,
    reason = "tests create files and start programs"
)]
#![expect(clippy::unwrap_used, reason = "a story ends if it cannot continue")]

mod away;
mod behind_proxy;
mod browser;
mod callbacks;
mod chromium;
mod container;
mod dispatch;
mod explained;
mod keyboard;
mod live;
mod long_log;
mod looks;
mod no_script;
mod notifications;
mod people;
mod proxy;
mod real_proxy;
mod renewed;
mod scene;
mod sessions;
mod settings;
mod sign_in;
mod stage;
#[path = "../support.rs"]
#[expect(dead_code, reason = "the other stories need the rest")]
mod support;
mod tabs;
mod upload;
mod wrapped_log;
