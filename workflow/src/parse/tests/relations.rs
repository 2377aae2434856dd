//! What scans and their parts say about each other.

use super::problems;
use crate::diagnostic::{Code, Severity};

const STEPS: &str = "    steps:\n      - run: ls\n";

/// Scans with the content of their `on`, and the codes and scans that are told of.
fn told(scans: &[(&str, &str)]) -> Vec<(Code, String)> {
    let text: String = std::iter::once("scans:\n".to_owned())
        .chain(
            scans
                .iter()
                .map(|(name, on)| format!("  {name}:\n    on: {{ {on} }}\n{STEPS}")),
        )
        .collect();
    let found = problems(&text);
    found
        .iter()
        .map(|problem| {
            let named = problem.message.split('`').nth(1).unwrap_or_default();
            (problem.code, named.to_owned())
        })
        .collect()
}

fn of(code: Code, scans: &[&str]) -> Vec<(Code, String)> {
    scans
        .iter()
        .map(|scan| (code, (*scan).to_owned()))
        .collect()
}

#[test]
fn a_scan_that_reads_only_itself_is_an_error() {
    for on in [
        "expr: scans.a.size() == 0",
        "expr: \"scans['a'].has_diff()\"",
        "cron: 0 3 * * *, expr: scans.a.is_available()",
        "dispatch: {}, expr: scans.a.is_available()",
    ] {
        assert_eq!(
            told(&[("a", on), ("b", "dispatch: {}")]),
            of(Code::ReadsOnlyItself, &["a"])
        );
    }
    for on in [
        "expr: scans.a.size() == 0 && scans.b.is_available()",
        "expr: 'scans[vars.X].size() == 0 && scans.a.size() == 0'",
        "expr: vars.X == ''",
    ] {
        assert_eq!(told(&[("a", on), ("b", "dispatch: {}")]), [], "{on}");
    }
}

#[test]
fn scans_that_wait_for_each_other_never_start() {
    let waits = |scan: &str| format!("expr: scans.{scan}.is_available()");
    let (a, b, c) = (waits("a"), waits("b"), waits("c"));
    assert_eq!(
        told(&[("a", &b), ("b", &c), ("c", &a), ("d", &a)]),
        of(Code::NeverStarts, &["a", "b", "c", "d"])
    );
    assert_eq!(told(&[("a", &b), ("b", &c), ("c", "dispatch: {}")]), []);
    assert_eq!(told(&[("a", &b), ("b", &c), ("c", "cron: 0 3 * * *")]), []);
    let either = "expr: scans.b.is_available() || scans.c.is_available()";
    assert_eq!(told(&[("a", either), ("b", &a), ("c", "dispatch: {}")]), []);
    let own_trigger = format!("{b}, cron: 0 3 * * *");
    assert_eq!(told(&[("a", &own_trigger), ("b", &a)]), []);
}

#[test]
fn an_expression_without_names_waits_for_any_other_scan() {
    assert_eq!(
        told(&[("a", "expr: \"true\"")]),
        of(Code::NeverStarts, &["a"])
    );
    assert_eq!(told(&[("a", "expr: \"true\""), ("b", "dispatch: {}")]), []);
    let any = "expr: 'scans[vars.X].is_available()'";
    assert_eq!(
        told(&[("a", any), ("b", "expr: scans.a.is_available()")]),
        of(Code::NeverStarts, &["a", "b"])
    );
}

#[test]
fn a_trigger_with_an_error_is_taken_for_one_that_starts() {
    let found = told(&[
        ("a", "expr: scans.b.is_available()"),
        ("b", "cron: nonsense"),
    ]);
    assert!(
        found.iter().all(|(code, _)| *code == Code::InvalidCron),
        "{found:?}"
    );
    let found = told(&[("a", "expr: scans.b.is_available()"), ("b", "expr: nope")]);
    assert_eq!(found, of(Code::UnknownName, &["nope"]));
}

/// The one problem of a scan with these lines.
fn codes(lines: &str) -> Vec<(Code, Severity)> {
    let text = format!(
        "env: {{ ALL: x }}\nscans:\n  a:\n    on: {{ dispatch: {{ inputs: {{ t: {{}}, f: {{ type: bool }} }} }} }}\n{lines}"
    );
    let found = problems(&text);
    found
        .iter()
        .map(|problem| (problem.code, problem.severity))
        .collect()
}

#[test]
fn an_input_that_nothing_reads_is_a_warning() {
    let unused = (Code::UnusedInput, Severity::Warning);
    assert_eq!(codes(STEPS), [unused, unused]);
    for used in [
        "    env: { T: \"${{ inputs.t }}\" }\n    steps:\n      - run: ls\n        if: inputs.f\n",
        "    env: { T: \"${{ inputs[name] }}\" }\n    steps:\n      - run: ls\n",
        "    artifacts:\n      - { name: x, paths: [.], if: \"inputs.f && inputs['t'] == ''\" }\n    steps:\n      - run: ls\n",
    ] {
        assert_eq!(codes(used), [], "{used}");
    }
}

/// An artifact of `out.txt` with the given rest, and the scan's steps.
fn artifact(rest: &str, steps: &[&str]) -> Vec<(Code, Severity)> {
    let steps: String = steps
        .iter()
        .map(|step| format!("      - {{ {step} }}\n"))
        .collect();
    codes(&format!(
        "    env: {{ T: \"${{{{ inputs.t }}}}\", F: \"${{{{ inputs.f }}}}\" }}\n    artifacts:\n      - {{ name: x, paths: [out.txt]{rest} }}\n    steps:\n{steps}"
    ))
}

#[test]
fn an_artifact_needs_the_condition_of_the_step_that_makes_it() {
    let warned = [(Code::ArtifactCondition, Severity::Warning)];
    let made = "run: probe > out.txt, if: inputs.f";
    for (rest, steps) in [
        ("", &["run: make, if: inputs.f"][..]),
        (", if: \"!inputs.f\"", &["run: make, if: inputs.f"]),
        (", if: ok", &["run: make, if: inputs.f && inputs.t == ''"]),
        (
            ", if: inputs.f",
            &["run: make, if: inputs.f && inputs.t == ''"],
        ),
        ("", &["run: make", made]),
        ("", &["run: make", made, "run: ls"]),
    ] {
        assert_eq!(artifact(rest, steps), warned, "{rest} {steps:?}");
    }
}

#[test]
fn an_artifact_condition_that_may_be_right_is_let_alone() {
    let made = "run: probe > out.txt, if: inputs.f";
    for (rest, steps) in [
        // The same, or stricter.
        (", if: inputs.f", &["run: make, if: inputs.f"][..]),
        (
            ", if: inputs.t == '' && inputs.f",
            &["run: make, if: inputs.f"],
        ),
        (
            ", if: inputs.f",
            &["run: make, if: inputs.f || inputs.t == ''"],
        ),
        (", if: inputs.f", &["run: make"]),
        // A step that always runs.
        ("", &["run: make, if: always"]),
        ("", &["run: make, if: ok"]),
        // Not known to be the only one.
        ("", &["run: make", "run: cat out.txt, if: inputs.f"]),
        ("", &["run: make -o out.txt", made]),
        ("", &["run: make", "run: touch a b, if: inputs.f"]),
        (
            "",
            &["run: make, if: inputs.f", "run: make, if: \"!inputs.f\""],
        ),
    ] {
        assert_eq!(artifact(rest, steps), [], "{rest} {steps:?}");
    }
}
