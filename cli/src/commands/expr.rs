//! `everscan expr`: evaluates expressions with the code that the daemon and the runner use.

use std::collections::BTreeMap;
use std::path::PathBuf;

use clap::{Args, Subcommand};
use serde::Serialize;
use serde_json::Value;
use wire::{Clause, ScanRead};
use workflow::{Context, Explanation, Expression, Sandbox, Site, excerpts};

use crate::clause::{of_explanation, scan_line, scan_read, tree};
use crate::error::Error;
use crate::exit::Exit;
use crate::limits;
use crate::reading::read_given;
use crate::session::Session;

#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// Evaluate an expression on values from a file
    Eval(Eval),
}

impl Command {
    pub(crate) fn run(self, session: &mut Session<'_>) -> Result<Exit, Error> {
        match self {
            Self::Eval(command) => command.run(session),
        }
    }
}

#[derive(Debug, Args)]
pub(crate) struct Eval {
    /// Expression in CEL, as one argument: 'scans.build.has_news()'
    #[arg(value_name = "EXPR", allow_hyphen_values = true)]
    expression: String,
    /// File with the values that it reads, in the form of `context` in a job's job.json; - is standard input
    #[arg(long, env = "SERVICE_CONTEXT", value_name = "FILE")]
    context: PathBuf,
    /// Also show the value of each part of a condition, and which jobs it read
    #[arg(long, env = "SERVICE_EXPLAIN")]
    explain: bool,
}

#[derive(Debug, Serialize)]
struct Explained {
    /// Absent when the expression failed.
    #[serde(skip_serializing_if = "Option::is_none")]
    value: Option<Value>,
    clause: Clause,
    /// The scans that the expression names.
    scans: BTreeMap<String, ScanRead>,
}

impl Eval {
    fn run(self, session: &mut Session<'_>) -> Result<Exit, Error> {
        let source = self.expression.as_str();
        let expression =
            Expression::parse(source, Site::Question).map_err(|error| Error::Refused {
                excerpts: excerpts("EXPR", source, error.faults()),
            })?;
        let text = read_given(&self.context, limits::CONTEXT_FILE)?;
        let context = Context::read(&text).map_err(|source| Error::NoContext {
            path: self.context.clone(),
            source,
        })?;
        let sandbox = Sandbox::shared().map_err(|source| Error::Engine { source })?;
        if self.explain {
            let explanation = sandbox.explain(&expression, &context)?;
            return explain(session, &expression, &context, explanation);
        }
        let value = json(&sandbox.evaluate(&expression, &context)?)?;
        session.show_json(&value)?;
        Ok(Exit::Succeeded)
    }
}

fn json(value: &workflow::Value) -> Result<Value, Error> {
    if value.fits_json() {
        Ok(value.to_json())
    } else {
        Err(Error::NoJson)
    }
}

fn explain(
    session: &mut Session<'_>,
    expression: &Expression,
    context: &Context,
    explanation: Explanation,
) -> Result<Exit, Error> {
    let result = match &explanation.result {
        Ok(value) => json(value),
        Err(failure) => Err(failure.clone().into()),
    };
    let explained = Explained {
        value: result.as_ref().ok().cloned(),
        clause: of_explanation(explanation),
        scans: scans_read(expression, context),
    };
    session.show(&explained, text)?;
    result.map(|_| Exit::Succeeded)
}

/// The facts in the context about each scan that the expression names.
fn scans_read(expression: &Expression, context: &Context) -> BTreeMap<String, ScanRead> {
    context
        .narrowed(expression.references())
        .scans
        .into_iter()
        .map(|(name, history)| (name, scan_read(history)))
        .collect()
}

fn text(explained: &Explained) -> String {
    let value = explained.value.as_ref();
    let mut text = value.map_or_else(String::new, |value| format!("{value:#}\n"));
    text.push_str(&tree(&explained.clause, 0));
    for (name, read) in &explained.scans {
        text.push_str(&scan_line(name, read));
        text.push('\n');
    }
    text
}
