//! `everscan secret`. A value is never an argument, because other users of the machine can read arguments.

use std::path::PathBuf;

use clap::{Args, Subcommand};
use wire::{Masking, NotMasked, SetValue};

use crate::commands::named::{Delete, Kind, List, ProjectOption, VersionOption};
use crate::error::Error;
use crate::exit::Exit;
use crate::hidden_input;
use crate::limits;
use crate::reading::read_value;
use crate::session::Session;
use crate::table::Table;

#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// Give a secret a value, which nobody can read again
    Set(Set),
    /// List the secrets of a project without their values
    List(List),
    /// Show which encodings and lines of a secret are masked in logs
    Test(Test),
    /// Remove a secret
    Delete(Delete),
}

impl Command {
    pub(crate) async fn run(self, session: &mut Session<'_>) -> Result<Exit, Error> {
        match self {
            Self::Set(command) => command.run(session).await,
            Self::List(command) => command.run(Kind::Secret, session).await,
            Self::Test(command) => command.run(session).await,
            Self::Delete(command) => command.run(Kind::Secret, session).await,
        }
    }
}

#[derive(Debug, Args)]
pub(crate) struct Set {
    /// Name of the secret: letters, digits and _
    name: String,
    /// File that holds the value, or - for standard input; a line end at the end is cut. Without a file you are asked
    #[arg(long, env = "SERVICE_FILE", value_name = "PATH")]
    file: Option<PathBuf>,
    #[command(flatten)]
    version: VersionOption,
    #[command(flatten)]
    project: ProjectOption,
}

impl Set {
    async fn run(self, session: &mut Session<'_>) -> Result<Exit, Error> {
        let client = session.client()?;
        let value = match self.file {
            Some(path) => read_value(&path)?,
            None if hidden_input::is_possible() => {
                let question = format!("value of {}: ", self.name);
                hidden_input::ask(session.terminal, &question).await?
            }
            None => {
                return Err(Error::Usage {
                    what: "no value is given, and there is no terminal to ask for it".to_owned(),
                    hint: "name a file with --file, or pipe the value into --file -",
                });
            }
        };
        let project = self.project.choose(&client).await?;
        let is_short = value.trim().chars().count() < limits::SECRET_CHARS;
        let short_lines = model::short_lines(&value);
        let set = SetValue { value };
        let expected = self.version.expected();
        let secret = client
            .set_secret(&project, &self.name, &set, expected)
            .await?;
        let (name, version) = (secret.named.name, secret.named.version);
        session.report(&format!("secret {name} is set in version {version}"));
        if is_short {
            session.report(&format!(
                "warning: it has fewer than {} characters, so that it may occur in other text: masking it there would reveal \
                 it; use a longer one",
                limits::SECRET_CHARS
            ));
        }
        if let Some(text) = describe_short_lines(&short_lines) {
            session.report(&format!("warning: {text}"));
        }
        Ok(Exit::Succeeded)
    }
}

#[derive(Debug, Args)]
pub(crate) struct Test {
    /// Its name
    name: String,
    #[command(flatten)]
    project: ProjectOption,
}

impl Test {
    async fn run(self, session: &mut Session<'_>) -> Result<Exit, Error> {
        let client = session.client()?;
        let project = self.project.choose(&client).await?;
        let masking = client.masking(&project, &self.name).await?;
        session.show(&masking, encodings)?;
        Ok(Exit::Succeeded)
    }
}

fn encodings(masking: &Masking) -> String {
    let mut table = Table::new(&["ENCODING", "MASKED", "WHY NOT"]);
    for encoding in &masking.encodings {
        let reason = match encoding.reason {
            None => "-",
            Some(NotMasked::TooShort) => "a line of it is so short that it occurs in other text",
            Some(NotMasked::NotRecognised) => "the masker does not recognise it",
            Some(NotMasked::Other) => "a reason that a newer daemon knows",
        };
        let masked = if encoding.masked { "yes" } else { "no" };
        table.row([
            encoding.encoding.clone(),
            masked.to_owned(),
            reason.to_owned(),
        ]);
    }
    let lines = describe_short_lines(&masking.short_lines);
    table.text() + &lines.map_or_else(String::new, |text| format!("\n{text}\n"))
}

/// Which lines of a value are not masked alone. None if every line is.
fn describe_short_lines(numbers: &[usize]) -> Option<String> {
    let runs = numbers.chunk_by(|number, next| number + 1 == *next);
    let ranges: Vec<String> = runs
        .filter_map(|run| match run {
            [] => None,
            [only] => Some(only.to_string()),
            [first, .., last] => Some(format!("{first}-{last}")),
        })
        .collect();
    (!ranges.is_empty()).then(|| {
        format!(
            "not masked alone: lines {} (the line, or its part after `key: ` or `KEY=`, has fewer than {} characters); all other \
             lines are. Use one secret for each value",
            ranges.join(", "),
            model::limits::SECRET_LINE_CHARS
        )
    })
}
