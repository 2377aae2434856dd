//! `everscand backup`: copies of a state folder. A running daemon does not stop for a backup and does not know of it.
//! `restore.rs` does the reverse.

use std::io::Write;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use serde::Serialize;
use state::{Copied, CopyError};

use crate::arguments::{BackupOptions, OutputForm};
use crate::error::Error;
use crate::logging;
use crate::stop_signal::StopSignals;

#[derive(Serialize)]
struct Report {
    files: u64,
    bytes: u64,
    sequence: u64,
}

pub(crate) fn backup(options: BackupOptions) -> Result<(), Error> {
    logging::to_stderr(logging::LogForm::Text)?;
    let place = options.dir.display().to_string();
    let copied = interruptible(move |is_stopped| {
        state::back_up(&options.state_dir, &options.dir, is_stopped)
    })?;
    let report = Report {
        files: copied.files,
        bytes: copied.bytes,
        sequence: copied.sequence.0,
    };
    match options.output {
        OutputForm::Json => print_json(&report),
        OutputForm::Text => print(&format!(
            "{} files with {} bytes are in {place}, with every change up to {}. The key that seals secrets is not among \
             them.",
            report.files, report.bytes, copied.sequence,
        )),
    }
}

/// Runs a copy that Ctrl-C and SIGTERM can interrupt.
pub(crate) fn interruptible(
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

pub(crate) fn print_json(report: &impl Serialize) -> Result<(), Error> {
    let text = serde_json::to_string(report).map_err(|error| Error::Output(error.into()))?;
    print(&text)
}

pub(crate) fn print(line: &str) -> Result<(), Error> {
    writeln!(std::io::stdout(), "{line}").map_err(Error::Output)
}
