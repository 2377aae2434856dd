//! Checks that each blob record has its content, and each content its record. Every folder is a part of its own, so
//! that after a change only this folder is read again.

use store::look::Role;

use super::check::{Check, Checked, Expected, join};
use super::finding::Code;
use crate::layout::Layout;
use crate::record::Typed;

/// Checks a folder of records. The caller checks the folders in it.
pub(crate) fn check_records(check: &mut Check<'_>, folder: &str) {
    for entry in check.entries(folder) {
        let path = join(folder, &entry.name);
        match entry.role {
            Role::Folder => check.facts.folders.push(path),
            Role::File(key) if key.is_record() => {
                if let Some(Checked {
                    typed: Typed::Blob(blob),
                    ..
                }) = check.record(&key)
                {
                    let expected = Expected {
                        sha256: &blob.sha256,
                        size: Some(blob.size),
                        missing: Code::BlobMissing,
                        differs: Code::BlobDiffers,
                    };
                    check.object(&Layout::blob(blob.project, &blob.path), &expected);
                }
            }
            _ => check.unknown(&path),
        }
    }
}

/// Checks a folder of contents. The caller checks the folders in it.
pub(crate) fn check_contents(check: &mut Check<'_>, folder: &str) {
    for entry in check.entries(folder) {
        let path = join(folder, &entry.name);
        match entry.role {
            Role::Folder => check.facts.folders.push(path),
            Role::File(key) => {
                let record = Layout::record_of_blob(&key).map(|record| check.look.length(&record));
                if let None | Some(Ok(None)) = record {
                    check.find(Code::Orphan, key, "no record of a blob names it");
                }
            }
            _ => check.unknown(&path),
        }
    }
}
