//! Starts chromedriver, which starts Chromium. Dropping the value ends both and removes their files.

use std::io::{BufRead as _, BufReader, Write as _};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdout, Command, Stdio};

use rustix::process::{Pid, Signal, kill_process};
use serde_json::{Value, json};
use tempfile::TempDir;

use crate::support::eventually;

/// Root cannot use Chromium's sandbox. Chromium's background activities are off, and `/dev/shm` is small in containers.
const ARGUMENTS: &[&str] = &[
    "--headless=new",
    "--no-sandbox",
    "--disable-gpu",
    "--disable-dev-shm-usage",
    "--disable-quic",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--no-first-run",
];

pub(crate) struct Chromium {
    driver: Child,
    address: String,
    /// Keeps the pipe open, in case chromedriver prints more.
    _output: BufReader<ChildStdout>,
    /// Profile, home and temporary files.
    folder: TempDir,
    program: PathBuf,
}

impl Chromium {
    /// Starts chromedriver on a free port. If a program is missing, prints a message and returns `None`.
    pub(crate) fn start() -> Option<Self> {
        let (Some(program), Some(driver)) = (find("chromium"), find("chromedriver")) else {
            skip("there is no chromium or no chromedriver (Debian: chromium, chromium-driver)");
            return None;
        };
        let folder = tempfile::Builder::new()
            .prefix("everscan-chromium-")
            .tempdir()
            .unwrap();
        let mut driver = Command::new(driver)
            .arg("--port=0")
            .envs(
                ["HOME", "TMPDIR", "XDG_CONFIG_HOME", "XDG_CACHE_HOME"]
                    .map(|name| (name, folder.path())),
            )
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        let mut output = BufReader::new(driver.stdout.take().unwrap());
        let port = port_of(&mut output);
        Some(Self {
            driver,
            address: format!("http://127.0.0.1:{port}"),
            _output: output,
            folder,
            program,
        })
    }

    /// The address of chromedriver.
    pub(crate) fn address(&self) -> &str {
        &self.address
    }

    /// The capabilities of a session: this Chromium with its own profile.
    pub(crate) fn capabilities(&self) -> Value {
        let profile = self.folder.path().join("profile");
        let mut arguments: Vec<String> = ARGUMENTS.iter().map(|&text| text.to_owned()).collect();
        arguments.push(format!("--user-data-dir={}", profile.display()));
        json!({
            "browserName": "chrome",
            "acceptInsecureCerts": true,
            "goog:chromeOptions": { "binary": self.program, "args": arguments },
            "goog:loggingPrefs": { "browser": "ALL" },
        })
    }
}

impl Drop for Chromium {
    fn drop(&mut self) {
        drop(self.driver.kill());
        drop(self.driver.wait());
        // Chromium has its own process group, and its children name the profile too. A process may end meanwhile.
        let folder = self.folder.path();
        eventually("the end of Chromium", || {
            let left = pids_of(folder);
            for pid in &left {
                let _ = kill_process(*pid, Signal::KILL);
            }
            left.is_empty()
        });
    }
}

/// The processes that have the folder in their command line.
fn pids_of(folder: &Path) -> Vec<Pid> {
    let folder = folder.display().to_string();
    let processes = std::fs::read_dir("/proc").unwrap().flatten();
    let ours = processes.filter_map(|process| {
        let pid = process.file_name().to_str()?.parse().ok()?;
        let line = std::fs::read_to_string(process.path().join("cmdline")).ok()?;
        line.contains(&folder).then(|| Pid::from_raw(pid))?
    });
    ours.collect()
}

/// The port that chromedriver has chosen.
fn port_of(output: &mut impl std::io::BufRead) -> u16 {
    let mut said = String::new();
    for line in output.lines() {
        let line = line.unwrap();
        if let Some((_, port)) = line.split_once("started successfully on port ") {
            return port.trim_end_matches('.').parse().unwrap();
        }
        said.push_str(&line);
    }
    panic!("chromedriver has ended: {said}");
}

pub(crate) fn find(program: &str) -> Option<PathBuf> {
    let paths = std::env::var_os("PATH")?;
    let found = std::env::split_paths(&paths).map(|path| path.join(program));
    found.into_iter().find(|path| path.is_file())
}

/// Prints why a story is skipped. In CI, where root can install the programs, this is a failure.
pub(crate) fn skip(reason: &str) {
    let is_root = rustix::process::getuid().is_root();
    let is_ci = std::env::var_os("CI").is_some_and(|value| value == "true");
    assert!(!(is_ci && is_root), "{reason}");
    // Unlike the output of the macros, this is visible even if the test succeeds.
    let written = writeln!(std::io::stderr(), "SKIP: {reason}");
    written.unwrap();
}
