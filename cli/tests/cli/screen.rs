//! What a terminal shows, with a real pseudo-terminal from `script`, and what goes into a pipe.

use std::process::{Command, Stdio};

use wire::{Job, JobState};

use crate::everscan::{command, finished};
use crate::fixtures::{id, job, log};
use crate::server::{Reply, Server};

/// A clear screen, an introducer of one character, a direction, and a title.
const TEXT: &str = "a\u{1b}[2J b\u{9b}31m c\u{202e} d\u{2066} e\u{1b}]0;title\u{7} \u{1b}[31mred";

/// Runs a command line with its output on a terminal, and returns what the terminal gets.
fn on_terminal(server: &Server, line: &str) -> String {
    let program = env!("CARGO_BIN_EXE_everscan");
    let output = Command::new("script")
        .args(["-qec", &format!("{program} {line}"), "/dev/null"])
        .env_clear()
        .env("PATH", "/usr/bin:/bin")
        .env("SERVICE_URL", &server.url)
        .stdin(Stdio::null())
        .output()
        .unwrap();
    let output = finished(output);
    assert_eq!(output.code, 0, "{line}: {}", output.stdout);
    output.stdout
}

fn daemon() -> Server {
    Server::answering(|line| {
        if line.contains("/logs") {
            Reply::bytes(log(0, &[TEXT]))
        } else if line.contains("/blobs/") {
            Reply::content(format!("{TEXT}\n"))
        } else {
            Reply::json(&Job {
                scan: TEXT.to_owned(),
                ..job(JobState::Succeeded)
            })
        }
    })
}

#[test]
fn a_terminal_gets_colours_and_no_other_control() {
    let server = daemon();
    let logs = format!("job logs {}", id(1));
    for line in [
        "blob cat a".to_owned(),
        "blob download --src a --dst -".to_owned(),
        logs.clone(),
        format!("{logs} --output json"),
        format!("{logs} --output yaml"),
        format!("job show {} --output json", id(1)),
        format!("job show {} --output yaml", id(1)),
        format!("job show {}", id(1)),
    ] {
        let shown = on_terminal(&server, &line);
        assert!(shown.contains("title"), "{line}: {shown:?}");
        let plain = shown.replace("\u{1b}[31m", "").replace("\u{1b}[0m", "");
        for character in plain.chars() {
            let is_safe = matches!(character, '\r' | '\n' | '\t') || !is_control(character);
            assert!(is_safe, "{line}: {character:?} in {shown:?}");
        }
        // A colour ends with its line.
        if shown.contains("\u{1b}[31m") {
            assert!(shown.contains("red\u{1b}[0m"), "{line}: {shown:?}");
        }
    }
}

fn is_control(character: char) -> bool {
    character.is_control() || matches!(character, '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}')
}

#[test]
fn a_pipe_gets_everything_unchanged() {
    let server = daemon();
    let run = |line: &str| {
        let mut command = command(line);
        command.env("SERVICE_URL", &server.url);
        finished(command.output().unwrap()).stdout
    };
    assert_eq!(run("blob cat a"), format!("{TEXT}\n"));
    let logs = format!("job logs {}", id(1));
    assert_eq!(run(&logs), format!("{TEXT}\n"));
    assert_eq!(run(&format!("{logs} --output json")), log(0, &[TEXT]));
    let shown: Job =
        serde_json::from_str(&run(&format!("job show {} --output json", id(1)))).unwrap();
    assert_eq!(shown.scan, TEXT);
}
