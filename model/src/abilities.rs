//! What a job needs and a runner offers: labels, and capabilities of the runner's program. An exclusive runner takes
//! only jobs that need a label.

use workflow::Scan;

use crate::runner::Runner;
use crate::scope::Projects;

/// The runner's program can put files of the repository into the folder of a job.
pub const CHECKOUT: &str = "checkout";

/// The runner's program gives the steps of a job the token of this job.
pub const JOB_TOKEN: &str = "job_token";

/// The program gives the steps of a job the name of a callback server that its claim has minted.
pub const CALLBACK: &str = "callback";

/// The abilities that a runner has or a job needs.
#[derive(Debug, Clone, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct Abilities {
    /// Set by the operator.
    pub labels: Vec<String>,
    /// Reported by the runner's program when it starts.
    pub capabilities: Vec<String>,
    /// True for a runner that takes only jobs that need one of its labels. Always false for a job.
    pub exclusive: bool,
}

/// Which jobs a runner can take: those of its projects that need no other abilities.
#[derive(Debug, Clone, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct Reach {
    pub projects: Projects,
    pub abilities: Abilities,
}

impl Reach {
    pub fn of(runner: &Runner) -> Self {
        Self {
            projects: runner.projects.clone(),
            abilities: Abilities::of(runner),
        }
    }

    #[cfg(test)]
    pub(crate) fn labelled(labels: &[&str]) -> Self {
        let abilities = Abilities {
            labels: labels.iter().map(ToString::to_string).collect(),
            ..Abilities::default()
        };
        Self {
            projects: Projects::All,
            abilities,
        }
    }
}

impl Abilities {
    pub fn of(runner: &Runner) -> Self {
        Self {
            labels: runner.labels.clone(),
            capabilities: runner.capabilities.clone(),
            exclusive: runner.exclusive,
        }
    }

    /// The abilities that jobs of a scan need. Sorted, so that equal needs compare as equal.
    pub(crate) fn needed_by(scan: &Scan) -> Self {
        let mut labels = scan.runs_on.clone();
        labels.sort();
        Self {
            labels,
            capabilities: needed_capabilities(scan).map(str::to_owned).collect(),
            exclusive: false,
        }
    }

    /// True if a runner with these abilities can run a job that needs `needed`.
    pub(crate) fn cover(&self, needed: &Self) -> bool {
        let has = |have: &[String], needed: &[String]| needed.iter().all(|one| have.contains(one));
        has(&self.labels, &needed.labels)
            && has(&self.capabilities, &needed.capabilities)
            && self.allows_labels(&needed.labels)
    }

    /// False if the runner is exclusive and the job needs no label.
    pub(crate) const fn allows_labels(&self, labels: &[String]) -> bool {
        !self.exclusive || !labels.is_empty()
    }
}

pub(crate) fn needed_capabilities(scan: &Scan) -> impl Iterator<Item = &'static str> {
    let checkout = scan.checkout.is_some().then_some(CHECKOUT);
    let callback = scan.callback.is_some().then_some(CALLBACK);
    callback.into_iter().chain(checkout)
}
