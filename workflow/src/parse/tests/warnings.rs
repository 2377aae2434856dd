//! Problems between the parts of a scan, even in files with other errors.

use super::problems;
use crate::diagnostic::{Code, Severity};
use crate::limits::{DIAGNOSTICS, EXPRESSION_BYTES, FILE_EXPRESSION_BYTES};

const STEPS: &str = "    steps:\n      - run: ls\n";

/// The only problem of a scan with these lines.
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

/// An artifact of `out.txt` with these further members, and the scan's steps.
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
fn an_artifact_condition_that_may_be_right_is_not_reported() {
    let made = "run: probe > out.txt, if: inputs.f";
    for (rest, steps) in [
        // The same condition, or a stricter condition.
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
        // It is unknown whether the step is the only producer.
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
fn warnings_with_errors(text: &str) -> Vec<Code> {
    let found = problems(text);
    assert!(
        found.iter().any(|one| one.severity == Severity::Error),
        "{text}"
    );
    let warnings = found.iter().filter(|one| one.severity == Severity::Warning);
    warnings.map(|one| one.code).collect()
}

/// A file with one warning of each kind. `lines` are added to the end of the scan with the warnings, and `more` is another scan.
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
fn warnings_are_reported_together_with_unrelated_errors() {
    for (lines, more) in [
        // In the same scan.
        ("    overlap: never\n", ""),
        ("    timeout: 9h\n", ""),
        ("    retry: { attempts: 99 }\n", ""),
        ("    runs_on: [a, a]\n", ""),
        // In another scan.
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
        assert_eq!(warnings_with_errors(&text), EVERY_WARNING, "{text}");
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
        let found = warnings_with_errors(&text);
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
        let found = warnings_with_errors(&text);
        let reported = [
            Code::AwkwardName,
            Code::ArtifactCondition,
            Code::TaintedScript,
        ];
        assert_eq!(found, reported, "{text}");
    }
}

/// Only the first excess is reported, and later expressions are not read.
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
fn a_long_expression_is_not_reported_as_a_fault_of_the_file() {
    let long = "x".repeat(FILE_EXPRESSION_BYTES + 1);
    let text = format!(
        "scans:\n  a:\n    on: {{ dispatch: {{}} }}\n    steps:\n      - {{ run: ls, if: {long} }}\n      - {{ run: ls, if: bogus }}\n"
    );
    let found = problems(&text);
    let codes: Vec<Code> = found.iter().map(|problem| problem.code).collect();
    assert_eq!(codes, [Code::ExpressionTooLarge, Code::UnknownName]);
}

/// The type of the input is unknown, so its uses are not checked.
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
    // The input is not reported as missing if the key above it is misspelled.
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

/// An unread step may make the file, and a repeated name belongs to another artifact.
#[test]
fn an_artifact_is_not_compared_with_steps_that_could_not_be_read() {
    for lines in [
        "      - run: 'probe ${{ nope }} > out.txt'\n",
        "      - { run: ls, if: nope }\n",
        "      - { run: ls, run: 'probe > out.txt' }\n",
        "      - 1\n",
    ] {
        let text = with_warnings(lines, "");
        let found = warnings_with_errors(&text);
        assert!(
            !found.contains(&Code::ArtifactCondition),
            "{found:?} in {text}"
        );
    }
    let twice = with_warnings("", "").replace(
        "      - { name: x,",
        "      - { name: -x/, paths: [out.txt], if: inputs.f }\n      - { name: x,",
    );
    assert!(warnings_with_errors(&twice).contains(&Code::ArtifactCondition));
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
        assert_eq!(warnings_with_errors(&text), [], "{text}");
    }
    let ring = format!(
        "scans:\n  a:\n    on: {{ expr: scans.b.is_available() }}\n{STEPS}  b:\n    on: {{ expr: scans.a.is_available() }}\n{STEPS}"
    );
    for key in ["scans", "scan"] {
        let elsewhere = format!("{ring}{key}:\n  a:\n    on: {{ cron: 0 3 * * * }}\n{STEPS}");
        assert_eq!(warnings_with_errors(&elsewhere), [], "{elsewhere}");
    }
    let twice = format!(
        "scans:\n  a:\n    on: {{ expr: scans.b.is_available() }}\n{STEPS}  b:\n    on: {{ expr: scans.a.is_available() }}\n{STEPS}  a:\n    on: {{ dispatch: {{}} }}\n{STEPS}"
    );
    assert_eq!(warnings_with_errors(&twice), []);
}

#[test]
fn free_text_is_reported_together_with_another_expression_of_the_script() {
    let text = "scans:\n  a:\n    on: { dispatch: { inputs: { t: {} } } }\n    steps:\n      - run: echo ${{ inputs.t }} ${{ nope }}\n";
    assert_eq!(warnings_with_errors(text), [Code::TaintedScript]);
    // The type of `t` is unknown.
    let text =
        "scans:\n  a:\n    on: { dispatch: }\n    steps:\n      - run: echo ${{ inputs.t }}\n";
    assert_eq!(warnings_with_errors(text), []);
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
