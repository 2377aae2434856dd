//! Inspects a state folder without the API: contents and sizes, one record, the past of a job or a scan. It changes
//! nothing, so it may run while the daemon runs. It never shows secrets or tokens.

mod contents;
mod redacted;
mod story;

use std::path::Path;

use serde::Serialize;
use serde_json::Value;
use store::file::OpenError;
use store::look::{Look, Role};
use store::{DiskError, Key, ReadError};

pub use self::contents::{Contents, Day, Size, Workflow, contents};
use self::contents::{is_named, record_of};
use self::redacted::redacted;
pub use self::story::{Step, history};
use crate::envelope;
use crate::fsck::join;
use crate::layout::{Layout, RecordPlace};

/// A requested record. Its path is relative to the state folder.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Shown {
    pub path: String,
    /// The whole record. Secret values are replaced.
    pub record: Value,
}

#[derive(Debug, thiserror::Error)]
pub enum InspectError {
    #[error(transparent)]
    Open(#[from] OpenError),
    #[error(transparent)]
    Disk(#[from] DiskError),
    #[error(transparent)]
    Read(#[from] ReadError),
    #[error("nothing in this state has the id or name `{name}`")]
    Unknown { name: String },
    #[error("{path} cannot be read: {problem}; `everscand fsck` tells more")]
    Damaged { path: String, problem: String },
}

/// The records with this id or name: a job, workflow, revision, project, runner, registration, token, session, source,
/// condition, callback server, payload group, channel, outgoing events, or every scan of this name. A workflow also has the names `NAME` and
/// `SOURCE/NAME`, and `instance` names the rules of the instance.
pub fn show(root: &Path, name: &str) -> Result<Vec<Shown>, InspectError> {
    let look = Look::at(root)?;
    let mut shown = Vec::new();
    for key in places(&look, name)? {
        let Some(bytes) = look.get(&key)? else {
            continue;
        };
        let damaged = |problem: String| InspectError::Damaged {
            path: key.to_string(),
            problem,
        };
        envelope::read(&bytes).map_err(|error| damaged(error.to_string()))?;
        let record: Value =
            serde_json::from_slice(&bytes).map_err(|error| damaged(error.to_string()))?;
        shown.push(Shown {
            path: key.to_string(),
            record: redacted(record),
        });
    }
    if shown.is_empty() {
        return Err(InspectError::Unknown {
            name: name.to_owned(),
        });
    }
    Ok(shown)
}

/// The keys at which a record with this id or name may be.
fn places(look: &Look, name: &str) -> Result<Vec<Key>, DiskError> {
    let mut places = Vec::new();
    places.extend(name.parse().map(Layout::job));
    places.extend(name.parse().map(Layout::workflow));
    places.extend(name.parse().map(Layout::runner));
    places.extend(name.parse().map(Layout::token));
    places.extend(name.parse().map(Layout::session));
    places.extend(name.parse().map(Layout::registration));
    places.extend(name.parse().map(Layout::condition));
    places.extend(name.parse().map(Layout::channel));
    places.extend(name.parse().map(Layout::callback));
    places.extend(name.parse().map(Layout::payload_group));
    places.extend(name.parse().map(Layout::outgoing));
    places.extend(name.parse().map(Layout::vars));
    places.extend(name.parse().map(Layout::secrets));
    places.extend(name.parse().map(|project| Layout::rules(Some(project))));
    places.extend((name == "instance").then(|| Layout::rules(None)));
    places.extend(name.parse().map(|source| Layout::source(&source)));
    for workflow in folders(look, "workflows")? {
        let record = record_of(look, &workflow).filter(|record| is_named(record, name));
        places.extend(record.map(|record| Layout::workflow(record.id)));
        let inside = [
            ("revisions", RecordPlace::Revision),
            ("scans", RecordPlace::Head),
        ];
        for (inside, place) in inside {
            for folder in folders(look, &join(&workflow, inside))? {
                let key = Key::new(place.path_in(&folder)).ok();
                places.extend(key.filter(|key| is_record_of(look, key, name)));
            }
        }
    }
    Ok(places)
}

/// Whether the record at `key` has this id. An unreadable record has none.
fn is_record_of(look: &Look, key: &Key, id: &str) -> bool {
    let bytes = look.get(key).ok().flatten().unwrap_or_default();
    envelope::read(&bytes).is_ok_and(|record| record.id == id)
}

/// The paths of the folders in a folder.
fn folders(look: &Look, folder: &str) -> Result<Vec<String>, DiskError> {
    let names = folder_names(look, folder)?.into_iter();
    Ok(names.map(|name| join(folder, &name)).collect())
}

fn folder_names(look: &Look, folder: &str) -> Result<Vec<String>, DiskError> {
    let entries = look.entries(folder)?.into_iter();
    let folders = entries.filter(|entry| entry.role == Role::Folder);
    Ok(folders.map(|entry| entry.name).collect())
}
