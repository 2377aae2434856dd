//! Any text as a template: it keeps its source, or each of its faults has a place in it.

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
