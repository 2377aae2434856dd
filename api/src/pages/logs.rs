//! The log of a job: plain pages, the raw text, and what the virtual log fetches.

use http::header::{ACCEPT, CONTENT_DISPOSITION, CONTENT_SECURITY_POLICY, HeaderValue};
use ui::pages::{self, LogPage};
use warp::reply::Response;
use wire::{LogRecord, NDJSON_MEDIA_TYPE};

use super::frame::Frame;
use crate::failure::Failure;
use crate::handlers::{jobs, log_search, logs};
use crate::reply;
use crate::request::Request;
use crate::visible::ShownJob;

/// Lines of a plain page: the most, and the number where none is given.
const LINES: u64 = 1_000;

pub(super) async fn plain(frame: &Frame<'_>) -> Result<Response, Failure> {
    let shown = frame.me.job_named(frame.parameter(0)).await?;
    let job = jobs::wire_job(frame.me, &shown).await?;
    let query = &frame.request.query;
    let from = number(frame, "from")?.unwrap_or(0);
    let limit = number(frame, "limit")?.unwrap_or(LINES).clamp(1, LINES);
    let step = match number(frame, "step")? {
        Some(step) => Some(
            u32::try_from(step)
                .map_err(|_| Failure::invalid("step", "must be the number of a step, from 0"))?,
        ),
        None => None,
    };
    let text = query.get("q").unwrap_or("");
    let Lines {
        records,
        next,
        total,
    } = if text.is_empty() {
        read(frame, &shown, from, limit, step).await?
    } else {
        found(frame, text, from, limit, step).await?
    };
    let page = LogPage {
        job: &job,
        records: &records,
        from,
        limit,
        query: text,
        step,
        next,
        total,
    };
    Ok(frame.page(pages::job_log(&frame.visit, &page)))
}

fn number(frame: &Frame<'_>, name: &str) -> Result<Option<u64>, Failure> {
    match frame.query(name) {
        "" => Ok(None),
        _ => frame.request.query.number(name),
    }
}

struct Lines {
    records: Vec<LogRecord>,
    next: Option<u64>,
    total: Option<u64>,
}

async fn read(
    frame: &Frame<'_>,
    job: &ShownJob,
    from: u64,
    limit: u64,
    step: Option<u32>,
) -> Result<Lines, Failure> {
    let step = step.map(|step| step.to_string()).unwrap_or_default();
    let filter = logs::filter(&frame.request.asking(&[], &[("step", &step)]).query)?;
    // One more says whether there is a next page.
    let mut records = logs::load_records(frame.me, job, from, limit + 1, filter).await?;
    let most = usize::try_from(limit).unwrap_or(usize::MAX);
    let next = records.get(most).map(|record| record.n);
    records.truncate(most);
    Ok(Lines {
        records,
        next,
        total: None,
    })
}

async fn found(
    frame: &Frame<'_>,
    text: &str,
    from: u64,
    limit: u64,
    step: Option<u32>,
) -> Result<Lines, Failure> {
    let step = step.map(|step| step.to_string()).unwrap_or_default();
    let (from, limit) = (from.to_string(), limit.to_string());
    let query = [
        ("q", text),
        ("cursor", &from),
        ("limit", &limit),
        ("step", &step),
    ];
    let request = frame.request.asking(&[frame.parameter(0)], &query);
    let found = log_search::load_search(frame.me, &request).await?;
    Ok(Lines {
        records: found.matches,
        next: found.next_cursor.and_then(|next| next.parse().ok()),
        total: Some(found.total),
    })
}

/// The text as the job wrote it. Whatever it looks like, a browser shows it as text.
pub(super) async fn raw(frame: &Frame<'_>) -> Result<Response, Failure> {
    let request = frame.request.asking(&[frame.parameter(0)], &[]);
    let mut response = logs::read(frame.me, &request).await?;
    reply::set_static(&mut response, CONTENT_SECURITY_POLICY, "sandbox");
    reply::set_static(&mut response, CONTENT_DISPOSITION, "inline");
    Ok(response)
}

/// Records for the virtual log.
pub(super) async fn records(frame: &Frame<'_>) -> Result<Response, Failure> {
    let mut request = asked(frame, &["from", "limit", "step", "stream"]);
    let kind = HeaderValue::from_static(NDJSON_MEDIA_TYPE);
    request.headers.insert(ACCEPT, kind);
    logs::read(frame.me, &request).await
}

/// Matches for the virtual log.
pub(super) async fn search(frame: &Frame<'_>) -> Result<Response, Failure> {
    let request = asked(frame, &["q", "limit", "cursor"]);
    Ok(reply::ok(
        &log_search::load_search(frame.me, &request).await?,
    ))
}

/// The same question as `/v0` takes it.
fn asked(frame: &Frame<'_>, names: &[&str]) -> Request {
    let query: Vec<(&str, &str)> = names
        .iter()
        .map(|name| (*name, frame.query(name)))
        .collect();
    frame.request.asking(&[frame.parameter(0)], &query)
}
