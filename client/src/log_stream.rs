//! A job's log, live or finished. If the connection breaks, reading continues after the last record, so the caller gets each
//! record once.

use chrono::{DateTime, SecondsFormat, Utc};
use tokio::time::Instant;
use uuid::Uuid;
use wire::{LogMatches, LogRecord, Stream};

use crate::call::Answer;
use crate::job::job_route;
use crate::json_lines::{Lines, TooLong};
use crate::repetition::{Patience, Repetition};
use crate::route::Route;
use crate::{Client, Error, limits};

/// Selects records of a log. A field that is `None` does not restrict.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct LogFilter {
    /// Records of this step, from 0.
    pub step: Option<u32>,
    pub stream: Option<Stream>,
    /// Records that were read at this time or later.
    pub since: Option<DateTime<Utc>>,
}

/// The part of a log to read.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct LogQuery {
    /// The number of the first record. Ignored if `tail` is set.
    pub from: u64,
    /// Begin this many records before the end. Only records that match the filter count.
    pub tail: Option<u64>,
    /// Continue until the job has ended. A stopping daemon also ends the stream, so read the job to see whether it has ended.
    pub follow: bool,
    pub filter: LogFilter,
}

pub struct LogStream {
    client: Client,
    job: Uuid,
    unread: LogQuery,
    connection: Option<Connection>,
    repetition: Repetition,
    ended: bool,
}

struct Connection {
    since: Instant,
    answer: Answer,
    lines: Lines,
    body_ended: bool,
}

impl Client {
    pub fn logs(&self, job: Uuid, query: LogQuery) -> LogStream {
        LogStream {
            client: self.clone(),
            job,
            unread: query,
            connection: None,
            repetition: Repetition::new(Patience::Call),
            ended: false,
        }
    }

    /// One page of the records of a log that contain a text: `GET /jobs/{id}/logs/search`. `cursor` is the `next_cursor` of the
    /// previous page.
    pub async fn search_log(
        &self,
        job: Uuid,
        text: &str,
        filter: &LogFilter,
        limit: Option<u32>,
        cursor: Option<&str>,
    ) -> Result<LogMatches, Error> {
        let route = job_route(job).then("logs").then("search").with("q", text);
        let route = filter.ask(route);
        let route = route.with_some("limit", limit).with_some("cursor", cursor);
        self.get(&route).answer().await
    }
}

impl LogFilter {
    fn ask(&self, route: Route) -> Route {
        let since = self.since;
        let since = since.map(|since| since.to_rfc3339_opts(SecondsFormat::AutoSi, true));
        route
            .with_some("step", self.step)
            .with_some("stream", self.stream.map(Stream::as_str))
            .with_some("since", since)
    }
}

impl LogStream {
    /// The next record; `None` at the end. Do not call this again after an error.
    pub async fn next_record(&mut self) -> Result<Option<LogRecord>, Error> {
        while !self.ended {
            match self.advance().await {
                Ok(Some(record)) => {
                    self.repetition.succeeded();
                    self.unread.from = record.n.saturating_add(1);
                    self.unread.tail = None;
                    return Ok(Some(record));
                }
                Ok(None) => self.ended = true,
                Err(error) => {
                    if let Some(lost) = self.connection.take()
                        && lost.since.elapsed() > limits::STEADY_CONNECTION
                    {
                        self.repetition.succeeded();
                    }
                    if let Err(error) = self.repetition.pause_after(error).await {
                        self.ended = true;
                        return Err(error);
                    }
                }
            }
        }
        Ok(None)
    }

    /// The same log for a caller that has already reached the daemon: it waits as long as a restart takes.
    #[must_use]
    pub fn patiently(mut self) -> Self {
        self.repetition.be(Patience::Wait);
        self
    }

    /// The unread part: a query that continues after the last record.
    pub fn unread(&self) -> LogQuery {
        self.unread
    }

    async fn advance(&mut self) -> Result<Option<LogRecord>, Error> {
        if self.connection.is_none() {
            self.connection = Some(self.connect().await?);
            self.repetition.be(Patience::Wait);
        }
        let Some(connection) = &mut self.connection else {
            return Ok(None);
        };
        while let Some(record) = connection.record().await? {
            // The caller already has a repeated record.
            if record.n >= self.unread.from {
                return Ok(Some(record));
            }
        }
        Ok(None)
    }

    async fn connect(&self) -> Result<Connection, Error> {
        let query = &self.unread;
        let route = job_route(self.job).then("logs");
        let mut route = match query.tail {
            Some(tail) => route.with("tail", tail),
            None => route.with("from", query.from),
        };
        if query.follow {
            route = route.with("follow", true);
        }
        let route = query.filter.ask(route);
        let answer = self
            .client
            .get(&route)
            .patience(Patience::Once)
            .accept(wire::NDJSON_MEDIA_TYPE)
            .open()
            .await?;
        Ok(Connection {
            since: Instant::now(),
            answer,
            lines: Lines::new(limits::LOG_LINE_BYTES),
            body_ended: false,
        })
    }
}

impl Connection {
    async fn record(&mut self) -> Result<Option<LogRecord>, Error> {
        loop {
            let line = match self.lines.next_line() {
                Ok(Some(line)) => Some(line),
                Ok(None) if self.body_ended => self.lines.rest(),
                Ok(None) => {
                    match self.answer.piece().await? {
                        Some(piece) => self.lines.push(&piece),
                        None => self.body_ended = true,
                    }
                    continue;
                }
                Err(TooLong) => return Err(self.protocol("a line without end".to_owned())),
            };
            let Some(line) = line else {
                return Ok(None);
            };
            return serde_json::from_slice(&line)
                .map(Some)
                .map_err(|error| self.protocol(error.to_string()));
        }
    }

    fn protocol(&self, reason: String) -> Error {
        Error::Protocol {
            operation: self.answer.operation().clone(),
            reason,
        }
    }
}
