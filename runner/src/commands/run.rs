//! `everscan-runner run`: works for the service until told to end.

use super::{Failure, home, host_environment, runner_name, runtime};
use crate::configuration::{Configuration, folder_of};
use crate::options::Options;
use crate::session::{Setup, serve};
use crate::shutdown;

#[derive(Debug, clap::Args)]
pub(super) struct Run {
    /// The runner's name [default: the host name].
    #[arg(long, env = "SERVICE_NAME")]
    name: Option<String>,
}

impl Run {
    pub(super) fn execute(self) -> Result<(), Failure> {
        let home = home()?;
        let name = runner_name(self.name);
        let setup = Setup {
            configuration: Configuration::load(&home, &name)?,
            folder: folder_of(&home, &name)?,
            environment: host_environment(),
            options: Options::default(),
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
