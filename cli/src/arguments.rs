//! The command line. A flag wins over the environment. Every long flag has an environment variable.

use std::ffi::{OsStr, OsString};
use std::path::PathBuf;

use clap::builder::Resettable;
use clap::error::ErrorKind;
use clap::{ArgMatches, FromArgMatches, Parser};
use client::settings::is_typed;
use client::{Secret, settings};

use crate::commands::Command;
use crate::connection::{Connection, TokenSource};
use crate::exit;
use crate::format::Format;

const TOKEN: &str = "SERVICE_TOKEN";
const OUTPUT: &str = "SERVICE_OUTPUT";

pub(crate) struct Arguments {
    pub(crate) command: Command,
    pub(crate) output: Format,
    pub(crate) output_file: Option<PathBuf>,
    pub(crate) connection: Connection,
}

pub(crate) enum ParsedArguments {
    Run(Box<Arguments>),
    /// A help text, or an error in the command line.
    Message {
        text: String,
        requested: bool,
    },
}

/// Everscan runs workflows from Git; this command asks its daemon and checks workflow files.
#[derive(Debug, Parser)]
#[command(name = "everscan", version, max_term_width = 100, after_help = exit::HELP)]
struct CommandLine {
    #[command(subcommand)]
    command: Command,

    /// Address of the daemon, without /v0
    #[arg(long, env = "SERVICE_URL", global = true, help_heading = "Connection")]
    url: Option<String>,

    /// File that holds the access token
    #[arg(
        long,
        env = "SERVICE_TOKEN_FILE",
        global = true,
        value_name = "PATH",
        help_heading = "Connection"
    )]
    token_file: Option<PathBuf>,

    /// File with the certificates (PEM) to trust for https, in place of those of the machine
    #[arg(
        long,
        env = "SERVICE_CA_FILE",
        global = true,
        value_name = "PATH",
        help_heading = "Connection"
    )]
    ca_file: Option<PathBuf>,

    /// Send the token over plain HTTP to another machine, where others can read it
    #[arg(
        long,
        env = "SERVICE_INSECURE_HTTP",
        global = true,
        help_heading = "Connection"
    )]
    insecure_http: bool,

    /// Form of the data on standard output: table or text for people, json or yaml for programs
    #[arg(
        long,
        env = "SERVICE_OUTPUT",
        global = true,
        value_name = "FORM",
        default_value = "table"
    )]
    output: Format,
}

impl Arguments {
    pub(crate) fn parse_from(args: impl IntoIterator<Item = OsString>) -> ParsedArguments {
        let mut command = settings::command_line::<CommandLine>();
        let output_file = std::env::var_os(OUTPUT).filter(|value| !is_form(value));
        if output_file.is_some() {
            command = command.mut_arg("output", |output| output.env(Resettable::Reset));
        }
        let parsed = command.try_get_matches_from_mut(args).and_then(|matches| {
            let line = CommandLine::from_arg_matches(&matches)?;
            match &output_file {
                Some(file)
                    if !is_typed(&matches, "output") && !has_output_file(&command, &matches) =>
                {
                    let text = format!(
                        "{OUTPUT} is {file:?}, and this command writes no file: set it to table, text, json or yaml\n"
                    );
                    Err(clap::Error::raw(ErrorKind::InvalidValue, text))
                }
                _ if has_two_owners(&matches) => {
                    let text = "--instance cannot be used with --project\n";
                    Err(clap::Error::raw(ErrorKind::ArgumentConflict, text))
                }
                _ => Ok((matches, line)),
            }
        });
        match parsed {
            Ok((matches, line)) => {
                let arguments = Self::from_line(&matches, line, output_file.map(PathBuf::from));
                ParsedArguments::Run(Box::new(arguments))
            }
            Err(error) => ParsedArguments::Message {
                requested: matches!(
                    error.kind(),
                    ErrorKind::DisplayHelp | ErrorKind::DisplayVersion
                ),
                text: error.render().to_string(),
            },
        }
    }

    fn from_line(matches: &ArgMatches, line: CommandLine, output_file: Option<PathBuf>) -> Self {
        let given = std::env::var(TOKEN).ok().filter(|token| !token.is_empty());
        let flagged = is_typed(matches, "token_file");
        let token = match (line.token_file, given) {
            (Some(path), _) if flagged => TokenSource::File(path),
            (_, Some(token)) => TokenSource::Given(Secret::new(token.trim())),
            (Some(path), None) => TokenSource::File(path),
            (None, None) => TokenSource::Login,
        };
        Self {
            command: line.command,
            output: line.output,
            output_file,
            connection: Connection {
                url: line.url,
                token,
                ca_file: line.ca_file,
                insecure_http: line.insecure_http,
            },
        }
    }
}

/// Whether the value of `SERVICE_OUTPUT` is a form, or absent. Anything else is a file.
fn is_form(value: &OsStr) -> bool {
    let text = value.to_str();
    text.is_some_and(|text| text.is_empty() || text.parse::<Format>().is_ok())
}

/// Whether the command line names a project and the instance. A project of the environment is no conflict: `--instance` wins.
fn has_two_owners(mut matches: &ArgMatches) -> bool {
    while let Some((_, inner)) = matches.subcommand() {
        matches = inner;
    }
    matches!(matches.try_get_one("instance"), Ok(Some(true))) && is_typed(matches, "project")
}

/// Whether the command on the command line writes a file.
fn has_output_file(mut command: &clap::Command, mut matches: &ArgMatches) -> bool {
    while let Some((name, inner)) = matches.subcommand() {
        let Some(found) = command.find_subcommand(name) else {
            return false;
        };
        (command, matches) = (found, inner);
    }
    let mut arguments = command.get_arguments();
    arguments.any(|argument| argument.get_id() == "output_file")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn command() -> clap::Command {
        settings::command_line::<CommandLine>()
    }

    fn each(command: &clap::Command, check: &mut dyn FnMut(&clap::Command)) {
        check(command);
        for child in command.get_subcommands() {
            each(child, check);
        }
    }

    #[test]
    fn the_definition_of_the_arguments_is_valid() {
        command().debug_assert();
    }

    #[test]
    fn every_long_flag_has_its_name_in_the_environment() {
        each(&command(), &mut |command| {
            for argument in command.get_arguments() {
                let Some(long) = argument.get_long() else {
                    continue;
                };
                if matches!(long, "help" | "version") {
                    continue;
                }
                let expected = settings::variable(long);
                let found = argument.get_env().and_then(|name| name.to_str());
                assert_eq!(found, Some(expected.as_str()), "{}", command.get_name());
            }
        });
    }

    #[test]
    fn a_value_of_the_variable_is_a_form_or_a_file() {
        for form in ["", "text", "table", "json", "yaml"] {
            assert!(is_form(OsStr::new(form)), "{form}");
        }
        for file in ["-", "out.zip", "json.zip", "JSON"] {
            assert!(!is_form(OsStr::new(file)), "{file}");
        }
    }

    #[test]
    fn every_command_and_flag_is_described() {
        each(&command(), &mut |command| {
            assert!(command.get_about().is_some(), "{}", command.get_name());
            for argument in command.get_arguments() {
                let name = format!("{} {}", command.get_name(), argument.get_id());
                assert!(argument.get_help().is_some(), "{name}");
            }
        });
    }
}
