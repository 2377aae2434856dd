//! The start of a step. The runner starts its own program with [`ARGUMENT`]. That process leaves the runner's terminal,
//! gives every signal its default disposition, and becomes the step's program by `exec`. So a step has no further
//! process, nothing of it can ask on a terminal, and Ctrl-C or `nohup` reach the runner alone.

#![expect(clippy::disallowed_methods, reason = "the program that a step becomes")]

use std::ffi::{OsStr, OsString};
use std::fs::File;
use std::io::{self, Write as _};
use std::os::fd::AsFd as _;
use std::os::unix::process::CommandExt as _;
use std::process::{Command, ExitCode, Stdio};

use rustix::process::{Signal, setsid};
use tokio::runtime::Builder;
use tokio::signal::unix::{SignalKind, signal};

/// This program, also after its file was replaced.
pub const OWN_PROGRAM: &str = "/proc/self/exe";

/// The first argument of a launcher. The program and its arguments follow.
pub(crate) const ARGUMENT: &str = "become-step";

/// Where the kernel says which signals are ignored.
const STATUS: &str = "/proc/self/status";

/// Becomes the step's program, if these are the arguments of a launcher. It must be called before anything else. Returns
/// only if this is no launcher, or the program cannot be started. Then the runner reads why from the launcher's stdin,
/// which is a pipe.
pub(crate) fn launch(arguments: &[OsString]) -> Option<ExitCode> {
    let [_, first, program, rest @ ..] = arguments else {
        return None;
    };
    if first != ARGUMENT {
        return None;
    }
    // If nobody reads the report, nobody waits for the step.
    let _unread = become_step(program, rest);
    Some(ExitCode::FAILURE)
}

fn become_step(program: &OsStr, arguments: &[OsString]) -> io::Result<()> {
    // `exec` closes this copy, and the runner then reads to the end.
    let mut report = File::from(io::stdin().as_fd().try_clone_to_owned()?);
    let error = match leave_terminal() {
        Ok(()) => {
            // From here on, a signal is meant for the step.
            report.write_all(BEGUN)?;
            let mut program = Command::new(program);
            program.args(arguments).stdin(Stdio::null()).exec()
        }
        Err(error) => error,
    };
    write!(report, "{error}")
}

/// What a launcher reports before it becomes the step's program.
pub(crate) const BEGUN: &[u8] = b"\n";

fn leave_terminal() -> io::Result<()> {
    setsid()?;
    let ignored = std::fs::read_to_string(STATUS).map_or(0, |status| ignored_signals(&status));
    if ignored == 0 {
        return Ok(());
    }
    // `exec` resets a signal that has a handler, and SIGPIPE.
    let runtime = Builder::new_current_thread().enable_io().build()?;
    let _entered = runtime.enter();
    for number in (1..).take(u64::BITS as usize) {
        if ignored >> (number - 1) & 1 == 1 {
            // An error: it shows a defect of a program, such as SIGSEGV, and nobody ignores it on purpose.
            let _unhandled = signal(SignalKind::from_raw(number));
        }
    }
    Ok(())
}

/// The ignored signals as a set of bits, without SIGPIPE, which this program itself ignores, and the two signals that the C
/// library keeps for itself.
fn ignored_signals(status: &str) -> u64 {
    let line = status.lines().find_map(|line| line.strip_prefix("SigIgn:"));
    let all = line.and_then(|digits| u64::from_str_radix(digits.trim(), 16).ok());
    let others = [Signal::PIPE.as_raw(), 32, 33];
    let others = others.map(|number| 1 << (number - 1));
    all.unwrap_or_default() & !others.into_iter().sum::<u64>()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ignored_signals_are_read_without_the_programs_own() {
        let status = "SigBlk:\t0000000000000001\nSigIgn:\t0000000180001007\nSigCgt:\t0";
        assert_eq!(ignored_signals(status), 7);
        assert_eq!(ignored_signals(""), 0);
    }

    #[test]
    fn other_arguments_start_no_launcher() {
        for words in [&["everscand"][..], &["everscand", "run"], &["a", "b", "c"]] {
            let arguments: Vec<OsString> = words.iter().map(OsString::from).collect();
            assert_eq!(launch(&arguments), None);
        }
    }
}
