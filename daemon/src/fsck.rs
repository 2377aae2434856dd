//! `everscand fsck`: checks a state folder, reports each finding at once, and repairs on request.

mod output;
mod progress;
mod undo;

use std::io;

use state::fsck::{Event, fsck, repair};

use self::output::{Output, Section};
use self::progress::ProgressLine;
use crate::arguments::FsckOptions;
use crate::error::Error;

pub(crate) fn run(options: &FsckOptions) -> Result<u8, Error> {
    let root = &options.state.state_dir;
    let mut output = Output::new(options.state.output, root, io::stdout().lock());
    let mut line = ProgressLine::new();
    let report = &mut |event| match event {
        Event::Progress(counts) => line.show(counts.files),
        Event::Found(finding) => output.finding(Section::Findings, &finding, &mut line),
        Event::Done(done) => output.repair(&done, &mut line),
        Event::Left(finding) => output.finding(Section::Left, &finding, &mut line),
    };
    let checked = if options.repair {
        let runtime = tokio::runtime::Builder::new_current_thread()
            .build()
            .map_err(Error::Runtime)?;
        let repaired = repair(root, options.accept_loss, report);
        runtime.block_on(repaired).map_err(Error::Repair)?
    } else {
        fsck(root, report).map_err(Error::Fsck)?
    };
    line.clear();
    match output.end(&checked, options.repair) {
        Ok(code) => Ok(code),
        // The reader of the output has closed it, as in `everscand fsck | head`. This is no failure.
        Err((error, code)) if error.kind() == io::ErrorKind::BrokenPipe => Ok(code),
        Err((error, _)) => Err(Error::Output(error)),
    }
}
