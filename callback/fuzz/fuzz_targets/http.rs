//! Any bytes as what a connection of HTTP sends: the header of a proxy, the head of a request, the ids in it.

#![no_main]

use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| callback::fuzzing::http(bytes));
