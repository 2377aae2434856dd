//! A world of real processes in a temporary folder: repository, daemon, runner, command line. For stories and
//! benchmarks.

use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Output, Stdio};
use std::time::{Duration, Instant};

use tempfile::TempDir;

mod jobs;
pub(crate) mod port;

use port::Port;

/// The tested file, which contains all three programs.
const EVERSCAND: &str = env!("CARGO_BIN_EXE_everscand");

/// Longer than any wait on the busiest machine. A hanging test fails after this time.
pub(crate) const PATIENCE: Duration = Duration::from_secs(600);

/// Everything that a story needs. Dropping it removes all.
pub(crate) struct World {
    home: TempDir,
    daemon: Option<Child>,
    pub(crate) runner: Option<Child>,
    /// The port of its daemons.
    port: Port,
    /// Where its programs reach the daemon.
    pub(crate) url: String,
    /// The daemon's secret key file, below the world's folder.
    pub(crate) daemon_key: Option<String>,
    /// Additional variables in the daemon's environment.
    pub(crate) daemon_variables: Vec<(String, String)>,
    /// A program that starts the daemon, with its arguments, such as a tracer.
    pub(crate) daemon_through: Vec<String>,
    /// The text of the daemon's configuration file.
    pub(crate) daemon_config: Option<String>,
    /// A certificate that its programs trust.
    pub(crate) ca_file: Option<PathBuf>,
    /// The address on which the daemon listens.
    pub(crate) listen_at: &'static str,
}

impl World {
    /// An empty world with the three programs on its PATH.
    pub(crate) fn new() -> Self {
        Self::below(&std::env::temp_dir())
    }

    /// Like [`Self::new`], in this folder.
    pub(crate) fn below(folder: &Path) -> Self {
        let home = tempfile::Builder::new()
            .prefix("everscan-world-")
            .tempdir_in(folder)
            .unwrap();
        let bin = home.path().join("bin");
        std::fs::create_dir(&bin).unwrap();
        for name in ["everscand", "everscan", "everscan-runner"] {
            std::os::unix::fs::symlink(EVERSCAND, bin.join(name)).unwrap();
        }
        Self {
            home,
            daemon: None,
            runner: None,
            port: Port::hold(),
            url: String::new(),
            daemon_key: None,
            daemon_variables: Vec::new(),
            daemon_through: Vec::new(),
            daemon_config: None,
            ca_file: None,
            listen_at: "127.0.0.1",
        }
    }

    /// A world with a repository of one workflow file, a daemon and a runner.
    pub(crate) fn with_workflow(name: &str, text: &str) -> Self {
        let mut world = Self::new();
        world.init_repository();
        world.push(&[(name, Some(text))]);
        world.start_daemon();
        world.sync();
        world.start_runner(2);
        world
    }

    pub(crate) fn path(&self, below: &str) -> PathBuf {
        self.home.path().join(below)
    }

    pub(crate) fn url(&self) -> &str {
        &self.url
    }

    /// The address of the world's daemon, also after a restart.
    pub(crate) fn address(&self) -> String {
        format!("127.0.0.1:{}", self.port.number())
    }

    /// A program of this world, with its own PATH and HOME and without the caller's environment.
    pub(crate) fn command(&self, program: &str) -> Command {
        let own = self.path("bin").join(program);
        let mut command = Command::new(if own.exists() {
            own
        } else {
            PathBuf::from(program)
        });
        let inherited = std::env::var_os("PATH").unwrap_or_default();
        let paths = std::iter::once(self.path("bin")).chain(std::env::split_paths(&inherited));
        command
            .env_clear()
            .env("PATH", std::env::join_paths(paths).unwrap())
            .env("HOME", self.home.path())
            .env("GIT_CONFIG_NOSYSTEM", "1")
            .env("GIT_AUTHOR_NAME", "Story")
            .env("GIT_AUTHOR_EMAIL", "story@localhost")
            .env("GIT_COMMITTER_NAME", "Story")
            .env("GIT_COMMITTER_EMAIL", "story@localhost")
            .current_dir(self.home.path())
            .stdin(Stdio::null());
        if let Some(file) = &self.ca_file {
            command.env("SERVICE_CA_FILE", file);
        }
        if !self.url.is_empty() {
            command.env("SERVICE_URL", &self.url);
            if let Some(token) = self.token() {
                command.env("SERVICE_TOKEN", token);
            }
        }
        command
    }

    /// The first admin's token, once the daemon has made it.
    pub(crate) fn token(&self) -> Option<String> {
        let token = std::fs::read_to_string(self.path("state/initial-admin-token")).ok()?;
        Some(token.trim().to_owned())
    }

    pub(crate) fn output(&self, program: &str, arguments: &[&str]) -> Output {
        self.command(program).args(arguments).output().unwrap()
    }

    /// Runs `everscan` and expects success.
    pub(crate) fn everscan(&self, arguments: &[&str]) -> String {
        let output = self.output("everscan", arguments);
        assert!(
            output.status.success(),
            "everscan {arguments:?}: {}\n{}\n{}\ndaemon: {}",
            output.status,
            String::from_utf8_lossy(&output.stdout),
            String::from_utf8_lossy(&output.stderr),
            self.daemon_log(),
        );
        String::from_utf8(output.stdout).unwrap()
    }

    pub(crate) fn json(&self, arguments: &[&str]) -> serde_json::Value {
        let all: Vec<&str> = ["--output", "json"]
            .iter()
            .chain(arguments)
            .copied()
            .collect();
        serde_json::from_str(&self.everscan(&all)).unwrap()
    }

    pub(crate) fn git(&self, arguments: &[&str]) {
        let repository = self.path("repository").display().to_string();
        let all: Vec<&str> = ["-C", &repository]
            .iter()
            .chain(arguments)
            .copied()
            .collect();
        let output = self.output("git", &all);
        assert!(
            output.status.success(),
            "git {arguments:?}: {}",
            String::from_utf8_lossy(&output.stderr)
        );
    }

    pub(crate) fn init_repository(&self) {
        std::fs::create_dir_all(self.path("repository/workflows")).unwrap();
        self.git(&["init", "--quiet", "--initial-branch=main"]);
    }

    /// Writes or removes workflow files and commits.
    pub(crate) fn push(&self, files: &[(&str, Option<&str>)]) {
        for (name, text) in files {
            let path = self.path("repository/workflows").join(name);
            match text {
                Some(text) => std::fs::write(path, text).unwrap(),
                None => std::fs::remove_file(path).unwrap(),
            }
        }
        self.git(&["add", "--all"]);
        self.git(&[
            "commit",
            "--quiet",
            "--allow-empty",
            "--message",
            "Change workflows",
        ]);
    }

    fn daemon_arguments(&self) -> Vec<String> {
        let mut arguments = vec![
            "run".to_owned(),
            "--state-dir".to_owned(),
            self.path("state").display().to_string(),
            "--listen".to_owned(),
            format!("{}:{}", self.listen_at, self.port.number()),
            "--source".to_owned(),
            format!("main={}", self.path("repository").display()),
        ];
        if let Some(key) = &self.daemon_key {
            arguments.push("--secret-key-file".to_owned());
            arguments.push(self.path(key).display().to_string());
        }
        if let Some(text) = &self.daemon_config {
            let path = self.path("everscand.yaml");
            std::fs::write(&path, text).unwrap();
            arguments.push("--config".to_owned());
            arguments.push(path.display().to_string());
        }
        arguments
    }

    /// Starts the daemon.
    pub(crate) fn start_daemon(&mut self) {
        self.spawn_daemon();
        assert!(
            self.await_daemon(),
            "the daemon did not start: {}",
            self.daemon_log()
        );
    }

    /// Starts the daemon without waiting for it.
    pub(crate) fn spawn_daemon(&mut self) {
        let log = std::fs::File::options()
            .create(true)
            .append(true)
            .open(self.path("daemon.log"))
            .unwrap();
        let mut words = self.daemon_through.clone();
        words.push(self.path("bin/everscand").display().to_string());
        words.extend(self.daemon_arguments());
        let mut command = self.command(&words[0]);
        command
            .args(&words[1..])
            .envs(self.daemon_variables.iter().cloned())
            .stdout(Stdio::piped())
            .stderr(log);
        self.daemon = Some(command.spawn().unwrap());
    }

    /// Waits until the daemon serves; false if it has ended instead.
    pub(crate) fn await_daemon(&mut self) -> bool {
        let output = self.daemon.as_mut().unwrap().stdout.take();
        let mut url = String::new();
        BufReader::new(output.unwrap()).read_line(&mut url).unwrap();
        let serves = url.starts_with("http://") || url.starts_with("https://");
        if serves {
            self.url = url.trim().to_owned();
        }
        serves
    }

    pub(crate) fn is_daemon_alive(&mut self) -> bool {
        let daemon = self.daemon.as_mut().unwrap();
        daemon.try_wait().unwrap().is_none()
    }

    /// Waits for the end of a daemon that ends by itself.
    pub(crate) fn daemon_ended(&mut self) -> ExitStatus {
        let until = Instant::now() + PATIENCE;
        while self.is_daemon_alive() {
            assert!(
                Instant::now() < until,
                "the daemon did not end: {}",
                self.daemon_log()
            );
            std::thread::sleep(Duration::from_millis(5));
        }
        self.daemon.take().unwrap().wait().unwrap()
    }

    /// `kill -9`: the daemon cannot clean up.
    pub(crate) fn kill_daemon(&mut self) {
        let mut child = self.daemon.take().unwrap();
        child.kill().unwrap();
        child.wait().unwrap();
    }

    /// Asks the daemon to stop and expects a clean end.
    pub(crate) fn stop_daemon(&mut self) {
        let mut child = self.daemon.take().unwrap();
        terminate(&child);
        let status = child.wait().unwrap();
        assert!(
            status.success(),
            "the daemon ended with {status}: {}",
            self.daemon_log()
        );
    }

    pub(crate) fn daemon_pid(&self) -> u32 {
        self.daemon.as_ref().unwrap().id()
    }

    pub(crate) fn daemon_log(&self) -> String {
        std::fs::read_to_string(self.path("daemon.log")).unwrap_or_default()
    }

    pub(crate) fn sync(&self) {
        self.everscan(&["source", "sync", "main", "--wait"]);
    }

    pub(crate) fn register_runner(&self, name: &str, capacity: u32) {
        let output = self.try_to_register_runner(name, capacity);
        assert!(
            output.status.success(),
            "{}",
            String::from_utf8_lossy(&output.stderr)
        );
    }

    /// Like [`Self::register_runner`], for a daemon that may already have ended.
    pub(crate) fn try_to_register_runner(&self, name: &str, capacity: u32) -> Output {
        let token = self
            .output("everscan", &["runner", "register-token"])
            .stdout;
        self.command("everscan-runner")
            .args([
                "configure",
                "--name",
                name,
                "--capacity",
                &capacity.to_string(),
            ])
            .args(["--workdir", &self.path("work").display().to_string()])
            .env(
                "SERVICE_REGISTRATION_TOKEN",
                String::from_utf8_lossy(&token).trim(),
            )
            .output()
            .unwrap()
    }

    pub(crate) fn start_runner(&mut self, capacity: u32) {
        self.register_runner("story", capacity);
        self.run_runner();
    }

    /// Starts a runner with additional variables in its environment.
    pub(crate) fn start_runner_with(&mut self, capacity: u32, variables: &[(&str, &str)]) {
        self.register_runner("story", capacity);
        self.run_runner_with(variables);
    }

    pub(crate) fn run_runner(&mut self) {
        self.run_runner_with(&[]);
    }

    pub(crate) fn run_runner_with(&mut self, variables: &[(&str, &str)]) {
        let log = std::fs::File::options()
            .create(true)
            .append(true)
            .open(self.path("runner.log"))
            .unwrap();
        let mut command = self.command("everscan-runner");
        command
            .args(["run", "--name", "story"])
            .env_remove("SERVICE_TOKEN")
            .envs(variables.iter().copied())
            .stdout(Stdio::null())
            .stderr(log);
        self.runner = Some(command.spawn().unwrap());
    }

    pub(crate) fn runner_log(&self) -> String {
        std::fs::read_to_string(self.path("runner.log")).unwrap_or_default()
    }

    pub(crate) fn kill_runner(&mut self) {
        let mut child = self.runner.take().unwrap();
        child.kill().unwrap();
        child.wait().unwrap();
    }

    /// Asks the runner to stop and waits until it has.
    pub(crate) fn stop_runner(&mut self) {
        let mut child = self.runner.take().unwrap();
        terminate(&child);
        assert!(child.wait().unwrap().success(), "{}", self.runner_log());
    }
}

impl Drop for World {
    fn drop(&mut self) {
        for child in [&mut self.runner, &mut self.daemon].into_iter().flatten() {
            drop(child.kill());
            drop(child.wait());
        }
    }
}

/// Calls `holds` again and again until it returns true.
pub(crate) fn eventually(what: &str, mut holds: impl FnMut() -> bool) {
    let until = Instant::now() + PATIENCE;
    while !holds() {
        assert!(Instant::now() < until, "{what} did not happen");
        std::thread::sleep(Duration::from_millis(5));
    }
}

/// The lines of a file that steps append to.
pub(crate) fn lines(path: &Path) -> Vec<String> {
    std::fs::read_to_string(path)
        .unwrap_or_default()
        .lines()
        .map(str::to_owned)
        .collect()
}

fn terminate(child: &Child) {
    signal(child.id(), "TERM");
}

/// Sends a signal to a process.
pub(crate) fn signal(pid: u32, name: &str) {
    let status = Command::new("kill")
        .args([format!("-{name}"), pid.to_string()])
        .status()
        .unwrap();
    assert!(status.success());
}

/// Processes that have the folder in their command line.
pub(crate) fn processes_of(folder: &Path) -> Vec<String> {
    let folder = folder.display().to_string();
    let lines = std::fs::read_dir("/proc").unwrap().flatten();
    lines
        .filter_map(|entry| std::fs::read_to_string(entry.path().join("cmdline")).ok())
        .filter(|line| line.contains(&folder))
        .collect()
}
