use chrono::{DateTime, Utc};
use clap::Args;
use clap::builder::NonEmptyStringValueParser;
use client::{Client, LogFilter, LogQuery};
use uuid::Uuid;
use wire::{Job, Stream};

use crate::clock::moment_or_age;
use crate::commands::one_of;
use crate::error::Error;
use crate::exit::Exit;
use crate::follow;
use crate::limits::MATCHES;
use crate::log_lines::{Grep, LogLines, report_matched};
use crate::selected_job::SelectedJob;
use crate::session::Session;
use crate::wait::{self, Waited};

const STREAMS: [Stream; 3] = [Stream::Stdout, Stream::Stderr, Stream::Runner];

#[derive(Debug, Args)]
pub(crate) struct Logs {
    #[command(flatten)]
    job: SelectedJob,
    /// Continue until the job and its retries have ended; the exit code shows how the last one ended
    #[arg(long, short, env = "SERVICE_FOLLOW")]
    follow: bool,
    /// Number of the first line, from 0
    #[arg(
        long,
        env = "SERVICE_FROM",
        default_value_t = 0,
        value_name = "NUMBER",
        conflicts_with = "tail"
    )]
    from: u64,
    /// Only this many lines at the end
    #[arg(long, env = "SERVICE_TAIL", value_name = "N", value_parser = clap::value_parser!(u64).range(1..))]
    tail: Option<u64>,
    /// Only lines of this step, from 1
    #[arg(long, env = "SERVICE_STEP", value_name = "N", value_parser = clap::value_parser!(u32).range(1..))]
    step: Option<u32>,
    /// Only lines of this stream
    #[arg(long, env = "SERVICE_STREAM", value_parser = one_of(&STREAMS, Stream::as_str))]
    stream: Option<Stream>,
    /// Only lines that contain this text; a text in lower case also matches upper-case letters
    #[arg(long, env = "SERVICE_GREP", value_name = "TEXT", value_parser = NonEmptyStringValueParser::new())]
    grep: Option<String>,
    /// Only lines printed since this time, or since so long ago, as in 10m
    #[arg(long, env = "SERVICE_SINCE", value_name = "TIME", value_parser = moment_or_age)]
    since: Option<DateTime<Utc>>,
    /// Begin each line with its time, mark standard error, and put a heading before each step
    #[arg(long, env = "SERVICE_TIMESTAMPS")]
    timestamps: bool,
}

impl Logs {
    pub(crate) async fn run(self, session: &mut Session<'_>) -> Result<Exit, Error> {
        let (client, job) = session.client_and_job(&self.job).await?;
        let (mut lines, step) = (LogLines::new(self.timestamps), self.step);
        let exit = self.read(session, &client, job, &mut lines).await?;
        if let Some(step) = step.filter(|_| lines.is_empty()) {
            verify_step(&client.job(job).await?, step)?;
        }
        Ok(exit)
    }

    async fn read(
        self,
        session: &mut Session<'_>,
        client: &Client,
        job: Uuid,
        lines: &mut LogLines,
    ) -> Result<Exit, Error> {
        let query = LogQuery {
            from: self.from,
            tail: self.tail,
            follow: self.follow,
            filter: LogFilter {
                step: self.step.map(|step| step - 1),
                stream: self.stream,
                since: self.since,
            },
        };
        let Some(text) = self.grep else {
            return print(session, client, job, query, lines).await;
        };
        let is_all = !query.follow && query.tail.is_none() && query.from == 0;
        if is_all {
            search(session, client, job, &text, &query.filter, lines).await?;
            return Ok(Exit::Succeeded);
        }
        lines.print_only(Grep::new(&text));
        let exit = print(session, client, job, query, lines).await?;
        if !query.follow {
            lines.report_matched(session);
        }
        Ok(exit)
    }
}

async fn print(
    session: &mut Session<'_>,
    client: &Client,
    job: Uuid,
    query: LogQuery,
    lines: &mut LogLines,
) -> Result<Exit, Error> {
    if query.follow {
        let job = follow::follow(session, client, &Waited::new(job), query, lines).await?;
        return Ok(wait::report_end(session, &job));
    }
    follow::read(session, client, job, query, lines).await?;
    Ok(Exit::Succeeded)
}

/// An error if the job has ended without this step. More steps may come while it is unfinished.
fn verify_step(job: &Job, step: u32) -> Result<(), Error> {
    let has_step = job.steps.iter().any(|it| it.index + 1 == step);
    if has_step || !job.state.is_terminal() {
        return Ok(());
    }
    let steps = job.steps.iter().map(|it| match &it.name {
        Some(name) => format!("{} ({name})", it.index + 1),
        None => (it.index + 1).to_string(),
    });
    let steps = steps.collect::<Vec<_>>().join(", ");
    Err(Error::Missing {
        what: format!("job {} has no step {step}", job.id),
        hint: match steps.as_str() {
            "" => "none of its steps has started".to_owned(),
            steps => format!("its steps are {steps}"),
        },
    })
}

/// Prints what the daemon finds, page by page.
async fn search(
    session: &mut Session<'_>,
    client: &Client,
    job: Uuid,
    text: &str,
    filter: &LogFilter,
    lines: &mut LogLines,
) -> Result<(), Error> {
    let mut cursor: Option<String> = None;
    loop {
        let page = client.search_log(job, text, filter, Some(MATCHES), cursor.as_deref());
        let page = page.await?;
        for record in &page.matches {
            lines.print(session, record)?;
        }
        cursor = page.next_cursor;
        if cursor.is_none() {
            report_matched(session, page.total, page.records);
            return Ok(());
        }
    }
}
