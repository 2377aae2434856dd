//! Reads any text as a template. It must keep its source, or each fault must have a place in the source.

#![no_main]

use libfuzzer_sys::fuzz_target;
use workflow::{Site, Template};

fuzz_target!(|text: &str| {
    match Template::parse(text, Site::Script) {
        Ok(template) => assert_eq!(template.source(), text),
        Err(error) => assert!(
            error
                .faults()
                .iter()
                .all(|fault| text.get(fault.range.clone()).is_some())
        ),
    }
});
