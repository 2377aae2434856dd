//! Any text as a `Range` header, for a content of any size.

#![no_main]

use libfuzzer_sys::fuzz_target;

fuzz_target!(|input: (&str, u64)| api::fuzzing::range(input.0, input.1));
