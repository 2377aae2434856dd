//! Any bytes as a batch of log records, read by the fast way and by the ordinary one.

#![no_main]

use libfuzzer_sys::fuzz_target;

fuzz_target!(|text: &[u8]| api::fuzzing::log_batch(text));
