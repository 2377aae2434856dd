//! Starting jobs, waiting for them, and the exit codes of their ends.

use std::io::{BufRead, BufReader, Write};
use std::process::{Command, Stdio};
use std::time::Duration;

use wire::{ChangedJob, DispatchResponse, JobState, Stream};

use crate::everscan::{command, run, run_at};
use crate::fixtures::{at, id, job, log};
use crate::server::{Reply, Server};

fn dispatched() -> Reply {
    let job = ChangedJob::Whole(Box::new(job(JobState::Scheduled)));
    Reply::json(&DispatchResponse { job }).status(202)
}

fn now(state: JobState) -> Reply {
    Reply::json(&job(state))
}

#[test]
fn a_dispatch_prints_only_the_id() {
    let server = Server::start([dispatched()]);
    let output = run_at(
        &server.url,
        "scan dispatch main/nightly/recon subdomains --input domain=example.org -i deep=true",
    );
    assert_eq!(output.code, 0, "{}", output.stderr);
    assert_eq!(
        (output.stdout, output.stderr),
        (format!("{}\n", id(1)), String::new())
    );
    assert_eq!(
        server.lines(),
        ["POST /v0/workflows/main%2Fnightly%2Frecon/scans/subdomains/dispatch"]
    );
    assert_eq!(
        server.seen()[0].body,
        r#"{"inputs":{"deep":"true","domain":"example.org"}}"#
    );
}

#[test]
fn an_input_may_come_from_a_file() {
    let mut file = tempfile::NamedTempFile::new().unwrap();
    file.write_all(b"a\nb\n").unwrap();
    let server = Server::start([dispatched()]);
    let path = file.path().display();
    let output = run_at(
        &server.url,
        &format!("scan dispatch w s --input-file list={path}"),
    );
    assert_eq!(output.code, 0, "{}", output.stderr);
    assert_eq!(server.seen()[0].body, r#"{"inputs":{"list":"a\nb\n"}}"#);
}

#[test]
fn waiting_ends_as_the_job_ended() {
    for (state, code) in [
        (JobState::Succeeded, 0),
        (JobState::Failed, 1),
        (JobState::Cancelled, 4),
        (JobState::Skipped, 5),
    ] {
        let server = Server::start([now(JobState::Running), now(state)]);
        let output = run_at(&server.url, &format!("job wait {}", id(1)));
        assert_eq!(
            (output.code, output.stdout),
            (code, format!("{}\n", state.as_str()))
        );
        let route = format!("GET /v0/jobs/{}", id(1));
        assert_eq!(
            server.lines(),
            [route.clone(), format!("{route}?wait=true")]
        );
    }
}

#[test]
fn waiting_for_an_ended_job_returns_at_once() {
    let server = Server::start([now(JobState::Skipped)]);
    let output = run_at(&server.url, &format!("job wait -j {}", id(1)));
    assert_eq!(output.code, 5);
}

#[test]
fn waiting_repeats_the_request_when_the_daemon_answers_early() {
    let mut ends = [JobState::Running, JobState::Succeeded].into_iter();
    let server = Server::answering(move |line| {
        now(if line.ends_with("?wait=true") {
            ends.next().unwrap()
        } else {
            JobState::Scheduled
        })
    });
    let output = run_at(&server.url, &format!("job wait {}", id(1)));
    assert_eq!(output.code, 0, "{}", output.stderr);
    let mut waits = server.lines();
    waits.retain(|line| line.ends_with("?wait=true"));
    assert_eq!(waits.len(), 2);
}

#[test]
fn waiting_ends_after_the_timeout() {
    let held = now(JobState::Running).held(Duration::from_secs(3));
    let server = Server::start([now(JobState::Running), held]);
    let output = run_at(&server.url, &format!("job wait {} --timeout 1s", id(1)));
    assert_eq!((output.code, output.stdout.as_str()), (6, ""));
    assert_eq!(
        output.stderr,
        format!(
            "error: job {0} is not over after 1s\nhint: the job goes on; `everscan job wait {0}` waits again\n",
            id(1)
        )
    );
}

#[test]
fn a_dispatch_can_be_waited_for() {
    let server = Server::start([dispatched(), now(JobState::Failed)]);
    let output = run_at(&server.url, "scan dispatch w s --wait");
    assert_eq!((output.code, output.stdout), (1, format!("{}\n", id(1))));
    assert_eq!(output.stderr, format!("job {} failed: asked for\n", id(1)));
}

#[test]
fn json_output_is_the_ended_job() {
    let server = Server::start([dispatched(), now(JobState::Failed)]);
    let output = run_at(&server.url, "scan dispatch w s --wait --output json");
    let job: wire::Job = serde_json::from_str(&output.stdout).unwrap();
    assert_eq!((output.code, job.state), (1, JobState::Failed));
    assert_eq!(
        output.stderr,
        format!("{0}\njob {0} failed: asked for\n", id(1))
    );
    let server = Server::start([dispatched()]);
    let output = run_at(&server.url, "scan dispatch w s --output json");
    let job: wire::Job = serde_json::from_str(&output.stdout).unwrap();
    assert_eq!((output.code, job.state), (0, JobState::Scheduled));
}

#[test]
fn a_flag_in_the_environment_accepts_the_usual_words() {
    for (wait, replies, code) in [
        ("1", 2, 1),
        ("true", 2, 1),
        ("yes", 2, 1),
        ("0", 1, 0),
        ("", 1, 0),
    ] {
        let server = Server::start([dispatched(), now(JobState::Failed)]);
        let output = command("scan dispatch w s")
            .env("SERVICE_URL", &server.url)
            .env("SERVICE_WAIT", wait)
            .env("SERVICE_OUTPUT", "")
            .env("SERVICE_TIMEOUT", "1h")
            .output()
            .unwrap();
        assert_eq!(output.status.code(), Some(code), "{wait}: {output:?}");
        assert_eq!(server.seen().len(), replies, "{wait}");
    }
}

#[test]
fn the_argument_overrides_the_job_of_the_step() {
    let server = Server::start([now(JobState::Cancelled)]);
    let output = command(&format!("job cancel {}", id(1)))
        .env("SERVICE_URL", &server.url)
        .env("SERVICE_JOB_ID", id(2).to_string())
        .output()
        .unwrap();
    assert_eq!(output.status.code(), Some(0), "{output:?}");
    assert_eq!(server.lines(), [format!("POST /v0/jobs/{}/cancel", id(1))]);
}

#[test]
fn a_rerun_prints_the_id_of_the_new_job() {
    for (flag, body) in [
        ("", r#"{"current":false}"#),
        (" --current", r#"{"current":true}"#),
    ] {
        let server = Server::start([dispatched()]);
        let earlier = id(9);
        let output = run_at(&server.url, &format!("job rerun {earlier}{flag}"));
        assert_eq!((output.code, output.stdout), (0, format!("{}\n", id(1))));
        assert_eq!(server.lines(), [format!("POST /v0/jobs/{earlier}/rerun")]);
        assert_eq!(server.seen()[0].body, body);
    }
    let server = Server::start([dispatched(), now(JobState::Failed)]);
    let output = run_at(&server.url, &format!("job rerun {} --wait", id(9)));
    assert_eq!(output.code, 1, "the exit code is that of the new job");
}

#[test]
fn a_followed_dispatch_prints_the_log() {
    let server = Server::answering(|line| {
        if line.starts_with("POST ") {
            dispatched()
        } else if line.contains("/logs?") {
            Reply::bytes(log(0, &["one", "two"]))
        } else {
            now(JobState::Succeeded)
        }
    });
    let output = run_at(&server.url, "scan dispatch w s --follow");
    assert_eq!((output.code, output.stdout.as_str()), (0, "one\ntwo\n"));
    assert_eq!(
        output.stderr,
        format!("{0}\njob {0} succeeded: asked for\n", id(1))
    );
}

#[test]
fn following_continues_after_a_restart_of_the_daemon() {
    let mut streams = 0;
    let server = Server::answering(move |line| {
        let is_log = line.contains("/logs?");
        streams += u64::from(is_log);
        match (is_log, streams) {
            (true, 1) => Reply::bytes(log(0, &["one"])),
            (true, _) => Reply::bytes(log(1, &["two"])),
            (false, 1) => now(JobState::Running),
            (false, _) => now(JobState::Failed),
        }
    });
    let output = run_at(&server.url, &format!("job logs -f {}", id(1)));
    assert_eq!((output.code, output.stdout.as_str()), (1, "one\ntwo\n"));
    let mut lines = server.lines();
    lines.retain(|line| line.contains("/logs?"));
    let logs = format!("GET /v0/jobs/{}/logs", id(1));
    let from = |from: u8| format!("{logs}?from={from}&follow=true");
    assert_eq!(lines, [from(0), from(1)]);
}

#[test]
fn following_a_log_ends_as_the_job_ended_and_reading_it_does_not() {
    for (state, code) in [
        (JobState::Succeeded, 0),
        (JobState::Failed, 1),
        (JobState::Cancelled, 4),
        (JobState::Skipped, 5),
    ] {
        let server = Server::answering(move |line| {
            if line.contains("/logs?") {
                Reply::bytes(log(0, &["one"]))
            } else {
                now(state)
            }
        });
        let followed = run_at(&server.url, &format!("job logs -f {}", id(1)));
        assert_eq!((followed.code, followed.stdout.as_str()), (code, "one\n"));
        let end = format!("job {} {}: asked for\n", id(1), state.as_str());
        assert_eq!(followed.stderr, end);
        let read = run_at(&server.url, &format!("job logs {}", id(1)));
        assert_eq!((read.code, read.stdout.as_str()), (0, "one\n"));
    }
}

#[test]
fn logs_have_a_json_form() {
    let text = log(3, &["x"]);
    let job_id = id(1).to_string();
    for (form, expected) in [("json", text.clone()), ("yaml", format!("- {text}"))] {
        let server = Server::start([Reply::bytes(text.clone())]);
        let run = command(&format!("job logs --from 3 --output {form}"))
            .env("SERVICE_URL", &server.url)
            .env("SERVICE_JOB_ID", &job_id)
            .output()
            .unwrap();
        assert_eq!(String::from_utf8(run.stdout).unwrap(), expected);
    }
}

#[test]
fn a_closed_output_is_not_an_error() {
    let texts = vec!["a line of some length"; 20_000];
    let server = Server::start([Reply::bytes(log(0, &texts))]);
    let mut child = command(&format!("job logs {}", id(1)))
        .env("SERVICE_URL", &server.url)
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let mut first = String::new();
    let mut reader = BufReader::new(child.stdout.take().unwrap());
    reader.read_line(&mut first).unwrap();
    drop(reader);
    let output = child.wait_with_output().unwrap();
    assert_eq!(output.status.code(), Some(0));
    assert_eq!(String::from_utf8(output.stderr).unwrap(), "");
}

#[test]
fn an_interrupt_ends_the_wait_but_not_the_job() {
    let held = now(JobState::Running).held(Duration::from_secs(30));
    let server = Server::start([now(JobState::Running), held]);
    let mut child = command(&format!("job wait {}", id(1)))
        .env("SERVICE_URL", &server.url)
        .spawn()
        .unwrap();
    while server.seen().len() < 2 {
        std::thread::sleep(Duration::from_millis(5));
    }
    let kill = format!("kill -INT {}", child.id());
    Command::new("sh").args(["-c", &kill]).status().unwrap();
    assert_eq!(child.wait().unwrap().code(), Some(130));
    assert!(server.lines().iter().all(|line| line.starts_with("GET ")));
}

#[test]
fn a_cancelled_job_is_reported() {
    let server = Server::start([now(JobState::Cancelled)]);
    let output = run_at(&server.url, &format!("job cancel {}", id(1)));
    assert_eq!((output.code, output.stdout.as_str()), (0, "cancelled\n"));
    assert_eq!(server.lines(), [format!("POST /v0/jobs/{}/cancel", id(1))]);
}

#[test]
fn a_log_may_be_read_in_part() {
    let logs = format!("GET /v0/jobs/{}/logs", id(1));
    for (flags, asked) in [
        ("--tail 3", "tail=3"),
        ("--step 1", "from=0&step=0"),
        ("--step 2 --stream stderr", "from=0&step=1&stream=stderr"),
        (
            "--from 7 --since 2026-11-21T12:00:00+02:00",
            "from=7&since=2026-11-21T10%3A00%3A00Z",
        ),
    ] {
        let server = Server::start([Reply::bytes(log(9, &["one"]))]);
        let output = run_at(&server.url, &format!("job logs {} {flags}", id(1)));
        assert_eq!((output.code, output.stdout.as_str()), (0, "one\n"));
        assert_eq!(output.stderr, "");
        assert_eq!(server.lines(), [format!("{logs}?{asked}")]);
    }
    for (flags, expected) in [
        ("--tail 0", "0 is not in 1.."),
        ("--step 0", "0 is not in 1.."),
        ("--stream out", "[possible values: stdout, stderr, runner]"),
        ("--since soon", "or how long ago, as in 10m"),
        ("--tail 1 --from 2", "cannot be used with"),
        ("--grep=", "a value is required"),
    ] {
        let output = run(&format!("job logs {} {flags}", id(1)));
        assert_eq!(output.code, 2, "{flags}");
        assert!(
            output.stderr.contains(expected),
            "{flags}: {}",
            output.stderr
        );
    }
}

#[test]
fn a_log_since_a_duration_ago_is_requested_by_time() {
    let server = Server::start([Reply::bytes(log(0, &["one"]))]);
    let before = chrono::Utc::now();
    let output = run_at(&server.url, &format!("job logs {} --since 1h", id(1)));
    assert_eq!(output.code, 0, "{}", output.stderr);
    let lines = server.lines();
    let (_, since) = lines[0].split_once("since=").unwrap();
    let since: chrono::DateTime<chrono::Utc> = since.replace("%3A", ":").parse().unwrap();
    let age = before - since;
    assert!((59..=60).contains(&age.num_minutes()), "{age}");
}

#[test]
fn a_log_may_have_times_marks_and_headings() {
    let lines: Vec<String> = [
        (0, 0, Stream::Stdout),
        (1, 0, Stream::Stderr),
        (2, 1, Stream::Runner),
    ]
    .into_iter()
    .map(|(n, step, stream)| {
        let record = wire::LogRecord {
            n,
            record: wire::NewLogRecord {
                at: at(1),
                step: Some(step),
                stream,
                text: format!("line {n}"),
            },
        };
        serde_json::to_string(&record).unwrap() + "\n"
    })
    .collect();
    let expected = "--- step 1 ---\n\
                    2026-09-21T14:13:21.000Z line 0\n\
                    2026-09-21T14:13:21.000Z [stderr] line 1\n\
                    --- step 2 ---\n\
                    2026-09-21T14:13:21.000Z [runner] line 2\n";
    let server = Server::answering(move |line| {
        if line.contains("/logs?") {
            Reply::bytes(lines.concat())
        } else {
            now(JobState::Succeeded)
        }
    });
    for flags in ["--timestamps", "--timestamps --follow"] {
        let output = run_at(&server.url, &format!("job logs {} {flags}", id(1)));
        assert_eq!((output.code, output.stdout.as_str()), (0, expected));
    }
    let plain = run_at(&server.url, &format!("job logs {}", id(1)));
    assert_eq!(plain.stdout, "line 0\nline 1\nline 2\n");
}

#[test]
fn the_daemon_searches_a_log_page_by_page() {
    let page = |from: u64, texts: &[&str], next: Option<&str>| {
        let matches = log(from, texts);
        wire::LogMatches {
            total: 3,
            matches: matches
                .lines()
                .map(|line| serde_json::from_str(line).unwrap())
                .collect(),
            next_cursor: next.map(str::to_owned),
            records: 1_000,
        }
    };
    let server = Server::start([
        Reply::json(&page(5, &["an error", "Error"], Some("7"))),
        Reply::json(&page(90, &["error: x"], None)),
    ]);
    let output = run_at(
        &server.url,
        &format!("job logs {} --grep error --step 1 --stream stdout", id(1)),
    );
    assert_eq!(
        (output.code, output.stdout.as_str()),
        (0, "an error\nError\nerror: x\n")
    );
    assert_eq!(output.stderr, "matching lines: 3 of 1000\n");
    let search = format!(
        "GET /v0/jobs/{}/logs/search?q=error&step=0&stream=stdout&limit=10000",
        id(1)
    );
    assert_eq!(
        server.lines(),
        [search.clone(), format!("{search}&cursor=7")]
    );

    let server = Server::start([Reply::json(&page(5, &["error"], None))]);
    let line = format!("job logs {} --grep error --output json", id(1));
    let output = run_at(&server.url, &line);
    assert_eq!(output.stdout, log(5, &["error"]));
}

#[test]
fn a_followed_or_partial_log_is_searched_by_the_program() {
    let server = Server::answering(|line| {
        if line.contains("/logs?") {
            Reply::bytes(log(0, &["one", "TWO", "two", "three"]))
        } else {
            now(JobState::Succeeded)
        }
    });
    let run = |flags: &str| run_at(&server.url, &format!("job logs {} {flags}", id(1)));
    let followed = run("--follow --grep two");
    assert_eq!((followed.code, followed.stdout.as_str()), (0, "TWO\ntwo\n"));
    assert!(followed.stderr.contains("succeeded"), "{}", followed.stderr);
    let followed = run("-f --grep TWO");
    assert_eq!(followed.stdout, "TWO\n");
    let tail = run("--tail 4 --grep two");
    assert_eq!(tail.stdout, "TWO\ntwo\n");
    assert_eq!(tail.stderr, "matching lines: 2 of 4\n");
    assert!(server.lines().iter().all(|line| !line.contains("search")));
}

#[test]
fn following_continues_with_the_same_filter() {
    let mut streams = 0;
    let server = Server::answering(move |line| {
        let is_log = line.contains("/logs?");
        streams += u64::from(is_log);
        match (is_log, streams) {
            (true, 1) => Reply::bytes(""),
            (true, 2) => Reply::bytes(log(4, &["one"])),
            (true, _) => Reply::bytes(log(8, &["two"])),
            (false, 1 | 2) => now(JobState::Running),
            (false, _) => now(JobState::Failed),
        }
    });
    let line = format!("job logs -f {} --tail 1 --step 2", id(1));
    let output = run_at(&server.url, &line);
    assert_eq!((output.code, output.stdout.as_str()), (1, "one\ntwo\n"));
    let mut lines = server.lines();
    lines.retain(|line| line.contains("/logs?"));
    let logs = format!("GET /v0/jobs/{}/logs", id(1));
    let ask = |begin: &str| format!("{logs}?{begin}&follow=true&step=1");
    assert_eq!(lines, [ask("tail=1"), ask("tail=1"), ask("from=5")]);
}
