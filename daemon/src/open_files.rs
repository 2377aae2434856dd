//! The limit of open files. Connections are files, too, and must leave some for all other uses.

use rustix::process::{Resource, getrlimit, setrlimit};

use crate::error::Error;
use crate::limits::{FILES_OF_A_CONNECTION, LEAST_OPEN_FILES, MOST_OPEN_FILES, RESERVED_FILES};

/// Raises the soft limit up to the hard limit. Returns how many connections fit besides `others`, without using the reserve.
pub(crate) fn raise_limit(others: usize) -> Result<usize, Error> {
    let mut limit = getrlimit(Resource::Nofile);
    let hard = limit.maximum.unwrap_or(u64::MAX);
    let soft = limit.current.unwrap_or(u64::MAX);
    let target = hard.min(MOST_OPEN_FILES);
    let mut open_files = soft;
    if soft < target {
        limit.current = Some(target);
        match setrlimit(Resource::Nofile, limit) {
            Ok(()) => open_files = target,
            Err(error) => tracing::warn!(%error, "the limit of open files cannot be raised"),
        }
    }
    let limit = open_files.saturating_sub(others as u64);
    connections(limit).ok_or(Error::OpenFiles { limit: open_files })
}

/// How many connections fit into this many open files. None if the number is too small for a daemon.
fn connections(open_files: u64) -> Option<usize> {
    if open_files < LEAST_OPEN_FILES {
        return None;
    }
    let connections = (open_files - RESERVED_FILES) / FILES_OF_A_CONNECTION;
    Some(usize::try_from(connections).unwrap_or(usize::MAX))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn connections_leave_files_for_everything_else() {
        assert_eq!(connections(0), None);
        assert_eq!(connections(LEAST_OPEN_FILES - 1), None);
        assert_eq!(connections(1_024), Some(384));
        assert!(connections(MOST_OPEN_FILES).is_some_and(|some| some >= 12_000));
        assert!(connections(u64::MAX).is_some());
    }
}
