//! `/v0/jobs/{job}/logs`: the same route while the job runs and afterwards.

use bytes::Bytes;
use http::header::ACCEPT;
use model::Job;
use state::{LogFilter, LogStream, Stream};
use warp::reply::Response;
use wire::{LogRecord, LogText, NDJSON_MEDIA_TYPE};

use crate::failure::Failure;
use crate::limits::KEEP_ALIVE;
use crate::reply::{self, Pieces};
use crate::request::{Query, Request};
use crate::visible::{ShownJob, Visible};

pub(crate) enum Form {
    /// The lines as the steps printed them.
    Plain,
    /// For people: the lines with times, marks and headings.
    Timed(LogText),
    JsonLines,
    /// Server-sent events whose ids are record numbers.
    Events,
}

impl Form {
    pub(super) fn of(request: &Request) -> Result<Self, Failure> {
        let accept = request.header(ACCEPT).unwrap_or("");
        let is_timed = request.query.flag("timestamps")?;
        let form = if accept.contains(NDJSON_MEDIA_TYPE) {
            Self::JsonLines
        } else if accept.contains("text/event-stream") {
            Self::Events
        } else if is_timed {
            Self::Timed(LogText::default())
        } else {
            Self::Plain
        };
        if is_timed && matches!(form, Self::JsonLines | Self::Events) {
            return Err(Failure::invalid(
                "timestamps",
                "applies only to plain text; in the format that `Accept` requests, every record has its time",
            ));
        }
        Ok(form)
    }

    const fn media_type(&self) -> &'static str {
        match self {
            Self::Plain | Self::Timed(_) => "text/plain; charset=utf-8",
            Self::JsonLines => NDJSON_MEDIA_TYPE,
            Self::Events => "text/event-stream",
        }
    }

    fn write(&mut self, lines: Bytes) -> Bytes {
        if matches!(self, Self::JsonLines) {
            return lines;
        }
        let mut text = Vec::with_capacity(lines.len());
        for line in lines.split_inclusive(|byte| *byte == b'\n') {
            let Ok(LogRecord { n, record }) = serde_json::from_slice::<LogRecord>(line) else {
                continue;
            };
            match self {
                Self::Plain => {
                    text.extend_from_slice(record.text.as_bytes());
                    text.push(b'\n');
                }
                Self::Timed(timed) => {
                    let mut shown = String::new();
                    timed.write(&record, &mut shown);
                    text.extend_from_slice(shown.as_bytes());
                }
                Self::Events => {
                    text.extend_from_slice(format!("id: {n}\ndata: ").as_bytes());
                    text.extend_from_slice(line);
                    text.push(b'\n');
                }
                Self::JsonLines => text.extend_from_slice(line),
            }
        }
        Bytes::from(text)
    }
}

/// The filter of the query. It is the same for all forms.
pub(crate) fn filter(query: &Query) -> Result<LogFilter, Failure> {
    let step = query.number("step")?.map(u32::try_from).transpose();
    let stream = match query.get("stream") {
        None => None,
        Some("stdout") => Some(Stream::Stdout),
        Some("stderr") => Some(Stream::Stderr),
        Some("runner") => Some(Stream::Runner),
        Some(_) => {
            let problem = "must be `stdout`, `stderr` or `runner`";
            return Err(Failure::invalid("stream", problem));
        }
    };
    Ok(LogFilter {
        step: step.map_err(|_| Failure::invalid("step", "must be the number of a step, from 0"))?,
        stream,
        since: query.time("since")?,
    })
}

/// Some records of a log, for a page that is complete when it is sent.
pub(crate) async fn load_records(
    user: &Visible,
    job: &ShownJob,
    from: u64,
    limit: u64,
    filter: LogFilter,
) -> Result<Vec<LogRecord>, Failure> {
    let mut stream = user.log(job, from).filtered(filter).limited(limit);
    if job.state.is_terminal() {
        user.mark_damage(&mut stream);
    }
    let mut records = Vec::new();
    loop {
        let (next, chunk) = stream.next().await;
        stream = next;
        let Some(lines) = chunk.map_err(|error| Failure::internal(&error))? else {
            return Ok(records);
        };
        let lines = lines.split(|byte| *byte == b'\n');
        records.extend(lines.filter_map(|line| serde_json::from_slice::<LogRecord>(line).ok()));
        if stream.has_given_all() {
            return Ok(records);
        }
    }
}

#[derive(Default)]
pub(crate) struct LogQuery {
    filter: LogFilter,
    from: Option<u64>,
    tail: Option<u64>,
    limit: Option<u64>,
    /// Continue until the job is over.
    follow: bool,
}

impl LogQuery {
    pub(crate) fn of(query: &Query) -> Result<Self, Failure> {
        let read = Self {
            filter: filter(query)?,
            tail: query.count("tail")?,
            limit: query.count("limit")?,
            follow: query.flag("follow")?,
            from: query.number("from")?,
        };
        if read.from.is_some() && read.tail.is_some() {
            let problem = "cannot be combined with `from`; give one of them";
            return Err(Failure::invalid("tail", problem));
        }
        Ok(read)
    }
}

/// A job's log. An event stream continues after `Last-Event-ID`.
pub(super) async fn read(user: &Visible, request: &Request) -> Result<Response, Failure> {
    let job = user.job_named(request.parameter(0)).await?;
    let form = Form::of(request)?;
    let mut query = LogQuery::of(&request.query)?;
    let after = request.headers.get("last-event-id");
    let after = after.and_then(|id| id.to_str().ok()?.parse::<u64>().ok());
    // After a reconnection, the tail was sent already.
    query.from = query.from.or(after.map(|after| after.saturating_add(1)));
    stream(user, job, form, query).await
}

/// Streams a job's log from the record `from` on, or its last records with `tail`.
pub(crate) async fn stream(
    user: &Visible,
    job: ShownJob,
    form: Form,
    query: LogQuery,
) -> Result<Response, Failure> {
    let LogQuery {
        filter,
        from,
        tail,
        limit,
        follow,
    } = query;
    let from = match (from, tail) {
        (Some(from), _) => from,
        (None, Some(tail)) => user.begin_of_last(&job, filter, tail).await?,
        (None, None) => 0,
    };
    let stream = user.log(&job, from).filtered(filter);
    let stream = match limit {
        Some(limit) => stream.limited(limit),
        None => stream,
    };
    let user = user.clone();
    Ok(reply::streamed(
        form.media_type(),
        async move |pieces: Pieces| {
            let last = pieces.clone();
            tokio::select! {
                () = produce(user.clone(), job, stream, follow, form, pieces) => {}
                _ = user.rights_lost() => last.cut_off(),
            }
        },
    ))
}

async fn produce(
    user: Visible,
    job: ShownJob,
    mut stream: LogStream,
    follow: bool,
    mut form: Form,
    pieces: Pieces,
) {
    let id = job.id;
    let mut growth = user.log_growth(&job);
    let mut changes = user.job_changed(&job);
    let mut ended = None;
    if job.state.is_terminal() {
        user.mark_damage(&mut stream);
        ended = Some(job.clone());
    }
    let mut last_look = !follow || ended.is_some();
    let mut is_settled = false;
    loop {
        growth.mark_unchanged();
        changes.mark_unchanged();
        let (next, chunk) = stream.next().await;
        stream = next;
        match chunk {
            Ok(Some(lines)) => {
                let reader_is_gone = if lines.is_empty() {
                    pieces.is_closed()
                } else {
                    pieces.send(form.write(lines)).await.is_err()
                };
                if reader_is_gone || stream.has_given_all() {
                    return;
                }
            }
            Ok(None) if last_look => {
                let Some(mark) = ended.as_ref().and_then(|job| missing_end(&stream, job)) else {
                    return;
                };
                if is_settled {
                    drop(pieces.send(form.write(mark)).await);
                    return;
                }
                // While the disk is full, the last records wait for space; they are not missing.
                is_settled = user.settled().await.is_ok();
                if !is_settled {
                    return;
                }
            }
            Ok(None) => {
                // After the end of the job, read once more for records that were appended just before it.
                last_look = is_over(&user, &job);
                if last_look {
                    user.mark_damage(&mut stream);
                    ended = user.job(id).await.ok();
                }
                if !last_look && !wait(&user, &job, &form, &mut growth, &mut changes, &pieces).await
                {
                    return;
                }
            }
            Err(error) => {
                tracing::error!(job = %id, %error, "a log cannot be read");
                pieces.cut_off();
                return;
            }
        }
    }
}

fn missing_end(stream: &LogStream, job: &Job) -> Option<Bytes> {
    let (run, end) = (job.state.run()?, job.state.end()?);
    stream.missing_end(run.log_records, end.at)
}

fn is_over(user: &Visible, job: &ShownJob) -> bool {
    user.read(|seen| seen.job(job.id).is_none())
}

/// Waits until there may be more to read. False if the reader is gone or the daemon stops.
async fn wait(
    user: &Visible,
    job: &ShownJob,
    form: &Form,
    growth: &mut tokio::sync::watch::Receiver<()>,
    changes: &mut tokio::sync::watch::Receiver<()>,
    pieces: &Pieces,
) -> bool {
    loop {
        tokio::select! {
            grown = growth.changed() => {
                if grown.is_err() {
                    // The log was closed, so the job is finished. The next pass finds that.
                    *growth = user.log_growth(job);
                }
                return true;
            }
            changed = changes.changed() => {
                if changed.is_err() {
                    return false;
                }
                if is_over(user, job) {
                    return true;
                }
            }
            () = pieces.closed() => return false,
            () = user.stopping() => return false,
            () = tokio::time::sleep(KEEP_ALIVE), if matches!(form, Form::Events) => {
                if pieces.send(Bytes::from_static(b": alive\n\n")).await.is_err() {
                    return false;
                }
            }
        }
    }
}
