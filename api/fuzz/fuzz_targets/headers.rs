//! Any bytes as the headers of a request: credentials, conditions, media types, and forwarding headers of proxies.

#![no_main]

use libfuzzer_sys::fuzz_target;

fuzz_target!(|text: &[u8]| api::fuzzing::headers(text));
