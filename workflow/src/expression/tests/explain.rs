//! Explanations must agree with the evaluation of the whole expression.

use super::context;
use crate::expression::{Explanation, Expression, Operand, Sandbox, Site};
use crate::random::Random;

/// The explanation of a condition, one line for each part.
fn explained(source: &str) -> String {
    let condition = Expression::parse(source, Site::Condition).unwrap();
    let sandbox = Sandbox::shared().unwrap();
    let explanation = sandbox.explain(&condition, &context()).unwrap();
    let mut text = String::new();
    write_part(&explanation, 0, &mut text);
    text
}

fn write_part(part: &Explanation, depth: usize, text: &mut String) {
    let said = match &part.result {
        Ok(value) => value.to_json().to_string(),
        Err(_) => "error".to_owned(),
    };
    let read = part.jobs.iter().map(|(scan, jobs)| {
        format!(
            " [{}]",
            Vec::from_iter([scan].into_iter().chain(jobs).map(String::as_str)).join(" ")
        )
    });
    let indent = "  ".repeat(depth);
    let read: String = read.collect();
    text.push_str(&format!("{indent}{} = {said}{read}\n", part.text));
    for operand in &part.parts {
        match operand {
            Operand::Evaluated(part) => write_part(part, depth + 1, text),
            Operand::LeftOut(source) => text.push_str(&format!("{indent}  {source} left out\n")),
        }
    }
}

#[test]
fn an_explanation_has_each_part_and_what_was_not_evaluated() {
    let shown = explained("scans.hosts.is_available() && !(vars.TARGET == 'x') || id == '' && ok");
    assert_eq!(
        shown,
        "|| = true\n  \
           && = true\n    \
             scans.hosts.is_available() = true [hosts j2]\n    \
             ! = true\n      \
               vars.TARGET == 'x' = false\n  \
           id == '' && ok left out\n"
    );
}

#[test]
fn an_explanation_has_the_branch_that_was_not_taken() {
    assert_eq!(
        explained("ok ? scans.hosts.has_diff() : id == ''"),
        "?: = true\n  ok = true\n  scans.hosts.has_diff() = true [hosts j2]\n  id == '' left out\n"
    );
    assert_eq!(
        explained("vars.NONE == '' ? ok : id == ''"),
        "?: = error\n  vars.NONE == '' = error\n  ok left out\n  id == '' left out\n"
    );
}

#[test]
fn an_explanation_names_the_jobs_that_each_part_has_read() {
    let shown = explained(
        "scans.hosts[1].state == 'succeeded' && scans.hosts.exists(j, j.state == 'succeeded') \
         && (scans['1st'].size() > 0 || scans.hosts.is_available())",
    );
    let leaves: Vec<&str> = shown
        .lines()
        .map(str::trim)
        .filter(|line| line.contains('['))
        .collect();
    assert_eq!(
        leaves,
        [
            "scans.hosts[1].state == 'succeeded' = true [hosts j2]",
            "scans.hosts.exists(j, j.state == 'succeeded') = true [hosts j1 j2 j3]",
            "scans['1st'].size() > 0 = false [1st]",
            "scans.hosts.is_available() = true [hosts j2]",
        ]
    );
}

#[test]
fn a_part_is_shown_with_its_own_parentheses_only() {
    let leaves = |source: &str| -> Vec<String> {
        let parts = |line: &str| {
            let (text, _) = line.rsplit_once(" = ").or(line.rsplit_once(" left "))?;
            let is_leaf = !["&&", "||", "!", "?:"].contains(&text.trim());
            is_leaf.then(|| text.trim().to_owned())
        };
        explained(source).lines().filter_map(parts).collect()
    };
    for (source, expected) in [
        (
            "(vars.TARGET + name).size() > 0",
            &["(vars.TARGET + name).size() > 0"][..],
        ),
        (
            "((vars.TARGET + name).size() > 0) && (ok)",
            &["(vars.TARGET + name).size() > 0", "ok"],
        ),
        (
            "(((vars.TARGET) + name)).size() > (1 + 2) * 3 || (!(ok && (id == '')))",
            &[
                "(((vars.TARGET) + name)).size() > (1 + 2) * 3",
                "!(ok && (id == ''))",
            ],
        ),
        (
            "!((ok || id == '') && ((name + ')').size() > 3))",
            &["ok", "id == ''", "(name + ')').size() > 3"],
        ),
        (
            "(id != '(') && (('(' + name).size() > 1 ? (ok) : (id + '').size() > 1)",
            &[
                "id != '('",
                "('(' + name).size() > 1",
                "ok",
                "(id + '').size() > 1",
            ],
        ),
        (
            "(scans.hosts.filter(j, (j.state + ')') != '')).size() > 0",
            &["(scans.hosts.filter(j, (j.state + ')') != '')).size() > 0"],
        ),
    ] {
        assert_eq!(leaves(source), expected, "{source}");
    }
}

#[test]
fn a_test_for_a_name_is_shown_as_one() {
    assert_eq!(explained("has(vars.NONE)"), "has(vars.NONE) = false\n");
    assert_eq!(
        explained("ok && !( has (scans.hosts))"),
        "&& = false\n  ok = true\n  ! = false\n    has (scans.hosts) = true [hosts]\n"
    );
}

#[test]
fn a_context_written_by_hand_need_not_name_its_successes_twice() {
    let mut context = context();
    let hosts = context.scans.get_mut("hosts").unwrap();
    hosts.newest_success_ids.clear();
    let condition = Expression::parse("scans.hosts.is_available()", Site::Condition).unwrap();
    let sandbox = Sandbox::shared().unwrap();
    let explanation = sandbox.explain(&condition, &context).unwrap();
    assert_eq!(explanation.jobs["hosts"].iter().collect::<Vec<_>>(), ["j2"]);
}

/// A random condition of the operators that the explanation handles itself.
fn random_condition(random: &mut Random, depth: u32) -> String {
    if depth == 0 || random.below(4) == 0 {
        return random
            .pick(&[
                "ok",
                "inputs.flag",
                "1 / 0 == 1",
                "vars.NONE == ''",
                "id == 'job-1'",
                "scans.hosts.is_available()",
                "dyn(1)",
                "false",
            ])
            .to_owned();
    }
    let mut part = || random_condition(random, depth - 1);
    let (one, two, three) = (part(), part(), part());
    match random.below(4) {
        0 => format!("({one} && {two})"),
        1 => format!("({one} || {two})"),
        2 => format!("!({one})"),
        _ => format!("({one} ? {two} : {three})"),
    }
}

#[test]
fn an_explanation_agrees_with_the_whole_expression() {
    let mut random = Random::new(5);
    let sandbox = Sandbox::shared().unwrap();
    let mut compared = 0;
    while compared < 300 {
        let source = random_condition(&mut random, 4);
        let Ok(condition) = Expression::parse(&source, Site::Script) else {
            continue;
        };
        let whole = sandbox.evaluate(&condition, &context());
        let explained = sandbox.explain(&condition, &context()).unwrap().result;
        match (&whole, &explained) {
            (Err(_), Err(_)) => {}
            _ => assert_eq!(explained, whole, "{source}"),
        }
        compared += 1;
    }
}
