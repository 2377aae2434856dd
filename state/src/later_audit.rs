//! Compares a backup with the audit log of a newer state folder, or with a copy of that log, to find credentials that
//! ended after the backup was taken. It needs no daemon and changes nothing.

use std::collections::HashSet;
use std::fs::{self, File};
use std::io::{BufRead as _, BufReader};
use std::path::{Path, PathBuf};

use chrono::NaiveDate;
use model::AuditKind;
use model::restored::Later;
use store::file::OpenError;
use store::look::{Look, Part, Role};
use store::{DiskError, Key};
use uuid::Uuid;

use crate::audit::AuditRecord;
use crate::fsck::each_line;
use crate::layout::RecordPlace;

/// The actions that only the newer log has.
#[derive(Debug, Default)]
pub struct LaterAudit {
    /// In the order in which they happened.
    pub later: Vec<Later>,
    /// The number of unreadable lines. Each may have ended a credential.
    pub unreadable: u64,
    /// Whether the journal of the newer state is damaged, so that the last lines of the log may be missing.
    pub is_cut: bool,
}

#[derive(Debug, thiserror::Error)]
pub enum LaterAuditError {
    #[error(transparent)]
    Open(#[from] OpenError),
    #[error(transparent)]
    Disk(#[from] DiskError),
    #[error("cannot read {}", path.display())]
    Read {
        path: PathBuf,
        source: std::io::Error,
    },
    #[error("{} has no audit log: name a state folder, or its folder `audit`", path.display())]
    NoLog { path: PathBuf },
}

/// The actions in the backup, each with its request.
type Known = HashSet<(Uuid, AuditKind, Option<Uuid>)>;

impl LaterAudit {
    /// Reads the log in `newer`: a state folder, or a folder with files of the log. `backup` is the backup.
    pub fn read(newer: &Path, backup: &Path) -> Result<Self, LaterAuditError> {
        let mut known = Known::new();
        each_record(backup, &mut |record| {
            if let Some(record) = record {
                let request = record.entry.request;
                let actions = record.actions.iter();
                known.extend(actions.map(|action| (request, action.kind, action.id)));
            }
        })?;
        let mut read = Self::default();
        let found = each_record(newer, &mut |record| match record {
            None => read.unreadable += 1,
            Some(AuditRecord {
                at, entry, actions, ..
            }) => {
                for action in actions {
                    if !known.contains(&(entry.request, action.kind, action.id)) {
                        read.later.push(Later { at, action });
                    }
                }
            }
        })?;
        if found.days == 0 {
            let path = newer.to_owned();
            return Err(LaterAuditError::NoLog { path });
        }
        read.is_cut = found.is_cut;
        Ok(read)
    }
}

#[derive(Default)]
struct Found {
    days: u64,
    is_cut: bool,
}

/// Calls `take` with each record of a log, oldest first, and with `None` for unreadable lines.
fn each_record(
    folder: &Path,
    take: &mut dyn FnMut(Option<AuditRecord>),
) -> Result<Found, LaterAuditError> {
    let mut found = Found::default();
    let mut visit = |line: &[u8]| {
        // A crash may leave half a line, which was never acknowledged.
        if let Some(line) = line.strip_suffix(b"\n") {
            take(serde_json::from_slice(line).ok());
        }
    };
    match Look::at(folder) {
        Ok(look) => {
            let is_journal = |part: &Part| matches!(part, Part::Journal { .. });
            found.is_cut = look.damage().iter().any(|damage| is_journal(&damage.part));
            for entry in look.entries("audit")? {
                if let Role::File(key) = entry.role
                    && is_day(&key)
                {
                    found.days += 1;
                    each_line(&look, &key, u64::MAX, |_, line| visit(line))?;
                }
            }
        }
        Err(OpenError::NotAState { .. }) => {
            let fail = |path: &Path| {
                let path = path.to_owned();
                move |source| LaterAuditError::Read { path, source }
            };
            let inside = folder.join("audit");
            let folder = if inside.is_dir() {
                inside
            } else {
                folder.to_owned()
            };
            let entries = fs::read_dir(&folder).map_err(fail(&folder))?;
            let mut names = Vec::new();
            for entry in entries {
                let name = entry.map_err(fail(&folder))?.file_name();
                names.extend(name.into_string());
            }
            names.sort_unstable();
            for name in names {
                let key = Key::new(format!("audit/{name}"));
                if !key.is_ok_and(|key| is_day(&key)) {
                    continue;
                }
                found.days += 1;
                let path = folder.join(name);
                let mut lines = BufReader::new(File::open(&path).map_err(fail(&path))?);
                let mut line = Vec::new();
                while lines.read_until(b'\n', &mut line).map_err(fail(&path))? > 0 {
                    visit(&line);
                    line.clear();
                }
            }
        }
        Err(error) => return Err(error.into()),
    }
    Ok(found)
}

/// Whether this is the key of a day's log.
fn is_day(key: &Key) -> bool {
    RecordPlace::Audit.word::<NaiveDate>(key, "day").is_some()
}
