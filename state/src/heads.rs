//! Scan heads whose own record or whose history was damaged by somebody.
//!
//! A head says where the next line of its scan's history goes. In two cases that may not be believed, and in both the
//! history goes on with a page of its own, so that nothing is written over.

use std::path::Path;
use std::sync::Arc;

use model::{JobId, ScanHead, ScanKey, Tail};
use store::append_file::AppendReader;
use store::{DiskError, Key};
use workflow::ScanName;

use crate::error::ReadError;
use crate::files::blocking;
use crate::history::recount;
use crate::layout::Layout;
use crate::reader::StoreReader;

/// The scan whose head belongs at this key, unless its name was cut to fit the path.
pub(crate) fn scan_at(key: &Key) -> Option<ScanKey> {
    let mut segments = key.segments();
    let workflow = segments.nth(1)?.parse().ok()?;
    let scan: ScanName = serde_json::from_value(segments.nth(1)?.into()).ok()?;
    let scan = ScanKey { workflow, scan };
    (Layout::head(&scan) == *key).then_some(scan)
}

/// A head whose last page was cut short goes on with the next page: an append behind the end of a file is no commit,
/// and would stop the daemon at the scan's next finished job.
pub(crate) fn with_history(root: &Path, head: &Arc<ScanHead>) -> Arc<ScanHead> {
    let Tail { page, bytes } = head.history;
    let key = Layout::history(&head.key(), page);
    match length(root, &key) {
        Ok(length) if length.unwrap_or(0) < bytes => {
            tracing::error!(%key, length, expected = bytes, "a history has lost its end and goes on with the next page");
            Arc::new(ScanHead {
                history: Tail {
                    page: page + 1,
                    bytes: 0,
                },
                ..ScanHead::clone(head)
            })
        }
        Ok(_) => head.clone(),
        Err(error) => {
            tracing::error!(%key, %error, "a history cannot be looked at");
            head.clone()
        }
    }
}

/// What can be known of a scan whose head is lost: its history is counted anew. Its newest successes begin again.
pub(crate) async fn after_loss(
    root: &Path,
    reader: &StoreReader,
    scan: &ScanKey,
) -> Result<ScanHead, ReadError> {
    let (root, key) = (root.to_owned(), scan.clone());
    let page = blocking(move || {
        let mut page = 0;
        while length(&root, &Layout::history(&key, page))
            .map_err(store::ReadError::from)?
            .is_some()
        {
            page += 1;
        }
        Ok::<_, ReadError>(page)
    })
    .await?;
    let (totals, newest) = recount(reader, scan, page).await?;
    Ok(ScanHead {
        history: Tail { page, bytes: 0 },
        latest_job: newest.unwrap_or(JobId::FIRST),
        totals,
        ..ScanHead::new(scan.workflow, scan.scan.clone())
    })
}

fn length(root: &Path, key: &Key) -> Result<Option<u64>, DiskError> {
    AppendReader::open(root, key)?
        .map(|file| file.len())
        .transpose()
}
