//! The processes of the demonstration: this file under its three names, and `git`.

#![expect(
    clippy::disallowed_methods,
    reason = "the demonstration starts the programs it shows"
)]

use std::ffi::OsStr;
use std::path::{Path, PathBuf};
use std::process::{ExitStatus, Stdio};

use rustix::process::{Pid, Signal, kill_process};

use tokio::io::{AsyncBufReadExt, BufReader};
use tokio::process::{Child, Command};

use super::error::DemoError;
use super::interruption::Interruption;
use crate::{lifeline, programs};

/// Starts programs without the caller's own settings in their environment.
pub(crate) struct Programs {
    home: PathBuf,
    bin: PathBuf,
    settings: Vec<(&'static str, String)>,
    interruption: Interruption,
}

pub(crate) struct Printed {
    pub(crate) stdout: String,
    pub(crate) stderr: String,
}

/// A program that runs in the background. Dropping it stops the program.
pub(crate) struct Background {
    child: Child,
    interruption: Interruption,
}

impl Programs {
    /// Links this file under its three names into `home/bin`.
    pub(crate) fn install(home: &Path, interruption: Interruption) -> Result<Self, DemoError> {
        let bin = home.join("bin");
        std::fs::create_dir(&bin)
            .and_then(|()| programs::link(&bin))
            .map_err(DemoError::file(&bin))?;
        Ok(Self {
            home: home.to_owned(),
            bin,
            settings: Vec::new(),
            interruption,
        })
    }

    pub(crate) fn set(&mut self, name: &'static str, value: &str) {
        self.settings.push((name, value.to_owned()));
    }

    pub(crate) fn run<A: AsRef<OsStr>>(
        &self,
        program: &str,
        arguments: &[A],
    ) -> Result<Printed, DemoError> {
        match self.end(program, arguments)? {
            (status, printed) if status.success() => Ok(printed),
            (status, printed) => Err(DemoError::Failed {
                command: command_line(program, arguments),
                status,
                stderr: printed.stderr,
            }),
        }
    }

    pub(crate) fn run_to_fail<A: AsRef<OsStr>>(
        &self,
        program: &str,
        arguments: &[A],
    ) -> Result<Printed, DemoError> {
        match self.end(program, arguments)? {
            (status, printed) if !status.success() => Ok(printed),
            _ => {
                let command = command_line(program, arguments);
                Err(DemoError::Unexpected(format!("`{command}` succeeded")))
            }
        }
    }

    fn end<A: AsRef<OsStr>>(
        &self,
        program: &str,
        arguments: &[A],
    ) -> Result<(ExitStatus, Printed), DemoError> {
        let mut command = self.command(program);
        command.args(arguments).stdin(Stdio::null());
        let ended = self
            .interruption
            .wait_for(async { command.output().await })?
            .map_err(|source| DemoError::Spawn {
                program: program.to_owned(),
                source,
            })?;
        let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).trim_end().to_owned();
        let printed = Printed {
            stdout: text(&ended.stdout),
            stderr: text(&ended.stderr),
        };
        Ok((ended.status, printed))
    }

    pub(crate) fn start_and_listen(
        &self,
        program: &'static str,
        arguments: &[&str],
    ) -> Result<(Background, Option<String>), DemoError> {
        let mut background = self.spawn(program, arguments, &[], Stdio::piped())?;
        let stdout = background.child.stdout.take();
        let first = self.interruption.wait_for(async {
            let mut lines = BufReader::new(stdout?).lines();
            lines.next_line().await.ok()?
        })?;
        Ok((background, first))
    }

    /// Starts a program in the background, with its own variables. Its standard output is dropped.
    pub(crate) fn start(
        &self,
        program: &'static str,
        arguments: &[&str],
        variables: &[(&str, &str)],
    ) -> Result<Background, DemoError> {
        self.spawn(program, arguments, variables, Stdio::null())
    }

    /// Standard error goes to a file with the program's name.
    fn spawn(
        &self,
        program: &'static str,
        arguments: &[&str],
        variables: &[(&str, &str)],
        stdout: Stdio,
    ) -> Result<Background, DemoError> {
        let log = self.home.join(format!("{program}.log"));
        let file = std::fs::File::create(&log).map_err(DemoError::file(&log))?;
        let mut command = self.command(program);
        command
            .args(arguments)
            .envs(variables.iter().copied())
            .stdin(Stdio::null())
            .stdout(stdout)
            .stderr(file);
        let child = self
            .interruption
            .inside(|| command.kill_on_drop(false).spawn())
            .map_err(|source| DemoError::Spawn {
                program: program.to_owned(),
                source,
            })?;
        Ok(Background {
            child,
            interruption: self.interruption.clone(),
        })
    }

    fn command(&self, program: &str) -> Command {
        let own = self.bin.join(program);
        let mut command = if own.exists() {
            Command::new(own)
        } else {
            Command::new(program)
        };
        let path = std::env::var_os("PATH").unwrap_or_default();
        let paths = std::iter::once(self.bin.clone()).chain(std::env::split_paths(&path));
        command
            .env_clear()
            .env("PATH", std::env::join_paths(paths).unwrap_or(path))
            .env("HOME", &self.home)
            .env("TMPDIR", std::env::temp_dir())
            .env("GIT_CONFIG_NOSYSTEM", "1")
            .envs(["GIT_AUTHOR", "GIT_COMMITTER"].iter().flat_map(|who| {
                [
                    (format!("{who}_NAME"), "Demo".to_owned()),
                    (format!("{who}_EMAIL"), "demo@localhost".to_owned()),
                ]
            }))
            .envs(self.settings.iter().map(|(name, value)| (name, value)))
            .env(lifeline::VARIABLE, std::process::id().to_string())
            .current_dir(&self.home)
            // Ctrl-C reaches only the demonstration. It stops the others in order, each after the programs that need it.
            .process_group(0)
            .kill_on_drop(true);
        command
    }
}

pub(crate) fn command_line<A: AsRef<OsStr>>(program: &str, arguments: &[A]) -> String {
    let words = arguments.iter().map(|word| word.as_ref().to_string_lossy());
    words.fold(program.to_owned(), |line, word| format!("{line} {word}"))
}

impl Background {
    pub(crate) fn stop(&mut self) {
        if let Ok(None) = self.child.try_wait() {
            self.interruption.wait_for_end(&mut self.child, terminate);
        }
    }

    pub(crate) fn wait(&mut self) -> Result<(), DemoError> {
        self.interruption.wait_for(self.child.wait()).map(drop)
    }
}

fn terminate(child: &Child) {
    let pid = child.id().and_then(|pid| i32::try_from(pid).ok());
    if let Some(pid) = pid.and_then(Pid::from_raw) {
        let _ended_meanwhile = kill_process(pid, Signal::TERM);
    }
}

impl Drop for Background {
    fn drop(&mut self) {
        self.stop();
    }
}
