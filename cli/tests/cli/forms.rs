//! The forms of the command line that the specification shows, as people type them.

use std::collections::BTreeMap;
use std::io::Cursor;
use std::path::Path;

use serde_json::Value;
use wire::{Artifact, DispatchResponse, JobState, Page, Removed};

use crate::artifacts::{files, zip};
use crate::everscan::{Run, command, finished};
use crate::fixtures::{artifact, at, id, job, workflow};
use crate::server::{Reply, Server};
use crate::snapshot;

/// Runs a command in `folder`, in the environment of a step.
fn step(folder: &Path, server: &Server, line: &str, variables: &[(&str, &str)]) -> Run {
    let mut command = command(line);
    command.current_dir(folder);
    command.env("SERVICE_URL", &server.url);
    command.env("SERVICE_JOB_ID", id(1).to_string());
    command.env("SERVICE_WORKFLOW_ID", id(7).to_string());
    command.env("SERVICE_SCAN_NAME", "own");
    command.envs(variables.iter().copied());
    finished(command.output().unwrap())
}

fn report() -> Reply {
    Reply::content(zip(&[("report.txt", "all is well")]))
}

/// A daemon with these artifacts of job 1. Their content is a file of their name, and a removed artifact is gone.
fn daemon(artifacts: Vec<Artifact>) -> Server {
    Server::answering(move |line| {
        let route = format!("GET /v0/jobs/{}/artifacts", id(1));
        let name = line.strip_prefix(&format!("{route}/"));
        match name {
            None => Reply::json(&Page::all(artifacts.clone())),
            Some("expired") => {
                Reply::problem(410, "gone", "the artifact `expired` has expired", None)
            }
            Some(name) => Reply::content(zip(&[("list.txt", name), ("logs/a.log", "a")])),
        }
    })
}

fn named(name: &str) -> Artifact {
    Artifact {
        name: name.to_owned(),
        ..artifact()
    }
}

fn removed(name: &str) -> Artifact {
    Artifact {
        removed: Some(Removed {
            at: at(9),
            code: "deleted_by_user".to_owned(),
            message: "deleted by a user".to_owned(),
            actor: "ada".to_owned(),
        }),
        ..named(name)
    }
}

fn entries(zip: &[u8]) -> BTreeMap<String, String> {
    let mut archive = zip::ZipArchive::new(Cursor::new(zip)).unwrap();
    let mut entries = BTreeMap::new();
    for at in 0..archive.len() {
        let mut entry = archive.by_index(at).unwrap();
        let name = entry.name().unwrap().into_owned();
        entries.insert(name, std::io::read_to_string(&mut entry).unwrap());
    }
    entries
}

#[test]
fn the_output_file_may_be_a_folder() {
    let folder = tempfile::tempdir().unwrap();
    std::fs::create_dir(folder.path().join("out")).unwrap();
    for to in ["out", "out/", "."] {
        let server = Server::start([report()]);
        let line = format!("job artifact download -a report -o {to}");
        let output = step(folder.path(), &server, &line, &[]);
        assert_eq!(output.code, 0, "{}", output.stderr);
    }
    assert_eq!(files(&folder.path().join("out")), ["report.zip"]);
    assert_eq!(files(folder.path()), ["out", "report.zip"]);
}

#[test]
fn an_artifact_may_be_named_by_the_longer_flag() {
    let folder = tempfile::tempdir().unwrap();
    for (flag, variables) in [
        (" --artifact-name report", [("", ""); 0].as_slice()),
        ("", &[("SERVICE_ARTIFACT_NAME", "report")]),
        (
            "",
            &[
                ("SERVICE_ARTIFACT", "report"),
                ("SERVICE_ARTIFACT_NAME", ""),
            ],
        ),
        (
            "",
            &[
                ("SERVICE_ARTIFACT", "report"),
                ("SERVICE_ARTIFACT_NAME", "other"),
            ],
        ),
    ] {
        let server = Server::start([report()]);
        let line = format!("job artifact download{flag}");
        let output = step(folder.path(), &server, &line, variables);
        assert_eq!(output.code, 0, "{}", output.stderr);
        let route = format!("GET /v0/jobs/{}/artifacts/report", id(1));
        assert_eq!(server.lines(), [route]);
    }
}

#[test]
fn a_variable_names_the_file_or_the_form_of_the_output() {
    let folder = tempfile::tempdir().unwrap();
    std::fs::create_dir(folder.path().join("out")).unwrap();
    let form = ("SERVICE_OUTPUT", "json");
    let file = ("SERVICE_OUTPUT", "loot.zip");
    for (more, variables, expected) in [
        ("", [form].as_slice(), "report.zip"),
        ("", &[("SERVICE_OUTPUT", "text")], "report.zip"),
        ("", &[file], "loot.zip"),
        ("", &[("SERVICE_OUTPUT", "out")], "out/report.zip"),
        ("", &[file, ("SERVICE_OUTPUT_FILE", "win.zip")], "win.zip"),
        ("-o flag.zip", &[file], "flag.zip"),
        ("--output yaml", &[file], "loot.zip"),
        ("--unpack .", &[file], "report.txt"),
    ] {
        let server = Server::start([report()]);
        let line = format!("job artifact download -a report {more}");
        let output = step(folder.path(), &server, &line, variables);
        assert_eq!(output.code, 0, "{}", output.stderr);
        let path = folder.path().join(expected);
        std::fs::remove_file(&path).unwrap_or_else(|error| panic!("{expected}: {error}"));
        assert_eq!(files(folder.path()), ["out"], "{variables:?}");
    }
    let server = Server::start([report()]);
    let line = "job artifact download -a report";
    let output = command(line)
        .env("SERVICE_URL", &server.url)
        .env("SERVICE_JOB_ID", id(1).to_string())
        .env("SERVICE_OUTPUT", "-")
        .output()
        .unwrap();
    assert_eq!(output.stdout[..2], *b"PK");
}

#[test]
fn a_file_in_the_variable_is_refused_where_a_command_writes_none() {
    let folder = tempfile::tempdir().unwrap();
    let server = Server::start([Reply::json(&Page::<Value>::all(Vec::new()))]);
    let file = ("SERVICE_OUTPUT", "loot.zip");
    let output = step(folder.path(), &server, "job artifact list", &[file]);
    assert_eq!(output.code, 2);
    snapshot::check_listing("forms-output-variable", &output.stderr);
    assert!(server.lines().is_empty());
    // A flag wins over the variable.
    let output = step(
        folder.path(),
        &server,
        "job artifact list --output json",
        &[file],
    );
    assert_eq!(output.code, 0, "{}", output.stderr);
}

#[test]
fn the_only_artifact_of_a_job_is_downloaded() {
    for (line, expected) in [
        ("job download", "report.zip"),
        ("job download -o x.zip", "x.zip"),
        ("job download -o .", "report.zip"),
    ] {
        let folder = tempfile::tempdir().unwrap();
        let server = daemon(vec![named("report"), removed("older")]);
        let output = step(folder.path(), &server, line, &[]);
        assert_eq!(output.code, 0, "{}", output.stderr);
        assert_eq!(files(folder.path()), [expected]);
        let zip = std::fs::read(folder.path().join(expected)).unwrap();
        assert_eq!(entries(&zip)["list.txt"], "report");
        assert!(
            output
                .stderr
                .starts_with("warning: artifact older is not included: deleted by a user\n"),
            "{}",
            output.stderr
        );
    }
}

#[test]
fn several_artifacts_of_a_job_become_one_zip() {
    let names = ["hosts.zip", "ports", "ports.zip", "...zip", "expired"];
    let expected: BTreeMap<_, _> = [
        ("hosts", "hosts.zip"),
        ("ports", "ports"),
        ("ports.zip", "ports.zip"),
        ("...zip", "...zip"),
    ]
    .into_iter()
    .flat_map(|(place, content)| {
        let list = (format!("{place}/list.txt"), content.to_owned());
        [list, (format!("{place}/logs/a.log"), "a".to_owned())]
    })
    .collect();
    let folder = tempfile::tempdir().unwrap();
    let server = daemon(names.map(named).to_vec());
    let line = format!("job download -j {} -o all.zip", id(1));
    let output = step(folder.path(), &server, &line, &[]);
    assert_eq!(output.code, 0, "{}", output.stderr);
    snapshot::check_listing("forms-all-artifacts", &output.stderr);
    assert_eq!(files(folder.path()), ["all.zip"]);
    let zip = std::fs::read(folder.path().join("all.zip")).unwrap();
    assert_eq!(entries(&zip), expected);

    let output = step(folder.path(), &server, "job download -o .", &[]);
    assert_eq!(output.code, 0, "{}", output.stderr);
    assert_eq!(
        files(folder.path()),
        [format!("{}.zip", id(1)), "all.zip".to_owned()]
    );

    let mut piped = command("job download -o -");
    piped.env("SERVICE_URL", &server.url);
    let piped = piped
        .env("SERVICE_JOB_ID", id(1).to_string())
        .output()
        .unwrap();
    assert_eq!(entries(&piped.stdout), expected);
}

#[test]
fn a_job_without_artifacts_is_reported() {
    let folder = tempfile::tempdir().unwrap();
    let server = daemon(vec![removed("older")]);
    let output = step(folder.path(), &server, "job download", &[]);
    assert_ne!(output.code, 0);
    snapshot::check_listing("forms-no-artifacts", &output.stderr);
    assert!(files(folder.path()).is_empty());
}

#[test]
fn older_flags_are_taken_with_a_warning() {
    let folder = tempfile::tempdir().unwrap();
    let server = daemon(vec![named("report")]);
    let line = format!("job download -p p -w w -r 3 -j {} -o x.zip", id(1));
    let output = step(folder.path(), &server, &line, &[]);
    assert_eq!(output.code, 0, "{}", output.stderr);
    snapshot::check_listing("forms-older-flags", &output.stderr);
}

#[test]
fn blobs_have_short_flags() {
    let folder = tempfile::tempdir().unwrap();
    let server = Server::start([Reply::content("hello")]);
    let line = "blob download -s in/a.txt -d b.txt";
    let output = step(folder.path(), &server, line, &[]);
    assert_eq!(output.code, 0, "{}", output.stderr);
    assert_eq!(files(folder.path()), ["b.txt"]);
    let server = Server::start([Reply::problem(403, "forbidden", "not for you", None)]);
    step(folder.path(), &server, "blob upload -s b.txt -d in/", &[]);
    let lines = server.lines();
    assert!(
        lines[0].starts_with("PUT /v0/") && lines[0].ends_with("in/b.txt"),
        "{lines:?}"
    );
}

fn dispatched() -> Reply {
    let job = job(JobState::Scheduled);
    let job = wire::ChangedJob::Whole(Box::new(job));
    Reply::json(&DispatchResponse { job }).status(202)
}

#[test]
fn a_step_names_the_scan_or_the_workflow_or_both() {
    let own = id(7).to_string();
    let folder = tempfile::tempdir().unwrap();
    for (names, variables, workflow, scan) in [
        ("-w w -s s", [].as_slice(), "w", "s"),
        ("--workflow w --scan s", &[], "w", "s"),
        ("w s", &[], "w", "s"),
        ("-w w s", &[], "w", "s"),
        ("-s s w", &[], "w", "s"),
        ("-s s", &[], own.as_str(), "s"),
        ("-w w", &[], "w", "own"),
        ("w", &[], "w", "own"),
        ("", &[("SERVICE_SCAN", "s")], &own, "s"),
        ("-s s", &[("SERVICE_WORKFLOW", "w")], "w", "s"),
        (
            "w s",
            &[("SERVICE_WORKFLOW", "x"), ("SERVICE_SCAN", "y")],
            "w",
            "s",
        ),
    ] {
        let server = with_workflow(8);
        let output = step(
            folder.path(),
            &server,
            &format!("scan dispatch {names}"),
            variables,
        );
        assert_eq!(output.code, 0, "{names}: {}", output.stderr);
        let route = format!("POST /v0/workflows/{workflow}/scans/{scan}/dispatch");
        assert_eq!(server.lines().last(), Some(&route), "{names}");
    }
}

/// A daemon where the workflow `w` has this id.
fn with_workflow(number: u128) -> Server {
    Server::answering(move |line| match line {
        "GET /v0/workflows/w" => Reply::json(&wire::Workflow {
            id: id(number),
            ..workflow()
        }),
        line if line.starts_with("GET ") => {
            Reply::problem(403, "forbidden", "the token lacks workflow:read", None)
        }
        _ => dispatched(),
    })
}

#[test]
fn a_step_starts_its_own_scan_only_if_it_names_both() {
    let folder = tempfile::tempdir().unwrap();
    let own = id(7);
    for names in [
        "-w w".to_owned(),
        "w".to_owned(),
        format!("-w {own}"),
        "-w unreadable".to_owned(),
        "-s own".to_owned(),
    ] {
        let server = with_workflow(7);
        let line = format!("scan dispatch {names}");
        let output = step(folder.path(), &server, &line, &[]);
        assert_eq!((output.code, output.stdout.as_str()), (2, ""), "{names}");
        snapshot::check_listing("forms-own-scan", &output.stderr);
        assert!(server.lines().iter().all(|line| line.starts_with("GET ")));
    }
    let server = with_workflow(7);
    let output = step(folder.path(), &server, "scan dispatch -w w -s own", &[]);
    assert_eq!(output.code, 0, "{}", output.stderr);
    assert_eq!(server.lines().len(), 1);
}

#[test]
fn a_scan_is_named_once() {
    let folder = tempfile::tempdir().unwrap();
    let server = Server::start([]);
    for (case, line) in [
        ("forms-no-scan", "scan dispatch --input a=1"),
        ("forms-two-scans", "scan dispatch -w w -s s t"),
        (
            "forms-mistyped-bool",
            "scan dispatch -s s --input-bool deep=yes",
        ),
        (
            "forms-input-twice",
            "scan dispatch -s s --input-bool a=true --input-string a=b",
        ),
    ] {
        let output = step(folder.path(), &server, line, &[]);
        assert_eq!(output.code, 2, "{line}");
        snapshot::check_listing(case, &output.stderr);
    }
    // Outside of a step nothing stands for what is not named.
    let output = command("scan dispatch -s s")
        .env("SERVICE_URL", &server.url)
        .output();
    let output = finished(output.unwrap());
    assert_eq!(output.code, 2);
    snapshot::check_listing("forms-no-workflow", &output.stderr);
}

#[test]
fn inputs_have_types() {
    let folder = tempfile::tempdir().unwrap();
    let server = Server::start([dispatched()]);
    let line = "scan dispatch -s s --input-string name=true --input-bool deep=true --input-bool wide=false -i n=3";
    let output = step(folder.path(), &server, line, &[]);
    assert_eq!(output.code, 0, "{}", output.stderr);
    assert_eq!(
        server.seen()[0].body,
        r#"{"inputs":{"deep":true,"n":"3","name":"true","wide":false}}"#
    );
}
