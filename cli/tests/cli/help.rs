//! The help text of every command.

use std::collections::BTreeSet;

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
    let mut expected = BTreeSet::new();
    let mut open = vec![String::new()];
    while let Some(path) = open.pop() {
        let help = run(&format!("{path} --help"));
        assert_eq!((help.code, help.stderr.as_str()), (0, ""), "{path}");
        let name = format!("everscan{path}.txt").replace(' ', "-");
        snapshot::check(&folder.join(&name), &help.stdout);
        expected.insert(name);
        open.extend(
            commands_in(&help.stdout)
                .into_iter()
                .map(|command| format!("{path} {command}")),
        );
    }
    let found: BTreeSet<_> = std::fs::read_dir(&folder)
        .unwrap()
        .map(|entry| entry.unwrap().file_name().into_string().unwrap())
        .collect();
    assert_eq!(found, expected);
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
