//! The processes of the demonstration: this one file under its three names, and `git`.

#![expect(
    clippy::disallowed_methods,
    reason = "the demonstration starts the programs it shows"
)]

use std::ffi::OsStr;
use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

use rustix::process::{Pid, Signal, kill_process};

use super::DemoError;

/// Starts programs with nothing of the caller's own settings in their environment.
pub(crate) struct Programs {
    home: PathBuf,
    bin: PathBuf,
    settings: Vec<(&'static str, String)>,
}

/// A program that runs until it is dropped.
pub(crate) struct Background {
    child: Child,
}

impl Programs {
    /// Links this file under its three names into `home/bin`.
    pub(crate) fn install(home: &Path) -> Result<Self, DemoError> {
        let own = std::env::current_exe().map_err(DemoError::OwnFile)?;
        let bin = home.join("bin");
        let fail = |path: &Path| {
            let path = path.to_owned();
            move |source| DemoError::File { path, source }
        };
        std::fs::create_dir(&bin).map_err(fail(&bin))?;
        for name in ["everscand", "everscan", "everscan-runner"] {
            let link = bin.join(name);
            std::os::unix::fs::symlink(&own, &link).map_err(fail(&link))?;
        }
        Ok(Self {
            home: home.to_owned(),
            bin,
            settings: Vec::new(),
        })
    }

    /// Sets a variable for every program started from now on.
    pub(crate) fn set(&mut self, name: &'static str, value: &str) {
        self.settings.push((name, value.to_owned()));
    }

    /// Runs a program to its end and answers its standard output.
    pub(crate) fn run<A: AsRef<OsStr>>(
        &self,
        program: &str,
        arguments: &[A],
    ) -> Result<String, DemoError> {
        let mut command = self.command(program);
        command.args(arguments).stdin(Stdio::null());
        let spelled = format!("{command:?}");
        let ended = command.output().map_err(|source| DemoError::Spawn {
            program: program.to_owned(),
            source,
        })?;
        let said = String::from_utf8_lossy(&ended.stderr).trim().to_owned();
        if ended.status.success() {
            Ok(String::from_utf8_lossy(&ended.stdout).into_owned())
        } else {
            Err(DemoError::Failed {
                command: spelled,
                status: ended.status,
                said,
            })
        }
    }

    /// Starts a program that goes on, and answers the first line it prints.
    pub(crate) fn start_and_listen(
        &self,
        program: &'static str,
        arguments: &[&str],
    ) -> Result<(Background, Option<String>), DemoError> {
        let mut background = self.spawn(program, arguments, Stdio::piped())?;
        let stdout = background.child.stdout.take();
        let first = stdout.and_then(|stdout| BufReader::new(stdout).lines().next()?.ok());
        Ok((background, first))
    }

    /// Starts a program that goes on and prints nothing anybody waits for.
    pub(crate) fn start(
        &self,
        program: &'static str,
        arguments: &[&str],
    ) -> Result<Background, DemoError> {
        self.spawn(program, arguments, Stdio::null())
    }

    /// What the program says of itself goes to a file of its name.
    fn spawn(
        &self,
        program: &'static str,
        arguments: &[&str],
        stdout: Stdio,
    ) -> Result<Background, DemoError> {
        let log = self.home.join(format!("{program}.log"));
        let file =
            std::fs::File::create(&log).map_err(|source| DemoError::File { path: log, source })?;
        let mut command = self.command(program);
        command
            .args(arguments)
            .stdin(Stdio::null())
            .stdout(stdout)
            .stderr(file);
        let child = command.spawn().map_err(|source| DemoError::Spawn {
            program: program.to_owned(),
            source,
        })?;
        Ok(Background { child })
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
            .current_dir(&self.home);
        command
    }
}

impl Background {
    /// Asks the program to stop and waits until it has.
    pub(crate) fn stop(&mut self) {
        if let Ok(None) = self.child.try_wait()
            && let Some(pid) = i32::try_from(self.child.id()).ok().and_then(Pid::from_raw)
            && kill_process(pid, Signal::TERM).is_ok()
        {
            drop(self.child.wait());
        }
    }

    /// Waits until the program has ended by itself.
    pub(crate) fn wait(&mut self) {
        drop(self.child.wait());
    }
}

impl Drop for Background {
    fn drop(&mut self) {
        self.stop();
    }
}
