//! Errors about names without a value.

use super::{context, evaluate};
use crate::context::Context;
use crate::expression::{Expression, Sandbox, Site};

#[test]
fn a_missing_name_is_reported_with_a_suggestion() {
    for (source, missing) in [
        (
            "scans.host[0].id",
            "`scans.host`; did you mean `scans.hosts`?",
        ),
        (
            "scans['ist'].size()",
            "`scans.ist`; did you mean `scans.1st`?",
        ),
        ("scans.zzz.size()", "`scans.zzz`"),
        ("vars.TARGTE", "`vars.TARGTE`; did you mean `vars.TARGET`?"),
        (
            "inputs.flags",
            "`inputs.flags`; did you mean `inputs.flag`?",
        ),
        (
            "scans.hosts[0].artifacts['host.zip'].size",
            "`artifacts.host.zip`; did you mean `artifacts.hosts.zip`?",
        ),
        ("scans.hosts[0].artifacts.zzz.size", "`artifacts.zzz`"),
        ("{'hosts.zip': 1}['host.zip']", "`host.zip`"),
        (
            "scans.hosts[0].artifacts[vars.TARGET].size",
            "`artifacts.example.org`",
        ),
        // It is unknown which of the two objects lacks the key.
        ("{'a': 7}['b'] == scans.hosts[0].artifacts['b'].size", "`b`"),
        (
            "{'a': 7}[vars.TARGET] == scans.hosts[0].artifacts['example.org'].size",
            "`example.org`",
        ),
        ("{1: 7}[0] == scans.hosts[0].artifacts['0'].size", "`0`"),
        (
            "vars.A == scans.hosts[0].artifacts['vars.A'].checksum",
            "`vars.A`",
        ),
        // A missing name in `has` is not an error.
        (
            "has(vars.zzz) || scans.hosts[0].artifacts.zzz.size > 0",
            "`artifacts.zzz`",
        ),
        ("dyn(scans.hosts[0]).sate", "`sate`"),
        // A reader of the log may not be allowed to list secrets.
        ("secrets.TOKE", "`secrets.TOKE`"),
    ] {
        let message = format!("expression `{source}`: there is no {missing}");
        assert_eq!(evaluate(source), Err(message));
        let expression = Expression::parse(source, Site::Script).unwrap();
        let explained = Sandbox::shared().unwrap().explain(&expression, &context());
        assert_eq!(
            explained.unwrap().result.unwrap_err().to_string(),
            evaluate(source).unwrap_err()
        );
    }
}

#[test]
fn a_name_without_a_value_is_not_an_artifact() {
    let source = "name == scans.hosts[0].artifacts['name'].checksum";
    let expression = Expression::parse(source, Site::Script).unwrap();
    let nameless = Context {
        job: None,
        ..context()
    };
    let result = Sandbox::shared().unwrap().evaluate(&expression, &nameless);
    assert_eq!(
        result.unwrap_err().to_string(),
        format!("expression `{source}`: there is no `name`")
    );
}
