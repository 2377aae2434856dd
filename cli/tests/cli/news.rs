//! `job artifact news`: the lines between what the job's scan has processed and the newest success, both as frozen in the
//! job's context.

use serde_json::{Value, json};

use crate::artifacts::zip;
use crate::everscan::{Run, command, finished, run_at};
use crate::fixtures::{at, id};
use crate::server::{Reply, Server};

/// The scan `hosts` in the context of job 1: job 3 is its newest success, and job 2 was processed.
fn hosts() -> Value {
    json!({
        "size": 2, "jobs": [], "available": true, "successes": 2,
        "newest_successes": [{ "hosts": "d3" }, { "hosts": "d2" }],
        "newest_success_ids": [id(3), id(2)],
        "news": { "processed": { "id": id(2), "artifacts": { "hosts": "d2" } } },
    })
}

/// A daemon with the artifact `newest`, and the reply `processed` for the processed artifact.
fn daemon(hosts: Value, newest: &str, processed: Reply) -> Server {
    let newest = zip(&[("hosts.txt", newest), ("notes.txt", "a note\n")]);
    Server::answering(move |line| {
        let job = |number| format!("GET /v0/jobs/{}", id(number));
        let line = line.trim_end_matches(".zip");
        let artifact = |number| format!("{}/artifacts/hosts", job(number));
        if line == format!("{}/context", job(1)) {
            Reply::json(&json!({
                "frozen_at": at(0), "secrets": {},
                "context": { "project": "p", "workflow": "w", "revision": "r", "scans": { "hosts": hosts } },
            }))
        } else if line == artifact(3) {
            Reply::content(newest.clone())
        } else {
            assert_eq!(line, artifact(2));
            processed.clone()
        }
    })
}

fn older() -> Reply {
    Reply::content(zip(&[("hosts.txt", "a\nb\n"), ("notes.txt", "a note\n")]))
}

/// Runs the command in the environment of a step.
fn news(server: &Server, more: &str) -> Run {
    let line = format!("job artifact news --scan hosts -a hosts {more}");
    let mut command = command(&line);
    command.env("SERVICE_URL", &server.url);
    command.env("SERVICE_JOB_ID", id(1).to_string());
    finished(command.output().unwrap())
}

#[test]
fn news_are_the_lines_that_were_not_processed() {
    let server = daemon(hosts(), "c\nb\nd\n", older());
    let output = news(&server, "");
    assert_eq!((output.code, output.stderr.as_str()), (0, ""));
    assert_eq!(output.stdout, "c\nd\n");
    let output = news(&server, "--exit-code --file hosts.txt");
    assert_eq!((output.code, output.stdout.as_str()), (3, "c\nd\n"));
    let output = news(&server, "--file notes.txt --exit-code");
    assert_eq!((output.code, output.stdout.as_str()), (0, ""));
    // The end of a name may be left out.
    let named = |hosts: Value| {
        serde_json::from_str(
            &hosts
                .to_string()
                .replace(r#""hosts":""#, r#""hosts.zip":""#),
        )
    };
    let server = daemon(named(hosts()).unwrap(), "c\nb\nd\n", older());
    assert_eq!(news(&server, "").stdout, "c\nd\n");
    // Removed lines are not news.
    let output = news(&daemon(hosts(), "b\n", older()), "--exit-code");
    assert_eq!((output.code, output.stdout.as_str()), (0, ""));
}

#[test]
fn without_a_processed_job_all_lines_are_news() {
    let mut unprocessed = hosts();
    unprocessed["news"] = json!({});
    let mut without = hosts();
    without["news"]["processed"]["artifacts"] = json!({ "other": "d1" });
    for hosts in [unprocessed, without] {
        let server = daemon(hosts, "b\na\n", older());
        let output = news(&server, "--file hosts.txt");
        assert_eq!((output.code, output.stdout.as_str()), (0, "b\na\n"));
        assert_eq!(output.stderr, "");
    }
}

#[test]
fn a_missing_processed_artifact_is_a_warning() {
    for (status, code) in [(404, "not_found"), (410, "gone")] {
        let gone = Reply::problem(status, code, "its time was over", None);
        let output = news(
            &daemon(hosts(), "a\nb\n", gone),
            "--file hosts.txt --exit-code",
        );
        assert_eq!((output.code, output.stdout.as_str()), (3, "a\nb\n"));
        let warning = "warning: what was processed is gone, so every line counts as news: its time";
        assert!(output.stderr.starts_with(warning), "{}", output.stderr);
    }
    let refused = Reply::problem(403, "forbidden", "not for you", None);
    let output = news(&daemon(hosts(), "a\nb\n", refused), "");
    assert_eq!((output.code, output.stdout.as_str()), (8, ""));
}

#[test]
fn without_news_nothing_is_downloaded() {
    let mut same = hosts();
    same["newest_successes"][0]["hosts"] = json!("d2");
    let mut missing = hosts();
    missing["newest_successes"][0] = json!({ "report": "d3" });
    let mut never = hosts();
    never["newest_successes"] = json!([]);
    never["newest_success_ids"] = json!([]);
    never["news"] = json!({});
    for (hosts, expected) in [
        (same, String::new()),
        (
            missing,
            format!(
                "the newest success of hosts, job {}, has no artifact hosts: no news; it has: report\n",
                id(3)
            ),
        ),
        (
            never,
            "scan hosts has not succeeded yet: no news\n".to_owned(),
        ),
    ] {
        let server = daemon(hosts, "a\n", older());
        let output = news(&server, "--exit-code");
        assert_eq!((output.code, output.stdout.as_str()), (0, ""));
        assert_eq!(output.stderr, expected);
        assert_eq!(server.lines().len(), 1);
    }
}

#[test]
fn an_undeclared_artifact_is_an_error() {
    let mut unknown = hosts();
    unknown["newest_successes"] = json!([{ "host": "d3" }]);
    unknown["news"]["processed"]["artifacts"] = json!({ "host": "d2" });
    unknown["news"]["declared"] = json!(["host"]);
    let output = news(&daemon(unknown.clone(), "a\n", older()), "");
    assert_eq!((output.code, output.stdout.as_str()), (2, ""));
    let expected = "has no artifact hosts: no news; it has: host\nhint: `artifacts` of that scan does not name it";
    assert!(output.stderr.contains(expected), "{}", output.stderr);
    // An artifact that the scan makes only sometimes.
    unknown["news"]["declared"] = json!(["host", "hosts"]);
    let output = news(&daemon(unknown, "a\n", older()), "");
    assert_eq!((output.code, output.stdout.as_str()), (0, ""));
}

#[test]
fn a_scan_without_news_gets_a_hint() {
    let mut silent = hosts();
    silent.as_object_mut().unwrap().remove("news");
    let server = daemon(silent, "a\n", older());
    assert_eq!(news(&server, "").code, 2);
    for (scan, expression) in [
        ("hosts", "scans.hosts.has_news('hosts')"),
        ("1st", "scans[\"1st\"].has_news('hosts')"),
    ] {
        let line = format!("job artifact news {} --scan {scan} -a hosts", id(1));
        let output = run_at(&server.url, &line);
        assert_eq!((output.code, output.stdout.as_str()), (2, ""));
        assert_eq!(
            output.stderr,
            format!(
                "error: no expression of the job's scan asks for news of the scan {scan}, so the job does not know what \
                 is new\nhint: let news start the scan, with this line below its `on`: `expr: {expression}`\n"
            )
        );
    }
}
