//! The most frequent mistakes, and their messages.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use crate::diagnostic::Code;
use crate::expression::compile::compile;
use crate::expression::error::Fault;
use crate::expression::site::{Names, Site};
use crate::expression::syntax::AS_DOUBLES;

/// The only fault of an expression within a workflow with two scans and an input.
fn fault(source: &str, site: Site) -> Fault {
    let scans = ["fetch", "my_scan"].map(|name| (name.to_owned(), BTreeSet::new()));
    let names = Names {
        scans: Some(Arc::new(BTreeMap::from(scans))),
        inputs: Some(BTreeMap::from([("my_in".to_owned(), None)])),
        ..Names::default()
    };
    let Err(faults) = compile(source, site, &names) else {
        panic!("{source} is taken");
    };
    assert_eq!(faults.len(), 1, "{source}: {faults:?}");
    faults.into_iter().next().unwrap()
}

/// The faulty part of an expression, with message and hint.
fn fault_of(source: &str) -> (Code, &str, String, String) {
    let fault = fault(source, Site::Question);
    let place = source.get(fault.range).unwrap();
    let hint = fault.hint.unwrap_or_default();
    (fault.code, place, fault.message, hint)
}

#[test]
fn a_choice_without_its_second_branch_is_reported_where_it_ends() {
    for (source, place) in [("true ? ok", ""), ("(ok ? ok)", ")")] {
        let (code, found, message, hint) = fault_of(source);
        assert_eq!((code, found), (Code::ExpressionSyntax, place), "{source}");
        assert_eq!(
            message,
            "`?` needs `:` and what the expression yields otherwise"
        );
        assert_eq!(hint, "write `condition ? a : b`");
    }
    let (_, place, _, hint) = fault_of("ok ? ok ? 1 : 2 : 3");
    assert_eq!(
        (place, &*hint),
        ("?", "put the inner `?:` into parentheses")
    );
    let fault = fault("true ? ok", Site::Question);
    assert_eq!(fault.range, 9..9);
    // The `:` exists, but a part before it is missing.
    for source in ["ok ? 1 + : 2", "ok ? : 1", "ok ? 'x' == : ok"] {
        let (_, place, message, _) = fault_of(source);
        assert_eq!((place, &*message), (":", "unexpected `:`"), "{source}");
    }
    for source in ["ok ? 1 +", "ok ? 1 :", "{'a': 1, 'b'"] {
        assert_eq!(
            fault_of(source).2,
            "the expression ends too early",
            "{source}"
        );
    }
}

#[test]
fn an_unknown_escape_is_reported_without_the_quotes_around_it() {
    for (source, place) in [
        (r#""\q""#, r"\q"),
        (r#""\ud800""#, r"\u"),
        (r"name == 'a\d' && ok", r"\d"),
        (r"'\400'", r"\4"),
        (r"b'\ud800'", r"\u"),
    ] {
        let (code, found, message, hint) = fault_of(source);
        assert_eq!((code, found), (Code::ExpressionSyntax, place), "{source}");
        assert_eq!(message, format!("`{place}` is not a known escape"));
        assert!(hint.starts_with(r"known are `\n`"), "{hint}");
    }
    for source in ["'abc", r"'a\q", "name == \"a\n\""] {
        assert_eq!(fault_of(source).2, "a string is not closed", "{source}");
    }
}

#[test]
fn numbers_have_a_range() {
    for (source, place, hint) in [
        (
            "99999999999999999999999",
            "99999999999999999999999",
            "whole numbers are from -9223372036854775808 to 9223372036854775807",
        ),
        (
            "1 + 1.5e400",
            "1.5e400",
            "the largest number is about 1.8e308",
        ),
        (
            "18446744073709551616u",
            "18446744073709551616u",
            "numbers with `u` are from 0 to 18446744073709551615",
        ),
    ] {
        let (code, found, message, reported) = fault_of(source);
        assert_eq!((code, found), (Code::ExpressionSyntax, place), "{source}");
        assert_eq!(message, "the number is out of range");
        assert_eq!(reported, hint);
    }
}

#[test]
fn integers_and_decimals_meet_with_a_hint() {
    let (_, _, message, hint) = fault_of("1 + 1.0");
    assert_eq!(message, "`+` does not take a number and a number");
    assert_eq!(hint, AS_DOUBLES);
}

#[test]
fn the_number_of_values_of_a_function_is_reported() {
    for (source, message) in [
        ("size()", "`size` takes one value"),
        ("name.matches()", "`matches` takes one value"),
        ("matches(name)", "`matches` takes two values"),
        (
            "scans.fetch.has_diff('a', 'b')",
            "`has_diff` takes no value or one value",
        ),
        (
            "scans.fetch.is_available(1)",
            "`is_available` takes no value",
        ),
        ("size(1)", "`size` does not take a number"),
    ] {
        let (code, _, reported, _) = fault_of(source);
        assert_eq!(
            (code, &*reported),
            (Code::ExpressionType, message),
            "{source}"
        );
    }
}

#[test]
fn a_name_that_a_dot_cannot_reach_is_written_in_brackets() {
    for (source, name) in [
        ("scans.1st.has_diff()", "1st"),
        ("ok && scans.2e4[0].id == ''", "2e4"),
        ("scans.in.has_diff()", "in"),
        ("scans.in", "in"),
        ("scans.true.size() > 0", "true"),
    ] {
        let (code, place, message, hint) = fault_of(source);
        assert_eq!((code, place), (Code::ExpressionSyntax, name), "{source}");
        assert_eq!(message, format!("`{name}` cannot follow a dot"));
        assert_eq!(hint, format!("write `scans[\"{name}\"]`"));
    }
    for source in ["scans.fetch'x'", "scans.fetch 1"] {
        assert!(fault_of(source).2.starts_with("unexpected `"), "{source}");
    }
}

#[test]
fn a_hyphen_is_also_reported_before_a_reserved_word() {
    for (source, name, hint) in [
        ("vars.my-var", "my-var", "names are letters, digits and `_`"),
        (
            "secrets.my-if == ''",
            "my-if",
            "names are letters, digits and `_`",
        ),
        ("inputs.my-in", "my-in", "did you mean `inputs.my_in`?"),
        (
            "scans.in-a.size()",
            "in-a",
            "names are letters, digits and `_`",
        ),
        (
            "scans.my-scan.size() > 1",
            "my-scan",
            "did you mean `scans.my_scan`?",
        ),
        (
            "inputs.my-1st",
            "my-1st",
            "names are letters, digits and `_`",
        ),
    ] {
        let (code, place, _, reported) = fault_of(source);
        assert_eq!((code, place), (Code::HyphenatedName, name), "{source}");
        assert_eq!(reported, hint, "{source}");
    }
}

#[test]
fn words_of_other_languages_get_a_hint() {
    for (source, place, hint) in [
        ("not ok", "not", "write `!`, as in `!ok`"),
        ("not (ok)", "not", "write `!`, as in `!ok`"),
        ("name <> ''", "<>", "write `!=`"),
        ("ok and ok", "and", "write `&&`"),
        ("success()", "success", "write `ok`"),
        (
            "failure() && ok",
            "failure",
            "write `!ok`; YAML needs quotes around it: `\"!ok\"`",
        ),
        ("always()", "always", "write `always` without parentheses"),
    ] {
        let (_, found, _, reported) = fault_of(source);
        assert_eq!((found, &*reported), (place, hint), "{source}");
    }
    assert_eq!(fault("success()", Site::Trigger).hint, None);
}

#[test]
fn an_unknown_name_is_reported_with_the_known_names() {
    let all = "there are `id`, `name`, `scans`, `project`, `workflow`, `revision`, `vars`, `secrets`, `inputs`, `steps`, `callback`, `ok`, `always`";
    for (source, hint) in [
        ("project.name", "it has `id`"),
        ("project.idd", "did you mean `id`?"),
        (
            "scans.fetch[0].artifacts['a'].zzz",
            "it has `checksum`, `size`",
        ),
        ("fetch.is_available()", "did you mean `scans.fetch`?"),
        ("my_in", "did you mean `inputs.my_in`?"),
        (
            "scans.fetch[0].state == succeeded",
            "a string has quotes: `'succeeded'`",
        ),
        ("high != vars.LEVEL", "a string has quotes: `'high'`"),
        ("name == fetch", "did you mean `scans.fetch`?"),
        ("zzz == 1", all),
        ("oks", "did you mean `ok`?"),
        ("var.LEVEL == 'x'", "did you mean `vars.LEVEL`?"),
        ("secret.KEY != ''", "did you mean `secrets.KEY`?"),
        ("input.my_in == 'x'", "did you mean `inputs.my_in`?"),
        ("scan.fetch.is_available()", "did you mean `scans.fetch`?"),
        (
            "scans.fetch.exists(job, var.A == 'x')",
            "did you mean `vars.A`?",
        ),
        ("projects.id == 'x'", "did you mean `project`?"),
    ] {
        assert_eq!(fault_of(source).3, hint, "{source}");
    }
    let inside = fault_of("scans.fetch.exists(job, zzz)").3;
    assert_eq!(inside, format!("{all}, `job`"));
    let var = fault("var.LEVEL == 'x'", Site::Trigger);
    assert_eq!(var.hint.as_deref(), Some("did you mean `vars.LEVEL`?"));
    let trigger = fault("my_in", Site::Trigger).hint;
    let offered = "there are `scans`, `project`, `workflow`, `revision`, `vars`";
    assert_eq!(trigger.as_deref(), Some(offered));
}
