//! `everscan cron`: explains schedules with the code that the daemon uses.

use chrono::{DateTime, SecondsFormat, Utc};
use clap::{Args, Subcommand};
use serde::Serialize;
use workflow::{Cron, Timezone, excerpts};

use crate::clock::{moment, now};
use crate::error::Error;
use crate::exit::Exit;
use crate::limits;
use crate::session::Session;

#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// Describe a schedule in words
    Describe(Describe),
    /// List the next times at which a schedule is due
    Next(Next),
}

impl Command {
    pub(crate) fn run(self, session: &mut Session<'_>) -> Result<Exit, Error> {
        match self {
            Self::Describe(command) => command.run(session),
            Self::Next(command) => command.run(session),
        }
    }
}

#[derive(Debug, Args)]
pub(crate) struct Describe {
    /// Minute, hour, day of month, month and day of week, as one argument: '5 */2 * * *'
    #[arg(value_name = "EXPR")]
    schedule: String,
}

#[derive(Debug, Serialize)]
struct Described {
    schedule: String,
    description: String,
}

impl Describe {
    fn run(self, session: &mut Session<'_>) -> Result<Exit, Error> {
        let cron = read(&self.schedule)?;
        let described = Described {
            schedule: cron.source().to_owned(),
            description: cron.describe(),
        };
        session.show(&described, |described| {
            format!("{}\n", described.description)
        })?;
        Ok(Exit::Succeeded)
    }
}

#[derive(Debug, Args)]
pub(crate) struct Next {
    /// Minute, hour, day of month, month and day of week, as one argument: '5 */2 * * *'
    #[arg(value_name = "EXPR")]
    schedule: String,
    /// How many times to list
    #[arg(long, env = "SERVICE_COUNT", value_name = "N", default_value_t = 5, value_parser = clap::value_parser!(u32).range(1..=limits::CRON_TIMES))]
    count: u32,
    /// List times after this one, as in 2026-11-21T10:00:00Z [default: now]
    #[arg(long, env = "SERVICE_FROM", value_name = "TIME", value_parser = moment)]
    from: Option<DateTime<Utc>>,
    /// Time zone of the schedule, in which the times are shown, as in Europe/Berlin
    #[arg(long, env = "SERVICE_TIMEZONE", value_name = "ZONE", default_value = "UTC", value_parser = zone)]
    timezone: Timezone,
}

impl Next {
    fn run(self, session: &mut Session<'_>) -> Result<Exit, Error> {
        let cron = read(&self.schedule)?;
        let from = self.from.unwrap_or_else(now);
        let count = usize::try_from(self.count).unwrap_or(usize::MAX);
        let times: Vec<String> = times(&cron, from, self.timezone)
            .take(count)
            .map(|time| {
                time.with_timezone(&self.timezone)
                    .to_rfc3339_opts(SecondsFormat::Secs, true)
            })
            .collect();
        session.show(&times, |times| {
            times.iter().map(|time| format!("{time}\n")).collect()
        })?;
        if times.len() < count {
            session.report("no more times: the calendar ends with the year 9999");
        }
        Ok(Exit::Succeeded)
    }
}

fn read(text: &str) -> Result<Cron, Error> {
    Cron::parse(text).map_err(|errors| {
        let faults: Vec<_> = errors
            .iter()
            .map(workflow::cron::CronError::fault)
            .collect();
        Error::Refused {
            excerpts: excerpts("EXPR", text, &faults),
        }
    })
}

/// The times of a schedule after `from`, to the end of the calendar.
fn times(
    cron: &Cron,
    from: DateTime<Utc>,
    timezone: Timezone,
) -> impl Iterator<Item = DateTime<Utc>> {
    std::iter::successors(cron.next_after(from, timezone), move |last| {
        cron.next_after(*last, timezone)
    })
}

fn zone(name: &str) -> Result<Timezone, String> {
    workflow::parse_timezone(name).map_err(|error| format!("{error}; {}", error.hint()))
}
