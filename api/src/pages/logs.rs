//! The log of a job: plain pages, the raw text, and the records that the script fetches.

use http::header::{CONTENT_DISPOSITION, CONTENT_SECURITY_POLICY};
use state::{LogFilter, LogSearch};
use ui::pages::{self, LogPage};
use warp::reply::Response;
use wire::LogRecord;

use super::frame::Frame;
use crate::failure::Failure;
use crate::handlers::logs::{self, Form, LogQuery};
use crate::handlers::{jobs, log_search};
use crate::reply;
use crate::visible::ShownJob;

/// Lines of a plain page: the maximum, and the default.
const LINES: u64 = 1_000;

pub(super) async fn plain(frame: &Frame<'_>) -> Result<Response, Failure> {
    let shown = frame.user.job_named(frame.parameter(0)).await?;
    let job = jobs::wire_job(frame.user, &shown).await?;
    let query = &frame.request.query;
    let from = query.number("from")?.unwrap_or(0);
    let limit = query.number("limit")?.unwrap_or(LINES).clamp(1, LINES);
    let filter = logs::filter(query)?;
    let text = frame.query("q");
    let Lines {
        records,
        next,
        total,
    } = if text.is_empty() {
        read(frame, &shown, from, limit, filter).await?
    } else {
        let limit = usize::try_from(limit).unwrap_or(usize::MAX);
        let wanted = log_search::wanted(query)?;
        let wanted = LogSearch {
            from,
            limit,
            ..wanted
        };
        found(frame, &shown, wanted).await?
    };
    let page = LogPage {
        job: &job,
        records: &records,
        from,
        limit,
        query: text,
        step: filter.step,
        next,
        total,
    };
    Ok(frame.page(pages::job_log(&frame.visit, &page)))
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
    filter: LogFilter,
) -> Result<Lines, Failure> {
    // One extra record shows whether there is a next page.
    let mut records = logs::load_records(frame.user, job, from, limit + 1, filter).await?;
    let most = usize::try_from(limit).unwrap_or(usize::MAX);
    let next = records.get(most).map(|record| record.n);
    records.truncate(most);
    Ok(Lines {
        records,
        next,
        total: None,
    })
}

async fn found(frame: &Frame<'_>, job: &ShownJob, wanted: LogSearch) -> Result<Lines, Failure> {
    let found = log_search::search(frame.user, job, wanted).await?;
    Ok(Lines {
        records: found.matches,
        next: found.next_cursor.and_then(|next| next.parse().ok()),
        total: Some(found.total),
    })
}

/// The text as the job wrote it. The browser shows it as plain text, even if it looks like HTML.
pub(super) async fn raw(frame: &Frame<'_>) -> Result<Response, Failure> {
    let job = frame.user.job_named(frame.parameter(0)).await?;
    let mut response = logs::stream(frame.user, job, Form::Plain, LogQuery::default()).await?;
    reply::set_static(&mut response, CONTENT_SECURITY_POLICY, "sandbox");
    reply::set_static(&mut response, CONTENT_DISPOSITION, "inline");
    Ok(response)
}

pub(super) async fn records(frame: &Frame<'_>) -> Result<Response, Failure> {
    let job = frame.user.job_named(frame.parameter(0)).await?;
    let query = LogQuery::of(&frame.request.query)?;
    logs::stream(frame.user, job, Form::JsonLines, query).await
}

pub(super) async fn search(frame: &Frame<'_>) -> Result<Response, Failure> {
    let job = frame.user.job_named(frame.parameter(0)).await?;
    let wanted = log_search::wanted(&frame.request.query)?;
    let found = log_search::search(frame.user, &job, wanted).await?;
    Ok(reply::ok(&found))
}
