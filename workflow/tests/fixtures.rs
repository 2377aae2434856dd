//! Parses each workflow file of the fixtures, and compares the diagnostics for people and programs with the expected output. The
//! name of a case names its rule. A file that begins with the line `# script_templates: deny` is read under that policy.
//! `UPDATE_FIXTURES=1` writes all outputs; read the difference before you commit it.

#![expect(
    clippy::disallowed_methods,
    reason = "tests lay out files and start the programs they are about"
)]
#![expect(
    clippy::unwrap_used,
    reason = "a test may end where it finds what it does not expect"
)]

#[path = "fixtures/cases.rs"]
mod cases;

use std::fmt::Write as _;
use std::fs;

use cases::{cases, files};
use workflow::{
    Diagnostic, Expect, Expression, Parsed, References, Scan, TemplatePolicy, parse, render,
};

/// Compares the output of each case with the result of `show` for its file.
fn check(folder: &str, show: impl Fn(&str, &str) -> String) {
    let is_update = std::env::var_os("UPDATE_FIXTURES").is_some();
    let mut differing = Vec::new();
    for file in files(&[folder]) {
        let mut updated = String::new();
        for (name, yaml, expected) in cases(&file) {
            let shown = show(&name, &yaml);
            if shown != expected {
                differing.push(format!("{name}:\n{shown}"));
            }
            updated += &format!("==== {name}\n{yaml}==== output\n{shown}");
        }
        if is_update {
            fs::write(&file, updated).unwrap();
        }
    }
    assert!(
        is_update || differing.is_empty(),
        "{}",
        differing.join("\n")
    );
}

#[test]
fn invalid_files_show_all_their_errors() {
    check("invalid", |name, text| {
        match parse(name, text, policy(text)) {
            Ok(_) => panic!("{name} is valid"),
            Err(diagnostics) => shown_to_all(&diagnostics, text),
        }
    });
}

#[test]
fn valid_files_have_this_meaning() {
    check("valid", |name, text| {
        match parse(name, text, policy(text)) {
            Ok(parsed) => summary(&parsed, text),
            Err(diagnostics) => panic!("{}", render(&diagnostics, text, false)),
        }
    });
}

#[test]
fn files_of_repositories_have_these_rules_or_problems() {
    check("project", |name, text| {
        let (rules, diagnostics) = workflow::notify::parse_project(name, text);
        let mut shown = String::new();
        match rules {
            Some(rules) => {
                writeln!(shown, "{} rules", rules.len()).unwrap();
                for rule in rules {
                    writeln!(shown, "{}", serde_json::to_string(&rule).unwrap()).unwrap();
                }
            }
            None => writeln!(shown, "no rules").unwrap(),
        }
        shown + &shown_to_all(&diagnostics, text)
    });
}

/// The set must be readable, so each file is small, and complete, so there are many files.
#[test]
fn there_are_many_cases_and_each_is_small() {
    let files = files(&["invalid", "valid"]);
    let all: Vec<_> = files.iter().flat_map(|file| cases(file)).collect();
    assert!(all.len() >= 269, "{}", all.len());
    for (name, yaml, _) in all {
        let lines = yaml.lines().count();
        assert!(lines <= 80, "{name}: {lines} lines");
    }
}

fn policy(text: &str) -> TemplatePolicy {
    if text.starts_with("# script_templates: deny\n") {
        TemplatePolicy::Deny
    } else {
        TemplatePolicy::Warn
    }
}

/// The diagnostics in the forms for people and for programs.
fn shown_to_all(diagnostics: &[Diagnostic], text: &str) -> String {
    let mut shown = render(diagnostics, text, false);
    for diagnostic in diagnostics {
        writeln!(shown, "{}", serde_json::to_string(diagnostic).unwrap()).unwrap();
    }
    shown
}

fn summary(parsed: &Parsed, text: &str) -> String {
    let mut shown = String::new();
    writeln!(
        shown,
        "workflow {:?} {:?}",
        parsed.workflow.name, parsed.workflow.description
    )
    .unwrap();
    for scan in parsed.workflow.scans() {
        describe(&mut shown, scan).unwrap();
    }
    shown + &shown_to_all(&parsed.warnings, text)
}

fn describe(shown: &mut String, scan: &Scan) -> std::fmt::Result {
    let source =
        |expression: &Option<Expression>| expression.as_ref().map(|it| it.source().to_owned());
    writeln!(shown, "\nscan {}", scan.name)?;
    if let Some(cron) = &scan.on.cron {
        writeln!(
            shown,
            "  cron {cron} ({}) in {}, catch up {:?}",
            cron.describe(),
            scan.on.timezone,
            scan.on.catch_up
        )?;
    }
    if let Some(expr) = &scan.on.expr {
        writeln!(shown, "  expr {expr}, cost {}", expr.cost())?;
    }
    if let Some(callback) = &scan.on.callback {
        writeln!(
            shown,
            "  callback {} at most every {}",
            callback.server, callback.min_interval
        )?;
    }
    if let Some(dispatch) = &scan.on.dispatch {
        writeln!(shown, "  dispatch")?;
        for input in &dispatch.inputs {
            writeln!(
                shown,
                "    {} {:?} required {} default {:?}",
                input.key, input.kind, input.required, input.default
            )?;
        }
    }
    for variable in scan.inherited_env.iter().chain(&scan.env) {
        writeln!(
            shown,
            "  env {}={:?}",
            variable.name,
            variable.value.source()
        )?;
    }
    for step in &scan.steps {
        writeln!(
            shown,
            "  step{} run {:?} shell {:?} if {:?} allow_failure {} timeout {:?}",
            step.name
                .iter()
                .map(|name| format!(" {name}"))
                .collect::<String>(),
            step.run.source(),
            step.shell,
            source(&step.condition),
            step.allow_failure,
            step.timeout,
        )?;
    }
    for artifact in &scan.artifacts {
        writeln!(
            shown,
            "  artifact {} {:?} if {:?} expires_in {:?} upload_on {:?} strict {} notify_on {:?}",
            artifact.name,
            artifact.paths,
            source(&artifact.condition),
            artifact.expires_in,
            artifact.upload_on,
            artifact.strict,
            artifact.notify_on,
        )?;
    }
    writeln!(
        shown,
        "  timeout {:?} retry {:?} overlap {:?}",
        scan.timeout, scan.retry, scan.overlap
    )?;
    writeln!(
        shown,
        "  runs_on {:?} pass_env {:?}",
        scan.runs_on, scan.pass_env
    )?;
    if let Some(permissions) = &scan.permissions {
        writeln!(shown, "  permissions {permissions:?}")?;
    }
    if scan.expect != Expect::default() {
        writeln!(shown, "  {:?}", scan.expect)?;
    }
    let References {
        scans,
        jobs,
        any_scan,
        vars,
        secrets,
        inputs,
        any_input,
        ..
    } = scan.references();
    writeln!(
        shown,
        "  References {{ scans: {scans:?}, jobs: {jobs:?}, any_scan: {any_scan}, vars: {vars:?}, secrets: {secrets:?}, \
         inputs: {inputs:?}, any_input: {any_input} }}"
    )
}
