//! `everscan notify rule`

use std::path::PathBuf;

use clap::{Args, Subcommand};
use wire::{Page, QuietHours, Rule, RuleDefinition};

use super::owner::Owner;
use crate::error::Error;
use crate::exit::Exit;
use crate::reading::read_value;
use crate::session::Session;
use crate::table::Table;

#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// List the rules in force, of the repositories and of this command
    List {
        /// Only the rules of this project, by name or id
        #[arg(long, env = "SERVICE_PROJECT")]
        project: Option<String>,
    },
    /// Add a rule, or replace the rule of this name
    Add(Add),
    /// Delete a rule; one of everscan.yaml is deleted there
    Delete {
        /// Name of the rule
        name: String,
        #[command(flatten)]
        owner: Owner,
    },
}

#[derive(Debug, Args)]
pub(crate) struct Add {
    /// Name of the rule: letters, digits, - and _
    name: String,
    /// Channel that gets the messages
    #[arg(long)]
    channel: String,
    /// Event, such as failing or artifact; may be repeated [default: failures, broken expectations, artifacts]
    #[arg(long = "event", value_name = "EVENT")]
    events: Vec<String>,
    /// Pattern of workflows, such as nightly/*; may be repeated [default: all]
    #[arg(long = "workflow", value_name = "PATTERN")]
    workflows: Vec<String>,
    /// Pattern of scans; may be repeated [default: all]
    #[arg(long = "scan", value_name = "PATTERN")]
    scans: Vec<String>,
    /// Report a failing scan after this many failures in a row [default: 1]
    #[arg(long, value_name = "FAILURES")]
    after: Option<u8>,
    /// Put together what follows a message within this time [default: 30s]
    #[arg(long, value_name = "DURATION")]
    group: Option<String>,
    /// Report an open condition again this often [default: never]
    #[arg(long, value_name = "DURATION")]
    repeat: Option<String>,
    /// Hold messages in these hours, such as 22:00-07:00
    #[arg(long, value_name = "FROM-TO", value_parser = parse_hours)]
    quiet: Option<(String, String)>,
    /// IANA name of the time zone of these hours [default: UTC]
    #[arg(long, value_name = "ZONE", requires = "quiet")]
    timezone: Option<String>,
    /// File with the text of a message, or - for standard input
    #[arg(long, value_name = "PATH")]
    template: Option<PathBuf>,
    /// What a message says about new lines: none, summary or lines [default: lines]
    #[arg(long)]
    content: Option<String>,
    #[command(flatten)]
    owner: Owner,
}

fn parse_hours(text: &str) -> Result<(String, String), &'static str> {
    let (from, to) = text.split_once('-').ok_or("write it like 22:00-07:00")?;
    Ok((from.trim().to_owned(), to.trim().to_owned()))
}

impl Command {
    pub(crate) async fn run(self, session: &mut Session<'_>) -> Result<Exit, Error> {
        let client = session.client()?;
        match self {
            Self::List { project } => {
                session.show(&Page::all(client.rules(project.as_deref()).await?), table)?;
            }
            Self::Add(add) => {
                let project = add.owner.choose(&client).await?;
                let timezone = add.timezone;
                let quiet = add
                    .quiet
                    .map(|(from, to)| QuietHours { from, to, timezone });
                let definition = RuleDefinition {
                    channel: add.channel,
                    events: add.events,
                    workflows: add.workflows,
                    scans: add.scans,
                    after: add.after,
                    group: add.group,
                    repeat: add.repeat,
                    quiet,
                    template: add.template.map(|path| read_value(&path)).transpose()?,
                    content: add.content,
                };
                let rule = client
                    .set_rule(project.as_deref(), &add.name, &definition)
                    .await?;
                let channel = rule.definition.channel;
                session.report(&format!("rule {} sends to channel {channel}", rule.name));
            }
            Self::Delete { name, owner } => {
                let project = owner.choose(&client).await?;
                client.delete_rule(project.as_deref(), &name).await?;
                session.report(&format!("rule {name} is deleted"));
            }
        }
        Ok(Exit::Succeeded)
    }
}

fn table(page: &Page<Rule>) -> String {
    let mut table = Table::new(&[
        "NAME",
        "PROJECT",
        "CHANNEL",
        "EVENTS",
        "WORKFLOWS",
        "SCANS",
        "FROM",
    ]);
    for rule in &page.items {
        let it = &rule.definition;
        let some = |texts: &[String], none: &str| match texts {
            [] => none.to_owned(),
            texts => texts.join(" "),
        };
        table.row([
            rule.name.clone(),
            rule.project.clone().unwrap_or_else(|| "-".to_owned()),
            it.channel.clone(),
            some(&it.events, "usual"),
            some(&it.workflows, "all"),
            some(&it.scans, "all"),
            rule.origin.as_str().to_owned(),
        ]);
    }
    table.text()
}
