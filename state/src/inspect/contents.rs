//! The contents of a state folder: counts and sizes, like `du`, but per kind of record.

use std::path::Path;

use model::{ScanHead, WorkflowRecord};
use serde::Serialize;
use store::look::{Look, Role};
use store::{DiskError, Form, Key};

use super::{InspectError, folder_names, folders};
use crate::envelope;
use crate::fsck::join;
use crate::layout::RecordPlace;
use crate::record::Record;

#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Contents {
    pub last_commit: u64,
    /// Commits whose changes may only be in the journal.
    pub commits_in_journal: u64,
    /// Sources by name, mirrors included.
    pub sources: Vec<(String, Size)>,
    pub workflows: Vec<Workflow>,
    /// Days with jobs, in order.
    pub days: Vec<Day>,
    /// The other folders and files by name.
    pub others: Vec<(String, Size)>,
}

/// A number of files and their size.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize)]
pub struct Size {
    pub files: u64,
    pub bytes: u64,
    /// The space on the disk.
    pub allocated: u64,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Workflow {
    pub id: String,
    /// Source and name, if the record can be read.
    pub name: Option<String>,
    pub revisions: u64,
    /// Each scan with the number of all jobs that have ever ended.
    pub scans: Vec<(String, u64)>,
    pub size: Size,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Day {
    /// In UTC.
    pub day: String,
    pub jobs: u64,
    pub size: Size,
}

/// Counts everything in the folder at `root`.
pub fn contents(root: &Path) -> Result<Contents, InspectError> {
    let look = Look::at(root)?;
    let position = look.position();
    let mut contents = Contents {
        last_commit: position.last.0,
        commits_in_journal: position.last.0 - position.checkpoint.0,
        sources: Vec::new(),
        workflows: Vec::new(),
        days: Vec::new(),
        others: Vec::new(),
    };
    for entry in look.entries("")? {
        match (entry.name.as_str(), &entry.role) {
            ("sources", Role::Folder) => {
                for name in folder_names(&look, "sources")? {
                    let size = size(&look, &join("sources", &name))?;
                    contents.sources.push((name, size));
                }
            }
            ("workflows", Role::Folder) => {
                for name in folder_names(&look, "workflows")? {
                    contents.workflows.push(workflow(&look, name)?);
                }
            }
            ("jobs", Role::Folder) => {
                for name in folder_names(&look, "jobs")? {
                    contents.days.push(day(&look, name)?);
                }
            }
            (name, _)
                if entry
                    .details
                    .is_some_and(|details| details.form == Form::Folder) =>
            {
                let size = size(&look, name)?;
                contents.others.push((name.to_owned(), size));
            }
            (name, _) => {
                let mut size = Size::default();
                size.add(entry.details.as_ref());
                contents.others.push((name.to_owned(), size));
            }
        }
    }
    Ok(contents)
}

fn day(look: &Look, day: String) -> Result<Day, DiskError> {
    let folder = &join("jobs", &day);
    let mut jobs = 0;
    for hour in folders(look, folder)? {
        for shard in folders(look, &hour)? {
            jobs += folders(look, &shard)?.len() as u64;
        }
    }
    Ok(Day {
        size: size(look, folder)?,
        day,
        jobs,
    })
}

fn workflow(look: &Look, id: String) -> Result<Workflow, DiskError> {
    let folder = &join("workflows", &id);
    let record = record_of(look, folder);
    let mut scans = Vec::new();
    for scan in folders(look, &join(folder, "scans"))? {
        if let Some(head) = record_at::<ScanHead>(look, RecordPlace::Head, &scan) {
            scans.push((head.scan.to_string(), head.totals.jobs()));
        }
    }
    Ok(Workflow {
        id,
        name: record.as_ref().map(full_name),
        revisions: folders(look, &join(folder, "revisions"))?.len() as u64,
        scans,
        size: size(look, folder)?,
    })
}

/// The record of the workflow in a folder, if it can be read.
pub(super) fn record_of(look: &Look, folder: &str) -> Option<WorkflowRecord> {
    record_at(look, RecordPlace::Workflow, folder)
}

pub(super) fn full_name(workflow: &WorkflowRecord) -> String {
    format!("{}/{}", workflow.source, workflow.name)
}

/// Whether `name` is a name of this workflow.
pub(super) fn is_named(workflow: &WorkflowRecord, name: &str) -> bool {
    workflow.name == name || full_name(workflow) == name
}

/// The record of a folder, if it can be read.
pub(super) fn record_at<R: Record>(look: &Look, place: RecordPlace, folder: &str) -> Option<R> {
    let key = Key::new(place.path_in(folder)).ok()?;
    let bytes = look.get(&key).ok()??;
    envelope::open_at(&key, &bytes).ok()
}

fn size(look: &Look, path: &str) -> Result<Size, DiskError> {
    let mut size = Size::default();
    let mut waiting = vec![path.to_owned()];
    while let Some(path) = waiting.pop() {
        for entry in look.entries(&path)? {
            // An entry that only the journal has takes no space yet.
            let Some(details) = entry.details else {
                continue;
            };
            if details.form == Form::Folder {
                waiting.push(join(&path, &entry.name));
            } else {
                size.add(Some(&details));
            }
        }
    }
    Ok(size)
}

impl Size {
    fn add(&mut self, details: Option<&store::Details>) {
        self.files += 1;
        self.bytes += details.map_or(0, |details| details.bytes);
        self.allocated += details.map_or(0, |details| details.allocated);
    }
}
