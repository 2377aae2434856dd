//! Programs as targets.

use std::path::Path;

use delivery::Program;
use rustix::event::{PollFd, PollFlags, poll};
use rustix::io::Errno;
use rustix::process::{Pid, PidfdFlags, pidfd_open};

use super::*;

async fn shell(script: &str, timeout: Duration) -> Outcome {
    let args = vec!["-c".to_owned(), script.to_owned()];
    run("/bin/sh", args, timeout).await
}

/// Sends to the command `page`, which is this program.
async fn run(program: &str, args: Vec<String>, timeout: Duration) -> Outcome {
    let program = Program {
        program: program.into(),
        args,
        timeout,
    };
    let settings = Settings {
        commands: [("page".to_owned(), program)].into(),
        ..Settings::default()
    };
    send_with(&settings, &command("page"), None::<&str>, &message()).await
}

fn command(name: &str) -> Target {
    let command = name.to_owned();
    Target::Command { command }
}

#[tokio::test]
async fn a_program_gets_the_event_and_a_clean_environment() {
    let folder = tempfile::tempdir().unwrap();
    let (input, environment) = (folder.path().join("input"), folder.path().join("env"));
    let script = format!(
        "cat > {}; env > {}; pwd",
        input.display(),
        environment.display()
    );
    let outcome = shell(&script, PATIENCE).await;
    assert_eq!(outcome, delivered("exit status: 0"));
    let read = |path: &Path| std::fs::read_to_string(path).unwrap();
    let event: serde_json::Value = serde_json::from_str(&read(&input)).unwrap();
    assert_eq!(event["data"]["event"], json!({ "what": "opened" }));
    let environment = read(&environment);
    let mut names: Vec<&str> = environment
        .lines()
        .filter_map(|line| line.split_once('=').map(|(name, _)| name))
        // The shell adds these.
        .filter(|name| !["PWD", "OLDPWD", "SHLVL", "_"].contains(name))
        .collect();
    names.sort_unstable();
    assert_eq!(names, ["LANG", "PATH"]);
}

#[tokio::test]
async fn a_program_that_never_ends_is_killed_with_its_children() {
    let folder = tempfile::tempdir().unwrap();
    let pids = folder.path().join("pids");
    let script = format!(
        "sleep 1000 & echo $! $$ > {}; cat > /dev/null; wait",
        pids.display()
    );
    let outcome = shell(&script, Duration::from_secs(2)).await;
    assert_eq!(
        to_repeat(outcome),
        "/bin/sh did not end within 2 s and was killed"
    );
    for pid in std::fs::read_to_string(&pids).unwrap().split_whitespace() {
        let pid = Pid::from_raw(pid.parse().unwrap()).unwrap();
        // The signal was sent; this waits until the process is gone.
        if let Ok(process) = pidfd_open(pid, PidfdFlags::empty()) {
            let patience = PATIENCE.try_into().unwrap();
            let mut waited = [PollFd::new(&process, PollFlags::IN)];
            let ended = loop {
                match poll(&mut waited, Some(&patience)) {
                    Err(Errno::INTR) => {}
                    ended => break ended,
                }
            };
            assert_eq!(ended, Ok(1), "{pid:?} runs");
        }
    }
}

#[tokio::test]
async fn the_exit_status_counts_although_a_child_keeps_the_streams_open() {
    for (status, expected) in [
        (0, delivered("exit status: 0")),
        (
            3,
            Outcome::Retry {
                reason: "/bin/sh failed (exit status: 3): late".to_owned(),
                after: None,
            },
        ),
    ] {
        let folder = tempfile::tempdir().unwrap();
        // The child has left the process group when the program ends, and ends when the gate opens.
        let script = format!(
            "cd {}; mkfifo ready gate; setsid sh -c 'echo > ready; read _ < gate' & read _ < ready; echo late >&2; exit {status}",
            folder.path().display()
        );
        assert_eq!(shell(&script, PATIENCE).await, expected);
        std::fs::write(folder.path().join("gate"), "go\n").unwrap();
    }
}

#[tokio::test]
async fn a_program_that_prints_for_ever_ends_at_the_bound() {
    let outcome = shell("exec yes >&2", PATIENCE).await;
    let reason = to_repeat(outcome);
    assert!(
        reason.starts_with("/bin/sh failed (signal: 13 (SIGPIPE)): y y y"),
        "{reason}"
    );
    assert!(reason.len() < 400, "{reason}");
    // Its standard output is not read at all.
    let outcome = shell("yes | head -c 10000000", PATIENCE).await;
    assert_eq!(outcome, delivered("exit status: 0"));
}

#[tokio::test]
async fn a_program_that_fails_is_tried_again_and_a_missing_one_is_not() {
    let failing = shell("printf 'no\\n\\033[31mroute' >&2; exit 3", PATIENCE);
    let reason = to_repeat(failing.await);
    assert_eq!(reason, "/bin/sh failed (exit status: 3): no  [31mroute");
    let reason = refused(run("/nonexistent", Vec::new(), PATIENCE).await);
    assert!(
        reason.starts_with("cannot start /nonexistent: "),
        "{reason}"
    );
    let reason = refused(send(&command("unknown"), None::<&str>, &message()).await);
    assert_eq!(
        reason,
        "the daemon's configuration has no `unknown` in `notify_commands`"
    );
}
