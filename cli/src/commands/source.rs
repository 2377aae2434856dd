//! `everscan source`. Other commands show warnings and invalid files the same way.

use clap::Subcommand;
use wire::{ApproveSource, Condition, Diagnostic, Page, Severity, Source, StaleFile, Tip};
use workflow::SETTINGS_FILE;

use crate::commands::PageFlags;
use crate::error::Error;
use crate::exit::Exit;
use crate::session::Session;
use crate::table::{Fields, Table, short_commit, time, time_or_dash};
use crate::untrusted::clean;

#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// List the tips of a source that the daemon saw, newest first
    History {
        /// Name of the source
        name: String,
        #[command(flatten)]
        page: PageFlags,
    },
    /// List sources
    List,
    /// Show a source and its problems
    Show {
        /// Name of the source
        name: String,
    },
    /// Read the repository of a source now
    Sync {
        /// Name of the source
        name: String,
        /// Wait until it has been read, and fail if it cannot be read or has invalid files
        #[arg(long, env = "SERVICE_WAIT")]
        wait: bool,
    },
    /// Apply the newest commit, although it retires many workflows
    Approve {
        /// Name of the source
        name: String,
    },
}

impl Command {
    pub(crate) async fn run(self, session: &mut Session<'_>) -> Result<Exit, Error> {
        let client = session.client()?;
        match self {
            Self::History { name, page } => {
                let tips = client.tips(&name, page.limit, page.cursor.as_deref());
                session.show_page(&tips.await?, history)?;
            }
            Self::List => session.show(&Page::all(client.sources().await?), table)?,
            Self::Show { name } => session.show(&client.source(&name).await?, text)?,
            Self::Sync { name, wait } => {
                let source = client.sync_source(&name, wait).await?;
                session.show(&source, text)?;
                if wait && !is_good(&source) {
                    return Ok(Exit::Failed);
                }
            }
            Self::Approve { name } => {
                let held = client.source(&name).await?;
                let Some(tip) = held.tip.as_ref().filter(|_| held.is_held()) else {
                    return Err(Error::Usage {
                        what: format!("source `{name}` holds no commit"),
                        hint: "`everscan source show NAME` shows the state of a source",
                    });
                };
                let commit = tip.commit.clone();
                let request = ApproveSource { commit };
                let source = client.approve_source(&name, &request).await?;
                session.show(&source, text)?;
                if !is_good(&source) {
                    return Ok(Exit::Failed);
                }
            }
        }
        Ok(Exit::Succeeded)
    }
}

fn is_good(source: &Source) -> bool {
    let bad = |kind: &str, status: &str| {
        matches!(
            (kind, status),
            ("Fetched" | "Valid" | "Active", "false") | ("Valid", "unknown") | ("Stalled", "true")
        )
    };
    source.stale_files.is_empty()
        && !source
            .conditions
            .iter()
            .any(|condition| bad(&condition.kind, &condition.status))
}

fn table(page: &Page<Source>) -> String {
    let mut table = Table::new(&["NAME", "STATUS", "COMMIT", "CHECKED", "WORKFLOWS", "URL"]);
    for source in &page.items {
        table.row([
            source.name.clone(),
            standing(source),
            source
                .tip
                .as_ref()
                .map_or_else(|| "-".to_owned(), |tip| short_commit(&tip.commit)),
            time_or_dash(source.checked_at.as_ref()),
            source.active_workflows.to_string(),
            source.url.clone(),
        ]);
    }
    table.text()
}

fn history(page: &Page<Tip>) -> String {
    let mut table = Table::new(&["TIP", "COMMIT", "SEEN", "HISTORY", "AUTHOR", "SUMMARY"]);
    for tip in &page.items {
        let more = if tip.more_passed_over { "+" } else { "" };
        table.row([
            tip.number.to_string(),
            short_commit(&tip.commit),
            time(&tip.seen_at),
            match tip.passed_over.len() {
                _ if tip.history_rewritten => "rewritten".to_owned(),
                0 => "-".to_owned(),
                skipped => format!("{skipped}{more} skipped"),
            },
            tip.author.clone(),
            tip.summary.clone(),
        ]);
    }
    table.text()
}

fn standing(source: &Source) -> String {
    let is = |kind: &str, status: &str| {
        let found = source.condition(kind);
        found.filter(|condition| condition.status == status)
    };
    if let Some(condition) = is("Stalled", "true").or_else(|| is("Fetched", "false")) {
        return condition.reason.clone();
    }
    // Invalid files are counted below.
    let whole = ["tip_active", "tip_partly_active"];
    let active = source.condition("Active");
    if let Some(active) = active.filter(|active| !whole.contains(&active.reason.as_str())) {
        return active.reason.clone();
    }
    match source.stale_files.len() {
        0 if source.tip.is_none() => "not read yet".to_owned(),
        0 => match source.warnings.len() {
            0 => "ok".to_owned(),
            1 => "ok, 1 warning".to_owned(),
            count => format!("ok, {count} warnings"),
        },
        1 => "1 invalid file".to_owned(),
        count => format!("{count} invalid files"),
    }
}

fn text(source: &Source) -> String {
    let tip = source.tip.as_ref().map(|tip| {
        let commit = short_commit(&tip.commit);
        format!("{commit} {} ({})", tip.summary, tip.author)
    });
    let rewritten = source.tip.as_ref().filter(|tip| tip.history_rewritten);
    let rewritten = rewritten.map(|_| "rewritten: the previous tip is not an ancestor of this one");
    let mut text = Fields::new()
        .add("source", &source.name)
        .add("status", standing(source))
        .add("url", &source.url)
        .add_some("ref", source.reference.as_ref())
        .add("path", &source.path)
        .add("interval", format!("{} s", source.interval_seconds))
        .add_some("token_file", source.access.token_file.as_ref())
        .add_some("token_command", source.access.token_command.as_ref())
        .add_some("username", source.access.username.as_ref())
        .add_some("ca_file", source.access.ca_file.as_ref())
        .add_some("commit", tip)
        .add_some("history", rewritten)
        .add("checked", time_or_dash(source.checked_at.as_ref()))
        .add("workflows", source.active_workflows.to_string())
        .text();
    if !source.conditions.is_empty() {
        text.push('\n');
        text.push_str(&conditions(&source.conditions));
    }
    text.push_str(&warnings(&source.warnings));
    for file in &source.stale_files {
        text.push('\n');
        text.push_str(&stale(file));
    }
    text
}

/// Warnings, after a blank line.
pub(crate) fn warnings(warnings: &[Diagnostic]) -> String {
    let mut text = String::new();
    for warning in warnings {
        if text.is_empty() {
            text.push('\n');
        }
        text.push_str(&one_line(warning));
        text.push('\n');
    }
    text
}

fn conditions(conditions: &[Condition]) -> String {
    let mut table = Table::new(&["CONDITION", "STATUS", "SINCE", "REASON", "MESSAGE"]);
    for condition in conditions {
        table.row([
            condition.kind.clone(),
            condition.status.clone(),
            time(&condition.changed_at),
            condition.reason.clone(),
            condition.message.clone(),
        ]);
    }
    table.text()
}

/// An invalid file with its problems, and the revision that runs instead.
pub(crate) fn stale(file: &StaleFile) -> String {
    let instead = match &file.last_good {
        Some(revision) => format!(
            "the last good version goes on: revision {} ({})",
            revision.number,
            short_commit(&revision.commit)
        ),
        None if file.file == SETTINGS_FILE => "the rules of its last good version go on".to_owned(),
        None => "it has no good version yet".to_owned(),
    };
    let mut text = format!(
        "{} is invalid since {} ({}); {instead}\n",
        clean(&file.file),
        time(&file.since),
        short_commit(&file.commit)
    );
    for diagnostic in &file.diagnostics {
        text.push_str(&format!("  {}\n", one_line(diagnostic)));
    }
    text
}

/// `file:line:column: error[code]: message (hint: …)`. Editors can open this form.
fn one_line(diagnostic: &Diagnostic) -> String {
    let Diagnostic {
        file,
        line,
        column,
        code,
        message,
        hint,
        ..
    } = diagnostic;
    let severity = match diagnostic.severity {
        Severity::Error => "error",
        Severity::Warning => "warning",
    };
    let mut text = format!("{file}:{line}:{column}: {severity}[{code}]: {message}");
    if let Some(hint) = hint {
        text.push_str(&format!(" (hint: {hint})"));
    }
    clean(&text)
}
