//! How all programs that talk to a daemon read their environment.

use std::ffi::OsStr;

use clap::builder::{BoolishValueParser, Resettable};
use clap::parser::ValueSource;
use clap::{Arg, ArgAction, ArgMatches, Command, CommandFactory};

/// The command line of a program. An empty variable counts as absent, and `1`, `yes` and `on` set a flag like `true`. Help texts
/// never show the values of the environment.
pub fn command_line<P: CommandFactory>() -> Command {
    forgiving(P::command())
}

/// Whether the argument was on the command line. A value from the environment may be meant for another command.
pub fn is_typed(matches: &ArgMatches, id: &str) -> bool {
    matches.value_source(id) == Some(ValueSource::CommandLine)
}

fn forgiving(command: Command) -> Command {
    command.mut_args(argument).mut_subcommands(forgiving)
}

fn argument(argument: Arg) -> Arg {
    let argument = by_alias(argument);
    let given = argument.get_env().and_then(std::env::var_os);
    let argument = match argument.get_action() {
        ArgAction::SetTrue => argument.value_parser(BoolishValueParser::new()),
        _ => argument,
    };
    match given {
        Some(value) if value.is_empty() => argument.env(Resettable::Reset),
        // Without this, an error about another argument would list this one as missing.
        Some(_) => argument.hide_env_values(true).required(false),
        None => argument.hide_env_values(true),
    }
}

/// Reads a flag from the variable of an alias if its own has no value.
fn by_alias(argument: Arg) -> Arg {
    let is_set = |name: &OsStr| std::env::var_os(name).is_some_and(|value| !value.is_empty());
    if argument.get_env().is_none_or(is_set) {
        return argument;
    }
    let aliases = argument.get_all_aliases().unwrap_or_default();
    let mut names = aliases.iter().map(|alias| variable(alias));
    match names.find(|name| is_set(name.as_ref())) {
        // It lives as long as the command line, of which a program has one.
        Some(name) => argument.env(&*name.leak()),
        None => argument,
    }
}

/// The variable of a long flag.
pub fn variable(flag: &str) -> String {
    format!("SERVICE_{}", flag.to_uppercase().replace('-', "_"))
}
