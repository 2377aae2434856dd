//! `everscand`: configuration, composition and shutdown of the daemon, `up` and the demonstration.
//!
//! If the file is called as `everscan` or `everscan-runner`, it is that program, so one file is a complete installation. This
//! package contains no rules of the domain.

#![cfg_attr(
    test,
    expect(
        clippy::disallowed_methods,
        reason = "tests lay out files and start the programs they are about"
    )
)]

mod arguments;
mod backup;
mod callback_check;
mod certificate;
mod configuration;
mod demo;
mod error;
mod exit;
mod fsck;
mod hearing;
mod heartbeat;
mod inspect;
mod lifeline;
mod limits;
mod logging;
mod open_files;
mod programs;
mod restore;
mod retention;
mod run;
mod secret_key;
mod stop_signal;
mod system;
mod up;
mod user;

use std::ffi::{OsStr, OsString};
use std::io::Write;
use std::path::Path;
use std::process::ExitCode;

use clap::FromArgMatches;
use client::settings;

use crate::arguments::{Arguments, Command};
use crate::error::Error;

/// Runs the program that the first of `args` names, with the remaining arguments.
pub fn main(args: Vec<OsString>) -> ExitCode {
    if let Some(code) = runner::before_main(&args) {
        return code;
    }
    if !lifeline::hold() {
        return ExitCode::from(exit::FAILED);
    }
    let name = args
        .first()
        .map(Path::new)
        .and_then(Path::file_name)
        .unwrap_or(OsStr::new("everscand"));
    match name.to_str() {
        Some("everscan") => cli::main(args),
        Some("everscan-runner") => runner::main(args),
        Some(_) | None => daemon(args),
    }
}

fn daemon(args: Vec<OsString>) -> ExitCode {
    let command = settings::command_line::<Arguments>();
    let parsed = command
        .try_get_matches_from(args)
        .and_then(|matches| Arguments::from_arg_matches(&matches));
    let arguments = match parsed {
        Ok(arguments) => arguments,
        Err(error) => {
            // Ignore a failure: the terminal may be gone.
            drop(error.print());
            return ExitCode::from(if error.use_stderr() {
                exit::USAGE
            } else {
                exit::STOPPED
            });
        }
    };
    let ended = match arguments.command {
        Command::Run(options) => configuration::Settings::resolve(options)
            .map_err(Error::from)
            .and_then(run::run)
            .map(|()| exit::STOPPED),
        Command::SecretKey(options) => secret_key::run(options)
            .map_err(|error| Error::from(configuration::ConfigurationError::from(error)))
            .map(|()| exit::STOPPED),
        Command::Up(options) => up::up(&options).map(|()| exit::STOPPED),
        Command::Backup(options) => backup::backup(options).map(|()| exit::STOPPED),
        Command::Restore(options) => restore::restore(options).map(|()| exit::STOPPED),
        Command::Fsck(options) => fsck::run(&options),
        Command::State(options) => inspect::run(&options).map(|()| exit::STOPPED),
        Command::User(command) => user::run(command).map(|()| exit::STOPPED),
        Command::Demo(options) => demo::demo(&options)
            .map_err(Error::from)
            .map(|()| exit::STOPPED),
    };
    match ended {
        Ok(code) => ExitCode::from(code),
        Err(error) => {
            drop(writeln!(std::io::stderr(), "{}", error.report()));
            ExitCode::from(error.exit_code())
        }
    }
}
