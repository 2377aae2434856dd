//! Problems between scans.

use super::problems;
use crate::diagnostic::Code;
use crate::limits::RENAMES;

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

/// Two scans. `b` has this expression.
fn trigger(expr: &str) -> Vec<Code> {
    let expr = format!("expr: \"{expr}\"");
    let found = reported(&[("a", "dispatch: {}"), ("b", &expr)]);
    found.into_iter().map(|(code, _)| code).collect()
}

#[test]
fn has_failed_names_another_scan() {
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
fn an_expression_that_reads_failures_but_is_not_evaluated_after_one_is_reported() {
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
fn a_former_name_is_unused_and_only_one_scan_claims_it() {
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

/// `changes` reads news. A cycle with it would repeat only while there is news.
#[test]
fn the_example_with_has_news_is_not_an_endless_cycle() {
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
fn a_trigger_with_an_error_counts_as_a_start() {
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
