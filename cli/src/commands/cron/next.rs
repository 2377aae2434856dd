//! `everscan cron next`: when a schedule is due, as the daemon finds it.

use chrono::{DateTime, SecondsFormat, Utc};
use clap::Args;
use workflow::{Cron, Timezone};

use crate::clock::{moment, now};
use crate::error::Error;
use crate::exit::Exit;
use crate::limits;
use crate::session::Session;

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
    /// Zone whose wall clock the schedule follows, and in which the times are shown, as in Europe/Berlin
    #[arg(long, env = "SERVICE_TIMEZONE", value_name = "ZONE", default_value = "UTC", value_parser = zone)]
    timezone: Timezone,
}

impl Next {
    pub(crate) fn run(self, session: &mut Session<'_>) -> Result<Exit, Error> {
        let cron = super::read(&self.schedule)?;
        let from = self.from.unwrap_or_else(now);
        let times: Vec<String> = times(&cron, from, self.timezone)
            .take(usize::try_from(self.count).unwrap_or(usize::MAX))
            .map(|time| {
                time.with_timezone(&self.timezone)
                    .to_rfc3339_opts(SecondsFormat::Secs, true)
            })
            .collect();
        let is_short = times.len() < usize::try_from(self.count).unwrap_or(usize::MAX);
        session.show(&times, |times| {
            times.iter().map(|time| format!("{time}\n")).collect()
        })?;
        if is_short {
            session
                .terminal
                .say("no more times: the calendar ends with the year 9999");
        }
        Ok(Exit::Succeeded)
    }
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
