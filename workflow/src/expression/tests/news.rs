//! `has_news`, `processed` and `last_success`.

use std::collections::BTreeMap;

use super::{context, job};
use crate::context::{Context, News, Processed};
use crate::diagnostic::Code;
use crate::expression::{Expression, Reach, Sandbox, Site, Value};

fn digests(pairs: &[(&str, &str)]) -> BTreeMap<String, String> {
    let owned = |(name, digest): &(&str, &str)| ((*name).to_owned(), (*digest).to_owned());
    pairs.iter().map(owned).collect()
}

/// A context in which `hosts` has this newest success, and the asking scan has processed `processed`.
fn with(newest: &[(&str, &str)], processed: Option<&[(&str, &str)]>) -> Context {
    let mut context = context();
    let hosts = context.scans.get_mut("hosts").unwrap();
    hosts.newest_successes = vec![digests(newest), digests(&[("a", "before")])];
    hosts.newest_success_ids = vec!["j2".to_owned(), "j1".to_owned()];
    let processed = processed.map(|pairs| Processed {
        id: "j0".to_owned(),
        artifacts: digests(pairs),
    });
    hosts.news = Some(News {
        processed,
        ..News::default()
    });
    context
}

fn evaluate(source: &str, context: &Context) -> Result<Value, String> {
    let expression = Expression::parse(source, Site::Script).unwrap();
    let sandbox = Sandbox::shared().unwrap();
    let result = sandbox.evaluate(&expression, context);
    result.map_err(|error| error.to_string())
}

#[test]
fn a_success_that_differs_from_the_processed_one_is_news() {
    let of = |context: &Context, artifact: &str| {
        let source = format!("scans.hosts.has_news({artifact})");
        evaluate(&source, context)
    };
    let yes = Ok(Value::Bool(true));
    let no = Ok(Value::Bool(false));
    let mut none = context();
    none.scans
        .get_mut("hosts")
        .unwrap()
        .newest_successes
        .clear();
    assert_eq!(of(&none, ""), no, "there is no success");

    let first = with(&[("a", "1")], None);
    assert_eq!(of(&first, ""), yes, "nothing was processed");
    assert_eq!(of(&first, "'a'"), yes);
    assert_eq!(of(&first, "'b'"), no, "the newest success lacks it");
    assert_eq!(of(&with(&[], None), ""), yes, "nothing was processed");

    let same = with(&[("a", "1")], Some(&[("a", "1")]));
    assert_eq!(of(&same, ""), no);
    assert_eq!(of(&same, "'a'"), no);
    let other = with(&[("a", "1"), ("b", "2")], Some(&[("a", "1"), ("b", "1")]));
    assert_eq!(of(&other, ""), yes);
    assert_eq!(of(&other, "'a'"), no);
    assert_eq!(of(&other, "'b'"), yes);
    let gone = with(&[("a", "1")], Some(&[("a", "1"), ("b", "1")]));
    assert_eq!(of(&gone, ""), no, "a removed artifact is not news");
    assert_eq!(of(&gone, "'b'"), no);
    let more = with(&[("a", "1"), ("b", "1")], Some(&[("a", "1")]));
    assert_eq!(of(&more, "'b'"), yes);
}

#[test]
fn a_processed_success_has_an_id_and_checksums() {
    let context = with(&[("a", "2")], Some(&[("a", "1")]));
    let text = |text: &str| Ok(Value::Text(text.to_owned()));
    let of = |source| evaluate(source, &context);
    assert_eq!(of("scans.hosts.processed().id"), text("j0"));
    assert_eq!(
        of("scans.hosts.processed().artifacts.a.checksum"),
        text("1")
    );
    assert_eq!(of("scans['hosts'].processed()['id']"), text("j0"));
    assert_eq!(
        of("scans.hosts.processed().artifacts.b.checksum"),
        Err(
            "expression `scans.hosts.processed().artifacts.b.checksum`: there is no `artifacts.b`"
                .to_owned()
        )
    );
}

#[test]
fn the_last_success_is_found_however_old_it_is() {
    let mut context = context();
    let text = |text: &str| Ok(Value::Text(text.to_owned()));
    assert_eq!(
        evaluate("scans.hosts.last_success().id", &context),
        text("j2")
    );
    assert_eq!(
        evaluate("scans.long.last_success().id", &context),
        text("old")
    );
    assert_eq!(
        evaluate("scans.long.last_success().outputs.n", &context),
        text("old")
    );
    // The job that ended last is not always the newest job.
    let hosts = context.scans.get_mut("hosts").unwrap();
    hosts.jobs.insert(0, job("j4", "succeeded"));
    assert_eq!(
        evaluate("scans.hosts.last_success().id", &context),
        text("j2")
    );
}

#[test]
fn a_job_that_is_not_there_is_reported_in_words() {
    let mut context = with(&[], None);
    context.scans.get_mut("hosts").unwrap().jobs.clear();
    for (call, words) in [
        ("last_success", "scan hosts has no success yet"),
        (
            "processed",
            "no success of scan hosts has been processed yet",
        ),
    ] {
        let member = format!("scans.hosts.{call}().id");
        assert_eq!(
            evaluate(&member, &context),
            Err(format!("expression `{member}`: {words}"))
        );
        let artifact = format!("scans.hosts.{call}().artifacts.a.checksum");
        assert_eq!(
            evaluate(&artifact, &context),
            Err(format!("expression `{artifact}`: {words}"))
        );
        let guarded = format!("has({member}) ? {member} : 'none'");
        assert_eq!(
            evaluate(&guarded, &context),
            Ok(Value::Text("none".to_owned()))
        );
        let compared = format!("scans.hosts.{call}() == null");
        assert_eq!(evaluate(&compared, &context), Ok(Value::Bool(true)));
    }
}

#[test]
fn has_news_needs_the_name_of_a_scan_written_out() {
    let faults = |source: &str| -> Vec<(Code, String)> {
        let error = Expression::parse(source, Site::Script).unwrap_err();
        let of =
            |fault: &crate::expression::Fault| (fault.code, source[fault.range.clone()].to_owned());
        error.faults().iter().map(of).collect()
    };
    for (source, place) in [
        ("scans[vars.X].has_news()", "scans[vars.X]"),
        ("[scans.a][0].has_news('x')", "[scans.a][0]"),
        ("{'a': scans.b}.a.processed().id", "{'a': scans.b}.a"),
        ("[scans.a].exists(s, s.has_news())", "s"),
        (
            "[{'a': scans.b}].exists(scans, scans.a.has_news())",
            "scans.a",
        ),
        ("dyn(scans.a).has_news()", "dyn(scans.a)"),
    ] {
        assert_eq!(
            faults(source),
            [(Code::DynamicName, place.to_owned())],
            "{source}"
        );
    }
    assert_eq!(
        faults("scans.a.processed().outputs == ''"),
        [(Code::UnknownMember, "outputs".to_owned())]
    );
    assert_eq!(
        faults("scans.a.processed().artifacts.x.size > 1"),
        [(Code::UnknownMember, "size".to_owned())]
    );
}

#[test]
fn a_context_has_news_only_of_scans_whose_news_is_read() {
    let context = with(&[("a", "2")], Some(&[("a", "1")]));
    let narrowed = |source: &str| {
        let expression = Expression::parse(source, Site::Script).unwrap();
        let references = expression.references();
        let jobs = references.jobs.get("hosts").copied();
        let hosts = context.narrowed(references).scans["hosts"].clone();
        (hosts.news, hosts.jobs.len(), jobs)
    };
    let asked = context.scans["hosts"].news.clone();
    assert_eq!(narrowed("scans.hosts.has_news()"), (asked.clone(), 0, None));
    assert_eq!(narrowed("scans.hosts.processed().id"), (asked, 0, None));
    assert_eq!(narrowed("scans.hosts.has_diff()"), (None, 0, None));
    assert_eq!(
        narrowed("scans.hosts.last_success().id"),
        (None, 1, Some(Reach::Success))
    );
}
