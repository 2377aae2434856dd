//! `everscan callback watch`

use std::time::Duration;

use clap::Args;
use client::Client;
use tokio::time::{Instant, timeout_at};
use wire::{Callback, Interaction};

use super::shown::line;
use super::{Named, Wanted, interactsh};
use crate::clock::parse_duration;
use crate::error::Error;
use crate::exit::Exit;
use crate::session::Session;

/// The job of a step.
const JOB_ID: &str = "SERVICE_JOB_ID";

#[derive(Debug, Args)]
pub(crate) struct Watch {
    #[command(flatten)]
    of: Named,
    #[command(flatten)]
    wanted: Wanted,
    /// How long to watch, as in 60s; without it, until Ctrl-C
    #[arg(long = "for", env = "SERVICE_FOR", value_name = "DURATION", value_parser = parse_duration)]
    span: Option<Duration>,
    /// End once so many have come; with --for, fewer are exit code 6
    #[arg(long, env = "SERVICE_MIN", value_name = "COUNT", value_parser = clap::value_parser!(u64).range(1..))]
    min: Option<u64>,
    /// Begin after the interaction with this number, instead of now. A step counts what the names of its job have heard since its
    /// claim, unless a tag, a job or a number is given
    #[arg(long, env = "SERVICE_AFTER", value_name = "NUMBER")]
    after: Option<u64>,
}

impl Watch {
    pub(super) async fn run(
        self,
        session: &mut Session<'_>,
        client: &Client,
    ) -> Result<Exit, Error> {
        let until = self.span.map(|span| Instant::now() + span);
        let found = self.of.find(client).await?;
        let mut filter = self.wanted.filter();
        let is_limited = self.after.is_some() || filter.tag.is_some() || filter.job.is_some();
        if !is_limited {
            filter.job = std::env::var(JOB_ID).ok().filter(|id| !id.is_empty());
        }
        let mut after = match self.after {
            Some(after) => after,
            // A job has no interactions from before its claim.
            None if filter.job.is_some() => 0,
            None => newest(client, &found).await?,
        };
        let min = self.min.or(self.span.map(|_| 1));
        let mut count: u64 = 0;
        loop {
            let next = client.next_interactions(&found.id, &filter, after);
            let page = match until {
                None => next.await?,
                Some(until) => match timeout_at(until, next).await {
                    Ok(page) => page?,
                    Err(_) => return Ok(self.end(session, count)),
                },
            };
            for it in &page.items {
                after = after.max(it.number);
                count += 1;
                self.print(session, &found, it)?;
                if min.is_some_and(|min| count >= min) {
                    return Ok(Exit::Succeeded);
                }
            }
            let searched = page.next_cursor.and_then(|cursor| cursor.parse().ok());
            after = searched.map_or(after, |searched: u64| searched.max(after));
            session.terminal.flush()?;
        }
    }

    /// The time is over.
    fn end(&self, session: &mut Session<'_>, count: u64) -> Exit {
        let min = self.min.unwrap_or(1);
        if count >= min {
            return Exit::Succeeded;
        }
        session.report(&format!("{count} of {min} interactions came in time"));
        Exit::WaitTimedOut
    }

    fn print(
        &self,
        session: &mut Session<'_>,
        of: &Callback,
        it: &Interaction,
    ) -> Result<(), Error> {
        let text = match self.wanted.format {
            Some(super::OtherFormat::Interactsh) => interactsh::line(of, it),
            None => session.format.item(it)?.unwrap_or_else(|| line(it)),
        };
        session.terminal.line(&text)
    }
}

async fn newest(client: &Client, of: &Callback) -> Result<u64, Error> {
    let all = client::InteractionFilter::default();
    let page = client.interactions(&of.id, &all, Some(1), None).await?;
    Ok(page.items.first().map_or(0, |newest| newest.number))
}
