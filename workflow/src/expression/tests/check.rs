//! Faults that are found when an expression is loaded, and the results of the check.

use crate::diagnostic::Code;
use crate::expression::{Expression, Operand, Sandbox, Site, Value};
use crate::limits::EXPRESSION_BYTES;

/// The codes and places of an expression's faults.
fn faults(source: &str, site: Site) -> Vec<(Code, String)> {
    match Expression::parse(source, site) {
        Ok(_) => Vec::new(),
        Err(error) => error
            .faults()
            .iter()
            .map(|fault| {
                (
                    fault.code,
                    source.get(fault.range.clone()).unwrap().to_owned(),
                )
            })
            .collect(),
    }
}

#[test]
fn faults_are_found_with_their_place() {
    for (source, code, place) in [
        ("", Code::ExpressionSyntax, ""),
        ("1 +", Code::ExpressionSyntax, ""),
        ("ok &&& ok", Code::ExpressionSyntax, "&"),
        ("nope && ok", Code::UnknownName, "nope"),
        ("scans.a[0].staet == ''", Code::UnknownMember, "staet"),
        ("scans.a.state == ''", Code::UnknownMember, "state"),
        ("project.name == ''", Code::UnknownMember, "name"),
        ("scans.a.hasdiff()", Code::UnknownFunction, "hasdiff"),
        ("type(ok) == bool(ok)", Code::UnknownFunction, "type"),
        ("Thing{a: 1} == null", Code::UnknownName, "{a: 1}"),
        ("vars.A.size == 1", Code::UnknownMember, "size"),
        ("vars == null", Code::DynamicName, "vars"),
        ("secrets[name] == ''", Code::DynamicName, "name"),
        (
            "vars.A.matches(vars.B)",
            Code::ExpressionTooCostly,
            "vars.B",
        ),
        ("vars.A.matches('[')", Code::InvalidPattern, "'['"),
        ("ok == 'yes'", Code::ExpressionType, "ok == 'yes'"),
        ("1 && ok", Code::ExpressionType, "1"),
        ("size(1) == 1", Code::ExpressionType, "size(1)"),
        ("vars.A.all(x, ok)", Code::ExpressionType, "vars.A"),
        ("vars['a-b'] == ''", Code::InvalidName, "'a-b'"),
        ("secrets['1'] == ''", Code::InvalidName, "'1'"),
        ("scans.a[100].id == ''", Code::InvalidValue, "100"),
        ("scans.a[-1].id == ''", Code::InvalidValue, "-1"),
        ("id", Code::ConditionNotBoolean, "id"),
        ("scans.a", Code::ConditionNotBoolean, "scans.a"),
        (
            "scans.a.map(x, x.id)",
            Code::ConditionNotBoolean,
            "scans.a.map(x, x.id)",
        ),
    ] {
        assert_eq!(
            faults(source, Site::Condition),
            [(code, place.to_owned())],
            "{source}"
        );
    }
}

#[test]
fn similar_names_are_suggested() {
    for (source, hint) in [
        ("${{ ok }}", Some("leave `${{` and `}}` out")),
        (" ${{ok}} ", Some("leave `${{` and `}}` out")),
        ("scans.a.size == 1", Some("write `size()`")),
        ("scans.a.siz == 1", Some("did you mean `size()`?")),
        ("scans.a.has_dif", Some("did you mean `has_diff()`?")),
        (
            "scans.a.state == ''",
            Some("the newest job's is `[0].state`"),
        ),
        (
            "scans.a.stat == ''",
            Some("the newest job's is `[0].state`"),
        ),
        ("scans.a.zzz == ''", None),
        ("oks", Some("did you mean `ok`?")),
    ] {
        let error = Expression::parse(source, Site::Question).unwrap_err();
        assert_eq!(error.faults()[0].hint.as_deref(), hint, "{source}");
    }
}

#[test]
fn each_place_offers_its_names() {
    for name in [
        "id",
        "name",
        "secrets.A",
        "inputs.a",
        "string(ok)",
        "string(always)",
    ] {
        let source = format!("{name} != ''");
        assert_eq!(faults(&source, Site::Condition), [], "{source}");
        assert_eq!(faults(&source, Site::Trigger).len(), 1, "{source}");
    }
    for name in [
        "project.id",
        "workflow.id",
        "revision.id",
        "vars.A",
        "scans.a[0].id",
    ] {
        let source = format!("{name} != ''");
        assert_eq!(faults(&source, Site::Trigger), [], "{source}");
    }
}

#[test]
fn a_costly_expression_is_refused() {
    let nested = "scans.a.all(a, scans.a.all(b, scans.a.all(c, a.id == b.id)))";
    assert_eq!(
        faults(nested, Site::Trigger)[0].0,
        Code::ExpressionTooCostly
    );
    let large = "size(scans.a.map(x, vars.A + vars.A)) > 1";
    assert_eq!(faults(large, Site::Trigger)[0].0, Code::ExpressionTooCostly);
    let long = format!("{}1 == 1", " ".repeat(EXPRESSION_BYTES));
    assert_eq!(faults(&long, Site::Trigger)[0].0, Code::ExpressionTooLarge);
    for deep in [
        vec!["1"; 100].join("+") + " == 1",
        format!("dyn(vars.A){}", "[0]".repeat(200)),
        format!("dyn(vars.A){}", ".a".repeat(400)),
        "ok ? ok : ".repeat(80) + "ok",
        format!("{}1{}", "[".repeat(300), "]".repeat(300)),
    ] {
        assert_eq!(
            faults(&deep, Site::Script)[0].0,
            Code::ExpressionTooLarge,
            "{deep}"
        );
    }
    let two =
        "scans.a.exists(a, scans.b.exists(b, a.revision == b.revision && b.state == 'succeeded'))";
    assert_eq!(faults(two, Site::Trigger), [], "two levels are affordable");
}

/// The size of a part with an error is unknown.
#[test]
fn an_error_is_not_also_reported_as_a_cost() {
    for (source, code) in [
        ("scans.a.map(j, j.stat) == []", Code::UnknownMember),
        ("scans.a.map(j, foo) == []", Code::UnknownName),
        ("inputs.map(i, i) == []", Code::DynamicName),
        ("vars.filter(x, true) == []", Code::DynamicName),
    ] {
        let codes: Vec<Code> = faults(source, Site::Condition)
            .into_iter()
            .map(|fault| fault.0)
            .collect();
        assert_eq!(codes, [code], "{source}");
    }
}

#[test]
fn references_are_what_is_named() {
    let source = "scans.a.has_diff() && scans['b'][0].id == vars.V && secrets.S != inputs['i'] && scans.a.all(x, x.id != '')";
    let expression = Expression::parse(source, Site::Condition).unwrap();
    let references = expression.references();
    let names = |names: &std::collections::BTreeSet<String>| {
        names.iter().cloned().collect::<Vec<_>>().join(" ")
    };
    assert_eq!(names(&references.scans), "a b");
    assert_eq!(names(&references.vars), "V");
    assert_eq!(names(&references.secrets), "S");
    assert_eq!(names(&references.inputs), "i");
    assert!(!references.any_scan && !references.any_input);
    assert!(references.woken_by("a") && !references.woken_by("c"));
    let failures = Expression::parse("scans.a.has_failed() || scans.b.has_diff()", Site::Trigger);
    let failures = failures.unwrap();
    assert!(failures.references().woken_by_failure("a"));
    assert!(!failures.references().woken_by_failure("b"));
    assert!(failures.references().woken_by("a"));
    let any = Expression::parse("scans[vars.V].is_available()", Site::Trigger).unwrap();
    assert!(any.references().any_scan && any.references().woken_by("c"));
}

#[test]
fn a_boolean_equals_its_text() {
    let context = super::context();
    let sandbox = Sandbox::shared().unwrap();
    for (source, expected) in [
        ("inputs.flag == 'true'", true),
        ("inputs.flag == \"false\"", false),
        ("inputs.flag != 'true'", false),
        ("'true' == inputs['flag']", true),
        ("(inputs.flag) != 'false' && ok", true),
        (
            "ok && inputs.flag == 'true' || inputs.flag == 'false'",
            true,
        ),
        ("!inputs.flag == 'false'", true),
        ("(inputs.flag ? 'a' : 'b') == 'true'", false),
        ("inputs.flag == 'true' == 'true'", true),
        ("scans.hosts.is_available() == 'true'", true),
        ("(1 == 1) == 'true'", true),
        ("[1, 2].all(x, (x > 0) == 'true')", true),
        ("[1].exists(x, inputs.flag == 'true')", true),
        ("ok == 'true'", true),
        // The kind of these values is known only at evaluation.
        ("(ok ? inputs.flag : 'x') == 'true'", true),
        ("(ok ? inputs.flag : 'x') != 'false'", true),
        ("[inputs.flag, 'x'][0] == 'true'", true),
        ("[inputs.flag, 'x'].exists(x, x == 'true')", true),
        ("['x', 1].map(x, inputs.flag).all(x, x == 'true')", true),
        ("inputs.flag == dyn('true')", true),
        ("dyn(inputs.flag) == 'true'", true),
        ("inputs.flag == dyn('yes')", false),
        // Lists and maps.
        ("inputs.flag in ['false', 'true']", true),
        ("inputs.flag in ['false', 'yes']", false),
        ("inputs.flag in {'true': 1}", true),
        ("'true' in [1, inputs.flag]", true),
        ("!(inputs.flag in ['true'])", false),
        ("[inputs.flag] == ['true']", true),
        ("[inputs.flag, ok] == ['true']", false),
        ("[[1], [inputs.flag]] != [[1], ['false']]", true),
        ("{'a': inputs.flag} == {'a': 'true'}", true),
        ("{'a': inputs.flag} == {'b': 'true'}", false),
        ("{1: ok, 2: ok} == {1u: ok}", false),
        // Two texts.
        ("inputs.flag == inputs.text", false),
        ("vars.TARGET != inputs.flag", true),
        // A text stays what it is.
        ("inputs.text == 'true'", false),
        ("inputs.text != 'true'", true),
        ("vars.TARGET == 'true'", false),
    ] {
        let expression = Expression::parse(source, Site::Condition).unwrap();
        assert_eq!(expression.source(), source);
        assert_eq!(
            sandbox.holds(&expression, &context),
            Ok(expected),
            "{source}"
        );
    }
}

#[test]
fn an_explanation_of_a_boolean_that_was_compared_as_text_shows_the_source() {
    let source = "inputs.flag == 'true' && ok";
    let expression = Expression::parse(source, Site::Condition).unwrap();
    let explanation = Sandbox::shared()
        .unwrap()
        .explain(&expression, &super::context());
    let parts = explanation.unwrap().parts;
    let [Operand::Evaluated(first), Operand::Evaluated(second)] = parts.as_slice() else {
        panic!("{parts:?}")
    };
    assert_eq!(first.text, "inputs.flag == 'true'");
    assert_eq!(
        (&first.result, second.text.as_str()),
        (&Ok(Value::Bool(true)), "ok")
    );
}
