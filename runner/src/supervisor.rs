//! The runner's side of its supervisors. A supervisor is a separate process of the runner's program (`supervisor/process.rs`). It
//! starts the steps of a job and becomes the parent of all processes that they leave, so the end of a job needs no search for its
//! processes. A job takes a supervisor at its first step and returns it when all processes of the job have ended.
//!
//! If a supervisor is killed, its remaining processes become children of the runner, which ends them.

#![expect(
    clippy::disallowed_methods,
    reason = "the home of starting a supervisor"
)]

mod message;
mod process;

use std::collections::BTreeSet;
use std::io;
use std::os::fd::{AsFd as _, OwnedFd};
use std::os::unix::net::UnixStream as StdStream;
use std::path::PathBuf;
use std::process::Stdio;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use rustix::process::{
    Pid, Signal, WaitId, WaitIdOptions, WaitOptions, getpid, kill_process, set_child_subreaper,
    waitid, waitpid,
};
use tokio::net::UnixStream;
use tokio::net::unix::pipe;
use tokio::process::{Child, Command};
use tokio::signal::unix::{Signal as Signals, SignalKind, signal};
use tokio::task::JoinHandle;
use tokio::time::{Instant, timeout};

use self::message::{Asking, Reply};
use crate::limits;
use crate::options::Options;
use crate::processes::{self, Process};

pub(crate) use self::message::{Exit, Invocation};
pub(crate) use self::process::supervise;

/// This program, even after its file was replaced.
pub const OWN_PROGRAM: &str = "/proc/self/exe";

/// A step fails after this many supervisors have died before they started it. Ctrl-C in the runner's terminal ends a supervisor
/// that has not left the terminal yet.
const ATTEMPTS: usize = 3;

/// The supervisors of this process. The runner's search for orphans ignores them.
static RUNNING: Mutex<BTreeSet<i32>> = Mutex::new(BTreeSet::new());

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

#[derive(Debug, Clone)]
pub(crate) struct Supervisors(Arc<Pool>);

#[derive(Debug)]
struct Pool {
    program: PathBuf,
    options: Options,
    idle: Mutex<Vec<Supervisor>>,
}

/// The outputs of a step, as pipes that never block the reader.
#[derive(Debug)]
pub(crate) struct Output {
    pub(crate) stdout: pipe::Receiver,
    pub(crate) stderr: pipe::Receiver,
}

/// Why the result of a step is unknown.
#[derive(Debug, thiserror::Error)]
pub(crate) enum StepError {
    #[error("{0}")]
    NotStarted(io::Error),
    #[error("the process that watches the steps was killed")]
    Killed,
}

impl Supervisors {
    /// `program` must call [`crate::before_main`].
    pub(crate) fn new(program: PathBuf, options: Options) -> Self {
        Self(Arc::new(Pool {
            program,
            options,
            idle: Mutex::default(),
        }))
    }

    /// Starts a supervisor. Must be called inside a runtime.
    fn start(&self) -> io::Result<Supervisor> {
        let millis = |time: Duration| time.as_millis().to_string();
        let Pool {
            program, options, ..
        } = &*self.0;
        let (ours, theirs) = StdStream::pair()?;
        ours.set_nonblocking(true)?;
        let socket = Asking(UnixStream::from_std(ours)?);
        let mut command = Command::new(program);
        command
            .arg(process::ARGUMENT)
            .arg(millis(options.grace))
            .arg(millis(options.supervisor_idle))
            .env_clear()
            .stdin(OwnedFd::from(theirs))
            .stdout(Stdio::null())
            .stderr(Stdio::null());
        let child_changed = signal(SignalKind::child())?;
        let mut running = lock(&RUNNING);
        inherit(true);
        let child = command.spawn()?;
        let id = child
            .id()
            .and_then(|id| Pid::from_raw(i32::try_from(id).ok()?))
            .ok_or_else(|| io::Error::other("the new process has no id"))?;
        running.insert(id.as_raw_pid());
        drop(running);
        let ended = tokio::spawn(wait_for(child, child_changed, id, self.clone()));
        Ok(Supervisor {
            id,
            socket,
            ended,
            is_empty: true,
        })
    }
}

/// Waits for the end of a supervisor. If it is stopped, continues it. If it was killed, ends its remaining processes.
async fn wait_for(mut child: Child, mut child_changed: Signals, id: Pid, supervisors: Supervisors) {
    let mut next_check = Instant::now() + limits::ORPHANS_EVERY;
    let status = loop {
        tokio::select! {
            status = child.wait() => break status,
            _ = child_changed.recv() => {
                let stopped = WaitIdOptions::STOPPED | WaitIdOptions::NOHANG;
                if let Ok(Some(_)) = waitid(WaitId::Pid(id), stopped) {
                    // An error means that it has ended.
                    let _ = kill_process(id, Signal::CONT);
                }
                // In `up`, processes that `git` left in the background may have ended, too.
                if Instant::now() >= next_check {
                    orphans();
                    next_check = Instant::now() + limits::ORPHANS_EVERY;
                }
            }
        }
    };
    lock(&supervisors.0.idle).retain(|idle| idle.id != id);
    if status.is_ok_and(|status| status.success()) {
        // A process of another user may be left.
        orphans();
    } else {
        let ended = processes::end(orphans, Instant::now()).await;
        tracing::warn!(ended, "the process that watches steps was killed");
    }
    let mut running = lock(&RUNNING);
    running.remove(&id.as_raw_pid());
    if running.is_empty() {
        inherit(false);
    }
}

/// Makes orphaned processes children of this process, or no longer. Only while there is a supervisor, because nothing else waits
/// for them.
fn inherit(is_enabled: bool) {
    if let Err(error) = set_child_subreaper(is_enabled.then(getpid)) {
        tracing::warn!(%error, "processes whose supervisor is killed would not be found");
    }
}

/// The processes whose supervisor has ended. Reaps those that have ended. Other children of this process are in its session and
/// have their own waiter.
fn orphans() -> Option<Vec<Process>> {
    let running = lock(&RUNNING);
    // `None` if the session's leader is outside of this container. `getsid` would return an id that no process has.
    let own = processes::read(getpid()).and_then(|own| own.session);
    let mut left = processes::descendants(|process| {
        process.session != own && !running.contains(&process.id.as_raw_pid())
    });
    drop(running);
    let was_waited_for = |id| matches!(waitpid(Some(id), WaitOptions::NOHANG), Ok(Some(_)));
    let own = Some(getpid());
    left.retain(|process| {
        !(process.is_zombie && process.parent == own && was_waited_for(process.id))
    });
    (!left.is_empty()).then_some(left)
}

/// A supervisor. Dropping it ends everything that it has started, and then itself.
#[derive(Debug)]
struct Supervisor {
    id: Pid,
    socket: Asking,
    /// The supervisor and all processes that it started have ended.
    ended: JoinHandle<()>,
    /// Whether all processes of the job have ended.
    is_empty: bool,
}

impl Supervisor {
    fn kill(&self) {
        // An error means that it has ended.
        let _ = kill_process(self.id, Signal::KILL);
    }

    /// Kills it if it still runs, and waits until all processes that it started are gone.
    async fn killed(self) {
        self.kill();
        // An error means that the runner ends.
        let _ = self.ended.await;
    }
}

#[derive(Debug)]
pub(crate) struct JobProcesses {
    supervisors: Supervisors,
    /// The supervisor, between two steps.
    supervisor: Mutex<Option<Supervisor>>,
}

impl JobProcesses {
    pub(crate) const fn new(supervisors: Supervisors) -> Self {
        Self {
            supervisors,
            supervisor: Mutex::new(None),
        }
    }

    /// Starts a step with an empty stdin and both outputs piped. If the program cannot be started, [`RunningStep::exited`]
    /// returns the error.
    pub(crate) async fn start(
        &self,
        invocation: &Invocation<'_>,
    ) -> io::Result<(RunningStep<'_>, Output)> {
        let ((stdout, of_step), (stderr, of_step_too)) = (io::pipe()?, io::pipe()?);
        let output = Output {
            stdout: pipe::Receiver::from_owned_fd(stdout.into())?,
            stderr: pipe::Receiver::from_owned_fd(stderr.into())?,
        };
        let outputs = [of_step.as_fd(), of_step_too.as_fd()];
        let mut attempts = 0;
        loop {
            let own = lock(&self.supervisor).take();
            let idle = || lock(&self.supervisors.0.idle).pop();
            let mut supervisor = match own.or_else(idle) {
                Some(supervisor) => supervisor,
                None if attempts < ATTEMPTS => {
                    attempts += 1;
                    self.supervisors.start()?
                }
                None => return Err(io::Error::other(StepError::Killed)),
            };
            let socket = &mut supervisor.socket;
            let begun = async {
                socket.start(invocation, outputs).await?;
                socket.reply().await
            };
            let begun = match timeout(limits::ANSWER, begun).await {
                Ok(begun) => begun,
                // The supervisor is stopped. If it reports the stop first, the step may have run.
                Err(_) => {
                    supervisor.kill();
                    supervisor.socket.reply().await
                }
            };
            if let Ok(Reply::Begun) = begun {
                let step = RunningStep {
                    job: self,
                    supervisor,
                    state: State::Runs,
                };
                return Ok((step, output));
            }
            // The step has not run.
            supervisor.killed().await;
        }
    }

    /// Ends all processes that the steps have left, with SIGKILL at `kill_at`. Returns their number.
    pub(crate) async fn end(&self, kill_at: Instant) -> i32 {
        let Some(mut supervisor) = lock(&self.supervisor).take() else {
            return 0;
        };
        let mut ended = 0;
        if !supervisor.is_empty {
            let grace = kill_at.saturating_duration_since(Instant::now());
            let options = &self.supervisors.0.options;
            let socket = &mut supervisor.socket;
            let cleared = async {
                socket.clear(grace).await?;
                socket.reply().await
            };
            let cleared = timeout(grace + options.answer, cleared).await;
            let Ok(Ok(Reply::Cleared {
                is_empty,
                ended: count,
            })) = cleared
            else {
                supervisor.killed().await;
                return 0;
            };
            ended = count;
            if !is_empty {
                tracing::warn!("processes of a job cannot be ended");
                return ended;
            }
        }
        lock(&self.supervisors.0.idle).push(supervisor);
        ended
    }
}

#[derive(Debug)]
pub(crate) struct RunningStep<'a> {
    job: &'a JobProcesses,
    supervisor: Supervisor,
    state: State,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum State {
    Runs,
    /// The step has ended, and so have the remaining processes of its group.
    Exited,
    NotStarted,
    /// The supervisor was killed.
    Killed,
}

impl RunningStep<'_> {
    pub(crate) async fn exited(&mut self) -> Result<Exit, StepError> {
        let (state, exit) = match self.supervisor.socket.reply().await {
            Ok(Reply::Exited(exit)) => (State::Exited, Ok(exit)),
            Ok(Reply::NotStarted(error)) => {
                let error = io::Error::from_raw_os_error(error);
                (State::NotStarted, Err(StepError::NotStarted(error)))
            }
            _ => (State::Killed, Err(StepError::Killed)),
        };
        self.state = state;
        exit
    }

    /// Ends the remaining processes of the step's group and waits until they are gone. SIGKILL follows after the grace period.
    pub(crate) async fn end(mut self) {
        let options = &self.job.supervisors.0.options;
        let patience = options.grace + options.answer;
        match timeout(patience, self.gone()).await {
            Ok(Ok(is_empty)) => {
                self.supervisor.is_empty = is_empty;
                *lock(&self.job.supervisor) = Some(self.supervisor);
            }
            // The supervisor was killed or is stopped.
            Ok(Err(_)) | Err(_) => self.supervisor.killed().await,
        }
    }

    /// Waits until the step's group is gone. Returns whether all processes of the job have ended.
    async fn gone(&mut self) -> io::Result<bool> {
        let Supervisor {
            socket, is_empty, ..
        } = &mut self.supervisor;
        match self.state {
            State::Runs => socket.stop().await?,
            State::Exited => {}
            State::NotStarted => return Ok(*is_empty),
            State::Killed => return Err(io::ErrorKind::UnexpectedEof.into()),
        }
        loop {
            match socket.reply().await? {
                Reply::StepGone { is_empty } => return Ok(is_empty),
                Reply::NotStarted(_) => return Ok(*is_empty),
                Reply::Begun | Reply::Exited(_) | Reply::Cleared { .. } => {}
            }
        }
    }
}
