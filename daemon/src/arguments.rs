//! The command line of `everscand`.

use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::path::PathBuf;

use api::BasePath;
use clap::{Args, Parser, Subcommand, ValueEnum};
use listen::Cidr;

use crate::logging::LogForm;

/// The default address: this machine only.
pub(crate) const LISTEN: SocketAddr = SocketAddr::new(IpAddr::V4(Ipv4Addr::LOCALHOST), 7411);

/// Everscan's daemon: follows Git repositories and runs their workflows.
#[derive(Debug, Parser)]
#[command(name = "everscand", version, max_term_width = 100, after_help = EXIT_CODES)]
pub(crate) struct Arguments {
    #[command(subcommand)]
    pub(crate) command: Command,
}

const EXIT_CODES: &str = "Exit codes: 0 stopped, 1 failed, 2 usage or configuration, 10 state folder in use, 11 state \
folder of a newer format, 12 state folder damaged, not one, or not to be written, 13 address not available, 14 commit failed, 15 disk full, \
130 and 143 a demonstration, backup or restore stopped by SIGINT and SIGTERM. Of `fsck`: 0 clean, 1 findings, 2 it cannot \
check or repair.";

#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// Run the daemon.
    Run(RunOptions),
    /// Make a file with a key that seals secrets, or show the id of a key.
    SecretKey(SecretKeyOptions),
    /// Run everything for this machine in one folder: daemon, runner, state. Ctrl-C stops it.
    Up(UpOptions),
    /// Copy a state folder, even while a daemon uses it.
    Backup(BackupOptions),
    /// Restore a backup into an empty or missing state folder.
    Restore(RestoreOptions),
    /// Check a state folder, even while a daemon uses it.
    Fsck(FsckOptions),
    /// Show the content of a state folder, without a daemon. Secrets and tokens are not shown.
    #[command(subcommand)]
    State(StateCommand),
    /// Let a locked-out user in again.
    #[command(subcommand)]
    User(UserCommand),
    /// Show all features in a temporary folder: push, dispatch, expressions, broken files, artifacts.
    Demo(DemoOptions),
}

/// A flag wins over the environment, and the environment over the configuration file.
#[derive(Debug, Args)]
pub(crate) struct RunOptions {
    /// The configuration file (YAML).
    #[arg(long, env = "SERVICE_CONFIG", value_name = "FILE")]
    pub(crate) config: Option<PathBuf>,
    /// The state folder; a missing folder is made.
    #[arg(long, env = "SERVICE_STATE_DIR", value_name = "DIR")]
    pub(crate) state_dir: Option<PathBuf>,
    /// Allow a state folder on a network file system, where locks and syncs may not be reliable.
    #[arg(long, env = "SERVICE_ALLOW_NETWORK_STATE")]
    pub(crate) allow_network_state: bool,
    /// Where to listen; port 0 takes a free one. The URL is printed on standard output.
    #[arg(long, env = "SERVICE_LISTEN", value_name = "ADDRESS:PORT", value_parser = listen_address)]
    pub(crate) listen: Option<SocketAddr>,
    /// Listen also on an address that other machines reach. Tokens and secrets then cross the network in the clear.
    #[arg(long, env = "SERVICE_INSECURE_HTTP")]
    pub(crate) insecure_http: bool,
    /// Serve https with this certificate (PEM, with the chain to its authority). A changed file is read again.
    #[arg(
        long,
        env = "SERVICE_TLS_CERT",
        value_name = "FILE",
        requires = "tls_key"
    )]
    pub(crate) tls_cert: Option<PathBuf>,
    /// The private key (PEM) of the certificate.
    #[arg(
        long,
        env = "SERVICE_TLS_KEY",
        value_name = "FILE",
        requires = "tls_cert"
    )]
    pub(crate) tls_key: Option<PathBuf>,
    /// Addresses of proxies that are believed when they name the caller and the path (X-Forwarded-For, X-Forwarded-Proto and
    /// X-Forwarded-Prefix).
    #[arg(
        long,
        env = "SERVICE_TRUST_PROXY",
        value_name = "ADDRESS",
        value_delimiter = ','
    )]
    pub(crate) trust_proxy: Vec<Cidr>,
    /// The path below which a proxy offers the daemon, such as /everscan.
    #[arg(long, env = "SERVICE_BASE_PATH", value_name = "PATH")]
    pub(crate) base_path: Option<BasePath>,
    /// Addresses that count as this machine: browsers may sign in from there without TLS.
    #[arg(
        long,
        env = "SERVICE_LOCAL_FROM",
        value_name = "ADDRESS",
        value_delimiter = ','
    )]
    pub(crate) local_from: Vec<Cidr>,
    /// The file with the key that seals secrets, outside the state folder; `everscand secret-key make` makes one.
    #[arg(long, env = "SERVICE_SECRET_KEY_FILE", value_name = "FILE")]
    pub(crate) secret_key_file: Option<PathBuf>,
    /// A file with an old key. Secrets that it seals are sealed with the current key while the daemon runs.
    #[arg(
        long = "old-secret-key-file",
        env = "SERVICE_OLD_SECRET_KEY_FILE",
        value_name = "FILE",
        value_delimiter = ','
    )]
    pub(crate) old_secret_key_files: Vec<PathBuf>,
    /// The form of the log on standard error.
    #[arg(
        long,
        env = "SERVICE_LOG_FORM",
        value_name = "FORM",
        default_value = "text"
    )]
    pub(crate) log_form: LogForm,
    /// A source to follow, beside those of the configuration file: NAME=URL.
    #[arg(
        long = "source",
        env = "SERVICE_SOURCE",
        value_name = "NAME=URL",
        value_delimiter = ','
    )]
    pub(crate) sources: Vec<String>,
}

#[derive(Debug, Args)]
#[command(
    args_conflicts_with_subcommands = true,
    arg_required_else_help = true,
    override_usage = "everscand secret-key <COMMAND>"
)]
pub(crate) struct SecretKeyOptions {
    #[command(subcommand)]
    pub(crate) command: Option<SecretKeyCommand>,
    /// The earlier form of `make FILE`. A single word is refused, because it could be a mistyped command.
    #[arg(value_name = "FILE", hide = true)]
    pub(crate) path: Option<PathBuf>,
}

#[derive(Debug, Subcommand)]
pub(crate) enum SecretKeyCommand {
    /// Make a file with a new key.
    Make {
        /// The file to make; an existing file is left as it is.
        #[arg(value_name = "FILE")]
        path: PathBuf,
    },
    /// Print the id of a key, as `everscan secret list` shows it.
    Id {
        /// The file with the key.
        #[arg(value_name = "FILE")]
        path: PathBuf,
    },
}

#[derive(Debug, Args)]
pub(crate) struct UpOptions {
    /// A Git repository whose commits are followed; in any other folder a saved workflow file counts.
    #[arg(value_name = "DIR", default_value = ".")]
    pub(crate) dir: PathBuf,
    /// Where to listen; the address of the last time, or a free port of this machine, unless given.
    #[arg(long, env = "SERVICE_LISTEN", value_name = "ADDRESS:PORT", value_parser = listen_address)]
    pub(crate) listen: Option<SocketAddr>,
    /// Listen also on an address that other machines reach. Tokens and secrets then cross the network in the clear.
    #[arg(long, env = "SERVICE_INSECURE_HTTP")]
    pub(crate) insecure_http: bool,
    /// Allow a state folder on a network file system, where locks and syncs may not be reliable.
    #[arg(long, env = "SERVICE_ALLOW_NETWORK_STATE")]
    pub(crate) allow_network_state: bool,
}

#[derive(Debug, Args)]
pub(crate) struct BackupOptions {
    /// Where to; a missing or empty folder.
    #[arg(value_name = "DIR")]
    pub(crate) dir: PathBuf,
    /// The state folder.
    #[arg(long, env = "SERVICE_STATE_DIR", value_name = "DIR")]
    pub(crate) state_dir: PathBuf,
    /// How the result is shown.
    #[arg(long, value_name = "FORMAT", default_value = "text")]
    pub(crate) output: OutputForm,
}

#[derive(Debug, Args)]
pub(crate) struct RestoreOptions {
    /// The backup: a folder that `everscand backup` made, or any other copy of a state folder that is whole.
    #[arg(value_name = "DIR")]
    pub(crate) dir: PathBuf,
    /// The state folder to make.
    #[arg(long, env = "SERVICE_STATE_DIR", value_name = "DIR")]
    pub(crate) state_dir: PathBuf,
    /// End all tokens and sessions that come back, but for the initial admin token.
    #[arg(long)]
    pub(crate) revoke_tokens: bool,
    /// End what had been revoked since the backup, by the audit log of this newer state folder, or of a copy of its folder
    /// `audit`.
    #[arg(long, value_name = "DIR")]
    pub(crate) newer_audit: Option<PathBuf>,
    /// Allow a state folder on a network file system, where locks and syncs may not be reliable.
    #[arg(long, env = "SERVICE_ALLOW_NETWORK_STATE")]
    pub(crate) allow_network_state: bool,
    /// How the result is shown.
    #[arg(long, value_name = "FORMAT", default_value = "text")]
    pub(crate) output: OutputForm,
}

#[derive(Debug, Subcommand)]
pub(crate) enum UserCommand {
    /// Print the path of a link with which a user sets a new password, once and within 24 hours. The daemon must be stopped.
    Reset(UserResetOptions),
}

#[derive(Debug, Args)]
pub(crate) struct UserResetOptions {
    /// The user; the first start has made `owner`.
    #[arg(value_name = "NAME")]
    pub(crate) name: String,
    /// The state folder.
    #[arg(long, env = "SERVICE_STATE_DIR", value_name = "DIR")]
    pub(crate) state_dir: PathBuf,
    /// Allow a state folder on a network file system, where locks and syncs may not be reliable.
    #[arg(long, env = "SERVICE_ALLOW_NETWORK_STATE")]
    pub(crate) allow_network_state: bool,
}

#[derive(Debug, Args)]
pub(crate) struct StateOptions {
    /// The state folder.
    #[arg(long, env = "SERVICE_STATE_DIR", value_name = "DIR")]
    pub(crate) state_dir: PathBuf,
    /// How it is shown.
    #[arg(
        long,
        env = "SERVICE_OUTPUT",
        value_name = "FORMAT",
        default_value = "text"
    )]
    pub(crate) output: OutputForm,
}

#[derive(Debug, Args)]
#[command(after_help = FSCK_EXIT_CODES)]
pub(crate) struct FsckOptions {
    #[command(flatten)]
    pub(crate) state: StateOptions,
    /// Repair what a program can repair. The state must not be in use. Nothing is deleted: what cannot be trusted goes
    /// to `quarantine/`, and commands that undo the whole repair are printed.
    #[arg(long)]
    pub(crate) repair: bool,
    /// With --repair: give up acknowledged changes that a damaged journal has lost.
    #[arg(long, requires = "repair")]
    pub(crate) accept_loss: bool,
}

const FSCK_EXIT_CODES: &str = "Exit codes: 0 clean, or only notes, 1 errors or warnings; with --repair: those that are \
left, 2 it could not check or repair.";

#[derive(Debug, Subcommand)]
pub(crate) enum StateCommand {
    /// What is there: counts and sizes.
    Tree {
        #[command(flatten)]
        options: StateOptions,
    },
    /// One record, with its path.
    Show {
        /// The id of a job, workflow, revision, project, runner, registration, token, session, condition, channel or record
        /// of the outbox, the name of a source, workflow or scan, or `instance` for its rules.
        id: String,
        #[command(flatten)]
        options: StateOptions,
    },
    /// What happened to a job, or which jobs of a scan or workflow ended, the newest first.
    History {
        /// The id of a job or workflow, or the name of a scan.
        id: String,
        /// At most so many jobs.
        #[arg(
            long,
            env = "SERVICE_LIMIT",
            value_name = "NUMBER",
            default_value_t = 50
        )]
        limit: usize,
        #[command(flatten)]
        options: StateOptions,
    },
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum OutputForm {
    // For people.
    Text,
    // One object, for programs.
    Json,
}

#[derive(Debug, Args)]
pub(crate) struct DemoOptions {
    /// Leave the daemon and the runner running, and the folder in place, until Ctrl-C.
    #[arg(long)]
    pub(crate) keep: bool,
}

/// Reads an address to listen on. The error is a sentence for the person who wrote the address.
pub(crate) fn listen_address(text: &str) -> Result<SocketAddr, String> {
    text.parse().map_err(|_| {
        format!("`{text}` is not an IP address with a port; write it as in {LISTEN} or [::1]:7411")
    })
}
