//! `everscan callback`

mod interactsh;
mod rule;
mod shown;
mod token;
mod watch;

use clap::{Args, Subcommand, ValueEnum};
use client::{Client, InteractionFilter};
use wire::{Callback, CallbackFinding, CallbackOutcome, CreateCallback, Page};

use self::shown::{callbacks, check, interaction, interactions, server};
use crate::clock::parse_duration;
use crate::error::Error;
use crate::exit::Exit;
use crate::session::Session;

/// The name that a job has. It is set in its steps.
const CALLBACK_HOST: &str = "SERVICE_CALLBACK_HOST";

/// The length of the id of a server.
const ID_CHARS: usize = 16;

#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// Create a callback server, and print the name to plant
    Create {
        /// Name of the callback server
        name: String,
        /// Name or id of the project
        #[arg(long, env = "SERVICE_PROJECT")]
        project: String,
        /// How long interactions are kept, in days as in 30d, or never to remove them
        #[arg(long, env = "SERVICE_KEEP", value_name = "DAYS", value_parser = parse_days, default_value = "30d")]
        keep: Days,
    },
    /// List callback servers, or the interactions of one, the newest first
    List {
        #[command(flatten)]
        of: MaybeNamed,
        #[command(flatten)]
        wanted: Wanted,
        /// The most interactions to list
        #[arg(long, env = "SERVICE_LIMIT", value_parser = clap::value_parser!(u32).range(1..=100))]
        limit: Option<u32>,
        /// Where the list begins, as the list before says
        #[arg(long, env = "SERVICE_CURSOR", requires = "callback")]
        cursor: Option<String>,
    },
    /// Show a callback server, or one interaction with its raw request
    Show {
        #[command(flatten)]
        of: Named,
        /// Number of an interaction
        number: Option<u64>,
    },
    /// Print interactions as they come
    Watch(watch::Watch),
    /// Names that are made one by one, to know which of them was used
    #[command(subcommand)]
    Token(token::Command),
    /// Fixed answers, and what is not recorded
    #[command(subcommand)]
    Rule(rule::Command),
    /// Check delegation, ports and certificate of the zones; exit code 1 if one is bad
    Check,
    /// Delete a callback server with its interactions
    Delete {
        #[command(flatten)]
        of: Named,
    },
}

/// A callback server.
#[derive(Debug, Args)]
pub(crate) struct Named {
    /// Name, id or planted name of the callback server; may be left out in a step of a scan with `callback`
    #[arg(env = CALLBACK_HOST)]
    callback: String,
    /// Name or id of the project, if several have a callback server of this name
    #[arg(long, env = "SERVICE_PROJECT")]
    project: Option<String>,
}

#[derive(Debug, Args)]
pub(crate) struct MaybeNamed {
    /// Name or id of a callback server, to list its interactions
    callback: Option<String>,
    /// Name or id of the project
    #[arg(long, env = "SERVICE_PROJECT")]
    project: Option<String>,
}

/// Which interactions, and how they are printed.
#[derive(Debug, Args)]
pub(crate) struct Wanted {
    /// Only interactions of this tag
    #[arg(long, env = "SERVICE_TAG")]
    tag: Option<String>,
    /// Only interactions of names that this job has made
    #[arg(long, env = "SERVICE_JOB", value_name = "ID")]
    job: Option<String>,
    /// Only interactions of this type
    #[arg(long = "type", env = "SERVICE_TYPE", value_parser = ["dns", "http"])]
    kind: Option<String>,
    /// Only interactions of this sender
    #[arg(long, env = "SERVICE_ADDRESS", value_name = "IP")]
    address: Option<String>,
    /// Only interactions of rendered payloads: of a group, or of one
    #[arg(long, env = "SERVICE_PAYLOAD", value_name = "GROUP[/NAME]")]
    payload: Option<String>,
    /// Only interactions with this text in the name or in the raw request
    #[arg(long, env = "SERVICE_TEXT")]
    text: Option<String>,
    /// Print one JSON object per line with the fields of interactsh-client
    #[arg(long, env = "SERVICE_FORMAT", value_enum)]
    format: Option<OtherFormat>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum OtherFormat {
    Interactsh,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Days {
    Kept(u32),
    Forever,
}

fn parse_days(text: &str) -> Result<Days, String> {
    if text == "never" {
        return Ok(Days::Forever);
    }
    let seconds = parse_duration(text)?.as_secs();
    match u32::try_from(seconds / 86_400) {
        Ok(days @ 1..) if seconds % 86_400 == 0 => Ok(Days::Kept(days)),
        Ok(_) | Err(_) => Err("must be whole days, such as 30d, or never".to_owned()),
    }
}

impl Wanted {
    fn is_some(&self) -> bool {
        self.format.is_some() || self.filter() != InteractionFilter::default()
    }

    fn filter(&self) -> InteractionFilter {
        InteractionFilter {
            tag: self.tag.clone(),
            kind: self.kind.clone(),
            address: self.address.clone(),
            payload: self.payload.clone(),
            text: self.text.clone(),
            job: self.job.clone(),
            has_raw: self.format.is_some(),
        }
    }
}

impl Named {
    /// The callback server with this name or id.
    async fn find(&self, client: &Client) -> Result<Callback, Error> {
        find(client, &self.callback, self.project.as_deref()).await
    }
}

/// The callback server with this name or id.
pub(super) async fn find(
    client: &Client,
    named: &str,
    project: Option<&str>,
) -> Result<Callback, Error> {
    let all = client.callbacks(project).await?;
    // A planted name begins with the id.
    let id = match named.contains('.') {
        true => named.get(..ID_CHARS).unwrap_or(named),
        false => named,
    };
    if let Some(found) = all.iter().find(|it| it.id == id) {
        return Ok(found.clone());
    }
    let mut found = all.into_iter().filter(|it| it.name == named);
    match (found.next(), found.next()) {
        (Some(only), None) => Ok(only),
        (None, _) => Err(Error::Missing {
            what: format!("there is no callback server `{named}`"),
            hint: "`everscan callback list` shows the callback servers".to_owned(),
        }),
        (Some(_), Some(_)) => Err(Error::Usage {
            what: format!("several projects have a callback server `{named}`"),
            hint: "name the project with --project",
        }),
    }
}

impl Command {
    pub(crate) async fn run(self, session: &mut Session<'_>) -> Result<Exit, Error> {
        let client = session.client()?;
        match self {
            Self::Create {
                name,
                project,
                keep,
            } => {
                let request = CreateCallback {
                    project,
                    name,
                    keep_days: match keep {
                        Days::Kept(days) => Some(days),
                        Days::Forever => None,
                    },
                    keep_forever: keep == Days::Forever,
                };
                let created = client.create_callback(&request).await?;
                session.show(&created, server)?;
            }
            Self::List {
                of: MaybeNamed { callback, project },
                wanted,
                limit,
                cursor,
            } => match callback {
                None if wanted.is_some() => {
                    return Err(Error::Usage {
                        what: "a filter or format of interactions needs a callback server"
                            .to_owned(),
                        hint: "name one, as in `everscan callback list NAME --tag TAG`",
                    });
                }
                None => {
                    let all = client.callbacks(project.as_deref()).await?;
                    session.show(&Page::all(all), callbacks)?;
                }
                Some(callback) => {
                    let found = Named { callback, project }.find(&client).await?;
                    let filter = wanted.filter();
                    let page = client.interactions(&found.id, &filter, limit, cursor.as_deref());
                    let page = page.await?;
                    match wanted.format {
                        None => session.show_page(&page, interactions)?,
                        Some(OtherFormat::Interactsh) => {
                            for it in &page.items {
                                session.terminal.line(&interactsh::line(&found, it))?;
                            }
                            if let Some(cursor) = &page.next_cursor {
                                session.report(&format!("there are more: --cursor {cursor}"));
                            }
                        }
                    }
                }
            },
            Self::Show { of, number: None } => {
                let found = of.find(&client).await?;
                session.show(&found, server)?;
            }
            Self::Show {
                of,
                number: Some(number),
            } => {
                let found = of.find(&client).await?;
                let shown = client.interaction(&found.id, number).await?;
                session.show(&shown, interaction)?;
            }
            Self::Watch(watch) => return watch.run(session, &client).await,
            Self::Token(command) => command.run(session, &client).await?,
            Self::Rule(command) => command.run(session, &client).await?,
            Self::Check => {
                let found = client.check_callbacks().await?;
                session.show(&found, check)?;
                let is_bad = |it: &CallbackFinding| it.outcome == CallbackOutcome::Bad;
                if found.findings.iter().any(is_bad) {
                    return Ok(Exit::Failed);
                }
            }
            Self::Delete { of } => {
                let found = of.find(&client).await?;
                client.delete_callback(&found.id).await?;
                session.report(&format!("callback server {} is deleted", found.name));
            }
        }
        Ok(Exit::Succeeded)
    }
}
