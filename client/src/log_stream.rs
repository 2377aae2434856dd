//! A job's log, live or finished. If the connection breaks, reading continues after the last record, so the caller sees
//! each record once.

use tokio::time::Instant;
use uuid::Uuid;
use wire::LogRecord;

use crate::call::Answer;
use crate::job::job_route;
use crate::json_lines::{Lines, TooLong};
use crate::repetition::{Patience, Repetition};
use crate::{Client, Error, limits};

/// A log being read.
pub struct LogStream {
    client: Client,
    job: Uuid,
    follow: bool,
    next: u64,
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
    /// The log from record `from` on: `GET /jobs/{id}/logs`. With `follow` it goes on until the job is over. A daemon
    /// that stops also ends a followed log, so look at the job to learn whether it is over.
    pub fn logs(&self, job: Uuid, from: u64, follow: bool) -> LogStream {
        LogStream {
            client: self.clone(),
            job,
            follow,
            next: from,
            connection: None,
            repetition: Repetition::new(Patience::Call),
            ended: false,
        }
    }
}

impl LogStream {
    /// The next record; `None` at the end. Do not call this again after an error.
    pub async fn next_record(&mut self) -> Result<Option<LogRecord>, Error> {
        while !self.ended {
            match self.advance().await {
                Ok(Some(record)) => {
                    self.repetition.succeeded();
                    self.next = record.n.saturating_add(1);
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

    /// The number of the next record.
    pub fn position(&self) -> u64 {
        self.next
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
            if record.n >= self.next {
                return Ok(Some(record));
            }
        }
        Ok(None)
    }

    async fn connect(&self) -> Result<Connection, Error> {
        let mut route = job_route(self.job).then("logs").with("from", self.next);
        if self.follow {
            route = route.with("follow", true);
        }
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
            lines: Lines::default(),
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
