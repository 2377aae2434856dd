use std::time::Duration;

use clap::Args;
use wire::{Amount, PruneRequest, Pruned, PrunedScan};

use crate::clock::parse_duration;
use crate::error::Error;
use crate::exit::Exit;
use crate::session::Session;
use crate::table::{Table, bytes};

#[derive(Debug, Args)]
pub(crate) struct Prune {
    /// Workflow: its name, SOURCE/NAME, or id
    workflow: String,
    /// Remove nothing, only show what would be removed
    #[arg(long, env = "SERVICE_DRY_RUN")]
    dry_run: bool,
    /// Keep this many finished jobs of the workflow
    #[arg(long, env = "SERVICE_JOBS", value_name = "NUMBER")]
    jobs: Option<u64>,
    /// Keep jobs this long after their end, as in 12h, 30d or 8w
    #[arg(long, env = "SERVICE_AGE", value_name = "DURATION", value_parser = parse_duration)]
    age: Option<Duration>,
    /// Keep this many bytes of logs and artifacts of the workflow, as in 500MiB or 10GiB
    #[arg(long, env = "SERVICE_BYTES", value_name = "SIZE", value_parser = workflow::parse_size)]
    bytes: Option<u64>,
}

impl Prune {
    pub(crate) async fn run(self, session: &mut Session<'_>) -> Result<Exit, Error> {
        let request = PruneRequest {
            dry_run: self.dry_run,
            jobs: self.jobs,
            age_seconds: self.age.map(|age| age.as_secs()),
            bytes: self.bytes,
        };
        let client = session.client()?;
        let pruned = client.prune(&self.workflow, &request).await?;
        session.show(&pruned, table)?;
        session.report(&summary(&pruned));
        Ok(Exit::Succeeded)
    }
}

fn table(pruned: &Pruned) -> String {
    let removed = if pruned.dry_run {
        "WOULD GO"
    } else {
        "REMOVED"
    };
    let mut table = Table::new(&[
        "SCAN",
        removed,
        "BYTES",
        "KEPT",
        "BYTES",
        "NEWEST SUCCESSES",
        "JUST ENDED",
        "UNREADABLE",
        "UNFINISHED",
    ]);
    for scan in &pruned.scans {
        table.row([
            scan.scan.clone(),
            scan.removed.jobs.to_string(),
            bytes(scan.removed.bytes),
            scan.kept.jobs.to_string(),
            bytes(scan.kept.bytes),
            scan.newest_successes.to_string(),
            scan.just_ended.to_string(),
            scan.unreadable.to_string(),
            scan.unfinished.to_string(),
        ]);
    }
    table.text()
}

fn summary(pruned: &Pruned) -> String {
    let policy = &pruned.policy;
    if policy.jobs.is_none() && policy.age_seconds.is_none() && policy.bytes.is_none() {
        return "no policy applies to the workflow, so everything is kept; give --jobs, --age or --bytes".to_owned();
    }
    let all = pruned
        .scans
        .iter()
        .fold(Amount::default(), |sum, scan| Amount {
            jobs: sum.jobs + scan.removed.jobs,
            bytes: sum.bytes + scan.removed.bytes,
        });
    let (jobs, size) = (all.jobs, bytes(all.bytes));
    let verb = if pruned.dry_run { "would be" } else { "are" };
    let mut text = format!("{jobs} jobs with {size} {verb} removed");
    let mut add = |condition: bool, sentence: &str| {
        if condition {
            text.push_str("; ");
            text.push_str(sentence);
        }
    };
    let any = |count: fn(&PrunedScan) -> u64| pruned.scans.iter().any(|scan| count(scan) > 0);
    add(pruned.has_more, "there are more: run it again");
    add(
        any(|scan| scan.just_ended),
        "jobs that have just ended stay for two minutes, since their runners may add to their logs: run it again then",
    );
    add(
        any(|scan| scan.unreadable),
        "jobs whose records cannot be read stay: `everscand fsck` says more",
    );
    add(
        pruned.age_waits,
        "nothing goes by its age for now: the daemon's clock jumped less than an hour ago",
    );
    text
}
