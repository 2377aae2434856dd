//! The commands that work on the language without a daemon. Each transcript in `language/` has the command line,
//! standard output, standard error, and the exit code.

use std::fmt::Write as _;

use crate::everscan::{Run, command, finished};
use crate::snapshot;

/// Runs each command line in the folder of the fixtures, and compares the transcript.
fn check(name: &str, lines: &[&[&str]]) {
    let folder = snapshot::folder("language");
    let mut transcript = String::new();
    for arguments in lines {
        let shown: Vec<String> = arguments.iter().map(|word| quoted(word)).collect();
        let Run {
            code,
            stdout: data,
            stderr: talk,
        } = finished(
            command("")
                .args(*arguments)
                .current_dir(&folder)
                .output()
                .unwrap(),
        );
        writeln!(transcript, "$ everscan {}\n{data}", shown.join(" ")).unwrap();
        for line in talk.lines() {
            writeln!(transcript, "! {line}").unwrap();
        }
        writeln!(transcript, "= {code}\n").unwrap();
    }
    snapshot::check_case(&folder.join("transcripts.txt"), name, &transcript);
}

/// A word as a person would type it.
fn quoted(word: &str) -> String {
    let is_plain = |c: char| c.is_ascii_alphanumeric() || "-_./:".contains(c);
    if word.chars().all(is_plain) {
        word.to_owned()
    } else if word.contains('\'') {
        format!("\"{word}\"")
    } else {
        format!("'{word}'")
    }
}

#[test]
fn schedules_are_described() {
    check(
        "cron-describe",
        &[
            &["cron", "describe", "5 */2 * * *"],
            &["cron", "describe", "30  3 * * 1-5", "--output", "json"],
            &["cron", "describe", "*/45 * * * *"],
            &["cron", "describe", "@hourly"],
            &["cron", "describe", "5/5/5 *-5 1,,2 ? *"],
            &["cron", "describe", "99 3 0 MAY *"],
            &["cron", "describe", "0 0 30 2 *"],
            &["cron", "describe", "*", "*", "*", "*", "*"],
        ],
    );
}

#[test]
fn times_of_schedules_are_listed() {
    let from = &["--from", "2026-03-28T12:00:00Z"];
    let at = |arguments: &[&'static str]| [&["cron", "next"], arguments, from].concat();
    check(
        "cron-next",
        &[
            &at(&["*/20 * * * *"]),
            &at(&["30 2 * * *", "--count", "3", "--timezone", "Europe/Berlin"]),
            &at(&["0 0 29 2 *", "--count", "2", "--output", "json"]),
            &at(&["0 0 * * *", "--timezone", "Europe/Berln"]),
            &at(&["0 0 * * *", "--count", "0"]),
            &at(&["0 0 * *"]),
            &[
                "cron",
                "next",
                "0 0 * * *",
                "--from",
                "9999-12-30T12:00:00Z",
            ],
            &["cron", "next", "0 0 * * *", "--from", "2026-03-28"],
        ],
    );
}

#[test]
fn without_a_time_the_slots_are_after_now() {
    let output = finished(
        command("cron next --count 1")
            .arg("* * * * *")
            .output()
            .unwrap(),
    );
    assert_eq!((output.code, output.stderr.as_str()), (0, ""));
    assert!(
        output.stdout.starts_with("20") && output.stdout.ends_with(":00Z\n"),
        "{}",
        output.stdout
    );
}

#[test]
fn expressions_are_evaluated() {
    let on = &["--context", "context.json"];
    let eval = |arguments: &[&'static str]| [&["expr", "eval"], arguments, on].concat();
    check(
        "expr-eval",
        &[
            &eval(&["scans.build.is_available() && !scans.build.has_diff()"]),
            &eval(&["-1 + size(scans.build)"]),
            &eval(&["name + ' ' + vars.LEVEL"]),
            &eval(&["scans.build.filter(j, j.state == 'succeeded').map(j, j.id)"]),
            &eval(&["{'fast': inputs.fast}", "--output", "yaml"]),
            &eval(&[
                "scans.build.has_diff() || scans.build[0].state == 'failed'",
                "--explain",
            ]),
            &eval(&["size(scans.build) > 2", "--explain", "--output", "json"]),
            &eval(&["vars.MISSING == 'x'"]),
            &eval(&["ok && vars.MISSING == 'x'", "--explain"]),
            &eval(&["scans.build.has_dif()"]),
            &eval(&["1 +"]),
            &eval(&["${{ ok }}"]),
            &eval(&["scans.bild.is_available()"]),
            &eval(&["1.0 / 0.0"]),
            &eval(&["ok ? 1.0 / 0.0 : 2.0", "--explain"]),
            &eval(&["1.0 / 0.0", "--explain", "--output", "json"]),
            &["expr", "eval", "true", "--context", "before.yaml"],
            &["expr", "eval", "true", "--context", "mistyped.json"],
            &["expr", "eval", "true", "--context", "twice.json"],
            &["expr", "eval", "true", "--context", "no-such.json"],
            &["expr", "eval", "true"],
        ],
    );
}

#[test]
fn two_workflows_are_compared_by_meaning() {
    check(
        "workflow-diff",
        &[
            &["workflow", "diff", "before.yaml", "after.yaml"],
            &[
                "workflow",
                "diff",
                "before.yaml",
                "after.yaml",
                "--output",
                "json",
            ],
            &["workflow", "diff", "before.yaml", "before.yaml"],
            &[
                "workflow",
                "diff",
                "before.yaml",
                "before.yaml",
                "--output",
                "json",
            ],
            &["workflow", "diff", "before.yaml", "invalid.yaml"],
            &["workflow", "diff", "before.yaml", "no-such.yaml"],
            &["workflow", "diff", "before.yaml"],
        ],
    );
}

#[test]
fn the_schema_is_the_schema_of_the_language() {
    let output = finished(command("schema").output().unwrap());
    assert_eq!((output.code, output.stderr.as_str()), (0, ""));
    let schema: serde_json::Value = serde_json::from_str(&output.stdout).unwrap();
    assert_eq!(schema, workflow::json_schema());
    let output = finished(command("schema everscan.yaml").output().unwrap());
    let schema: serde_json::Value = serde_json::from_str(&output.stdout).unwrap();
    assert_eq!(schema, workflow::notify::project_schema());
}
