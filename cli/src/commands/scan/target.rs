//! How a command line names the scan that `scan dispatch` starts.

use clap::error::ErrorKind;
use clap::{ArgMatches, Args, Command, FromArgMatches};
use client::Client;
use client::settings::is_typed;
use wire::ErrorCode;

use crate::error::Error;

/// A scan named by arguments, by flags, or in part by the environment of a step.
#[derive(Debug)]
pub(super) struct Target {
    workflow: Option<String>,
    scan: Option<String>,
}

#[derive(Debug, Args)]
struct Flags {
    /// Workflow: its name, SOURCE/NAME, or id
    #[arg(value_name = "WORKFLOW")]
    first: Option<String>,
    /// Name of the scan; the first argument if --workflow is given
    #[arg(value_name = "SCAN")]
    second: Option<String>,
    /// Workflow; in a step that names only the scan, its own when left out
    #[arg(long, short, env = "SERVICE_WORKFLOW")]
    workflow: Option<String>,
    /// Name of the scan; in a step that names only the workflow, its own when left out
    #[arg(long, short, env = "SERVICE_SCAN")]
    scan: Option<String>,
}

/// The scan to start.
pub(super) struct Names {
    pub(super) workflow: String,
    pub(super) scan: String,
    /// The workflow of the step, if the step gave the scan its own name. `workflow` must be another one.
    pub(super) other_than: Option<String>,
}

impl Target {
    /// The workflow and the scan. A step has its own in variables, for the one that is not named. If that gives its own scan, it
    /// is an error: the step would start itself for ever.
    pub(super) fn names(self, variable: impl Fn(&str) -> Option<String>) -> Result<Names, Error> {
        let missing = |what: &str| Error::Usage {
            what: format!("no {what} is named"),
            hint: "write `everscan scan dispatch WORKFLOW SCAN`; a step may name one with -w or -s, and the other is its own",
        };
        let own_workflow = variable("SERVICE_WORKFLOW_ID");
        let own_scan = variable("SERVICE_SCAN_NAME");
        let (workflow, scan, other_than) = match (self.workflow, self.scan) {
            (None, None) => return Err(missing("scan")),
            (None, scan) if scan == own_scan => return Err(own()),
            (None, Some(scan)) => (own_workflow.ok_or_else(|| missing("workflow"))?, scan, None),
            (Some(workflow), None) => {
                let scan = own_scan.ok_or_else(|| missing("scan"))?;
                (workflow, scan, own_workflow)
            }
            (Some(workflow), Some(scan)) => (workflow, scan, None),
        };
        Ok(Names {
            workflow,
            scan,
            other_than,
        })
    }
}

impl Names {
    /// Looks up the workflow if its scan has the name of the step's own.
    pub(super) async fn verify(&self, client: &Client) -> Result<(), Error> {
        let Some(own_id) = &self.other_than else {
            return Ok(());
        };
        if self.workflow != *own_id {
            match client.workflow(&self.workflow).await {
                Ok(found) if found.id.to_string() != *own_id => return Ok(()),
                Err(error) if error.code() != Some(ErrorCode::Forbidden) => {
                    return Err(error.into());
                }
                // Without the right to look, it may be the own one.
                Ok(_) | Err(_) => {}
            }
        }
        Err(own())
    }
}

fn own() -> Error {
    Error::Usage {
        what: "this may be the step's own scan, which would start itself for ever".to_owned(),
        hint: "if it is meant, name both the workflow and the scan, with -w and -s",
    }
}

impl FromArgMatches for Target {
    /// Arguments name what no typed flag names, and win over the environment.
    fn from_arg_matches(matches: &ArgMatches) -> Result<Self, clap::Error> {
        let Flags {
            first,
            second,
            workflow,
            scan,
        } = Flags::from_arg_matches(matches)?;
        let mut arguments = [first, second].into_iter().flatten();
        let mut choose = |id, flag: Option<String>| match is_typed(matches, id) {
            true => flag,
            false => arguments.next().or(flag),
        };
        let target = Self {
            workflow: choose("workflow", workflow),
            scan: choose("scan", scan),
        };
        if let Some(needless) = arguments.next() {
            let text = format!(
                "{needless:?} is one name too many: the workflow and the scan are named already\n"
            );
            return Err(clap::Error::raw(ErrorKind::ArgumentConflict, text));
        }
        Ok(target)
    }

    fn update_from_arg_matches(&mut self, matches: &ArgMatches) -> Result<(), clap::Error> {
        *self = Self::from_arg_matches(matches)?;
        Ok(())
    }
}

impl Args for Target {
    fn augment_args(command: Command) -> Command {
        Flags::augment_args(command)
    }

    fn augment_args_for_update(command: Command) -> Command {
        Flags::augment_args_for_update(command)
    }
}
