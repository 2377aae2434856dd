//! `everscan notify channel`. A secret is never an argument, because other users of the machine can read arguments.

use std::path::PathBuf;

use clap::{Args, Subcommand};
use client::Expected;
use wire::{Channel, ChannelTarget, DeliveryResult, MailSecurity, Page, SetChannel};

use super::{owner::Owner, report_open};
use crate::commands::one_of;
use crate::error::Error;
use crate::exit::Exit;
use crate::hidden_input;
use crate::reading::{read_text, read_value};
use crate::session::Session;
use crate::table::{Fields, Table, time};

#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// Add a channel; with --replace, change it
    Add(Box<Add>),
    /// List the channels, of a project or of all projects and the instance
    List {
        /// Only the channels of this project, by name or id
        #[arg(long, env = "SERVICE_PROJECT")]
        project: Option<String>,
    },
    /// Show a channel, and whether its messages arrive
    Show(Named),
    /// Send a test message, and show what the receiver replies
    Test(Named),
    /// Delete a channel; what waits for it is not sent
    Delete(Named),
}

#[derive(Debug, Args)]
pub(crate) struct Named {
    /// Name of the channel
    name: String,
    #[command(flatten)]
    owner: Owner,
}

#[derive(Debug, Args)]
pub(crate) struct Add {
    /// Name of the channel: letters, digits, - and _
    name: String,
    #[command(flatten)]
    to: To,
    /// Sender of mails
    #[arg(long, env = "SERVICE_FROM", value_name = "ADDRESS", requires = "email")]
    from: Option<String>,
    /// Mail server, as HOST or HOST:PORT
    #[arg(long, env = "SERVICE_SMTP", value_name = "HOST", requires = "email")]
    smtp: Option<String>,
    /// Encryption of mail: starttls, tls or none [default: starttls]
    #[arg(long, env = "SERVICE_SECURITY", value_name = "WORD", value_parser = one_of(MailSecurity::ALL, MailSecurity::as_str), hide_possible_values = true, requires = "email")]
    security: Option<MailSecurity>,
    /// Account at the mail server; its password is the secret
    #[arg(
        long,
        env = "SERVICE_USERNAME",
        value_name = "NAME",
        requires = "email"
    )]
    username: Option<String>,
    /// File with the certificate of the receiver's own authority, as PEM
    #[arg(long, env = "SERVICE_CA", value_name = "PATH", conflicts_with_all = ["slack", "discord", "command"])]
    ca: Option<PathBuf>,
    /// File with the secret, or - for standard input. Without it you are asked, if the channel needs one
    #[arg(long, env = "SERVICE_SECRET_FILE", value_name = "PATH")]
    secret_file: Option<PathBuf>,
    /// Project that may use a channel of the instance; may be repeated
    #[arg(
        long = "offer-to",
        env = "SERVICE_OFFER_TO",
        value_name = "PROJECT",
        requires = "instance"
    )]
    offered_to: Vec<String>,
    /// All projects may use this channel of the instance
    #[arg(
        long,
        env = "SERVICE_OFFER_TO_ALL",
        requires = "instance",
        conflicts_with = "offered_to"
    )]
    offer_to_all: bool,
    /// Change the channel if there is one of this name
    #[arg(long, env = "SERVICE_REPLACE")]
    replace: bool,
    #[command(flatten)]
    owner: Owner,
}

#[derive(Debug, Args)]
#[group(required = true, multiple = false)]
struct To {
    /// Send mail to this address; may be repeated
    #[arg(long, env = "SERVICE_EMAIL", value_name = "ADDRESS", requires_all = ["from", "smtp"])]
    email: Vec<String>,
    /// Post to this address, signed as Standard Webhooks says; the secret is a key, or is made
    #[arg(long, env = "SERVICE_WEBHOOK", value_name = "URL")]
    webhook: Option<String>,
    /// Post to Slack; the secret is the address of the webhook
    #[arg(long, env = "SERVICE_SLACK")]
    slack: bool,
    /// Post to Discord; the secret is the address of the webhook
    #[arg(long, env = "SERVICE_DISCORD")]
    discord: bool,
    /// Post to ntfy, as https://SERVER/TOPIC; the secret is a token, if the topic needs one
    #[arg(long, env = "SERVICE_NTFY", value_name = "URL")]
    ntfy: Option<String>,
    /// Run the program that the daemon's configuration gives this name
    #[arg(long, env = "SERVICE_COMMAND", value_name = "NAME")]
    command: Option<String>,
}

impl Add {
    fn target(&self, ca: Option<String>) -> Result<ChannelTarget, Error> {
        let to = &self.to;
        if let Some(url) = &to.webhook {
            let url = url.clone();
            return Ok(ChannelTarget::Webhook { url, ca });
        }
        if let Some(url) = &to.ntfy {
            let (server, topic) = url.rsplit_once('/').ok_or_else(|| Error::Usage {
                what: format!("`{url}` names no topic"),
                hint: "write it like https://ntfy.sh/TOPIC",
            })?;
            return Ok(ChannelTarget::Ntfy {
                server: server.to_owned(),
                topic: topic.to_owned(),
                ca,
            });
        }
        if let Some(command) = &to.command {
            let command = command.clone();
            return Ok(ChannelTarget::Command { command });
        }
        if to.slack {
            return Ok(ChannelTarget::Slack);
        }
        if to.discord {
            return Ok(ChannelTarget::Discord);
        }
        let smtp = self.smtp.as_deref().unwrap_or_default();
        let (host, port) = match smtp
            .rsplit_once(':')
            .map(|(host, port)| (host, port.parse()))
        {
            Some((host, Ok(port))) if !host.contains(':') || host.ends_with(']') => {
                (host, Some(port))
            }
            _ => (smtp, None),
        };
        Ok(ChannelTarget::Email {
            host: host.trim_matches(['[', ']']).to_owned(),
            port,
            security: self.security.unwrap_or_default(),
            from: self.from.clone().unwrap_or_default(),
            to: to.email.clone(),
            username: self.username.clone(),
            ca,
        })
    }

    /// What the secret of the channel is, if it needs one that the daemon cannot make.
    const fn question(&self) -> Option<&'static str> {
        if self.to.slack || self.to.discord {
            Some("address of the webhook: ")
        } else if self.username.is_some() {
            Some("password of the account: ")
        } else {
            None
        }
    }

    async fn run(self, session: &mut Session<'_>) -> Result<Exit, Error> {
        let client = session.client()?;
        let read = |path: &PathBuf| read_text(path, crate::limits::VALUE_FILE);
        let ca = self.ca.as_ref().map(read).transpose()?;
        let target = self.target(ca)?;
        let secret = match (&self.secret_file, self.question()) {
            (Some(path), _) => Some(read_value(path)?),
            (None, Some(question)) if !self.replace && hidden_input::is_possible() => {
                Some(hidden_input::ask(session.terminal, question).await?)
            }
            (None, _) => None,
        };
        let channel = SetChannel {
            target,
            secret,
            offered_to: self.offered_to,
            offered_to_all: self.offer_to_all,
        };
        let expected = match self.replace {
            true => Expected::Anything,
            false => Expected::Nothing,
        };
        let project = self.owner.choose(&client).await?;
        let channel = client
            .set_channel(project.as_deref(), &self.name, &channel, expected)
            .await?;
        session.report(&format!(
            "channel {} is set; try it with `everscan notify channel test {}{}`",
            channel.name,
            channel.name,
            Owner::option(channel.project.as_deref()),
        ));
        if expected == Expected::Nothing {
            report_open(session, &client, channel.project.as_deref()).await;
        }
        if channel.new_key.is_some() {
            session
                .report("the receiver checks signatures with this key, which is shown only now:");
        }
        let key = |channel: &Channel| match &channel.new_key {
            Some(key) => format!("{key}\n"),
            None => String::new(),
        };
        session.show(&channel, key)?;
        Ok(Exit::Succeeded)
    }
}

impl Command {
    pub(crate) async fn run(self, session: &mut Session<'_>) -> Result<Exit, Error> {
        let client = session.client()?;
        match self {
            Self::Add(add) => return add.run(session).await,
            Self::List { project } => {
                let channels = client.channels(project.as_deref()).await?;
                session.show(&Page::all(channels), table)?;
            }
            Self::Show(Named { name, owner }) => {
                let project = owner.choose(&client).await?;
                session.show(&client.channel(project.as_deref(), &name).await?, text)?;
            }
            Self::Test(Named { name, owner }) => {
                let project = owner.choose(&client).await?;
                let result = client.test_channel(project.as_deref(), &name).await?;
                session.show(&result, |result| {
                    format!("{}: {}\n", result.result.as_str(), result.reply)
                })?;
                if result.result != DeliveryResult::Delivered {
                    return Ok(Exit::Failed);
                }
            }
            Self::Delete(Named { name, owner }) => {
                let project = owner.choose(&client).await?;
                client.delete_channel(project.as_deref(), &name).await?;
                session.report(&format!("channel {name} is deleted"));
            }
        }
        Ok(Exit::Succeeded)
    }
}

fn to(target: &ChannelTarget) -> String {
    match target {
        ChannelTarget::Email { to, .. } => format!("email {}", to.join(" ")),
        ChannelTarget::Webhook { url, .. } => format!("webhook {url}"),
        ChannelTarget::Slack => "slack".to_owned(),
        ChannelTarget::Discord => "discord".to_owned(),
        ChannelTarget::Ntfy { server, topic, .. } => format!("ntfy {server}/{topic}"),
        ChannelTarget::Command { command } => format!("command {command}"),
    }
}

fn state(channel: &Channel) -> String {
    match (&channel.failing, channel.sent_at) {
        (Some(failing), _) if failing.gone => "gone".to_owned(),
        (Some(_), _) => "failing".to_owned(),
        (None, Some(at)) => format!("sent {}", time(&at)),
        (None, None) => "nothing sent yet".to_owned(),
    }
}

fn table(page: &Page<Channel>) -> String {
    let mut table = Table::new(&["NAME", "PROJECT", "SENDS TO", "STATE"]);
    for channel in &page.items {
        table.row([
            channel.name.clone(),
            channel.project.clone().unwrap_or_else(|| "-".to_owned()),
            to(&channel.target),
            state(channel),
        ]);
    }
    table.text()
}

fn text(channel: &Channel) -> String {
    let mut fields = Fields::new()
        .add("name", &channel.name)
        .add("project", channel.project.as_deref().unwrap_or("-"))
        .add("sends to", to(&channel.target));
    if let ChannelTarget::Email {
        host,
        port,
        security,
        from,
        username,
        ..
    } = &channel.target
    {
        let port = port.map_or_else(String::new, |port| format!(":{port}"));
        fields = fields
            .add("server", format!("{host}{port}, {}", security.as_str()))
            .add("from", from)
            .add_some("account", username.as_ref());
    }
    let offered = match channel.offered_to_all {
        true => "all projects".to_owned(),
        false => channel.offered_to.join(", "),
    };
    let changed = format!("{} by {}", time(&channel.changed_at), channel.changed_by);
    let failing = channel.failing.as_ref();
    fields
        .add("secret", if channel.has_secret { "set" } else { "none" })
        .add_some("offered to", Some(offered).filter(|it| !it.is_empty()))
        .add("changed", changed)
        .add("state", state(channel))
        .add_some(
            "failing since",
            failing.map(|it| format!("{}: {}", time(&it.since), it.reason)),
        )
        .add_some(
            "waiting",
            channel.waiting.as_ref().map(|it| {
                let until = it.until.as_ref().map(|at| format!(" until {}", time(at)));
                let until = until.unwrap_or_default();
                format!("{} events{until}: {}", it.events, it.reason.words())
            }),
        )
        .text()
}
