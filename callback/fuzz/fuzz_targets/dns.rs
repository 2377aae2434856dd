//! Any bytes as a message of DNS, over UDP and TCP.

#![no_main]

use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| callback::fuzzing::dns(bytes));
