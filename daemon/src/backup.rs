//! `everscand backup` and `everscand restore`: copies of a state folder, and their way back. A daemon need not stop for
//! a backup, nor know of it; where none runs it is made the same way.

use std::io::Write;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use model::limits::CYCLE_PAUSE;
use serde::Serialize;
use state::{Copied, CopyError, Options, State};

use crate::arguments::{BackupOptions, OutputForm, RestoreOptions};
use crate::error::Error;
use crate::logging;
use crate::stop_signal::StopSignals;
use crate::system::{SystemClock, SystemEntropy};

/// What a finished copy says of itself.
#[derive(Serialize)]
struct Report {
    files: u64,
    bytes: u64,
    /// The last change that it has.
    sequence: u64,
}

/// Copies a state folder.
pub(crate) fn backup(options: BackupOptions) -> Result<(), Error> {
    logging::to_stderr(logging::LogForm::Text)?;
    let BackupOptions {
        dir: to,
        state_dir,
        output,
    } = options;
    let place = to.display().to_string();
    let copied = interruptible(move |is_stopped| state::back_up(&state_dir, &to, is_stopped))?;
    let report = Report {
        files: copied.files,
        bytes: copied.bytes,
        sequence: copied.sequence.0,
    };
    match output {
        OutputForm::Json => print_json(&report),
        OutputForm::Text => print(&format!(
            "{} files with {} bytes are in {place}, with every change up to {}. The key that seals secrets is not among \
             them.",
            report.files, report.bytes, copied.sequence,
        )),
    }
}

/// Puts a backup back and brings it up to date.
pub(crate) fn restore(options: RestoreOptions) -> Result<(), Error> {
    logging::to_stderr(logging::LogForm::Text)?;
    let RestoreOptions {
        dir,
        state_dir,
        allow_network_state,
        output,
    } = options;
    let root = state_dir.clone();
    let copied = interruptible(move |is_stopped| state::restore(&dir, &root, is_stopped))?;
    let runtime = tokio::runtime::Runtime::new().map_err(Error::Runtime)?;
    let opened = runtime.block_on(State::open(Options {
        root: state_dir.clone(),
        allow_network: allow_network_state,
        clock: Arc::new(SystemClock::new()),
        entropy: Box::new(SystemEntropy),
        cycle_pause: CYCLE_PAUSE,
    }));
    let (state, closing) = opened?;
    let sequence = state.found().0;
    drop(state);
    closing.join().map_err(Error::Close)?;
    let report = Report {
        files: copied.files,
        bytes: copied.bytes,
        sequence,
    };
    match output {
        OutputForm::Json => print_json(&report),
        OutputForm::Text => print(&format!(
            "{} files with {} bytes are restored to {}, with every change up to {sequence}. Runners have to register \
             again. The key that seals secrets was not in the backup: give the daemon the file it had.",
            report.files,
            report.bytes,
            state_dir.display(),
        )),
    }
}

/// Runs a copy that Ctrl-C and SIGTERM end before its time.
fn interruptible(
    copy: impl FnOnce(&dyn Fn() -> bool) -> Result<Copied, CopyError> + Send + 'static,
) -> Result<Copied, Error> {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .map_err(Error::Runtime)?;
    runtime.block_on(async {
        let mut signals = StopSignals::receive().map_err(Error::Runtime)?;
        let stop = Arc::new(AtomicBool::new(false));
        let stopped = stop.clone();
        let mut copying =
            tokio::task::spawn_blocking(move || copy(&|| stopped.load(Ordering::Relaxed)));
        let (signal, done) = tokio::select! {
            done = &mut copying => (None, done),
            signal = signals.next() => {
                stop.store(true, Ordering::Relaxed);
                (Some(signal), copying.await)
            }
        };
        match (signal, done) {
            (Some(signal), Ok(Err(CopyError::Stopped))) => Err(Error::CopyStopped(signal)),
            (_, Ok(copied)) => Ok(copied?),
            (_, Err(ended)) => std::panic::resume_unwind(ended.into_panic()),
        }
    })
}

fn print_json(report: &impl Serialize) -> Result<(), Error> {
    let text = serde_json::to_string(report).map_err(|error| Error::Output(error.into()))?;
    print(&text)
}

fn print(line: &str) -> Result<(), Error> {
    writeln!(std::io::stdout(), "{line}").map_err(Error::Output)
}
