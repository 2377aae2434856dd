//! `everscand state`: shows the content of a state folder, without a daemon.

use std::io::{self, IsTerminal, Write};

use chrono::SecondsFormat;
use cli::Table;
use serde::Serialize;
use state::inspect::{Contents, InspectError, Shown, Size, Step, contents, history, show};

use crate::arguments::{OutputForm, StateCommand, StateOptions};
use crate::error::Error;

pub(crate) fn run(command: &StateCommand) -> Result<(), Error> {
    let text = text(command)?;
    let mut stdout = io::stdout().lock();
    let text = if stdout.is_terminal() {
        safe(&text)
    } else {
        text
    };
    match stdout
        .write_all(text.as_bytes())
        .and_then(|()| stdout.flush())
    {
        // The reader of the output has closed it. This is no failure.
        Err(error) if error.kind() == io::ErrorKind::BrokenPipe => Ok(()),
        result => result.map_err(Error::Output),
    }
}

/// The text for a terminal, which would execute control sequences of records.
fn safe(text: &str) -> String {
    let lines = text.lines().map(cli::clean);
    lines.map(|line| line + "\n").collect()
}

fn text(command: &StateCommand) -> Result<String, InspectError> {
    Ok(match command {
        StateCommand::Tree { options } => form(options, &contents(&options.state_dir)?, tree),
        StateCommand::Show { id, options } => {
            form(options, &show(&options.state_dir, id)?, |shown| {
                records(shown)
            })
        }
        StateCommand::History { id, limit, options } => form(
            options,
            &history(&options.state_dir, id, *limit)?,
            |steps| story(steps),
        ),
    })
}

fn form<T: Serialize>(
    options: &StateOptions,
    value: &T,
    text: impl FnOnce(&T) -> String,
) -> String {
    match options.output {
        OutputForm::Text => text(value),
        OutputForm::Json => json(value),
    }
}

fn tree(contents: &Contents) -> String {
    let mut table = Table::new(&["WHAT", "HOW MANY", "FILES", "BYTES", "ON DISK"]);
    let mut row = |what: String, count: String, size: &Size| {
        let Size {
            files,
            bytes,
            allocated,
        } = size;
        table.row([
            what,
            count,
            files.to_string(),
            bytes.to_string(),
            allocated.to_string(),
        ]);
    };
    for (name, size) in &contents.sources {
        row(format!("source {name}"), String::new(), size);
    }
    for workflow in &contents.workflows {
        let name = workflow
            .name
            .as_deref()
            .unwrap_or("(its record cannot be read)");
        let count = format!("{} revisions", workflow.revisions);
        row(
            format!("workflow {name} {}", workflow.id),
            count,
            &workflow.size,
        );
    }
    for day in &contents.days {
        row(
            format!("jobs of {}", day.day),
            format!("{} jobs", day.jobs),
            &day.size,
        );
    }
    for (name, size) in &contents.others {
        row(name.clone(), String::new(), size);
    }
    let mut text = table.text();
    for workflow in &contents.workflows {
        for (scan, ended) in &workflow.scans {
            let name = workflow.name.as_deref().unwrap_or(&workflow.id);
            text.push_str(&cli::clean(&format!(
                "{name}, {scan}: {ended} jobs ended so far"
            )));
            text.push('\n');
        }
    }
    text.push_str(&format!(
        "the last commit is {}; the journal holds {} that the files may not show\n",
        contents.last_commit, contents.commits_in_journal
    ));
    text
}

fn records(shown: &[Shown]) -> String {
    let mut text = String::new();
    for Shown { path, record } in shown {
        text.push_str(&cli::clean(path));
        text.push('\n');
        // JSON escapes all control characters except line ends.
        text.push_str(&json(record));
    }
    text
}

fn story(steps: &[Step]) -> String {
    let mut table = Table::new(&["TIME", "JOB", "STATE", "WHAT"]);
    for step in steps {
        table.row([
            step.at.to_rfc3339_opts(SecondsFormat::Secs, true),
            step.job.to_string(),
            step.state.clone(),
            step.what.clone(),
        ]);
    }
    table.text()
}

/// Values that were read as JSON, or consist of numbers and texts, can always be written as JSON.
fn json(value: &impl Serialize) -> String {
    let mut text = serde_json::to_string_pretty(value).unwrap_or_default();
    text.push('\n');
    text
}

#[cfg(test)]
mod tests {
    use super::safe;

    #[test]
    fn a_terminal_executes_nothing_of_a_record() {
        let shown = safe("{\n  \"v\": \"a\u{9b}31m\u{202e}b\"\n}\n");
        assert_eq!(shown.lines().count(), 3);
        assert!(!shown.contains(['\u{9b}', '\u{202e}']), "{shown:?}");
    }
}
