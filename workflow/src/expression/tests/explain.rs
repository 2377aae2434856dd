//! Explanations agree with the evaluation of the whole.

use super::context;
use crate::expression::{Expression, Sandbox, Site, Value};
use crate::random::Random;

#[test]
fn an_explanation_holds_what_was_looked_at() {
    let condition = Expression::parse(
        "scans.hosts.is_available() && !(vars.TARGET == 'x') || id == ''",
        Site::Condition,
    )
    .unwrap();
    let explanation = Sandbox::shared()
        .unwrap()
        .explain(&condition, &context())
        .unwrap();
    assert_eq!(explanation.result, Ok(Value::Bool(true)));
    assert_eq!(explanation.text, "||");
    let [both] = explanation.parts.as_slice() else {
        panic!("{explanation:?}")
    };
    let texts: Vec<&str> = both.parts.iter().map(|part| part.text.as_str()).collect();
    assert_eq!(texts, ["scans.hosts.is_available()", "!"]);
    assert_eq!(both.parts[1].parts[0].text, "vars.TARGET == 'x'");
}

#[test]
fn an_explanation_names_the_jobs_that_each_part_has_read() {
    let condition = Expression::parse(
        "scans.hosts[1].state == 'succeeded' && scans.hosts.exists(j, j.state == 'succeeded') \
         && (scans['1st'].size() > 0 || scans.hosts.has_diff())",
        Site::Condition,
    )
    .unwrap();
    let explanation = Sandbox::shared()
        .unwrap()
        .explain(&condition, &context())
        .unwrap();
    let mut leaves = Vec::new();
    let mut pending = vec![&explanation];
    while let Some(part) = pending.pop() {
        if part.parts.is_empty() {
            let read = part.jobs.iter();
            let read = read
                .map(|(scan, jobs)| format!("{scan} {}", Vec::from_iter(jobs.clone()).join(" ")));
            leaves.push((part.text.as_str(), read.collect::<Vec<_>>().join(", ")));
        }
        pending.extend(part.parts.iter().rev());
    }
    let expected = [
        ("scans.hosts[1].state == 'succeeded'", "hosts j2"),
        (
            "scans.hosts.exists(j, j.state == 'succeeded')",
            "hosts j1 j2 j3",
        ),
        ("scans['1st'].size() > 0", "1st "),
        ("scans.hosts.has_diff()", "hosts "),
    ];
    assert_eq!(leaves, expected.map(|(text, read)| (text, read.to_owned())));
}

/// A random condition of the operators that the explanation walks itself.
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
