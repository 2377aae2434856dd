use std::collections::BTreeMap;

use super::Template;
use crate::context::{CallbackSummary, Context};
use crate::diagnostic::Code;
use crate::dispatch::InputValue;
use crate::expression::{EvaluationError, Sandbox, Site};
use crate::random::Random;

fn context() -> Context {
    Context {
        job: None,
        project: "p1".to_owned(),
        workflow: "w1".to_owned(),
        revision: "r1".to_owned(),
        vars: BTreeMap::from([("A".to_owned(), "${{ project.id }}".to_owned())]),
        secrets: BTreeMap::new(),
        inputs: BTreeMap::from([("flag".to_owned(), InputValue::Bool(true))]),
        callback: CallbackSummary::default(),
        scans: BTreeMap::new(),
        steps: BTreeMap::new(),
        ok: true,
    }
}

fn render(source: &str) -> Result<String, String> {
    let template = Template::parse(source, Site::Environment).map_err(|error| error.to_string())?;
    Sandbox::shared()
        .unwrap()
        .render(&template, &context())
        .map_err(|error| error.to_string())
}

#[test]
fn values_are_inserted_as_text() {
    for (source, expected) in [
        ("", ""),
        ("plain $HOME {x} }} ${x}", "plain $HOME {x} }} ${x}"),
        ("a ${{ project.id }} b ${{workflow.id}}", "a p1 b w1"),
        ("${{ inputs.flag }}", "true"),
        ("${{ 1 + 1 }} ${{ 2u }} ${{ 1.5 }} ${{ 1.0 }}", "2 2 1.5 1"),
        ("[${{ null }}]", "[]"),
        (
            "${{ timestamp('2026-11-20T10:00:00.5Z') }}",
            "2026-11-20T10:00:00.500Z",
        ),
        (
            "${{ duration('90s') }} ${{ duration('-1.5s') }}",
            "90s -1.5s",
        ),
        ("$${{ project.id }}", "$p1"),
    ] {
        assert_eq!(render(source).as_deref(), Ok(expected), "{source}");
    }
}

#[test]
fn braces_in_strings_and_maps_do_not_end_an_expression() {
    for (source, expected) in [
        ("${{ '}}' }}", "}}"),
        ("${{ \"a }} b\" }}", "a }} b"),
        ("${{ '\\'}}' }}", "'}}"),
        ("${{ r'\\' + '}}' }}", "\\}}"),
        ("${{ '''it's }}''' }}", "it's }}"),
        ("${{ {'a': {'b': 'c'}}['a']['b'] }}", "c"),
        ("${{ '${{' }}", "${{"),
    ] {
        assert_eq!(render(source).as_deref(), Ok(expected), "{source}");
    }
}

#[test]
fn substitution_is_single_pass() {
    assert_eq!(render("${{ vars.A }}").as_deref(), Ok("${{ project.id }}"));
}

#[test]
fn lists_maps_and_missing_values_are_errors() {
    for source in [
        "${{ dyn([1]) }}",
        "${{ dyn({'a': 1}) }}",
        "${{ dyn(b'x') }}",
    ] {
        let template = Template::parse(source, Site::Script).unwrap();
        let error = Sandbox::shared()
            .unwrap()
            .render(&template, &context())
            .unwrap_err();
        assert!(
            matches!(error, EvaluationError::NotText { .. }),
            "{source}: {error}"
        );
    }
    assert!(Template::parse("${{ [1] }}", Site::Script).is_err());
    assert_eq!(
        render("x ${{ vars.B }}"),
        Err("expression `vars.B`: there is no `vars.B`".to_owned())
    );
}

#[test]
fn every_fault_is_reported_with_its_place() {
    let source = "ok ${{ nope }} and ${{ }} and ${{ 1 + }} and ${{ id";
    let error = Template::parse(source, Site::Script).unwrap_err();
    let reported: Vec<_> = error
        .faults()
        .iter()
        .map(|fault| (fault.code, source.get(fault.range.clone()).unwrap()))
        .collect();
    assert_eq!(
        reported,
        [
            (Code::UnknownName, "nope"),
            (Code::ExpressionSyntax, "${{ }}"),
            (Code::ExpressionSyntax, ""),
            (Code::UnclosedTemplate, "${{"),
        ]
    );
}

#[test]
fn no_text_panics() {
    let mut random = Random::new(2);
    for _ in 0..1_500 {
        let length = random.below(10);
        let source: String = (0..length)
            .map(|_| {
                random.pick(&[
                    "${{", "}}", "{", "}", "'", "\"", "\\", "r", "'''", "id", " ", "ä", "$", "\n",
                    "1+",
                ])
            })
            .collect();
        match Template::parse(&source, Site::Script) {
            Ok(template) => assert_eq!(template.source(), source),
            Err(error) => assert!(
                error
                    .faults()
                    .iter()
                    .all(|fault| source.get(fault.range.clone()).is_some())
            ),
        }
    }
}
