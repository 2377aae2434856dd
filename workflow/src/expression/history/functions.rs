//! The functions of a scan's history.

use cel_interpreter::common::traits::Sizer;
use cel_interpreter::common::types::{CelBool, CelString, STRING_TYPE, Type};
use cel_interpreter::common::value::CowVal;
use cel_interpreter::{DeclarationError, Env, ExecutionError};

use super::{HISTORY_TYPE, History, map, text};
use crate::expression::absent::Absent;

/// Declares the functions of histories.
pub(in crate::expression) fn declare(env: &mut Env) -> Result<(), DeclarationError> {
    let history = || HISTORY_TYPE.to_owned();
    let methods: [(&str, &str, Vec<Type>, Function); 9] = [
        ("is_available", "scan_is_available", vec![], is_available),
        ("has_diff", "scan_has_diff", vec![], has_diff),
        (
            "has_diff",
            "scan_has_diff_string",
            vec![STRING_TYPE],
            has_diff,
        ),
        ("has_news", "scan_has_news", vec![], has_news),
        (
            "has_news",
            "scan_has_news_string",
            vec![STRING_TYPE],
            has_news,
        ),
        ("last_success", "scan_last_success", vec![], last_success),
        ("processed", "scan_processed", vec![], processed),
        ("has_failed", "scan_has_failed", vec![], has_failed),
        ("size", "scan_size", vec![], size),
    ];
    for (name, id, parameters, function) in methods {
        env.add_member_overload(name, id, history(), parameters, function)?;
    }
    env.add_overload("size", "size_scan", vec![history()], size)
}

type Function = for<'b, 'v> fn(Vec<CowVal<'b, 'v>>) -> Result<CowVal<'b, 'v>, ExecutionError>;

fn receiver<'a, 'v>(
    method: &str,
    arguments: &'a [CowVal<'_, 'v>],
) -> Result<&'a History, ExecutionError> {
    arguments
        .first()
        .and_then(|value| value.downcast_ref::<History>())
        .ok_or_else(|| ExecutionError::function_error(method, "not a scan"))
}

/// The artifact that is the argument of a method.
fn artifact<'a>(arguments: &'a [CowVal<'_, '_>]) -> Option<&'a str> {
    let name = arguments.get(1)?.downcast_ref::<CelString<'_>>();
    name.map(CelString::inner)
}

fn is_available<'b, 'v>(arguments: Vec<CowVal<'b, 'v>>) -> Result<CowVal<'b, 'v>, ExecutionError> {
    let history = receiver("is_available", &arguments)?;
    history.note_successes(1);
    Ok(CowVal::owned(CelBool::from(history.0.summary.available)))
}

fn has_diff<'b, 'v>(arguments: Vec<CowVal<'b, 'v>>) -> Result<CowVal<'b, 'v>, ExecutionError> {
    let history = receiver("has_diff", &arguments)?;
    history.note_successes(2);
    let has_diff = history.0.summary.has_diff(artifact(&arguments));
    Ok(CowVal::owned(CelBool::from(has_diff)))
}

fn has_news<'b, 'v>(arguments: Vec<CowVal<'b, 'v>>) -> Result<CowVal<'b, 'v>, ExecutionError> {
    let history = receiver("has_news", &arguments)?;
    history.note_successes(1);
    history.note_processed();
    let has_news = history.0.summary.has_news(artifact(&arguments));
    Ok(CowVal::owned(CelBool::from(has_news)))
}

fn last_success<'b, 'v>(arguments: Vec<CowVal<'b, 'v>>) -> Result<CowVal<'b, 'v>, ExecutionError> {
    let history = receiver("last_success", &arguments)?;
    let summaries = history.jobs().iter().map(|job| &*job.0);
    let place = history.0.summary.place_of_success(summaries);
    let Some(job) = place.and_then(|at| history.jobs().get(at)) else {
        let message = format!("scan {} has no success yet", history.name());
        return Ok(CowVal::owned(Absent::new(&message)));
    };
    history.note_job(job);
    Ok(CowVal::owned(job.clone()))
}

fn processed<'b, 'v>(arguments: Vec<CowVal<'b, 'v>>) -> Result<CowVal<'b, 'v>, ExecutionError> {
    let history = receiver("processed", &arguments)?;
    let Some(processed) = history.0.summary.processed() else {
        let message = format!(
            "no success of scan {} has been processed yet",
            history.name()
        );
        return Ok(CowVal::owned(Absent::new(&message)));
    };
    history.note_processed();
    let artifact = |digest: &str| map(std::iter::once(("checksum", text(digest))));
    let artifacts = processed.artifacts.iter();
    let artifacts = artifacts.map(|(name, digest)| (name.as_str(), artifact(digest)));
    Ok(map([
        ("id", text(&processed.id)),
        ("artifacts", map(artifacts)),
    ]
    .into_iter()))
}

fn has_failed<'b, 'v>(arguments: Vec<CowVal<'b, 'v>>) -> Result<CowVal<'b, 'v>, ExecutionError> {
    let history = receiver("has_failed", &arguments)?;
    Ok(CowVal::owned(CelBool::from(history.0.summary.failed)))
}

fn size<'b, 'v>(arguments: Vec<CowVal<'b, 'v>>) -> Result<CowVal<'b, 'v>, ExecutionError> {
    Ok(CowVal::owned(receiver("size", &arguments)?.size()))
}
