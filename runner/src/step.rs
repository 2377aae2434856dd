//! Runs one script in its own file and its own process group. Its output goes to the job's log immediately. When the script has
//! ended, the step ends too, even if another process still holds its output open.

use std::ffi::OsString;
use std::io;
use std::path::{Path, PathBuf};
use std::time::Duration;

use model::{MaskStream, error_chain};
use tokio::net::unix::pipe;
use tokio::sync::oneshot;
use tokio::task::yield_now;
use tokio::time::{Instant, sleep};
use wire::Stream;

use crate::environment::Environment;
use crate::job_log::JobLog;
use crate::limits;
use crate::output::LineSplitter;
use crate::program::{explain, find_program};
use crate::slots::{Place, StepFile};
use crate::spool::SpoolError;
use crate::stop::{Stop, StopSignal};
use crate::supervisor::{Exit, Invocation, JobProcesses, Output, RunningStep, StepError};
use crate::workdir::is_of_machine;

/// The shells of a step without `shell`; the first that is installed is used.
const DEFAULT_SHELLS: [&[&str]; 2] = [
    &["bash", "--noprofile", "--norc", "-eo", "pipefail"],
    &["sh", "-e"],
];

#[derive(Debug)]
pub(crate) struct Script<'a> {
    /// The processes of the job, which the script joins.
    pub(crate) processes: &'a JobProcesses,
    pub(crate) step: u32,
    /// The script after its templates were replaced.
    pub(crate) text: &'a str,
    /// The words of the shell's command line; the script's path is added to them.
    pub(crate) shell: Option<&'a [String]>,
    /// The place of its file, and the folder in which it starts.
    pub(crate) place: &'a Place,
    pub(crate) timeout: Option<Duration>,
    /// Whether it runs after a cancel. Then only another stop ends it.
    pub(crate) cleans_up: bool,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum StepEnd {
    Exited(Exit),
    TimedOut(Duration),
    Stopped,
    /// The script could not be started or watched.
    Broken(String),
    /// This machine lacks a resource that the start needs.
    NotSetUp(String),
}

impl StepEnd {
    /// The result of a step that could not start because of this error.
    pub(crate) fn not_started(what: &str, error: &io::Error) -> Self {
        Self::with_message(format!("cannot {what}: {error}"), error)
    }

    fn with_message(message: String, error: &io::Error) -> Self {
        if is_of_machine(error) {
            Self::NotSetUp(message)
        } else {
            Self::Broken(message)
        }
    }
}

/// Runs a script until it ends. Afterwards all processes of its group have ended.
pub(crate) async fn run(
    script: &Script<'_>,
    environment: &Environment,
    log: &JobLog,
    stop: &StopSignal,
) -> StepEnd {
    let started = match start(script, environment).await {
        Ok(started) => started,
        Err(end) => return end,
    };
    let (ended, finish) = oneshot::channel();
    let watch = async {
        let end = watch(started.step, script, &started.program, stop).await;
        // The copying ends only after this message.
        let _ = ended.send(());
        end
    };
    let (end, copied) = tokio::join!(
        watch,
        copy_output(started.output, finish, script.step, log, stop)
    );
    match copied {
        Ok(()) => end,
        Err(error) => StepEnd::Broken(format!("cannot read the script's output: {error}")),
    }
}

async fn watch(
    mut step: RunningStep<'_>,
    script: &Script<'_>,
    program: &Path,
    stop: &StopSignal,
) -> StepEnd {
    let time_is_up = async {
        match script.timeout {
            Some(timeout) => {
                sleep(timeout).await;
                timeout
            }
            None => std::future::pending().await,
        }
    };
    let has_to_stop = async {
        if script.cleans_up {
            stop.at_once().await;
        } else {
            stop.requested().await;
        }
    };
    let end = tokio::select! {
        biased;
        exit = step.exited() => match exit {
            Ok(exit) => StepEnd::Exited(exit),
            Err(StepError::NotStarted(error)) => {
                StepEnd::with_message(explain(program, &script.place.folder, &error), &error)
            }
            Err(error @ StepError::Killed) => StepEnd::Broken(error.to_string()),
        },
        () = has_to_stop => StepEnd::Stopped,
        timeout = time_is_up => StepEnd::TimedOut(timeout),
    };
    step.end().await;
    end
}

struct Started<'a> {
    step: RunningStep<'a>,
    output: Output,
    program: PathBuf,
    _file: StepFile,
}

async fn start<'a>(
    script: &'a Script<'_>,
    environment: &Environment,
) -> Result<Started<'a>, StepEnd> {
    let entries = environment.entries();
    let entries = entries.map_err(|error| StepEnd::Broken(error.to_string()))?;
    let (program, words) = find_shell(script, environment).map_err(StepEnd::Broken)?;
    let file = script
        .place
        .script(script.step, script.text)
        .map_err(|error| StepEnd::not_started("write the script file", &error))?;
    let arguments: Vec<OsString> = words
        .into_iter()
        .map(OsString::from)
        .chain([file.path().into()])
        .collect();
    let invocation = Invocation {
        program: &program,
        arguments: &arguments,
        environment: &entries,
        folder: &script.place.folder,
    };
    let started = script.processes.start(&invocation).await;
    let (step, output) = started
        .map_err(|error| StepEnd::not_started(&format!("start {}", program.display()), &error))?;
    Ok(Started {
        step,
        output,
        program,
        _file: file,
    })
}

fn find_shell<'a>(
    script: &Script<'a>,
    environment: &Environment,
) -> Result<(PathBuf, Vec<&'a str>), String> {
    let find = |program: &str| find_program(program, environment.path(), &script.place.folder);
    let Some(words) = script.shell else {
        return DEFAULT_SHELLS
            .iter()
            .find_map(|words| {
                let (program, arguments) = words.split_first()?;
                Some((find(program)?, arguments.to_vec()))
            })
            .ok_or_else(|| "neither bash nor sh is in the PATH of this step".to_owned());
    };
    let (program, arguments) = words
        .split_first()
        .ok_or_else(|| "the step's shell is empty".to_owned())?;
    let found = find(program).ok_or_else(|| {
        if program.contains('/') {
            format!("shell {program:?} is not there, or is no executable file")
        } else {
            format!("shell {program:?} is not installed or not in the PATH of this step")
        }
    })?;
    Ok((found, arguments.iter().map(String::as_str).collect()))
}

/// Copies both outputs into the log until `finish`, then the rest in the pipes. If the log cannot be written, the job stops;
/// until then the output is still read, so that the script does not block.
async fn copy_output(
    output: Output,
    mut finish: oneshot::Receiver<()>,
    step: u32,
    log: &JobLog,
    stop: &StopSignal,
) -> io::Result<()> {
    let sink = |written: Result<(), SpoolError>| {
        if let Err(error) = written {
            stop.request(Stop::LogFailed(error_chain(&error)));
        }
    };
    let mut stdout = PipeReader::new(output.stdout, step, Stream::Stdout, log);
    let mut stderr = PipeReader::new(output.stderr, step, Stream::Stderr, log);
    loop {
        let full = log.is_full();
        tokio::select! {
            _ = &mut finish => break,
            ready = stdout.pipe.readable(), if !full && !stdout.ended => {
                ready?;
                stdout.read(&sink)?;
            }
            ready = stderr.pipe.readable(), if !full && !stderr.ended => {
                ready?;
                stderr.read(&sink)?;
            }
            () = log.has_room(), if full => {}
        }
        // The thread is shared: a script that prints without a pause must not delay a cancellation.
        yield_now().await;
    }
    for reader in [stdout, stderr] {
        reader.rest(&sink)?;
    }
    Ok(())
}

struct PipeReader<'a> {
    pipe: pipe::Receiver,
    step: u32,
    stream: Stream,
    log: &'a JobLog,
    mask: MaskStream,
    masked: Vec<u8>,
    splitter: LineSplitter,
    ended: bool,
}

impl<'a> PipeReader<'a> {
    fn new(pipe: pipe::Receiver, step: u32, stream: Stream, log: &'a JobLog) -> Self {
        Self {
            pipe,
            step,
            stream,
            log,
            mask: log.mask_stream(),
            masked: Vec::new(),
            splitter: LineSplitter::default(),
            ended: false,
        }
    }

    fn read(&mut self, sink: &impl Fn(Result<(), SpoolError>)) -> io::Result<()> {
        // On the stack: most steps print little, and an allocation of this size would cost more.
        let mut piece = [0; limits::READ_PIECE];
        match self.pipe.try_read(&mut piece) {
            Ok(0) => self.ended = true,
            Ok(length) => sink(self.take(&piece[..length])),
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
            Err(error) => return Err(error),
        }
        Ok(())
    }

    fn take(&mut self, bytes: &[u8]) -> Result<(), SpoolError> {
        self.masked.clear();
        self.mask.push(bytes, &mut self.masked);
        let (splitter, masked) = (&mut self.splitter, &self.masked);
        self.log.write(Some(self.step), self.stream, |mut line| {
            splitter.push(masked, Instant::now(), &mut line);
        })
    }

    /// Logs the rest in the pipe and the unfinished line. Reads the pipe directly, because tokio's readiness may be outdated.
    fn rest(mut self, sink: &impl Fn(Result<(), SpoolError>)) -> io::Result<()> {
        let mut left = limits::DRAIN_BYTES;
        let mut piece = [0; limits::READ_PIECE];
        while !self.ended && left > 0 {
            match rustix::io::read(&self.pipe, &mut piece[..]) {
                Ok(0) => self.ended = true,
                Ok(length) => {
                    left = left.saturating_sub(length);
                    sink(self.take(&piece[..length]));
                }
                Err(rustix::io::Errno::AGAIN) => break,
                Err(rustix::io::Errno::INTR) => {}
                Err(error) => return Err(error.into()),
            }
        }
        self.masked.clear();
        self.mask.finish(&mut self.masked);
        let (mut splitter, masked) = (self.splitter, self.masked);
        sink(self.log.write(Some(self.step), self.stream, |mut line| {
            splitter.push(&masked, Instant::now(), &mut line);
            splitter.finish(&mut line);
        }));
        Ok(())
    }
}
