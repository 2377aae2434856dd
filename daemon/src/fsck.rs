//! `everscand fsck`: checks a state folder, tells what it found as it is found, and repairs it when asked to.

mod output;
mod progress;
mod undo;

use std::io;

use model::Clock;
use state::fsck::{Progress, Repairing, fsck, repair};

use self::output::{Output, Section};
use self::progress::ProgressLine;
use crate::arguments::FsckOptions;
use crate::error::Error;
use crate::system::SystemClock;

/// Checks, and answers the exit code.
pub(crate) fn run(options: &FsckOptions) -> Result<u8, Error> {
    let root = &options.state.state_dir;
    let mut output = Output::new(options.state.output, root, io::stdout().lock());
    let mut line = ProgressLine::new();
    let now = SystemClock::new().now();
    let checked = if options.repair {
        let runtime = tokio::runtime::Builder::new_current_thread()
            .build()
            .map_err(Error::Runtime)?;
        let told = &mut |told| match told {
            Repairing::Looked(counts) => line.show(counts.files),
            Repairing::Found(finding) => output.finding(Section::Findings, &finding, &mut line),
            Repairing::Done(done) => output.repair(&done, &mut line),
            Repairing::Left(finding) => output.finding(Section::Left, &finding, &mut line),
        };
        let repaired = repair(root, now, options.accept_loss, told);
        runtime.block_on(repaired).map_err(Error::Repair)?
    } else {
        let told = &mut |told| match told {
            Progress::Looked(counts) => line.show(counts.files),
            Progress::Found(finding) => output.finding(Section::Findings, &finding, &mut line),
        };
        fsck(root, now, told).map_err(Error::Fsck)?
    };
    line.clear();
    match output.end(&checked, options.repair) {
        Ok(code) => Ok(code),
        // Whoever read the output has what they wanted, as in `everscand fsck | head`.
        Err((error, code)) if error.kind() == io::ErrorKind::BrokenPipe => Ok(code),
        Err((error, _)) => Err(Error::Output(error)),
    }
}
