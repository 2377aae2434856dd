use clap::Args;
use wire::{Scan, ScanInput, Workflow};

use crate::commands::source;
use crate::error::Error;
use crate::exit::Exit;
use crate::session::Session;
use crate::suspension;
use crate::table::{Fields, Table, short_commit, time};

#[derive(Debug, Args)]
pub(crate) struct Show {
    /// Workflow: its name, SOURCE/NAME, or id
    workflow: String,
}

impl Show {
    pub(crate) async fn run(self, session: &mut Session<'_>) -> Result<Exit, Error> {
        let workflow = session.client()?.workflow(&self.workflow).await?;
        session.show(&workflow, text)?;
        Ok(Exit::Succeeded)
    }
}

fn text(workflow: &Workflow) -> String {
    let revision = &workflow.revision;
    let mut text = Fields::new()
        .add("workflow", format!("{}/{}", workflow.source, workflow.name))
        .add("id", workflow.id.to_string())
        .add_some("title", workflow.title.as_ref())
        .add_some("description", workflow.description.as_ref())
        .add("state", state(workflow))
        .add_some(
            "suspended",
            workflow.suspended.as_ref().map(suspension::since),
        )
        .add_some("resumed", workflow.resumed.as_ref().map(suspension::at))
        .add_some("suspended scans", some_names(&workflow.suspended_scans))
        .add(
            "revision",
            format!(
                "{} ({}), {}",
                revision.number,
                short_commit(&revision.commit),
                match &revision.activated_at {
                    Some(at) => format!("active since {}", time(at)),
                    None => "which cannot be read".to_owned(),
                }
            ),
        )
        .text();
    text.push('\n');
    text.push_str(&scans(&workflow.scans));
    text.push_str(&descriptions(&workflow.scans));
    text.push_str(&source::warnings(&workflow.warnings));
    if let Some(file) = &workflow.stale {
        text.push('\n');
        text.push_str(&source::stale(file));
    }
    text
}

fn some_names(names: &[String]) -> Option<String> {
    (!names.is_empty()).then(|| names.join(", "))
}

fn state(workflow: &Workflow) -> String {
    match &workflow.retired {
        Some(why) => format!("{}: {}", workflow.state, why.message),
        None => workflow.state.clone(),
    }
}

fn scans(scans: &[Scan]) -> String {
    let mut table = Table::new(&["SCAN", "CRON", "EXPR", "INPUTS", "STEPS", "ARTIFACTS"]);
    for scan in scans {
        let dash = |text: Option<&String>| text.cloned().unwrap_or_else(|| "-".to_owned());
        table.row([
            scan.name.clone(),
            dash(scan.cron.as_ref()),
            dash(scan.expr.as_ref()),
            scan.inputs
                .as_deref()
                .map_or_else(|| "-".to_owned(), inputs),
            scan.steps.to_string(),
            scan.artifacts.join(", "),
        ]);
    }
    table.text()
}

/// The inputs that have a description, after a blank line.
fn descriptions(scans: &[Scan]) -> String {
    let mut table = Table::new(&["SCAN", "INPUT", "DESCRIPTION"]);
    let mut is_empty = true;
    for scan in scans {
        for input in scan.inputs.iter().flatten() {
            if let Some(text) = &input.description {
                table.row([scan.name.clone(), input.key.clone(), text.clone()]);
                is_empty = false;
            }
        }
    }
    if is_empty {
        return String::new();
    }
    format!("\n{}", table.text())
}

/// The declared inputs. An asterisk marks the required ones.
fn inputs(inputs: &[ScanInput]) -> String {
    let shown: Vec<_> = inputs
        .iter()
        .map(|input| format!("{}{}", input.key, if input.required { "*" } else { "" }))
        .collect();
    if shown.is_empty() {
        "none".to_owned()
    } else {
        shown.join(", ")
    }
}
