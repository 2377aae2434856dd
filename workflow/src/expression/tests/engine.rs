//! Tests the engine: its threads, its stack, and unchecked texts.

use super::{context, evaluate};
use crate::diagnostic::Code;
use crate::expression::{Expression, Sandbox, Site, Value};
use crate::limits::SHALLOW_DEPTH;
use crate::random::Random;

#[test]
fn the_deepest_accepted_expression_is_evaluated() {
    let deep = vec!["1"; 60].join("+");
    assert_eq!(evaluate(&deep), Ok(Value::Int(60)));
    let both = vec!["ok"; 64].join(" && ");
    assert_eq!(evaluate(&both), Ok(Value::Bool(true)));
}

/// These expressions are evaluated on the callers' threads, which have at least twice as much stack.
#[test]
fn the_deepest_shallow_expressions_need_little_stack() {
    let sources = [
        ["1"; SHALLOW_DEPTH].join("+"),
        ["ok"; 64].join(" && "),
        ["ok"; SHALLOW_DEPTH].join(" == "),
        format!(
            "{0}1{1} == {0}1{1}",
            "[".repeat(SHALLOW_DEPTH - 2),
            "]".repeat(SHALLOW_DEPTH - 2)
        ),
        format!(
            "size({}1{})",
            "[".repeat(SHALLOW_DEPTH - 2),
            "]".repeat(SHALLOW_DEPTH - 2)
        ),
        "ok ? ok : ".repeat(SHALLOW_DEPTH - 1) + "ok",
        "scans.long.filter(j, j.state == 'succeeded')[0].id".to_owned(),
        "scans.long.exists(a, a.id == 'x')".to_owned(),
        "scans.hosts.is_available() && !scans.hosts.has_diff('hosts.zip')".to_owned(),
    ];
    let evaluated = std::thread::Builder::new()
        .stack_size(1024 * 1024)
        .spawn(move || {
            let sandbox = Sandbox::shared().unwrap();
            for source in sources {
                let expression = Expression::parse(&source, Site::Script).unwrap();
                assert!(expression.is_shallow(), "{source}");
                sandbox.evaluate(&expression, &context()).unwrap();
                sandbox.explain(&expression, &context()).unwrap();
            }
        });
    evaluated.unwrap().join().unwrap();
    let deeper = ["1"; SHALLOW_DEPTH + 1].join("+");
    assert!(
        !Expression::parse(&deeper, Site::Script)
            .unwrap()
            .is_shallow()
    );
}

#[test]
fn a_task_that_panics_leaves_the_thread_alive() {
    let sandbox = Sandbox::new(1).unwrap();
    assert!(
        sandbox
            .parse(|| std::panic::resume_unwind(Box::new("on purpose")))
            .map(|()| 0)
            .is_err()
    );
    assert_eq!(sandbox.parse(|| 7), Ok(7));
}

#[test]
fn an_evaluation_does_not_wait_for_files_that_are_parsed() {
    let deep = format!("{} > 0", ["1"; SHALLOW_DEPTH + 1].join("+"));
    let deep = Expression::parse(&deep, Site::Condition).unwrap();
    assert!(!deep.is_shallow());
    let sandbox = Sandbox::new(1).unwrap();
    let (go, wait) = std::sync::mpsc::channel::<()>();
    // The test ends only if the evaluation does not have to wait for the parser.
    let patience = std::time::Duration::from_secs(60);
    std::thread::scope(|scope| {
        let long = scope.spawn({
            let sandbox = &sandbox;
            move || sandbox.parse(move || wait.recv_timeout(patience).is_ok())
        });
        assert_eq!(sandbox.holds(&deep, &context()), Ok(true));
        go.send(()).unwrap();
        assert_eq!(long.join().unwrap(), Ok(true));
    });
}

#[test]
fn no_text_panics_or_hangs() {
    let mut random = Random::new(1);
    let words = [
        "scans",
        ".",
        "hosts",
        "[",
        "]",
        "(",
        ")",
        "'a'",
        "\"",
        "&&",
        "||",
        "!",
        "1",
        "0u",
        "1.5",
        "x",
        ",",
        "filter",
        "map",
        "all",
        "has",
        "size",
        "vars",
        "ok",
        "==",
        "<",
        "?",
        ":",
        "{",
        "}",
        "in",
        "\\",
        "r'",
        "b'",
        "'''",
        "matches",
        "ä",
        "\u{202e}",
        "\0",
        "-",
        "+",
        "is_available",
        "timestamp",
        "9223372036854775807",
        " ",
        "\n",
        "//",
        "`",
    ];
    let sandbox = Sandbox::shared().unwrap();
    for _ in 0..1_500 {
        let length = random.below(14);
        let source: String = (0..length).map(|_| random.pick(&words)).collect();
        match Expression::parse(&source, Site::Script) {
            Ok(expression) => drop(sandbox.explain(&expression, &context()).unwrap()),
            Err(error) => {
                assert!(!error.faults().is_empty());
                for fault in error.faults() {
                    assert!(
                        source.get(fault.range.clone()).is_some(),
                        "{source:?} {fault:?}"
                    );
                    assert_ne!(fault.code, Code::EngineUnavailable, "{source:?}");
                }
            }
        }
    }
}
