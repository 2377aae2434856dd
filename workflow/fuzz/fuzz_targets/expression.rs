//! Reads any text as an expression. It must be evaluated or refused, and its explanation must agree with its value.

#![no_main]

use std::collections::BTreeMap;

use libfuzzer_sys::fuzz_target;
use workflow::{Code, Context, Expression, InputValue, Sandbox, ScanHistory, Site};

fn context() -> Context {
    Context {
        job: None,
        project: "p".to_owned(),
        workflow: "w".to_owned(),
        revision: "r".to_owned(),
        vars: BTreeMap::from([("A".to_owned(), "x".to_owned())]),
        secrets: BTreeMap::new(),
        inputs: BTreeMap::from([("f".to_owned(), InputValue::Bool(true))]),
        scans: BTreeMap::from([("a".to_owned(), ScanHistory::default())]),
        steps: BTreeMap::new(),
        ok: true,
    }
}

fuzz_target!(|text: &str| {
    match Expression::parse(text, Site::Script) {
        Ok(expression) => {
            let sandbox = Sandbox::shared().expect("the system gives a thread");
            let value = sandbox.evaluate(&expression, &context());
            let explained = sandbox
                .explain(&expression, &context())
                .expect("the engine answers");
            match (value, explained.result) {
                (Err(_), Err(_)) => {}
                (value, explained) => assert_eq!(value, explained),
            }
        }
        Err(error) => {
            for fault in error.faults() {
                assert!(text.get(fault.range.clone()).is_some());
                assert_ne!(fault.code, Code::EngineUnavailable);
            }
        }
    }
});
