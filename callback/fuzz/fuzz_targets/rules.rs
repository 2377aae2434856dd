//! Any rule of a callback server, and any request: whether the rule fits, and its records as bytes.

#![no_main]

use libfuzzer_sys::fuzz_target;

fuzz_target!(|input: (&str, &str, &str, &[u8])| {
    let (label, path, value, request) = input;
    callback::fuzzing::rules(label, path, value, request);
});
