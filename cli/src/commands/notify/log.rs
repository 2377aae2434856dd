//! `everscan notify log` and `everscan notify retry`

use clap::Args;
use client::DeliveryFilter;
use uuid::Uuid;
use wire::{Delivery, Page, RetryChannel};

use super::owner::Owner;
use crate::error::Error;
use crate::exit::Exit;
use crate::selected_job::{JobName, job_name};
use crate::session::Session;
use crate::table::{Table, time};

#[derive(Debug, Args)]
pub(crate) struct Log {
    /// Only what was sent to channels of this project, by name or id
    #[arg(long, env = "SERVICE_PROJECT")]
    project: Option<String>,
    /// Only what was sent to the channel of this name
    #[arg(long, env = "SERVICE_CHANNEL", value_name = "NAME")]
    channel: Option<String>,
    /// Only messages about this job, by id or at least four of its first or last digits
    #[arg(short, long, env = "SERVICE_JOB", value_parser = job_name)]
    job: Option<JobName>,
    /// The largest number of attempts
    #[arg(short = 'n', long, env = "SERVICE_LIMIT", default_value_t = 20, value_parser = clap::value_parser!(u32).range(1..=1000))]
    limit: u32,
}

impl Log {
    pub(crate) async fn run(self, session: &mut Session<'_>) -> Result<Exit, Error> {
        let client = session.client()?;
        let job = match self.job {
            Some(job) => Some(job.id(&client).await?),
            None => None,
        };
        let filter = DeliveryFilter {
            project: self.project,
            channel: self.channel,
            job,
        };
        let mut page: Page<Delivery> = Page::all(Vec::new());
        while page.items.len() < self.limit as usize {
            let rest = self.limit - page.items.len() as u32;
            let cursor = page.next_cursor.as_deref();
            let more = client
                .deliveries(&filter, Some(rest.min(100)), cursor)
                .await?;
            page.items.extend(more.items);
            page.next_cursor = more.next_cursor;
            if page.next_cursor.is_none() {
                break;
            }
        }
        if let Some(channel) = filter.channel.filter(|_| page.items.is_empty()) {
            let channels = client.channels(filter.project.as_deref()).await?;
            if !channels.iter().any(|it| it.name == channel) {
                return Err(Error::Missing {
                    what: format!("there is no channel {channel}"),
                    hint: "`everscan notify channel list` shows the channels".to_owned(),
                });
            }
        }
        session.show(&page, table)?;
        Ok(Exit::Succeeded)
    }
}

fn table(page: &Page<Delivery>) -> String {
    let mut table = Table::new(&[
        "AT", "CHANNEL", "RESULT", "ATTEMPT", "EVENTS", "TITLE", "REPLY", "MESSAGE",
    ]);
    for it in &page.items {
        let channel = match &it.project {
            Some(project) => format!("{project}/{}", it.channel),
            None => it.channel.clone(),
        };
        let attempt = match it.repeated {
            true => format!("{} (repeated)", it.attempt),
            false => it.attempt.to_string(),
        };
        table.row([
            time(&it.at),
            channel,
            it.result.result.as_str().to_owned(),
            attempt,
            it.events.to_string(),
            it.title.clone(),
            it.result.reply.clone(),
            it.message.to_string(),
        ]);
    }
    table.text()
}

#[derive(Debug, Args)]
pub(crate) struct Retry {
    /// Name of the channel
    channel: String,
    /// A failed message, by the id in the log. Without it, what waits is sent
    #[arg(long, env = "SERVICE_MESSAGE", value_name = "ID")]
    message: Option<Uuid>,
    #[command(flatten)]
    owner: Owner,
}

impl Retry {
    pub(crate) async fn run(self, session: &mut Session<'_>) -> Result<Exit, Error> {
        let client = session.client()?;
        let project = self.owner.choose(&client).await?;
        let request = RetryChannel {
            message: self.message,
        };
        client
            .retry_channel(project.as_deref(), &self.channel, &request)
            .await?;
        session.report("it is sent now; `everscan notify log` shows its result");
        Ok(Exit::Succeeded)
    }
}
