//! The command line of `everscan-runner`: its arguments, messages and exit codes.

mod configure;
mod new_folders;
mod run;

use std::ffi::OsString;
use std::io::{self, IsTerminal as _, Write as _};
use std::path::PathBuf;
use std::process::ExitCode;

use clap::{FromArgMatches as _, Parser, Subcommand, ValueEnum};
use client::settings;
use model::error_chain;
use tracing_subscriber::filter::LevelFilter;

use crate::configuration::ConfigurationError;
use crate::environment::HostEnvironment;
use crate::first_process::wait_for_all;
use crate::instance::InstanceError;
use crate::session::SessionError;
use crate::supervisor::supervise;

/// Executes the jobs of an Everscan service on this machine.
///
/// Exit codes: 0 done, 1 failed, 2 usage. The first SIGTERM or SIGINT lets running jobs finish, the second cancels
/// them, the third does not wait for anything.
#[derive(Debug, Parser)]
#[command(name = "everscan-runner", version)]
struct Arguments {
    #[command(subcommand)]
    command: Command,
    /// How much to say on stderr.
    #[arg(
        long,
        env = "SERVICE_LOG",
        value_enum,
        default_value = "info",
        global = true
    )]
    log: Level,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// Registers a runner and stores its configuration below ~/.everscan/runner.
    Configure(configure::Configure),
    /// Works for the service until a signal stops it.
    Run(run::Run),
}

#[derive(Debug, Clone, Copy, ValueEnum)]
enum Level {
    /// What ended a job or the runner.
    Error,
    /// What went wrong and is tried again.
    Warn,
    /// Also when jobs start and end.
    Info,
    /// Also every failed request.
    Debug,
}

impl From<Level> for LevelFilter {
    fn from(level: Level) -> Self {
        match level {
            Level::Error => Self::ERROR,
            Level::Warn => Self::WARN,
            Level::Info => Self::INFO,
            Level::Debug => Self::DEBUG,
        }
    }
}

/// A command that failed.
#[derive(Debug, thiserror::Error)]
enum Failure {
    #[error("no home directory for the configuration")]
    NoHome,
    #[error("the host name cannot be the runner's name")]
    HostName(#[source] ConfigurationError),
    #[error("runner {name} is configured already")]
    ConfiguredAlready { name: String },
    #[error("no registration token was given")]
    NoRegistrationToken,
    #[error("cannot read the registration token from {origin}")]
    RegistrationToken { origin: String, source: io::Error },
    #[error("cannot use the working directory {}", path.display())]
    Workdir { path: PathBuf, source: io::Error },
    #[error("cannot register")]
    Register(#[source] client::Error),
    #[error(transparent)]
    Configuration(#[from] ConfigurationError),
    #[error("cannot start the runner")]
    Start(#[source] io::Error),
    #[error(transparent)]
    Session(#[from] SessionError),
}

impl Failure {
    fn hint(&self) -> Option<String> {
        const CONFIGURE: &str = "everscan-runner configure --url URL";
        match self {
            Self::NoHome => Some("set HOME".to_owned()),
            Self::HostName(_) => Some("give a name with --name".to_owned()),
            Self::ConfiguredAlready { .. } => {
                Some("register it again with --replace, or give another --name".to_owned())
            }
            Self::NoRegistrationToken | Self::RegistrationToken { .. } => Some(
                "make one with `everscan runner register-token`; give it in a file with \
                 --registration-token-file, in SERVICE_REGISTRATION_TOKEN or on stdin"
                    .to_owned(),
            ),
            Self::Session(SessionError::Client(client::Error::PlainHttp { .. })) => Some(format!(
                "use an https address or a tunnel; or accept it: `{CONFIGURE} --name NAME --insecure-http --replace`"
            )),
            Self::Register(error) | Self::Session(SessionError::Client(error)) => {
                error.hint().map(str::to_owned)
            }
            Self::Configuration(ConfigurationError::Missing { others, .. })
                if !others.is_empty() =>
            {
                Some(format!(
                    "configured here: {}; choose with --name, or register with `{CONFIGURE}`",
                    others.join(", ")
                ))
            }
            Self::Configuration(ConfigurationError::Missing { .. }) => {
                Some(format!("register it with `{CONFIGURE}`"))
            }
            Self::Configuration(
                ConfigurationError::Content { .. } | ConfigurationError::Format { .. },
            )
            | Self::Session(SessionError::Unknown { .. }) => {
                Some(format!("register it again with `{CONFIGURE} --name NAME --replace`"))
            }
            Self::Session(SessionError::Instance(InstanceError::Running { .. })) => Some(
                "each process needs a runner of its own: register another one with `everscan-runner configure --name \
                 NAME`"
                    .to_owned(),
            ),
            Self::Session(SessionError::Workdir(_)) => {
                Some("every runner needs a --workdir of its own".to_owned())
            }
            Self::Configuration(
                ConfigurationError::Name { .. }
                | ConfigurationError::Read { .. }
                | ConfigurationError::Write { .. },
            )
            | Self::Workdir { .. }
            | Self::Start(_)
            | Self::Session(SessionError::Thread(_))
            | Self::Session(SessionError::Instance(InstanceError::Unusable { .. })) => None,
        }
    }
}

/// Runs the command line, including the program's name. Returns the exit code.
pub fn main(arguments: Vec<OsString>) -> ExitCode {
    if let Some(code) = before_main(&arguments) {
        return code;
    }
    let command = settings::command_line::<Arguments>();
    let parsed = command
        .try_get_matches_from(arguments)
        .and_then(|matches| Arguments::from_arg_matches(&matches));
    let arguments = match parsed {
        Ok(arguments) => arguments,
        Err(error) => {
            // Help and version go to stdout and are no errors. A closed pipe there does not matter.
            let _ = error.print();
            return ExitCode::from(u8::try_from(error.exit_code()).unwrap_or(2));
        }
    };
    // A program that embeds the runner may have set up logging already.
    let _ = tracing_subscriber::fmt()
        .with_max_level(LevelFilter::from(arguments.log))
        .with_writer(io::stderr)
        .with_ansi(io::stderr().is_terminal())
        .with_target(false)
        .try_init();
    let done = match arguments.command {
        Command::Configure(command) => command.execute(),
        Command::Run(command) => command.execute(),
    };
    match done {
        Ok(()) => ExitCode::SUCCESS,
        Err(failure) => {
            let mut text = format!("error: {}\n", error_chain(&failure));
            if let Some(hint) = failure.hint() {
                text.push_str(&format!("hint: {hint}\n"));
            }
            print_error(&text);
            ExitCode::FAILURE
        }
    }
}

/// What a program with a runner does before anything else: supervises steps, or is process 1. Returns an exit code if it was
/// one of these.
pub fn before_main(arguments: &[OsString]) -> Option<ExitCode> {
    supervise(arguments).or_else(|| {
        let ended = wait_for_all(arguments)?;
        Some(ended.unwrap_or_else(|error| {
            print_error(&format!("error: cannot start the program again: {error}\n"));
            ExitCode::FAILURE
        }))
    })
}

fn print_error(text: &str) {
    // If stderr is closed, there is no other place for the message.
    let _ = io::stderr().write_all(text.as_bytes());
}

/// The user's home.
fn home() -> Result<PathBuf, Failure> {
    std::env::home_dir()
        .filter(|home| home.is_absolute())
        .ok_or(Failure::NoHome)
}

/// The name given, or the host's.
fn runner_name(given: Option<String>) -> String {
    given.unwrap_or_else(|| {
        rustix::system::uname()
            .nodename()
            .to_string_lossy()
            .into_owned()
    })
}

/// The runner's own environment.
fn host_environment() -> HostEnvironment {
    std::env::vars_os().collect()
}

/// A runtime on this thread only: a runner mostly waits.
fn runtime() -> Result<tokio::runtime::Runtime, Failure> {
    tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .map_err(Failure::Start)
}
