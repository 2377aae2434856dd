//! `everscan payload render`

use std::collections::BTreeMap;
use std::path::PathBuf;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use clap::Args;
use client::Client;
use wire::{CreateCallbackToken, RenderPayloads, RenderedPayload};

use super::Named;
use crate::commands::callback;
use crate::commands::token::{Life, parse_life};
use crate::error::Error;
use crate::limits;
use crate::reading::read_given;
use crate::session::Session;

#[derive(Debug, Args)]
pub(crate) struct Render {
    #[command(flatten)]
    of: Named,
    /// Name of one payload, or NAME@VERSION; without it, all of the group
    payload: Option<String>,
    /// Value of a variable; may be repeated
    #[arg(long = "value", env = "SERVICE_VALUE", value_name = "NAME=VALUE")]
    values: Vec<String>,
    /// Render for this target, the value of TARGET; may be repeated
    #[arg(long = "for", env = "SERVICE_FOR", value_name = "TARGET")]
    targets: Vec<String>,
    /// Render for each line of this file, or of standard input if it is -
    #[arg(
        long,
        env = "SERVICE_FOR_EACH",
        value_name = "FILE",
        conflicts_with = "targets"
    )]
    for_each: Option<PathBuf>,
    /// Id or name of the callback server whose name is the value of CALLBACK
    #[arg(long, env = "SERVICE_CALLBACK", value_name = "SERVER")]
    callback: Option<String>,
    /// Give each line a name of its own, so that a hit tells payload and target
    #[arg(long, env = "SERVICE_MINT", requires = "callback")]
    mint: bool,
    /// What the names are for; each interaction shows this
    #[arg(long, env = "SERVICE_NOTE", default_value = "", requires = "mint")]
    note: String,
    /// How long the names are answered, as in 90d, or never to end them
    #[arg(long, env = "SERVICE_EXPIRES_IN", value_name = "DURATION", value_parser = parse_life, default_value = "90d", requires = "mint")]
    expires_in: Life,
}

impl Render {
    pub(super) async fn run(self, session: &mut Session<'_>, client: &Client) -> Result<(), Error> {
        let mut values = BTreeMap::new();
        for text in &self.values {
            let (name, value) = text.split_once('=').ok_or_else(|| Error::Usage {
                what: format!("`{text}` is no value of a variable"),
                hint: "write NAME=VALUE",
            })?;
            values.insert(name.to_owned(), value.to_owned());
        }
        let targets = match &self.for_each {
            None => self.targets,
            Some(file) => {
                let text = read_given(file, limits::TARGETS_FILE)?;
                let lines = text.lines().filter(|line| !line.is_empty());
                let targets: Vec<String> = lines.map(str::to_owned).collect();
                if targets.is_empty() {
                    // Nothing to render is not everything once.
                    return Ok(());
                }
                targets
            }
        };
        let found = self.of.find(client).await?;
        let callback = match self.callback {
            // A job may use a server that it may not look up.
            Some(id) if id.parse::<model::CallbackId>().is_ok() => Some(id),
            Some(named) => Some(
                callback::find(client, &named, Some(&found.project))
                    .await?
                    .id,
            ),
            None => None,
        };
        let request = RenderPayloads {
            payload: self.payload,
            values,
            targets,
            callback,
            mint: self.mint.then(|| CreateCallbackToken {
                note: self.note,
                expires_in_seconds: self.expires_in.seconds(),
                never_expires: self.expires_in == Life::Unlimited,
            }),
        };
        // One payload once is printed as it is, and several with a line end after each.
        let is_one = request.payload.is_some() && request.targets.len() < 2;
        let mut rendered = client.render_payloads(found.id, &request).await?;
        while let Some(line) = rendered.next_line().await? {
            match session.format.item(&line)? {
                Some(text) => session.terminal.line(&text)?,
                None => {
                    session.terminal.bytes(&body(&line))?;
                    if !is_one {
                        session.terminal.bytes(b"\n")?;
                    }
                }
            }
        }
        Ok(())
    }
}

fn body(line: &RenderedPayload) -> Vec<u8> {
    match (&line.text, &line.base64) {
        (Some(text), _) => text.as_bytes().to_vec(),
        (None, base64) => STANDARD
            .decode(base64.as_deref().unwrap_or_default())
            .unwrap_or_default(),
    }
}
