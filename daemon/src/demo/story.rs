//! What the demonstration shows, in order.

#![expect(
    clippy::disallowed_methods,
    reason = "the demonstration lays out the repository it shows"
)]

use std::path::{Path, PathBuf};

use tempfile::TempDir;

use super::DemoError;
use super::processes::{Background, Programs};
use super::terminal::Terminal;

const WORKFLOW: &str = include_str!("../../../examples/hello/workflows/hello.yaml");

/// A temporary folder with a repository, a daemon and a runner in it.
pub(crate) struct Story {
    terminal: Terminal,
    programs: Programs,
    // Stopped in this order, before the folder goes.
    runner: Option<Background>,
    daemon: Option<Background>,
    home: TempDir,
}

impl Story {
    pub(crate) fn begin() -> Result<Self, DemoError> {
        let home = tempfile::Builder::new()
            .prefix("everscan-demo-")
            .tempdir()
            .map_err(|source| DemoError::File {
                path: std::env::temp_dir(),
                source,
            })?;
        let programs = Programs::install(home.path())?;
        Ok(Self {
            terminal: Terminal::new(),
            programs,
            runner: None,
            daemon: None,
            home,
        })
    }

    pub(crate) fn tell(mut self, keep: bool) -> Result<(), DemoError> {
        self.terminal
            .say("1. A workflow is a file in a Git repository.")?;
        self.make_repository()?;
        self.terminal.say(
            "2. The daemon follows the repository; its whole state is a folder of plain files.",
        )?;
        self.start_daemon()?;
        self.everscan(&["source", "list"])?;
        self.everscan(&["workflow", "list"])?;
        self.terminal.say("3. A runner registers with a token that is good for one registration, and waits for work.")?;
        self.start_runner()?;
        self.terminal.say("4. A dispatch makes a job. The runner claims it, and its log is followed as it is written.")?;
        let job = self.dispatch()?;
        self.everscan(&["job", "show", "-j", &job])?;
        self.terminal
            .say("5. What the job left behind is downloaded.")?;
        self.download(&job)?;
        self.terminal.say("6. All of it is files.")?;
        self.show_state(&job)?;
        if keep {
            self.keep()?;
        }
        self.terminal
            .say("Done. The next step: README.md, “The first ten minutes”.")
    }

    fn make_repository(&self) -> Result<(), DemoError> {
        let repository = self.repository();
        let workflows = repository.join("workflows");
        let file = workflows.join("hello.yaml");
        std::fs::create_dir_all(&workflows)
            .and_then(|()| std::fs::write(&file, WORKFLOW))
            .map_err(|source| DemoError::File { path: file, source })?;
        let directory = repository.display().to_string();
        self.git(&["init", "--quiet", "--initial-branch=main", &directory])?;
        self.git(&["-C", &directory, "add", "workflows"])?;
        self.git(&[
            "-C",
            &directory,
            "commit",
            "--quiet",
            "--message",
            "Say hello",
        ])?;
        self.terminal.command("cat workflows/hello.yaml")?;
        self.terminal.output(WORKFLOW)
    }

    fn start_daemon(&mut self) -> Result<(), DemoError> {
        let source = format!("demo={}", self.repository().display());
        let state = self.home.path().join("state").display().to_string();
        self.terminal
            .command("everscand run --state-dir state --source demo=./repository")?;
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
            wanted: "where it listens",
        })?;
        let token = self.home.path().join("state/initial-admin-token");
        let secret = std::fs::read_to_string(&token).map_err(|source| DemoError::File {
            path: token,
            source,
        })?;
        self.programs.set("SERVICE_URL", &url);
        self.programs.set("SERVICE_TOKEN", secret.trim());
        self.terminal.output(&format!(
            "{url}\nexport SERVICE_URL={url}\nexport SERVICE_TOKEN=$(cat state/initial-admin-token)"
        ))?;
        // The first look at the repository is awaited, not guessed at.
        self.programs
            .run("everscan", &["source", "sync", "demo", "--wait"])
            .map(drop)
    }

    fn start_runner(&mut self) -> Result<(), DemoError> {
        let token = self
            .programs
            .run("everscan", &["runner", "register-token"])?;
        let file = self.home.path().join("registration-token");
        std::fs::write(&file, token.trim()).map_err(|source| DemoError::File {
            path: file.clone(),
            source,
        })?;
        self.terminal
            .command("everscan runner register-token > registration-token")?;
        self.terminal.command(
            "everscan-runner configure --name demo --registration-token-file registration-token",
        )?;
        let workdir = self.home.path().join("work").display().to_string();
        let file = file.display().to_string();
        let arguments = [
            "configure",
            "--name",
            "demo",
            "--registration-token-file",
            &file,
            "--workdir",
            &workdir,
        ];
        self.programs.run("everscan-runner", &arguments)?;
        self.terminal.command("everscan-runner run --name demo")?;
        self.runner = Some(
            self.programs
                .start("everscan-runner", &["run", "--name", "demo"])?,
        );
        Ok(())
    }

    fn dispatch(&self) -> Result<String, DemoError> {
        let arguments = [
            "scan",
            "dispatch",
            "hello",
            "greet",
            "--input",
            "name=Ada",
            "--input",
            "shout=true",
        ];
        self.terminal
            .command(&format!("everscan {}", arguments.join(" ")))?;
        let job = self.programs.run("everscan", &arguments)?.trim().to_owned();
        self.terminal.output(&job)?;
        self.everscan(&["job", "logs", "--follow", "-j", &job])?;
        self.programs
            .run("everscan", &["job", "wait", "-j", &job])?;
        Ok(job)
    }

    fn download(&self, job: &str) -> Result<(), DemoError> {
        let file = self.home.path().join("greeting.zip");
        let path = file.display().to_string();
        self.terminal.command(&format!(
            "everscan job artifact download -j {job} -a greeting -o greeting.zip"
        ))?;
        self.programs.run(
            "everscan",
            &[
                "job", "artifact", "download", "-j", job, "-a", "greeting", "-o", &path,
            ],
        )?;
        let size = std::fs::metadata(&file)
            .map_err(|source| DemoError::File { path: file, source })?
            .len();
        if size == 0 {
            return Err(DemoError::Unexpected(
                "the downloaded artifact is empty".to_owned(),
            ));
        }
        self.terminal.output(&format!("greeting.zip, {size} bytes"))
    }

    fn show_state(&self, job: &str) -> Result<(), DemoError> {
        let root = self.home.path().join("state");
        let mut files = Vec::new();
        collect(&root, &root, &mut files)?;
        files.sort();
        let ours: Vec<String> = files
            .into_iter()
            .filter(|file| !file.contains("mirror.git/"))
            .collect();
        if !ours.iter().any(|file| file.contains(job)) {
            return Err(DemoError::Unexpected(format!(
                "the state has no file of job {job}"
            )));
        }
        self.terminal
            .command("find state -type f   (without Git's own files)")?;
        self.terminal.output(&ours.join("\n"))
    }

    fn keep(&mut self) -> Result<(), DemoError> {
        let folder = self.home.path().display();
        self.terminal.say(&format!(
            "Everything goes on running in {folder} until Ctrl-C."
        ))?;
        if let Some(daemon) = &mut self.daemon {
            daemon.wait();
        }
        Ok(())
    }

    /// Runs a command of the user's and shows it with its output.
    fn everscan(&self, arguments: &[&str]) -> Result<(), DemoError> {
        self.terminal
            .command(&format!("everscan {}", arguments.join(" ")))?;
        self.terminal
            .output(&self.programs.run("everscan", arguments)?)
    }

    fn git(&self, arguments: &[&str]) -> Result<(), DemoError> {
        self.programs.run("git", arguments).map(drop)
    }

    fn repository(&self) -> PathBuf {
        self.home.path().join("repository")
    }
}

/// Every file below `folder`, relative to `root`.
fn collect(root: &Path, folder: &Path, files: &mut Vec<String>) -> Result<(), DemoError> {
    let fail = |source| DemoError::File {
        path: folder.to_owned(),
        source,
    };
    for entry in std::fs::read_dir(folder).map_err(fail)? {
        let path = entry.map_err(fail)?.path();
        if path.is_dir() {
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
