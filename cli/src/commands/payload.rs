//! `everscan payload`

mod edit;
mod group;
mod render;

use std::path::PathBuf;

use clap::{Args, Subcommand};
use client::{Client, Expected};
use wire::{Page, Payload, PayloadGroup};

use crate::error::Error;
use crate::exit::Exit;
use crate::limits;
use crate::reading::read_bytes;
use crate::session::Session;
use crate::table::{Table, bytes, time};

#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// Payload groups: payloads of one purpose, with their variables
    #[command(subcommand)]
    Group(group::Command),
    /// Add a payload to a group
    Create {
        #[command(flatten)]
        of: Named,
        /// Name of the payload, such as img.svg
        payload: String,
        #[command(flatten)]
        content: Content,
    },
    /// Store a new version of a payload, from $EDITOR or from a file
    Edit {
        #[command(flatten)]
        of: Named,
        /// Name of the payload
        payload: String,
        /// File with the new version, or - for standard input; without it, $EDITOR opens the newest version
        file: Option<PathBuf>,
        /// Content type [default: that of the version before]
        #[arg(long = "type", env = "SERVICE_TYPE", value_name = "TYPE")]
        media_type: Option<String>,
    },
    /// List the payloads of a group
    List {
        #[command(flatten)]
        of: Named,
    },
    /// Print a payload as it is
    Show {
        #[command(flatten)]
        of: Named,
        /// Name of the payload, or NAME@VERSION
        payload: String,
    },
    /// Print payloads with the values of their variables
    Render(render::Render),
    /// Delete a payload with its versions
    Delete {
        #[command(flatten)]
        of: Named,
        /// Name of the payload
        payload: String,
    },
}

/// A payload group.
#[derive(Debug, Args)]
pub(crate) struct Named {
    /// Name or id of the payload group
    group: String,
    /// Name or id of the project, if several have a payload group of this name
    #[arg(long, env = "SERVICE_PROJECT")]
    project: Option<String>,
}

#[derive(Debug, Args)]
pub(crate) struct Content {
    /// File with the content, or - for standard input
    #[arg(default_value = "-")]
    file: PathBuf,
    /// Content type [default: text/plain, or application/octet-stream if it is no text]
    #[arg(long = "type", env = "SERVICE_TYPE", value_name = "TYPE")]
    media_type: Option<String>,
}

impl Named {
    /// The payload group with this name or id.
    async fn find(&self, client: &Client) -> Result<PayloadGroup, Error> {
        let all = client.payload_groups(self.project.as_deref()).await?;
        let named = &self.group;
        if let Some(found) = all.iter().find(|it| it.id.to_string() == *named) {
            return Ok(found.clone());
        }
        let mut found = all.into_iter().filter(|it| it.name == *named);
        match (found.next(), found.next()) {
            (Some(only), None) => Ok(only),
            (None, _) => Err(Error::Missing {
                what: format!("there is no payload group `{named}`"),
                hint: "`everscan payload group list` shows the payload groups".to_owned(),
            }),
            (Some(_), Some(_)) => Err(Error::Usage {
                what: format!("several projects have a payload group `{named}`"),
                hint: "name the project with --project",
            }),
        }
    }
}

/// What a body is without another word.
fn media_type_of(body: &[u8]) -> &'static str {
    match std::str::from_utf8(body) {
        Ok(_) => "text/plain; charset=utf-8",
        Err(_) => "application/octet-stream",
    }
}

impl Command {
    pub(crate) async fn run(self, session: &mut Session<'_>) -> Result<Exit, Error> {
        let client = session.client()?;
        match self {
            Self::Group(command) => command.run(session, &client).await?,
            Self::Create {
                of,
                payload,
                content: Content { file, media_type },
            } => {
                let body = read_bytes(&file, limits::PAYLOAD_FILE)?;
                let found = of.find(&client).await?;
                let media_type = media_type.unwrap_or_else(|| media_type_of(&body).to_owned());
                let store =
                    client.store_payload(found.id, &payload, body, &media_type, Expected::Nothing);
                stored(session, &store.await?)?;
            }
            Self::Edit {
                of,
                payload,
                file,
                media_type,
            } => {
                let found = of.find(&client).await?;
                let stored_now =
                    edit::edit(&client, &found, &payload, file.as_deref(), media_type).await?;
                stored(session, &stored_now)?;
            }
            Self::List { of } => {
                let found = of.find(&client).await?;
                let detail = client.payload_group(found.id).await?;
                session.show(&Page::all(detail.payloads), payloads)?;
            }
            Self::Show { of, payload } => {
                let found = of.find(&client).await?;
                let (name, version) = named(&payload)?;
                let (_, body) = client.payload(found.id, name, version).await?;
                session.terminal.bytes(&body)?;
            }
            Self::Render(render) => render.run(session, &client).await?,
            Self::Delete { of, payload } => {
                let found = of.find(&client).await?;
                client.delete_payload(found.id, &payload).await?;
                session.report(&format!("payload {payload} of {} is deleted", found.name));
            }
        }
        Ok(Exit::Succeeded)
    }
}

/// A payload and its version, from a text such as `NAME@3`.
fn named(text: &str) -> Result<(&str, Option<u64>), Error> {
    let Some((name, version)) = text.split_once('@') else {
        return Ok((text, None));
    };
    let version = version.parse().map_err(|_| Error::Usage {
        what: format!("`{version}` is no version of a payload"),
        hint: "write NAME@VERSION, as in img.svg@3",
    })?;
    Ok((name, Some(version)))
}

fn stored(session: &mut Session<'_>, payload: &Payload) -> Result<(), Error> {
    session.show(payload, |it| format!("{}@{}\n", it.name, it.version))
}

fn payloads(page: &Page<Payload>) -> String {
    let mut table = Table::new(&["NAME", "VERSION", "SIZE", "TYPE", "CHANGED", "BY"]);
    for payload in &page.items {
        table.row([
            payload.name.clone(),
            payload.version.to_string(),
            bytes(payload.size),
            payload.media_type.clone(),
            time(&payload.updated_at),
            payload.updated_by.clone(),
        ]);
    }
    table.text()
}
