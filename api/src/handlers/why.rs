//! `/v0/workflows/{workflow}/scans/{scan}/why`

use chrono::SecondsFormat;
use model::limits::CALLBACK_LISTENERS;
use model::{ActiveWorkflow, ScanKey, Scope, Seen, Timestamp};

use super::{channels, workflows};
use crate::convert;
use crate::failure::Failure;
use crate::visible::{Shown, Visible};

/// Explains why a scan did or did not run, now or at a time in the past. Lists have at most `limit` items.
pub(crate) async fn why(
    user: &Visible,
    scan: &Shown<(ActiveWorkflow, ScanKey)>,
    at: Option<Timestamp>,
    limit: usize,
) -> Result<wire::Why, Failure> {
    let (workflow, key) = (&scan.0, scan.map(|(_, key)| key.clone()));
    let why = user.why(&key, at, limit).await?;
    let newest = why.newest.clone();
    let listening = why.callback.clone();
    let (now, are_off) = (user.now(), user.callback_zones().is_none());
    let waiting: Vec<_> = why
        .unfinished
        .iter()
        .map(|it| user.why_waiting(it))
        .collect();
    let mut answer = match workflow.scan(&key.scan) {
        Some(scan) => convert::why::why(workflow, scan, why),
        None => {
            let removed_by = user.removed_by(&key).await?;
            convert::why::of_removed(workflow, &key.scan, removed_by.as_ref(), why)
        }
    };
    user.read(|seen| {
        let former = seen.head(&key).and_then(|head| head.renamed_from.as_ref());
        answer.renamed_from = former.map(ToString::to_string);
        answer.renamed_to = seen.heir(&key).map(|heir| heir.scan.to_string());
    });
    for (job, reason) in answer.unfinished.iter_mut().zip(&waiting) {
        job.waiting = reason.as_ref().map(convert::explanation);
    }
    if at.is_none() {
        if let Some(job) = newest {
            answer.messages = channels::messages(user, &job).await;
        }
        user.read(|seen| {
            let own = seen.latest_suspension(key.workflow, Some(&key.scan));
            answer.suspended = seen.suspension(&key).and_then(|it| convert::suspension(it));
            answer.resumed = own.and_then(|it| convert::resumption(it));
            let circles = seen.circles().into_iter();
            let mut own = circles.filter(|circle| {
                circle.workflow.id == key.workflow && circle.scans.contains(&key.scan)
            });
            if let Some((shown, listening)) = answer.callback.as_mut().zip(listening.as_ref()) {
                let project = &workflow.record.source;
                shown.problem = if are_off {
                    Some("callbacks are off: the daemon's configuration names no zone".to_owned())
                } else if listening.server.is_none() {
                    let name = &shown.server;
                    Some(format!("project {project} has no callback server `{name}`"))
                } else {
                    listening.is_unheard.then(|| {
                        format!(
                            "{CALLBACK_LISTENERS} other scans listen to the server, the most that may"
                        )
                    })
                };
                let unfinished = seen.jobs_of(&key).next_back();
                convert::why::listen(shown, listening, |due| {
                    match (&answer.suspended, unfinished) {
                        (Some(_), _) => "the scan is resumed".to_owned(),
                        (None, _) if due > now => {
                            format!(
                                "{}, when `min_interval` has passed",
                                due.to_rfc3339_opts(SecondsFormat::Secs, true)
                            )
                        }
                        (None, Some(job)) => format!("job {} has ended", job.id),
                        (None, None) => {
                            "the daemon has looked at them, which it does now".to_owned()
                        }
                    }
                });
            }
            answer.circle = own.next().as_ref().map(convert::why::circle);
        });
    }
    Ok(answer)
}

/// Finds a scan of the workflow, or a removed scan that had jobs.
pub(crate) fn find(
    user: &Visible,
    workflow: &str,
    name: &str,
) -> Result<Shown<(ActiveWorkflow, ScanKey)>, Failure> {
    user.find(|seen| scan(seen, workflow, name))
}

pub(crate) fn key(user: &Visible, workflow: &str, name: &str) -> Result<Shown<ScanKey>, Failure> {
    Ok(find(user, workflow, name)?.map(|(_, key)| key.clone()))
}

fn scan(seen: Seen<'_>, workflow: &str, name: &str) -> Result<(ActiveWorkflow, ScanKey), Failure> {
    let workflow = workflows::find_readable(seen, workflow)?;
    let key = name.parse().ok().map(|scan| ScanKey {
        workflow: workflow.record.id,
        scan,
    });
    let is_known = |key: &ScanKey| {
        workflow.scan(&key.scan).is_some()
            || seen.head(key).is_some()
            || seen.jobs_of(key).next().is_some()
    };
    match key.filter(is_known) {
        Some(key) => Ok((workflow, key)),
        None => Err(Failure::not_found("scan", name)
            .names(Scope::WorkflowRead, workflows::scans_of(&workflow))),
    }
}
