//! Finds the scan of a record by its path, if the record itself cannot be read.
//!
//! Most paths contain the whole name of their scan. If a long name is shortened, the names in the workflow's revisions
//! are tried.

use model::{RevisionRef, ScanKey};
use store::Key;
use workflow::{ScanName, TemplatePolicy};

use crate::blocking::blocking;
use crate::error::ReadError;
use crate::layout::{Layout, RecordPlace};
use crate::limits::REVISIONS_LOOKED_AT;
use crate::lost_workflows::revisions_of;
use crate::reader::StoreReader;

/// The scan whose record belongs at this key; `place` makes the keys of such records. `None` if no readable revision of
/// the workflow defines the scan.
pub(crate) async fn scan_at(
    reader: &StoreReader,
    key: &Key,
    place: fn(&ScanKey) -> Key,
) -> Result<Option<ScanKey>, ReadError> {
    let Some(at) = RecordPlace::parse(key) else {
        return Ok(None);
    };
    let (workflow, name) = (at.word(key, "workflow"), at.word::<String>(key, "scan"));
    let (Some(workflow), Some(name)) = (workflow, name) else {
        return Ok(None);
    };
    let belongs = |scan: ScanName| {
        let scan = ScanKey { workflow, scan };
        (place(&scan) == *key).then_some(scan)
    };
    let plain = serde_json::from_value(name.into()).ok();
    if let Some(scan) = plain.and_then(belongs) {
        return Ok(Some(scan));
    }
    for revision in revisions_of(reader, workflow).await? {
        let text = Layout::revision_text(workflow, &revision);
        let found = names_in(reader, &text).await.into_iter().find_map(belongs);
        if found.is_some() {
            return Ok(found);
        }
    }
    Ok(None)
}

/// The revision that removed a scan: its predecessor has the scan, and later revisions do not. `None` if a text in
/// between cannot be read, or while a full disk delays the files.
pub(crate) async fn removed_by(
    reader: &StoreReader,
    scan: &ScanKey,
) -> Result<Option<RevisionRef>, ReadError> {
    let workflow = scan.workflow;
    let revisions = match revisions_of(reader, workflow).await {
        Err(ReadError::Store(store::ReadError::Unsettled)) => return Ok(None),
        revisions => revisions?,
    };
    let mut without = None;
    for revision in revisions.into_iter().take(REVISIONS_LOOKED_AT) {
        let names = names_in(reader, &Layout::revision_text(workflow, &revision)).await;
        if names.is_empty() {
            return Ok(None);
        }
        if names.contains(&scan.scan) {
            return Ok(without);
        }
        without = Some(revision);
    }
    Ok(None)
}

/// The scans that a revision's text defines. Empty if the text cannot be read.
async fn names_in(reader: &StoreReader, key: &Key) -> Vec<ScanName> {
    let text = match reader.get(key).await {
        Ok(text) => text.unwrap_or_default(),
        Err(error) => {
            tracing::error!(%key, %error, "a revision cannot be read");
            return Vec::new();
        }
    };
    let file = key.to_string();
    let parsed = blocking(move || {
        let text = String::from_utf8_lossy(&text);
        Ok::<_, ReadError>(workflow::parse(&file, &text, TemplatePolicy::Warn))
    });
    match parsed.await {
        Ok(Ok(parsed)) => parsed
            .workflow
            .scans()
            .map(|scan| scan.name.clone())
            .collect(),
        Ok(Err(_)) | Err(_) => Vec::new(),
    }
}
