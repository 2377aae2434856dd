//! The topics of live updates. A region of a page names its topics in `data-live`, and the daemon sends changed
//! topics on `/live`. A topic has no spaces. A topic that ends with `/*` matches all topics with that prefix.

use percent_encoding::utf8_percent_encode;
use uuid::Uuid;

use crate::links::IN_A_SEGMENT;

pub const JOBS: &str = "job/*";
/// Any scan. It changes when a job of it is made, claimed or ended, or when its workflow has a new revision.
pub const SCANS: &str = "scan/*";
pub const SOURCES: &str = "source/*";
pub const RUNNERS: &str = "runner/*";
/// Any condition.
pub const CONDITIONS: &str = "condition";
/// Any attempt to send a message.
pub const DELIVERIES: &str = "delivery";

pub fn job(id: Uuid) -> String {
    format!("job/{id}")
}

pub fn scan(workflow: Uuid, scan: &str) -> String {
    format!(
        "scan/{workflow}/{}",
        utf8_percent_encode(scan, IN_A_SEGMENT)
    )
}

/// All scans of a workflow.
pub fn workflow(workflow: Uuid) -> String {
    format!("scan/{workflow}/*")
}

pub fn source(name: &str) -> String {
    format!("source/{}", utf8_percent_encode(name, IN_A_SEGMENT))
}

/// What a callback server has heard.
pub fn callback(id: &str) -> String {
    format!("callback/{id}")
}

pub fn runner(id: Uuid) -> String {
    format!("runner/{id}")
}
