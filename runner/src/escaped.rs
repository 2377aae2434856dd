//! Ends processes that left the group of their step (`setsid`) or outlived their runner. They still have the id of their
//! job in their environment, unless they changed it. They end like the group, and after it: SIGTERM first, and SIGKILL
//! after the grace period. A stopped job has one grace period for both.

use std::collections::BTreeSet;
use std::fs::DirEntry;
use std::os::fd::OwnedFd;
use std::os::unix::fs::MetadataExt as _;

use rustix::process::{Pid, PidfdFlags, Signal, geteuid, getpid, pidfd_open, pidfd_send_signal};
use tokio::task::spawn_blocking;
use tokio::time::{Instant, sleep};
use uuid::Uuid;

use crate::environment::JOB_ID;
use crate::limits;

/// A process of a job. The descriptor never refers to a later process with the same id.
struct Escaped {
    id: Pid,
    process: OwnedFd,
}

/// Ends every process of this user that has the id of one of the jobs in its environment. Those that are left at
/// `kill_at` get SIGKILL. If there is none, this costs one look at the list of processes.
pub(crate) async fn end(jobs: BTreeSet<Uuid>, kill_at: Instant) {
    if jobs.is_empty() {
        return;
    }
    let give_up_at = kill_at.max(Instant::now()) + limits::AFTER_KILL;
    let mut asked = BTreeSet::new();
    let mut pause = limits::FIRST_LOOK;
    loop {
        let left = look(&jobs).await;
        if left.is_empty() {
            return;
        }
        let now = Instant::now();
        if now >= give_up_at {
            let ids: Vec<_> = left.iter().map(|one| one.id.as_raw_nonzero()).collect();
            tracing::warn!(?ids, "processes of a job have survived SIGKILL");
            return;
        }
        for one in &left {
            if now >= kill_at {
                one.signal(Signal::KILL);
            } else if asked.insert(one.id.as_raw_nonzero()) {
                tracing::info!(
                    process = one.id.as_raw_nonzero(),
                    "ending a process that left its job"
                );
                one.signal(Signal::TERM);
            }
        }
        drop(left);
        sleep(pause).await;
        pause = (pause * 2).min(limits::LAST_LOOK);
    }
}

/// Finds the processes of the jobs. A process may fork during the search; the next search finds the new one.
async fn look(jobs: &BTreeSet<Uuid>) -> Vec<Escaped> {
    let jobs = jobs.clone();
    let looking = spawn_blocking(move || {
        let Ok(processes) = std::fs::read_dir("/proc") else {
            return Vec::new();
        };
        let processes = processes.flatten();
        processes
            .filter_map(|entry| of_job(&entry, &jobs))
            .collect()
    });
    looking.await.unwrap_or_default()
}

/// The process of an entry of `/proc`, when it belongs to one of the jobs. One that has ended has no environment.
fn of_job(entry: &DirEntry, jobs: &BTreeSet<Uuid>) -> Option<Escaped> {
    let id = Pid::from_raw(entry.file_name().to_str()?.parse().ok()?)?;
    let is_of_user = entry.metadata().ok()?.uid() == geteuid().as_raw();
    // This runner may itself have been started by such a process.
    if !is_of_user || id == getpid() {
        return None;
    }
    // Opened before its environment is read: a signal then cannot reach another process that got the same id.
    let process = pidfd_open(id, PidfdFlags::empty()).ok()?;
    let environment = std::fs::read(entry.path().join("environ")).ok()?;
    job_of(&environment)
        .is_some_and(|job| jobs.contains(&job))
        .then_some(Escaped { id, process })
}

/// The job that an environment names.
fn job_of(environment: &[u8]) -> Option<Uuid> {
    environment.split(|byte| *byte == 0).find_map(|entry| {
        let value = entry.strip_prefix(JOB_ID.as_bytes())?.strip_prefix(b"=")?;
        Uuid::try_parse_ascii(value).ok()
    })
}

impl Escaped {
    fn signal(&self, signal: Signal) {
        // If the process has ended, the next look does not find it. If it cannot be signalled, `end` warns at last.
        let _ = pidfd_send_signal(&self.process, signal);
    }
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
