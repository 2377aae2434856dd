//! Problems between scans and their parts.

use super::problems;
use crate::diagnostic::{Code, Severity};
use crate::limits::{DIAGNOSTICS, EXPRESSION_BYTES, FILE_EXPRESSION_BYTES, RENAMES};

const STEPS: &str = "    steps:\n      - run: ls\n";

/// Parses scans with the given `on`. Returns the codes and scans of the problems.
fn reported(scans: &[(&str, &str)]) -> Vec<(Code, String)> {
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
            reported(&[("a", on), ("b", "dispatch: {}")]),
            of(Code::ReadsOnlyItself, &["a"])
        );
    }
    for on in [
        "expr: scans.a.size() == 0 && scans.b.is_available()",
        "expr: 'scans[vars.X].size() == 0 && scans.a.size() == 0'",
        "expr: vars.X == ''",
    ] {
        assert_eq!(reported(&[("a", on), ("b", "dispatch: {}")]), [], "{on}");
    }
}

/// Two scans, of which `b` has this expression.
fn trigger(expr: &str) -> Vec<Code> {
    let expr = format!("expr: \"{expr}\"");
    let found = reported(&[("a", "dispatch: {}"), ("b", &expr)]);
    found.into_iter().map(|(code, _)| code).collect()
}

#[test]
fn a_question_about_failures_names_another_scan() {
    assert_eq!(trigger("scans.a.has_failed()"), []);
    assert_eq!(trigger("scans['a'].has_failed() && vars.X == '1'"), []);
    for (expr, code) in [
        ("scans[vars.X].has_failed()", Code::DynamicName),
        (
            "[scans.a].all(scan, dyn(scan).has_failed())",
            Code::DynamicName,
        ),
        (
            "scans.b.has_failed() || scans.a.has_failed()",
            Code::OwnScan,
        ),
        ("scans.a.has_failed('x')", Code::ExpressionType),
        ("scans.c.has_failed()", Code::UnknownScan),
    ] {
        assert_eq!(trigger(expr), [code], "{expr}");
    }
    let step = "scans:\n  a:\n    on: { dispatch: {} }\n    steps: [ { run: x, if: scans.a.has_failed() } ]\n";
    assert_eq!(problems(step)[0].code, Code::OwnScan);
}

#[test]
fn an_expression_that_asks_for_a_failure_in_vain_is_reported() {
    for expr in [
        "scans.a[0].state == 'failed'",
        "scans.a[0].state != 'failed'",
        "scans.a[0].state != 'succeeded'",
        "'cancelled' == scans.a[0]['state']",
        "scans.a.exists(job, job.state == 'failed')",
        "scans.a.filter(job, job.state == 'failed').size() > 2",
        "scans.a.filter(job, vars.X == '1')[0].state == 'failed'",
        "scans.a[0].state in ['succeeded', 'failed']",
        "scans.a[0].state == vars.X",
    ] {
        assert_eq!(trigger(expr), [Code::UnseenFailure], "{expr}");
    }
    for expr in [
        "scans.a[0].state == 'succeeded'",
        "scans.a.exists(job, job.state == 'succeeded')",
        "scans.a[0].state in ['succeeded']",
        "scans.a[0].outputs.state == 'failed'",
        "vars.state == 'failed' && scans.a.is_available()",
        "scans.a.has_failed() && scans.a[0].state == 'failed'",
    ] {
        assert_eq!(trigger(expr), [], "{expr}");
    }
    let elsewhere = "scans:\n  a:\n    on: { dispatch: {} }\n    steps: [ { run: x, if: \"scans.a[0].state == 'failed'\" } ]\n";
    assert_eq!(problems(elsewhere), []);
}

#[test]
fn a_former_name_is_one_that_no_scan_has_and_only_one_claims() {
    let scan =
        |name: &str, more: &str| format!("  {name}:\n    on: {{ dispatch: {{}} }}\n{more}{STEPS}");
    let renamed = |name: &str, from: &str| scan(name, &format!("    renamed_from: {from}\n"));
    let found = |scans: &[String]| -> Vec<Code> {
        let found = problems(&format!("scans:\n{}", scans.concat()));
        found.iter().map(|problem| problem.code).collect()
    };
    assert_eq!(found(&[renamed("a", "b"), scan("c", "")]), []);
    assert_eq!(
        found(&[renamed("a", "b"), scan("b", "")]),
        [Code::DuplicateName]
    );
    assert_eq!(found(&[renamed("a", "a")]), [Code::DuplicateName]);
    assert_eq!(
        found(&[renamed("a", "c"), renamed("b", "c")]),
        [Code::DuplicateName]
    );
    assert_eq!(found(&[renamed("a", "b-c")]), [Code::InvalidName]);
    let many = |count| -> Vec<String> {
        let scans = (0..count).map(|n| renamed(&format!("new{n}"), &format!("old{n}")));
        scans.collect()
    };
    assert_eq!(found(&many(RENAMES)), []);
    assert_eq!(found(&many(RENAMES + 3)), [Code::TooMany]);
}

#[test]
fn scans_that_wait_for_each_other_never_start() {
    let waits = |scan: &str| format!("expr: scans.{scan}.is_available()");
    let (a, b, c) = (waits("a"), waits("b"), waits("c"));
    assert_eq!(
        reported(&[("a", &b), ("b", &c), ("c", &a), ("d", &a)]),
        of(Code::NeverStarts, &["a", "b", "c", "d"])
    );
    assert_eq!(reported(&[("a", &b), ("b", &c), ("c", "dispatch: {}")]), []);
    assert_eq!(
        reported(&[("a", &b), ("b", &c), ("c", "cron: 0 3 * * *")]),
        []
    );
    let either = "expr: scans.b.is_available() || scans.c.is_available()";
    assert_eq!(
        reported(&[("a", either), ("b", &a), ("c", "dispatch: {}")]),
        of(Code::EndlessCycle, &["a"])
    );
}

#[test]
fn scans_that_start_each_other_for_ever_are_reported_if_something_starts_them() {
    let waits = |scan: &str| format!("expr: scans.{scan}.is_available()");
    let (a, b) = (waits("a"), waits("b"));
    let own_trigger = format!("{b}, cron: 0 3 * * *");
    assert_eq!(
        reported(&[("a", &own_trigger), ("b", &a), ("c", &b)]),
        of(Code::EndlessCycle, &["a"])
    );
    let ended = "expr: 'scans.b.is_available() && scans.b.has_diff()', dispatch: {}".to_owned();
    assert_eq!(reported(&[("a", &ended), ("b", &a)]), []);
}

/// `changes` asks for news. Closed to a circle, the example would go on only while there are some.
#[test]
fn the_example_that_asks_for_news_is_no_endless_cycle() {
    let example =
        include_str!("../../../../examples/dependency-watch/workflows/dependency-watch.yaml");
    let found = |text: &str| -> Vec<Code> { problems(text).iter().map(|one| one.code).collect() };
    assert_eq!(found(example), []);
    let closed = example.replace("cron: \"0 6 * * *\"", "expr: scans.report.is_available()");
    assert_eq!(found(&closed), []);
    let without_news = closed.replace(
        "expr: scans.inventory.has_news()",
        "expr: scans.inventory.is_available()",
    );
    assert_eq!(found(&without_news), [Code::EndlessCycle]);
}

#[test]
fn an_expression_without_names_waits_for_any_other_scan() {
    assert_eq!(
        reported(&[("a", "expr: \"true\"")]),
        of(Code::NeverStarts, &["a"])
    );
    assert_eq!(
        reported(&[("a", "expr: \"true\""), ("b", "dispatch: {}")]),
        []
    );
    let any = "expr: 'scans[vars.X].is_available()'";
    assert_eq!(
        reported(&[("a", any), ("b", "expr: scans.a.is_available()")]),
        of(Code::NeverStarts, &["a", "b"])
    );
}

#[test]
fn a_trigger_with_an_error_is_taken_for_one_that_starts() {
    let found = reported(&[
        ("a", "expr: scans.b.is_available()"),
        ("b", "cron: nonsense"),
    ]);
    assert!(
        found.iter().all(|(code, _)| *code == Code::InvalidCron),
        "{found:?}"
    );
    let found = reported(&[("a", "expr: scans.b.is_available()"), ("b", "expr: nope")]);
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
        // It is not known whether it is the only one.
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

/// The warnings of a file that has errors.
fn warnings_beside_errors(text: &str) -> Vec<Code> {
    let found = problems(text);
    assert!(
        found.iter().any(|one| one.severity == Severity::Error),
        "{text}"
    );
    let warnings = found.iter().filter(|one| one.severity == Severity::Warning);
    warnings.map(|one| one.code).collect()
}

/// A file with one warning of each kind, where `lines` are added to the end of the scan with the warnings and `more` is
/// another scan.
fn with_warnings(lines: &str, more: &str) -> String {
    format!(
        "scans:
  1st:
    on: {{ dispatch: {{ inputs: {{ t: {{}}, unused: {{}}, f: {{ type: bool }} }} }} }}
    artifacts:
      - {{ name: x, paths: [out.txt] }}
    steps:
      - {{ run: 'probe > out.txt', if: inputs.f }}
      - run: echo ${{{{ inputs.t }}}}
{lines}  waits:
    on: {{ expr: scans.waits2.is_available() }}
{STEPS}  waits2:
    on: {{ expr: scans.waits.is_available() }}
{STEPS}{more}"
    )
}

const EVERY_WARNING: [Code; 6] = [
    Code::AwkwardName,
    Code::UnusedInput,
    Code::ArtifactCondition,
    Code::TaintedScript,
    Code::NeverStarts,
    Code::NeverStarts,
];

#[test]
fn warnings_are_reported_beside_unrelated_errors() {
    for (lines, more) in [
        // In the same scan.
        ("    overlap: never\n", ""),
        ("    timeout: 9h\n", ""),
        ("    retry: { attempts: 99 }\n", ""),
        ("    runs_on: [a, a]\n", ""),
        // In another one.
        ("", "  b:\n    on: { cron: nope }\n    steps: [ run: ls ]\n"),
        ("", "  b:\n    on: { dispatch: {} }\n    step: []\n"),
        (
            "",
            "  b:\n    on: { dispatch: {} }\n    steps: [ { run: ls, if: nope } ]\n",
        ),
        (
            "",
            "  b:\n    on: { dispatch: {} }\n    steps: [ { run: ls, run: ls } ]\n",
        ),
        ("", "  b: 1\n"),
        ("", "name: ''\n"),
    ] {
        let text = with_warnings(lines, more);
        assert_eq!(warnings_beside_errors(&text), EVERY_WARNING, "{text}");
    }
}

#[test]
fn an_input_is_not_called_unused_where_an_error_hides_what_may_read_it() {
    for (lines, more) in [
        ("      - { run: ls, if: inputs.unsued }\n", ""),
        ("      - { run: ls, if: 'inputs.unused =' }\n", ""),
        ("      - run: 'echo ${{ inputs.unused'\n", ""),
        ("      - { run: ls, fi: inputs.unused }\n", ""),
        (
            "      - { run: ls, run: 'echo ${{ inputs.unused }}' }\n",
            "",
        ),
        ("      - [ 'echo ${{ inputs.unused }}' ]\n", ""),
        ("      - *nothing\n", ""),
        ("    evn: { A: '${{ inputs.unused }}' }\n", ""),
        ("    env: 1\n", ""),
        ("", "env: { A: '${{ inputs.unused + }}' }\n"),
        ("", "env: { A: a, A: '${{ inputs.unused }}' }\n"),
    ] {
        let text = with_warnings(lines, more);
        let found = warnings_beside_errors(&text);
        assert!(!found.contains(&Code::UnusedInput), "{found:?} in {text}");
        assert!(found.contains(&Code::TaintedScript), "{found:?} in {text}");
        assert!(found.contains(&Code::NeverStarts), "{found:?} in {text}");
    }
    // There may be scans below an unknown key.
    for more in [
        "evn: { A: '${{ inputs.unused }}' }\n",
        "env: {}\nenv: { A: '${{ inputs.unused }}' }\n",
    ] {
        let text = with_warnings("", more);
        let found = warnings_beside_errors(&text);
        let told = [
            Code::AwkwardName,
            Code::ArtifactCondition,
            Code::TaintedScript,
        ];
        assert_eq!(found, told, "{text}");
    }
}

/// Only the first excess is reported, and nothing after it is read.
#[test]
fn an_input_is_not_called_unused_where_the_file_has_too_many_expressions() {
    let long = format!("'{}' == vars.A", "x".repeat(EXPRESSION_BYTES - 20));
    let steps = format!("      - {{ run: ls, if: \"{long}\" }}\n");
    let count = FILE_EXPRESSION_BYTES / long.len() + 2;
    let many = format!("    steps:\n{}", steps.repeat(count.div_ceil(5)));
    let scans: String = (0..5)
        .map(|number| format!("  s{number}:\n    on: {{ dispatch: {{}} }}\n{many}"))
        .collect();
    let text = format!(
        "scans:\n{scans}  z:\n    on: {{ dispatch: {{ inputs: {{ x: {{}} }} }} }}\n    env: {{ X: '${{{{ inputs.x }}}}' }}\n{STEPS}"
    );
    let found = problems(&text);
    let codes: Vec<Code> = found.iter().map(|problem| problem.code).collect();
    assert_eq!(codes, [Code::FileTooComplex]);
}

#[test]
fn an_expression_that_is_too_long_alone_is_not_blamed_on_the_file() {
    let long = "x".repeat(FILE_EXPRESSION_BYTES + 1);
    let text = format!(
        "scans:\n  a:\n    on: {{ dispatch: {{}} }}\n    steps:\n      - {{ run: ls, if: {long} }}\n      - {{ run: ls, if: bogus }}\n"
    );
    let found = problems(&text);
    let codes: Vec<Code> = found.iter().map(|problem| problem.code).collect();
    assert_eq!(codes, [Code::ExpressionTooLarge, Code::UnknownName]);
}

/// Its type is unknown, so its uses are not checked.
#[test]
fn an_input_whose_declaration_is_wrong_is_neither_text_nor_bool() {
    for inputs in [
        "x: { typ: bool }",
        "x: { type: string, type: bool }",
        "x: { type: string }, x: { type: bool }",
    ] {
        let text = format!(
            "scans:\n  a:\n    on: {{ dispatch: {{ inputs: {{ {inputs} }} }} }}\n    steps:\n      - {{ run: 'echo ${{{{ inputs.x }}}}', if: inputs.x }}\n"
        );
        let found = problems(&text);
        let [only] = found.as_slice() else {
            panic!("{found:?}")
        };
        let expected = [Code::UnknownKey, Code::DuplicateKey];
        assert!(expected.contains(&only.code), "{only:?}");
    }
    // It is not reported as missing if the key above it is misspelled.
    for on in [
        "dispatch: { input: { x: {} } }",
        "dispach: { inputs: { x: {} } }",
    ] {
        let text = format!(
            "scans:\n  a:\n    on: {{ cron: 0 3 * * *, {on} }}\n    steps:\n      - {{ run: ls, if: inputs.x == '' }}\n"
        );
        let found = problems(&text);
        let codes: Vec<Code> = found.iter().map(|problem| problem.code).collect();
        assert_eq!(codes, [Code::UnknownKey], "{text}");
    }
}

/// A step that could not be read may be the one that makes the file, and a repeated name belongs to another artifact.
#[test]
fn an_artifact_is_not_compared_with_steps_that_could_not_be_read() {
    for lines in [
        "      - run: 'probe ${{ nope }} > out.txt'\n",
        "      - { run: ls, if: nope }\n",
        "      - { run: ls, run: 'probe > out.txt' }\n",
        "      - 1\n",
    ] {
        let text = with_warnings(lines, "");
        let found = warnings_beside_errors(&text);
        assert!(
            !found.contains(&Code::ArtifactCondition),
            "{found:?} in {text}"
        );
    }
    let twice = with_warnings("", "").replace(
        "      - { name: x,",
        "      - { name: -x/, paths: [out.txt], if: inputs.f }\n      - { name: x,",
    );
    assert!(warnings_beside_errors(&twice).contains(&Code::ArtifactCondition));
}

/// Only the error in the trigger that should start the ring is reported.
#[test]
fn a_misspelled_trigger_is_not_called_missing() {
    for first in [
        "on: { expr: scans.b.is_available(), corn: 0 3 * * * }",
        "on: { expr: scans.b.is_available() }\n    cron: 0 3 * * *",
        "on: { expr: scans.b.is_available(), expr: 'true' }",
    ] {
        let text = format!(
            "scans:\n  a:\n    {first}\n{STEPS}  b:\n    on: {{ expr: scans.a.is_available() }}\n{STEPS}"
        );
        assert_eq!(warnings_beside_errors(&text), [], "{text}");
    }
    let ring = format!(
        "scans:\n  a:\n    on: {{ expr: scans.b.is_available() }}\n{STEPS}  b:\n    on: {{ expr: scans.a.is_available() }}\n{STEPS}"
    );
    for key in ["scans", "scan"] {
        let elsewhere = format!("{ring}{key}:\n  a:\n    on: {{ cron: 0 3 * * * }}\n{STEPS}");
        assert_eq!(warnings_beside_errors(&elsewhere), [], "{elsewhere}");
    }
    let twice = format!(
        "scans:\n  a:\n    on: {{ expr: scans.b.is_available() }}\n{STEPS}  b:\n    on: {{ expr: scans.a.is_available() }}\n{STEPS}  a:\n    on: {{ dispatch: {{}} }}\n{STEPS}"
    );
    assert_eq!(warnings_beside_errors(&twice), []);
}

#[test]
fn free_text_is_reported_beside_another_expression_of_the_script() {
    let text = "scans:\n  a:\n    on: { dispatch: { inputs: { t: {} } } }\n    steps:\n      - run: echo ${{ inputs.t }} ${{ nope }}\n";
    assert_eq!(warnings_beside_errors(text), [Code::TaintedScript]);
    // The type of `t` is unknown.
    let text =
        "scans:\n  a:\n    on: { dispatch: }\n    steps:\n      - run: echo ${{ inputs.t }}\n";
    assert_eq!(warnings_beside_errors(text), []);
}

#[test]
fn warnings_do_not_keep_errors_from_being_seen() {
    let awkward: String = (0..DIAGNOSTICS + 10)
        .map(|n| format!("  {n}:\n    on: {{ dispatch: {{}} }}\n{STEPS}"))
        .collect();
    let text = format!("scans:\n{awkward}  b:\n    on: {{ dispatch: {{}} }}\n    steps: [ ls ]\n");
    let found = problems(&text);
    assert_eq!(found.len(), DIAGNOSTICS + 1);
    assert!(found.iter().any(|one| one.code == Code::WrongType));
    let left_out = &found.last().unwrap().message;
    assert_eq!(left_out, "11 more problems are not shown");
}
