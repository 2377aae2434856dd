//! Features of the machine that some stories need. Without them the stories are skipped with a message.

use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

/// This variable is set in the process that runs in the namespaces.
const INSIDE: &str = "EVERSCAN_STORY_INSIDE";

/// Runs `story`, which is the test `name`, in its own mount and process namespaces: when it ends
/// for any reason, its mounts and processes end as well, and they are invisible to other processes.
pub(crate) fn apart(name: &str, story: impl FnOnce()) {
    if std::env::var_os(INSIDE).is_some() {
        return story();
    }
    if let Err(reason) = run(&mut unshare("true")) {
        return skip(name, &reason);
    }
    let mut again = unshare(&std::env::current_exe().unwrap().display().to_string());
    again
        .args(["--exact", name, "--nocapture"])
        .env(INSIDE, "1")
        .stderr(Stdio::inherit());
    let output = again.output().unwrap();
    let said = String::from_utf8_lossy(&output.stdout);
    assert!(
        output.status.success() && said.contains("1 passed"),
        "{name}: {}, its output is above; {said}",
        output.status
    );
}

fn unshare(program: &str) -> Command {
    let mut command = Command::new("unshare");
    command
        .args(["--mount", "--propagation", "private"])
        .args(["--pid", "--fork", "--kill-child", "--mount-proc"])
        .args(["--", program]);
    command
}

/// A file system in memory; unmounted when dropped.
pub(crate) struct Memory(PathBuf);

impl Memory {
    /// Mounts it. An error has the reason why this machine cannot.
    pub(crate) fn mount(at: &Path, options: &str) -> Result<Self, String> {
        let mut mount = Command::new("mount");
        mount.args(["-t", "tmpfs", "-o", options, "everscan-story"]);
        run(mount.arg(at))?;
        Ok(Self(at.to_owned()))
    }
}

impl Drop for Memory {
    fn drop(&mut self) {
        drop(run(Command::new("umount").arg("--lazy").arg(&self.0)));
    }
}

/// Runs a program and returns an error if it fails.
pub(crate) fn run(command: &mut Command) -> Result<(), String> {
    let program = command.get_program().to_string_lossy().into_owned();
    match command.output() {
        Ok(output) if output.status.success() => Ok(()),
        Ok(output) => Err(format!(
            "{program}: {}",
            String::from_utf8_lossy(&output.stderr).trim()
        )),
        Err(error) => Err(format!("{program}: {error}")),
    }
}

/// Prints that a story was skipped, and why.
pub(crate) fn skip(name: &str, reason: &str) {
    say(&format!("SKIP {name}: {reason}"));
}

/// Prints a line that is visible even if the test succeeds, unlike the output of the macros.
pub(crate) fn say(line: &str) {
    let written = writeln!(std::io::stderr(), "{line}");
    written.unwrap();
}
