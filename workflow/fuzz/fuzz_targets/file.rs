//! Any text as a workflow file: it is read or refused, and what is wrong can be shown.

#![no_main]

use libfuzzer_sys::fuzz_target;
use workflow::{Code, Severity, TemplatePolicy, parse, render};

fuzz_target!(|text: &str| {
    let (problems, is_refused) = match parse("file.yaml", text, TemplatePolicy::Deny) {
        Ok(parsed) => {
            for scan in parsed.workflow.scans() {
                // A scan that was read has a digest, and what it names can be asked for.
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
