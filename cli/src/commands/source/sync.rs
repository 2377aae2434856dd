//! `everscan source sync`.

use clap::Args;
use wire::Source;

use super::show::text;
use crate::error::Error;
use crate::exit::Exit;
use crate::session::Session;

#[derive(Debug, Args)]
pub(crate) struct Sync {
    /// Name of the source
    name: String,
    /// Wait until the look is over, and fail when the source cannot be read or holds invalid files
    #[arg(long, env = "SERVICE_WAIT")]
    wait: bool,
}

impl Sync {
    pub(crate) async fn run(self, session: &mut Session<'_>) -> Result<Exit, Error> {
        let client = session.client()?;
        let source = client.sync_source(&self.name, self.wait).await?;
        session.show(&source, text)?;
        Ok(if self.wait && !is_good(&source) {
            Exit::Failed
        } else {
            Exit::Succeeded
        })
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
