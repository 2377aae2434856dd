//! The runner: asks the daemon for jobs, executes their steps, streams their output and uploads their artifacts.
//!
//! It never reads the daemon's state or a Git repository: it gets all its data over HTTP. It runs a job at most once. When a job
//! ends, only the files of repositories stay on this machine, in a cache. If the daemon is away for a while, no job stops and no
//! line of a log is lost.

#![cfg_attr(
    test,
    expect(
        clippy::disallowed_methods,
        reason = "tests lay out files and start the programs they are about"
    )
)]

mod artifact;
mod checkout;
mod clock;
mod commands;
mod configuration;
mod conflict;
mod contact;
mod environment;
mod escaped;
mod evaluation;
mod execution;
mod first_process;
mod instance;
mod job_log;
mod jobs_thread;
pub mod limits;
mod link;
mod lock;
mod log_shipper;
mod options;
mod output;
mod polls;
mod processes;
mod program;
mod session;
mod shutdown;
mod slots;
mod source_cache;
mod source_files;
mod spool;
mod step;
mod step_outputs;
mod stop;
mod supervisor;
mod timeline;
mod workdir;
mod worker;

pub use commands::{before_main, main};
pub use configuration::{Configuration, ConfigurationError, RegisteredAs, folder_of};
pub use environment::HostEnvironment;
pub use instance::InstanceError;
pub use options::Options;
pub use session::{SessionError, Setup, serve};
pub use shutdown::Urgency;
pub use supervisor::OWN_PROGRAM;
pub use workdir::WorkdirError;
