//! Ends processes: SIGTERM first (with SIGCONT, for stopped processes), and SIGKILL after the grace period. The search is
//! repeated, because a process may fork while it is ended.

use std::collections::BTreeSet;
use std::path::Path;

use rustix::io::{Errno, Result};
use rustix::process::{
    Pid, PidfdFlags, Signal, getpid, kill_process, kill_process_group, pidfd_open,
};
use tokio::io::Interest;
use tokio::io::unix::AsyncFd;
use tokio::task::yield_now;
use tokio::time::{Instant, timeout_at};

use crate::limits;

#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Process {
    pub(crate) id: Pid,
    /// `None` if it is outside of this container.
    pub(crate) parent: Option<Pid>,
    pub(crate) group: Option<Pid>,
    pub(crate) session: Option<Pid>,
    /// The process has ended, and its parent has not waited for it.
    pub(crate) is_zombie: bool,
}

/// Ends the processes that `find` finds, until it returns `None`. Processes that still run at `kill_at` get SIGKILL. Returns how
/// many were signalled. Processes of other users are left alone.
pub(crate) async fn end(mut find: impl FnMut() -> Option<Vec<Process>>, kill_at: Instant) -> usize {
    let give_up_at = kill_at.max(Instant::now()) + limits::AFTER_KILL;
    let mut signalled = BTreeSet::new();
    let mut of_others = BTreeSet::new();
    while let Some(mut left) = find() {
        let now = Instant::now();
        if now >= give_up_at {
            break;
        }
        let kills = now >= kill_at;
        left.retain(|process| {
            let id = process.id.as_raw_pid();
            let sent = match (kills, signalled.contains(&id)) {
                (true, _) => process.kill(),
                // A stopped process gets the signal when it continues.
                (false, false) => kill_process(process.id, Signal::TERM)
                    .and_then(|()| kill_process(process.id, Signal::CONT)),
                (false, true) => Ok(()),
            };
            match sent {
                Ok(()) => signalled.insert(id),
                Err(Errno::PERM) => of_others.insert(id),
                // The process has ended.
                Err(_) => false,
            };
            !of_others.contains(&id)
        });
        if !of_others.is_empty() && left.iter().all(|process| process.is_zombie) {
            break;
        }
        if left.is_empty() {
            // A process changed its parent during the search.
            yield_now().await;
        }
        let until = if kills { give_up_at } else { kill_at };
        for process in left {
            if timeout_at(until, ended(process.id)).await.is_err() {
                break;
            }
        }
    }
    signalled.len()
}

async fn ended(id: Pid) -> std::io::Result<()> {
    let process = pidfd_open(id, PidfdFlags::empty())?;
    #[expect(
        deprecated,
        reason = "unsound only for files that are not owned; the other way is unsafe"
    )]
    let process = AsyncFd::with_interest(process, Interest::READABLE)?;
    process.readable().await.map(drop)
}

/// The children of this process that `is_root` selects, and all their descendants.
pub(crate) fn descendants(is_root: impl Fn(&Process) -> bool) -> Vec<Process> {
    let mut others: Vec<_> = ids().into_iter().filter_map(read).collect();
    let own = Some(getpid());
    let mut found: Vec<_> = others
        .extract_if(.., |process| process.parent == own && is_root(process))
        .collect();
    let mut next = 0;
    while let Some(parent) = found.get(next).map(|process| process.id) {
        found.extend(others.extract_if(.., |process| process.parent == Some(parent)));
        next += 1;
    }
    found
}

pub(crate) fn ids() -> Vec<Pid> {
    let Ok(processes) = std::fs::read_dir("/proc") else {
        return Vec::new();
    };
    let names = processes.flatten().map(|entry| entry.file_name());
    names.filter_map(|name| number(name.to_str()?)).collect()
}

/// A process or group as `/proc` writes it. Of a process that is ending, the kernel writes a group of -1.
fn number(text: &str) -> Option<Pid> {
    Pid::from_raw(text.parse().ok().filter(|number| *number > 0)?)
}

pub(crate) fn read(id: Pid) -> Option<Process> {
    let path = Path::new("/proc").join(id.as_raw_pid().to_string());
    let stat = std::fs::read(path.join("stat")).ok()?;
    Process::parse(id, &String::from_utf8_lossy(&stat))
}

impl Process {
    /// Reads a line of `/proc/<id>/stat`: `id (name) state parent group session …`. The name may have any characters.
    fn parse(id: Pid, stat: &str) -> Option<Self> {
        let (_, fields) = stat.rsplit_once(") ")?;
        let mut fields = fields.split(' ');
        let is_zombie = matches!(fields.next(), Some("Z" | "X"));
        let mut next = || number(fields.next()?);
        Some(Self {
            id,
            parent: next(),
            group: next(),
            session: next(),
            is_zombie,
        })
    }

    /// Kills the process and its group, so that a process that forks meanwhile cannot escape.
    fn kill(&self) -> Result<()> {
        let own = read(getpid()).and_then(|own| own.group);
        if let Some(group) = self.group.filter(|group| Some(*group) != own) {
            // Sending the signal to the process itself shows whether it could be reached.
            let _sent = kill_process_group(group, Signal::KILL);
        }
        kill_process(self.id, Signal::KILL)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_process_is_read_after_its_name() {
        let id = Pid::from_raw(7).unwrap();
        let process = Process {
            id,
            parent: Some(Pid::INIT),
            group: Pid::from_raw(42),
            session: Pid::from_raw(41),
            is_zombie: false,
        };
        let parse = |stat| Process::parse(id, stat);
        assert_eq!(parse("7 (a) b) S 1 42 41 0"), Some(process.clone()));
        let zombie = Process {
            is_zombie: true,
            ..process
        };
        assert_eq!(parse("7 (sh) Z 1 42 41 0"), Some(zombie));
        assert_eq!(parse(""), None);
        let ending = parse("7 (sh) X 0 -1 -1 0").unwrap();
        assert_eq!(
            (ending.parent, ending.group, ending.session),
            (None, None, None)
        );
    }

    #[test]
    fn this_process_is_found() {
        let own = read(getpid()).unwrap();
        assert_eq!(own.parent, rustix::process::getppid());
        assert!(ids().contains(&own.id));
    }
}
