//! Processes that left the group of their step (`setsid`) or outlived their runner. They still have the id of their job in
//! their environment, unless they took care to have another one, and end like the group and after it: SIGTERM, and SIGKILL for
//! what is still there when the grace is over. A job that is stopped has one grace in all.

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

/// A process of a job. Its descriptor never stands for another one that was given the same id.
struct Escaped {
    id: Pid,
    process: OwnedFd,
}

/// Ends every process of this user that carries the id of one of the jobs, until none is left. Whoever is there at
/// `kill_at` gets SIGKILL. Costs one look at the processes when there is none.
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
            tracing::warn!(?ids, "processes of a job survive SIGKILL");
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

/// A process may fork while it is looked for: who comes to be behind the look is found by the next.
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
    // A runner that such a process has started in its place goes on.
    if !is_of_user || id == getpid() {
        return None;
    }
    // Opened before it is looked at: should the id be given to another process in between, a signal reaches none.
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
        // One that has ended meanwhile is not found by the next look, and one that cannot be signalled is told at the end.
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
