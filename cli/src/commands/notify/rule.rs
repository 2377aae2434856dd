//! `everscan notify rule`

use std::path::PathBuf;

use clap::{Args, Subcommand};
use wire::{Page, PreviewedEvent, QuietHours, Rule, RuleDefinition};

use super::{owner::Owner, report_open};
use crate::error::Error;
use crate::exit::Exit;
use crate::reading::read_value;
use crate::session::Session;
use crate::table::{Table, time};

#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// List the rules in force, of the repositories and of this command
    List {
        /// Only the rules of this project, by name or id
        #[arg(long, env = "SERVICE_PROJECT")]
        project: Option<String>,
    },
    /// Add a rule, or replace the rule of this name
    Add(Box<Add>),
    /// Show what the rules in force, or one rule, would have sent in the last week
    ///
    /// With an option of a rule, it shows one rule that need not exist.
    Preview(Box<Preview>),
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
    #[arg(long, env = "SERVICE_CHANNEL")]
    channel: String,
    #[command(flatten)]
    parts: Parts,
    #[command(flatten)]
    owner: Owner,
}

#[derive(Debug, Args)]
pub(crate) struct Preview {
    /// Channel of the rule
    #[arg(long, env = "SERVICE_CHANNEL")]
    channel: Option<String>,
    #[command(flatten)]
    parts: Parts,
    #[command(flatten)]
    owner: Owner,
}

/// The parts of a rule that may be left out.
#[derive(Debug, Args)]
pub(crate) struct Parts {
    /// Event, such as failing or artifact; may be repeated [default: what fails or is broken, and artifacts]
    #[arg(long = "event", env = "SERVICE_EVENT", value_name = "EVENT")]
    events: Vec<String>,
    /// Pattern of workflows, such as nightly/*; may be repeated [default: all]
    #[arg(long = "workflow", env = "SERVICE_WORKFLOW", value_name = "PATTERN")]
    workflows: Vec<String>,
    /// Pattern of scans; may be repeated [default: all]
    #[arg(long = "scan", env = "SERVICE_SCAN", value_name = "PATTERN")]
    scans: Vec<String>,
    /// Pattern of callback servers; may be repeated [default: all]
    #[arg(long = "callback", env = "SERVICE_CALLBACK", value_name = "PATTERN")]
    callbacks: Vec<String>,
    /// Report a failing scan after this many failures in a row [default: 1]
    #[arg(long, env = "SERVICE_AFTER", value_name = "FAILURES")]
    after: Option<u8>,
    /// Put together what follows a message within this time [default: 30s]
    #[arg(long, env = "SERVICE_GROUP", value_name = "DURATION")]
    group: Option<String>,
    /// Report an open condition again this often [default: never]
    #[arg(long, env = "SERVICE_REPEAT", value_name = "DURATION")]
    repeat: Option<String>,
    /// Hold messages in these hours, such as 22:00-07:00
    #[arg(long, env = "SERVICE_QUIET", value_name = "FROM-TO", value_parser = parse_hours)]
    quiet: Option<(String, String)>,
    /// IANA name of the time zone of these hours [default: UTC]
    #[arg(
        long,
        env = "SERVICE_TIMEZONE",
        value_name = "ZONE",
        requires = "quiet"
    )]
    timezone: Option<String>,
    /// File with the text of a message, or - for standard input
    #[arg(long, env = "SERVICE_TEMPLATE", value_name = "PATH")]
    template: Option<PathBuf>,
    /// What a message says about new lines: none, summary or lines [default: lines]
    #[arg(long, env = "SERVICE_CONTENT")]
    content: Option<String>,
}

impl Parts {
    fn definition(self, channel: String) -> Result<RuleDefinition, Error> {
        let timezone = self.timezone;
        let quiet = self
            .quiet
            .map(|(from, to)| QuietHours { from, to, timezone });
        Ok(RuleDefinition {
            channel,
            events: self.events,
            workflows: self.workflows,
            scans: self.scans,
            callbacks: self.callbacks,
            after: self.after,
            group: self.group,
            repeat: self.repeat,
            quiet,
            template: self.template.map(|path| read_value(&path)).transpose()?,
            content: self.content,
        })
    }
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
                let add = *add;
                let project = add.owner.choose(&client).await?;
                let definition = add.parts.definition(add.channel)?;
                let rule = client
                    .set_rule(project.as_deref(), &add.name, &definition)
                    .await?;
                let channel = rule.definition.channel;
                session.report(&format!("rule {} sends to channel {channel}", rule.name));
                report_open(session, &client, rule.project.as_deref()).await;
            }
            Self::Preview(asked) => {
                let Preview {
                    channel,
                    parts,
                    owner,
                } = *asked;
                let project = owner.choose(&client).await?;
                let is_named = channel.is_some();
                let name = channel.unwrap_or_else(|| "preview".to_owned());
                let nothing = RuleDefinition {
                    channel: name.clone(),
                    ..RuleDefinition::default()
                };
                let definition = parts.definition(name)?;
                let rule = Some(&definition).filter(|it| is_named || **it != nothing);
                let page = client.preview_rule(project.as_deref(), rule).await?;
                session.show(&page, preview)?;
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

fn preview(page: &Page<PreviewedEvent>) -> String {
    let mut table = Table::new(&["AT", "EVENT", "ABOUT", "RULE", "CHANNEL", "MESSAGE"]);
    for it in &page.items {
        let over = if it.is_over { ", over" } else { "" };
        table.row([
            time(&it.at),
            format!("{}{over}", it.event),
            it.about.clone(),
            it.rule.clone().unwrap_or_else(|| "-".to_owned()),
            it.channel.clone(),
            it.message.clone(),
        ]);
    }
    table.text()
}
