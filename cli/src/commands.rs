//! The commands. Files and folders mirror what a person types.

mod audit;
mod blob;
mod callback;
mod condition;
mod cron;
mod expr;
mod job;
mod login;
mod member;
mod named;
mod notify;
mod payload;
mod project;
mod runner;
mod scan;
mod secret;
mod session;
mod source;
mod token;
mod user;
mod validate;
mod var;
mod workflow;

use clap::builder::{PossibleValuesParser, TypedValueParser};
use clap::{Args, Subcommand, ValueEnum};

use crate::error::Error;
use crate::exit::Exit;
use crate::session::Session;

#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// Scans: what can run
    #[command(subcommand)]
    Scan(scan::Command),
    /// Jobs: what runs and has run
    #[command(subcommand)]
    Job(job::Command),
    /// Conditions: what needs a person
    #[command(subcommand)]
    Condition(condition::Command),
    /// Sources: the repositories that the daemon follows
    #[command(subcommand)]
    Source(source::Command),
    /// Workflows: the files of the sources
    #[command(subcommand)]
    Workflow(workflow::Command),
    /// Check workflow files on this machine, without a daemon
    Validate(validate::Validate),
    /// Schedules: what they mean and when they are due
    #[command(subcommand)]
    Cron(cron::Command),
    /// Expressions: what they yield
    #[command(subcommand)]
    Expr(expr::Command),
    /// Print the JSON Schema of workflow files or of everscan.yaml, for editors
    Schema {
        /// The kind of file
        #[arg(value_enum, default_value = "workflow")]
        file: SchemaOf,
    },
    /// Runners: the machines that execute jobs
    #[command(subcommand)]
    Runner(runner::Command),
    /// Projects: the owners of vars and secrets, one for each source
    #[command(subcommand)]
    Project(project::Command),
    /// Vars: values that the workflows of a project share
    #[command(subcommand)]
    Var(var::Command),
    /// Secrets: values that nobody can read again, and that logs do not show
    #[command(subcommand)]
    Secret(secret::Command),
    /// Blobs: files that a project keeps, in folders
    #[command(subcommand)]
    Blob(blob::Command),
    /// Callback servers: names to plant in targets, and who looks them up
    #[command(subcommand)]
    Callback(callback::Command),
    /// Payloads: texts and files to send to targets, and how they are rendered
    #[command(subcommand)]
    Payload(payload::Command),
    /// Notifications: what is sent where
    #[command(subcommand)]
    Notify(notify::Command),
    /// Sign this device in: a person confirms it in a browser
    Login,
    /// End the login of this device
    Logout(login::Logout),
    /// Show who you are for the daemon, and what you may do
    Whoami,
    /// Users: people and programs with rights
    #[command(subcommand)]
    User(user::Command),
    /// Members: the roles of users in a project
    #[command(subcommand)]
    Member(member::Command),
    /// Access tokens
    #[command(subcommand)]
    Token(token::Command),
    /// Sessions: the browsers and devices on which you are signed in
    #[command(subcommand)]
    Session(session::Command),
    /// List the changes that people made, the newest first
    Audit(audit::Audit),
}

impl Command {
    pub(crate) async fn run(self, session: &mut Session<'_>) -> Result<Exit, Error> {
        match self {
            Self::Scan(command) => command.run(session).await,
            Self::Job(command) => command.run(session).await,
            Self::Condition(command) => command.run(session).await,
            Self::Source(command) => command.run(session).await,
            Self::Workflow(command) => command.run(session).await,
            Self::Validate(command) => command.run(session),
            Self::Cron(command) => command.run(session),
            Self::Expr(command) => command.run(session),
            Self::Schema { file } => {
                session.show_json(&match file {
                    SchemaOf::Workflow => ::workflow::json_schema(),
                    SchemaOf::Repository => ::workflow::notify::project_schema(),
                })?;
                Ok(Exit::Succeeded)
            }
            Self::Runner(command) => command.run(session).await,
            Self::Project(command) => command.run(session).await,
            Self::Var(command) => command.run(session).await,
            Self::Secret(command) => command.run(session).await,
            Self::Blob(command) => command.run(session).await,
            Self::Callback(command) => command.run(session).await,
            Self::Payload(command) => command.run(session).await,
            Self::Notify(command) => command.run(session).await,
            Self::Login => login::login(session).await,
            Self::Logout(command) => command.run(session).await,
            Self::Whoami => login::whoami(session).await,
            Self::User(command) => command.run(session).await,
            Self::Member(command) => command.run(session).await,
            Self::Token(command) => command.run(session).await,
            Self::Session(command) => command.run(session).await,
            Self::Audit(command) => command.run(session).await,
        }
    }
}

#[derive(Debug, Clone, Copy, ValueEnum)]
pub(crate) enum SchemaOf {
    Workflow,
    #[value(name = "everscan.yaml")]
    Repository,
}

/// The page of a list to show.
#[derive(Debug, Args)]
pub(crate) struct PageFlags {
    /// List at most this many
    #[arg(long, env = "SERVICE_LIMIT", default_value_t = 50, value_parser = clap::value_parser!(u32).range(1..=200))]
    limit: u32,
    /// Continue where an earlier list ended
    #[arg(long, env = "SERVICE_CURSOR")]
    cursor: Option<String>,
}

/// Parses one of several values by its name on the wire.
fn one_of<T: Copy + Send + Sync + 'static>(
    values: &'static [T],
    name: fn(T) -> &'static str,
) -> impl TypedValueParser<Value = T> {
    PossibleValuesParser::new(values.iter().map(|value| name(*value))).try_map(move |text| {
        let found = values.iter().find(|value| name(**value) == text);
        found.copied().ok_or("no such value")
    })
}
