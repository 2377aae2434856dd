//! Checking files without a daemon.

use std::path::Path;

use crate::everscan::{Run, command, finished};

const GOOD: &str =
    "scans:\n  a:\n    on: {cron: '0 3 * * *'}\n    steps:\n      - run: echo hello\n";
const BAD: &str = "scans:\n  a:\n    on: {cron: '@hourly'}\n    step: []\n";

fn validate(folder: &Path, arguments: &str) -> Run {
    let line = format!("validate {arguments}");
    finished(command(&line).current_dir(folder).output().unwrap())
}

/// A repository whose `workflows/` holds these files.
fn repository(files: &[(&str, &str)]) -> tempfile::TempDir {
    let folder = tempfile::tempdir().unwrap();
    for (name, text) in files {
        let path = folder.path().join("workflows").join(name);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, text).unwrap();
    }
    folder
}

#[test]
fn valid_files_are_counted() {
    let folder = repository(&[("a.yaml", GOOD), ("deep/b.yml", GOOD)]);
    let told = validate(folder.path(), "");
    assert_eq!((told.code, told.data.as_str()), (0, ""), "{}", told.talk);
    assert_eq!(told.talk, "2 files valid\n");
}

#[test]
fn everything_wrong_is_shown_in_its_place() {
    let folder = repository(&[("a.yaml", GOOD), ("b.yaml", BAD)]);
    let told = validate(folder.path(), "workflows");
    assert_eq!(told.code, 1);
    assert_eq!(told.talk, "1 of 2 files invalid\n");
    for part in ["workflows/b.yaml:3", "@hourly", "unknown-key"] {
        assert!(told.data.contains(part), "{part} in {}", told.data);
    }
    assert!(!told.data.contains('\u{1b}'), "{}", told.data);
}

#[test]
fn programs_get_every_file() {
    let folder = repository(&[("a.yaml", GOOD), ("b.yaml", BAD)]);
    let told = validate(folder.path(), "--output json");
    assert_eq!(told.code, 1);
    let report: serde_json::Value = serde_json::from_str(&told.data).unwrap();
    assert_eq!(report["files"][0]["valid"], true);
    let bad = &report["files"][1];
    assert_eq!(
        (&bad["file"], &bad["valid"]),
        (&"workflows/b.yaml".into(), &false.into())
    );
    let diagnostics = bad["diagnostics"].as_array().unwrap();
    let cron = diagnostics
        .iter()
        .find(|found| found["code"] == "invalid-cron");
    let cron = cron.unwrap();
    assert_eq!(
        (&cron["line"], &cron["severity"]),
        (&3.into(), &"error".into())
    );
}

#[test]
fn files_that_would_be_one_workflow_are_refused() {
    let folder = repository(&[("a.yaml", GOOD), ("a.yml", GOOD)]);
    let told = validate(folder.path(), "");
    assert_eq!(told.code, 1);
    assert!(
        told.data.contains("workflows/a.yaml is the same workflow"),
        "{}",
        told.data
    );
}

#[test]
fn files_that_cannot_be_read_do_not_hide_others() {
    let folder = repository(&[("b.yaml", BAD)]);
    std::fs::write(folder.path().join("workflows/a.yaml"), [0xff]).unwrap();
    let told = validate(folder.path(), "workflows no-such.yaml");
    assert_eq!(told.code, 1);
    for part in [
        "error: workflows/a.yaml is not UTF-8 text\n",
        "error: cannot read no-such.yaml: No such file",
        "@hourly",
    ] {
        assert!(told.data.contains(part), "{part} in {}", told.data);
    }
    assert_eq!(told.talk, "3 of 3 files invalid\n");
}

#[test]
fn nothing_to_check_is_wrong_usage() {
    let folder = tempfile::tempdir().unwrap();
    let told = validate(folder.path(), ".");
    assert_eq!((told.code, told.data.as_str()), (2, ""));
    assert!(
        told.talk.contains("there are no workflow files in ."),
        "{}",
        told.talk
    );
}

#[test]
fn without_the_usual_folder_it_says_what_it_looked_for() {
    let folder = tempfile::tempdir().unwrap();
    let told = validate(folder.path(), "");
    assert_eq!((told.code, told.data.as_str()), (2, ""));
    for part in ["no folder `workflows` here", "everscan validate PATH"] {
        assert!(told.talk.contains(part), "{}", told.talk);
    }
}
