//! `everscan job context`: what the expressions of a job read.

use crate::error::Error;
use crate::exit::Exit;
use crate::selected_job::SelectedJob;
use crate::session::Session;

/// Prints the values as JSON, as `everscan expr eval --context` takes them.
pub(super) async fn run(job: SelectedJob, session: &mut Session<'_>) -> Result<Exit, Error> {
    let (client, id) = session.client_and_job(&job).await?;
    let found = client.job_context(id).await?;
    session.show_json(&found.context)?;
    let secrets: Vec<String> = found
        .secrets
        .iter()
        .map(|(name, version)| format!("{name} (version {version})"))
        .collect();
    if !secrets.is_empty() {
        let secrets = secrets.join(", ");
        session
            .terminal
            .say(&format!("it also named secrets: {secrets}"));
    }
    Ok(Exit::Succeeded)
}
