//! The specification's rules about the language, one test each, so that `docs/evidence/conformance.md` can name the tests. The
//! fixtures show the messages and their places.

use crate::{Checkout, Code, NotifyOn, Severity, TemplatePolicy, UploadOn, Workflow, parse};

/// The codes of a file's errors, in the order of the file.
fn errors(yaml: &str) -> Vec<Code> {
    match parse("test.yaml", yaml, TemplatePolicy::Warn) {
        Ok(_) => Vec::new(),
        Err(diagnostics) => diagnostics
            .iter()
            .filter(|found| found.severity == Severity::Error)
            .map(|found| found.code)
            .collect(),
    }
}

fn valid(yaml: &str) -> Workflow {
    match parse("test.yaml", yaml, TemplatePolicy::Warn) {
        Ok(parsed) => parsed.workflow,
        Err(diagnostics) => panic!("{}", crate::render(&diagnostics, yaml, false)),
    }
}

#[track_caller]
fn check(yaml: &str, expected: &[Code]) {
    assert_eq!(errors(yaml), expected, "{yaml}");
}

/// A workflow whose only scan has these triggers.
fn on(triggers: &str) -> String {
    format!("scans: {{a: {{on: {{{triggers}}}, steps: [{{run: x}}]}}}}")
}

/// A workflow whose only scan has these inputs.
fn inputs(inputs: &str) -> String {
    on(&format!("dispatch: {{inputs: {{{inputs}}}}}"))
}

/// A workflow whose only scan has these other members.
fn scan(members: &str) -> String {
    format!("scans: {{a: {{on: {{dispatch: {{}}}}, steps: [{{run: x}}], {members}}}}}")
}

/// A workflow whose only scan has this step.
fn step(step: &str) -> String {
    format!("scans: {{a: {{on: {{dispatch: {{}}}}, steps: [{{{step}}}]}}}}")
}

/// A workflow whose only scan has an artifact with these members.
fn artifact(members: &str) -> String {
    scan(&format!("artifacts: [{{{members}}}]"))
}

#[test]
fn a_workflow_uses_no_other() {
    check(
        "scans: {a: {on: {dispatch: {}}, steps: [{run: x}]}}\nuses: [other]",
        &[Code::UnknownKey],
    );
    check(
        &on("expr: scans.of_another_file.is_available()"),
        &[Code::UnknownScan],
    );
}

#[test]
fn a_file_has_an_object_of_scans() {
    check("name: x", &[Code::MissingKey]);
    check("scans: {}", &[Code::Empty]);
    check("scans: []", &[Code::WrongType]);
}

#[test]
fn a_scan_name_is_unique() {
    let one = "a: {on: {dispatch: {}}, steps: [{run: x}]}";
    check(&format!("scans: {{{one}, {one}}}"), &[Code::DuplicateKey]);
}

#[test]
fn a_scan_name_has_letters_digits_and_underscores_only() {
    let named = |name: &str| {
        format!("scans: {{'{name}': {{on: {{dispatch: {{}}}}, steps: [{{run: x}}]}}}}")
    };
    for name in ["a", "A_1", "_", "1st"] {
        check(&named(name), &[]);
    }
    for name in ["a-b", "a.b", "a b", "ä", ""] {
        check(&named(name), &[Code::InvalidName]);
    }
}

#[test]
fn a_scan_has_a_trigger() {
    check("scans: {a: {steps: [{run: x}]}}", &[Code::NoTrigger]);
    check(&on(""), &[Code::NoTrigger]);
    for trigger in ["cron: 0 3 * * *", "expr: 'true'", "dispatch: {}"] {
        check(&on(trigger), &[]);
    }
    check(&on("push: {}, dispatch: {}"), &[Code::UnknownKey]);
}

#[test]
fn a_schedule_has_five_fields_with_wildcards_lists_ranges_and_steps() {
    for schedule in ["* * * * *", "0,30 1-5 */2 1-12/3 *"] {
        check(&on(&format!("cron: '{schedule}'")), &[]);
    }
    for schedule in ["* * * *", "0 * * * * *", "@hourly", "* * ? * *"] {
        check(&on(&format!("cron: '{schedule}'")), &[Code::InvalidCron]);
    }
}

#[test]
fn a_trigger_expression_is_cel_that_is_true_or_false() {
    check(&on("expr: 'size([1]) == 1'"), &[]);
    check(&on("expr: 'size([1])'"), &[Code::ConditionNotBoolean]);
    check(&on("expr: 'size(['"), &[Code::ExpressionSyntax]);
}

#[test]
fn an_empty_dispatch_is_written_as_the_empty_object() {
    check(&on("dispatch: {}"), &[]);
    check(&on("dispatch:"), &[Code::NullValue]);
}

#[test]
fn triggers_may_stand_together() {
    check(&on("cron: 0 3 * * *, expr: 'true', dispatch: {}"), &[]);
}

#[test]
fn env_is_an_object_of_strings() {
    check(&scan("env: {A: '1', B: two}"), &[]);
    check(&scan("env: {A: 1}"), &[Code::WrongType]);
    check(&scan("env: [A]"), &[Code::WrongType]);
}

#[test]
fn a_scan_has_one_step_or_more() {
    check("scans: {a: {on: {dispatch: {}}}}", &[Code::MissingKey]);
    check(
        "scans: {a: {on: {dispatch: {}}, steps: []}}",
        &[Code::Empty],
    );
}

#[test]
fn an_input_key_is_unique_and_named_as_a_variable() {
    check(&inputs("a: {}, A: {}"), &[]);
    check(&inputs("a: {}, a: {}"), &[Code::DuplicateKey]);
    for name in ["a-b", "1a", "in"] {
        check(&inputs(&format!("{name}: {{}}")), &[Code::InvalidName]);
    }
}

#[test]
fn an_input_is_a_string_or_a_bool() {
    let workflow = valid(&inputs("a: {}, b: {type: string}, c: {type: bool}"));
    let inputs_of = &workflow
        .scan("a")
        .unwrap()
        .on
        .dispatch
        .as_ref()
        .unwrap()
        .inputs;
    let kinds: Vec<&str> = inputs_of.iter().map(|input| input.kind.name()).collect();
    assert_eq!(kinds, ["string", "string", "bool"]);
    check(&inputs("a: {type: date}"), &[Code::InvalidValue]);
}

#[test]
fn an_input_may_be_a_number_or_a_choice() {
    let defaults = |inputs_of: &str| {
        let workflow = valid(&inputs(inputs_of));
        serde_json::to_value(workflow.scan("a").unwrap().default_inputs()).unwrap()
    };
    assert_eq!(
        defaults(
            "a: {type: number}, b: {type: number, default: 3.0}, c: {type: number, default: '-0.5'}, \
             d: {type: choice, options: [x, y]}, e: {type: choice, options: [x, y], default: y}"
        ),
        serde_json::json!({ "a": 0, "b": 3, "c": -0.5, "d": "x", "e": "y" })
    );
    for wrong in [
        "type: number, default: ''",
        "type: number, default: true",
        "type: number, default: 1e3",
        "type: number, default: 0x10",
        "type: number, default: 1234567890123456",
        "type: choice, options: [x, y], default: z",
        "type: choice, options: [x, ' y']",
        "options: [x]",
        "type: bool, options: ['true']",
    ] {
        check(&inputs(&format!("a: {{{wrong}}}")), &[Code::InvalidValue]);
    }
    let choice = |options: &str| inputs(&format!("a: {{type: choice, options: {options}}}"));
    check(&inputs("a: {type: choice}"), &[Code::MissingKey]);
    check(&choice("[]"), &[Code::Empty]);
    check(&choice("[x, x]"), &[Code::DuplicateName]);
    check(&choice("[1, 2]"), &[Code::WrongType, Code::WrongType]);
    check(&choice("x"), &[Code::WrongType]);
    let many = |count: usize| {
        let options: Vec<String> = (0..count).map(|number| format!("o{number}")).collect();
        choice(&format!("[{}]", options.join(", ")))
    };
    check(&many(100), &[]);
    check(&many(101), &[Code::TooMany]);
}

#[test]
fn a_number_or_a_choice_in_a_script_is_not_free_text() {
    let typed = |members: &str| {
        format!(
            "scans: {{a: {{on: {{dispatch: {{inputs: {{i: {{{members}}}}}}}}}, steps: [{{run: 'x ${{{{ inputs.i }}}}'}}]}}}}"
        )
    };
    let warnings = |members: &str| {
        let parsed = parse("test.yaml", &typed(members), TemplatePolicy::Warn).unwrap();
        parsed.warnings.len()
    };
    assert_eq!(warnings("type: string"), 1);
    assert_eq!(warnings("type: number"), 0);
    assert_eq!(warnings("'type': choice, options: [x, y]"), 0);
}

#[test]
fn an_input_is_optional_by_default() {
    let workflow = valid(&inputs("a: {}, b: {required: false}, c: {required: true}"));
    let inputs_of = &workflow
        .scan("a")
        .unwrap()
        .on
        .dispatch
        .as_ref()
        .unwrap()
        .inputs;
    let required: Vec<bool> = inputs_of.iter().map(|input| input.required).collect();
    assert_eq!(required, [false, false, true]);
}

#[test]
fn a_default_fits_the_type_of_its_input() {
    let workflow = valid(&inputs(
        "a: {}, b: {type: bool}, c: {type: bool, default: 'true'}, d: {default: x}, e: {type: bool, default: true}",
    ));
    let defaults = serde_json::to_value(workflow.scan("a").unwrap().default_inputs()).unwrap();
    assert_eq!(
        defaults,
        serde_json::json!({ "a": "", "b": false, "c": true, "d": "x", "e": true })
    );
    check(
        &inputs("a: {type: bool, default: 'yes'}"),
        &[Code::InvalidValue],
    );
}

#[test]
fn at_most_twenty_inputs_are_declared() {
    let many = |count: usize| {
        let keys: Vec<String> = (0..count).map(|n| format!("i{n}: {{}}")).collect();
        inputs(&keys.join(", "))
    };
    check(&many(20), &[]);
    check(&many(21), &[Code::TooMany]);
}

#[test]
fn an_artifact_name_is_unique_and_plain() {
    for name in ["a", "a.zip", "A-1_b.c"] {
        check(&artifact(&format!("name: {name}, paths: [x]")), &[]);
    }
    for name in ["'a b'", "a/b", "ä", "'..'"] {
        check(
            &artifact(&format!("name: {name}, paths: [x]")),
            &[Code::InvalidName],
        );
    }
    check(
        &scan("artifacts: [{name: a, paths: [x]}, {name: a, paths: [y]}]"),
        &[Code::DuplicateName],
    );
}

#[test]
fn artifact_paths_are_relative_and_no_patterns() {
    check(&artifact("name: a, paths: [out, out/all.txt]"), &[]);
    check(
        &artifact("name: a, paths: ['glob:out/**/*.txt', 'glob:{a,b}/[0-9]?']"),
        &[],
    );
    for path in [
        "/etc/passwd",
        "../out",
        "'*.txt'",
        "'out/?'",
        "'glob:'",
        "'glob:/etc/*'",
        "'glob:../*'",
        "'glob:a/../b*'",
        "'glob:[a'",
    ] {
        check(
            &artifact(&format!("name: a, paths: [{path}]")),
            &[Code::InvalidPath],
        );
    }
}

#[test]
fn an_artifact_may_have_a_condition_a_retention_and_notifications() {
    check(
        &artifact("name: a, paths: [x], if: ok, expires_in: 1d"),
        &[],
    );
    check(
        &artifact("name: a, paths: [x], if: '1'"),
        &[Code::ConditionNotBoolean],
    );
    for duration in ["1h", "30m", "1d"] {
        check(
            &artifact(&format!("name: a, paths: [x], expires_in: {duration}")),
            &[],
        );
    }
    check(
        &artifact("name: a, paths: [x], expires_in: soon"),
        &[Code::InvalidDuration],
    );
    for (word, meaning) in [
        ("diff", NotifyOn::Diff),
        ("always", NotifyOn::Always),
        ("never", NotifyOn::Never),
    ] {
        let workflow = valid(&artifact(&format!(
            "name: a, paths: [x], notify_on: {word}"
        )));
        assert_eq!(workflow.scan("a").unwrap().artifacts[0].notify_on, meaning);
    }
    check(
        &artifact("name: a, paths: [x], notify_on: sometimes"),
        &[Code::InvalidValue],
    );
}

#[test]
fn an_artifact_is_stored_after_a_success_by_default() {
    let upload_on = |members: &str| {
        let workflow = valid(&artifact(&format!("name: a, paths: [x]{members}")));
        workflow.scan("a").unwrap().artifacts[0].upload_on
    };
    assert_eq!(upload_on(""), UploadOn::Success);
    for (word, meaning) in [
        ("success", UploadOn::Success),
        ("failure", UploadOn::Failure),
        ("always", UploadOn::Always),
    ] {
        assert_eq!(upload_on(&format!(", upload_on: {word}")), meaning);
    }
    check(
        &artifact("name: a, paths: [x], upload_on: cancel"),
        &[Code::InvalidValue],
    );
}

#[test]
fn an_artifact_leaves_out_what_cannot_be_packed_unless_it_is_strict() {
    let is_strict = |members: &str| {
        let workflow = valid(&artifact(&format!("name: a, paths: [x]{members}")));
        workflow.scan("a").unwrap().artifacts[0].strict
    };
    assert!(!is_strict("") && !is_strict(", strict: false"));
    assert!(is_strict(", strict: true"));
    check(
        &artifact("name: a, paths: [x], strict: 'true'"),
        &[Code::WrongType],
    );
}

#[test]
fn uploads_were_replaced_by_artifacts() {
    check(&scan("uploads: [x]"), &[Code::ReplacedKey]);
}

#[test]
fn a_step_runs_a_script_with_templates() {
    check(&step("run: 'echo ${{ vars.A }}'"), &[]);
    check(&step("run: 'echo ${{ vars.A'"), &[Code::UnclosedTemplate]);
    check(&step("if: 'true'"), &[Code::MissingKey]);
}

#[test]
fn a_shell_is_split_into_words() {
    let workflow = valid(&step("run: x, shell: \"env -i 'a b' sh\""));
    let shell = workflow.scan("a").unwrap().steps[0].shell.as_ref().unwrap();
    assert_eq!(shell, &["env", "-i", "a b", "sh"]);
    check(&step("run: x, shell: \"sh 'a\""), &[Code::InvalidShell]);
}

#[test]
fn a_step_may_have_a_condition_and_be_allowed_to_fail() {
    let workflow = valid(&step("run: x, if: always, allow_failure: true"));
    let step_of = &workflow.scan("a").unwrap().steps[0];
    assert!(step_of.allow_failure && step_of.condition.is_some());
    assert!(!valid(&step("run: x")).scan("a").unwrap().steps[0].allow_failure);
    check(&step("run: x, if: '1'"), &[Code::ConditionNotBoolean]);
    check(&step("run: x, allow_failure: 'true'"), &[Code::WrongType]);
}

#[test]
fn a_step_may_have_a_name_of_its_own() {
    let steps = |steps: &str| format!("scans: {{a: {{on: {{dispatch: {{}}}}, steps: [{steps}]}}}}");
    check(
        &steps("{run: x, name: a}, {run: x}, {run: x, name: B_2}"),
        &[],
    );
    check(
        &steps("{run: x, name: a}, {run: x, name: a}"),
        &[Code::DuplicateName],
    );
    for name in ["build it", "a-b", "1st", "in", "''"] {
        check(
            &steps(&format!("{{run: x, name: {name}}}")),
            &[Code::InvalidName],
        );
    }
    let workflow = valid(&steps("{run: x, name: a}"));
    let step = &workflow.scan("a").unwrap().steps[0];
    assert_eq!(step.name.as_deref(), Some("a"));
}

#[test]
fn templates_stand_in_run_and_env_only() {
    check(&scan("env: {A: '${{ vars.A }}'}"), &[]);
    check(
        &artifact("name: a, paths: [x], if: '${{ ok }}'"),
        &[Code::ExpressionSyntax],
    );
    check(&on("expr: '${{ true }}'"), &[Code::ExpressionSyntax]);
}

#[test]
fn a_script_with_a_colon_needs_quotes_or_a_block() {
    let run = |run: &str| {
        format!("scans:\n  a:\n    on: {{dispatch: {{}}}}\n    steps:\n      - run: {run}\n")
    };
    check(&run("echo error: none"), &[Code::Syntax]);
    check(&run("|\n          echo error: none"), &[]);
    check(&run("'echo error: none'"), &[]);
}

#[test]
fn permissions_are_scopes_that_a_job_may_have() {
    let permissions = |list: &str| scan(&format!("permissions: {list}"));
    for list in [
        "[]",
        "[job:read]",
        "[callback:own]",
        "[dispatch, blob:read, blob:write]",
    ] {
        check(&permissions(list), &[]);
    }
    for scope in [
        "admin",
        "metrics",
        "secret:write",
        "token:write",
        "runner:read",
        "runner:write",
        "member:write",
        "notify:write",
        "project:write",
        "callback:read",
        "callback:write",
        "job:red",
    ] {
        check(&permissions(&format!("[{scope}]")), &[Code::InvalidName]);
    }
    check(&permissions("[job:read, job:read]"), &[Code::DuplicateName]);
    check(&permissions("job:read"), &[Code::WrongType]);
    check(&permissions("{job: read}"), &[Code::WrongType]);
    let digest = |list: &str| valid(&permissions(list)).scan("a").unwrap().digest();
    assert_eq!(
        digest("[dispatch, job:read]"),
        digest("[job:read, dispatch]")
    );
}

#[test]
fn a_scan_names_one_callback_server() {
    let callback = |value: &str| scan(&format!("callback: {value}"));
    let workflow = valid(&callback("shop"));
    let named = workflow.scan("a").unwrap().callback.clone();
    assert_eq!(named.unwrap().as_str(), "shop");
    check(&callback("''"), &[Code::InvalidName]);
    check(&callback("'a b'"), &[Code::InvalidName]);
    for value in ["[shop]", "{server: shop}", "true", "3"] {
        check(&callback(value), &[Code::WrongType]);
    }
}

#[test]
fn log_limits() {
    let scan = |limit: &str| {
        format!(
            "scans: {{a: {{on: {{dispatch: {{}}}}, steps: [{{run: make}}], log_limit: {limit}}}}}"
        )
    };
    for limit in ["10MiB", "500KiB", "1GiB", "1000", "'2 TiB'"] {
        check(&scan(limit), &[]);
    }
    for limit in ["0", "0MiB", "500KB", "much", "-1", "1.5MiB", "''"] {
        check(&scan(limit), &[Code::InvalidValue]);
    }
    check(&scan("[1]"), &[Code::WrongType]);
}

#[test]
fn a_checkout_is_true_or_a_list_of_plain_paths() {
    let checkout = |value: &str| scan(&format!("checkout: {value}"));
    let read = |value: &str| {
        let workflow = valid(&checkout(value));
        workflow.scan("a").unwrap().checkout.clone()
    };
    assert_eq!(read("true"), Some(Checkout::All));
    assert_eq!(read("false"), None);
    let paths = vec!["scripts".to_owned(), "a/b.sh".to_owned()];
    assert_eq!(read("[scripts/, ./a/b.sh]"), Some(Checkout::Paths(paths)));
    for value in ["yes", "scripts", "3", "{paths: [a]}", "[3]"] {
        check(&checkout(value), &[Code::WrongType]);
    }
    check(&checkout("[]"), &[Code::Empty]);
    check(&checkout("[a, a/]"), &[Code::DuplicateName]);
    for path in ["/etc", "..", "a/../b", "~/a", "'*.sh'", "a//b", "."] {
        check(&checkout(&format!("[{path}]")), &[Code::InvalidPath]);
    }
    check(
        &checkout(&format!("[{}]", "a,".repeat(101))),
        &[Code::TooMany],
    );
    let digest = |value: &str| valid(&checkout(value)).scan("a").unwrap().digest();
    assert_eq!(digest("[a, b]"), digest("[b, a]"));
    assert_eq!(
        digest("false"),
        valid(&scan("env: {}")).scan("a").unwrap().digest()
    );
}
