//! The help text of every command.

use std::collections::{BTreeMap, BTreeSet};

use crate::everscan::run;
use crate::snapshot;

/// The commands that a help text names.
fn commands_in(help: &str) -> Vec<String> {
    help.lines()
        .skip_while(|line| *line != "Commands:")
        .skip(1)
        .take_while(|line| !line.is_empty())
        .filter_map(|line| line.split_whitespace().next())
        .filter(|name| *name != "help")
        .map(str::to_owned)
        .collect()
}

#[test]
fn every_help_text_is_as_written() {
    let folder = snapshot::folder("help");
    let mut files: BTreeMap<String, BTreeMap<String, String>> = BTreeMap::new();
    let mut open = vec![String::new()];
    while let Some(path) = open.pop() {
        let help = run(&format!("{path} --help"));
        assert_eq!((help.code, help.stderr.as_str()), (0, ""), "{path}");
        let top = path.split_whitespace().next().unwrap_or("everscan");
        let cases = files.entry(format!("{top}.txt")).or_default();
        cases.insert(format!("everscan{path}"), help.stdout.clone());
        open.extend(
            commands_in(&help.stdout)
                .into_iter()
                .map(|command| format!("{path} {command}")),
        );
    }
    for (name, cases) in &files {
        snapshot::check(&folder.join(name), &snapshot::join(cases));
    }
    let found: BTreeSet<_> = std::fs::read_dir(&folder)
        .unwrap()
        .map(|entry| entry.unwrap().file_name().into_string().unwrap())
        .collect();
    assert_eq!(found, files.into_keys().collect());
}

#[test]
fn an_incomplete_command_lists_the_next_words() {
    for line in ["", "job", "job artifact"] {
        let output = run(line);
        assert_eq!((output.code, output.stdout.as_str()), (2, ""), "{line}");
        assert!(output.stderr.contains("Commands:"), "{}", output.stderr);
    }
}

#[test]
fn the_version_is_data() {
    let output = run("--version");
    assert_eq!(output.code, 0);
    assert!(
        output.stdout.starts_with("everscan 0."),
        "{}",
        output.stdout
    );
}
