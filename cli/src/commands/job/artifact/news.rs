//! `everscan job artifact news`: the new data for a step. It reads the frozen context of its job, so it uses the same success as
//! the expressions of the job, even if the step waits long.

use clap::Args;
use client::Client;
use uuid::Uuid;
use workflow::{Context, ScanName};

use super::lines::{self, Fetched};
use crate::error::Error;
use crate::exit::Exit;
use crate::selected_job::SelectedJob;
use crate::session::Session;

#[derive(Debug, Args)]
pub(crate) struct News {
    #[command(flatten)]
    job: SelectedJob,
    /// Scan that has the artifact
    #[arg(long, env = "SERVICE_SCAN", value_name = "SCAN")]
    scan: ScanName,
    /// Name of the artifact; NAME also finds NAME.zip
    #[arg(
        long,
        short,
        visible_alias = "artifact-name",
        env = "SERVICE_ARTIFACT",
        value_name = "NAME"
    )]
    artifact: String,
    /// Print only lines of this file of the artifact; without it, lines of all text files
    #[arg(long, env = "SERVICE_FILE", value_name = "FILE")]
    file: Option<String>,
    /// End with 3 if a line is printed
    #[arg(long, env = "SERVICE_EXIT_CODE")]
    exit_code: bool,
}

impl News {
    pub(crate) async fn run(self, session: &mut Session<'_>) -> Result<Exit, Error> {
        let (client, id) = session.client_and_job(&self.job).await?;
        let context = client.job_context(id).await?.context;
        let context: Context = serde_json::from_value(context).map_err(strange)?;
        let Self { scan, artifact, .. } = &self;
        let asked = context.scans.get(scan.as_str());
        let Some((history, news)) = asked.and_then(|it| Some((it, it.news.as_ref()?))) else {
            return Err(Error::NotAsked {
                scan: scan.to_string(),
                expression: expression(scan, artifact),
            });
        };
        let newest = history.newest_success_ids.first();
        let Some((newest, found)) = newest.zip(history.newest_successes.first()) else {
            let text = format!("scan {scan} has not succeeded yet: no news");
            session.report(&text);
            return Ok(Exit::Succeeded);
        };
        let processed = news.processed.as_ref();
        let is_known = |name: &str| {
            let is_processed = processed.is_some_and(|it| it.artifacts.contains_key(name));
            is_processed || found.contains_key(name) || news.declared.iter().any(|it| it == name)
        };
        let zip = format!("{artifact}.zip");
        let artifact = if !is_known(artifact) && is_known(&zip) {
            &zip
        } else {
            artifact
        };
        let processed = processed.filter(|it| it.artifacts.contains_key(artifact));
        if !found.contains_key(artifact) {
            let there: Vec<&str> = found.keys().map(String::as_str).collect();
            let there = match there.as_slice() {
                [] => "none".to_owned(),
                names => names.join(", "),
            };
            let text = format!(
                "the newest success of {scan}, job {newest}, has no artifact {artifact}: no news; it has: {there}"
            );
            // A typing error in the name must not lose the news.
            if processed.is_none() && !news.declared.contains(artifact) {
                return Err(Error::Usage {
                    what: text,
                    hint: "`artifacts` of that scan does not name it either, and what was processed did not have it",
                });
            }
            session.report(&text);
            return Ok(Exit::Succeeded);
        }
        if !history.has_news(Some(artifact)) {
            return Ok(Exit::Succeeded);
        }
        let newest = newest.parse().map_err(strange)?;
        let newer = lines::fetch(session, &client, newest, artifact).await?;
        let older = match processed {
            Some(processed) => {
                let processed = processed.id.parse().map_err(strange)?;
                fetch_processed(session, &client, processed, artifact).await?
            }
            None => None,
        };
        let printed = lines::print_new(session.terminal, newer, older, self.file.as_deref())?;
        Ok(if self.exit_code && printed > 0 {
            Exit::News
        } else {
            Exit::Succeeded
        })
    }
}

/// Fetches the processed artifact, unless it is gone.
async fn fetch_processed(
    session: &mut Session<'_>,
    client: &Client,
    job: Uuid,
    artifact: &str,
) -> Result<Option<Fetched>, Error> {
    match lines::fetch(session, client, job, artifact).await {
        Ok(fetched) => Ok(Some(fetched)),
        Err(Error::Client(error)) if matches!(error.status(), Some(404 | 410)) => {
            session.report(&format!(
                "warning: what was processed is gone, so every line counts as news: {error}"
            ));
            Ok(None)
        }
        Err(error) => Err(error),
    }
}

/// The expression that starts a scan when there is news.
fn expression(scan: &ScanName, artifact: &str) -> String {
    let scan = if scan.is_dotted() {
        format!("scans.{scan}")
    } else {
        format!("scans[\"{scan}\"]")
    };
    format!("{scan}.has_news('{artifact}')")
}

fn strange(error: impl std::fmt::Display) -> Error {
    Error::StrangeContext {
        reason: error.to_string(),
    }
}
