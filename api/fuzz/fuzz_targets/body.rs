//! Any bytes as the body of every route that takes JSON.

#![no_main]

use libfuzzer_sys::fuzz_target;

fuzz_target!(|text: &[u8]| api::fuzzing::body(text));
