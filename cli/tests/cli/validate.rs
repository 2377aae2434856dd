//! Checking files without a daemon.

use std::io::Write as _;
use std::path::Path;
use std::process::{Command, Stdio};

use crate::everscan::{Run, command, finished};
use crate::snapshot;

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
    let output = validate(folder.path(), "");
    assert_eq!(
        (output.code, output.stdout.as_str()),
        (0, ""),
        "{}",
        output.stderr
    );
    assert_eq!(output.stderr, "2 files valid\n");
}

#[test]
fn each_problem_is_shown_with_its_place() {
    let folder = repository(&[("a.yaml", GOOD), ("b.yaml", BAD)]);
    let output = validate(folder.path(), "workflows");
    assert_eq!(output.code, 1);
    assert_eq!(output.stderr, "1 of 2 files invalid\n");
    for part in ["workflows/b.yaml:3", "@hourly", "unknown-key"] {
        assert!(output.stdout.contains(part), "{part} in {}", output.stdout);
    }
    assert!(!output.stdout.contains('\u{1b}'), "{}", output.stdout);
}

#[test]
fn json_output_is_one_list_of_all_files() {
    let folder = repository(&[("a.yaml", GOOD), ("b.yaml", BAD)]);
    let output = validate(folder.path(), "--output json");
    assert_eq!(output.code, 1);
    snapshot::check(
        &snapshot::folder("language").join("validate.json"),
        &output.stdout,
    );
    let folder = repository(&[("a.yaml", GOOD)]);
    let output = validate(folder.path(), "--output json");
    assert_eq!((output.code, output.stdout.as_str()), (0, "[]\n"));
}

#[test]
fn two_files_of_the_same_workflow_are_refused() {
    let folder = repository(&[("a.yaml", GOOD), ("a.yml", GOOD)]);
    let output = validate(folder.path(), "");
    assert_eq!(output.code, 1);
    assert!(
        output
            .stdout
            .contains("workflows/a.yaml is the same workflow"),
        "{}",
        output.stdout
    );
}

#[test]
fn unreadable_files_do_not_hide_others() {
    let folder = repository(&[("b.yaml", BAD)]);
    std::fs::write(folder.path().join("workflows/a.yaml"), b"a: 1\nb: caf\xe9").unwrap();
    let output = validate(folder.path(), "workflows no-such.yaml");
    assert_eq!(output.code, 2);
    for part in [
        "error[unreadable-file]: the file is not UTF-8",
        "workflows/a.yaml:2:7\n",
        "save it as UTF-8",
        "error[unreadable-file]: cannot read no-such.yaml: No such file",
        "@hourly",
    ] {
        assert!(output.stdout.contains(part), "{part} in {}", output.stdout);
    }
    assert_eq!(output.stderr, "3 of 3 files invalid\n");
    let output = validate(folder.path(), "no-such.yaml --output json");
    assert_eq!(output.code, 2);
    let found: serde_json::Value = serde_json::from_str(&output.stdout).unwrap();
    assert_eq!(
        (&found[0]["file"], &found[0]["code"]),
        (&"no-such.yaml".into(), &"unreadable-file".into())
    );
}

/// A file with a warning, which is an error under `deny`.
const TAINTED: &str = "scans:\n  a:\n    on: {dispatch: {inputs: {name: {}}}}\n    steps:\n      - run: echo ${{ inputs.name }}\n";

#[test]
fn warnings_are_errors_with_strict() {
    let folder = repository(&[("a.yaml", TAINTED)]);
    for (arguments, code, severity) in [
        ("", 0, "warning"),
        ("--script-templates warn", 0, "warning"),
        ("--script-templates deny", 1, "error"),
        ("--strict", 1, "warning"),
    ] {
        let output = validate(folder.path(), arguments);
        assert_eq!(output.code, code, "{arguments}: {}", output.stdout);
        let first = format!("{severity}[tainted-script]");
        assert!(
            output.stdout.starts_with(&first),
            "{arguments}: {}",
            output.stdout
        );
    }
    let folder = repository(&[("a.yaml", GOOD), ("b.yaml", TAINTED)]);
    let output = validate(folder.path(), "--strict");
    assert_eq!(
        output.stderr,
        "2 files valid, with 1 warning; --strict allows none\n"
    );
    let folder = repository(&[("a.yaml", GOOD), ("b.yaml", TAINTED), ("c.yaml", BAD)]);
    let output = validate(folder.path(), "--strict");
    assert_eq!(
        (output.code, output.stderr.as_str()),
        (1, "1 of 3 files invalid\n")
    );
    let folder = repository(&[("a.yaml", GOOD)]);
    assert_eq!(validate(folder.path(), "--strict").code, 0);
}

#[test]
fn a_file_may_come_from_standard_input() {
    for (text, code) in [(GOOD, 0), (BAD, 1)] {
        let mut child = command("validate - --output text")
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        let mut stdin = child.stdin.take().unwrap();
        stdin.write_all(text.as_bytes()).unwrap();
        drop(stdin);
        let output = finished(child.wait_with_output().unwrap());
        assert_eq!(output.code, code, "{}", output.stdout);
        assert_eq!(
            output.stdout.contains("-:3:"),
            code == 1,
            "{}",
            output.stdout
        );
    }
}

#[test]
fn a_dash_is_standard_input_even_if_a_folder_has_that_name() {
    let folder = repository(&[("../-/a.yaml", BAD), ("b.yaml", GOOD)]);
    let given = std::fs::File::open(folder.path().join("workflows/b.yaml")).unwrap();
    let output = command("validate - workflows")
        .current_dir(folder.path())
        .stdin(given)
        .output();
    let output = finished(output.unwrap());
    assert_eq!(
        (output.code, output.stderr.as_str()),
        (0, "2 files valid\n")
    );
    let output = validate(folder.path(), "./-");
    assert!(output.stdout.contains("./-/a.yaml:3"), "{}", output.stdout);
}

#[test]
fn a_file_counts_once_however_it_is_named() {
    let folder = repository(&[("a.yaml", GOOD)]);
    std::os::unix::fs::symlink("workflows/a.yaml", folder.path().join("link.yaml")).unwrap();
    let path = folder.path().join("workflows/a.yaml");
    let arguments = format!(
        "workflows/a.yaml ./workflows/a.yaml link.yaml workflows {}",
        path.display()
    );
    let output = validate(folder.path(), &arguments);
    assert_eq!((output.code, output.stderr.as_str()), (0, "1 file valid\n"));
}

const RULES: &str = "notify:\n  - channel: ops\n";

#[test]
fn the_file_of_a_repository_is_checked_if_it_is_named_or_in_a_named_folder() {
    let folder = repository(&[("a.yaml", GOOD), ("../everscan.yaml", RULES)]);
    for (arguments, files) in [
        (".", "2 files"),
        ("everscan.yaml", "1 file"),
        ("workflows", "1 file"),
    ] {
        let output = validate(folder.path(), arguments);
        let expected = format!("{files} valid\n");
        assert_eq!((output.code, output.stderr), (0, expected), "{arguments}");
    }
    std::fs::write(
        folder.path().join("everscan.yaml"),
        "notify: [{ chanel: ops }]\n",
    )
    .unwrap();
    let output = validate(folder.path(), "everscan.yaml");
    assert_eq!(output.code, 1);
    assert!(
        output.stdout.contains("did you mean `channel`?"),
        "{}",
        output.stdout
    );
    let output = validate(folder.path(), ".");
    assert_eq!(
        (output.code, output.stderr.as_str()),
        (1, "1 of 2 files invalid\n")
    );
}

#[test]
fn the_file_of_a_repository_is_found_from_a_subfolder() {
    let folder = repository(&[("deep/a.yaml", GOOD), ("../everscan.yaml", "vars: {}\n")]);
    // The folder is not a repository yet, and it is not the checked folder.
    for arguments in ["workflows", "workflows/deep/a.yaml"] {
        assert_eq!(validate(folder.path(), arguments).stdout, "", "{arguments}");
    }
    // `everscand up` reads it in a folder without Git.
    let output = validate(folder.path(), "");
    assert!(
        output.stdout.contains("> everscan.yaml"),
        "{}",
        output.stdout
    );
    assert_eq!(output.code, 1);
    std::fs::create_dir(folder.path().join(".git")).unwrap();
    let all = folder.path().join("workflows").display().to_string();
    for arguments in [
        "",
        "workflows",
        "workflows/deep/a.yaml",
        ". workflows",
        &all,
    ] {
        let output = validate(folder.path(), arguments);
        assert_eq!(output.code, 1, "{arguments}");
        assert_eq!(
            output.stdout.matches("unknown-key").count(),
            1,
            "{}",
            output.stdout
        );
        assert!(
            output.stdout.contains("> everscan.yaml") || arguments.starts_with('.'),
            "{}",
            output.stdout
        );
        assert_eq!(output.stderr, "1 of 2 files invalid\n");
    }
}

#[test]
fn no_workflow_files_is_wrong_usage() {
    let folder = repository(&[("notes.txt", "")]);
    for (arguments, data) in [
        (".", ""),
        (". --output json", "[]\n"),
        ("--output yaml", "[]\n"),
    ] {
        let output = validate(folder.path(), arguments);
        assert_eq!(
            (output.code, output.stdout.as_str()),
            (2, data),
            "{arguments}"
        );
        let searched = if arguments.starts_with('.') {
            "."
        } else {
            "workflows"
        };
        let what = format!("there are no workflow files in {searched}\n");
        assert!(output.stderr.contains(&what), "{}", output.stderr);
    }
}

/// Each too large file has the same error code and exit code. The program does not read it into memory.
#[test]
fn a_file_that_is_too_large_is_invalid() {
    let folder = repository(&[("a.yaml", GOOD)]);
    let path = folder.path().join("workflows/large.yaml");
    for size in [1024 * 1024 + 1, 5 * 1024 * 1024, 1024 * 1024 * 1024] {
        let file = std::fs::File::create(&path).unwrap();
        file.set_len(size).unwrap();
        for arguments in ["workflows --output json", "- --output json"] {
            let output = command(&format!("validate {arguments}"))
                .current_dir(folder.path())
                .stdin(std::fs::File::open(&path).unwrap())
                .output();
            let output = finished(output.unwrap());
            assert_eq!(output.code, 1, "{size}: {}", output.stdout);
            assert!(
                output.stdout.contains("\"file-too-large\""),
                "{}",
                output.stdout
            );
        }
    }
    let output = command("workflow diff workflows/large.yaml workflows/a.yaml")
        .current_dir(folder.path())
        .output();
    let output = finished(output.unwrap());
    assert_eq!(output.code, 1);
    assert!(
        output.stderr.starts_with("error[file-too-large]"),
        "{}",
        output.stderr
    );
    let output = validate(folder.path(), "workflows");
    let expected = "\
error[file-too-large]: the file has more than 1048576 bytes
--> workflows/large.yaml
 = help: put what scripts need into files or blobs, or split the workflow
";
    assert_eq!(output.stdout, expected);
}

/// Like the daemon. Reading a pipe could block.
#[test]
fn a_path_that_is_not_a_regular_file_is_refused() {
    let folder = repository(&[("a.yaml", GOOD)]);
    let at = |name: &str| folder.path().join(name);
    std::os::unix::fs::symlink("a.yaml", at("workflows/link.yaml")).unwrap();
    let output = validate(folder.path(), "");
    assert_eq!(output.code, 2, "{}", output.stderr);
    let expected = "\
error[unreadable-file]: the file is a symbolic link, and links are not followed
--> workflows/link.yaml
 = help: put the file itself there
";
    assert_eq!(output.stdout, expected);
    let named = validate(folder.path(), "workflows/link.yaml");
    assert_eq!((named.code, named.stderr.as_str()), (0, "1 file valid\n"));

    std::fs::remove_file(at("workflows/link.yaml")).unwrap();
    let pipe = at("workflows/pipe.yaml");
    let made = Command::new("mkfifo").arg(&pipe).status().unwrap();
    assert!(made.success());
    for arguments in ["", "workflows/pipe.yaml", "/dev/null"] {
        let output = validate(folder.path(), arguments);
        assert_eq!(output.code, 2, "{}", output.stderr);
        let what = "error[unreadable-file]: this is a pipe, a socket or a device, and no file";
        assert!(
            output.stdout.starts_with(what),
            "{arguments}: {}",
            output.stdout
        );
    }
}

#[test]
fn the_problems_of_two_files_are_separated() {
    let folder = repository(&[("a.yaml", "- \n"), ("b.yaml", GOOD), ("c.yaml", "- \n")]);
    let output = validate(folder.path(), "");
    let blocks: Vec<&str> = output.stdout.split("\n\n").collect();
    assert_eq!(blocks.len(), 2, "{}", output.stdout);
    assert!(blocks[0].contains("workflows/a.yaml"), "{}", output.stdout);
    assert!(blocks[1].starts_with("error["), "{}", output.stdout);
    assert!(!output.stdout.ends_with("\n\n"), "{}", output.stdout);
}

#[test]
fn a_link_in_place_of_the_usual_folder_is_refused_as_by_the_daemon() {
    let folder = repository(&[("a.yaml", GOOD)]);
    let at = |name: &str| folder.path().join(name);
    std::fs::rename(at("workflows"), at("kept")).unwrap();
    std::os::unix::fs::symlink("kept", at("workflows")).unwrap();
    let output = validate(folder.path(), "");
    assert_eq!(output.code, 2);
    let what = "`workflows` is a symbolic link, which the daemon does not follow";
    assert!(output.stderr.contains(what), "{}", output.stderr);
    assert_eq!(validate(folder.path(), "kept").code, 0);
}

#[test]
fn without_a_workflow_folder_the_message_names_it() {
    let folder = tempfile::tempdir().unwrap();
    let output = validate(folder.path(), "");
    assert_eq!((output.code, output.stdout.as_str()), (2, ""));
    for part in ["no folder `workflows` here", "everscan validate PATH"] {
        assert!(output.stderr.contains(part), "{}", output.stderr);
    }
}
