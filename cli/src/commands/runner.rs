use clap::Subcommand;
use wire::{CreateRegistration, LimitRunner, Page, Registration, Runner};

use crate::error::Error;
use crate::exit::Exit;
use crate::session::Session;
use crate::table::{Fields, Table, short_job, time, time_or_dash};

#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// Remove a runner; its running jobs fail
    ///
    /// The runner stops these jobs as soon as it learns of its removal, and exits. Their retries wait at least two
    /// minutes, in case it cannot be reached.
    Delete {
        /// Name or id of the runner
        runner: String,
    },
    /// Let a runner take only jobs of these projects
    ///
    /// Its running jobs continue. Steps of other projects may have read its session token before; `register-token` and
    /// `everscan-runner configure --replace` give it a new one.
    Limit {
        /// Name or id of the runner
        runner: String,
        /// A project of the runner; may be repeated
        #[arg(long, env = "SERVICE_PROJECT", required = true, value_delimiter = ',')]
        project: Vec<String>,
    },
    /// List runners
    List,
    /// Make a token with which one runner can register
    RegisterToken {
        /// A project of the runner; may be repeated; without it, all projects in which you may register runners
        #[arg(long, env = "SERVICE_PROJECT", value_delimiter = ',')]
        project: Vec<String>,
        /// A label of the runner; may be repeated; without it, the runner chooses its labels
        #[arg(long, env = "SERVICE_LABEL", value_delimiter = ',')]
        label: Vec<String>,
    },
    /// Show a runner and the jobs that take its slots
    Show {
        /// Name or id of the runner
        runner: String,
    },
}

impl Command {
    pub(crate) async fn run(self, session: &mut Session<'_>) -> Result<Exit, Error> {
        let client = session.client()?;
        match self {
            Self::Delete { runner } => {
                client.delete_runner(&runner).await?;
                session.report(&format!("runner {runner} is removed"));
            }
            Self::List => session.show(&Page::all(client.runners().await?), table)?,
            Self::Limit { runner, project } => {
                let limit = LimitRunner { projects: project };
                let limited = client.limit_runner(&runner, &limit).await?;
                session.report(&format!(
                    "runner {} serves {}",
                    limited.name,
                    projects_in_words(limited.projects.as_deref())
                ));
            }
            Self::RegisterToken { project, label } => {
                let some = |names: Vec<String>| (!names.is_empty()).then_some(names);
                let asked = CreateRegistration {
                    projects: some(project),
                    labels: some(label),
                };
                let registration = client.create_registration(&asked).await?;
                check_limits(&asked, &registration)?;
                session.show(&registration, |registration| {
                    format!("{}\n", registration.token)
                })?;
                session.report(&format!(
                    "good for one `everscan-runner configure` until {}, for a runner of {}",
                    time(&registration.expires_at),
                    projects_in_words(registration.projects.as_deref())
                ));
            }
            Self::Show { runner } => session.show(&client.runner(&runner).await?, show)?,
        }
        Ok(Exit::Succeeded)
    }
}

/// An older daemon ignores projects and labels. Its token would register a runner of all projects.
fn check_limits(asked: &CreateRegistration, made: &Registration) -> Result<(), Error> {
    let ignored = if asked.projects.is_some() && made.projects.is_none() {
        "projects"
    } else if asked.labels.is_some() && made.labels.is_none() {
        "labels"
    } else {
        return Ok(());
    };
    Err(Error::LimitIgnored { ignored })
}

fn projects_in_words(projects: Option<&[String]>) -> String {
    match projects {
        None => "all projects".to_owned(),
        Some([one]) => format!("project {one}"),
        Some(several) => format!("projects {}", several.join(", ")),
    }
}

fn table(page: &Page<Runner>) -> String {
    let mut table = Table::new(&[
        "NAME", "STATE", "SLOTS", "PROJECTS", "LABELS", "VERSION", "HEARD", "ID",
    ]);
    for runner in &page.items {
        table.row([
            runner.name.clone(),
            state(runner).to_owned(),
            slots(runner),
            projects(runner, ","),
            labels(runner, ","),
            runner.version.clone(),
            time_or_dash(runner.heard_at.as_ref()),
            runner.id.to_string(),
        ]);
    }
    table.text()
}

fn projects(runner: &Runner, separator: &str) -> String {
    let Some(projects) = &runner.projects else {
        return "all".to_owned();
    };
    let others = runner.has_other_projects.then(|| "others".to_owned());
    let projects: Vec<String> = projects.iter().cloned().chain(others).collect();
    projects.join(separator)
}

fn projects_of_one(runner: &Runner) -> String {
    match runner.projects {
        Some(_) => projects(runner, ", "),
        None => "serves all projects, also future ones".to_owned(),
    }
}

fn labels(runner: &Runner, separator: &str) -> String {
    let labels = runner.labels.join(separator);
    if runner.exclusive {
        format!("{labels} (exclusive)")
    } else {
        labels
    }
}

fn show(runner: &Runner) -> String {
    let heard = match &runner.heard_at {
        Some(at) => time(at),
        None => "not since the daemon started".to_owned(),
    };
    let mut text = Fields::new()
        .add("runner", &runner.name)
        .add("id", runner.id.to_string())
        .add("state", state(runner))
        .add("heard", heard)
        .add("slots", slots(runner))
        .add("projects", projects_of_one(runner))
        .add("labels", labels(runner, ", "))
        .add("version", &runner.version)
        .add("capabilities", runner.capabilities.join(", "))
        .add("registered", time(&runner.registered_at))
        .text();
    if runner.gives_its_own_token() {
        text.push_str(
            "\nIts program gives steps the SERVICE_TOKEN of its own environment, if it has one, instead of a token of their job. \
             Update it.\n",
        );
    }
    let mut jobs = Table::new(&["JOB", "WORKFLOW", "SCAN", "STATE", "STARTED"]);
    for job in &runner.jobs {
        jobs.row([
            short_job(&job.id),
            format!("{}/{}", job.workflow.source, job.workflow.name),
            job.scan.clone(),
            if job.state.is_terminal() {
                format!("{}, still held", job.state.as_str())
            } else {
                job.state.as_str().to_owned()
            },
            time_or_dash(job.started_at.as_ref()),
        ]);
    }
    if !jobs.is_empty() {
        text.push('\n');
        text.push_str(&jobs.text());
    }
    let hidden = runner.taken.saturating_sub(runner.jobs.len() as u64);
    if hidden > 0 {
        text.push_str(&format!("\nother jobs that take its slots: {hidden}\n"));
    }
    text
}

const fn state(runner: &Runner) -> &'static str {
    if runner.connected {
        "connected"
    } else {
        "not connected"
    }
}

fn slots(runner: &Runner) -> String {
    format!("{} of {} taken", runner.taken, runner.capacity)
}
