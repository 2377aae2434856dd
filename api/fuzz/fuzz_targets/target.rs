//! Any text as the target of a request: its path, its parameters and its cursors.

#![no_main]

use libfuzzer_sys::fuzz_target;

fuzz_target!(|text: &str| api::fuzzing::target(text));
