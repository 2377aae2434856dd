mod positions;
mod relations;
mod warnings;

use super::{TemplatePolicy, parse};
use crate::definition::Scan;
use crate::diagnostic::{Code, Diagnostic, Severity};
use crate::limits::{DIAGNOSTICS, FILE_BYTES, FILE_EXPRESSION_BYTES, TRIGGERS_BYTES, YAML_NODES};
use crate::random::Random;

const MINIMAL: &str = "scans:\n  a:\n    on: { dispatch: {} }\n    steps:\n      - run: echo\n";

/// A file's problems.
fn problems(text: &str) -> Vec<Diagnostic> {
    match parse("file.yaml", text, TemplatePolicy::Warn) {
        Ok(parsed) => parsed.warnings,
        Err(diagnostics) => diagnostics,
    }
}

fn codes(text: &str) -> Vec<Code> {
    problems(text).iter().map(|problem| problem.code).collect()
}

#[test]
fn a_tainted_script_is_a_warning_or_an_error_by_policy() {
    let text = "scans:\n  a:\n    on: { dispatch: { inputs: { t: {} } } }\n    steps:\n      - run: echo ${{ inputs.t }}\n";
    let parsed = parse("file.yaml", text, TemplatePolicy::Warn).unwrap();
    assert_eq!(parsed.warnings[0].code, Code::TaintedScript);
    assert_eq!(parsed.warnings[0].severity, Severity::Warning);
    let errors = parse("file.yaml", text, TemplatePolicy::Deny).unwrap_err();
    assert_eq!(
        (errors[0].code, errors[0].severity),
        (Code::TaintedScript, Severity::Error)
    );
}

#[test]
fn a_file_that_is_too_large_is_not_read() {
    let text = format!("{MINIMAL}#{}", "x".repeat(FILE_BYTES));
    assert_eq!(codes(&text), [Code::FileTooLarge]);
}

#[test]
fn a_file_that_is_not_a_workflow_has_its_own_message() {
    let of = |file: &str, text: &str| parse(file, text, TemplatePolicy::Warn).unwrap_err();
    for file in [".yaml", "workflows/.yml"] {
        let found = of(file, MINIMAL);
        assert_eq!((found.len(), found[0].code), (1, Code::InvalidName));
        assert!(found[0].message.contains("no name"), "{}", found[0].message);
    }
    assert!(parse("workflows/x.yaml", MINIMAL, TemplatePolicy::Warn).is_ok());
    let pointer = "version https://git-lfs.github.com/spec/v1\noid sha256:4d7a\nsize 12345\n";
    let found = of("a.yaml", pointer);
    assert_eq!((found.len(), found[0].code), (1, Code::UnreadableFile));
    assert!(found[0].message.contains("Git LFS"), "{}", found[0].message);
}

#[test]
fn many_scans_are_accepted() {
    let scan = |number: usize| {
        format!("  s{number}:\n    on: {{ dispatch: {{}} }}\n    steps:\n      - run: echo\n")
    };
    let text: String = std::iter::once("scans:\n".to_owned())
        .chain((0..8_000).map(scan))
        .collect();
    let parsed = parse("file.yaml", &text, TemplatePolicy::Warn).unwrap();
    assert_eq!(parsed.workflow.scans().len(), 8_000);
    assert_eq!(
        parsed.workflow.scan("s7999").unwrap().name.as_str(),
        "s7999"
    );
    assert!(parsed.workflow.scan("s8000").is_none());
}

/// Two thousand scans with 200 KiB of conditions are well below the limits.
#[test]
fn the_expressions_of_a_file_are_bounded_together() {
    let conditions = |count: usize| -> String {
        let condition = "vars.A == 'a' || ".repeat(11) + "vars.B == 'b'";
        assert_eq!(condition.len(), 200);
        let scan = |number: usize| {
            let scan = format!("  s{number}:\n    on: {{ dispatch: {{}} }}\n    steps:\n");
            scan + &format!("      - run: echo\n        if: {condition}\n")
        };
        std::iter::once("scans:\n".to_owned())
            .chain((0..count).map(scan))
            .collect()
    };
    let most = FILE_EXPRESSION_BYTES / 200;
    assert_eq!(codes(&conditions(most)), []);
    assert_eq!(codes(&conditions(most + 5)), [Code::FileTooComplex]);
    // The length of a script does not count, but its expressions do.
    let script = MINIMAL.replace("echo", &"x".repeat(2 * FILE_EXPRESSION_BYTES));
    assert_eq!(codes(&script), []);
    let inserted = "${{ project.id }}".repeat(60);
    let steps = format!("      - run: echo {inserted}\n").repeat(900);
    let scripts = format!("{MINIMAL}{steps}");
    assert_eq!(codes(&scripts), [Code::FileTooComplex]);
}

#[test]
fn the_values_of_a_file_are_bounded() {
    let text = |count: usize| format!("{MINIMAL}description:\n{}", "- \n".repeat(count));
    // The rest of the file has sixteen nodes.
    let most = YAML_NODES - 16;
    assert_eq!(codes(&text(most)), [Code::WrongType]);
    assert_eq!(codes(&text(most + 1)), [Code::FileTooComplex]);
}

#[test]
fn a_flood_of_problems_is_cut_and_counted() {
    let text: String = (0..DIAGNOSTICS + 50)
        .map(|number| format!("k{number}: 1\n"))
        .collect();
    let diagnostics = parse("file.yaml", &text, TemplatePolicy::Warn).unwrap_err();
    assert_eq!(diagnostics.len(), DIAGNOSTICS + 1);
    let last = diagnostics.last().unwrap();
    assert_eq!(
        (last.code, last.message.as_str()),
        (Code::MoreProblems, "51 more problems are not shown")
    );
}

#[test]
fn windows_line_ends_and_byte_order_marks_are_read() {
    let text = format!("\u{feff}{}", MINIMAL.replace('\n', "\r\n"));
    assert_eq!(codes(&text), []);
}

const FULL: &str = r#"
env: { W: one }
scans:
  a:
    on:
      cron: "0 3 * * *"
      dispatch: { inputs: { x: {}, y: { type: bool } } }
    env: { A: one, B: two }
    steps:
      - run: "echo one"
        timeout: 1h
"#;

#[test]
fn the_line_end_of_a_block_is_not_part_of_a_value() {
    let text = "scans:\n  a:\n    on:\n      cron: |\n        0 3 * * *\n      timezone: |\n        Europe/Oslo\n    timeout: |\n      5m\n    steps:\n      - run: ls\n";
    assert_eq!(codes(text), []);
}

#[test]
fn references_come_from_everywhere_in_a_scan() {
    let text = r#"
env: { W: "${{ vars.W }}" }
scans:
  a:
    on: { expr: scans.b.is_available() && vars.E == 'x' }
    env: { S: "${{ secrets.S }}" }
    steps:
      - run: echo ${{ vars.R }}
        if: vars.I == ''
    artifacts:
      - { name: x, paths: [x], if: scans.c.is_available() }
  b: { on: { dispatch: {} }, steps: [ { run: echo } ] }
  c: { on: { dispatch: {} }, steps: [ { run: echo } ] }
"#;
    let parsed = parse("file.yaml", text, TemplatePolicy::Warn).unwrap();
    let references = parsed.workflow.scan("a").unwrap().references();
    assert_eq!(Vec::from_iter(references.scans), ["b", "c"]);
    assert_eq!(Vec::from_iter(references.vars), ["E", "I", "R", "W"]);
    assert_eq!(Vec::from_iter(references.secrets), ["S"]);
}

#[test]
fn no_text_panics() {
    let mut random = Random::new(9);
    let words = [
        "scans", ":", " ", "\n", "  ", "a", "on", "- ", "run", "{", "}", "[", "]", "'", "\"",
        "|\n", ">\n", "&x ", "*x", "<<: ", "? ", "---\n", "cron", "expr", "dispatch", "inputs",
        "steps", "env", "${{", "}}", "!t ", "#", "\t", "\0", "ä", "%", "@", "if", "~",
    ];
    for _ in 0..3_000 {
        let length = random.below(40);
        let text: String = (0..length).map(|_| random.pick(&words)).collect();
        if let Err(diagnostics) = parse("file.yaml", &text, TemplatePolicy::Warn) {
            assert!(!diagnostics.is_empty(), "{text:?}");
            assert!(
                diagnostics
                    .iter()
                    .all(|diagnostic| diagnostic.code != Code::EngineUnavailable),
                "{text:?}"
            );
            assert!(!crate::render(&diagnostics, &text, true).is_empty());
        }
    }
}

/// Valid files with one change at a random place, so that the inner readers are reached, too.
#[test]
fn no_damaged_file_panics() {
    let mut random = Random::new(10);
    let source: Vec<char> = FULL.chars().collect();
    for _ in 0..1_000 {
        let mut text = source.clone();
        for _ in 0..=random.below(3) {
            let at = usize::try_from(random.below(text.len().max(1) as u64)).unwrap();
            match random.below(3) {
                0 if at < text.len() => drop(text.remove(at)),
                0 | 1 => text.insert(
                    at,
                    random
                        .pick(&["{", "}", ":", "\n", " ", "*", "'", "\""])
                        .chars()
                        .next()
                        .unwrap(),
                ),
                _ => text.truncate(at),
            }
        }
        let text: String = text.into_iter().collect();
        if let Err(diagnostics) = parse("file.yaml", &text, TemplatePolicy::Warn) {
            assert!(
                diagnostics
                    .iter()
                    .all(|diagnostic| diagnostic.code != Code::EngineUnavailable),
                "{text:?}"
            );
        }
    }
}

/// The triggers of a file are one record, which must fit into one commit.
#[test]
fn schedules_and_expressions_of_a_file_are_bounded_together() {
    let codes = |count: usize| {
        let scan = |number: usize| {
            format!("  s{number:05}: {{on: {{cron: '* * * * *'}}, steps: [{{run: ls}}]}}\n")
        };
        let scans: String = (0..count).map(scan).collect();
        match parse(
            "file.yaml",
            &format!("scans:\n{scans}"),
            TemplatePolicy::Warn,
        ) {
            Ok(parsed) => {
                let bytes = parsed.workflow.scans().map(Scan::trigger_bytes);
                assert!(bytes.sum::<usize>() <= TRIGGERS_BYTES);
                Vec::new()
            }
            Err(diagnostics) => diagnostics.iter().map(|one| (one.code, one.line)).collect(),
        }
    };
    let most = TRIGGERS_BYTES / 172;
    assert_eq!(most, 5_905);
    assert_eq!(codes(most), []);
    assert_eq!(codes(most + 1), [(Code::TooMany, 5_907)]);
}

/// A job's record has all of its steps and artifacts, and must fit into one commit.
#[test]
fn steps_and_artifacts_of_a_scan_are_bounded() {
    let scan = |steps: usize, artifacts: usize| {
        let steps = "      - run: ls\n".repeat(steps);
        let artifacts: String = (0..artifacts)
            .map(|n| format!("      - {{name: a{n}, paths: [a]}}\n"))
            .collect();
        format!(
            "scans:\n  a:\n    on: {{dispatch: {{}}}}\n    steps:\n{steps}    artifacts:\n{artifacts}"
        )
    };
    let codes = |text: &str| match parse("file.yaml", text, TemplatePolicy::Warn) {
        Ok(_) => Vec::new(),
        Err(diagnostics) => diagnostics.iter().map(|one| (one.code, one.line)).collect(),
    };
    assert_eq!(codes(&scan(1_000, 100)), []);
    assert_eq!(codes(&scan(1_001, 100)), [(Code::TooMany, 4)]);
    assert_eq!(codes(&scan(1, 101)), [(Code::TooMany, 6)]);
}
