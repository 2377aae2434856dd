//! Reads any text as a workflow file. It must be read or refused, and all problems must be printable.

#![no_main]

use libfuzzer_sys::fuzz_target;
use workflow::{Code, Severity, TemplatePolicy, parse, render};

fuzz_target!(|text: &str| {
    let (problems, is_refused) = match parse("file.yaml", text, TemplatePolicy::Deny) {
        Ok(parsed) => {
            for scan in parsed.workflow.scans() {
                // A valid scan has a digest, and its names can be listed.
                let _digest = scan.digest();
                let _references = scan.references();
            }
            (parsed.warnings, false)
        }
        Err(problems) => (problems, true),
    };
    assert_eq!(
        is_refused,
        problems.iter().any(|one| one.severity == Severity::Error)
    );
    assert!(
        problems
            .iter()
            .all(|one| one.code != Code::EngineUnavailable)
    );
    assert_eq!(
        render(&problems, text, false).is_empty(),
        problems.is_empty()
    );
});
