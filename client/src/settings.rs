//! How all programs that talk to a daemon read their environment.

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
