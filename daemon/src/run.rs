//! Composing the daemon and taking it apart again.

use std::io::Write;
use std::path::Path;
use std::sync::Arc;

use reconciler::{Reconciler, Start};
use state::{Closing, Options, State};
use tokio::net::TcpListener;
use tokio::signal::unix::{Signal, SignalKind, signal};

use crate::configuration::Settings;
use crate::error::Error;
use crate::limits::LAST_TASKS;
use crate::logging;
use crate::system::{SystemClock, SystemEntropy};

/// Runs the daemon until it is told to stop or cannot go on.
pub(crate) fn run(settings: Settings) -> Result<(), Error> {
    logging::to_stderr()?;
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .enable_all()
        .build()
        .map_err(Error::Runtime)?;
    let (ended, closing) = runtime.block_on(serve(settings))?;
    // Whatever still holds the state goes with the runtime; then the committer ends and the store closes.
    runtime.shutdown_timeout(LAST_TASKS);
    if ended.is_ok() {
        closing.join();
    }
    ended
}

async fn serve(settings: Settings) -> Result<(Result<(), Error>, Closing), Error> {
    let Settings {
        state: root,
        listen,
        sources,
        secret_key,
    } = settings;
    // The address first: it costs nothing, and a daemon that cannot be reached must not touch the state.
    let listening = TcpListener::bind(listen).await;
    let listener = listening.map_err(|source| Error::Listen {
        address: listen,
        source,
    })?;
    let address = listener.local_addr().map_err(|source| Error::Listen {
        address: listen,
        source,
    })?;
    check_folder(&root)?;
    let clock = Arc::new(SystemClock);
    let options = Options {
        root: root.clone(),
        clock: clock.clone(),
        entropy: Box::new(SystemEntropy),
    };
    let (state, closing) = State::open(options).await?;
    let reconciler = Reconciler::start(Start {
        state: state.clone(),
        sources,
        clock,
        entropy: Box::new(SystemEntropy),
        secret_key,
    })
    .await?;
    let handle = reconciler.handle();
    // Whoever reads the URL may read the first token next.
    if let Err(error) = state.settled().await {
        tracing::warn!(%error, "the state's files are behind");
    }
    let mut signals = StopSignals::receive().map_err(Error::Runtime)?;
    announce(&format!("http://{address}"));
    tracing::info!(%address, state = %root.display(), "everscand is ready");
    let mut fatal = None;
    let stop = async {
        tokio::select! {
            () = signals.next() => tracing::info!("stopping"),
            failed = state.failed() => fatal = Some(failed),
        }
        handle.drain();
    };
    api::serve(listener, handle.clone(), Box::pin(stop)).await;
    reconciler.stop().await;
    let ended = match fatal {
        None => Ok(()),
        Some(fatal) => Err(Error::Fatal(fatal)),
    };
    Ok((ended, closing))
}

/// What stands in the state folder's place must be one, or nothing yet.
fn check_folder(root: &Path) -> Result<(), Error> {
    if root.exists() && !root.is_dir() {
        return Err(Error::NotAFolder {
            root: root.to_owned(),
        });
    }
    Ok(())
}

/// The URL is the daemon's only output: whoever starts it with port 0 reads it there.
fn announce(url: &str) {
    let mut stdout = std::io::stdout();
    let written = writeln!(stdout, "{url}").and_then(|()| stdout.flush());
    if let Err(error) = written {
        tracing::debug!(%error, "nobody reads the URL");
    }
}

/// The signals that ask the daemon to stop. Whoever has read the URL may send one at once, so they are received from
/// before it is printed.
struct StopSignals {
    terminate: Signal,
    interrupt: Signal,
}

impl StopSignals {
    fn receive() -> std::io::Result<Self> {
        Ok(Self {
            terminate: signal(SignalKind::terminate())?,
            interrupt: signal(SignalKind::interrupt())?,
        })
    }

    async fn next(&mut self) {
        tokio::select! {
            _ = self.terminate.recv() => {}
            _ = self.interrupt.recv() => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::exit;

    #[test]
    fn a_file_is_no_state_folder() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("file");
        std::fs::write(&file, "").unwrap();
        let error = check_folder(&file).unwrap_err();
        assert_eq!(error.exit_code(), exit::STATE_UNUSABLE);
        assert!(error.report().contains("is not a folder"));
        for good in [folder.path(), &folder.path().join("missing")] {
            assert!(check_folder(good).is_ok());
        }
    }
}
