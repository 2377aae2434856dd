//! The folder and the programs of the demonstration, and the actions of its story.

#![expect(
    clippy::disallowed_methods,
    reason = "the demonstration lays out the repository it shows"
)]

use std::io::ErrorKind;
use std::path::{Path, PathBuf};

use serde::Deserialize;
use tempfile::TempDir;

use super::error::DemoError;
use super::interruption::Interruption;
use super::processes::{Background, Printed, Programs, command_line};
use super::terminal::Terminal;

pub(super) const WORKFLOW: &str = "dependency-watch";

/// A temporary folder with a repository, a daemon and a runner.
pub(super) struct Stage {
    pub(super) terminal: Terminal,
    programs: Programs,
    // The fields are dropped in this order: the folder last.
    runner: Option<Background>,
    daemon: Option<Background>,
    home: TempDir,
}

#[derive(Deserialize)]
struct Jobs {
    items: Vec<Listed>,
}

#[derive(Deserialize)]
struct Listed {
    id: String,
}

impl Stage {
    pub(super) fn set() -> Result<Self, DemoError> {
        // This must be first: a signal from now on must not leave the folder behind.
        let interruption = Interruption::receive().map_err(DemoError::Signals)?;
        let home = tempfile::Builder::new()
            .prefix("everscan-demo-")
            .tempdir()
            .map_err(DemoError::file(&std::env::temp_dir()))?;
        let programs = Programs::install(home.path(), interruption)?;
        Ok(Self {
            terminal: Terminal::new(),
            programs,
            runner: None,
            daemon: None,
            home,
        })
    }

    pub(super) fn path(&self, below: &str) -> PathBuf {
        self.home.path().join(below)
    }

    fn server(&self) -> String {
        self.path("project.git").display().to_string()
    }

    pub(super) fn make_repository(&self) -> Result<(), DemoError> {
        let server = self.server();
        let make = [
            "init",
            "--quiet",
            "--bare",
            "--initial-branch=main",
            &server,
        ];
        self.programs.run("git", &make)?;
        let copy = self.path("project").display().to_string();
        let clone = [
            "-c",
            "advice.detachedHead=false",
            "clone",
            "--quiet",
            &server,
            &copy,
        ];
        self.programs.run("git", &clone).map(drop)
    }

    pub(super) fn write(&self, name: &str, text: &str) -> Result<(), DemoError> {
        let path = self.path("project").join(name);
        let fail = DemoError::file(&path);
        std::fs::create_dir_all(path.parent().unwrap_or(&path)).map_err(fail)?;
        std::fs::write(&path, text).map_err(fail)
    }

    pub(super) fn push(&self, message: &str) -> Result<(), DemoError> {
        self.terminal.command(&format!(
            "git commit --all --message '{message}' && git push"
        ))?;
        let copy = self.path("project").display().to_string();
        for arguments in [
            &["add", "--all"][..],
            &["commit", "--quiet", "--message", message],
            &["push", "--quiet", "origin", "HEAD:main"],
        ] {
            let all = [&["-C", &copy], arguments].concat();
            self.programs.run("git", &all)?;
        }
        Ok(())
    }

    pub(super) fn start_daemon(&mut self) -> Result<(), DemoError> {
        let source = format!("project={}", self.server());
        let state = self.path("state").display().to_string();
        self.terminal
            .command("everscand run --state-dir state --source project=project.git &")?;
        let arguments = [
            "run",
            "--state-dir",
            &state,
            "--listen",
            "127.0.0.1:0",
            "--source",
            &source,
        ];
        let (daemon, url) = self.programs.start_and_listen("everscand", &arguments)?;
        self.daemon = Some(daemon);
        let url = url.ok_or(DemoError::Silent {
            program: "everscand",
            expected: "where it listens",
        })?;
        let token = self.path("state/initial-admin-token");
        let secret = std::fs::read_to_string(&token).map_err(DemoError::file(&token))?;
        self.programs.set("SERVICE_URL", &url);
        self.programs.set("SERVICE_TOKEN", secret.trim());
        self.terminal.output(&format!(
            "{url}\n# The pages for browsers are at this address; sign in with the token in state/initial-admin-token.\nexport SERVICE_URL={url}\nexport SERVICE_TOKEN=$(cat state/initial-admin-token)"
        ))?;
        // The daemon must have read the repository before the story continues.
        self.sync()
    }

    pub(super) fn start_runner(&mut self) -> Result<(), DemoError> {
        let register = ["runner", "register-token"];
        let file = self.path("registration-token");
        let token = self.programs.run("everscan", &register)?.stdout;
        std::fs::write(&file, token).map_err(DemoError::file(&file))?;
        self.terminal
            .command("everscan runner register-token > registration-token")?;
        let workdir = self.path("work").display().to_string();
        let file = file.display().to_string();
        let configure = [
            "configure",
            "--name",
            "demo",
            "--registration-token-file",
            &file,
            "--workdir",
            &workdir,
        ];
        self.programs.run("everscan-runner", &configure)?;
        self.terminal.command(
            "everscan-runner configure --name demo --registration-token-file registration-token",
        )?;
        self.terminal
            .command("WATCHED_REPOSITORY=$PWD/project.git everscan-runner run --name demo &")?;
        let server = self.server();
        let variables = [("WATCHED_REPOSITORY", server.as_str())];
        let run = ["run", "--name", "demo"];
        self.runner = Some(self.programs.start("everscan-runner", &run, &variables)?);
        Ok(())
    }

    pub(super) fn everscan(&self, arguments: &[&str]) -> Result<String, DemoError> {
        self.terminal
            .command(&command_line("everscan", arguments))?;
        self.show(self.programs.run("everscan", arguments)?)
    }

    pub(super) fn everscan_fails(&self, arguments: &[&str]) -> Result<String, DemoError> {
        self.terminal
            .command(&command_line("everscan", arguments))?;
        self.show(self.programs.run_to_fail("everscan", arguments)?)
    }

    fn show(&self, printed: Printed) -> Result<String, DemoError> {
        self.terminal.output(&printed.stdout)?;
        self.terminal.output(&printed.stderr)?;
        Ok(printed.stdout)
    }

    pub(super) fn sync(&self) -> Result<(), DemoError> {
        let sync = ["source", "sync", "project", "--wait"];
        self.programs.run("everscan", &sync).map(drop)
    }

    /// Dispatches a scan, shows its log and returns the job, which must succeed.
    pub(super) fn dispatch(&self, scan: &str, inputs: &[&str]) -> Result<String, DemoError> {
        let inputs = inputs.iter().flat_map(|input| ["--input", *input]);
        let arguments: Vec<&str> = ["scan", "dispatch", WORKFLOW, scan]
            .into_iter()
            .chain(inputs)
            .collect();
        let job = self.everscan(&arguments)?;
        self.everscan(&["job", "logs", "--follow", "-j", &job])?;
        self.await_success(&job)?;
        Ok(job)
    }

    /// The newest job of a scan that was not dispatched. It must succeed.
    pub(super) fn started_by_itself(&self, scan: &str) -> Result<String, DemoError> {
        let list = ["--output", "json", "job", "list", "--workflow", WORKFLOW];
        let of_scan = ["--scan", scan, "--limit", "1"];
        let listed = self
            .programs
            .run("everscan", &[&list[..], &of_scan].concat())?;
        let jobs: Jobs = serde_yaml::from_str(&listed.stdout)
            .map_err(|error| DemoError::Unexpected(format!("the list of jobs: {error}")))?;
        let Some(job) = jobs.items.into_iter().next() else {
            return Err(DemoError::Unexpected(format!(
                "{scan} did not start by itself"
            )));
        };
        self.await_success(&job.id)?;
        Ok(job.id)
    }

    pub(super) fn jobs_of(&self, scan: &str) -> Result<(), DemoError> {
        let list = ["scan", "jobs", WORKFLOW, scan];
        self.everscan(&list).map(drop)
    }

    fn await_success(&self, job: &str) -> Result<(), DemoError> {
        let wait = ["job", "wait", "-j", job, "--timeout", "2m"];
        self.programs.run("everscan", &wait).map(drop)
    }

    /// Every file of the state except Git's files, relative to the state folder.
    pub(super) fn state_files(&self) -> Result<Vec<String>, DemoError> {
        let root = self.path("state");
        let mut files = Vec::new();
        collect(&root, &root, &mut files)?;
        files.retain(|file| !file.contains("mirror.git/"));
        files.sort();
        Ok(files)
    }

    pub(super) fn keep(&mut self) -> Result<(), DemoError> {
        match &mut self.daemon {
            Some(daemon) => daemon.wait(),
            None => Ok(()),
        }
    }
}

/// Collects every file below `folder`, relative to `root`. The daemon may remove files meanwhile; those are left out.
fn collect(root: &Path, folder: &Path, files: &mut Vec<String>) -> Result<(), DemoError> {
    let fail = DemoError::file(folder);
    let entries = match std::fs::read_dir(folder) {
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(()),
        entries => entries.map_err(fail)?,
    };
    for entry in entries {
        let entry = entry.map_err(fail)?;
        let path = entry.path();
        let kind = match entry.file_type() {
            Err(error) if error.kind() == ErrorKind::NotFound => continue,
            kind => kind.map_err(fail)?,
        };
        if kind.is_dir() {
            collect(root, &path, files)?;
        } else {
            files.push(
                path.strip_prefix(root)
                    .unwrap_or(&path)
                    .display()
                    .to_string(),
            );
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_folder_that_the_daemon_removes_meanwhile_has_no_files() {
        let root = tempfile::tempdir().unwrap();
        std::fs::create_dir(root.path().join("jobs")).unwrap();
        std::fs::write(root.path().join("jobs/job.json"), "{}").unwrap();
        let mut files = Vec::new();
        collect(root.path(), root.path(), &mut files).unwrap();
        collect(root.path(), &root.path().join("gone"), &mut files).unwrap();
        assert_eq!(files, ["jobs/job.json"]);
    }
}
