//! `everscan-runner run`: works for the service until a signal stops it.

use workflow::{SizeError, parse_size};

use super::{Failure, home, host_environment, runner_name, runtime};
use crate::configuration::{Configuration, folder_of};
use crate::environment::{HostEnvironment, TOKEN};
use crate::options::Options;
use crate::session::{Setup, serve};
use crate::shutdown;
use crate::supervisor::OWN_PROGRAM;

#[derive(Debug, clap::Args)]
pub(super) struct Run {
    /// The runner's name [default: the host name].
    #[arg(long, env = "SERVICE_NAME")]
    name: Option<String>,
    /// How much disk the files of repositories may take that are kept for further jobs.
    #[arg(
        long,
        value_name = "SIZE",
        default_value = "2GiB",
        value_parser = size,
        env = "SERVICE_SOURCE_CACHE_SIZE"
    )]
    source_cache_size: u64,
    /// Give the runner's own SERVICE_TOKEN to every step of every job, instead of the token of its job.
    #[arg(long)]
    pass_token: bool,
}

fn size(text: &str) -> Result<u64, SizeError> {
    parse_size(text)
}

impl Run {
    fn environment(&self) -> HostEnvironment {
        match std::env::var_os(TOKEN) {
            Some(token) if self.pass_token => {
                tracing::warn!(
                    "every step of every job gets the runner's own SERVICE_TOKEN (--pass-token), so `permissions:` of scans has no \
                     effect on this runner"
                );
                host_environment().with_token(token)
            }
            Some(_) => {
                tracing::warn!(
                    "the runner's own SERVICE_TOKEN is not given to steps: each job has a token of its own, for its project; \
                     remove it, or run with --pass-token if steps need its rights"
                );
                host_environment()
            }
            None => host_environment(),
        }
    }

    pub(super) fn execute(self) -> Result<(), Failure> {
        let home = home()?;
        let environment = self.environment();
        let name = runner_name(self.name);
        let setup = Setup {
            configuration: Configuration::load(&home, &name)?,
            folder: folder_of(&home, &name)?,
            environment,
            supervisor: OWN_PROGRAM.into(),
            options: Options {
                source_cache: self.source_cache_size,
                ..Options::default()
            },
        };
        let runtime = runtime()?;
        let ended = runtime.block_on(async {
            let shutdown = shutdown::on_signals().map_err(Failure::Start)?;
            Ok(serve(setup, shutdown).await?)
        });
        // A blocking thread may still pack a file of an abandoned job; do not wait for it.
        runtime.shutdown_background();
        ended
    }
}
