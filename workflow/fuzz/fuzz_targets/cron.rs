//! Reads any text as a schedule. An accepted schedule has a next time and a description, and means the same after it is written
//! and read again.

#![no_main]

use libfuzzer_sys::fuzz_target;
use workflow::Cron;

fuzz_target!(|text: &str| {
    match Cron::parse(text) {
        Ok(cron) => {
            assert!(!cron.describe().is_empty());
            assert!(Cron::parse(&cron.to_string()).is_ok());
        }
        Err(errors) => {
            assert!(!errors.is_empty());
            assert!(
                errors
                    .iter()
                    .all(|error| text.get(error.range.clone()).is_some())
            );
        }
    }
});
