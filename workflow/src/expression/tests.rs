mod check;
mod engine;
mod explain;
mod missing;
mod mistakes;
mod news;

use std::collections::BTreeMap;

use chrono::{DateTime, Utc};

use super::{EvaluationError, Expression, Sandbox, Site, Value, should_run};
use crate::context::{
    ArtifactSummary, CallbackSummary, Context, JobIdentity, JobSummary, ScanHistory, StepSummary,
};
use crate::dispatch::InputValue;
use crate::limits::HISTORY_JOBS;

fn time(text: &str) -> DateTime<Utc> {
    text.parse().unwrap()
}

fn job(id: &str, state: &str) -> JobSummary {
    JobSummary {
        id: id.to_owned(),
        state: state.to_owned(),
        trigger: "cron".to_owned(),
        revision: "r1".to_owned(),
        created_at: time("2026-11-20T10:00:00Z"),
        started_at: Some(time("2026-11-20T10:00:05Z")),
        finished_at: None,
        artifacts: BTreeMap::from([(
            "hosts.zip".to_owned(),
            ArtifactSummary {
                checksum: "c1".to_owned(),
                size: 7,
            },
        )]),
        outputs: BTreeMap::from([("n".to_owned(), id.to_owned())]),
    }
}

fn context() -> Context {
    let hosts = ScanHistory {
        size: 3,
        jobs: vec![
            job("j3", "running"),
            job("j2", "succeeded"),
            job("j1", "failed"),
        ],
        available: true,
        failed: true,
        successes: 1,
        newest_successes: vec![BTreeMap::new()],
        newest_success_ids: vec!["j2".to_owned()],
        news: None,
    };
    let long = ScanHistory {
        size: 5_000,
        jobs: (0..HISTORY_JOBS)
            .map(|number| job(&format!("n{number}"), "failed"))
            .chain([job("old", "succeeded")])
            .collect(),
        successes: 2,
        newest_successes: vec![BTreeMap::new(); 2],
        ..ScanHistory::default()
    };
    Context {
        job: Some(JobIdentity {
            id: "job-1".to_owned(),
            name: "hosts".to_owned(),
        }),
        project: "p1".to_owned(),
        workflow: "w1".to_owned(),
        revision: "r1".to_owned(),
        vars: BTreeMap::from([("TARGET".to_owned(), "example.org".to_owned())]),
        secrets: BTreeMap::from([("TOKEN".to_owned(), "hunter2".to_owned())]),
        inputs: BTreeMap::from([
            ("text".to_owned(), InputValue::Text("a".to_owned())),
            ("flag".to_owned(), InputValue::Bool(true)),
        ]),
        callback: CallbackSummary {
            server: "shop".to_owned(),
            count: 2,
            first: 3,
            last: 5,
            types: vec!["dns".to_owned(), "http".to_owned()],
            job: "job-0".to_owned(),
        },
        steps: BTreeMap::from([(
            "first".to_owned(),
            StepSummary {
                outputs: BTreeMap::from([("n".to_owned(), "3".to_owned())]),
            },
        )]),
        scans: BTreeMap::from([
            ("hosts".to_owned(), hosts),
            ("long".to_owned(), long),
            ("1st".to_owned(), ScanHistory::default()),
        ]),
        ok: true,
    }
}

fn evaluate(source: &str) -> Result<Value, String> {
    let expression = Expression::parse(source, Site::Script).map_err(|error| error.to_string())?;
    let sandbox = Sandbox::shared().unwrap();
    sandbox
        .evaluate(&expression, &context())
        .map_err(|error| error.to_string())
}

fn text(text: &str) -> Result<Value, String> {
    Ok(Value::Text(text.to_owned()))
}

#[test]
fn names_stand_for_what_the_context_holds() {
    for (source, expected) in [
        ("id", text("job-1")),
        ("name", text("hosts")),
        ("project.id + workflow.id + revision.id", text("p1w1r1")),
        ("vars.TARGET", text("example.org")),
        ("vars['TARGET']", text("example.org")),
        ("secrets.TOKEN", text("hunter2")),
        ("inputs.text", text("a")),
        ("inputs.flag", Ok(Value::Bool(true))),
        ("ok && always", Ok(Value::Bool(true))),
        ("callback.server + callback.job", text("shopjob-0")),
        (
            "callback.count + callback.last - callback.first",
            Ok(Value::Int(4)),
        ),
        (
            "'http' in callback.types && callback.types[0] == 'dns' && callback.types.size() == 2",
            Ok(Value::Bool(true)),
        ),
        (
            "has(vars.TARGET) && !has(vars.OTHER)",
            Ok(Value::Bool(true)),
        ),
        (
            "'TARGET' in vars && !('OTHER' in vars)",
            Ok(Value::Bool(true)),
        ),
        ("has(vars.OTHER) ? vars.OTHER : 'default'", text("default")),
        (
            "vars.OTHER",
            Err("expression `vars.OTHER`: there is no `vars.OTHER`".to_owned()),
        ),
        ("has(vars.TARGTE)", Ok(Value::Bool(false))),
    ] {
        assert_eq!(evaluate(source), expected, "{source}");
    }
}

#[test]
fn scans_are_lists_of_jobs_with_answers() {
    for (source, expected) in [
        ("scans.hosts[0].id", text("j3")),
        (
            "scans.hosts.filter(j, j.state == 'succeeded')[0].id",
            text("j2"),
        ),
        ("scans[name][1].id", text("j2")),
        (
            "size(scans.hosts) == scans.hosts.size()",
            Ok(Value::Bool(true)),
        ),
        ("scans.hosts.size()", Ok(Value::Int(3))),
        (
            "scans.hosts.is_available() && scans.hosts.has_diff()",
            Ok(Value::Bool(true)),
        ),
        ("scans['1st'].is_available()", Ok(Value::Bool(false))),
        ("scans.long.has_diff('x.zip')", Ok(Value::Bool(false))),
        ("scans.hosts[0].artifacts['hosts.zip'].checksum", text("c1")),
        (
            "scans.hosts[0].artifacts['hosts.zip'].size",
            Ok(Value::Int(7)),
        ),
        (
            "scans.hosts[0].created_at < scans.hosts[0].started_at",
            Ok(Value::Bool(true)),
        ),
        ("scans.hosts[0].finished_at == null", Ok(Value::Bool(true))),
        ("scans.hosts[0] == scans.hosts[0]", Ok(Value::Bool(true))),
        (
            "scans.hosts.exists_one(j, j.state == 'failed')",
            Ok(Value::Bool(true)),
        ),
        ("scans.hosts.map(j, j.id).size()", Ok(Value::Int(3))),
        ("1 in [2, 1.0]", Ok(Value::Bool(true))),
        (
            "1 in dyn(2)",
            Err("expression `1 in dyn(2)`: `in` takes a list or a map on its right".to_owned()),
        ),
    ] {
        assert_eq!(evaluate(source), expected, "{source}");
    }
}

#[test]
fn the_bounds_of_a_history_are_reported_in_words() {
    let with = |size: u64| {
        let mut context = context();
        let hosts = context.scans.get_mut("hosts").unwrap();
        hosts.size = size;
        hosts.jobs.truncate(usize::try_from(size).unwrap());
        let expression = Expression::parse("scans.hosts[7].id", Site::Script).unwrap();
        let result = Sandbox::shared().unwrap().evaluate(&expression, &context);
        result.unwrap_err().to_string()
    };
    for (size, reported) in [
        (0, "there is no job"),
        (1, "there is 1 job"),
        (2, "there are 2 jobs"),
    ] {
        let reported = format!("expression `scans.hosts[7].id`: scans.hosts[7]: {reported}");
        assert_eq!(with(size), reported);
    }
}

#[test]
fn only_numbers_that_json_has_fit_into_it() {
    for (source, fits) in [
        ("1.5", true),
        ("[1.0, 2.0]", true),
        ("1.0 / 0.0", false),
        ("-1.0 / 0.0", false),
        ("0.0 / 0.0", false),
        ("[[1.0 / 0.0]]", false),
        ("{'a': 1.0 / 0.0}", false),
        ("string(1.0 / 0.0)", true),
        ("1.0 / 0.0 > 5.0", true),
    ] {
        let expression = Expression::parse(source, Site::Question).unwrap();
        let value = Sandbox::shared().unwrap().evaluate(&expression, &context());
        assert_eq!(value.unwrap().fits_json(), fits, "{source}");
    }
}

#[test]
fn long_histories_are_counted_whole_and_read_in_part() {
    assert_eq!(evaluate("scans.long.size()"), Ok(Value::Int(5_000)));
    assert_eq!(evaluate("scans.long[99].id"), text("n99"));
    assert_eq!(
        evaluate("scans.long[99 + 1].id"),
        Err("expression `scans.long[99 + 1].id`: scans.long[100]: only the newest 100 jobs can be read".to_owned())
    );
    assert_eq!(
        evaluate("scans.hosts[3].id"),
        Err("expression `scans.hosts[3].id`: scans.hosts[3]: there are 3 jobs".to_owned())
    );
    assert!(evaluate("scans.hosts[0 - 1].id").is_err());
    assert_eq!(
        evaluate("scans.long.filter(j, j.state == 'succeeded')[0].id"),
        text("old")
    );
}

#[test]
fn a_scan_as_a_result_is_its_list_of_jobs() {
    let expression = Expression::parse("dyn(scans.hosts)", Site::Script).unwrap();
    let value = Sandbox::shared()
        .unwrap()
        .evaluate(&expression, &context())
        .unwrap();
    assert_eq!(value.to_json()[1]["id"], "j2");
    assert_eq!(value.to_json()[1]["artifacts"]["hosts.zip"]["size"], 7);
}

#[test]
fn errors_do_not_show_the_values_of_operands() {
    let shown = evaluate("dyn(secrets.TOKEN) + 1").unwrap_err();
    assert!(!shown.contains("hunter2"), "{shown}");
}

#[test]
fn outputs_are_texts_by_key() {
    for (source, expected) in [
        ("steps.first.outputs.n", Value::Text("3".to_owned())),
        ("steps['first'].outputs['n'] == '3'", Value::Bool(true)),
        ("has(steps.first.outputs.m)", Value::Bool(false)),
        (
            "'n' in steps.first.outputs && 'first' in steps",
            Value::Bool(true),
        ),
        ("size(steps.first.outputs)", Value::Int(1)),
        ("int(steps.first.outputs.n) + 1", Value::Int(4)),
        ("scans.hosts[0].outputs.n", Value::Text("j3".to_owned())),
        (
            "scans.hosts.filter(j, j.outputs.n == 'j1')[0].id",
            Value::Text("j1".to_owned()),
        ),
    ] {
        assert_eq!(evaluate(source), Ok(expected), "{source}");
    }
    for source in ["steps.first.outputs.gone", "scans.hosts[0].outputs.gone"] {
        let error = evaluate(source).unwrap_err();
        assert!(error.contains("there is no `gone`"), "{error}");
    }
}

#[test]
fn only_what_may_read_outputs_has_them_in_its_context() {
    for (source, expected) in [
        ("scans.hosts[0].outputs.n == 'x'", true),
        ("scans.hosts[0]['outputs'].n == 'x'", true),
        ("scans.hosts.exists(j, has(j.outputs.n))", true),
        ("scans.hosts[0].state == 'outputs'", false),
        ("scans.hosts.has_diff()", false),
    ] {
        let expression = Expression::parse(source, Site::Condition).unwrap();
        let narrowed = context().narrowed(expression.references());
        let jobs = narrowed.scans["hosts"].jobs.iter();
        let has_some = jobs.clone().any(|job| !job.outputs.is_empty());
        assert_eq!(has_some, expected, "{source}");
    }
}

#[test]
fn a_number_input_counts_with_integers_if_it_has_no_fraction() {
    let number = |text: &str| InputValue::Number(text.parse().unwrap());
    let context = Context {
        inputs: [("n", "3.0"), ("f", "2.5")]
            .map(|(key, text)| (key.to_owned(), number(text)))
            .into(),
        ..context()
    };
    let sandbox = Sandbox::shared().unwrap();
    for (source, expected) in [
        ("inputs.n == 3", Value::Bool(true)),
        ("inputs.n == 3.0", Value::Bool(true)),
        ("inputs.n + 1", Value::Int(4)),
        (
            "inputs.n > 2 && inputs.f < 3 && inputs.f == 2.5",
            Value::Bool(true),
        ),
        ("inputs.n > inputs.f", Value::Bool(true)),
        ("inputs.n in [1, 2, 3]", Value::Bool(true)),
        ("double(inputs.n) * 0.5", Value::Double(1.5)),
        (
            "string(inputs.n) + string(inputs.f)",
            Value::Text("32.5".to_owned()),
        ),
        ("-inputs.f", Value::Double(-2.5)),
    ] {
        let expression = Expression::parse(source, Site::Question).unwrap();
        assert_eq!(
            sandbox.evaluate(&expression, &context),
            Ok(expected),
            "{source}"
        );
    }
}

#[test]
fn a_step_runs_while_nothing_failed_or_always() {
    let sandbox = Sandbox::new(2).unwrap();
    let condition = |source: &str| Expression::parse(source, Site::Condition).unwrap();
    for ok in [true, false] {
        let context = Context { ok, ..context() };
        let runs = |condition: Option<&Expression>| should_run(condition, &context, &sandbox);
        assert_eq!(runs(None), Ok(ok));
        assert_eq!(runs(Some(&condition("inputs.flag"))), Ok(ok));
        assert_eq!(runs(Some(&condition("!inputs.flag"))), Ok(false));
        assert_eq!(runs(Some(&condition(" always "))), Ok(true));
        assert_eq!(runs(Some(&condition("always && inputs.flag"))), Ok(true));
        for after_failure in ["!ok", ".ok == false", "always && !ok", "[1].exists(x, !ok)"] {
            let wanted = runs(Some(&condition(after_failure)));
            assert_eq!(wanted, Ok(!ok), "{after_failure}");
        }
        for no_such_word in ["'ok' != 'always'", "[true].exists(always, always)"] {
            let wanted = runs(Some(&condition(no_such_word)));
            assert_eq!(wanted, Ok(ok), "{no_such_word}");
        }
    }
}

#[test]
fn a_condition_that_is_neither_true_nor_false_is_an_error() {
    let condition = Expression::parse("dyn(vars.TARGET)", Site::Condition).unwrap();
    let error = Sandbox::shared()
        .unwrap()
        .holds(&condition, &context())
        .unwrap_err();
    assert!(
        matches!(
            error,
            EvaluationError::NotBoolean {
                found: "a string",
                ..
            }
        ),
        "{error}"
    );
}

#[test]
fn an_evaluation_is_given_no_more_jobs_than_it_can_read() {
    let context = context();
    for (source, expected) in [
        ("scans.long.is_available() && scans.long.size() > 3", 0),
        ("scans.long[2].state == 'failed'", 3),
        (
            "scans.long.exists(j, j.state == 'succeeded')",
            HISTORY_JOBS + 1,
        ),
    ] {
        let expression = Expression::parse(source, Site::Trigger).unwrap();
        let narrowed = context.narrowed(expression.references());
        assert_eq!(narrowed.scans["long"].jobs.len(), expected, "{source}");
        assert_eq!(narrowed.scans.len(), 1, "{source}");
    }
}
