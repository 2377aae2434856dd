//! `/v0/validate`: a workflow file checked as the daemon would check it, without a push.

use tokio::sync::Semaphore;
use warp::reply::Response;
use wire::{ErrorCode, Validate, Validated};
use workflow::{Diagnostic, LineDifference, Parsed, TemplatePolicy};

use crate::convert;
use crate::failure::Failure;
use crate::limits::{VALIDATED_AT_ONCE, VALIDATED_FILE_CHARS};
use crate::reply;
use crate::request::Request;

/// Limits concurrent validations, because each blocks a thread.
static ROOM: Semaphore = Semaphore::const_new(VALIDATED_AT_ONCE);

/// Reports all errors and warnings of a text, and its scans if it is valid. Nothing is stored.
pub(super) async fn validate(mut request: Request) -> Result<Response, Failure> {
    let Validate { text, file } = request.body.json(&request.headers).await?;
    let file = file.unwrap_or("workflow.yaml".to_owned());
    if file.is_empty() || file.chars().count() > VALIDATED_FILE_CHARS {
        let problem = format!("must have 1 to {VALIDATED_FILE_CHARS} characters");
        return Err(Failure::invalid("file", problem));
    }
    let checked = check(file, text).await?;
    let (valid, scans, diagnostics) = verdict(&checked);
    Ok(reply::ok(&Validated {
        valid,
        scans,
        diagnostics,
    }))
}

pub(super) type Checked = Result<Parsed, Vec<Diagnostic>>;

pub(super) async fn check(file: String, text: String) -> Result<Checked, Failure> {
    let _room = ROOM.acquire().await;
    let checked =
        tokio::task::spawn_blocking(move || workflow::parse(&file, &text, TemplatePolicy::Warn));
    checked
        .await
        .map_err(|_| Failure::new(ErrorCode::Unavailable, "the daemon is stopping"))
}

pub(super) async fn compare(before: String, after: String) -> Result<LineDifference, Failure> {
    let _room = ROOM.acquire().await;
    let compared = tokio::task::spawn_blocking(move || workflow::line_diff(&before, &after));
    compared
        .await
        .map_err(|_| Failure::new(ErrorCode::Unavailable, "the daemon is stopping"))
}

pub(super) fn verdict(checked: &Checked) -> (bool, Vec<wire::Scan>, Vec<wire::Diagnostic>) {
    let (valid, scans, diagnostics) = match checked {
        Ok(parsed) => {
            let workflow = &parsed.workflow;
            let scans = workflow.scans().map(|scan| convert::scan(workflow, scan));
            let scans = scans.collect();
            (true, scans, &parsed.warnings)
        }
        Err(diagnostics) => (false, Vec::new(), diagnostics),
    };
    let diagnostics = diagnostics.iter().map(convert::diagnostic).collect();
    (valid, scans, diagnostics)
}
