//! `everscan condition`

use std::time::Duration;

use clap::Subcommand;
use wire::{Acknowledge, OpenCondition, Page, Silence};

use crate::clock::parse_duration;
use crate::error::Error;
use crate::exit::Exit;
use crate::session::Session;
use crate::table::{Fields, Table, time};

#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// List the open conditions, the oldest first
    List,
    /// Note that you know of a condition, for others to see
    ///
    /// The note stays until the condition closes. The failure of a scan that only people start closes with it.
    Ack {
        /// Id of the condition, or at least its first four characters
        condition: String,
        /// What others should know
        #[arg(long, env = "SERVICE_NOTE", value_name = "TEXT")]
        note: Option<String>,
    },
    /// Fold a condition away for a while
    Silence {
        /// Id of the condition, or at least its first four characters
        condition: String,
        /// For how long, such as 2h or 3d; at most 30d
        #[arg(long = "for", env = "SERVICE_FOR", value_name = "DURATION", value_parser = parse_duration, required_unless_present = "off")]
        span: Option<Duration>,
        /// End the silence
        #[arg(long, env = "SERVICE_OFF", conflicts_with = "span")]
        off: bool,
    },
}

impl Command {
    pub(crate) async fn run(self, session: &mut Session<'_>) -> Result<Exit, Error> {
        let client = session.client()?;
        match self {
            Self::List => session.show(&Page::all(client.conditions().await?), table)?,
            Self::Ack { condition, note } => {
                let request = Acknowledge { note };
                let condition = client.acknowledge_condition(&condition, &request).await?;
                session.show(&condition, text)?;
            }
            Self::Silence {
                condition,
                span,
                off: _,
            } => {
                let request = Silence {
                    seconds: span.map(|span| span.as_secs()),
                };
                let condition = client.silence_condition(&condition, &request).await?;
                session.show(&condition, text)?;
            }
        }
        Ok(Exit::Succeeded)
    }
}

fn table(page: &Page<OpenCondition>) -> String {
    let mut table = Table::new(&["ID", "CODE", "ABOUT", "SINCE", "STATE", "MESSAGE"]);
    for open in &page.items {
        table.row([
            open.id.to_string().chars().take(8).collect(),
            open.code.clone(),
            about(open),
            time(&open.since),
            state(open),
            open.message.clone(),
        ]);
    }
    table.text()
}

/// What the condition is about, as other commands name it.
fn about(open: &OpenCondition) -> String {
    let workflow = open
        .workflow
        .as_ref()
        .map(|it| format!("{}/{}", it.source, it.name));
    match (workflow, &open.scan) {
        (Some(workflow), Some(scan)) => format!("{workflow} {scan}"),
        (Some(workflow), None) => workflow,
        (None, _) => {
            let named = open.runner.as_ref().map(|it| format!("runner {}", it.name));
            let named = named.or_else(|| Some(format!("token {}", open.token.as_ref()?.name)));
            let named = named.or_else(|| Some(format!("source {}", open.source.as_ref()?)));
            let named = named.or_else(|| Some(format!("project {}", open.project.as_ref()?)));
            named.unwrap_or_else(|| "everscand".to_owned())
        }
    }
}

fn state(open: &OpenCondition) -> String {
    match (&open.acknowledged, &open.silenced_until) {
        (Some(_), Some(_)) => "acknowledged, silenced".to_owned(),
        (Some(_), None) => "acknowledged".to_owned(),
        (None, Some(_)) => "silenced".to_owned(),
        (None, None) => "open".to_owned(),
    }
}

fn text(open: &OpenCondition) -> String {
    let by = open.acknowledged.as_ref().map(|it| match &it.note {
        Some(note) => format!("by {} at {}: {note}", it.by, time(&it.at)),
        None => format!("by {} at {}", it.by, time(&it.at)),
    });
    Fields::new()
        .add("condition", open.id.to_string())
        .add("code", &open.code)
        .add("about", about(open))
        .add("message", &open.message)
        .add("since", time(&open.since))
        .add_some("acknowledged", by)
        .add_some("silenced until", open.silenced_until.as_ref().map(time))
        .text()
}
