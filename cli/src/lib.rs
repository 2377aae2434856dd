//! `everscan`, the command for users. It sends requests to the daemon over HTTP, and checks workflow files offline.
//!
//! Data goes to standard output, messages to standard error, and the exit code shows how the command ended. It reaches a daemon
//! only through `client`, and never reads the state folder.

#![cfg_attr(
    test,
    expect(
        clippy::disallowed_methods,
        reason = "tests lay out files and start the programs they are about"
    )
)]

mod arguments;
mod clause;
mod clock;
mod commands;
mod connection;
mod error;
mod exit;
mod follow;
mod format;
mod hidden_input;
mod limits;
mod log_lines;
mod login;
mod progress;
mod reading;
mod receiving;
mod selected_job;
mod session;
mod stay;
mod suspension;
mod table;
mod terminal;
mod untrusted;
mod wait;
mod why_waiting;
mod workflow_files;

use std::ffi::OsString;
use std::process::ExitCode;

use arguments::{Arguments, ParsedArguments};
use error::Error;
use exit::Exit;
use session::Session;
use terminal::Terminal;

pub use table::Table;
pub use untrusted::clean;

/// Runs the command in `args`, which begins with the program's name, with this process's output and environment.
pub fn main(args: Vec<OsString>) -> ExitCode {
    let mut terminal = Terminal::of_this_process();
    let exit = match run(args, &mut terminal) {
        Ok(exit) => exit,
        Err(error) => report(&error, &mut terminal),
    };
    let exit = match terminal.flush() {
        Ok(()) => exit,
        Err(error) => report(&error, &mut terminal),
    };
    exit.into()
}

fn report(error: &Error, terminal: &mut Terminal) -> Exit {
    if error.is_closed_pipe() {
        return Exit::Succeeded;
    }
    terminal.report(&error.report());
    error.exit()
}

fn run(args: Vec<OsString>, terminal: &mut Terminal) -> Result<Exit, Error> {
    let arguments = match Arguments::parse_from(args) {
        ParsedArguments::Run(arguments) => *arguments,
        ParsedArguments::Message { text, requested } => {
            if requested {
                terminal.data(&text)?;
                return Ok(Exit::Succeeded);
            }
            terminal.report(text.trim_end());
            return Ok(Exit::Usage);
        }
    };
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .map_err(|source| Error::Runtime { source })?;
    let Arguments {
        command,
        output,
        output_file,
        connection,
    } = arguments;
    let mut session = Session {
        terminal,
        format: output,
        output_file,
        connection,
    };
    let done = runtime.block_on(async {
        tokio::select! {
            exit = command.run(&mut session) => exit,
            // Dropping the command ends it and closes everything that it had open.
            signal = tokio::signal::ctrl_c() => match signal {
                Ok(()) => Ok(Exit::Interrupted),
                Err(source) => Err(Error::Runtime { source }),
            },
        }
    });
    done.map_err(|error| error.with_hint_of(&session.connection))
}
