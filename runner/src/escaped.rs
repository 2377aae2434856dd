//! Ends processes of jobs whose runner was killed together with the supervisors of their steps. Such processes still have the id
//! of their job in their environment, unless they changed it. A runner searches for them once, when it starts.

use std::collections::BTreeSet;
use std::os::unix::fs::MetadataExt as _;
use std::path::Path;

use rustix::process::{Pid, geteuid, getpid};
use tokio::time::Instant;
use uuid::Uuid;

use crate::environment::JOB_ID;
use crate::processes::{self, Process};

/// Ends every process of this user that has the id of one of the jobs in its environment. Processes that still run at `kill_at`
/// get SIGKILL.
pub(crate) async fn end(jobs: BTreeSet<Uuid>, kill_at: Instant) {
    if jobs.is_empty() {
        return;
    }
    let find = || {
        let left = processes::ids().into_iter();
        let left: Vec<_> = left.filter_map(|id| of_job(id, &jobs)).collect();
        (!left.is_empty()).then_some(left)
    };
    let ended = processes::end(find, kill_at).await;
    if ended > 0 {
        tracing::info!(ended, "ended processes of an earlier runner's jobs");
    }
}

/// The process with this id, if it belongs to one of the jobs. A process that has ended has no environment.
fn of_job(id: Pid, jobs: &BTreeSet<Uuid>) -> Option<Process> {
    let path = Path::new("/proc").join(id.as_raw_pid().to_string());
    let is_of_user = std::fs::metadata(&path).ok()?.uid() == geteuid().as_raw();
    // One of these processes may have started this runner.
    if !is_of_user || id == getpid() {
        return None;
    }
    let environment = std::fs::read(path.join("environ")).ok()?;
    let is_of_job = job_of(&environment).is_some_and(|job| jobs.contains(&job));
    is_of_job.then(|| processes::read(id)).flatten()
}

fn job_of(environment: &[u8]) -> Option<Uuid> {
    environment.split(|byte| *byte == 0).find_map(|entry| {
        let value = entry.strip_prefix(JOB_ID.as_bytes())?.strip_prefix(b"=")?;
        Uuid::try_parse_ascii(value).ok()
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_job_is_named_by_a_whole_entry() {
        let id = "0190e9a4-7b1c-7000-8000-000000000001";
        let job = Uuid::try_parse(id).unwrap();
        let entry = format!("PATH=/bin\0SERVICE_JOB_ID={id}\0A=b\0");
        assert_eq!(job_of(entry.as_bytes()), Some(job));
        for other in [
            format!("MY_SERVICE_JOB_ID={id}\0"),
            format!("SERVICE_JOB_ID={id}0\0"),
            format!("A=SERVICE_JOB_ID={id}\0"),
            "SERVICE_JOB_ID=\0".to_owned(),
            String::new(),
        ] {
            assert_eq!(job_of(other.as_bytes()), None, "{other}");
        }
    }
}
