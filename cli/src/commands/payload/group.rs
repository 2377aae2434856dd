//! `everscan payload group`

use clap::{Args, Subcommand};
use client::Client;
use wire::{ChangePayloadGroup, CreatePayloadGroup, Page, PayloadGroup, PayloadVariable};

use super::Named;
use crate::error::Error;
use crate::session::Session;
use crate::table::{Fields, Table, bytes, time};

#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// Create a payload group
    Create {
        /// Name of the payload group
        name: String,
        /// Name or id of the project
        #[arg(long, env = "SERVICE_PROJECT")]
        project: String,
        #[command(flatten)]
        variables: Variables,
        /// Let the callback servers of the project answer its payloads to whoever asks
        #[arg(long, env = "SERVICE_SERVE")]
        serve: bool,
    },
    /// List payload groups
    List {
        /// Name or id of the project
        #[arg(long, env = "SERVICE_PROJECT")]
        project: Option<String>,
    },
    /// Show a payload group with its variables
    Show {
        #[command(flatten)]
        of: Named,
    },
    /// Replace the variables of a payload group, or say whether it is served
    Change {
        #[command(flatten)]
        of: Named,
        #[command(flatten)]
        variables: Variables,
        /// Whether the callback servers of the project answer its payloads; then no --variable keeps the variables
        #[arg(long, env = "SERVICE_SERVE")]
        serve: Option<bool>,
    },
    /// Delete a payload group with its payloads
    Delete {
        #[command(flatten)]
        of: Named,
    },
}

#[derive(Debug, Args)]
pub(crate) struct Variables {
    /// A variable, with its default after =; may be repeated. CALLBACK gets the name to plant, and TARGET the target
    #[arg(
        long = "variable",
        env = "SERVICE_VARIABLE",
        value_name = "NAME[=DEFAULT]"
    )]
    variables: Vec<String>,
    /// What stands in the payloads for a variable [default: %%NAME%%]; may be repeated
    #[arg(
        long = "placeholder",
        env = "SERVICE_PLACEHOLDER",
        value_name = "NAME=TEXT",
        requires = "variables"
    )]
    placeholders: Vec<String>,
}

impl Variables {
    /// None without any.
    fn parse(&self) -> Result<Option<Vec<PayloadVariable>>, Error> {
        let mut all: Vec<_> = self.variables.iter().map(|text| variable(text)).collect();
        for text in &self.placeholders {
            let found = text.split_once('=').and_then(|(name, placeholder)| {
                let variable = all.iter_mut().find(|it| it.name == name)?;
                variable.placeholder = Some(placeholder.to_owned());
                Some(())
            });
            found.ok_or_else(|| Error::Usage {
                what: format!("`{text}` is no placeholder of a variable"),
                hint: "write NAME=TEXT, with the NAME of a --variable",
            })?;
        }
        Ok((!all.is_empty()).then_some(all))
    }
}

fn variable(text: &str) -> PayloadVariable {
    let (name, default) = match text.split_once('=') {
        Some((name, default)) => (name, Some(default.to_owned())),
        None => (text, None),
    };
    PayloadVariable {
        name: name.to_owned(),
        placeholder: None,
        default,
    }
}

impl Command {
    pub(super) async fn run(self, session: &mut Session<'_>, client: &Client) -> Result<(), Error> {
        match self {
            Self::Create {
                name,
                project,
                variables,
                serve,
            } => {
                let request = CreatePayloadGroup {
                    project,
                    name,
                    variables: variables.parse()?.unwrap_or_default(),
                    serve,
                };
                let created = client.create_payload_group(&request).await?;
                session.show(&created, shown)
            }
            Self::List { project } => {
                let all = client.payload_groups(project.as_deref()).await?;
                session.show(&Page::all(all), groups)
            }
            Self::Show { of } => {
                let found = of.find(client).await?;
                session.show(&found, shown)
            }
            Self::Change {
                of,
                variables,
                serve,
            } => {
                let variables = variables.parse()?;
                let request = ChangePayloadGroup {
                    variables: variables.or_else(|| serve.is_none().then(Vec::new)),
                    serve,
                };
                let found = of.find(client).await?;
                let changed = client.change_payload_group(found.id, &request).await?;
                session.show(&changed, shown)
            }
            Self::Delete { of } => {
                let found = of.find(client).await?;
                client.delete_payload_group(found.id).await?;
                session.report(&format!("payload group {} is deleted", found.name));
                Ok(())
            }
        }
    }
}

fn shown(group: &PayloadGroup) -> String {
    let mut text = Fields::new()
        .add("name", &group.name)
        .add("project", &group.project)
        .add("payloads", group.payloads.to_string())
        .add("size", bytes(group.bytes))
        .add_some(
            "served",
            group.serve.then(|| format!("/-/{}/NAME", group.name)),
        )
        .add("created", time(&group.created_at))
        .add("by", &group.created_by)
        .add("id", group.id.to_string())
        .text();
    if !group.variables.is_empty() {
        let mut table = Table::new(&["VARIABLE", "PLACEHOLDER", "DEFAULT"]);
        for variable in &group.variables {
            table.row([
                variable.name.clone(),
                variable.placeholder.clone().unwrap_or_default(),
                variable.default.clone().unwrap_or_else(|| "-".to_owned()),
            ]);
        }
        text.push('\n');
        text.push_str(&table.text());
    }
    text
}

fn groups(page: &Page<PayloadGroup>) -> String {
    let mut table = Table::new(&["NAME", "PROJECT", "PAYLOADS", "SIZE"]);
    for group in &page.items {
        table.row([
            group.name.clone(),
            group.project.clone(),
            group.payloads.to_string(),
            bytes(group.bytes),
        ]);
    }
    table.text()
}
