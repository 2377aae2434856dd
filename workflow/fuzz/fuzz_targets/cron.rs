//! Any text as a schedule: one that is accepted has a next time and a description, and means the same when it is
//! written and read again.

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
